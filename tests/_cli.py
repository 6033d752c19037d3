"""The command line, called as a person calls it."""

from __future__ import annotations

from click.testing import CliRunner, Result

from hakaru.cli import main


def hakaru(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])
