"""Two runs compared: what is sure, what matters, and what cannot be compared."""

from __future__ import annotations

import pytest

from hakaru.lake import Lake
from hakaru.measure.compare import Row, compare_runs, rank
from hakaru.measure.record import Measurement, Run
from hakaru.measure.store import save
from hakaru.measure.verdict import Verdict
from tests._cli import hakaru
from tests.measure._runs import measured, run_of

STEADY = (100.0, 100.1, 99.9, 100.05, 99.95, 100.0)


def times(factor: float, samples: tuple[float, ...] = STEADY) -> Measurement:
    return measured(*(factor * each for each in samples))


def compared(before: Measurement, after: Measurement) -> Row:
    (row,) = compare_runs(run_of(before), run_of(after, id="r2"))
    return row


@pytest.mark.parametrize(
    ("factor", "change"),
    [(0.8, "worse"), (1.2, "better"), (1.0005, "no sure change"), (1.005, "the same"),
     (0.995, "the same"), (0.98, "worse")],
)  # fmt: skip
def test_a_change_is_sure_and_large_enough_to_matter(factor: float, change: str) -> None:
    row = compared(times(1.0), times(factor))
    assert (row.change, row.before_ends) == (change, (99.9, 100.1))


def test_wide_intervals_do_not_make_two_runs_the_same() -> None:
    wide = times(1.0, (60.0, 80.0, 100.0, 120.0, 140.0))
    assert compared(wide, times(0.9)).change == "no sure change"


@pytest.mark.parametrize("samples", [(100.0,), (100.0, 100.1, 100.2, 100.3)])
def test_a_few_repetitions_tell_no_change(samples: tuple[float, ...]) -> None:
    """A single imported value has an interval of no width, which is not a sure one."""
    for row in (
        compared(times(1.0, samples), times(0.5)),
        compared(times(0.5), times(1.0, samples)),
    ):
        assert row.change == "too few independent repetitions to tell" and row.ratio is not None
    assert compared(times(1.0, samples), times(0.5)).before_ends is None


def test_a_number_that_does_not_count_says_so_and_comes_before_what_is_better() -> None:
    gone = times(1.0).judged(Verdict.FAILED, "killed")
    row = compared(times(1.0), gone)
    assert (row.change, row.after, row.ratio) == ("failed after", None, None)
    assert compared(gone, times(1.0)).change == "failed before"
    assert rank("worse") < rank("failed after") < rank("better") < rank("no sure change")


def test_the_terminal_counts_what_could_not_be_compared(lake: Lake) -> None:
    save(lake, Run("r1", "c", times(1.0).started_at, (times(1.0, (1.0,)),)))
    save(lake, Run("r2", "c", times(1.0).started_at, (times(1.0),)))
    output = hakaru("bench", "compare", "r1", "r2", "-w", lake.workspace).output
    first = "0 worse, 0 better, of 0 compared; 1 with too few independent repetitions to tell"
    assert output.splitlines()[0] == first
