"""`hakaru lake status|compact|forget`: what the workspace holds, and its housekeeping."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import workspace_option
from hakaru.safety.text import one_line

if TYPE_CHECKING:
    from rich.table import Table

    from hakaru.lake import Lake


@click.group(epilog="Example: hakaru lake status")
def command() -> None:
    """Look at the store, or tidy it."""


@command.command(epilog="Example: hakaru lake status --workspace my-cluster")
@workspace_option
def status(workspace: Path) -> None:
    """Sizes, clusters, periods, last ingest and rejects."""
    from hakaru.cli._render import terminal
    from hakaru.lake import Lake

    lake = Lake.open(workspace)
    console = terminal()
    console.print(_tables(lake))
    rows = _clusters(lake)
    console.print(_cluster_table(lake, rows))
    for line in _notes_on_users(lake, rows):
        click.echo(one_line(line))
    for line in _rejects(lake):
        click.echo(one_line(line))


@command.command(epilog="Example: hakaru lake compact --retain-hours 24")
@workspace_option
@click.option(
    "--retain-hours",
    type=click.IntRange(min=0),
    default=168,
    show_default=True,
    help="Keep replaced files this long, for queries that still read them.",
)
def compact(workspace: Path, retain_hours: int) -> None:
    """Join small files and delete those that nothing needs any more."""
    from hakaru.lake import Lake

    lake = Lake.open(workspace)
    before = sum(table.num_files for table in lake.status())
    lake.compact(retain_hours)
    after = sum(table.num_files for table in lake.status())
    click.echo(f"{before} files became {after}")


@command.command(
    epilog="""\b
Examples:
  hakaru lake forget --cluster mine
  hakaru lake forget --cluster mine --rejects jobs.txt"""
)
@workspace_option
@click.option("--cluster", required=True, help="Name of the cluster.")
@click.option(
    "--rejects",
    metavar="FILE",
    help="Remove only the rejected rows of this file, once they were read from another; jobs stay.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(workspace: Path, cluster: str, rejects: str | None, yes: bool) -> None:
    """Remove all that is stored of a cluster, to ingest its logs anew, with the what-if runs over its jobs.

    Its files are deleted from the disk by a later "hakaru lake compact".
    """
    from hakaru.lake import Lake
    from hakaru.web.what_if.kept import forget as forget_runs

    lake = Lake.open(workspace)
    if rejects is not None:
        num_rows = lake.forget_rejects(cluster, rejects)
        click.echo(f"{cluster}: removed {num_rows:,} rejects of {rejects}; its jobs stay")
        return
    if not yes:
        _ask(cluster, lake.rows_of(cluster))
    removed = _listed(lake.forget(cluster))
    num_runs = forget_runs(workspace, cluster)
    more = f", and {num_runs} what-if run{'' if num_runs == 1 else 's'}" if num_runs else ""
    click.echo(f"{cluster}: removed {removed}{more}")


def _ask(cluster: str, rows: dict[str, int]) -> None:
    from hakaru.errors import HakaruError

    if not sys.stdin.isatty():
        raise HakaruError(
            f"this would remove {_listed(rows)} of {cluster}; there is no terminal to confirm it: add --yes"
        )
    click.confirm(f"Remove {_listed(rows)} of {cluster}?", abort=True)


def _listed(rows: dict[str, int]) -> str:
    """As `2,000 rows of jobs, 3 of ingests`."""
    held = [(name, count) for name, count in rows.items() if count]
    (first, count), *others = held
    noun = "row" if count == 1 else "rows"
    return ", ".join([f"{count:,} {noun} of {first}", *(f"{n:,} of {name}" for name, n in others)])


def _tables(lake: Lake) -> Table:
    from rich.filesize import decimal
    from rich.table import Table

    shown = Table(title=str(lake.workspace), title_justify="left", header_style="bold")
    for name in ("table", "rows", "files", "size", "version", "last commit (UTC)"):
        shown.add_column(name, justify="left" if name == "table" else "right")
    for table in lake.status():
        if table.version >= 0:
            when = table.committed_at.strftime("%Y-%m-%d %H:%M:%S") if table.committed_at else "–"
            size = decimal(table.num_bytes)
            shown.add_row(
                table.name,
                f"{table.num_rows:,}",
                str(table.num_files),
                size,
                str(table.version),
                when,
            )
    return shown


def _clusters(lake: Lake) -> list[tuple[Any, ...]]:
    """Cluster, jobs, users, first and last submission, and logs that number users anew."""
    from hakaru.engine.duckdb import connect, select_files
    from hakaru.formats.logs import count_logs
    from hakaru.schema import JOBS
    from hakaru.settings import Engine

    return (
        connect(Engine())
        .execute(
            'SELECT cluster, count(*), count(DISTINCT "user"), min(submitted_at), max(submitted_at), '
            f"{count_logs('jobs.user', 'job_id')} "
            f"FROM ({select_files(JOBS, lake.files(JOBS))}) AS jobs GROUP BY cluster ORDER BY cluster"
        )
        .fetchall()
    )


def _notes_on_users(lake: Lake, rows: Sequence[tuple[Any, ...]]) -> list[str]:
    from hakaru.formats.logs import told
    from hakaru.settings import load

    settings = load(lake.workspace, lake.facts())
    notes = {row[0]: told(row[-1], settings.cluster(row[0]).users_per_file) for row in rows}
    return [f"{name}: {note}" for name, note in notes.items() if note]


def _cluster_table(lake: Lake, rows: Sequence[tuple[Any, ...]]) -> Table:
    from rich.table import Table

    shown = Table(header_style="bold")
    for name in (
        "cluster",
        "jobs",
        "users",
        "first submit (UTC)",
        "last submit (UTC)",
        "last ingest (UTC)",
    ):
        shown.add_column(name, justify="left" if name == "cluster" else "right")
    last = {row["cluster"]: row["ended_at"] for row in lake.ingests()}
    synthetic = lake.synthetic_clusters()
    for cluster, jobs, users, first, final, _ in rows:
        name = f"{cluster} (synthetic)" if cluster in synthetic else cluster
        moments = [
            f"{moment:%Y-%m-%d %H:%M}" if moment else "interrupted"
            for moment in (first, final, last.get(cluster))
        ]
        shown.add_row(name, f"{jobs:,}", f"{users:,}", *moments)
    return shown


def _rejects(lake: Lake) -> list[str]:
    from hakaru.engine.duckdb import connect, select_files
    from hakaru.schema import REJECTS
    from hakaru.settings import Engine

    con, rejects = connect(Engine()), select_files(REJECTS, lake.files(REJECTS))
    rows = con.execute(
        "SELECT cluster, reason, count(*), first(file ORDER BY file, line), first(line ORDER BY file, line) "
        f"FROM ({rejects}) GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 20"
    ).fetchall()
    files = con.execute(
        f"SELECT cluster, file FROM ({rejects}) GROUP BY 1, 2 ORDER BY count(*) DESC, 1, 2 LIMIT 5"
    ).fetchall()
    lines = [
        f"rejected in {cluster}: {count:,} × {reason} (first: {file}, line {line})"
        for cluster, reason, count, file, line in rows
    ]
    if not lines:
        return ["no rejects"]
    commands = [f"  {lake.forget_command(cluster, file)}" for cluster, file in files]
    return [
        *lines,
        "if you read the rejected rows from another file, clear them here with:",
        *commands,
    ]
