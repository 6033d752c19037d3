"""A run from its plan to its record: launch workers, gather what they left, repeat suspects, judge."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hakaru.errors import MissingExtraError
from hakaru.measure import journal, place
from hakaru.measure._base import BENCHMARKS
from hakaru.measure.baseline import item_of
from hakaru.measure.collect import (
    Gathered,
    gather,
    has_failed,
    measurements,
    unmeasured,
)
from hakaru.measure.collective._judge import judge_links
from hakaru.measure.context import EXTRA
from hakaru.measure.fleet import FIRST_REPETITIONS
from hakaru.measure.job import Job, Plan, slurm_gpus
from hakaru.measure.judge import by_its_record, judge_devices, wanted_again
from hakaru.measure.launch import LAUNCHERS, Launcher, Layout
from hakaru.measure.meter import Meter, meter_at
from hakaru.measure.protocol import Rule, correlation_of
from hakaru.measure.record import Measurement, Run
from hakaru.measure.task import Item, Task, journal_of
from hakaru.measure.verdict import Verdict

START_S = 4.0  # what starting the workers costs
LEAST_ITEM_S = 0.15
MOST_CPU_RANKS = 16
LOOK_EVERY_S = 1.0
MOST_ROUNDS = 8
TIMES_LATE = 4.0
# families that take two ranks or more, by what a run without them says
TOGETHER = {
    "collective": "Collectives: they need two ranks or more",
    "training": "Training over ranks: it needs two ranks or more",
}
NOT_PLANNED = (
    "the ranks have GPUs, and sizes and ranks were chosen for processors: add --device cuda, and "
    "--ranks-per-host with the number of GPUs of a host"
)
SOAK_S, QUICK_SOAK_S = 10.0, 1.0
Progress = Callable[[float, str], None]
LeftOut = dict[str, set[str]]  # what was left out and why, and the items that it is about


def measure(
    job: Job,
    launcher: Launcher | None = None,
    progress: Progress = lambda share, text: None,
    tested: Mapping[str, Meter] | None = None,
) -> Run:
    """Measure what the plan says, and judge it; nothing is stored. `tested` has the meter of each host."""
    plan = job.plan
    chosen = launcher or _launcher(plan)
    clock = _Clock(progress, plan)
    found: list[Measurement] = []
    left_out: LeftOut = {}
    with job.locked():
        for family in plan.families:
            items = plan.items(family)
            scope = BENCHMARKS.get(items[0].benchmark).scope
            if scope == "machine":
                for item in items:
                    found += _measure_machine(item, job, clock)
                continue
            if lacking := _lacking(items, chosen):
                found += [unmeasured(each, lacking) for each in items]
            elif scope == "device":
                found += _measure_devices(job, chosen, clock, left_out)
            elif family in TOGETHER and _is_one_card(plan):
                left_out[TOGETHER[family]] = set()
                continue
            else:
                found += judge_links(_measure_ranks(family, job, chosen, clock, left_out))
            found += _forgotten(items, found, left_out)
    found = _of_one_version(found)
    return Run(
        job.id,
        job.cluster,
        job.started_at,
        tuple(meter_at(each.host, tested or {}).applied(each) for each in found),
        label=plan.label,
        left_out=tuple(left_out),
    )


def _of_one_version(found: Sequence[Measurement]) -> list[Measurement]:
    """Fail what was measured on hosts whose versions changed during the run, as before a resume."""
    seen: dict[str, dict[str, Any]] = {}
    changed: dict[str, str] = {}
    for each in found:
        host, versions = str(each.place.get("host")), each.place.get("versions") or {}
        known = seen.setdefault(host, dict(versions))
        for name in known.keys() & versions.keys():
            if known[name] != versions[name]:
                text = f"{name} changed from {known[name]} to {versions[name]} during the run; measure anew"
                changed.setdefault(host, text)
        known.update(versions)
    return [
        each.judged(Verdict.FAILED, changed[host])
        if (host := str(each.place.get("host"))) in changed and each.samples
        else each
        for each in found
    ]


def _forgotten(
    items: Sequence[Item], found: Sequence[Measurement], left_out: LeftOut
) -> list[Measurement]:
    """Items that no device measured: all but those left out for a reason, of which some are measured."""
    reasons = {item: text for text, ids in left_out.items() for item in ids}
    measured = {each.benchmark for each in found}
    lacking = [
        each
        for each in items
        if not any(have.benchmark == each.benchmark and _is_of(each, have) for have in found)
        and (each.id not in reasons or each.benchmark not in measured)
    ]
    nothing = "no device measured it; check --device and --hosts"
    return [unmeasured(each, reasons.get(each.id, nothing)) for each in lacking]


def _is_of(item: Item, each: Measurement) -> bool:
    """Whether a result is of the item: a part has other parameters, and knows what was asked for."""
    asked = item_of(each)
    if asked is not None:
        return asked == item.parameters
    return item.parameters.items() <= each.parameters.items()


def _launcher(plan: Plan) -> Launcher:
    from hakaru.measure.launch import load_all

    load_all()
    found = LAUNCHERS.get(plan.launcher)
    return replace(found, parameters=plan.launcher_options) if plan.launcher_options else found  # type: ignore[type-var]


def _measure_devices(
    job: Job, launcher: Launcher, clock: _Clock, left_out: LeftOut
) -> list[Measurement]:
    """On one node the worker decides when its devices are known; on several, this does, in rounds."""
    plan = job.plan
    layout = Layout(plan.hosts, 1, plan.num_hosts)
    items = plan.items("device")
    # cores and NUMA nodes take turns, each with the library to load
    seconds = max(plan.budget_of("device") - 2 * START_S, len(items) * LEAST_ITEM_S)
    several = layout.num_ranks > 1
    if several:
        items = [replace(each, repetitions=FIRST_REPETITIONS) for each in items]
    rule = _rule(plan, seconds / (2 * len(items)))
    task = Task("device", tuple(items), plan.devices, rule, plan.limits)
    gathered = _launch(job, "device", task, launcher, layout, clock)
    # half for the rounds, however long the first launch took to start
    until_s = clock.running_s + seconds / 2
    _note_left_out(gathered, left_out)
    found = measurements(task, gathered)
    if several:
        found = _in_rounds(job, launcher, task, found, _given_names(plan, gathered), until_s, clock)
    return judge_devices(found, plan.limits)


def _in_rounds(
    job: Job,
    launcher: Launcher,
    task: Task,
    found: list[Measurement],
    names: Mapping[str, str],
    until_s: float,
    clock: _Clock,
) -> list[Measurement]:
    """Measure the suspects again, a sitting a round, until all are decided or time is over."""
    for number in range(2, MOST_ROUNDS + 1):
        wanted = wanted_again(found, job.plan.limits)
        folder = f"device-{number}"
        # a round that was begun before the run was interrupted is finished in any case
        if not wanted or (clock.running_s >= until_s and not (job.folder / folder).exists()):
            return found
        again = replace(task, items=_items_again(task, wanted), devices=())
        hosts = tuple(dict.fromkeys(names.get(each.host, each.host) for each, _ in wanted))
        named = bool(job.plan.hosts) or launcher.id == "slurm"
        layout = Layout(hosts if named else (), 1, len(hosts) if named else job.plan.num_hosts)
        found = _with_more(
            found, measurements(again, _launch(job, folder, again, launcher, layout, clock))
        )
    return found


def _items_again(task: Task, wanted: Sequence[tuple[Measurement, int]]) -> tuple[Item, ...]:
    """The items that somebody is suspected in, with the suspects and the repetitions that they need."""
    items = []
    for item in task.items:
        own = [
            (f"{each.host}/{each.device}", more)
            for each, more in wanted
            if each.benchmark == item.benchmark and each.parameters == item.parameters
        ]
        if own:
            most = max(more for _, more in own)
            items.append(replace(item, repetitions=most, devices=tuple(dict(own))))
    return tuple(items)


def _given_names(plan: Plan, gathered: Gathered) -> dict[str, str]:
    """How the hosts were called by the person who named them, by what they call themselves."""
    if not plan.hosts:
        return {}
    return {
        str(each["place"]["host"]): plan.hosts[rank]
        for rank, each in gathered.begun.items()
        if rank < len(plan.hosts)
    }


def _with_more(first: Sequence[Measurement], more: Sequence[Measurement]) -> list[Measurement]:
    """The repetitions of both rounds; what failed in the second, or is new there, stands by itself."""
    second = {(each.subject, each.host, each.device): each for each in more}
    joined = []
    for each in first:
        other = second.pop((each.subject, each.host, each.device), None)
        if other is None:
            joined.append(each)
        elif other.verdict is not Verdict.GOOD:
            joined.append(other)
        else:
            samples = (*each.samples, *other.samples)
            changed = next(iter(place.differences({1: each.place, 2: other.place}, "rounds")), None)
            if changed:
                joined.append(each.judged(Verdict.FAILED, f"{changed[1]}; measure anew"))
                continue
            is_worse = by_its_record(other).verdict is not Verdict.GOOD
            joined.append(
                replace(
                    each,
                    samples=samples,
                    correlation=correlation_of(samples),
                    validity=other.validity if is_worse else each.validity,
                )
            )
    return [*joined, *second.values()]


def _measure_ranks(
    family: str, job: Job, launcher: Launcher, clock: _Clock, left_out: LeftOut
) -> list[Measurement]:
    plan = job.plan
    layout = _layout_of_ranks(plan, family)
    items = plan.items(family)
    seconds = max(plan.budget_of(family) - START_S, len(items) * LEAST_ITEM_S)
    rule = _rule(plan, seconds / len(items))
    rule = replace(rule, block_s=2 * rule.block_s)  # beside which the talk between ranks is short
    task = Task("ranks", tuple(items), plan.devices, rule)
    gathered = _launch(job, family, task, launcher, layout, clock)
    _note_left_out(gathered, left_out)
    found = measurements(task, gathered)
    devices = [device for each in gathered.begun.values() for device in each["devices"]]
    if plan.on_gpu or not any(str(device["id"]).startswith("cuda") for device in devices):
        return found
    return [
        each.judged(Verdict.NOT_MEASURED, NOT_PLANNED) if each.verdict is Verdict.GOOD else each
        for each in found
    ]


def _is_one_card(plan: Plan) -> bool:
    """Whether there is one card alone, and nobody asked by name for what takes two."""
    return plan.on_gpu and not plan.names and _layout_of_ranks(plan, "collective").num_ranks < 2


def _layout_of_ranks(plan: Plan, family: str) -> Layout:
    """One rank for each GPU; without GPUs a few for the cores, and one where loaders need the cores."""
    is_alone = family == "storage" and not (plan.on_gpu or plan.ranks_per_host)
    return Layout(plan.hosts, 1 if is_alone else _ranks_per_host(plan), plan.num_hosts)


def _lacking(items: Sequence[Item], launcher: Launcher) -> str | None:
    """What this machine lacks, with the command that installs it; other machines say so themselves."""
    needs = {need for each in items for need in BENCHMARKS.get(each.benchmark).needs}
    if launcher.id == "local" and "torch" in needs and find_spec("torch") is None:
        return str(MissingExtraError("torch", EXTRA))
    return None


def _measure_machine(item: Item, job: Job, clock: _Clock) -> list[Measurement]:
    """A benchmark that starts its own processes, in a folder from which it resumes by itself."""
    benchmark = BENCHMARKS.get(item.benchmark)
    folder = job.folder / benchmark.id
    folder.mkdir(exist_ok=True)
    family = benchmark.family
    clock.begin(family, benchmark.title)
    budget_s = job.plan.budget_of(family) / len(job.plan.items(family))
    found = benchmark.prepare(folder, job.plan, budget_s, clock.inside, **item.parameters)
    assert isinstance(found, list)
    clock.end()
    return found


def _launch(
    job: Job, name: str, task: Task, launcher: Launcher, layout: Layout, clock: _Clock
) -> Gathered:
    """Launch what is not done yet; each attempt has a folder of its own, and all of them count together."""
    launcher.check(layout)
    clock.begin(BENCHMARKS.get(task.items[0].benchmark).family, name)
    earlier = [
        gather(folder, layout.num_ranks, ["interrupted"]) for folder in _attempts(job.folder / name)
    ]
    layout = _pinned(layout, launcher, earlier)
    done = {item for each in earlier for item in each.done}
    todo = replace(task, items=tuple(each for each in task.items if each.id not in done))
    folder = job.folder / name / str(len(earlier) + 1)
    latest = Gathered()
    if todo.items:
        path = todo.write(folder)
        limit = job.plan.timeout_s or TIMES_LATE * job.plan.budget_s + 120
        count = len(todo.items)
        looked = -math.inf

        def watch() -> None:
            nonlocal looked
            if time.monotonic() - looked < LOOK_EVERY_S:  # reading takes time of what is measured
                return
            looked = time.monotonic()
            entries, _ = journal.read(journal_of(folder, 0))
            seen = [each for each in entries if each["kind"] in ("result", "left-out")]
            last = f"{seen[-1]['benchmark']}" if seen else name
            clock.inside(len({each["item"] for each in seen}) / count, last)

        latest = gather(folder, layout.num_ranks, launcher.run(path, layout, limit, watch))
    clock.end()
    return _joined(earlier, latest)


def _attempts(folder: Path) -> list[Path]:
    return sorted((each for each in folder.glob("*") if each.name.isdigit()),
                  key=lambda path: int(path.name))  # fmt: skip


def _pinned(layout: Layout, launcher: Launcher, earlier: Sequence[Gathered]) -> Layout:
    """A resumed Slurm job asks for the nodes that it had, so that each of them gets all of its items."""
    if launcher.id != "slurm" or layout.hosts or not earlier:
        return layout
    begun = earlier[-1].begun
    hosts = dict.fromkeys(str(begun[rank]["place"]["host"]) for rank in sorted(begun))
    return replace(layout, hosts=tuple(hosts)) if len(hosts) == layout.num_hosts else layout


def _joined(earlier: Sequence[Gathered], latest: Gathered) -> Gathered:
    """Each item from the first attempt that has it whole; what failed in any attempt has failed."""
    taken: set[str] = set()
    for each in earlier:
        new = each.done - taken
        if new:
            _compare_versions(each, latest)
        latest.results += [e for e in each.results if e["item"] in new or has_failed(e)]
        latest.left_out += [e for e in each.left_out if e["item"] in new]
        latest.begun = (
            each.begun | latest.begun
        )  # that an earlier attempt broke off is no problem now
        taken |= new
    return latest


def _compare_versions(earlier: Gathered, latest: Gathered) -> None:
    """What was measured before an upgrade does not stand beside what was measured after it."""
    for rank in earlier.begun.keys() & latest.begun.keys():
        places = {at: each.begun[rank]["place"] for at, each in enumerate((earlier, latest))}
        for _, text in place.differences(places, "attempts"):
            latest.add_problem(rank, f"{text}; measure anew")


def _rule(plan: Plan, item_s: float) -> Rule:
    if plan.quick:
        return Rule(budget_s=item_s, most=400, block_s=0.02, width=0.02, soak_s=QUICK_SOAK_S)
    return Rule(budget_s=item_s, most=400, block_s=0.05, width=0.01, soak_s=SOAK_S)


def _ranks_per_host(plan: Plan) -> int:
    """One for each GPU that Slurm gives or this machine has; else a few for its cores, or one a host."""
    if plan.ranks_per_host:
        return plan.ranks_per_host
    if plan.launcher == "slurm":
        return slurm_gpus(plan.launcher_options) or 1
    from hakaru.measure.devices import cores, find_devices

    num_gpus = sum(each.kind == "gpu" for each in find_devices(plan.devices))
    few = 1 if plan.num_hosts > 1 else min(max(2, len(cores())), MOST_CPU_RANKS)
    return num_gpus or few


def _note_left_out(gathered: Gathered, left_out: LeftOut) -> None:
    for each in gathered.left_out:
        text = f"{BENCHMARKS.get(each['benchmark']).title}: {each['reason']}"
        left_out.setdefault(text, set()).add(each["item"])


class _Clock:
    """How far the run is: each family counts by its share of the budget."""

    def __init__(self, progress: Progress, plan: Plan) -> None:
        self.progress, self.plan = progress, plan
        self.done, self.now = 0.0, 0.0
        self.running_s = 0.0  # of what was launched, without the time in a queue
        self.since: float | None = None

    def begin(self, family: str, text: str) -> None:
        self.now = self.plan.budget_of(family) / self.plan.budget_s
        self.since = None
        self.progress(self.done, text)

    def inside(self, share: float, text: str) -> None:
        self.since = self.since or time.monotonic()
        self.progress(min(1.0, self.done + self.now * share), text)

    def end(self) -> None:
        self.done = min(1.0, self.done + self.now)
        self.now = 0.0
        self.running_s += time.monotonic() - self.since if self.since is not None else 0.0
