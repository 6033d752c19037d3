"""A scenario and a log give what is to be played: a workload, a machine, a policy and options each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from hakaru.errors import HakaruError
from hakaru.registry import listed
from hakaru.sim.idle import end_idle
from hakaru.sim.machine import Machine, Outage, UnknownSize
from hakaru.sim.notation import NAMED, counted
from hakaru.sim.people import fair_share_note
from hakaru.sim.policies import POLICIES, Policy
from hakaru.sim.queues import limit_queue
from hakaru.sim.run import Options
from hakaru.sim.site import MachineSpec, Site, Taken
from hakaru.sim.whatif import changes
from hakaru.sim.whatif._check import Checker
from hakaru.sim.whatif.scenario import MACHINE, Failure, Plan, Scenario
from hakaru.sim.workload import Workload, estimates_of

if TYPE_CHECKING:
    from hakaru.sim.limits import Limit

MOST_NAMED = 4  # nodes of which a note tells the names
IN_SCENARIO = (
    "Add to the scenario under [machine]: nodes = 38 and size = 8, with your numbers, or processors = 304 "
    "for one pool"
)
ORIGIN = "origin"  # a column of the table: which job of the log it is, of copies too


@dataclass(frozen=True)
class Recipe:
    """Policy and options in plain data, so that another process can make them anew."""

    policy: str
    weights: Mapping[str, Any]
    limits: tuple[Limit, ...]
    estimates: str
    events: Any
    low_queues: tuple[str, ...]
    zone: str

    def make(self) -> tuple[Policy, Options]:
        policy = POLICIES.get(self.policy)
        if policy.weights and self.weights:
            policy = replace(policy, weights=replace(policy.weights, **self.weights))
        estimates = None if self.estimates == "request" else estimates_of(self.estimates)
        options = Options(self.limits, estimates, self.events, self.low_queues, self.zone)
        return policy, options


@dataclass(frozen=True)
class Prepared:
    """One run, ready to be played; `notes` say what was changed.

    `asked` says of each job of the log whether its user is there to submit it; users from `num_users` on
    are copies. `taken` is the machine with where it is from.
    """

    name: str
    workload: Workload
    machine: Machine
    recipe: Recipe
    notes: tuple[str, ...]
    asked: Any
    num_users: int
    taken: Taken

    @property
    def policy(self) -> Policy:
        return self.recipe.make()[0]

    @property
    def options(self) -> Options:
        return self.recipe.make()[1]


def prepare(
    scenario: Scenario,
    workload: Workload,
    site: Site | None = None,
) -> list[Prepared]:
    """The baseline first, then the variants; names that no job has are told all at once."""
    site = site or Site()
    checker = Checker()
    for plan in scenario.plans:
        _check_names(checker, plan, workload)
    checker.done("the scenario")
    workload = _numbered(workload)
    return [_named(scenario, plan, workload, site) for plan in scenario.plans]


def _named(scenario: Scenario, plan: Plan, workload: Workload, site: Site) -> Prepared:
    """What cannot be prepared is told with the name of the run."""
    try:
        return _prepared(scenario, plan, workload, site)
    except HakaruError as error:
        raise HakaruError(f"“{plan.name}”: {error}") from None


def _prepared(scenario: Scenario, plan: Plan, workload: Workload, site: Site) -> Prepared:
    cluster = site.cluster
    taken, notes = _machine(scenario, plan, site, workload)
    loaded, note = _loaded(plan, workload, scenario.seed)
    changed, more = _jobs(plan, loaded, site, scenario.seed)
    asked = np.zeros(len(workload), bool)
    asked[loaded.table[ORIGIN].to_numpy()] = True
    recipe = Recipe(
        plan.policy,
        dict(plan.weights),
        plan.limits,
        plan.estimates,
        plan.events,
        plan.low_queues,
        cluster.zone,
    )
    about_shares = fair_share_note(changed, recipe.make()[0])
    told = tuple(each for each in [*notes, note, *more, about_shares] if each)
    users = len(workload.names["user"])
    return Prepared(plan.name, changed, taken.machine, recipe, told, asked, users, taken)


def _loaded(plan: Plan, workload: Workload, seed: int) -> tuple[Workload, str]:
    return (workload, "") if plan.load is None else changes.grow_load(workload, plan.load, seed)


def _jobs(plan: Plan, workload: Workload, site: Site, seed: int) -> tuple[Workload, list[str]]:
    """After the load, in this order: idle jobs, requests, then what the queues make of the requests."""
    notes = []
    if plan.end_idle_after_h is not None:
        workload, note = end_idle(workload, plan.end_idle_after_h, site.unit)
        notes.append(note)
    if plan.accurate_requests is not None:
        workload, note = changes.make_accurate(workload, plan.accurate_requests, seed)
        notes.append(note)
    if plan.scale_requests is not None:
        workload, note = changes.scale_requests(workload, plan.scale_requests)
        notes.append(note)
    queues = site.cluster.queues
    for name, rule in plan.queues.items():
        points = plan.weights.get("queue", {})
        if changes.matters(name, points, plan.limits, plan.low_queues):
            workload, note = changes.widen_queue(workload, name, rule, queues.get(name))
        else:
            note = (
                f"queue {name} has no points, no limit and does not yield: the scheduler would not tell "
                "it from others, so no job moves to it"
            )
        workload, more = limit_queue(workload, name, rule)
        notes += [note, more]
    return workload, notes


def _machine(
    scenario: Scenario, plan: Plan, site: Site, workload: Workload
) -> tuple[Taken, list[str]]:
    said = _overlaid(scenario.machine, plan.machine)
    if said.processors is None:
        # one kind of machine for all, or a variant would differ by more than it says
        said = replace(said, on_nodes=any(map(_speaks_of_nodes, scenario.plans)))
    taken = _built(said, site, workload)
    machine = taken.machine
    is_other = plan is not scenario.baseline and plan.machine.is_said
    notes = list(taken.notes) if is_other else []  # the baseline's are told once, for all
    if plan.nodes:
        # a pool that was asked for has no nodes; one that stands for nodes knows how large they are
        size = None if said.processors else site.size
        machine, note = _resized(machine, plan.nodes, size, workload)
        notes.append(note)
    if plan.failures:
        machine, note = _failing(machine, plan.failures, site.cluster.zone)
        notes.append(note)
    return replace(taken, machine=machine), notes


def _speaks_of_nodes(plan: Plan) -> bool:
    return bool(plan.failures) or plan.machine.speaks_of_nodes


def _overlaid(base: MachineSpec, top: MachineSpec) -> MachineSpec:
    """What the plan says of the machine goes before; a pool and nodes take each other's place."""
    said = {key: value for key in MACHINE if (value := getattr(top, key)) is not None}
    if "processors" in said:
        base = MachineSpec()
    elif {"nodes", "size"} & set(said):
        base = replace(base, processors=None)
    return replace(base, **said)


