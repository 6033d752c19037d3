"""Short logs in the Standard Workload Format, which show little of their layout, and whose start is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.schema import CLUSTERS
from tests.conftest import put, utc
from tests.sources.swf._log import GOOD, jobs_of, read


@pytest.mark.parametrize(
    "starts",
    [
        ["3 0", "3 500"],  # a job that ran twice
        ["10 0", "20 1", "30 2", "40 3"],  # a burst of four, whose numbers have gaps
        ["9 5"] * 1,
    ],
)
def test_a_few_lines_do_not_make_another_layout(
    starts: list[str], lake: Lake, tmp_path: Path
) -> None:
    rest = GOOD.split(maxsplit=2)[2]
    summary = read(lake, tmp_path, *(f"{start} {rest}" for start in starts))
    assert (summary.upsert.num_new, summary.num_rejected) == (len(starts), 0)


def test_parts_of_a_whole_of_unknown_end_do_not_count_twice(lake: Lake, tmp_path: Path) -> None:
    whole = "1 0 5 100 4 -1 -1 4 200 -1 -1 1 1 -1 1 -1 -1 -1"
    part = "1 0 5 60 4 -1 -1 4 200 -1 3 1 1 -1 1 -1 -1 -1"
    summary = read(lake, tmp_path, whole, part)
    assert summary.num_rejected == 1
    assert [(job["run_s"], job["state"]) for job in jobs_of(lake)] == [(100.0, None)]


def test_the_processors_are_those_allocated(lake: Lake, tmp_path: Path) -> None:
    """Asked for 16, got 8: memory (kB a processor) counts for those it got; without any, as asked."""
    read(
        lake,
        tmp_path,
        "1 0 5 100 8 -1 -1 16 200 2048 1 1 1 -1 1 -1 -1 -1",
        "2 9 5 100 -1 -1 -1 16 200 2048 1 1 1 -1 1 -1 -1 -1",
    )
    assert [(job["num_cpus"], job["memory_mib"]) for job in jobs_of(lake)] == [
        (8, 16.0),
        (16, 32.0),
    ]


def test_a_start_for_a_header_without_one_replaces_nothing(lake: Lake, tmp_path: Path) -> None:
    assert read(lake, tmp_path, GOOD, start="2014-03-01", zone="UTC").warnings == []


def test_a_start_is_by_the_header_s_clock_before_the_site_s(lake: Lake, tmp_path: Path) -> None:
    """The site's zone, known from another log, counts where the header has none."""
    said = {"cluster": "c", "source": "aaic", "file": "f", "said_at": utc("2018-01-01T00:00:00")}
    put(lake, CLUSTERS.name, [said | {"facts": '{"zone": "Europe/Paris"}'}])
    read(lake, tmp_path, "; TimeZoneString: Asia/Tokyo", GOOD, start="2014-03-01")
    assert jobs_of(lake)[0]["submitted_at"] == utc("2014-02-28T15:02:10")
    other = Lake.create(tmp_path / "other")
    put(other, CLUSTERS.name, [said | {"facts": '{"zone": "Europe/Paris"}'}])
    read(other, tmp_path, GOOD, start="2014-03-01")
    assert jobs_of(other)[0]["submitted_at"] == utc("2014-02-28T23:02:10")


@pytest.mark.parametrize(
    ("odd", "problem"),
    [("1 2 3", "expected 18 columns"), ("status", "field 11 (status) is not one of -1 to 5")],
)
def test_half_of_the_lines_may_be_bad(odd: str, problem: str, lake: Lake, tmp_path: Path) -> None:
    """More are another layout, which is refused with the place where it was seen."""

    def log(num_bad: int) -> list[str]:
        good = [GOOD.replace("9 130", f"{n} {100 * n}", 1) for n in range(1, 11)]
        bad = [
            odd if odd[0].isdigit() else row.replace(" -1 1 1 1", " -1 77 1 1", 1) for row in good
        ]
        return bad[:num_bad] + good[num_bad:]

    assert read(lake, tmp_path, "; a remark", *log(5)).num_rejected == 5
    with pytest.raises(SourceError, match="not the Standard Workload Format") as caught:
        read(lake, tmp_path, "; a remark", *log(6))
    assert problem in str(caught.value) and "Line 2 reads" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        (8, "0.5", "field 8 (requested processors) is not a whole number"),
        (11, "0.5", "field 11 (status) is not a whole number"),
        (15, "1.5", "field 15 (queue) is not a whole number"),
        (4, "-2", "field 4 (run time) is negative, and not -1 for unknown"),
        (5, "-2", "field 5 (allocated processors) is negative, and not -1 for unknown"),
        (9, "-2", "field 9 (requested time) is negative, and not -1 for unknown"),
        (10, "-2", "field 10 (requested memory) is negative, and not -1 for unknown"),
        (15, "-2", "field 15 (queue) is negative, and not -1 for unknown"),
        (3, "1e11", "field 3 (wait time) is too large"),
        (10, "1e11", "field 10 (requested memory) is too large"),
        # what is not used need only be a number
        (6, "-2", None),
        (7, "1e11", None),
        (14, "-2", None),
        (18, "0.5", None),
    ],
)
def test_each_field_that_is_used_is_checked(
    field: int, value: str, reason: str | None, lake: Lake, tmp_path: Path
) -> None:
    cells = GOOD.split()
    cells[field - 1] = value
    other = GOOD.replace("9 130", "8 120", 1)
    summary = read(lake, tmp_path, other, " ".join(cells))
    assert [said for _, _, said in summary.first_rejects] == ([reason] if reason else [])
