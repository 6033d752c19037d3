"""`hakaru simulate`: replay a log under a policy, on its own machine or another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import Data, open_lake
from hakaru.cli._schedule import Told, format_of, schedule_lines, write_schedule
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
from hakaru.cli._table import Column, emit, page_width, table_lines
from hakaru.errors import HakaruError

if TYPE_CHECKING:
    from hakaru.analyses import Selection, Session
    from hakaru.lake import Lake
    from hakaru.sim import Options, Policy, Workload

EPILOG = """\b
Examples:
  hakaru simulate --from log.swf.gz --processors 100 --policy easy -o schedule.csv
  hakaru simulate --cluster mine --nodes 40x8 --limit user:running-gpus=16
  hakaru simulate --cluster mine --walltime short=6 --walltime long=72,refuse
  hakaru simulate --cluster mine --policy easy-sjbf --into mine-sjbf
  hakaru simulate --cluster mine --replay
  hakaru simulate --policy list
"""
BY = ("queue", "size", "class", "month", "account", "user")


@click.command(epilog=EPILOG)
@replay_options(
    policy="The scheduling policy; `list` shows them.",
    limit="SCOPE[=NAME]:WHAT=N[,queue=QUEUE][,hours=FROM-TO], e.g. user:running-gpus=16.",
)
@click.option(
    "--estimates",
    default="request",
    show_default=True,
    metavar="HOW",
    help="How long a job is thought to run: request, perfect, or scaled:FACTOR.",
)
@click.option(
    "--no-request",
    type=click.Choice(["queue-limit", "run"]),
    help="What a job that asks for no time is taken to ask for: its queue's walltime, else the most "
    "that is asked for there, else its run time; or at once its run time (the default for an SWF).",
)
@click.option(
    "--least-run",
    "least_run_s",
    default=1,
    show_default=True,
    type=click.IntRange(min=0, max=60),
    metavar="SECONDS",
    help="Shortest run time in seconds; 0 keeps run times as recorded.",
)
@click.option(
    "--events",
    type=click.Choice(["one-by-one", "batched"]),
    default="one-by-one",
    show_default=True,
    help="One pass of the scheduler after each event, or after all of a second.",
)
@click.option(
    "--low-queue",
    "low_queues",
    multiple=True,
    metavar="QUEUE",
    help="Its jobs are stopped for others, with --policy preempting.",
)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="NAME=POINTS",
    help="With --policy multifactor: e.g. age=1000, fair_share=500, queue.short=200, qos.high=100.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --policy conservative: how many of those who wait have a reservation.",
)
@click.option(
    "--walltime",
    "walltimes",
    multiple=True,
    metavar="QUEUE=HOURS",
    help="The longest that jobs of a queue may ask for: more is cut there, e.g. short=6, or with "
    "short=6,refuse does not run.",
)
@click.option(
    "--end-idle",
    metavar="HOURS",
    help="End a job whose GPUs all did nothing for this many hours, as samples of them show; "
    "HOURS[,use=SHARE][,gap=MINUTES], e.g. 2,use=0.05.",
)
@click.option("--replay", is_flag=True, help="Compare the simulated waits with the recorded ones.")
@click.option("--by", multiple=True, type=click.Choice(BY), help="Waits of each group too.")
@click.option(
    "--into", metavar="NAME", help="Store the schedule in the workspace, as a cluster of this name."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the schedule: .csv, .parquet or .json.",
)
def command(
    policy_id: str,
    data: Data,
    cluster: tuple[str, ...],
    asked: MachineOptions,
    estimates: str,
    no_request: str | None,
    least_run_s: int,
    events: str,
    limits: tuple[str, ...],
    low_queues: tuple[str, ...],
    weights: tuple[str, ...],
    depth: int | None,
    walltimes: tuple[str, ...],
    end_idle: str | None,
    replay: bool,
    by: tuple[str, ...],
    into: str | None,
    output: Path | None,
    **filters: Any,
) -> None:
    """Replay a log under a policy: when would each job have begun?

    The machine is the cluster's own, as the lake or its settings know it, unless --nodes or --processors
    says otherwise. Shows the waits, the use of the machine, and why jobs waited.
    """
    from hakaru.analyses import open_session
    from hakaru.sim import POLICIES
    from hakaru.sim.store import ALL_COLUMNS, check_name

    if policy_id == "list":
        emit(_policies(page_width()))
        return
    policy = _tuned(POLICIES.get(policy_id), weights, depth)
    rules = _Rules(policy, estimates, events, limits, low_queues, walltimes, end_idle)
    _check(data, into, output, rules)
    selection = make_selection(**filters, cluster=cluster)
    with open_lake(data) as lake, open_session(lake, unit=data.unit) as session:
        check_selection(session, selection)
        run = _Run(lake, session, selection, rules)
        if into is not None:
            check_name(lake, into)  # before anything is played
        columns = ALL_COLUMNS if into is not None else None
        run.play(data, asked, columns, no_request, least_run_s)
        told = run.told("month" in by)
        emit(schedule_lines(told, page_width(), by, run.zone))
        if replay:
            from hakaru.cli._replay import replay_lines

            click.echo()
            emit(replay_lines(told.schedule, run.zone, page_width(), run.site.date_notes))
        if output is not None:
            write_schedule(told, output, run.log_start)
            click.echo(f"wrote {output}", err=True)
        if into is not None:
            run.store(into)


class _Rules:
    """The policy and what holds beside it, as it was asked for."""

    def __init__(
        self,
        policy: Policy,
        estimates: str,
        events: str,
        limits: Sequence[str],
        low_queues: Sequence[str],
        walltimes: Sequence[str],
        end_idle: str | None,
    ) -> None:
        from hakaru.sim import estimates_of
        from hakaru.sim.idle import parse_rule
        from hakaru.sim.notation import parse_limit
        from hakaru.sim.queues import parse_walltime

        self.policy, self.estimates, self.events = policy, estimates, events
        self.estimator = None if estimates == "request" else estimates_of(estimates)
        self.limits = [parse_limit(text) for text in limits]
        self.low_queues = low_queues
        self.walltimes = [parse_walltime(text) for text in walltimes]
        self.idle = [parse_rule(end_idle)] if end_idle is not None else []

    def applied(self, workload: Workload, unit: str) -> tuple[Workload, list[str]]:
        """What they make of the jobs before anything is played, and what is told of it."""
        from hakaru.sim.idle import end_idle
        from hakaru.sim.queues import check_queue, limit_queue

        told = []
        for rule in self.idle:
            workload, note = end_idle(workload, rule, unit)
            told.append(note)
        for name, queue_rule in self.walltimes:
            check_queue(workload, name)
            workload, note = limit_queue(workload, name, queue_rule)
            told.append(note)
        return workload, [note for note in told if note]

    def options(self, zone: str) -> Options:
        from hakaru.sim import Options

        return Options(
            limits=self.limits,
            estimates=self.estimator,
            events=self.events,  # type: ignore[arg-type]
            low_queues=self.low_queues,
            zone=zone,
        )

    def words(self) -> list[str]:
        from hakaru.sim.notation import write_limit, write_weights
        from hakaru.sim.queues import write_walltime

        texts = [
            *write_weights(self.policy),
            f"estimates: {self.estimates}",
            f"events: {self.events}",
        ]
        texts += [f"limit {write_limit(limit)}" for limit in self.limits]
        texts += [write_walltime(*each) for each in self.walltimes]
        texts += [rule.words for rule in self.idle]
        return [*texts, *(f"low queue {name}" for name in self.low_queues)]


class _Run:
    """One simulation of one cluster in a lake."""

    def __init__(self, lake: Lake, session: Session, selection: Selection, rules: _Rules) -> None:
        self.lake, self.session, self.rules = lake, session, rules
        self.selection = one_cluster(session, selection)
        (self.cluster,) = self.selection.clusters
        self.zone = session.settings.cluster(self.cluster).zone
        self.unit = session.unit(self.cluster)
        self.log_start: int | None = None

    def play(
        self,
        data: Data,
        asked: MachineOptions,
        columns: Sequence[str] | None,
        no_request: str | None,
        least_run_s: int,
    ) -> None:
        from hakaru.sim import simulate

        self.site, header = site_of(self.session, data, self.cluster)
        self.log_start = int(header.start_s) if header else None
        workload = workload_of(
            self.session,
            self.selection,
            self.site,
            columns,
            no_request,
            self.rules.idle,
            least_run_s,
        )
        workload, self.applied = self.rules.applied(workload, self.unit)
        self.taken = machine_of(self.site, asked, workload)
        self.machine = self.taken.machine
        load_kernel(self.rules.policy)
        self.schedule = simulate(
            workload, self.machine, self.rules.policy, self.rules.options(self.zone)
        )

    def told(self, names_months: bool = False) -> Told:
        from hakaru.sim.notation import write_machine
        from hakaru.sim.people import fair_share_note

        machine = write_machine(self.machine, self.unit)
        rules = [*self.applied, f"the machine is {self.taken.whence}", *self.taken.notes]
        rules += [", ".join(self.rules.words())]
        note = fair_share_note(self.schedule.workload, self.rules.policy)
        rules += [note] if note else []
        rules += self.site.date_notes if names_months else []
        return Told(self.schedule, self.rules.policy, self.cluster, self.unit, machine, rules)

    def store(self, name: str) -> None:
        from hakaru.sim.notation import counted
        from hakaru.sim.store import store

        told = self.told()
        label = ", ".join(
            [f"{self.cluster} under {told.policy.id}", told.machine, *self.rules.words()]
        )
        num_jobs = store(self.lake, self.schedule, name, self.site, label)
        click.echo(
            f"stored {counted(num_jobs, 'simulated job')} as {name} in {self.lake.workspace}; next: "
            f"hakaru show waits --cluster {name} -w {self.lake.workspace}, or store another policy's "
            "and compare the two (from the record it also differs by the replay's error)",
            err=True,
        )


def _check(data: Data, into: str | None, output: Path | None, rules: _Rules) -> None:
    """Refuse early what cannot be written in the end."""
    if output is not None:
        format_of(output)
    if into is not None and data.logs:
        raise HakaruError(
            "--into stores in a workspace, and --from reads a log without one: "
            "hakaru ingest it first, then simulate its cluster"
        )
    if rules.low_queues and not rules.policy.preempts:
        raise HakaruError("--low-queue has a meaning with --policy preempting only")
    if rules.policy.backfill == "conservative" and rules.limits:
        raise HakaruError(
            f"--limit: {rules.policy.id} gives each job its place on submission and knows no limits; "
            "use an EASY policy, e.g. --policy easy"
        )
    if rules.policy.preempts and not rules.low_queues:
        raise HakaruError("--policy preempting needs a --low-queue whose jobs yield to others")


def _tuned(policy: Policy, weights: Sequence[str], depth: int | None) -> Policy:
    """The policy with the points and the depth that were asked for."""
    from hakaru.sim.notation import parse_weights

    if weights:
        if policy.weights is None:
            raise HakaruError("--weight has a meaning with --policy multifactor only")
        policy = replace(policy, weights=parse_weights(weights, policy.weights))
    if depth is not None:
        if policy.backfill != "conservative":
            raise HakaruError(
                "--depth has a meaning with --policy conservative or conservative-depth only"
            )
        policy = replace(policy, depth=depth)
    return policy


def _policies(width: int) -> Any:
    from hakaru.sim import POLICIES

    columns = [
        Column("policy", [policy.id for policy in POLICIES], right=False),
        Column("what it does", [policy.title for policy in POLICIES], right=False, wraps=True),
        Column("after", [policy.cites for policy in POLICIES], right=False, wraps=True),
    ]
    return table_lines(columns, 1, width)
