"""Limits on what people may run or queue at once, and how the kernel is told of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from hakaru.errors import HakaruError
from hakaru.registry import hint
from hakaru.sim._records import LIMITS

if TYPE_CHECKING:
    from hakaru.sim.workload import Workload

SCOPES = ("all", "user", "account", "queue")
WHAT = ("running-jobs", "running-gpus", "queued-jobs")
LARGEST = 2**31 - 1
MOST_SHOWN = 6  # names of users, accounts and queues that an error lists


@dataclass(frozen=True)
class Limit:
    """At most `value` of `what` for each user, account or queue, or for all together.

    `queue` counts only the jobs of one queue; `only` holds for one person, account or queue;
    `hours` (from, to) for a part of the day on the site's clock, past midnight where from > to.
    """

    scope: Literal["all", "user", "account", "queue"]
    what: Literal["running-jobs", "running-gpus", "queued-jobs"]
    value: int
    queue: str | None = None
    only: str | None = None
    hours: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.scope not in SCOPES or self.what not in WHAT or self.value < 0:
            raise HakaruError(
                f"limit {self}: scope is one of {', '.join(SCOPES)}, what one of {', '.join(WHAT)}, "
                "and value is not negative"
            )
        if self.value > LARGEST:
            raise HakaruError(f"a limit is at most {LARGEST:,}, found {self.value:,}")
        if self.scope == "all" and self.only is not None:
            raise HakaruError(
                f"the scope all is everybody together and takes no name, found {self.only!r}: "
                "say user, account or queue"
            )
        if self.hours and not is_span(self.hours):
            raise HakaruError(
                f"hours are two from 0 to 24 that differ, found {self.hours}; without hours a limit "
                "holds all day"
            )


def is_span(hours: Sequence[int]) -> bool:
    """Whether they are a part of the day; from 24 to 0 is none, for both are midnight."""
    inside = len(hours) == 2 and all(0 <= hour <= 24 for hour in hours)
    return inside and hours[0] != hours[1] and tuple(hours) != (24, 0)


def rows_of(limits: Sequence[Limit], workload: Workload, zone: str) -> tuple[Any, Any, Any, int]:
    """The kernel's rows, since when each set of values holds, the values, and how many are counted."""
    rows = np.zeros(len(limits), LIMITS)
    sizes = {"all": 1} | {name: len(workload.names[name]) for name in SCOPES[1:]}
    num_counters = 0
    for row, limit in zip(rows, limits, strict=True):
        row["scope"] = SCOPES.index(limit.scope)
        row["what"] = WHAT.index(limit.what)
        row["queue"] = _code(workload, "queue", limit.queue)
        row["only"] = _code(workload, limit.scope, limit.only)
        row["base"] = num_counters
        num_counters += sizes[limit.scope]
    since = _moments(limits, workload, zone)
    # The first moment is long ago: until the next one, what held when the log began.
    moments = [int(workload.submit[0]) if len(workload) else 0, *since[1:]]
    values = np.array(
        [[_value(limit, moment, zone) for limit in limits] for moment in moments], np.int64
    )
    values = values.reshape(len(since), len(limits))
    # Nothing happens at a bound where all stays as it was, such as midnight for hours from 0 to 24.
    changes = np.append(True, (values[1:] != values[:-1]).any(axis=1))
    return rows, np.array(since, np.int64)[changes], values[changes], num_counters


def lanes_of(limits: Sequence[Limit], workload: Workload, weighted: bool = False) -> Any:
    """Jobs of one number are held or let go together by the limits on what runs; where priorities are
    weighted, they also have the same points for all but age."""
    running = [limit for limit in limits if limit.what != "queued-jobs"]
    alike = (workload.user, workload.pes, workload.queue, workload.qos) if weighted else ()
    return _together(running, workload, alike)


def doors_of(limits: Sequence[Limit], workload: Workload) -> Any:
    """Jobs of one number are held or let in together by the limits on what is queued; none without any."""
    gates = [limit for limit in limits if limit.what == "queued-jobs"]
    return _together(gates, workload) if gates else np.zeros(0, np.int64)


def _together(limits: Sequence[Limit], workload: Workload, alike: Iterable[Any] = ()) -> Any:
    codes = np.zeros(len(workload), np.int64)
    counted = (values for limit in limits for values in _counted_by(limit, workload))
    for values in chain(alike, counted):
        codes = codes * (values.max(initial=-1) + 2) + values + 1
        codes = np.unique(codes, return_inverse=True)[1]
    return codes


def _counted_by(limit: Limit, workload: Workload) -> Iterator[Any]:
    """What tells jobs apart to a limit: whose they are, -1 where it holds for none; and how many GPUs."""
    who = np.zeros_like(workload.user) if limit.scope == "all" else getattr(workload, limit.scope)
    if limit.queue is not None:
        who = np.where(workload.queue == _code(workload, "queue", limit.queue), who, -1)
    if limit.only is not None:
        who = np.where(who == _code(workload, limit.scope, limit.only), who, -1)
    yield who
    if limit.what == "running-gpus":
        yield np.where(who >= 0, workload.pes, -1)


def _code(workload: Workload, kind: str, name: str | None) -> int:
    if name is None:
        return -1
    names = workload.names.get(kind, ())
    if name not in names:
        raise HakaruError(
            f"a limit names the {kind} {name!r}, which no job has; {hint(name, names, MOST_SHOWN)}"
        )
    return names.index(name)


def _moments(limits: Sequence[Limit], workload: Workload, zone: str) -> list[int]:
    """When values may change: the hours' bounds on every day of the log and ten years of backlog."""
    hours = {hour % 24 for limit in limits if limit.hours for hour in limit.hours}
    if not hours or not len(workload):
        return [-(2**50)]
    clock = _clock(zone)
    first = datetime.fromtimestamp(int(workload.submit[0]), clock).replace(
        minute=0, second=0, microsecond=0
    )
    num_days = int(workload.submit[-1] - workload.submit[0]) // 86400 + 3660
    days = [first.replace(hour=0) + timedelta(days=day) for day in range(num_days)]
    bounds = sorted(int(day.replace(hour=hour).timestamp()) for day in days for hour in hours)
    return [-(2**50), *(moment for moment in bounds if moment > workload.submit[0])]


def _clock(zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise HakaruError(
            f"limits by hour need the site's time zone, found {zone!r}: use a name such as Asia/Tokyo"
        ) from None


def _value(limit: Limit, moment: int, zone: str) -> int:
    """The value that holds from a moment on; -1 for none."""
    if limit.hours is None:
        return limit.value
    hour = datetime.fromtimestamp(moment, ZoneInfo(zone)).hour
    begin, end = limit.hours
    inside = begin <= hour < end if begin <= end else hour >= begin or hour < end
    return limit.value if inside else -1
