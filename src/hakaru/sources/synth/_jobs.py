"""Jobs in blocks of fixed size, each drawn from its own seed, so that chunking changes nothing.

A block's jobs come in bursts. The bursts of a class lie one after the other on [0, 1], each as wide as
its share of the class's jobs; where one lies gives its state and run time. So the shares and quantiles
come out right to about a burst in every block, however heavy the tail of the bursts' sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from hakaru.sources.synth import _figures as figures
from hakaru.sources.synth._spec import Plan
from hakaru.sources.synth._tables import (
    Floats,
    Ints,
    normal_cdf,
    normal_quantile,
    request_choices,
    run_quantiles,
    sizes,
    timeout_choices,
)

BLOCK = 131_072
JOBS, DAYS, TASTES, TRAITS, SAMPLES = range(5)  # streams of random numbers


@dataclass
class Jobs:
    """Jobs of a block as columns, in the order of submission; times are UTC seconds.

    `started` is when a job's user may begin it, until the schedule puts the start there.
    """

    number: Ints
    user: Ints
    state: Ints
    queue: Ints
    num_nodes: Ints
    num_gpus: Ints
    requested_s: Floats
    submitted: Ints
    started: Ints
    run_s: Ints

    @property
    def ended(self) -> Ints:
        return self.started + self.run_s

    def take(self, rows: Ints) -> Jobs:
        return Jobs(**{name: column[rows] for name, column in vars(self).items()})

    @staticmethod
    def concat(parts: list[Jobs]) -> Jobs:
        names = vars(parts[0])
        return Jobs(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in names})


@dataclass(frozen=True)
class _Bursts:
    """Bursts of a block; `place` is where on [0, 1] each lies in its class."""

    klass: Ints
    size: Ints
    place: Floats


@dataclass
class _Work:
    """What the jobs do, before they are given to users and moments."""

    state: Ints
    run_s: Floats
    queue: Ints
    requested_s: Floats
    num_nodes: Ints
    num_gpus: Ints


def generator(plan: Plan, *stream: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64DXSM([plan.spec.seed, *stream]))


def calendar(plan: Plan) -> Floats:
    """The cumulated share of submissions at each hour's end, by the site's hours and weekdays."""
    zone = ZoneInfo(plan.spec.zone)
    # hours, not jobs: some ten thousand turns for a year and a half
    local = [
        datetime.fromtimestamp(plan.start_s + 3600 * hour, zone) for hour in range(plan.num_hours)
    ]
    hour = np.array([moment.hour for moment in local])
    weekday = np.array([moment.weekday() for moment in local])
    day = np.array([moment.toordinal() for moment in local])
    day -= day[0]
    busy = np.exp(figures.DAY_SIGMA * generator(plan, DAYS).standard_normal(day[-1] + 1))
    weight = busy[day] * np.array(figures.HOURS)[hour]
    # days differ, but each weekday keeps its published share
    share = np.bincount(weekday, weight, minlength=7)
    weight *= (np.array(figures.WEEKDAYS) * np.bincount(weekday, minlength=7))[weekday]
    weight /= share[weekday]
    return np.concatenate([[0.0], np.cumsum(weight) / weight.sum()])


def num_blocks(plan: Plan) -> int:
    return -(-plan.num_jobs // BLOCK)


def block_span(plan: Plan, shares: Floats, block: int) -> tuple[int, int]:
    """First and last second in which the block's jobs are submitted; blocks do not overlap."""
    ends = np.minimum(np.array([block, block + 1]) * BLOCK, plan.num_jobs) / plan.num_jobs
    low, high = np.ceil(_moments(plan, shares, ends)).astype(np.int64)
    return int(low), int(max(low, high - 1))