def _built(said: MachineSpec, site: Site, workload: Workload) -> Taken:
    if said.locality in ("preferred", "required") and said.switch_size is None:
        raise HakaruError(
            f'machine: locality = "{said.locality}" needs to know the switches: add switch_size, the '
            "number of nodes under each"
        )
    try:
        return site.machine(said, workload)
    except UnknownSize as error:
        raise error.with_way(IN_SCENARIO) from None


def _resized(
    machine: Machine, change: int, size: int | None, workload: Workload
) -> tuple[Machine, str]:
    """Nodes like the last ones at the end, from the beginning on; or without some."""
    word, names = "added" if change > 0 else "removed", ""
    number = "1 node" if abs(change) == 1 else f"{abs(change)} nodes"
    if machine.is_flat:
        pool = _resized_pool(machine, change, size)
        told = f"{number} of {size} {word}: {pool.num_pes} instead of {machine.num_pes}"
        return pool, told
    if change > 0:
        resized = _with_more(machine, change)
    else:
        gone = _longest_there(machine, -change, workload)
        resized = machine.without(gone)
        names = f" ({listed(gone, MOST_NAMED)})" if machine.names else ""
    told = f"{number} {word}{names}: {resized.num_nodes} instead of {machine.num_nodes}"
    return resized, told


