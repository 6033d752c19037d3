"""`hakaru advise`: settings for a stated aim, searched by replay, as lines of Slurm's configuration."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import Data, open_lake
from hakaru.cli._output import without_nan, writing
from hakaru.cli._progress import bar_console
from hakaru.cli._selection import check_selection, make_selection
from hakaru.cli._simulator import (
    MachineOptions,
    load_kernel,
    machine_of,
    one_cluster,
    replay_options,
    site_of,
    workload_of,
)
from hakaru.cli._table import emit, page_width
from hakaru.errors import HakaruError
from hakaru.registry import hint

if TYPE_CHECKING:
    from hakaru.analyses import Selection, Session
    from hakaru.sim.advise import Constraints, Effort, Objective
    from hakaru.sim.workload import Workload

EPILOG = """\b
Examples:
  hakaru advise --cluster mine --minimise p95-wait --for "num_pes = 1" --keep utilisation
  hakaru advise --cluster mine --for multi-node --search limits --no-account-loses-more-than 25%
  hakaru advise --from log.swf.gz --processors 100 --minimise mean-bounded-slowdown -o advice.json
"""
CLASSES = ("single-pe", "single-node", "multi-node")
TOLERANCE = 0.01


def part_of(text: str, where: str) -> float:
    """A part of something: 10% or 0.1."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    if not found:
        raise HakaruError(f"{where} {text!r} is not a part: write 10% or 0.1")
    return float(found[1]) / (100 if found[2] else 1)


