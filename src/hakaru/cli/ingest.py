"""`hakaru ingest PATH…`: read logs into the workspace."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakaru.cli._options import (
    DEFAULT_WORKSPACE,
    cluster_name,
    create_lake,
    is_nameless,
    workspace_option,
)
from hakaru.errors import HakaruError, SourceError
from hakaru.safety.text import one_line

if TYPE_CHECKING:
    from hakaru.sources import Summary

TOO_MANY_MISSING = 3


def _complete_formats(ctx: click.Context, param: click.Parameter, start: str) -> list[str]:
    from hakaru.sources._base import load_all

    return [source.id for source in load_all() if source.id.startswith(start)]


def _share(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    from hakaru._values import share

    try:
        return None if value is None else share(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command(
    epilog="""\b
Examples:
  hakaru ingest aaicwl-*.csv.gz --cluster aaic
  hakaru ingest jobs.txt --cluster mine --zone Asia/Tokyo
  sacct … | hakaru ingest - --cluster mine --zone Asia/Tokyo
  hakaru ingest log.swf --cluster old --start 2014-03-01
  hakaru ingest jobs.txt --cluster mine --fields JobID,State,Submit,Start,End

README.md has the whole sacct command."""
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--cluster", help="Name of the cluster; else it is taken from the files' names.")
@click.option(
    "--format", shell_complete=_complete_formats, help="The logs' format, if it is not recognised."
)
@click.option(
    "--mapping", type=click.Path(path_type=Path, dir_okay=False), help="TOML for --format table."
)
@click.option(
    "--guess", is_flag=True, help="Propose a mapping for --format table, and read nothing."
)
@click.option(
    "--zone",
    help="The site's time zone, e.g. Asia/Tokyo: of times without an offset, and of hours and weekdays.",
)
@click.option("--start", help="First day of a log with relative dates, e.g. 2014-03-01.")
@click.option("--fields", help="Fields of sacct -n, which has no header: JobID,User,State,…")
@click.option(
    "--strict", is_flag=True, help="Stop at the first bad row or conflict, and store nothing."
)
@click.option(
    "--max-missing",
    metavar="SHARE",
    callback=_share,
    help="Share of rows that may be missing, e.g. 5%; above it ingest ends with code 3. Else "
    "ingest.max_missing of hakaru.toml, or 1%.",
)
@workspace_option
def command(
    paths: tuple[Path, ...],
    cluster: str | None,
    format: str | None,
    mapping: Path | None,
    guess: bool,
    zone: str | None,
    start: str | None,
    fields: str | None,
    strict: bool,
    max_missing: float | None,
    workspace: Path,
) -> None:
    """Read job logs into the workspace; the same rows twice change nothing.

    The format is recognised from the file (aaic, swf, sacct, table); - reads standard input.

    Exit codes: 0 all is well, 1 an error and nothing stored, 2 a wrong option, 3 stored, but more rows
    are missing (rejected, or in conflict inside the input) than --max-missing allows.
    """
    from hakaru.cli._progress import ingest_with_progress

    if guess:
        _print_guess(paths, cluster, workspace, zone)
        return
    if cluster is None and any(is_nameless(path) for path in paths):
        raise HakaruError("a pipe has no name that could be the cluster's: add --cluster NAME")
    try:
        summary = ingest_with_progress(
            create_lake(workspace),
            paths,
            cluster_name(paths) if cluster is None else cluster,
            format=format,
            options={"mapping": mapping, "zone": zone, "start": start, "fields": fields},
            strict=strict,
            max_missing=max_missing,
        )
    except SourceError as error:
        raise SourceError(_with_given(str(error), cluster, workspace, zone)) from None
    print_summary(summary, workspace)
    if summary.missing is not None:
        click.get_current_context().exit(TOO_MANY_MISSING)


def _with_given(text: str, cluster: str | None, workspace: Path, zone: str | None) -> str:
    """A message whose commands have the --cluster, --zone and workspace that this one was given."""
    from hakaru.sources import IN_ZONE

    if zone:
        text = text.replace(IN_ZONE, f" --zone {shlex.quote(zone)}")
    given = f"--cluster {cluster or 'NAME'}"
    if workspace != Path(DEFAULT_WORKSPACE):
        given += f" -w {shlex.quote(str(workspace))}"
    return text.replace("--cluster NAME", given)


def missing_line(summary: Summary) -> str | None:
    """What an ingest lacks, and why, where more rows were rejected or dropped than may be."""
    if summary.missing is None:
        return None
    why = " and ".join(_why_missing(summary))
    lacks = f"every figure of {summary.cluster} lacks them"
    return one_line(f"{summary.missing:.1%} of the rows are missing: {why}; {lacks}")


def _why_missing(summary: Summary) -> Iterator[str]:
    if summary.num_rejected:
        (reason, count), *others = summary.rejected_by_reason.items()
        more = f" and {len(others)} other reasons" if len(others) > 1 else " and another reason"
        verb = "was" if summary.num_rejected == 1 else "were"
        counts = f"{summary.num_rejected:,} of {summary.num_read:,} {verb} rejected"
        yield f"{counts} ({count:,} × {reason}{more if others else ''})"
    if dropped := summary.upsert.num_dropped:
        verb = (
            "contradicts another row of its job"
            if dropped == 1
            else "contradict another row of their job"
        )
        yield f"{dropped:,} of {summary.num_read:,} {verb}"


def print_summary(summary: Summary, workspace: Path) -> None:
    from hakaru.lake import Lake

    upsert = summary.upsert
    if missing := missing_line(summary):
        click.secho(missing, fg="yellow")
    click.echo(
        f"{summary.cluster}: read {summary.num_read:,} from {_count(summary.num_files, 'file')} "
        f"({', '.join(summary.sources)}) in {summary.seconds:.1f} s"
    )
    conflicts = f"in conflict {upsert.num_conflicts:,}, " if upsert.num_conflicts else ""
    click.echo(
        f"  new {upsert.num_new:,}, updated {upsert.num_updated:,}, unchanged {upsert.num_unchanged:,}, "
        f"repeated {upsert.num_repeated:,}, {conflicts}rejected {summary.num_rejected:,}"
    )
    for reason, count in summary.rejected_by_reason.items():
        click.echo(f"    {count:,} × {one_line(reason)}")
    for file, line, reason in summary.first_rejects:
        click.echo(one_line(f"    {file}, line {line}: {reason}"))
    if summary.since and summary.until:
        gpus = f", up to {_count(summary.num_gpus, 'GPU')} a job" if summary.num_gpus else ""
        since, until = (each.astimezone(summary.zone) for each in (summary.since, summary.until))
        click.echo(
            f"  submitted {since:%Y-%m-%d} to {until:%Y-%m-%d} ({summary.zone.key}), "
            f"{_users(summary.num_users)}{gpus}"
        )
        if summary.users_note:
            click.echo(f"  {summary.users_note}")
    for warning in summary.warnings:
        click.secho(f"  warning: {warning}", fg="yellow")
    if summary.missing is not None and summary.first_rejects:
        click.echo("  if you read the rejected rows from another file, clear them here with:")
        for file in dict.fromkeys(file for file, _, _ in summary.first_rejects):
            click.echo(f"      {Lake(workspace).forget_command(summary.cluster, file)}")
    click.echo(
        f"  workspace {workspace}; next: hakaru show {_to_show(summary)} --cluster {summary.cluster} "
        f"-w {shlex.quote(str(workspace))}"
    )


def _to_show(summary: Summary) -> str:
    """An analysis that has something to show of this log."""
    if summary.has_run_times:
        return "walltime"
    return "states" if summary.has_states else "jobs-by-quarter"


def _users(number: int) -> str:
    return _count(number, "user") if number else "the log names no users"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _print_guess(
    paths: tuple[Path, ...], cluster: str | None, workspace: Path, zone: str | None
) -> None:
    from hakaru.sources.ingest import guess_mapping

    click.echo(_with_given(guess_mapping(paths[0]), cluster, workspace, zone))
