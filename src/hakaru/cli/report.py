"""`hakaru report`: one self-contained HTML file with everything that the log says."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import Data, data_options, engine_option, lang_option, open_lake
from hakaru.cli._progress import bar_console
from hakaru.cli._selection import (
    check_selection,
    cluster_option,
    filter_options,
    make_selection,
)
from hakaru.errors import HakaruError

if TYPE_CHECKING:
    from hakaru.analyses import Selection, Session

EPILOG = """\b
Examples:
  hakaru report -o report.html
  hakaru report -o spring.html --cluster mine --since 2018-04-01 --until 2018-06-30
  hakaru report -o report.html --compare ricc,Philly,Kraken --lang ja
"""


@click.command(epilog=EPILOG)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default="report.html",
    show_default=True,
    help="The HTML file to write.",
)
@data_options
@cluster_option
@filter_options
@click.option(
    "--compare",
    "beside",
    multiple=True,
    metavar="NAMES",
    help="Clusters of the workspace or published ones to set beside it, e.g. Kraken,Philly; "
    "else all that have published a metric.",
)
@lang_option("the texts")
@engine_option
def command(
    output: Path,
    data: Data,
    beside: tuple[str, ...],
    lang: str,
    engine: str,
    **selection: Any,
) -> None:
    """Write a report that can be mailed and printed: figures, what stands out, and how it was made.

    The file needs no network to be read. In a browser, print it to get a PDF.
    """
    from hakaru.analyses import open_session

    _check_ending(output)
    chosen = make_selection(**selection)
    with open_lake(data) as lake, open_session(lake, engine, unit=data.unit) as session:
        _check_jobs(session)
        check_selection(session, chosen)
        size = write_report(session, output, chosen, _names(beside), lang)
    click.echo(f"{output} ({size / 1e6:.1f} MB)")


def _check_jobs(session: Session) -> None:
    """A report is of jobs: where there are only measurements, their page is another command's."""
    from hakaru.schema import RUNS

    if not session.known_clusters and session.lake.files(RUNS):
        raise HakaruError(
            f"{session.lake.workspace} holds no jobs yet, only measurements; for a page of those: "
            "hakaru bench show -o FILE"
        )


def write_report(
    session: Session,
    output: Path,
    selection: Selection | None = None,
    beside: list[str] | None = None,
    lang: str = "en",
) -> int:
    """Write the report of one cluster; gives the number of bytes."""
    from hakaru.cli._output import writing
    from hakaru.report import tell, to_html

    with _working():
        story = tell(session, selection, beside, lang)
        text = to_html(story).encode("utf-8")
    with writing(output):
        output.write_bytes(text)
    if story.not_measured:
        click.echo(story.not_measured, err=True)
    return len(text)


def _names(beside: tuple[str, ...]) -> list[str] | None:
    """The names of all `--compare`; none given stands for all that are published."""
    names = [name.strip() for text in beside for name in text.split(",") if name.strip()]
    if not beside or [name.lower() for name in names] == ["all"]:
        return None
    return [] if [name.lower() for name in names] == ["none"] else names


def _check_ending(output: Path) -> None:
    if output.suffix.lower() not in (".html", ".htm"):
        raise HakaruError(
            f"{output}: the report is HTML; end its name in .html (and print it in a browser for a PDF)"
        )


def _working() -> AbstractContextManager[Any]:
    """A sign of life on a terminal: millions of jobs take a while."""

    if not sys.stderr.isatty():
        return nullcontext()
    return bar_console().status("running every analysis")
