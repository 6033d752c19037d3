"""Several files in one ingest: what is said of each, in which order, and under which name."""

from __future__ import annotations

import bz2
import json
from pathlib import Path

import pytest

from hakaru.engine.duckdb import connect
from hakaru.errors import SettingsError, SourceError
from hakaru.lake import Lake, Upsert
from hakaru.schema import REJECTS
from hakaru.settings import Engine
from hakaru.sources import ingest
from tests.sources._log import line, write

JOB = "1 0 10 3600 4 -1 -1 4 7200 -1 1 1 1 -1 1 -1 -1 -1"


def swf(path: Path, *header: str, num_jobs: int = 1) -> Path:
    jobs = [JOB.replace("1 0", f"{n} {n}", 1) for n in range(1, num_jobs + 1)]
    path.write_text("\n".join(["; UnixStartTime: 1514764800", *header, *jobs]) + "\n")
    return path


def test_the_first_rejects_are_five_by_file_and_line(lake: Lake, tmp_path: Path) -> None:
    one = write(tmp_path / "a.csv", line(1), line(2), "worse", "worse", "worse")
    two = write(tmp_path / "b.csv", "bad", "bad", "bad", "bad", line(9))
    summary = ingest(lake, [two, one], "c")
    places = [(Path(file).name, number) for file, number, _ in summary.first_rejects]
    assert places == [("a.csv", 4), ("a.csv", 5), ("a.csv", 6), ("b.csv", 2), ("b.csv", 3)]


def test_nothing_but_rejects_names_the_first_line(lake: Lake, tmp_path: Path) -> None:
    one = write(tmp_path / "a.csv", "", "", "bad")
    with pytest.raises(SourceError, match=r"a\.csv, line 4: .* None of the 3 rows"):
        ingest(lake, [write(tmp_path / "b.csv", "bad", "bad"), one], "c")


def test_one_synthetic_file_makes_the_ingest_synthetic(tmp_path: Path) -> None:
    """The longer file is read first; which of the two is synthetic must not matter."""
    for i, (first, second) in enumerate(
        ((("; Note: synthetic",), ()), ((), ("; Note: synthetic",)))
    ):
        lake = Lake.create(tmp_path / f"lake{i}")
        logs = [swf(tmp_path / "1.swf", *first, num_jobs=9), swf(tmp_path / "2.swf", *second)]
        ingest(lake, logs, "c")
        assert lake.synthetic_clusters() == {"c"}


def test_users_of_one_file_that_joins_several_are_not_people(lake: Lake, tmp_path: Path) -> None:
    note = f"; Note: hakaru.facts {json.dumps({'users_per_file': True})}"
    logs = [swf(tmp_path / "1.swf", note), swf(tmp_path / "2.swf")]
    assert "somebody in two files has two ids" in ingest(lake, logs, "c").users_note


def test_a_header_of_any_file_is_checked(lake: Lake, tmp_path: Path) -> None:
    note = f"; Note: hakaru.facts {json.dumps({'nodes': -1})}"
    logs = [swf(tmp_path / "1.swf", num_jobs=9), swf(tmp_path / "2.swf", note)]
    with pytest.raises(SettingsError, match=r"2\.swf: the header has 1 problem"):
        ingest(lake, logs, "c")
    assert lake.clusters() == []


def test_two_clusters_hear_what_one_header_says(lake: Lake, tmp_path: Path) -> None:
    log = swf(tmp_path / "a.swf", "; TimeZoneString: Asia/Tokyo")
    for name in ("one", "two"):
        ingest(lake, [log], name)
    assert {name: facts["zone"] for name, facts in lake.facts().items()} == {
        "one": "Asia/Tokyo",
        "two": "Asia/Tokyo",
    }


def test_the_lake_knows_a_file_by_its_whole_path(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`a.csv` of another folder is another file."""
    write(tmp_path / "a.csv", line(1), "broken")
    monkeypatch.chdir(tmp_path)
    ingest(lake, [Path("a.csv")], "c")
    whole = str((tmp_path / "a.csv").resolve())
    assert lake.ingests()[0]["inputs"] == [whole]
    con = connect(Engine())
    assert lake.read(con, REJECTS)["file"].to_pylist() == [whole]
    con.close()


def test_a_warning_names_the_log_and_not_its_copy(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "a.swf.bz2"
    path.write_bytes(bz2.compress(JOB.encode() + b"\n"))
    summary = ingest(lake, [path], "c")
    assert summary.upsert == Upsert(num_new=1)
    assert summary.warnings[0].startswith(f"{path}: the log does not say when it began")


def test_a_long_reject_is_kept_by_its_beginning(lake: Lake, tmp_path: Path) -> None:
    log = write(tmp_path / "a.csv", line(1), "x" * 501)
    ingest(lake, [log], "c")
    con = connect(Engine())
    assert lake.read(con, REJECTS)["text"].to_pylist() == ["x" * 500]
    con.close()
    with pytest.raises(SourceError, match=r"'x{120}'; nothing was stored"):
        ingest(lake, [log], "c", strict=True)


@pytest.mark.parametrize(
    ("end", "num_rejected"), [("2199-12-31T23:59:59Z", 0), ("2200-01-01T00:00:00Z", 1)]
)
def test_a_time_may_be_of_2199(lake: Lake, tmp_path: Path, end: str, num_rejected: int) -> None:
    log = tmp_path / "a.csv"
    times = "2018-01-01T00:00:00Z,2018-01-01T00:00:00Z"
    log.write_text(
        f"job_id,submitted_at,started_at,ended_at\n1,{times},{end}\n2,{times},2018-01-02T00:00:00Z\n"
    )
    summary = ingest(lake, [log], "c")
    assert summary.num_rejected == num_rejected
    assert list(summary.rejected_by_reason) == ["a time after the year 2199"] * num_rejected


def test_rows_that_were_dropped_in_a_conflict_are_missing_too(lake: Lake, tmp_path: Path) -> None:
    """Of job 0's two records one is kept; with the bad line, 2 of 50 rows are missing."""
    rows = [line(n) for n in range(48)]
    log = write(tmp_path / "a.csv", *rows, line(0, user=2), "bad")
    summary = ingest(lake, [log], "c")
    assert (summary.num_read, summary.num_rejected, summary.missing) == (50, 1, 2 / 50)


def test_no_rejected_row_at_all_can_be_asked_for(lake: Lake, tmp_path: Path) -> None:
    log = write(tmp_path / "a.csv", *(line(n) for n in range(199)), "bad")
    assert ingest(lake, [log], "c").missing is None
    assert ingest(lake, [log], "c", max_missing=0).missing == 1 / 200
