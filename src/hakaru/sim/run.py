"""Play a workload on a machine under a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hakaru.errors import HakaruError
from hakaru.sim.limits import Limit, rows_of
from hakaru.sim.machine import KINDS
from hakaru.sim.schedule import Schedule
from hakaru.sim.workload import LONGEST_S

if TYPE_CHECKING:
    from hakaru.sim.machine import Machine
    from hakaru.sim.policies import Policy
    from hakaru.sim.workload import Estimator, Workload

PACKING = ("best-fit", "spread")
LOCALITY = ("anywhere", "preferred", "required")
SCANS = ("queue-order", "shortest-first")
MOST_JOBS = 2**28


@dataclass(frozen=True)
class Options:
    """What holds beside the policy.

    `events`: one pass of the scheduler after every event (as pyss does), or one after all of a second.
    `low_queues` yield to others under a policy that preempts; `zone` is the clock of limits by hour.
    """

    limits: Sequence[Limit] = ()
    estimates: Estimator | None = None  # else the request
    events: Literal["one-by-one", "batched"] = "one-by-one"
    low_queues: Sequence[str] = ()
    zone: str = "UTC"


def simulate(
    workload: Workload, machine: Machine, policy: Policy, options: Options | None = None
) -> Schedule:
    """When each job would have begun; jobs that can never fit are left out and counted."""
    options = options or Options()
    fitting = _fitting(workload, machine)
    if policy.backfill == "conservative":
        return _plan(fitting, machine, policy, options)
    return _queue(fitting, machine, policy, options)


def _fitting(workload: Workload, machine: Machine) -> Workload:
    """Without the jobs that are larger than the machine, or ask for nodes it does not have."""
    if len(workload) >= MOST_JOBS:
        raise HakaruError(f"at most {MOST_JOBS:,} jobs can be simulated at once")
    anywhere = np.zeros(machine.num_nodes, np.int64)
    kept = workload.take(_fits(workload, machine, anywhere), "larger than the machine")
    if machine.placement.locality == "required":
        near = _fits(kept, machine, machine.switches)
        kept = kept.take(near, "more nodes than lie under one switch")
    return kept


def _fits(workload: Workload, machine: Machine, areas: Any) -> Any:
    """Which jobs some area (one number a node) has enough nodes for, of the model they ask for."""
    pes, num_nodes = _shape(workload, machine)
    models = machine.codes(workload.names)
    fits = np.zeros(len(workload), bool)
    for model in np.unique(np.append(workload.model, -1)):
        asked = workload.model == model
        usable = (models == model) | (model < 0 or not _has_models(machine))
        for area in np.unique(areas):
            mine = np.sort(machine.sizes[usable & (areas == area)])
            enough = len(mine) - np.searchsorted(mine, pes[asked])
            fits[asked] |= enough >= num_nodes[asked]
    return fits


def _has_models(machine: Machine) -> bool:
    return any(group.model for group in machine.groups)


def _shape(workload: Workload, machine: Machine) -> tuple[Any, Any]:
    """PEs on each node, and nodes; a job that fits on no node is spread over as many as it needs."""
    if machine.is_flat:
        return workload.pes, np.ones(len(workload), np.int64)
    sizes, models = machine.sizes, machine.codes(workload.names)
    largest = np.full(len(workload), sizes.max())
    for model in set(models[models >= 0]):
        largest[workload.model == model] = sizes[models == model].max()
    num_nodes = np.maximum(workload.num_nodes, -(-workload.pes // largest))
    return -(-workload.pes // num_nodes), num_nodes


def _queue(workload: Workload, machine: Machine, policy: Policy, options: Options) -> Schedule:
    from hakaru.sim import _queueing as kernel

    jobs = _jobs(workload, machine, policy, options)
    weights = policy.weights
    got, totals = kernel.run(
        jobs,
        _nodes(machine, workload),
        _changes(machine),
        _rules(machine, policy, options),
        rows_of(options.limits, workload, options.zone),
        _queues(workload, policy, options),
        {name: getattr(weights, name, 1.0) for name in kernel.WEIGHTS},
        len(workload.names["user"]),
    )
    return Schedule.of(workload, machine, policy.id, jobs, got, totals)


def _plan(workload: Workload, machine: Machine, policy: Policy, options: Options) -> Schedule:
    from hakaru.sim import _conservative as kernel

    refused = {
        "limits": bool(options.limits),
        "an order other than that of submission": bool(policy.order or policy.weights),
        "estimates that move": policy.predictor != "given",
        "preemption": policy.preempts,
    }
    for what in (what for what, is_asked in refused.items() if is_asked):
        raise HakaruError(
            f"policy {policy.id}: conservative backfilling gives each job its place on submission and "
            f"knows no {what}; use an EASY policy, e.g. easy"
        )
    jobs = _jobs(workload, machine, policy, options)
    rules = _rules(machine, policy, options) | {"depth": policy.depth or MOST_JOBS}
    got, totals = kernel.run(jobs, _nodes(machine, workload), _changes(machine), rules)
    return Schedule.of(workload, machine, policy.id, jobs, got, totals)


def _jobs(workload: Workload, machine: Machine, policy: Policy, options: Options) -> Any:
    from hakaru.sim import _queueing as kernel

    jobs = np.zeros(len(workload), kernel.JOB)
    pes, num_nodes = _shape(workload, machine)
    has_models = _has_models(machine)
    estimate = workload.request if options.estimates is None else options.estimates(workload)
    columns = {
        "submit": workload.submit,
        "run": workload.run,
        "request": workload.request,
        "estimate": np.clip(estimate, 0, LONGEST_S),
        "key": _keys(workload, policy, options),
        "start": -1,
        "end": -1,
        "offset": np.cumsum(num_nodes) - num_nodes,
        "num_nodes": num_nodes,
        "pes": pes,
        "model": workload.model if has_models else -1,
        "user": workload.user,
        "account": workload.account,
        "queue": workload.queue,
    }
    for name, values in columns.items():
        jobs[name] = values
    return jobs


def _keys(workload: Workload, policy: Policy, options: Options) -> Any:
    """The policy's order; jobs of low queues behind all others where these may stop them."""
    keys = policy.order(workload) if policy.order else np.arange(len(workload))
    if not policy.preempts or not len(workload):
        return keys
    is_low = np.array([*(name in options.low_queues for name in workload.names["queue"]), False])
    return keys + np.where(is_low[workload.queue], keys.max() - keys.min() + 1, 0)


