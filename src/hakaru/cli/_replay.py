"""How far a replay is from the recorded waits, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hakaru.cli._schedule import as_times
from hakaru.cli._table import Column, Line, table_lines, wrapped
from hakaru.sim.words import decimal, duration, share

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.sim import Schedule
    from hakaru.sim.naive import Score
    from hakaru.sim.replay import Known, Month

UNKNOWN_POLICY = (
    "The log does not say by which rules its jobs were scheduled, nor who was held back by hand: the "
    "replay is one possible reading of it, and a what-if is no surer than this comparison."
)
NOT_PROOF = (
    "The log can reproduce a month whose recorded jobs fit the machine; how close the replay comes to their "
    "waits is another matter."
)
WHY_OFF = (
    "A recorded wait holds what no replay of the log knows: the scheduler's own pace (seconds, and all there "
    "is where the machine is not full), holds, dependencies, reservations, and limits that the log does not "
    "tell."
)
NAIVE = (
    "Naive: the median wait of the user's last 20 jobs that had begun before this one was submitted; without "
    "any, of the queue's, then of the whole log's. It predicts waits, and says nothing of other rules or "
    "machines."
)
PREDICTORS = {"replay": "the replay", "naive": "naive: the user's recent median"}
MEASURES = {
    "mean_off_s": "mean of a month off by",
    "p95_off_s": "p95 of a month off by",
    "months_within": "months within 25 %",
    "share_within_5min": "within 5 min",
    "share_within_twice": "within a factor of 2",
    "rank_correlation": "rank correlation",
}
IN_A_WORD = {"yes": "fits", "partly": "a little over", "no": "does not fit"}
WORDS = {
    "yes": "months the log can reproduce",
    "partly": "months the log can nearly reproduce",
    "no": "months the log cannot reproduce",
}


def replay_lines(
    schedule: Schedule, zone: str, width: int, date_notes: Sequence[str] = ()
) -> Iterator[Line]:
    """Recorded beside simulated waits: of all jobs, by queue, size and month; then what to make of it.

    Where the log cannot reproduce some months, the groups are of the others. `date_notes` stand beneath the
    months.
    """
    from hakaru.sim.replay import Known, differences, months_of, trusted_jobs

    months = months_of(schedule, zone)
    yield "The replay beside the record", "bold"
    yield "", ""
    if not months:
        yield "no job can be compared with the log", ""
        return
    keep = trusted_jobs(schedule, months, zone)
    whole, trusted = differences(schedule), differences(schedule, keep=keep)
    yield from _table(_named(whole, trusted) if keep.any() else whole, width)
    if keep.any() and not keep.all():
        yield "by queue, size and class: jobs of months the log can reproduce", ""
        yield "", ""
    for by in ("queue", "size", "class"):
        yield from _table(differences(schedule, by, zone, keep if keep.any() else None), width)
    by_month = differences(schedule, "month", zone)
    record = Column("record", [IN_A_WORD[month.trusted] for month in months], right=False)
    yield from _table(by_month, width, _off(by_month), record)
    for note in date_notes:
        yield from ((text, "bold") for text in wrapped(note, width))
    yield from trust_lines(months, width)
    yield from fit_lines(by_month, months, Known.of(schedule, zone, keep), width)
    yield from naive_lines(schedule, zone, keep if keep.any() else None, width)


def naive_lines(schedule: Schedule, zone: str, keep: Any, width: int) -> Iterator[Line]:
    """The replay's error beside that of a naive prediction, and which of the two is nearer to the record."""
    from hakaru.sim.naive import better_naive, scores

    found = scores(schedule, zone, keep)
    if not found:
        return
    yield "", ""
    yield from table_lines(_scores(found), 1, width)
    for text in wrapped(_judged(found[0], better_naive(*found)), width, ""):
        yield text, "bold"
    for text in wrapped(NAIVE, width, ""):
        yield text, "dim"


