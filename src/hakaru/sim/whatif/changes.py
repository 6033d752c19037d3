"""What a variant makes of the jobs: requests that are accurate or scaled, queues with limits, more load.

Every function gives the changed workload and a note that says what was done, with numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.errors import HakaruError
from hakaru.sim.notation import counted
from hakaru.sim.whatif.intervals import WEEK_S

if TYPE_CHECKING:
    from hakaru.settings import Queue
    from hakaru.sim.queues import QueueRule
    from hakaru.sim.whatif.scenario import AccurateRequests
    from hakaru.sim.workload import Workload

Changed = tuple["Workload", str]
NEAR = 0.01  # of the whole load: near enough to what was asked for


def make_accurate(workload: Workload, spec: AccurateRequests, seed: int) -> Changed:
    """Some users ask for little more than they need; never for more than they did."""
    num_users = len(workload.names["user"])
    num = round(num_users * spec.users / 100)
    chosen = np.zeros(num_users + 1, bool)  # the last place is that of unknown users, code -1
    chosen[np.random.default_rng(seed).permutation(num_users)[:num]] = True
    needed = np.maximum(np.ceil(workload.run * spec.factor), spec.at_least_min * 60)
    shorter = chosen[workload.user] & (needed < workload.request)
    request = np.where(shorter, needed, workload.request).astype(np.int64)
    note = (
        f"{num:,} of {counted(num_users, 'user')} (seed {seed}) {'asks' if num == 1 else 'ask'} for "
        f"{spec.factor:g} times what their jobs run, at least {spec.at_least_min:g} min, where that is less "
        "than they asked: "
        f"{counted(int(shorter.sum()))}"
    )
    return replace(workload, request=request), note


def scale_requests(workload: Workload, factor: float) -> Changed:
    """All requests times a number; a request below the run time would end the job, so it stops there."""
    scaled = np.round(workload.request * factor).astype(np.int64)
    held = scaled < workload.run
    note = f"requests are scaled by {factor:g}"
    note += f"; {held.sum():,} that would fall below the run time stay at it" if held.any() else ""
    return replace(workload, request=np.maximum(scaled, workload.run)), note


def widen_queue(workload: Workload, name: str, rule: QueueRule, before: Queue | None) -> Changed:
    """Jobs of other queues come over that the old limit kept out and the new one lets in.

    A job that the old limit had let in was elsewhere by its user's choice, and stays there.
    """
    names = workload.names["queue"]
    froms = [names.index(each) for each in (rule.takes_from or names) if each != name]
    most_s = (rule.max_walltime_h or np.inf) * 3600
    most = rule.max_gpus or (before.max_gpus if before else None) or np.inf
    known = (before.max_walltime_h, before.max_gpus) if before else (None, None)
    was_in = (workload.request <= (known[0] or -1) * 3600) & (workload.pes <= (known[1] or np.inf))
    fits = (workload.request <= most_s) & (workload.pes <= most) & ~was_in
    one_node = (workload.num_nodes == 1) | (before is None or before.max_nodes != 1)
    moves = np.isin(workload.queue, froms) & fits & one_node
    queue = np.where(moves, names.index(name), workload.queue)
    known_h = f", which its limit of {known[0]:g} h kept out" if known[0] else ""
    note = f"queue {name} takes over {counted(int(moves.sum()))} of other queues{known_h}"
    return replace(workload, queue=queue), note


def grow_load(workload: Workload, factor: float, seed: int) -> Changed:
    """Users drawn with all their jobs, moved round the log by whole weeks, so that hours and weekdays stay.

    A copy is a user of its own, in the same account. Below 1, users are left out instead.
    """
    area = workload.run.astype(float) * workload.pes
    num_users = len(workload.names["user"])
    known = workload.user >= 0
    load = np.bincount(workload.user[known], weights=area[known], minlength=num_users)
    random = np.random.default_rng(seed)
    target, total = abs(factor - 1) * area.sum(), area.sum()
    if factor < 1:
        gone = _drawn(load, target, total, random, again=False)
        kept = ~np.isin(workload.user, gone)
        are = "is" if len(gone) == 1 else "are"
        note = f"{counted(len(gone), 'user')} {are} left out (seed {seed})"
        return _told(workload.take(kept, "of users left out to lower the load"), note, total)
    if factor > 1:
        _check_weeks(workload)
    copies = _drawn(load, target, total, random, again=True)
    return _told(
        _with_copies(workload, copies, random),
        f"{counted(len(copies), 'user')} drawn anew (seed {seed}), moved by whole weeks",
        total,
    )


def _check_weeks(workload: Workload) -> None:
    """In fewer than two weeks a copy could only stand where its original stands."""
    span = int(np.ptp(workload.submit)) if len(workload) else 0
    if span < 2 * WEEK_S:
        raise HakaruError(
            f"load above 1 moves copies of users by whole weeks, and the log spans {span / 86400:.1f} days: "
            "give a log of two weeks at least, or leave load out"
        )


def _drawn(load: Any, target: float, total: float, random: Any, again: bool) -> list[int]:
    """Users at random until the load is met; one who would take it too far is passed over."""
    chosen: list[int] = []
    reached = 0.0
    for _ in range(100 if again else 1):
        for user in random.permutation(len(load)).tolist():
            if reached + load[user] <= target + NEAR * total and load[user] > 0:
                chosen.append(user)
                reached += load[user]
            if reached >= target - NEAR * total / 10:
                return chosen
        if not again:
            break
    return chosen


def _with_copies(workload: Workload, copies: list[int], random: Any) -> Workload:
    if not copies:
        return workload
    order = np.argsort(workload.user, kind="stable")
    begin = np.searchsorted(workload.user[order], np.arange(len(workload.names["user"]) + 1))
    rows = [order[begin[user] : begin[user + 1]] for user in copies]
    first = int(workload.submit.min())
    num_weeks = int(workload.submit.max() - first) // WEEK_S
    shifts = random.integers(1, num_weeks, size=len(copies))
    moved = [
        first + (workload.submit[each] - first + shift * WEEK_S) % (num_weeks * WEEK_S)
        for each, shift in zip(rows, shifts, strict=True)
    ]
    users = np.repeat(np.arange(len(copies)), [len(each) for each in rows])
    submit = np.concatenate([workload.submit, *moved])
    grown = workload.take(np.concatenate([np.arange(len(workload)), *rows]))
    names = workload.names["user"]
    new = tuple(f"{names[user]} (copy {number})" for number, user in enumerate(copies, 1))
    grown = replace(
        grown,
        submit=submit,
        user=np.concatenate([workload.user, users + len(names)]),
        names=dict(workload.names) | {"user": (*names, *new)},
    )
    return grown.take(np.argsort(submit, kind="stable"))


def _told(workload: Workload, note: str, before: float) -> Changed:
    now = float((workload.run.astype(float) * workload.pes).sum())
    return workload, f"{note}: the load is {now / before if before else 1:.3f} times the log's"


def matters(name: str, points: Mapping[str, float], limits: Any, low_queues: Any) -> bool:
    """Whether the scheduler treats the queue in any way of its own."""
    of_queue = any(limit.queue == name or limit.scope == "queue" for limit in limits)
    return bool(points.get(name) or of_queue or name in low_queues)
