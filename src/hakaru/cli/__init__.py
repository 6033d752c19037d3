"""The command line: one small file a verb, each imported only when it is used."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from contextlib import nullcontext
from typing import Any

import click

from hakaru.cli._options import QUOTE_IT
from hakaru.errors import HakaruError
from hakaru.registry import hint
from hakaru.safety.files import NOBODY_ELSE, masked
from hakaru.safety.processes import tidy_end
from hakaru.safety.text import plain, plain_output, print_plain_traceback

EPILOG = "Begin with `hakaru demo`, or ask your own log: `hakaru show walltime --from my.swf.gz`."

STOPPED = {"ingest": "; nothing was stored", "reproduce": "; nothing was stored"}


class Verbs(click.Group):
    """The verbs are the modules of this package; each holds its command as `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = [module.name for module in pkgutil.iter_modules(__path__)]
        return sorted(name for name in names if not name.startswith("_"))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"hakaru.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"there is no command {args[0]!r}; {hint(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **extra: Any) -> Any:
        sys.excepthook = print_plain_traceback  # it outlives what follows
        # bytes for a shell, of names that were checked
        completes = "_HAKARU_COMPLETE" in os.environ
        with tidy_end(), nullcontext() if completes else plain_output():
            return super().main(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with masked(NOBODY_ELSE):  # reports, exports and lakes name people
                return super().invoke(ctx)
        except HakaruError as error:
            click.echo(f"error: {plain(str(error))}", err=True)
            ctx.exit(1)
        except click.UsageError as error:
            raise _explained(error) from None
        except KeyboardInterrupt:
            verb = ctx.invoked_subcommand
            click.echo("stopped" + STOPPED.get(verb or "", ""), err=True)
            ctx.exit(130)
        except BrokenPipeError:  # the reader, e.g. head, has had enough
            sys.stderr.close()
            ctx.exit(0)
        except Exception as error:
            if (told := _of_duckdb(error)) is None:
                raise
            click.echo(f"error: {plain(told)}", err=True)
            ctx.exit(1)


def _of_duckdb(error: Exception) -> str | None:
    """What DuckDB refused where no engine stood between, e.g. a stored file that is damaged inside."""
    if "duckdb" not in sys.modules:
        return None
    import duckdb

    from hakaru.engine.duckdb import explained

    return str(explained(error)) if isinstance(error, duckdb.Error) else None


def _explained(error: click.UsageError) -> click.UsageError:
    """`--from *.gz` without quotes: the shell has made one option and many arguments of it."""
    takes_logs = error.ctx and any(param.name == "logs" for param in error.ctx.command.params)
    if takes_logs and "unexpected extra argument" in error.message:
        return click.UsageError(f"{error.message}. If these are files, {QUOTE_IT}", error.ctx)
    return error


@click.group(cls=Verbs, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hakaru", prog_name="hakaru")
def main() -> None:
    """Hakaru: the instrument panel of a shared GPU cluster.

    Turns job logs into the tables and figures of the published workload studies.
    """
