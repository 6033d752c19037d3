"""`python -m hakaru` is `hakaru`."""

from hakaru.cli import main

main(prog_name="hakaru")