def _with_more(machine: Machine, number: int) -> Machine:
    *others, last = machine.groups
    more = tuple(f"added-{each}" for each in range(1, number + 1))
    groups = (*others, replace(last, count=last.count + number))
    return replace(machine, groups=groups, names=(*machine.names, *more) if machine.names else ())


def _longest_there(machine: Machine, number: int, workload: Workload) -> list[str]:
    """So many nodes, those that take jobs for most of the log: without one that had left, or is still to
    come, nothing would change. Of equals the first; one that was rebuilt is one node."""
    seconds: dict[str, int] = {}
    times = machine.seconds_up(int(workload.submit.min()), int(workload.submit.max()) + 1)
    for name, time in zip(machine.node_names, times.tolist(), strict=True):
        seconds[name] = seconds.get(name, 0) + time
    if number >= len(seconds):
        raise HakaruError(
            f"nodes = {-number} takes {number:,} of {len(seconds):,} nodes away: leave at least one, "
            f"e.g. nodes = -{max(len(seconds) // 4, 1)}"
        )
    return sorted(seconds, key=lambda name: -seconds[name])[:number]


def _resized_pool(machine: Machine, change: int, size: int | None) -> Machine:
    if not size:
        raise HakaruError(
            "nodes are added to a machine of nodes; this one is a pool: use machine = { processors = … }"
        )
    processors = machine.num_pes + change * size
    if processors < 1:
        raise HakaruError(
            f"nodes = {change}: the pool has only {machine.num_pes // size} nodes of {size}"
        )
    return Machine.flat(processors)


def _failing(machine: Machine, failures: tuple[Failure, ...], zone: str) -> tuple[Machine, str]:
    """The first nodes that are up then fail; they are up again after so many hours."""
    made, lines = [], []
    for failure in failures:
        if failure.nodes > machine.num_nodes:
            raise HakaruError(
                f"failures: {failure.nodes} nodes fail, but there are only {machine.num_nodes}"
            )
        clock = ZoneInfo(zone)
        at = failure.at.astimezone(clock) if failure.at.tzinfo else failure.at.replace(tzinfo=clock)
        begin = int(at.timestamp())
        end = begin + round(failure.hours * 3600)
        kind: Any = failure.kind
        order = np.argsort(-machine.seconds_up(begin, begin + 1), kind="stable")
        made += [Outage(node, begin, end, kind) for node in order[: failure.nodes].tolist()]
        lines.append(
            f"{counted(failure.nodes, 'node')} {kind} from {at:%Y-%m-%d %H:%M} for {failure.hours:g} h"
        )
    return machine.with_outages(made), "; ".join(lines)


def _numbered(workload: Workload) -> Workload:
    import pyarrow as pa

    if ORIGIN in workload.table.column_names:
        return workload
    numbers = pa.array(np.arange(len(workload)), pa.int64())
    return replace(workload, table=workload.table.append_column(ORIGIN, numbers))


def _check_names(checker: Checker, plan: Plan, workload: Workload) -> None:
    queues = workload.names["queue"]
    for number, limit in enumerate(plan.limits, 1):
        where = f"{plan.name}.limits[{number}]"
        if limit.queue is not None:
            checker.name(limit.queue, queues, f"{where}.queue")
        if limit.only is not None and limit.scope != "all":
            checker.name(limit.only, workload.names[limit.scope], f"{where}.only")
    for name, rule in plan.queues.items():
        checker.name(name, queues, f"{plan.name}.queues")
        for each in rule.takes_from or ():
            checker.name(each, queues, f"{plan.name}.queues.{name}.takes_from")
    for name in plan.low_queues:
        checker.name(name, queues, f"{plan.name}.low_queues")
    for kind in NAMED:
        for name in plan.weights.get(kind, {}):
            checker.name(name, workload.names[kind], f"{plan.name}.weights.{kind}")