def make_block(plan: Plan, shares: Floats, block: int) -> Jobs:
    """The block's jobs, whatever was made before it."""
    rng = generator(plan, JOBS, block)
    first = block * BLOCK
    last = min(first + BLOCK, plan.num_jobs)
    bursts = _bursts(rng, plan, first, last)
    taste = _spread_evenly(rng, bursts.size)
    work = _work(rng, plan, bursts, taste)
    member, parent = _split_heavy(plan, _members(rng, bursts), work)
    klass, taste = bursts.klass[parent], taste[parent]
    rank = _ranks(member)
    start, gap = _burst_times(rng, plan, shares, block, member, work)
    submitted = start[member] + (gap[member] * (rank + rng.random(len(rank)))).astype(np.int64)
    # a job later in its burst was submitted later, so it has waited less for the same turn
    turn = _turns(plan, work, klass[member], member, rank) + start[member] - submitted
    wait_s = _dispatch_s(rng, len(rank)) + np.clip(turn, 0, figures.LONGEST_TURN_S).astype(np.int64)
    order = np.argsort(submitted, kind="stable")
    jobs = Jobs(
        number=np.empty_like(order),
        user=_users(rng, plan, taste)[member],
        state=work.state,
        queue=work.queue,
        num_nodes=work.num_nodes,
        num_gpus=work.num_gpus,
        requested_s=work.requested_s,
        submitted=submitted,
        started=submitted + wait_s,
        run_s=work.run_s.astype(np.int64),
    )
    jobs = jobs.take(order)
    jobs.number = np.arange(first + 1, last + 1)
    return jobs


def _moments(plan: Plan, shares: Floats, u: Floats) -> Floats:
    """When the share `u` of all jobs has been submitted."""
    moments: Floats = plan.start_s + np.interp(u, shares, 3600.0 * np.arange(len(shares)))
    return moments


def _bursts(rng: np.random.Generator, plan: Plan, first: int, last: int) -> _Bursts:
    counts = _class_counts(first, last)
    parts = [
        _class_bursts(rng, plan, klass, n, last - first)
        for klass, n in zip(figures.CLASSES, counts, strict=True)
    ]
    klass = np.repeat(np.arange(len(parts)), [len(size) for size, _ in parts])
    size, place = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return _Bursts(klass, size, place)


