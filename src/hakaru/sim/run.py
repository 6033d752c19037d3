"""Play a workload on a machine under a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hakaru.errors import HakaruError
from hakaru.registry import hint
from hakaru.sim._records import CHANGES, JOB, NODE, POINTS, WEIGHTS
from hakaru.sim.limits import Limit, doors_of, lanes_of, rows_of
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
YEAR_S = 365.25 * 86400
TOO_LONG = (
    "at most 544 years are simulated; look for run times or submissions in milliseconds "
    "(`hakaru simulate --where 'run_s < 1e7'` leaves out the longest jobs)"
)
LAST_S = 2**34  # after the first submission: the kernels pack a time and a job into one word


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
    _check_times(fitting, machine)
    play = _plan if policy.backfill == "conservative" else _queue
    schedule = play(fitting, machine, policy, options)
    if len(fitting) and schedule.end.max() - _first(fitting) >= LAST_S:
        raise HakaruError(f"the replay takes longer than the simulator can count: {TOO_LONG}")
    return schedule


def estimated(workload: Workload, options: Options) -> Any:
    """How long each job is thought to run, in whole seconds: what it asks for, or what is guessed."""
    if options.estimates is None:
        return workload.request
    given = np.asarray(options.estimates(workload))
    if given.shape != workload.request.shape or given.dtype.kind not in "iuf":
        raise HakaruError(
            f"estimates: expected one number of seconds for each of {len(workload):,} jobs, "
            f"found {given.dtype} of shape {given.shape}"
        )
    if not np.isfinite(given).all():
        wrong = int((~np.isfinite(given)).sum())
        verb = "is" if wrong == 1 else "are"
        raise HakaruError(
            f"estimates: {wrong:,} of {len(workload):,} {verb} not finite (nan or infinite); give each job "
            "a number of seconds, e.g. its request where nothing better is known"
        )
    return np.clip(np.round(given), 0, LONGEST_S).astype(np.int64)


def _check_times(workload: Workload, machine: Machine) -> None:
    """Refuse what could not end while times can be counted, even if half of the machine lay idle."""
    if not len(workload):
        return
    span = float(workload.submit[-1] - _first(workload)) + float(workload.run.max())
    work = float((workload.run.astype(float) * workload.pes).sum()) / machine.num_pes
    if span + 2 * work >= LAST_S:
        raise HakaruError(
            f"the jobs span {(span + work) / YEAR_S:,.0f} years on this machine: {TOO_LONG}"
        )


def _first(workload: Workload) -> int:
    return int(workload.submit[0]) if len(workload) else 0


def _fitting(workload: Workload, machine: Machine) -> Workload:
    """Without the jobs that are larger than the machine, or ask for nodes it does not have."""
    if len(workload) >= MOST_JOBS:
        raise HakaruError(f"at most {MOST_JOBS:,} jobs can be simulated at once")
    kept = _with_model(workload, machine)
    anywhere = np.zeros(machine.num_nodes, np.int64)
    kept = kept.take(_fits(kept, machine, anywhere), "larger than the machine")
    if machine.placement.locality == "required":
        near = _fits(kept, machine, machine.switches)
        kept = kept.take(near, "more nodes than lie under one switch")
    return kept


def _with_model(workload: Workload, machine: Machine) -> Workload:
    """Without the jobs that ask for a model of which there is no node."""
    if not _has_models(machine):
        return workload
    absent = (workload.model >= 0) & ~np.isin(workload.model, machine.codes(workload.names))
    names = [workload.names["gpu_model"][code] for code in np.unique(workload.model[absent])]
    listed = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return workload.take(~absent, f"ask for a model that no node has ({listed})")


def _fits(workload: Workload, machine: Machine, areas: Any) -> Any:
    """Which jobs some area (one number a node) has enough nodes for, of the model they ask for."""
    return _are_enough(workload, machine, areas, *_shape(workload, machine))


def _are_enough(workload: Workload, machine: Machine, areas: Any, pes: Any, num_nodes: Any) -> Any:
    models = machine.codes(workload.names)
    asked_for = np.unique(workload.model) if _has_models(machine) else [-1]
    fits = np.zeros(len(workload), bool)
    for model in asked_for:
        asked = workload.model == model if _has_models(machine) else slice(None)
        usable = (models == model) | (model < 0)
        for area in np.unique(areas):
            mine = np.sort(machine.sizes[usable & (areas == area)])
            enough = len(mine) - np.searchsorted(mine, pes[asked])
            fits[asked] |= enough >= num_nodes[asked]
    return fits


def _has_models(machine: Machine) -> bool:
    return any(group.model for group in machine.groups)


def _shape(workload: Workload, machine: Machine) -> tuple[Any, Any]:
    """PEs on each node, and nodes; a job that fits on no node is spread over as few as are enough,
    of the largest if there are enough of these, else of smaller ones."""
    if machine.is_flat:
        return workload.pes, np.ones(len(workload), np.int64)
    largest, *smaller = np.unique(machine.sizes)[::-1]
    num_nodes = np.maximum(workload.num_nodes, -(-workload.pes // largest))
    anywhere = np.zeros(machine.num_nodes, np.int64)
    for size in smaller:
        pes = -(-workload.pes // num_nodes)
        fits = _are_enough(workload, machine, anywhere, pes, num_nodes)
        more = np.maximum(workload.num_nodes, -(-workload.pes // size))
        num_nodes = np.where(fits, num_nodes, more)
    return -(-workload.pes // num_nodes), num_nodes


def _queue(workload: Workload, machine: Machine, policy: Policy, options: Options) -> Schedule:
    from hakaru.sim import _queueing as kernel

    jobs = _jobs(workload, machine, policy, options)
    weights = policy.weights
    got, totals = kernel.run(
        jobs,
        _nodes(machine, workload),
        _changes(machine, _first(workload)),
        _rules(machine, policy, options),
        _limits(workload, options),
        _queues(workload, policy, options),
        np.array([*weights.qos.values()] if weights else [], float),
        {name: getattr(weights, name, 1.0) for name in WEIGHTS},
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
    got, totals = kernel.run(
        jobs, _nodes(machine, workload), _changes(machine, _first(workload)), rules
    )
    return Schedule.of(workload, machine, policy.id, jobs, got, totals)


def _limits(workload: Workload, options: Options) -> tuple[Any, Any, Any, int, Any]:
    rows, since, values, num_counters = rows_of(options.limits, workload, options.zone)
    doors = doors_of(options.limits, workload)
    return rows, since - _first(workload), values, num_counters, doors


def _jobs(workload: Workload, machine: Machine, policy: Policy, options: Options) -> Any:
    jobs = np.zeros(len(workload), JOB)
    weighted = policy.weights is not None
    if options.limits or weighted:  # first, for it takes room to find
        jobs["lane"] = lanes_of(options.limits, workload, weighted)
    if weighted:
        jobs["qos"] = _qos(workload, policy)
    pes, num_nodes = _shape(workload, machine)
    has_models = _has_models(machine)
    estimate = estimated(workload, options)
    columns = {
        "submit": workload.submit - _first(workload),
        "run": workload.run,
        "request": workload.request,
        "estimate": estimate,
        "key": _keys(workload, policy, options, estimate),
        "start": -1,
        "end": -1,
        "offset": np.cumsum(num_nodes) - num_nodes,
        "num_nodes": num_nodes,
        "pes": pes,
        "total": workload.pes,
        "model": workload.model if has_models else -1,
        "user": workload.user,
        "account": workload.account,
        "queue": workload.queue,
    }
    for name, values in columns.items():
        jobs[name] = values
    return jobs


def _keys(workload: Workload, policy: Policy, options: Options, estimate: Any) -> Any:
    """The policy's order; jobs of low queues behind all others where these may stop them."""
    keys = policy.order(workload, estimate) if policy.order else np.arange(len(workload))
    if not policy.preempts or not len(workload):
        return keys
    is_low = np.array([*(name in options.low_queues for name in workload.names["queue"]), False])
    return keys + np.where(is_low[workload.queue], keys.max() - keys.min() + 1, 0)


