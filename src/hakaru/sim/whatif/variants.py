"""A scenario and a log give what is to be played: a workload, a machine, a policy and options each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from hakaru.errors import HakaruError
from hakaru.settings import Cluster
from hakaru.sim.machine import Group, Machine, Outage, Placement
from hakaru.sim.policies import POLICIES, Policy
from hakaru.sim.run import Options
from hakaru.sim.whatif import changes
from hakaru.sim.whatif._check import Checker
from hakaru.sim.whatif.scenario import Failure, MachineSpec, Plan, Scenario
from hakaru.sim.workload import Workload, estimates_of

if TYPE_CHECKING:
    from hakaru.sim.limits import Limit

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
    are copies.
    """

    name: str
    workload: Workload
    machine: Machine
    recipe: Recipe
    notes: tuple[str, ...]
    asked: Any
    num_users: int

    @property
    def policy(self) -> Policy:
        return self.recipe.make()[0]

    @property
    def options(self) -> Options:
        return self.recipe.make()[1]


def prepare(
    scenario: Scenario,
    workload: Workload,
    cluster: Cluster | None = None,
    unit: str = "gpu",
    name: str = "the cluster",
) -> list[Prepared]:
    """The baseline first, then the variants; names that no job has are told all at once."""
    cluster = cluster or Cluster()
    checker = Checker()
    for plan in scenario.plans:
        _check_names(checker, plan, workload)
    checker.done("the scenario")
    workload = _numbered(workload)
    return [
        _prepared(scenario, plan, workload, cluster, Site(name, unit)) for plan in scenario.plans
    ]


@dataclass(frozen=True)
class Site:
    name: str
    unit: str


def _prepared(
    scenario: Scenario, plan: Plan, workload: Workload, cluster: Cluster, site: Site
) -> Prepared:
    machine, notes = _machine(scenario.machine, plan, cluster, site)
    loaded, note = _loaded(plan, workload, scenario.seed)
    changed, more = _jobs(plan, loaded, cluster, scenario.seed)
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
    told = tuple(each for each in [*notes, note, *more] if each)
    users = len(workload.names["user"])
    return Prepared(plan.name, changed, machine, recipe, told, asked, users)


def _loaded(plan: Plan, workload: Workload, seed: int) -> tuple[Workload, str]:
    return (workload, "") if plan.load is None else changes.grow_load(workload, plan.load, seed)


def _jobs(
    plan: Plan, workload: Workload, cluster: Cluster, seed: int
) -> tuple[Workload, list[str]]:
    """After the load, in this order: requests, then what the queues make of the requests."""
    notes = []
    if plan.accurate_requests is not None:
        workload, note = changes.make_accurate(workload, plan.accurate_requests, seed)
        notes.append(note)
    if plan.scale_requests is not None:
        workload, note = changes.scale_requests(workload, plan.scale_requests)
        notes.append(note)
    for name, rule in plan.queues.items():
        points = plan.weights.get("queue", {})
        if changes.matters(name, points, plan.limits, plan.low_queues):
            workload, note = changes.widen_queue(workload, name, rule, cluster.queues.get(name))
        else:
            note = (
                f"queue {name} has no points, no limit and does not yield: the scheduler would not tell "
                "it from others, so no job moves to it"
            )
        workload, more = changes.limit_queue(workload, name, rule)
        notes += [note, more]
    return workload, notes


def _machine(
    spec: MachineSpec, plan: Plan, cluster: Cluster, site: Site
) -> tuple[Machine, list[str]]:
    said = _overlaid(spec, plan.machine)
    machine = _built(said, cluster, site)
    notes = []
    if plan.nodes:
        before = machine.num_nodes
        machine = _resized(machine, plan.nodes)
        word = "added" if plan.nodes > 0 else "removed"
        notes.append(f"{abs(plan.nodes)} nodes {word}: {machine.num_nodes} instead of {before}")
    if plan.failures:
        machine, note = _failing(machine, plan.failures, cluster.zone)
        notes.append(note)
    return machine, notes


