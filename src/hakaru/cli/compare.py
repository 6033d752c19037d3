"""`hakaru compare A B…`: clusters side by side, with what others have published beside them."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import (
    QUOTE_IT,
    Data,
    data_options,
    engine_option,
    open_lake,
    output_options,
)
from hakaru.cli._output import choose_format
from hakaru.cli._progress import bar_console
from hakaru.cli._selection import (
    check_clusters,
    check_selection,
    complete_clusters,
    filter_options,
    make_selection,
)
from hakaru.errors import HakaruError

if TYPE_CHECKING:
    from hakaru.analyses import Session

FORMATS = ("table", "md", "json", "csv")
EPILOG = """\b
Examples:
  hakaru compare aaic ricc
  hakaru compare aaic --published Kraken,Philly
  hakaru compare --from 'mine=jobs/*.csv' --from ricc=RICC-2010-2.swf.gz -o table.md
"""


def _complete_metrics(ctx: click.Context, param: click.Parameter, start: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from hakaru.reference.metrics import load_metrics

    metrics = load_metrics().values()
    return [CompletionItem(m.id, help=m.label) for m in metrics if m.id.startswith(start)]


def _complete_published(ctx: click.Context, param: click.Parameter, start: str) -> list[str]:
    """The name after the last comma; those before it stay."""
    from hakaru.reference.published import published_clusters

    before, comma, last = start.rpartition(",")
    known = [*published_clusters(), *(() if comma else ("all", "none"))]
    return [f"{before}{comma}{n}" for n in known if n.lower().startswith(last.lower())]


@click.command(epilog=EPILOG)
@click.argument("clusters", nargs=-1, shell_complete=complete_clusters)
@click.option(
    "--published",
    metavar="NAMES",
    default="all",
    show_default=True,
    shell_complete=_complete_published,
    help="Published clusters, e.g. Kraken,Philly: a column each; all: those that have the metric; none.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="ID",
    shell_complete=_complete_metrics,
    help="Only this metric; repeat for more.",
)
@data_options
@filter_options
@click.option("--all", "every", is_flag=True, help="Every metric, not only the headline.")
@click.option("--sources", is_flag=True, help="Whole citations, with their caveats.")
@output_options(FORMATS)
@engine_option
def command(
    clusters: tuple[str, ...],
    published: str,
    metrics: tuple[str, ...],
    data: Data,
    every: bool,
    sources: bool,
    output_format: str | None,
    output: Path | None,
    engine: str,
    **selection: Any,
) -> None:
    """Set clusters side by side, and say in sentences what sets the first apart from the others.

    Without a name, all clusters of the workspace (or of --from). A number that a log cannot give is
    a dash with the reason. In csv each number has a row of its own, with its citation.
    """
    from hakaru.analyses import open_session
    from hakaru.cli._side_by_side import write
    from hakaru.comparison import HEADLINE, compare
    from hakaru.reference.metrics import find_metrics

    if every and metrics:
        raise HakaruError("give --all or --metric, not both")
    format = choose_format(output_format, output, FORMATS)
    chosen = find_metrics(metrics or (() if every else HEADLINE))
    beside = _published(published)
    jobs = make_selection(**selection)
    _refuse_files(clusters, data)
    with open_lake(data) as lake, open_session(lake, engine, unit=data.unit) as session:
        names = _known(session, clusters)
        check_selection(session, replace(jobs, clusters=tuple(names)))
        with _working(names):
            comparison = compare(session, names, chosen, beside, jobs)
    write(comparison, format, output, sources)


def _working(names: list[str]) -> AbstractContextManager[Any]:
    """A sign of life on a terminal: millions of jobs take a while."""

    if not sys.stderr.isatty():
        return nullcontext()
    return bar_console().status(f"computing {', '.join(names)}")


def _published(text: str) -> list[str] | None:
    from hakaru.reference.published import find_clusters

    if text.strip().lower() == "all":
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    return [] if [name.lower() for name in names] == ["none"] else find_clusters(names)


def _refuse_files(clusters: tuple[str, ...], data: Data) -> None:
    """`--from *.gz` without quotes: all files but the first arrive as names of clusters."""
    files = [name for name in clusters if data.logs and Path(name).is_file()]
    if files:
        raise HakaruError(f"{files[0]} is a file, not the name of a cluster: {QUOTE_IT}")


def _known(session: Session, names: tuple[str, ...]) -> list[str]:
    """The named clusters, or all; one that is not there is refused with those that are."""
    known = session.known_clusters
    if not known:
        raise HakaruError(
            f"{session.lake.workspace} holds no jobs yet. Begin with: hakaru ingest FILE --cluster NAME"
        )
    try:
        check_clusters(session, names)
    except HakaruError as error:
        raise HakaruError(
            f"{error}. Read one in with: hakaru ingest FILE --cluster NAME; what others have "
            "published stands beside it with --published NAME"
        ) from None
    return list(dict.fromkeys(names or known))