def _scores(found: Sequence[Score]) -> list[Column]:
    return [
        Column("predicted by", [PREDICTORS[score.name] for score in found], right=False),
        Column(MEASURES["mean_off_s"], [duration(score.mean_off_s) for score in found]),
        Column(MEASURES["p95_off_s"], [duration(score.p95_off_s) for score in found]),
        Column(
            MEASURES["months_within"],
            [f"{score.months_within} of {score.num_months}" for score in found],
        ),
        *(
            Column(MEASURES[name], [share(getattr(score, name)) for score in found])
            for name in ("share_within_5min", "share_within_twice")
        ),
        Column(MEASURES["rank_correlation"], [decimal(score.rank_correlation) for score in found]),
    ]


def _judged(replay: Score, better: Sequence[str]) -> str:
    """Which is nearer to the record, plainly."""
    if not better:
        return "The naive prediction is in no measure nearer to the record than the replay."
    named = ", ".join(MEASURES[name] for name in better)
    least = "mean_off_s" in better
    verdict = (
        "The naive prediction is better than the replay"
        if least
        else (
            "The replay is better by the mean of a month, but the naive prediction is nearer to the record"
        )
    )
    return f"{verdict} in {len(better)} of {len(MEASURES)} measures: {named}."


def trust_lines(months: Sequence[Month], width: int) -> Iterator[Line]:
    """The months by whether the log can reproduce them, each that it cannot with its reason."""
    for trusted, words in WORDS.items():
        found = [month for month in months if month.trusted == trusted]
        if found:
            yield f"{words}: {_ranges(months, found)}", "bold"
            for month in found if trusted != "yes" else ():
                for text in wrapped(f"  {month.name}: {month.why}", width, "    "):
                    yield text, "dim"
    for text in wrapped(NOT_PROOF, width, ""):
        yield text, ""


def fit_lines(
    by_month: pa.Table, months: Sequence[Month], known: Known, width: int
) -> Iterator[Line]:
    """Which months the log can reproduce within which bound, and why not."""
    from hakaru.sim.notation import counted
    from hakaru.sim.replay import BOUNDS, off_by

    fit: dict[str, list[Month]] = {words: [] for _, words in BOUNDS}
    for month, row in zip(months, by_month.to_pylist(), strict=True):
        off = off_by(row["recorded_mean_s"], row["simulated_mean_s"])
        if month.trusted == "yes" and off is not None:
            fit[next(words for bound, words in BOUNDS if abs(off) <= bound)].append(month)
    errors, worst = known.errors(), known.worst_month()
    if worst is None:
        return
    parts = [
        f"{words} {_ranges(months, found) if found else 'none'}" for words, found in fit.items()
    ]
    name, num_jobs, recorded, simulated = worst
    texts = [
        "Months the log can reproduce, by how far the replayed mean wait is from the recorded one: "
        f"{'; '.join(parts)}. Over the {counted(int(known.keep.sum()))} compared, the mean of a month is off "
        f"by {duration(errors['mean_wait_s'])} on average, the 95th percentile by "
        f"{duration(errors['p95_wait_s'])} (each month counts by its number of jobs); the mean is off most "
        f"in {name} ({counted(num_jobs)}): recorded {duration(recorded)}, replayed {duration(simulated)}.",
        WHY_OFF,
        UNKNOWN_POLICY,
    ]
    for text in texts:
        for line in wrapped(text, width, ""):
            yield line, ""


def _off(by_month: pa.Table) -> Column:
    from hakaru.sim.replay import off_by

    rows = by_month.to_pylist()
    parts = [off_by(row["recorded_mean_s"], row["simulated_mean_s"]) for row in rows]
    return Column("mean_off_by", [_part(part) for part in parts])


def _part(part: float | None) -> str:
    return share(part, True) if part is None or part < 10 else f"{part + 1:,.0f} times"


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
    return both.set_column(0, "jobs", pa.array(["all", "of months the log can reproduce"]))


def _table(table: pa.Table, width: int, *more: Column) -> Iterator[Line]:
    yield from table_lines([*as_times(table), *more], 1, width)
    yield "", ""
