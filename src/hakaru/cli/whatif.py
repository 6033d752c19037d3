"""`hakaru whatif`: a baseline and variants of it, replayed: who gains, who loses, and how sure that is."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import Data, data_options, open_lake
from hakaru.cli._output import writing
from hakaru.cli._progress import bar_console
from hakaru.cli._selection import (
    check_clusters,
    cluster_option,
    make_selection,
    period_options,
)
from hakaru.cli._simulator import load_kernel, one_cluster, site_of, workload_of
from hakaru.cli._table import emit, page_width
from hakaru.errors import HakaruError
from hakaru.safety.text import one_line

if TYPE_CHECKING:
    from hakaru.analyses import Session
    from hakaru.sim.whatif import Outcome, Scenario

EPILOG = """\b
Examples:
  hakaru whatif --example > scenario.toml
  hakaru whatif scenario.toml --cluster mine -o whatif.html
  hakaru whatif scenario.toml --from log.swf.gz -o whatif.json
  hakaru whatif scenario.toml --on slurm --folder /shared/whatif --slurm partition=short
"""
ENDINGS = (".html", ".htm", ".json", ".md")


@click.command(epilog=EPILOG)
@click.argument("scenario", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--example", is_flag=True, help="Print a scenario with every key, and end.")
@data_options
@cluster_option
@period_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a report: .html, .md or .json.",
)
@click.option(
    "--jobs",
    "num_processes",
    type=click.IntRange(min=1),
    help="Runs at a time, each in its own process; by default one a core, 1 for no other process.",
)
@click.option(
    "--on",
    type=click.Choice(["local", "slurm"]),
    default="local",
    show_default=True,
    help="Play the runs on this machine, or as jobs of the site's Slurm.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --on slurm: a folder that all nodes see; else the current one.",
)
@click.option(
    "--slurm",
    "parameters",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --on slurm: an option for sbatch, e.g. partition=short; repeat for more.",
)
def command(
    scenario: Path | None,
    example: bool,
    data: Data,
    cluster: tuple[str, ...],
    since: str | None,
    until: str | None,
    output: Path | None,
    num_processes: int | None,
    on: str,
    folder: Path | None,
    parameters: tuple[str, ...],
) -> None:
    """Replay a baseline and variants of it: who gains, who loses, by how much.

    SCENARIO is a TOML file; --example prints one. Every change comes with an interval from resampled
    weeks, and nothing is claimed where it includes zero.
    """
    if example:
        _print_example()
        return
    _check(scenario, output, on, folder, parameters)
    assert scenario is not None
    read = _read(scenario)
    where = {"on": on, "num_processes": num_processes, "folder": folder}
    slurm = dict(_pair(text) for text in parameters)
    chosen = make_selection(None, since, until, None, (), cluster)
    from hakaru.analyses import open_session

    with open_lake(data) as lake, open_session(lake, unit=data.unit) as session:
        check_clusters(session, chosen.clusters)
        chosen = one_cluster(session, chosen)
        outcome = _play(session, data, chosen, read, where | {"slurm": slurm})
    _tell(outcome, output, chosen.clusters[0])


def _print_example() -> None:
    from hakaru.sim.whatif import example

    click.echo(example(), nl=False)


def _check(
    scenario: Path | None,
    output: Path | None,
    on: str,
    folder: Path | None,
    parameters: tuple[str, ...],
) -> None:
    if scenario is None:
        raise click.UsageError(
            "which scenario? `hakaru whatif --example > scenario.toml` makes one"
        )
    if output is not None and output.suffix.lower() not in ENDINGS:
        raise HakaruError(f"{output}: cannot tell its format; end it in {', '.join(ENDINGS)}")
    if on != "slurm" and (folder or parameters):
        raise HakaruError("--folder and --slurm go with --on slurm")


def _read(path: Path) -> Scenario:
    from hakaru.sim.whatif import read

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        missing = isinstance(error, FileNotFoundError)
        make = f"; `hakaru whatif --example > {path}` makes one to begin from" if missing else ""
        raise HakaruError(f"{path}: cannot be read: {reason}{make}") from None
    return read(text, str(path))


def _play(
    session: Session, data: Data, chosen: Any, scenario: Scenario, where: dict[str, Any]
) -> Outcome:
    from hakaru.sim import POLICIES
    from hakaru.sim.whatif import run

    site, _ = site_of(session, data, chosen.clusters[0])
    workload = workload_of(session, chosen, site, idle_rules=scenario.idle_rules)
    for policy in dict.fromkeys(plan.policy for plan in scenario.plans):
        load_kernel(POLICIES.get(policy))  # compiled once, before many processes would
    with _progress(len(scenario.plans)) as tell:
        return run(scenario, workload, site, progress=tell, **where)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on a terminal, a line a run elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done, of, name: click.echo(f"{done} of {of} played: {name}", err=True)
        return
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("playing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=bar_console(), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, of, name: bar.update(
            task, completed=done, description=escape(one_line(name))
        )


def _tell(outcome: Outcome, output: Path | None, cluster: str) -> None:
    from hakaru.cli._whatif import lines, markdown

    emit(lines(outcome, page_width()))
    if output is None:
        return
    ending = output.suffix.lower()
    if ending == ".json":
        text = json.dumps(outcome.as_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    elif ending == ".md":
        text = markdown(outcome, cluster)
    else:
        from hakaru.report import whatif_to_html

        text = whatif_to_html(outcome, cluster)
    with writing(output):
        output.write_text(text, encoding="utf-8")
    click.echo(f"wrote {output}", err=True)


def _pair(text: str) -> tuple[str, str | int]:
    key, separator, value = text.partition("=")
    if not separator or not key or not value:
        raise HakaruError(f"--slurm takes KEY=VALUE such as partition=short, found {text!r}")
    return key.replace("-", "_"), int(value) if value.isdigit() else value
