"""The window with telemetry: which job had which GPU, and what each GPU measured every minute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hakaru.schema import SAMPLES as SAMPLES_TABLE
from hakaru.sources.synth import _figures as figures
from hakaru.sources.synth._jobs import SAMPLES, TRAITS, Jobs, generator
from hakaru.sources.synth._spec import Plan
from hakaru.sources.synth._tables import Floats, Ints

ROWS = 500_000  # of samples at a time


@dataclass(frozen=True)
class Placement:
    """Jobs of the window in the order of their numbers, when they began, and their GPUs.

    One entry of `owner` and `gpu` a job and GPU: the job's position here, and the GPU's number, counted
    through all nodes. A job's entries stand together.
    """

    number: Ints
    started: Ints
    ended: Ints
    owner: Ints
    gpu: Ints


def place(plan: Plan, blocks: Iterable[Jobs]) -> Placement:
    """Give every job that runs in the window or later its GPUs; one that finds none free begins later."""
    jobs = _window_jobs(plan, blocks)
    jobs = jobs.take(np.argsort(jobs.started, kind="stable"))
    started, gpus = _allocate(plan, jobs)
    order = np.argsort(jobs.number)
    owner = np.repeat(np.arange(len(order)), [len(gpus[i]) for i in order])
    return Placement(
        number=jobs.number[order],
        started=started[order],
        ended=(started + jobs.run_s)[order],
        owner=owner,
        gpu=np.concatenate([gpus[i] for i in order]) if len(order) else owner,
    )


def samples(plan: Plan, placement: Placement) -> Iterator[pa.Table]:
    """What each GPU measured, a row a minute, in the order of time; lost samples are missing rows."""
    low, high = plan.window_s
    num_minutes = max(1, ROWS // plan.num_gpus)
    first = -(-low // 60)
    held = _Held.draw(plan, placement)
    silent = _outages(plan)
    for block, minute in enumerate(range(first, high // 60, num_minutes)):
        minutes = np.arange(minute, min(minute + num_minutes, high // 60))
        yield _measure(plan, generator(plan, SAMPLES, block), placement, held, silent, minutes)


def _window_jobs(plan: Plan, blocks: Iterable[Jobs]) -> Jobs:
    """Jobs that end after the window's first moment. Those after its last are placed too: where the
    placement delays a job past the window, it takes room that the schedule gave to others."""
    return Jobs.concat(
        [jobs.take(np.flatnonzero(jobs.ended > plan.window_s[0])) for jobs in blocks]
    )


def _allocate(plan: Plan, jobs: Jobs) -> tuple[Ints, list[Ints]]:
    """Starts and GPUs, first come first served.

    A loop over jobs: where a job goes depends on where those before it went. It sees the window's jobs
    only, a thousand a day on AAIC's machine, each at some 30 µs.
    """
    free_at = np.full((plan.num_nodes, plan.spec.gpus_per_node), -(2**62), dtype=np.int64)
    started = jobs.started.copy()
    gpus: list[Ints] = []
    wanted = zip(jobs.num_nodes, jobs.num_gpus, jobs.started, jobs.run_s, strict=True)
    for i, (num_nodes, num_gpus, now, run_s) in enumerate(wanted):
        pick = (
            _in_node(free_at, num_gpus, now) if num_nodes == 1 else _nodes(free_at, num_nodes, now)
        )
        flat = free_at.reshape(-1)
        started[i] = max(now, flat[pick].max())
        flat[pick] = started[i] + run_s
        gpus.append(pick)
    return started, gpus


def _in_node(free_at: Ints, num_gpus: int, now: int) -> Ints:
    """GPUs of the fullest node that has enough free ones, else of the first that will have."""
    free = (free_at <= now).sum(axis=1)
    fitting = np.where(free >= num_gpus, free, free_at.shape[1] + 1)
    node = int(fitting.argmin())
    if fitting[node] > free_at.shape[1]:
        node = int(np.partition(free_at, num_gpus - 1, axis=1)[:, num_gpus - 1].argmin())
    first = np.argsort(
        free_at[node] > now if free[node] >= num_gpus else free_at[node], kind="stable"
    )
    chosen: Ints = np.sort(first[:num_gpus]) + node * free_at.shape[1]
    return chosen


def _nodes(free_at: Ints, num_nodes: int, now: int) -> Ints:
    """All GPUs of the nodes that are, or first become, wholly free."""
    ready = np.maximum(free_at.max(axis=1), now)
    nodes = np.sort(np.argsort(ready, kind="stable")[:num_nodes])
    width = free_at.shape[1]
    chosen: Ints = (nodes[:, None] * width + np.arange(width)).ravel()
    return chosen


@dataclass(frozen=True)
class _Held:
    """How each held GPU behaves; one entry an entry of the placement."""

    utilization: Floats
    memory_mib: Floats
    watts: Floats  # at full utilization, above idle

    @staticmethod
    def draw(plan: Plan, placement: Placement) -> _Held:
        rng = generator(plan, TRAITS)
        num_jobs, owner = len(placement.number), placement.owner
        idle = rng.random(num_jobs) < plan.spec.idle_share
        first_only = rng.random(num_jobs) < figures.FIRST_GPU_ONLY_SHARE
        busy = rng.beta(5.0, 1.5, num_jobs)
        # half of the jobs take nearly all memory, as TensorFlow does
        share = np.where(rng.random(num_jobs) < 0.5, 0.95, rng.uniform(0.1, 0.9, num_jobs))
        watts = rng.uniform(90.0, 205.0, num_jobs)
        is_first = np.diff(owner, prepend=-1) != 0
        unused = idle[owner] | (first_only[owner] & ~is_first)
        memory = np.where(unused, rng.choice([0.0, 303.0, 8100.0], len(owner)), 0.0)
        return _Held(
            utilization=np.where(unused, 0.0, busy[owner]),
            memory_mib=np.where(unused, memory, share[owner] * figures.MEMORY_MIB),
            watts=watts[owner],
        )


def _outages(plan: Plan) -> tuple[Ints, Ints, Ints]:
    """Node, first minute and minute after the last of each silence of an exporter."""
    rng = generator(plan, SAMPLES)
    low, high = (second // 60 for second in plan.window_s)
    expected = figures.OUTAGES_A_NODE_DAY * plan.num_nodes * (high - low) / 1440
    num = int(rng.poisson(expected))
    first = rng.integers(low, max(high, low + 1), num)
    return rng.integers(0, plan.num_nodes, num), first, first + rng.integers(5, 91, num)


def _measure(
    plan: Plan,
    rng: np.random.Generator,
    placement: Placement,
    held: _Held,
    silent: tuple[Ints, Ints, Ints],
    minutes: Ints,
) -> pa.Table:
    shape = (len(minutes), plan.num_gpus)
    holder, age = _holders(placement, minutes, plan.num_gpus)
    taken = holder >= 0
    noise = rng.standard_normal(shape)
    level = np.where(taken, held.utilization[holder] if len(held.utilization) else 0.0, 0.0)
    active = level > 0
    # loading at the start, and now and then a checkpoint or an evaluation
    pause = np.where((age < 2) | (rng.random(shape) < 0.05), rng.uniform(0.0, 0.6, shape), 1.0)
    # exporters count whole percents
    busy = np.clip(level * pause + 0.05 * noise, 0.01, 1.0).round(2)
    utilization: Floats = np.where(active, busy, 0.0)
    memory = np.where(taken, held.memory_mib[holder] if len(held.memory_mib) else 0.0, 0.0)
    used: Floats = np.where(active & (age < 1), 0.2 * memory, memory).round()
    watts = np.where(taken, held.watts[holder] if len(held.watts) else 0.0, 0.0)
    context = np.where(used > 0, 4.0, 0.0)
    power = figures.IDLE_W + context + utilization * watts + (1 + 4 * active) * np.abs(noise)
    kept = (rng.random(shape) >= figures.MISSING_SHARE) & ~_silence(silent, minutes, shape, plan)
    return _table(plan, minutes, kept, utilization, used, np.minimum(power, figures.MAX_W))


def _holders(placement: Placement, minutes: Ints, num_gpus: int) -> tuple[Ints, Ints]:
    """For each minute and GPU the placement's entry (−1: none) and the job's age in minutes."""
    num, base = len(minutes), int(minutes[0])
    begin = -(-placement.started // 60)[placement.owner]
    end = -(-placement.ended // 60)[placement.owner]
    low, high = np.clip(begin - base, 0, num), np.clip(end - base, 0, num)
    length = high - low
    entry = np.repeat(np.arange(len(length)), length)
    step = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    minute = low[entry] + step
    holder = np.full((num, num_gpus), -1, dtype=np.int64)
    age = np.zeros((num, num_gpus), dtype=np.int64)
    holder[minute, placement.gpu[entry]] = entry
    age[minute, placement.gpu[entry]] = minute + base - begin[entry]
    return holder, age


def _silence(
    silent: tuple[Ints, Ints, Ints], minutes: Ints, shape: tuple[int, int], plan: Plan
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    node, first, last = silent
    base = int(minutes[0])
    change = np.zeros((shape[0] + 1, plan.num_nodes), dtype=np.int64)
    np.add.at(change, (np.clip(first - base, 0, shape[0]), node), 1)
    np.add.at(change, (np.clip(last - base, 0, shape[0]), node), -1)
    down = np.cumsum(change[:-1], axis=0) > 0
    return np.repeat(down, plan.spec.gpus_per_node, axis=1)


def _table(
    plan: Plan,
    minutes: Ints,
    kept: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    utilization: Floats,
    memory: Floats,
    power: Floats,
) -> pa.Table:
    minute, gpu = np.nonzero(kept)
    num, width = len(minute), plan.spec.gpus_per_node
    names = pa.array(plan.node_names())
    at = (minutes[minute] * 60_000_000).astype("datetime64[us]")
    columns = {
        "cluster": pa.repeat(pa.scalar(plan.spec.cluster), num),
        "node": names.take(pa.array(gpu // width)),
        "gpu": pa.array(gpu % width),
        "sampled_at": pa.array(at).cast(pa.timestamp("us", tz="UTC")),
        "utilization": pa.array(utilization[kept]),
        "memory_used_mib": pa.array(memory[kept]),
        "memory_total_mib": pa.repeat(pa.scalar(figures.MEMORY_MIB), num),
        "power_w": pa.array(np.round(power[kept], 1)),
    }
    schema = SAMPLES_TABLE.arrow()
    return pa.table(
        [columns.get(field.name, pa.nulls(num, field.type)) for field in schema], schema=schema
    )