def _overlaid(base: MachineSpec, top: MachineSpec) -> MachineSpec:
    """What the plan says of the machine goes before; a pool and nodes take each other's place."""
    said = {key.name: value for key in fields(top) if (value := getattr(top, key.name)) is not None}
    if "processors" in said:
        base = MachineSpec()
    elif {"nodes", "size"} & set(said):
        base = replace(base, processors=None)
    return replace(base, **said)


def _built(spec: MachineSpec, cluster: Cluster, site: Site) -> Machine:
    if spec.processors is not None:
        return Machine.flat(spec.processors)
    size = cluster.gpus_per_node if site.unit == "gpu" else cluster.cpus_per_node
    placement = {
        key: value
        for key in ("packing", "whole_nodes", "locality")
        if (value := getattr(spec, key)) is not None
    }
    options = {"switch_size": spec.switch_size, "placement": Placement(**placement)}
    if spec.nodes is None:
        sized = cluster if spec.size is None else _of_size(cluster, spec.size, site.unit)
        try:
            return Machine.of_cluster(site.name, sized, site.unit, **options)
        except HakaruError as error:
            raise HakaruError(
                f"{error}; or in the scenario: [machine] nodes = …, size = …"
            ) from None
    if not (spec.size or size):
        raise HakaruError("[machine] says nodes but not their size: add size = 8")
    return Machine.of_nodes(spec.nodes, int(spec.size or size or 0), **options)


def _of_size(cluster: Cluster, size: int, unit: str) -> Cluster:
    if unit == "gpu":
        return replace(cluster, gpus_per_node=size)
    return replace(cluster, cpus_per_node=size)


def _resized(machine: Machine, change: int) -> Machine:
    """Nodes like the last ones at the end, from the beginning on; or without the first ones.

    The last of a machine that grew over time are those that came late, so the first are taken away.
    """
    if machine.is_flat:
        raise HakaruError(
            "nodes are added to a machine of nodes; this one is a pool: use machine = { processors = … }"
        )
    *others, last = machine.groups
    if change > 0:
        return replace(machine, groups=(*others, replace(last, count=last.count + change)))
    lost = -change
    if lost >= machine.num_nodes:
        raise HakaruError(f"nodes = {change}: the machine has only {machine.num_nodes} nodes")
    return replace(
        machine,
        groups=tuple(_fewer(machine.groups, lost)),
        changes=tuple(
            replace(each, node=each.node - lost) for each in machine.changes if each.node >= lost
        ),
        closed=tuple(node - lost for node in machine.closed if node >= lost),
    )


def _fewer(groups: tuple[Group, ...], lost: int) -> list[Group]:
    kept = []
    for group in groups:
        gone = min(lost, group.count)
        lost -= gone
        if group.count > gone:
            kept.append(replace(group, count=group.count - gone))
    return kept


def _failing(machine: Machine, failures: tuple[Failure, ...], zone: str) -> tuple[Machine, str]:
    """The first nodes fail; they are up again after so many hours."""
    made = []
    for failure in failures:
        if failure.nodes > machine.num_nodes:
            raise HakaruError(
                f"failures: {failure.nodes} nodes fail, but there are only {machine.num_nodes}"
            )
        at = failure.at if failure.at.tzinfo else failure.at.replace(tzinfo=ZoneInfo(zone))
        begin = int(at.timestamp())
        end = begin + round(failure.hours * 3600)
        kind: Any = failure.kind
        made += [Outage(node, begin, end, kind) for node in range(failure.nodes)]
    listed = [
        f"{each.nodes} nodes {each.kind} from {each.at:%Y-%m-%d %H:%M} for {each.hours:g} h"
        for each in failures
    ]
    note = "; ".join(listed)
    return machine.with_outages(made), note


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
    for name in plan.weights.get("queue", {}):
        checker.name(name, queues, f"{plan.name}.weights.queue")
