"""`hakaru export`: the jobs of a cluster in a format that others read, under their names or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import Data, data_options, open_lake
from hakaru.cli._selection import (
    check_selection,
    cluster_option,
    filter_options,
    make_selection,
    period_of,
)
from hakaru.errors import HakaruError

if TYPE_CHECKING:
    from hakaru.analyses import Analysis, Selection
    from hakaru.export import Disguise, Export, Site


EPILOG = """\b
Examples:
  hakaru export -o out --format swf --cluster aaic
  hakaru export -o jobs.parquet --format parquet --anonymise --salt-file salt.txt
  hakaru export -o week.swf --format swf --anonymise --shift-times 364 --state completed
"""


@click.command(epilog=EPILOG)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder, or a file with the format's ending.",
)
@click.option("--format", "format", required=True, type=click.Choice(["aaic", "swf", "parquet"]))
@data_options
@cluster_option
@filter_options
@click.option("--anonymise", is_flag=True, help="Pseudonyms for names and ids; no free text.")
@click.option(
    "--salt", metavar="TEXT", help="Secret: the same salt gives the same pseudonyms again."
)
@click.option(
    "--salt-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the salt, so that no list of processes shows it.",
)
@click.option(
    "--shift-times", metavar="DAYS|random", help="Move all times by whole weeks, e.g. 364."
)
@click.option("--overwrite", is_flag=True, help="Replace files that are there already.")
def command(
    output: Path,
    format: str,
    data: Data,
    cluster: tuple[str, ...],
    anonymise: bool,
    salt: str | None,
    salt_file: Path | None,
    shift_times: str | None,
    overwrite: bool,
    **filters: Any,
) -> None:
    """Write jobs as AAIC's CSV, SWF or Parquet, with a manifest of what was removed.

    Without a salt, a random one makes the pseudonyms and is not kept.
    """
    from hakaru.analyses import open_session
    from hakaru.engine.duckdb import DuckDBEngine
    from hakaru.export import export

    disguise = _disguise(anonymise, salt, salt_file, shift_times)
    chosen = make_selection(cluster=cluster, **filters)
    with open_lake(data) as lake, open_session(lake, unit=data.unit) as session:
        check_selection(session, chosen)
        found = session.run(_every_job(), chosen)
        if found.num_used == 0:
            name = found.selection.clusters[0]
            raise HakaruError(
                f"no job of {name} passes the filters; {period_of(session, name)}; nothing was written"
            )
        assert isinstance(session.engine, DuckDBEngine)
        done = export(
            session.engine.connection,
            "jobs",
            _site(session, found.selection.clusters[0]),
            format,
            output,
            disguise=disguise,
            filters=_told(chosen),
            overwrite=overwrite,
        )
    _print_done(done, disguise)


def _told(chosen: Selection) -> dict[str, str]:
    """The filters as the manifest tells them."""
    told = {
        "where": chosen.where,
        "since": chosen.since,
        "until": chosen.until,
        "min_run_s": None if chosen.min_run_s is None else f"{chosen.min_run_s:g}",
        "states": ", ".join(chosen.states),
    }
    return {name: text for name, text in told.items() if text}


def _every_job() -> Analysis:
    """The selection alone, through the machinery of the analyses: it defines the view `jobs`.

    The query names every column, as the view has only those that are named.
    """
    from hakaru.analyses import Analysis
    from hakaru.schema import JOBS

    columns = ", ".join(f"jobs.{name}" for name in JOBS.names)
    return Analysis(
        id="export",
        title="Jobs to export",
        answers="Which jobs are exported?",
        figure="",
        subject="export",
        query=lambda: f"SELECT count(*) AS num_jobs FROM (SELECT {columns} FROM jobs) AS named",
        description="",
        groups=False,
    )


def _site(session: Any, cluster: str) -> Site:
    from hakaru.export import Site

    return Site(
        name=cluster,
        unit=session.unit(cluster),
        settings=session.settings.cluster(cluster),
        synthetic=cluster in session.synthetic,
        missing=session.missing.get(cluster),
    )


def _disguise(
    anonymise: bool, salt: str | None, salt_file: Path | None, shift: str | None
) -> Disguise | None:
    from hakaru.export import make_disguise

    given = {"--salt": salt, "--salt-file": salt_file, "--shift-times": shift}
    if not anonymise:
        for name, value in given.items():
            if value is not None:
                raise HakaruError(f"{name} needs --anonymise")
        return None
    if salt is not None and salt_file is not None:
        raise HakaruError("give --salt or --salt-file, not both")
    if salt_file is not None:
        try:
            salt = salt_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise HakaruError(f"{salt_file}: the salt cannot be read: {error}") from None
    return make_disguise(salt, shift)


def _print_done(done: Export, disguise: Disguise | None) -> None:
    from hakaru.analyses import missing_remarks
    from hakaru.sim.notation import counted
    from hakaru.texts import language

    told = done.manifest
    files = str(done.files[0]) if len(done.files) == 1 else f"{len(done.files)} files"
    where = "" if len(done.files) == 1 else f" in {done.manifest_path.parent}"
    synthetic = " (SYNTHETIC data)" if told["synthetic"] else ""
    click.echo(
        f"{told['clusters'][0]}{synthetic}: wrote {told['num_jobs_written']:,} of "
        f"{counted(told['num_jobs_selected'])} as {told['format']} to {files}{where}"
    )
    if told["missing"]:
        missing = {told["clusters"][0]: told["missing"]}
        click.echo(f"  {missing_remarks(missing, language('en'))[0]}")
    for reason, count in told["left_out"].items():
        click.echo(f"  left out {count:,}: {reason}")
    for what, count in told["changed"].items():
        click.echo(f"  changed {count:,}: {what}")
    for title, columns in told["columns"].items():
        if columns:
            click.echo(f"  columns {title.replace('_', ' ')}: {', '.join(columns)}")
    if disguise:
        click.echo(f"  the salt is {told['anonymised']['salt']}")
        click.echo(f"  times are {told['times']}")
    if not told["settings_in_files"]:
        click.echo("  the files hold no settings (zone, nodes, limits): the manifest has them")
    click.echo(f"  manifest {done.manifest_path}")
