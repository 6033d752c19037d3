"""`hakaru compare A B…`: clusters side by side, with what others have published beside them."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from hakaru.cli._options import (
    Data,
    _complete_clusters,
    _complete_states,
    data_options,
    engine_option,
    make_selection,
    open_lake,
)

FORMATS = ("table", "md", "json", "csv")


def _complete_metrics(ctx: click.Context, param: click.Parameter, start: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from hakaru.reference.metrics import load_metrics

    metrics = load_metrics().values()
    return [CompletionItem(m.id, help=m.label) for m in metrics if m.id.startswith(start)]


@click.command(
    epilog="Examples: hakaru compare aaic ricc   |   hakaru compare aaic --published Kraken,Philly   |   "
    "hakaru compare --from 'mine=jobs/*.csv' --from ricc=RICC-2010-2.swf.gz --format md"
)
@click.argument("clusters", nargs=-1, shell_complete=_complete_clusters)
@click.option(
    "--published",
    metavar="NAMES",
    default="all",
    show_default=True,
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
@click.option("--where", help="Condition on columns, e.g. \"queue = 'long'\".")
@click.option("--since", metavar="DATE", help="Submitted on or after, in the site's zone.")
@click.option("--until", metavar="DATE", help="Submitted on or before, in the site's zone.")
@click.option("--min-run", type=float, metavar="SECONDS", help="Least run time; 0 for none.")
@click.option(
    "--state",
    "states",
    multiple=True,
    shell_complete=_complete_states,
    help="Only jobs in this state; `any` for all.",
)
@click.option("--format", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file."
)
@engine_option
def command(
    clusters: tuple[str, ...],
    published: str,
    metrics: tuple[str, ...],
    data: Data,
    format: str,
    output: Path | None,
    engine: str,
    **selection: Any,
) -> None:
    """Set clusters side by side, and say in sentences what sets the first apart from the others.

    Without a name, all clusters of the workspace (or of --from). A number that a log cannot give is
    a dash with the reason. In csv each number has a row of its own, with its citation.
    """
    from hakaru.analyses import open_session
    from hakaru.cli._comparison import compare
    from hakaru.cli._side_by_side import write
    from hakaru.reference.metrics import find_metrics

    chosen = find_metrics(metrics)
    beside = _published(published)
    jobs = make_selection(cluster=(), by=None, weight="jobs", **selection)
    with open_lake(data) as lake, open_session(lake, engine) as session:
        names = _known(session, clusters)
        with _working(names):
            comparison = compare(session, names, chosen, beside, jobs)
    write(comparison, format, output)


def _working(names: list[str]) -> AbstractContextManager[Any]:
    """A sign of life on a terminal: millions of jobs take a while."""
    from rich.console import Console

    if not sys.stderr.isatty():
        return nullcontext()
    return Console(stderr=True).status(f"computing {', '.join(names)}")


def _published(text: str) -> list[str] | None:
    from hakaru.reference.published import find_clusters

    if text.strip().lower() == "all":
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    return [] if [name.lower() for name in names] == ["none"] else find_clusters(names)


def _known(session: Any, names: tuple[str, ...]) -> list[str]:
    """The named clusters, or all; one that is not there is refused with those that are."""
    from hakaru.errors import HakaruError

    known = session.known_clusters
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise HakaruError(
                f"there is no cluster {name!r} in {session.lake.workspace}; known: {listed}. "
                f"Read one in with: hakaru ingest FILE --cluster {name}; what others have published "
                "stands beside it with --published NAME"
            )
    if not known:
        raise HakaruError(
            f"{session.lake.workspace} holds no jobs yet. Begin with: hakaru ingest FILE --cluster NAME"
        )
    return list(dict.fromkeys(names or known))
