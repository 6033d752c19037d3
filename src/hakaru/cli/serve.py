"""`hakaru serve`: the web app and its API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from hakaru.cli._options import Data, data_options, open_lake

if TYPE_CHECKING:
    from hakaru.lake import Lake

EPILOG = """\b
Examples:
  hakaru serve --open
  hakaru serve --from my.swf.gz
  hakaru token create --name ann --role operator && hakaru serve --host 0.0.0.0
"""


@click.command(epilog=EPILOG)
@data_options
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; one that others can reach needs tokens or a proxy.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to listen on; 0 for any that is free.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open it in the browser.")
@click.option("--access-log", is_flag=True, help="Log each request (without its query) to stderr.")
def command(data: Data, host: str, port: int, open_browser: bool, access_log: bool) -> None:
    """Serve the web app: figures, jobs and people of the workspace, with any filter.

    It listens on this machine only, where whoever sits at it sees everything. For others make tokens with
    `hakaru token create`, or name a trusted proxy in hakaru.toml. Ctrl-C ends it.
    """
    from hakaru.web.server import serve

    def ready(url: str, others: list[str]) -> None:
        click.echo(f"Hakaru is at {url} (Ctrl-C ends it){_for_others(host, others)}")
        if open_browser:
            click.launch(url)

    with _lake_of(data) as lake:
        _say_what_is_missing(lake)
        serve(
            lake,
            host,
            port,
            access_folder=data.workspace,
            access_log=access_log,
            ready=ready,
            unit=data.unit,
        )


@contextmanager
def _lake_of(data: Data) -> Iterator[Lake]:
    """The lake; a workspace that has only settings yet is an empty one, which the app can say itself."""
    from hakaru.lake import Lake
    from hakaru.settings import file_text

    if not data.logs and file_text(data.workspace) is not None:
        yield Lake(data.workspace)
        return
    with open_lake(data) as lake:
        yield lake


def _for_others(host: str, others: list[str]) -> str:
    from hakaru.web.server import EVERY_ADDRESS

    if host not in EVERY_ADDRESS:
        return ""
    known = f", as {' or '.join(others)}" if others else ""
    return f"\nIt listens on every address of this machine: others reach it too{known}"


def _say_what_is_missing(lake: Lake) -> None:
    from hakaru.schema import RUNS

    if lake.clusters():
        return
    measured = "; measurements are on the page Measure" if lake.files(RUNS) else ""
    click.echo(
        f"{lake.workspace} holds no jobs yet{measured}. Begin with: hakaru ingest FILE --cluster NAME "
        f"--workspace {lake.workspace}",
        err=True,
    )