def _part(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    return None if text is None else part_of(text, param.opts[0])


def _loss(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    return math.inf if text == "any" else _part(ctx, param, text)


def _complete_metrics(ctx: click.Context, param: click.Parameter, start: str) -> list[str]:
    from hakaru.sim.advise import METRICS

    names = [name.removesuffix("_s").replace("_", "-") for name in METRICS]
    return [name for name in names if name.startswith(start)]


@click.command(epilog=EPILOG)
@click.option(
    "--minimise",
    metavar="METRIC",
    shell_complete=_complete_metrics,
    help="What to lower: mean-wait, p95-wait (the default), mean-bounded-slowdown, gini-wait, …",
)
@click.option(
    "--maximise",
    metavar="METRIC",
    shell_complete=_complete_metrics,
    help="What to raise: utilisation.",
)
@click.option(
    "--for",
    "jobs",
    metavar="JOBS",
    help='Whose metric: a condition, e.g. "num_pes = 1", or a class, e.g. multi-node; else all jobs\'.',
)
@click.option(
    "--keep",
    multiple=True,
    metavar="METRIC[:PART]",
    shell_complete=_complete_metrics,
    help="A metric of all jobs that must not get worse by more than a part (1%).",
)
@click.option(
    "--no-account-loses-more-than",
    "account",
    metavar="PART",
    callback=_loss,
    help="In mean wait; 10% by default, `any` for no bound.",
)
@click.option(
    "--no-user-loses-more-than",
    "user",
    metavar="PART",
    callback=_loss,
    help="In mean wait; 10% by default, `any` for no bound.",
)
@click.option(
    "--search",
    "parts",
    default="weights,limits",
    show_default=True,
    metavar="PARTS",
    help="What may change: weights, limits, backfill.",
)
@replay_options(
    policy="What you have: the policy that advice must beat.",
    limit="A limit that you have, e.g. user:running-gpus=16 (see `hakaru simulate`).",
)
@click.option(
    "--trials",
    default=100,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Settings to try.",
)
@click.option(
    "--seconds", type=click.FloatRange(min=0), help="Stop the search after this many seconds."
)
@click.option(
    "--threads", type=click.IntRange(min=1), help="Trials at once; else one for each core."
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="The same seed, the same advice.",
)
@click.option(
    "--search-part",
    default="70%",
    show_default=True,
    metavar="PART",
    callback=_part,
    help="Share of the weeks used for the search; the rest is held out.",
)
@click.option(
    "--months",
    type=click.Choice(["trusted", "plausible", "all"]),
    default="trusted",
    show_default=True,
    help="Whose jobs count: those of months the log can reproduce; all are replayed.",
)
@click.option("--qos", default="normal", show_default=True, help="Slurm's QOS that gets limits.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the advice with its evidence as JSON.",
)
def command(data: Data, asked: MachineOptions, output: Path | None, qos: str, **given: Any) -> None:
    """Search limits and weights for an aim: change them, try them on a part of the machine, or keep yours.

    The first weeks of the log are searched by replay; the weeks after them judge what was found. Lines of
    Slurm's configuration are printed only with the verdict to change: it is better there, by more than chance
    and than the replay's own error, and no user and no account loses more than 10 % in mean wait.
    """
    from hakaru.analyses import open_session
    from hakaru.cli._advice import Told, advice_lines, as_document

    _check(output, qos, given)
    filters = {name: given.pop(name) for name in ("where", "since", "until", "min_run", "states")}
    selection = make_selection(**filters, cluster=given.pop("cluster"))
    with open_lake(data) as lake, open_session(lake, unit=data.unit) as session:
        check_selection(session, selection)
        told: Told = _advised(session, one_cluster(session, selection), data, asked, given)
    told = replace(told, qos=qos)
    emit(advice_lines(told, page_width()))
    if output is not None:
        text = json.dumps(without_nan(as_document(told)), ensure_ascii=False, indent=1)
        with writing(output):
            output.write_text(text + "\n", encoding="utf-8")
        click.echo(f"wrote {output}", err=True)


def _check(output: Path | None, qos: str, given: dict[str, Any]) -> None:
    """Refuse early what cannot be searched or written in the end."""
    from hakaru.sim import POLICIES

    if output is not None and output.suffix.lower() != ".json":
        raise HakaruError(f"{output}: advice is written as JSON; end it in .json")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", qos):
        raise HakaruError(
            f"--qos {qos!r} is no name of a QOS: use letters, digits, '_', '.' and '-'"
        )
    if not 0 < given["search_part"] < 1:
        raise HakaruError(
            f"--search-part is above 0% and below 100%, found {given['search_part']:.0%}: the rest is "
            "held out"
        )
    if POLICIES.get(given["policy_id"]).preempts:
        raise HakaruError(
            f"--policy {given['policy_id']}: which queues yield cannot be said here, nor searched; begin "
            "from easy, fcfs or multifactor"
        )


def _advised(
    session: Session, selection: Selection, data: Data, asked: MachineOptions,
    given: dict[str, Any],
) -> Any:  # fmt: skip
    from hakaru.cli._advice import Told
    from hakaru.sim import POLICIES, Options
    from hakaru.sim.advise import Rule, advise
    from hakaru.sim.notation import parse_limit

    (cluster,) = selection.clusters
    zone = session.settings.cluster(cluster).zone
    baseline = Rule(
        POLICIES.get(given["policy_id"]), tuple(parse_limit(text) for text in given["limits"])
    )
    objective = _objective(session, selection, given)
    constraints = _constraints(given)
    parts = [part.strip() for part in given["parts"].split(",") if part.strip()]
    site, _ = site_of(session, data, cluster)
    workload = workload_of(session, selection, site)
    taken = machine_of(site, asked, workload)
    load_kernel(baseline.policy)
    with _progress(given["trials"], objective) as tell:
        advice = advise(
            workload, taken.machine, baseline, parts, objective, constraints, _effort(given),
            Options(zone=zone), tell, given["months"],
        )  # fmt: skip
    return Told(
        advice,
        cluster,
        site.unit,
        zone,
        taken.machine,
        objective,
        whence="; ".join([taken.whence, *taken.notes]),
        date_notes=site.date_notes,
    )


def _objective(session: Session, selection: Selection, given: dict[str, Any]) -> Objective:
    from hakaru.sim.advise import Objective, metric_of
    from hakaru.sim.advise.case import HIGHER_IS_BETTER

    low, high = given["minimise"], given["maximise"]
    if low and high:
        raise HakaruError("give --minimise or --maximise, not both")
    metric = metric_of(high or low or "p95-wait")
    if (metric in HIGHER_IS_BETTER) != bool(high):
        right = "--minimise" if high else "--maximise"
        raise HakaruError(f"{high or low} is served by {right}: {right} {high or low}")
    text = given["jobs"]
    if text is None:
        return Objective(metric)
    if re.fullmatch(r"[\w-]+", text.strip()) and text.strip() not in CLASSES:
        raise HakaruError(
            f"--for {text!r} is no class of jobs ({hint(text, CLASSES)}); or write a condition such as "
            '"num_pes = 1" or "queue = \'short\'"'
        )
    where = f"parallelism = '{text}'" if text in CLASSES else text
    words = f"{text} jobs" if text in CLASSES else f"jobs with {text}"
    return Objective(metric, _chooser(session, selection, where), words)


def _chooser(session: Session, selection: Selection, where: str) -> Callable[[Workload], Any]:
    """Which jobs of a workload the condition holds for, by their keys in the lake."""
    both = f"({selection.where}) AND ({where})" if selection.where else where
    chosen = session.ask("SELECT job_id, submitted_at FROM jobs", replace(selection, where=both))

    def keys(table: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        moments = table["submitted_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        ids = table["job_id"].cast(pa.string())
        return pc.binary_join_element_wise(ids, moments.cast(pa.string()), "@")

    def choose(workload: Workload) -> Any:
        import numpy as np
        import pyarrow.compute as pc

        return np.asarray(pc.is_in(keys(workload.table), value_set=keys(chosen).combine_chunks()))

    return choose


def _constraints(given: dict[str, Any]) -> Constraints:
    from hakaru.sim.advise import Constraints, metric_of

    keep = {}
    for text in given["keep"]:
        name, _, part = text.partition(":")
        keep[metric_of(name)] = part_of(part, f"--keep {name}:") if part else TOLERANCE
    loses: Any = {kind: given[kind] for kind in ("account", "user") if given[kind] is not None}
    return Constraints(keep, loses)


def _effort(given: dict[str, Any]) -> Effort:
    from hakaru.sim.advise import Effort

    return Effort(
        num_trials=given["trials"],
        seconds=float("inf") if given["seconds"] is None else given["seconds"],
        threads=given["threads"] or (os.cpu_count() or 1),
        seed=given["seed"],
        searched=given["search_part"],
    )


@contextmanager
def _progress(
    num_trials: int, objective: Objective
) -> Iterator[Callable[[int, int, float], None] | None]:
    """A bar of trials with the best so far, on a terminal only."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from hakaru.sim.words import value_text

    if not sys.stderr.isatty():
        yield None
        return
    best = TextColumn("{task.fields[best]}")
    columns: Sequence[Any] = (
        TextColumn("trials"), BarColumn(), MofNCompleteColumn(), best, TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=bar_console(), transient=True) as bar:
        task = bar.add_task("trials", total=num_trials, best="")

        def tell(done: int, total: int, value: float) -> None:
            bar.update(task, completed=done, best=f"best {value_text(objective.metric, value)}")

        yield tell
