"""`hakaru bench`: measure cards, links and LINPACK; one small file a verb, imported when it is used."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Any

import click

from hakaru.registry import hint

CLOSED_PIPE = 141  # as a shell reports SIGPIPE
EPILOG = """\b
Examples:
  hakaru bench run --quick           # two minutes; every number with a verdict
  hakaru bench preflight --launcher slurm --nodes 128 --ranks 1024
Exit codes: 0 good, 10 slow, 11 failed, 12 contaminated, 13 not measured;
1 and 2 are errors of the command itself.
"""


class BenchVerbs(click.Group):
    """The verbs are the modules of this package; each holds its command as `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = [module.name for module in pkgutil.iter_modules(__path__)]
        return sorted(name.rstrip("_") for name in names if not name.startswith("_"))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        module = f"{name}_" if name == "import" else name  # a word of Python
        command: click.Command = importlib.import_module(f"{__name__}.{module}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # a gate whose reader has gone away must not pass for good
            sys.stderr.close()
            ctx.exit(CLOSED_PIPE)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"there is no command {args[0]!r}; {hint(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


@click.group(cls=BenchVerbs, epilog=EPILOG)
def command() -> None:
    """Measure the machine: cards, links, LINPACK, training, storage; each number with a verdict."""
