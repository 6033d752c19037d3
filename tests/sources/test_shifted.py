"""A log read again in another zone is refused, however little of it is stored; requeued jobs are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.sources import ingest
from hakaru.sources.ingest import Summary
from tests.sources.swf._log import jobs_of, plausible

QUARTER_S = 900
JANUARY = datetime(2023, 1, 1)
TAKES_JOBS = "c has {num} of the jobs in this log already, at other times"


def local_log(path: Path, days: Iterable[int]) -> Path:
    """sacct's local times, a job a day at 10:00:07 and the day's number as its id."""
    rows = ["JobID|User|State|Submit|Start|End"]
    for day in days:
        at = JANUARY + timedelta(days=day, hours=10, seconds=7)
        times = (at, at + timedelta(minutes=day % 60), at + timedelta(hours=2, seconds=day))
        rows.append(f"{day + 1}|u{day % 5}|COMPLETED|" + "|".join(f"{t:%FT%T}" for t in times))
    path.write_text("\n".join(rows) + "\n")
    return path


def read_in(lake: Lake, log: Path, zone: str) -> Summary:
    """With a zone for this log's times, whichever the site's is."""
    (lake.workspace / "hakaru.toml").write_text('[clusters.c]\nzone = "Asia/Tokyo"\n')
    return ingest(lake, [log], "c", options={"zone": zone})


@pytest.mark.parametrize(
    ("first", "zone", "then", "other", "num"),
    [
        (range(212), "Asia/Tokyo", range(151, 334), "UTC", 61),  # a third of the new log
        (range(212), "Asia/Tokyo", range(209, 334), "UTC", 3),
        (range(365), "Europe/London", range(365), "UTC", 217),  # equal in winter
        (range(365), "Europe/London", range(365), "America/New_York", 365),  # 5 h, in March 4 h
        (range(365), "Europe/Paris", range(200, 400), "Australia/Sydney", 165),  # 8, 9 and 10 h
        (range(365), "Europe/Paris", range(365), "Australia/Lord_Howe", 365),  # 8.5 to 10 h
    ],
)
def test_a_log_in_another_zone_is_refused_whatever_share_of_it_is_stored(
    lake: Lake, tmp_path: Path, first: range, zone: str, then: range, other: str, num: int
) -> None:
    read_in(lake, local_log(tmp_path / "a.txt", first), zone)
    before = lake.version()
    with pytest.raises(SourceError, match=TAKES_JOBS.format(num=num)):
        read_in(lake, local_log(tmp_path / "b.txt", then), other)
    assert lake.version() == before
    added = [day for day in then if day not in first]
    assert read_in(lake, tmp_path / "b.txt", zone).upsert.num_new == len(added)


def epoch_log(path: Path, jobs: Iterable[tuple[int, int, int | None]]) -> Path:
    """Jobs by id, submit time and run time, if that is known; all by one user, at once started."""
    jobs = list(jobs)
    rows = ["JobID|User|State|Submit|Start|End" if _know_runs(jobs) else "JobID|State|Submit"]
    for job_id, at, run_s in jobs:
        if run_s is None:
            rows.append(f"{job_id}|COMPLETED|{at}")
        else:
            rows.append(f"{job_id}|me|COMPLETED|{at}|{at}|{at + run_s}")
    path.write_text("\n".join(rows) + "\n")
    return path


def _know_runs(jobs: Sequence[tuple[int, int, int | None]]) -> bool:
    return any(run_s is not None for _, _, run_s in jobs)


START = 1_700_000_100  # a quarter of an hour
IDS = range(1, 61)


def regular(n: int) -> int:
    return START + 607 * n + 1


def at_once(n: int) -> int:
    return START + 1


def rounded(n: int) -> int:
    return START + QUARTER_S * n


@pytest.mark.parametrize(
    ("at", "later_s", "run_s", "run_again_s"),
    [
        (regular, lambda n: 37 * n * n + 11, 60, 60),  # requeued, at any time
        (regular, lambda n: 3600, 60, 90),  # an hour later, and another run
        (at_once, lambda n: 9 * 3600, 60, 90),  # an array, all of its tasks at once
        (at_once, lambda n: 12_345, None, None),
        (regular, lambda n: 200 * 86_400, 60, 90),  # ids that are used again
        (rounded, lambda n: QUARTER_S * (n % 9 + 1), None, None),  # quarters by chance
        (rounded, lambda n: QUARTER_S * (n % 9 + 1), 60, 60),
    ],
)
@pytest.mark.parametrize("num_same", [0, 5])
def test_other_attempts_and_other_jobs_are_stored(
    lake: Lake,
    tmp_path: Path,
    at: Callable[[int], int],
    later_s: Callable[[int], int],
    run_s: int | None,
    run_again_s: int | None,
    num_same: int,
) -> None:
    """Beside them are new jobs, and some that both logs have."""
    ingest(lake, [epoch_log(tmp_path / "a.txt", [(n, at(n), run_s) for n in IDS])], "c")
    again = [(n, at(n) + later_s(n), run_again_s) for n in IDS[num_same:]]
    same = [(n, at(n), run_s) for n in IDS[:num_same]]
    new = [(n, at(n), run_s) for n in range(100, 200)]
    log = epoch_log(tmp_path / "b.txt", [*same, *again, *new])
    assert ingest(lake, [log], "c").upsert.num_new == len(again) + 100


def test_attempts_are_compared_with_those_that_one_of_the_logs_lacks(
    lake: Lake, tmp_path: Path
) -> None:
    """Attempts an hour apart that ran as long: the first ones are in both logs, so they were not moved."""
    first = [(n, regular(n), 60) for n in IDS]
    second = [(n, at + 3600, run_s) for n, at, run_s in first]
    ingest(lake, [epoch_log(tmp_path / "a.txt", first)], "c")
    summary = ingest(lake, [epoch_log(tmp_path / "b.txt", [*first, *second])], "c")
    assert (summary.upsert.num_new, summary.upsert.num_unchanged) == (60, 60)
    moved = [(n, at + 32_400, run_s) for n, at, run_s in [*first, *second]]
    with pytest.raises(SourceError, match=TAKES_JOBS.format(num=120)):
        ingest(lake, [epoch_log(tmp_path / "c.txt", moved)], "c")


@pytest.mark.parametrize("num_new", [0, 59])
def test_a_whole_log_of_round_times_alone_is_refused(
    lake: Lake, tmp_path: Path, num_new: int
) -> None:
    """It says nothing of its jobs but a quarter of an hour; more than half of it is there."""
    ingest(lake, [epoch_log(tmp_path / "a.txt", [(n, rounded(n), None) for n in IDS])], "c")
    ids = range(1, 61 + num_new)
    again = epoch_log(tmp_path / "b.txt", [(n, rounded(n) + 32_400, None) for n in ids])
    with pytest.raises(SourceError, match=TAKES_JOBS.format(num=60)):
        ingest(lake, [again], "c")


def test_a_job_that_ran_when_it_was_stored_is_known_again(lake: Lake, tmp_path: Path) -> None:
    head = "JobID|State|Submit|Start|End|Elapsed"
    for name, shift_s, state in (("a", 0, "RUNNING"), ("b", 32_400, "COMPLETED")):
        times = [(n, regular(n) + shift_s) for n in IDS]
        end = {n: "Unknown" if state == "RUNNING" else str(at + 90) for n, at in times}
        run = "00:00:30" if state == "RUNNING" else "00:01:30"
        rows = [f"{n}|{state}|{at}|{at}|{end[n]}|{run}" for n, at in times]
        (tmp_path / f"{name}.txt").write_text("\n".join([head, *rows]) + "\n")
    ingest(lake, [tmp_path / "a.txt"], "c")
    with pytest.raises(SourceError, match=TAKES_JOBS.format(num=60)):
        ingest(lake, [tmp_path / "b.txt"], "c")


def test_a_part_of_a_log_from_another_first_day_is_refused(lake: Lake, tmp_path: Path) -> None:
    for name, num in (("a", 5), ("b", 50)):
        (tmp_path / f"{name}.swf").write_text("".join(f"{row}\n" for row in plausible(num)))
    ingest(lake, [tmp_path / "a.swf"], "c", options={"start": "2014-03-01"})
    with pytest.raises(SourceError, match=TAKES_JOBS.format(num=5)):
        ingest(lake, [tmp_path / "b.swf"], "c", options={"start": "2014-05-01"})
    assert len(jobs_of(lake)) == 5


def test_fractions_of_seconds_do_not_hide_a_zone(lake: Lake, tmp_path: Path) -> None:
    mapping = tmp_path / "m.toml"
    mapping.write_text('[columns]\njob_id = "id"\nsubmitted_at = "at"\n')
    first = [datetime.fromtimestamp(regular(n) + n / 1000, UTC) for n in IDS]
    for name, hours, num in (("a", 0, 60), ("b", 9, 20)):
        times = [at + timedelta(hours=hours) for at in first[:num]]
        others = [at + timedelta(days=9) for at in first] if hours else []
        rows = [f"{n},{at.isoformat()}" for n, at in enumerate([*times, *others])]
        if hours:  # ids that are not stored
            rows[20:] = [f"x{row}" for row in rows[20:]]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,at", *rows]) + "\n")
    ingest(lake, [tmp_path / "a.csv"], "c", options={"mapping": mapping})
    with pytest.raises(SourceError, match=TAKES_JOBS.format(num=20)):
        ingest(lake, [tmp_path / "b.csv"], "c", options={"mapping": mapping})
