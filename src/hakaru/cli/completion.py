"""`hakaru completion SHELL`: the script that makes the shell complete verbs, ids and clusters."""

from __future__ import annotations

import click


@click.command(epilog='Example: eval "$(hakaru completion bash)"   (put it in ~/.bashrc)')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class

    from hakaru.cli import main

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "hakaru", "_HAKARU_COMPLETE").source())
