"""Ways to train the same model on the same ranks: their speed, and whether they compute the same loss."""

from __future__ import annotations

from hakaru.figures.measure.sheet import Sheet
from hakaru.figures.measure.together import Timed, distinct, strategy_name, timed_of
from hakaru.figures.measure.view import Reading, RunView
from hakaru.measure.numbers import UNKNOWN, amount, counted, interval_text
from hakaru.measure.verdict import Verdict

MOST_SENTENCES = 6
HEADS = (
    ("Strategy", False), ("Model", False), ("Ranks", True), ("Throughput", True), ("95 % interval", True),
    ("Exposed communication", True), ("Loss against one process", False), ("Verdict", False),
)  # fmt: skip
NOTE = (
    "A loss agrees if it is that of one process on the same samples: within 1e-5 on processors and 1e-3 on "
    "cards, or as far as rounding alone moves it."
)


def strategies_sheet(view: RunView) -> Sheet | None:
    """The fastest first, for each model and number of ranks; None where none was compared."""
    found = timed_of(view, "strategies")
    if not found:
        return None
    ordered = sorted(
        found, key=lambda each: (each.model, each.ranks, -(each.value("throughput") or 0.0))
    )
    names, numbers = zip(*HEADS, strict=True)
    return Sheet("Strategies", names, numbers, tuple(_cells(each) for each in ordered), NOTE)


def strategies_sentences(view: RunView) -> list[str]:
    found = [each for each in timed_of(view, "strategies") if each.is_valid]
    return distinct((each.facts.text("verdict") for each in found), MOST_SENTENCES)


def _cells(each: Timed) -> tuple[str, ...]:
    rate, exposed = each.readings.get("throughput"), each.readings.get("exposed")
    return (
        _strategy(each), each.model, f"{each.ranks:,}", _amount(rate),
        (interval_text(rate.low, rate.high) if rate else "") or UNKNOWN, _amount(exposed),
        _agreement(each), each.verdict.value if each.verdict is Verdict.GOOD else _why(each),
    )  # fmt: skip


def _strategy(each: Timed) -> str:
    """With the micro-batches of a pipeline, also where they were searched."""
    name, micro = strategy_name(each.options), each.facts.whole("microbatches")
    if not micro or each.options.whole("microbatches"):
        return name
    return f"{name}, {counted(micro, 'micro-batch', 'micro-batches')}"


def _amount(each: Reading | None) -> str:
    return amount(each.median, each.unit) if each else UNKNOWN


def _agreement(each: Timed) -> str:
    gap = each.facts.number("loss_gap", -1e12)
    if gap is None:
        return UNKNOWN
    differs = each.verdict is Verdict.FAILED
    return f"{'differs' if differs else 'agrees'}, {abs(gap):.1e} apart" if gap else "equal"


def _why(each: Timed) -> str:
    bad = next(reading for reading in each.readings.values() if reading.verdict is each.verdict)
    return f"{bad.verdict}: {bad.reason[:200]}" if bad.reason else bad.verdict.value
