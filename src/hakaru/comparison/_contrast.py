"""The contrasts that the AAIC paper draws, in sentences made of computed numbers.

The paper sets its cluster against classic ones by the share of jobs on a single GPU or processor, the
accuracy of walltime requests, the sign of the correlation of size and run time, and arrivals; waits
stand beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hakaru.comparison._compare import Comparison
from hakaru.reference.metrics import Cell
from hakaru.reference.published import Published

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SAME_WITHIN = 0.05
NEITHER = "neither weak nor strong scaling"
SAME = frozenset(("the same", "about the same", "the same sign", "no sign in either"))


@dataclass(frozen=True)
class Subject:
    """The metrics it is made of, how one cluster is told, how two are judged number by number."""

    name: str
    metrics: tuple[str, ...]
    say: Callable[[Sequence[Cell], str, str], str]
    judge: Callable[[Cell, Cell], str]
    by: tuple[str, ...] = ()

    def published(self, figure: Published) -> str:
        """A published figure as it stands beside the sentences."""
        told = f"{figure.cluster} {shown_published(figure)}"
        if self.metrics[0] == "spearman_size_run":
            told += f", {scaling(Cell(figure.value))}"
        return told


@dataclass(frozen=True)
class Contrast:
    """Sentences on one subject, the published figures beside them, and whether the clusters differ in it."""

    subject: Subject
    sentences: list[str]
    published: list[Published]
    differs: bool


def shown(value: float, unit: str) -> str:
    """A number as a person reads it."""
    if unit == "share":
        return f"{value * 100:.1f} %"
    if unit == "s":
        return _duration(value)
    if unit == "correlation":
        return f"{value:.3f}".replace("-", "−")
    if unit == "ratio":
        return f"{value:.2f}"
    if unit == "hour of day":
        return f"{value:02.0f}:00"
    if unit == "weekday":
        return WEEKDAYS[int(value)]
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def shown_published(figure: Published) -> str:
    """With the source's own bound: <, > or ~ (about)."""
    return figure.bound + shown(figure.value, figure.unit)


def contrasts(comparison: Comparison) -> list[Contrast]:
    """What sets the first cluster apart from each of the others; what differs comes first."""
    subjects = [s for s in SUBJECTS if all(comparison.line(metric) for metric in s.metrics)]
    told = [_contrast(comparison, subject) for subject in subjects]
    return sorted((each for each in told if each.sentences), key=lambda each: not each.differs)


def _contrast(comparison: Comparison, subject: Subject) -> Contrast:
    line = comparison.line(subject.metrics[0])
    told = _sentences(comparison, subject)
    return Contrast(
        subject=subject,
        sentences=sorted(told, key=lambda sentence: not told[sentence]),
        published=[*(line.published.values() if line else ())],
        differs=any(told.values()),
    )


def _sentences(comparison: Comparison, subject: Subject) -> dict[str, bool]:
    """One on each of the others, and whether it differs; a cluster with an unknown number has none."""
    cells = {name: _cells(comparison, subject, name) for name in comparison.clusters}
    known = [name for name in cells if all(cell.value is not None for cell in cells[name])]
    phrases = {name: _phrase(comparison, subject, name, cells[name]) for name in known}
    first, *others = comparison.clusters
    if first not in known:
        return {}
    pairs = [other for other in others if other in known]
    if not pairs:
        return {f"{phrases[first]}.": False}
    judged = {other: _verdicts(subject, cells[first], cells[other]) for other in pairs}
    return {
        f"{phrases[first]}; {phrases[other]}{_told(subject, verdicts)}.": not SAME.issuperset(
            verdicts
        )
        for other, verdicts in judged.items()
    }


def _cells(comparison: Comparison, subject: Subject, cluster: str) -> list[Cell]:
    found = [comparison.cell(metric, cluster) for metric in subject.metrics]
    return [cell for cell in found if cell is not None]


def _phrase(comparison: Comparison, subject: Subject, name: str, cells: Sequence[Cell]) -> str:
    """What is so of one cluster, how many jobs it rests on, and what must be said beside it."""
    line = comparison.line(subject.metrics[0])
    told = subject.say(cells, comparison.units[name], line.jobs if line else "jobs")
    beside = []
    if (counted := cells[0].counted) and counted[0] < counted[1]:
        beside.append(f"{counted[0]:,} of {counted[1]:,} jobs")
    beside += [cells[0].caveat] if cells[0].caveat else []
    return f"{comparison.name(name)}: {told}" + (f" ({'; '.join(beside)})" if beside else "")


def _verdicts(subject: Subject, first: Sequence[Cell], other: Sequence[Cell]) -> list[str]:
    return [subject.judge(x, y) for x, y in zip(first, other, strict=True)]


def _told(subject: Subject, verdicts: Sequence[str]) -> str:
    if not subject.by:
        return f": {verdicts[0]}"
    return ": " + ", ".join(f"{v} by the {by}" for v, by in zip(verdicts, subject.by, strict=True))


