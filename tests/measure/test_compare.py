"""Two runs compared: what is sure, what matters, and what cannot be compared."""

from __future__ import annotations

import json
from dataclasses import replace

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


def test_numbers_of_other_units_are_not_compared() -> None:
    before, after = measured(*[100.0] * 6), measured(*[0.1] * 6, unit="TFLOP/s")
    rows = compare_runs(run_of(before), run_of(after, id="r2"))
    assert [(row.change, row.unit) for row in rows] == [
        ("only before", "GFLOP/s"), ("only after", "TFLOP/s"),
    ]  # fmt: skip


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


@pytest.fixture
def large(lake: Lake) -> Lake:
    """Two runs of 1,030 cards: two are worse, one is better, one is gone, and one failed."""
    rates = {3: 0.9, 4: 0.8, 5: 1.2}
    before = [cards(at) for at in range(1030)]
    after = [cards(at, rates.get(at, 1.0)) for at in range(1029)]
    after[9] = after[9].judged(Verdict.FAILED, "killed")
    save(lake, run_of(*before, id="r1"))
    save(lake, run_of(*after, id="r2"))
    return lake


def cards(at: int, factor: float = 1.0) -> Measurement:
    return replace(times(factor), device=f"cuda:{at}")


def test_of_many_rows_those_that_differ_are_listed(large: Lake) -> None:
    lines = hakaru("bench", "compare", "r1", "r2", "-w", large.workspace).output.splitlines()
    assert lines[0] == "2 worse, 1 better, of 1,028 compared"
    assert [line.split()[-1] for line in lines[3:-2]] == ["worse", "worse", "after", "better"]
    assert "cuda:4 " in lines[3], "the largest change first"
    assert lines[-2:] == [
        "Not listed: 1,025 no sure change; --all lists every row.",
        "only in r1: 1: gemm fp64 size 512 on n1/cuda:1029",
    ]


def test_all_rows_are_listed_where_they_are_asked_for(large: Lake) -> None:
    words = ("bench", "compare", "r1", "r2", "-w", large.workspace)
    lines = hakaru(*words, "--all").output.splitlines()
    assert len(lines) == 1 + 2 + 1029 + 1 and "Not listed" not in lines[-2]
    assert len(json.loads(hakaru(*words, "--format", "json").output)["rows"]) == 1030


def test_a_change_of_everything_is_counted_and_its_largest_rows_listed(lake: Lake) -> None:
    save(lake, run_of(*map(cards, range(60)), id="r1"))
    save(lake, run_of(*(cards(at, 0.9 - at / 1000) for at in range(60)), id="r2"))
    lines = hakaru("bench", "compare", "r1", "r2", "-w", lake.workspace).output.splitlines()
    assert (lines[0], "cuda:59 " in lines[3]) == ("60 worse, 0 better, of 60 compared", True)
    assert len(lines) == 1 + 2 + 40 + 1
    assert lines[-1] == "Not listed: 20 worse; --all lists every row."


def test_a_run_is_not_compared_with_itself(lake: Lake) -> None:
    save(lake, run_of(times(1.0), id="r1", label="before"))
    done = hakaru("bench", "compare", "before", "-w", lake.workspace)
    assert done.exit_code == 1 and "'before' and 'latest' are both run r1" in done.output