def _class_counts(first: int, last: int) -> list[int]:
    """Jobs of each class in the block, so that all blocks together have the log's shares."""
    totals = [sum(figures.NUM_BY_STATE[klass]) for klass in figures.CLASSES]
    few = [last * n // sum(totals) - first * n // sum(totals) for n in totals[1:]]
    return [last - first - sum(few), *few]


def _class_bursts(
    rng: np.random.Generator, plan: Plan, klass: str, num_jobs: int, num_all: int
) -> tuple[Ints, Floats]:
    """Sizes that add up to `num_jobs`, and each one's place."""
    exponent, shift, largest = figures.BURSTS[klass]
    # one burst must not be the whole of a small log, nor keep a small machine busy for weeks
    largest = max(4, min(largest, 3 * plan.num_gpus, num_all // 50))
    draws = rng.random(num_jobs)  # enough even if every burst is one job
    size = np.minimum((1 + shift) * draws ** (-1 / exponent) - shift, largest).astype(np.int64)
    ends = np.cumsum(size)
    size = size[: int(np.searchsorted(ends, num_jobs)) + 1] if num_jobs else size[:0]
    if num_jobs:
        size[-1] -= size.sum() - num_jobs
    ends = np.cumsum(size)
    return size, (ends - size * rng.random(len(size))) / max(num_jobs, 1)


def _work(rng: np.random.Generator, plan: Plan, bursts: _Bursts, taste: Floats) -> _Work:
    """States, run times, requests and sizes, class by class and state by state."""
    num = int(bursts.size.sum())
    work = _Work(
        state=np.zeros(num, dtype=np.int64),
        run_s=np.zeros(num),
        queue=np.zeros(num, dtype=np.int64),
        requested_s=np.zeros(num),
        num_nodes=np.ones(num, dtype=np.int64),
        num_gpus=np.ones(num, dtype=np.int64),
    )
    median, sigma = figures.BURST_SPREAD
    spread = np.minimum(median * np.exp(sigma * rng.standard_normal(len(bursts.size))), 1.0)
    owner = np.repeat(np.arange(len(bursts.size)), bursts.size)
    noise = spread[owner] * rng.standard_normal(num)
    keep = np.sqrt(1 - spread**2)
    want = rng.random(len(bursts.size))
    starts = np.concatenate([[0], np.cumsum(bursts.size)])
    for k, klass in enumerate(figures.CLASSES):
        counts = np.array(figures.NUM_BY_STATE[klass], dtype=np.float64)
        bounds = np.concatenate([[0.0], np.cumsum(counts) / counts.sum()])
        lowest, highest = np.searchsorted(bursts.klass, [k, k + 1])
        place = bursts.place[lowest:highest]
        cuts = lowest + np.searchsorted(place, bounds)
        cuts[-1] = highest
        for s, state in enumerate(figures.STATES):
            within = slice(cuts[s], cuts[s + 1])
            jobs = slice(starts[cuts[s]], starts[cuts[s + 1]])
            inside = (bursts.place[within] - bounds[s]) / (bounds[s + 1] - bounds[s])
            centre = np.zeros(len(bursts.size))
            centre[within] = keep[within] * normal_quantile(inside)
            u = normal_cdf(centre[owner[jobs]] + noise[jobs])
            work.state[jobs] = s
            _fill(work, jobs, klass, state, u, taste[owner[jobs]])
            _fill_sizes(work, jobs, klass, plan, want[owner[jobs]])
    return work


def _fill(work: _Work, jobs: slice, klass: str, state: str, u: Floats, taste: Floats) -> None:
    """Run time, queue and request of the jobs of one class and state."""
    if state == "timeout":
        queue, requested, shares = timeout_choices(klass)
        chosen = np.minimum(np.searchsorted(shares, u), len(queue) - 1)
        work.queue[jobs], work.requested_s[jobs] = queue[chosen], requested[chosen]
        work.run_s[jobs] = requested[chosen]
        return
    chances, log_t = run_quantiles(klass, state)
    run_s = np.maximum(np.floor(np.exp(np.interp(u, chances, log_t))), 1.0)
    choices = request_choices(klass)
    chosen = choices.pick(run_s, taste)
    queue, requested_s = choices.queue[chosen], choices.requested_s[chosen]
    _ask_enough(klass, run_s, queue, requested_s)
    work.run_s[jobs], work.queue[jobs], work.requested_s[jobs] = run_s, queue, requested_s


def _ask_enough(klass: str, run_s: Floats, queue: Ints, requested_s: Floats) -> None:
    """A job that ran longer than its request had asked for the maximum of a queue that allows it."""
    few = np.flatnonzero(requested_s < run_s)
    names = ("normal", "middle", "long") if klass == "single" else ("normal", "long")
    limits = np.array([figures.MAX_WALLTIME_H[name] * 3600.0 for name in names])
    numbers = np.array([figures.QUEUES.index(name) for name in names])
    chosen = np.minimum(np.searchsorted(limits, run_s[few]), len(names) - 1)
    queue[few], requested_s[few] = numbers[chosen], limits[chosen]
    run_s[few] = np.minimum(run_s[few], limits[chosen])


def _fill_sizes(work: _Work, jobs: slice, klass: str, plan: Plan, want: Floats) -> None:
    if klass == "single":
        return
    number, long_shares, short_shares = sizes(klass, plan.spec.gpus_per_node, plan.num_nodes)
    last = len(number) - 1
    long = number[np.minimum(np.searchsorted(long_shares, want), last)]
    short = number[np.minimum(np.searchsorted(short_shares, want), last)]
    chosen = np.where(work.run_s[jobs] < 60, short, long)
    if klass == "node":
        work.num_gpus[jobs] = chosen
    else:
        work.num_nodes[jobs] = chosen
        work.num_gpus[jobs] = chosen * plan.spec.gpus_per_node


def _spread_evenly(rng: np.random.Generator, weight: Ints | Floats) -> Floats:
    """A number in [0, 1) each, evenly spread over the heaviest few as over all (golden ratio)."""
    spread = np.empty(len(weight))
    golden = (5**0.5 - 1) / 2
    order = np.argsort(-weight, kind="stable")
    spread[order] = (rng.random() + golden * np.arange(len(weight))) % 1.0
    return spread


def _members(rng: np.random.Generator, bursts: _Bursts) -> Ints:
    """The burst of each job. A few change places, so that a burst is not all of one kind."""
    member = np.repeat(np.arange(len(bursts.size)), bursts.size)
    loners = np.flatnonzero(rng.random(len(member)) < figures.LONER_SHARE)
    member[loners] = member[rng.permutation(loners)]
    return member


def _split_heavy(plan: Plan, member: Ints, work: _Work) -> tuple[Ints, Ints]:
    """The burst of each job where those of too many GPU-hours are several, and what each was a part of."""
    gpus = min(plan.num_gpus, figures.NUM_NODES * figures.GPUS_PER_NODE)
    size = np.maximum(np.bincount(member), 1)
    gpu_s = np.bincount(member, work.run_s * work.num_gpus)
    num_parts = np.ceil(gpu_s / (3600 * figures.HEAVIEST_BURST_H * gpus)).astype(np.int64)
    num_parts = np.clip(num_parts, 1, size)
    first = np.cumsum(num_parts) - num_parts
    part = first[member] + _ranks(member) * num_parts[member] // size[member]
    return part, np.repeat(np.arange(len(num_parts)), num_parts)


def _ranks(member: Ints) -> Ints:
    """Each job's place within its burst, from 0."""
    order = np.argsort(member, kind="stable")
    ordered = member[order]
    rank = np.empty_like(member)
    rank[order] = np.arange(len(member)) - np.searchsorted(ordered, ordered)
    return rank


def _burst_times(
    rng: np.random.Generator, plan: Plan, shares: Floats, block: int, member: Ints, work: _Work
) -> tuple[Ints, Floats]:
    """When each burst begins, and the gap between its jobs; all of it within the block's span."""
    low, high = block_span(plan, shares, block)
    size = np.bincount(member)
    median, sigma = figures.BURST_GAP
    gap = np.minimum(median * np.exp(sigma * rng.standard_normal(len(size))), figures.LONGEST_GAP_S)
    gap = np.minimum(gap, (high - low) / np.maximum(size, 1))
    ends = np.minimum(np.array([block, block + 1]) * BLOCK, plan.num_jobs) / plan.num_jobs
    # the heaviest bursts keep apart, as users would not all begin their largest work at once
    u = ends[0] + np.diff(ends) * _spread_evenly(
        rng, np.bincount(member, work.run_s * work.num_gpus)
    )
    start = np.floor(_moments(plan, shares, u)).astype(np.int64)
    latest = high - np.ceil(gap * size).astype(np.int64)
    return np.maximum(np.minimum(start, latest), low), gap


def _dispatch_s(rng: np.random.Generator, num: int) -> Ints:
    seconds, chances = zip(*figures.DISPATCH_S, strict=True)
    found = np.minimum(np.searchsorted(np.cumsum(chances), rng.random(num)), len(seconds) - 1)
    return np.array(seconds, dtype=np.int64)[found]


def _turns(plan: Plan, work: _Work, klass: Ints, member: Ints, rank: Ints) -> Floats:
    """Seconds from a burst's start until its user's limit lets a job begin."""
    gpus = min(plan.num_gpus, figures.NUM_NODES * figures.GPUS_PER_NODE)
    limits = [gpus * figures.USER_LIMIT[name] for name in figures.CLASSES]
    limit = np.maximum(np.array(limits, dtype=np.int64), plan.spec.gpus_per_node)[klass]
    mean_run = np.bincount(member, work.run_s) / np.maximum(np.bincount(member), 1)
    turn: Floats = (rank * work.num_gpus // limit) * mean_run[member]
    return turn


def _users(rng: np.random.Generator, plan: Plan, taste: Floats) -> Ints:
    """A user for each burst: few are very active, and each tends to ask for the same things."""
    num = plan.spec.num_users
    activity = np.cumsum(np.arange(1, num + 1) ** -figures.ACTIVITY_EXPONENT)
    drawn = np.searchsorted(activity / activity[-1], rng.random(len(taste)))
    drawn = np.minimum(drawn, num - 1)
    habit = generator(plan, TASTES).random(num)
    user = np.empty_like(drawn)
    by_habit = np.argsort(habit[drawn] + 0.1 * rng.random(len(drawn)), kind="stable")
    user[np.argsort(taste, kind="stable")] = drawn[by_habit]
    return user