def times(how: str, more: str, less: str) -> Callable[[Cell, Cell], str]:
    """A judge that tells the first number as a multiple of the second."""

    def judge(x: Cell, y: Cell) -> str:
        assert x.value is not None and y.value is not None
        if x.value == y.value:
            return "the same"
        if x.value <= 0 or y.value <= 0:
            return more if x.value > y.value else less
        ratio = x.value / y.value
        same = abs(ratio - 1) < SAME_WITHIN
        return "about the same" if same else f"{_factor(ratio)} as {how}"

    return judge


def _signs(x: Cell, y: Cell) -> str:
    a, b = scaling(x), scaling(y)
    if a == b:
        return "the same sign" if a != NEITHER else "no sign in either"
    return "opposite signs" if NEITHER not in (a, b) else "only one has a sign"


def scaling(cell: Cell) -> str:
    """The reading of the sign: an interval that holds 0 is neither."""
    assert cell.value is not None
    low = cell.value if cell.low is None else cell.low
    high = cell.value if cell.high is None else cell.high
    return "weak scaling" if low > 0 else "strong scaling" if high < 0 else NEITHER


def _factor(ratio: float) -> str:
    if ratio < 0.1:
        return f"1/{1 / ratio:,.0f}"
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.{1 if ratio >= 1 else 2}f} times"


def _duration(seconds: float) -> str:
    for size, name in ((172800, "d"), (7200, "h"), (120, "min")):
        if abs(seconds) >= size:
            return f"{seconds / {'d': 86400, 'h': 3600, 'min': 60}[name]:,.1f} {name}"
    return f"{seconds:,.1f} s" if seconds != int(seconds) else f"{seconds:,.0f} s"


def _value(cell: Cell, unit: str) -> str:
    assert cell.value is not None
    return shown(cell.value, unit)


def _say_single(cells: Sequence[Cell], unit: str, jobs: str) -> str:
    one = "one GPU" if unit == "gpu" else "one processor"
    return f"{_value(cells[0], 'share')} of {jobs} use {one}"


def _say_requests(cells: Sequence[Cell], unit: str, jobs: str) -> str:
    mean, median = (_value(cell, "share") for cell in cells)
    return f"{jobs} run for {mean} (mean) and {median} (median) of the time they ask for"


def _say_maximum(cells: Sequence[Cell], unit: str, jobs: str) -> str:
    return f"{_value(cells[0], 'share')} of {jobs} ask for their queue's maximum"


def _say_scaling(cells: Sequence[Cell], unit: str, jobs: str) -> str:
    cell = cells[0]
    within = ""
    if cell.low is not None and cell.high is not None:
        ends = [shown(end, "correlation") for end in (cell.low, cell.high)]
        within = f", 95 % of samples between {' and '.join(ends)}"
    return f"{scaling(cell)} of {jobs} (Spearman {_value(cell, 'correlation')}{within})"


def _say_week(cells: Sequence[Cell], unit: str, jobs: str) -> str:
    return f"the busiest weekday has {_value(cells[0], 'ratio')} times the jobs of the quietest"


def _say_gaps(cells: Sequence[Cell], unit: str, jobs: str) -> str:
    return f"{_value(cells[0], 's')} between submissions (median)"


def _say_run(cells: Sequence[Cell], unit: str, jobs: str) -> str:
    median, mean = (_value(cell, "s") for cell in cells)
    return f"{jobs} run for {median} (median) and {mean} (mean)"


def _say_ends(cells: Sequence[Cell], unit: str, jobs: str) -> str:
    return f"{_value(cells[0], 'share')} of the jobs that ended completed"


def _say_use(cells: Sequence[Cell], unit: str, jobs: str) -> str:
    return f"jobs hold {_value(cells[0], 'share')} of the machine"


def _say_wait(cells: Sequence[Cell], unit: str, jobs: str) -> str:
    median, mean = (_value(cell, "s") for cell in cells)
    return f"{jobs} wait for {median} (median) and {mean} (mean)"


AS_MANY = times("many", "more", "fewer")
AS_ACCURATE = times("accurate", "more accurate", "less accurate")
AS_UNEVEN = times("uneven", "more uneven", "less uneven")
AS_LONG = times("long", "longer", "shorter")
AS_FULL = times("full", "fuller", "emptier")

SUBJECTS = (
    Subject("Single PE", ("share_single_pe",), _say_single, AS_MANY),
    Subject("Requests", ("wra_mean", "wra_median"), _say_requests, AS_ACCURATE, ("mean", "median")),
    Subject("Maximum", ("share_at_max",), _say_maximum, AS_MANY),
    Subject("Scaling", ("spearman_size_run",), _say_scaling, _signs),
    Subject("Week", ("weekday_peak_ratio",), _say_week, AS_UNEVEN),
    Subject("Arrivals", ("interarrival_median_s",), _say_gaps, AS_LONG),
    Subject("Run time", ("run_median_s", "run_mean_s"), _say_run, AS_LONG, ("median", "mean")),
    Subject("Wait", ("wait_median_s", "wait_mean_s"), _say_wait, AS_LONG, ("median", "mean")),
    Subject("Ends", ("share_completed",), _say_ends, AS_MANY),
    Subject("Utilisation", ("utilisation_mean",), _say_use, AS_FULL),
)