def _nodes(machine: Machine, workload: Workload) -> Any:
    nodes = np.zeros(machine.num_nodes, NODE)
    nodes["size"] = machine.sizes
    nodes["model"] = machine.codes(workload.names)
    nodes["switch"] = machine.switches
    nodes["open"] = 1
    nodes["open"][list(machine.closed)] = 0
    return nodes


def _changes(machine: Machine, first: int) -> Any:
    ordered = sorted(machine.changes, key=lambda change: change.time)
    changes = np.zeros(len(ordered), CHANGES)
    changes["time"] = [change.time - first for change in ordered]
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
    names = workload.names["queue"]
    unknown = [name for name in options.low_queues if name not in names]
    if unknown:
        raise HakaruError(f"low queue {unknown[0]!r}: no job has it; there are {', '.join(names)}")
    queues = np.zeros(len(names), POINTS)
    points = _points(workload, policy, "queue")
    queues["points"] = [points.get(name, 0.0) for name in names]
    queues["low"] = [name in options.low_queues for name in names]
    return queues


def _qos(workload: Workload, policy: Policy) -> Any:
    """Which of the QOS that have points each job has; -1: none."""
    places = {name: x for x, name in enumerate(_points(workload, policy, "qos"))}
    return np.array([*(places.get(name, -1) for name in workload.names["qos"]), -1])[workload.qos]


def _points(workload: Workload, policy: Policy, kind: Literal["queue", "qos"]) -> Any:
    """What queues or QOS count for, by name."""
    names = workload.names[kind]
    points = getattr(policy.weights, kind) if policy.weights else {}
    for name in points:
        if name not in names:
            raise HakaruError(f"weights: no job has the {kind} {name!r}; {hint(name, names)}")
    return points