def _nodes(machine: Machine, workload: Workload) -> Any:
    from hakaru.sim import _queueing as kernel

    nodes = np.zeros(machine.num_nodes, kernel.NODE)
    nodes["size"] = machine.sizes
    nodes["model"] = machine.codes(workload.names)
    nodes["switch"] = machine.switches
    nodes["open"] = 1
    nodes["open"][list(machine.closed)] = 0
    return nodes


def _changes(machine: Machine) -> Any:
    from hakaru.sim import _queueing as kernel

    ordered = sorted(machine.changes, key=lambda change: change.time)
    changes = np.zeros(len(ordered), kernel.CHANGES)
    changes["time"] = [change.time for change in ordered]
    changes["node"] = [change.node for change in ordered]
    changes["kind"] = [KINDS.index(change.kind) for change in ordered]
    return changes


def _rules(machine: Machine, policy: Policy, options: Options) -> dict[str, int]:
    placement = machine.placement
    return {
        "backfill": 0 if policy.backfill == "none" else 1 + SCANS.index(policy.scan),
        "estimates": int(policy.predictor == "last-two"),
        "order": int(policy.weights is not None),
        "packing": PACKING.index(placement.packing),
        "whole_nodes": int(placement.whole_nodes),
        "locality": LOCALITY.index(placement.locality),
        "batched": int(options.events == "batched"),
        "preempt": int(policy.preempts),
    }


def _queues(workload: Workload, policy: Policy, options: Options) -> Any:
    from hakaru.sim import _queueing as kernel

    names = workload.names["queue"]
    unknown = [name for name in options.low_queues if name not in names]
    if unknown:
        raise HakaruError(f"low queue {unknown[0]!r}: no job has it; there are {', '.join(names)}")
    points = policy.weights.queue if policy.weights else {}
    queues = np.zeros(len(names), kernel.POINTS)
    queues["points"] = [points.get(name, 0.0) for name in names]
    queues["low"] = [name in options.low_queues for name in names]
    return queues
