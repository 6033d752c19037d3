"""How far a replay is from the recorded waits, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hakaru.cli._schedule import as_times
from hakaru.cli._table import Column, Line, table_lines, wrapped

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.sim import Schedule
    from hakaru.sim.replay import Month

UNKNOWN_POLICY = (
    "The log does not say by which rules its jobs were scheduled, nor who was held back by hand: the "
    "replay is one possible reading of it, and a what-if is no surer than this comparison."
)
WORDS = {"yes": "can be trusted", "partly": "trust with care", "no": "do not trust"}


def replay_lines(schedule: Schedule, zone: str, width: int) -> Iterator[Line]:
    """Recorded beside simulated waits: of all jobs, by queue, size and month; then what to trust.

    Where some months contradict the machine, the groups are of the others.
    """
    from hakaru.sim.replay import differences, months_of, trusted_jobs

    months = months_of(schedule, zone)
    yield "The replay beside the record", "bold"
    yield "", ""
    keep = trusted_jobs(schedule, months, zone)
    whole, trusted = differences(schedule), differences(schedule, keep=keep)
    yield from _table(_named(whole, trusted) if keep.any() else whole, width)
    if keep.any() and not keep.all():
        yield "by queue, size and class: jobs of months that can be trusted", ""
        yield "", ""
    for by in ("queue", "size", "class"):
        yield from _table(differences(schedule, by, zone, keep if keep.any() else None), width)
    trust = Column("trust", [month.trusted for month in months], right=False)
    yield from _table(differences(schedule, "month", zone), width, trust)
    yield from trust_lines(months, width)


def trust_lines(months: Sequence[Month], width: int) -> Iterator[Line]:
    """The months by whether they can be trusted, each that cannot with its reason."""
    for trusted, words in WORDS.items():
        found = [month for month in months if month.trusted == trusted]
        if found:
            yield f"{words}: {_ranges(months, found)}", "bold"
            for month in found if trusted != "yes" else ():
                for text in wrapped(f"  {month.name}: {month.why}", width, "    "):
                    yield text, "dim"
    for text in wrapped(UNKNOWN_POLICY, width, ""):
        yield text, ""


def _ranges(months: Sequence[Month], found: Sequence[Month]) -> str:
    """`2018-07 to 2018-10, 2018-12`."""
    runs: list[list[int]] = []
    for place in (months.index(month) for month in found):
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    names = [(months[run[0]].name, months[run[-1]].name) for run in runs]
    return ", ".join(first if first == last else f"{first} to {last}" for first, last in names)


def _named(whole: pa.Table, trusted: pa.Table) -> pa.Table:
    import pyarrow as pa

    both = pa.concat_tables([whole, trusted], promote_options="permissive")
    return both.set_column(0, "jobs", pa.array(["all", "of months that can be trusted"]))


def _table(table: pa.Table, width: int, *more: Column) -> Iterator[Line]:
    yield from table_lines([*as_times(table), *more], 1, width)
    yield "", ""
