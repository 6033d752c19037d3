"""From files to the lake: what is counted, refused and repeated."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from hakaru.engine.duckdb import connect
from hakaru.errors import HakaruError, SettingsError, SourceError
from hakaru.lake import Lake, Upsert
from hakaru.schema import REJECTS
from hakaru.settings import Engine, Ingest
from hakaru.sources import ingest
from hakaru.sources._packing import Meter, check_gzip
from tests.conftest import utc
from tests.sources._log import HEADER, large, line, table, write


def rejects(lake: Lake) -> list[tuple[str, int, str]]:
    con = connect(Engine())
    found = lake.read(con, REJECTS).to_pylist()
    con.close()
    return sorted((Path(row["file"]).name, row["line"], row["reason"]) for row in found)


# ---- what is counted


def test_the_summary_counts_every_record_once(lake: Lake, tmp_path: Path) -> None:
    log = write(
        tmp_path / "a.csv", line(1), line(2), line(2), "broken", line(4, queue=9), line(5, gpus=4)
    )
    summary = ingest(lake, [log], "c")
    assert (summary.num_read, summary.num_rejected) == (6, 2)
    assert summary.upsert == Upsert(num_new=3, num_repeated=1)
    assert summary.rejected_by_reason == {
        "expected 13 columns, found 1": 1,
        "queue 9 is not 0 to 3": 1,
    }
    assert [(Path(f).name, n) for f, n, _ in summary.first_rejects] == [("a.csv", 5), ("a.csv", 6)]
    assert summary.since == utc("2018-01-01T00:00:01") and summary.until == utc(
        "2018-01-01T00:00:05"
    )
    assert (summary.num_users, summary.num_gpus) == (2, 4)
    assert (summary.cluster, summary.sources, summary.num_files) == ("c", ["aaic"], 1)
    (logged,) = lake.ingests()
    counts = [logged[f"num_{name}"] for name in ("read", "new", "repeated", "rejected")]
    assert counts == [6, 3, 1, 2] and logged["inputs"] == [str(log.resolve())]
    assert logged["source"] == "aaic" and logged["ended_at"] >= logged["started_at"]


def test_a_repeated_ingest_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    log = write(tmp_path / "a.csv", line(1), "broken", line(3))
    ingest(lake, [log], "c")
    before, bad = table(lake), rejects(lake)
    again = ingest(lake, [log], "c")
    assert again.upsert == Upsert(num_unchanged=2) and again.num_rejected == 1
    assert table(lake) == before
    assert rejects(lake) == bad == [("a.csv", 3, "expected 13 columns, found 1")]


def test_overlapping_files_in_any_order_give_one_table(tmp_path: Path) -> None:
    # the same log at three moments: its name, and so the ids in it, stay
    logs = [
        write(tmp_path / "mon" / "log.csv", *(line(i) for i in range(6))),
        write(tmp_path / "tue" / "log.csv", *(line(i, termcode=i % 2) for i in range(4, 9))),
        write(tmp_path / "wed" / "log.csv", *(line(i, walltime=7) for i in range(2, 12))),
    ]
    tables = []
    for i, order in enumerate(([0, 1, 2], [2, 1, 0], [1, 0, 2, 1, 0])):
        lake = Lake.create(tmp_path / f"lake{i}")
        for n in order:
            ingest(lake, [logs[n]], "c")
        tables.append(table(lake))
    assert len(tables[0]) == 12
    assert tables[0] == tables[1] == tables[2]


def test_one_path_given_twice_counts_once(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write(tmp_path / "a.csv", line(1), line(2))
    monkeypatch.chdir(tmp_path)
    summary = ingest(lake, [log, log, Path("a.csv"), tmp_path / "x" / ".." / "a.csv"], "c")
    assert (summary.num_files, summary.num_read) == (1, 2)
    assert summary.upsert == Upsert(num_new=2)


def test_two_clusters_keep_apart(lake: Lake, tmp_path: Path) -> None:
    log = write(tmp_path / "a.csv", line(1))
    ingest(lake, [log], "one")
    assert ingest(lake, [log], "two").upsert == Upsert(num_new=1)
    assert lake.clusters() == ["one", "two"]


def _shifted(path: Path, shift_s: int, numbers: range) -> Path:
    """The log as another --zone would have read it."""
    return _moved(path, [shift_s for _ in numbers])


def _moved(path: Path, shifts_s: Sequence[int]) -> Path:
    """The log with each job a little earlier or later."""
    times = ("time_submit", "time_start", "time_end")
    numbers = range(len(shifts_s))
    at = {n: 1514764800 + n + shifts_s[n] for n in numbers}
    cells = [dict(zip(times, (at[n], at[n] + 10, at[n] + 3610), strict=True)) for n in numbers]
    return write(path, *(line(n, **c) for n, c in zip(numbers, cells, strict=True)))


def test_jobs_that_were_there_at_another_time_are_warned_of(lake: Lake, tmp_path: Path) -> None:
    right = _shifted(tmp_path / "a" / "log.csv", 0, range(5))
    assert ingest(lake, [right], "c").warnings == []
    assert ingest(lake, [right], "c").warnings == []
    moved = _moved(tmp_path / "b" / "log.csv", [7, 77, 777, 1000, 1001])
    (warning,) = ingest(lake, [moved], "c").warnings
    assert warning == (
        "5 of the new jobs were there already with another submit time: a wrong --zone or --start? "
        f"To start again: hakaru lake forget --cluster c --workspace {lake.workspace}"
    )
    assert ingest(lake, [moved], "other").warnings == []
    alone = _shifted(tmp_path / "d" / "log.csv", 0, range(1))
    ingest(lake, [alone], "one")
    (warning,) = ingest(lake, [_moved(tmp_path / "e" / "log.csv", [7])], "one").warnings
    assert warning.startswith("1 of the new jobs was there already with another submit time")


@pytest.mark.parametrize(
    "shifts_s",
    [
        [32_400] * 5,  # UTC and Asia/Tokyo
        [3600, 3600, 7200, 7200, 7200],  # UTC and Europe/Paris, over the summer
        [2_678_400] * 5,  # another --start
        [-32_400, -32_400, -32_400, 5, 6],
    ],
)
def test_the_same_log_in_another_zone_is_refused(
    lake: Lake, tmp_path: Path, shifts_s: list[int]
) -> None:
    ingest(lake, [_shifted(tmp_path / "a" / "log.csv", 0, range(5))], "c")
    before = lake.version()
    again = _moved(tmp_path / "b" / "log.csv", shifts_s)
    with pytest.raises(SourceError, match=r"c has \d of the jobs in this log already") as caught:
        ingest(lake, [again], "c")
    command = f"  hakaru lake forget --cluster c --workspace {lake.workspace}"
    assert str(caught.value).splitlines()[-1] == command
    assert lake.version() == before
    lake.forget("c")
    assert ingest(lake, [again], "c").upsert.num_new == 5


@pytest.mark.parametrize(
    "shifts_s",
    [
        [3600, 3600],  # two jobs may be requeued
        [3600, 3600, 0, 0, 5, 6],
        [3600, 3600, 3600, 7, 8, 9],  # half of them
    ],
)
def test_requeued_jobs_are_stored(lake: Lake, tmp_path: Path, shifts_s: list[int]) -> None:
    ingest(lake, [_shifted(tmp_path / "a" / "log.csv", 0, range(6))], "c")
    again = _moved(tmp_path / "b" / "log.csv", shifts_s)
    num_new = sum(shift_s != 0 for shift_s in shifts_s)
    assert ingest(lake, [again], "c").upsert.num_new == num_new


def test_a_requeued_job_among_known_ones_is_no_wrong_zone(lake: Lake, tmp_path: Path) -> None:
    ingest(lake, [write(tmp_path / "a" / "log.csv", line(1), line(2))], "c")
    requeued = line(2, time_submit=1514764900, time_start=1514764910, time_end=1514768510)
    summary = ingest(lake, [write(tmp_path / "b" / "log.csv", line(1), requeued)], "c")
    assert summary.upsert == Upsert(num_new=1, num_unchanged=1, num_moved=1)
    assert summary.warnings == []


def _with_others(path: Path, shifts_s: Sequence[int], num_fresh: int) -> Path:
    """The first jobs moved, one that is where it was, and new ones."""
    moved, num = _moved(path, shifts_s).read_text().splitlines()[1:], len(shifts_s)
    return write(path, *moved, *(line(n) for n in range(num, num + 1 + num_fresh)))


@pytest.mark.parametrize(("num_fresh", "num_warnings"), [(101, 1), (102, 0), (103, 0)])
def test_a_warning_needs_more_than_half_of_the_new_jobs(
    lake: Lake, tmp_path: Path, num_fresh: int, num_warnings: int
) -> None:
    """Each job was requeued after another time."""
    ingest(lake, [write(tmp_path / "a" / "log.csv", *(line(n) for n in range(103)))], "c")
    log = _with_others(tmp_path / "b" / "log.csv", [901 * n + 1 for n in range(102)], num_fresh)
    summary = ingest(lake, [log], "c")
    assert summary.upsert == Upsert(num_new=102 + num_fresh, num_unchanged=1, num_moved=102)
    assert len(summary.warnings) == num_warnings


def test_less_than_half_of_a_log_in_another_zone_is_refused(lake: Lake, tmp_path: Path) -> None:
    ingest(lake, [write(tmp_path / "a" / "log.csv", *(line(n) for n in range(103)))], "c")
    log = _with_others(tmp_path / "b" / "log.csv", [3600] * 102, 300)
    with pytest.raises(SourceError, match="c has 102 of the jobs in this log already"):
        ingest(lake, [log], "c")
    assert len(table(lake)) == 103


def test_an_ingest_replaces_the_rejects_of_its_files_only(lake: Lake, tmp_path: Path) -> None:
    log, other = tmp_path / "a.csv", write(tmp_path / "b.csv", "worse")
    write(log, line(1), "broken", line(3, queue=9))
    ingest(lake, [log, other], "c")
    ingest(lake, [log], "other")
    assert len(rejects(lake)) == 5
    write(log, line(1), line(2), line(3, queue=8))
    ingest(lake, [log], "c")
    assert rejects(lake) == [
        ("a.csv", 3, "expected 13 columns, found 1"),  # the other cluster's
        ("a.csv", 4, "queue 8 is not 0 to 3"),
        ("a.csv", 4, "queue 9 is not 0 to 3"),
        ("b.csv", 2, "expected 13 columns, found 1"),
    ]
    write(log, line(1), line(2), line(3))
    ingest(lake, [log], "c")
    ingest(lake, [log], "other")
    assert [place[:2] for place in rejects(lake)] == [("b.csv", 2)]
    ingest(lake, [write(other, line(7))], "c")
    assert rejects(lake) == []


def test_a_copy_goes_by_the_name_of_the_log(lake: Lake, tmp_path: Path) -> None:
    copy = write(tmp_path / "stdin", line(1), "broken")
    summary = ingest(lake, [copy], "c", names={copy: "-"})
    assert summary.first_rejects == [("-", 3, "expected 13 columns, found 1")]
    assert rejects(lake) == [("-", 3, "expected 13 columns, found 1")]
    assert lake.ingests()[0]["inputs"] == ["-"]
    with pytest.raises(SourceError, match=r"^-, line 3: "):
        ingest(lake, [copy], "c", names={copy: "-"}, strict=True)
    copy.write_text("what is this")
    with pytest.raises(SourceError, match=r"^-: the format is not known"):
        ingest(lake, [copy], "c", names={copy: "-"})


def _swf(path: Path, *header: str) -> Path:
    job = "1 0 10 3600 4 -1 -1 4 7200 -1 1 1 1 -1 1 -1 -1 -1"
    path.write_text("\n".join(["; UnixStartTime: 1514764800", *header, job]) + "\n")
    return path


def test_the_last_word_of_a_files_header_stands(lake: Lake, tmp_path: Path) -> None:
    log = tmp_path / "a.swf"
    for zone in ("Europe/Paris", "Asia/Tokyo", "Europe/Paris"):
        ingest(lake, [_swf(log, f"; TimeZoneString: {zone}", "; MaxNodes: 9")], "c")
        assert lake.facts()["c"]["zone"] == zone
    ingest(lake, [_swf(log, "; TimeZoneString: Asia/Tokyo")], "c")
    assert lake.facts()["c"]["zone"] == "Asia/Tokyo" and "nodes" not in lake.facts()["c"]


def test_files_of_one_cluster_speak_in_the_order_of_their_names(tmp_path: Path) -> None:
    one = _swf(tmp_path / "1.swf", "; TimeZoneString: Asia/Tokyo", "; MaxNodes: 9")
    two = _swf(tmp_path / "2.swf", "; TimeZoneString: Europe/Paris")
    for i, order in enumerate(([[one], [two]], [[two], [one]], [[two, one]])):
        lake = Lake.create(tmp_path / f"lake{i}")
        for paths in order:
            ingest(lake, paths, "c")
        facts = lake.facts()["c"]
        assert (facts["zone"], facts["nodes"]) == ("Europe/Paris", 9)


# ---- what is refused


def test_strict_stops_at_the_first_and_stores_nothing(lake: Lake, tmp_path: Path) -> None:
    log = write(tmp_path / "a.csv", line(1), line(2, queue=7), "broken")
    with pytest.raises(SourceError, match=r"a\.csv, line 3: queue 7 is not 0 to 3.*--strict"):
        ingest(lake, [log], "c", strict=True)
    assert table(lake) == [] and rejects(lake) == [] and lake.ingests() == []


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"time_start": 1}, "it starts before it is submitted"),
        ({"time_end": 1514764802}, "it ends before it starts"),
        ({"walltime": -1}, "the run time is negative"),
        ({"waittime": -1}, "the wait is negative"),
        ({"walltime_req": 0}, "the requested walltime is not above 0"),
    ],
)
def test_what_no_source_may_let_through(
    lake: Lake, tmp_path: Path, cells: dict[str, int], reason: str
) -> None:
    summary = ingest(lake, [write(tmp_path / "a.csv", line(1), line(2, **cells))], "c")
    assert summary.rejected_by_reason == {reason: 1}
    assert rejects(lake) == [("a.csv", 3, reason)]


def test_a_fault_of_one_file_is_named_and_stops_the_rest(lake: Lake, tmp_path: Path) -> None:
    good = [write(tmp_path / f"{i}.csv", *(line(n) for n in range(100))) for i in range(4)]
    whole = gzip.compress(large(tmp_path / "torn.csv", 50_000).read_bytes())
    torn = tmp_path / "torn.csv.gz"
    torn.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"torn\.csv\.gz: the file is damaged: .*fetch it again"):
        ingest(lake, [*good, torn], "c")
    assert table(lake) == [] and lake.ingests() == []
    assert not list((lake.root / "_staging").iterdir())


def test_a_wrong_checksum_is_damage_though_every_line_reads(lake: Lake, tmp_path: Path) -> None:
    log = large(tmp_path / "a.csv", 5_000)  # beyond the beginning by which a format is told
    packed = bytearray(gzip.compress(log.read_bytes()))
    packed[-8] ^= 1  # the first byte of the checksum
    damaged = tmp_path / "a.csv.gz"
    damaged.write_bytes(packed)
    with pytest.raises(
        SourceError, match=r"a\.csv\.gz: the file is damaged: .*incorrect data check"
    ):
        ingest(lake, [damaged], "c")
    assert table(lake) == [] and lake.ingests() == []


def test_a_packed_file_of_two_members_with_padding_is_whole(lake: Lake, tmp_path: Path) -> None:
    halves = [f"{HEADER}\n{line(1)}\n", f"{line(2)}\n"]
    log = tmp_path / "a.csv.gz"
    log.write_bytes(b"".join(gzip.compress(half.encode()) for half in halves))
    assert ingest(lake, [log], "c").upsert == Upsert(num_new=2)
    log.write_bytes(log.read_bytes() + bytes(200_000))
    check_gzip(log, Meter(log, tmp_path, Ingest()))
    log.write_bytes(log.read_bytes() + b"x")
    with pytest.raises(SourceError, match="damaged"):
        check_gzip(log, Meter(log, tmp_path, Ingest()))


@pytest.mark.parametrize("name", ["", "a b", "x'y", "../up", "-x", "a" * 65])
def test_a_cluster_name_is_checked(lake: Lake, tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="cluster name"):
        ingest(lake, [write(tmp_path / "a.csv", line(1))], name)


def test_nothing_to_read(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no file to read"):
        ingest(lake, [], "c")
    with pytest.raises(SourceError, match="no such file"):
        ingest(lake, [tmp_path / "none.csv"], "c")
    with pytest.raises(SourceError, match=r"no job in .*empty\.csv; nothing was stored"):
        ingest(lake, [write(tmp_path / "empty.csv")], "c")
    with pytest.raises(HakaruError, match="there is no source 'nope'"):
        ingest(lake, [write(tmp_path / "a.csv", line(1))], "c", format="nope")


def test_nothing_but_rejects_is_an_error_and_stores_nothing(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"a\.csv, line 2: .* The only row could not be read"):
        ingest(lake, [write(tmp_path / "a.csv", "broken")], "c")
    assert rejects(lake) == [] and lake.clusters() == []


def test_one_damaged_line_in_all_of_aaic_is_found_and_named(
    lake: Lake, tmp_path: Path, aaic_files: list[Path]
) -> None:
    damaged = tmp_path / aaic_files[2].name
    lines = gzip.decompress(aaic_files[2].read_bytes()).split(b"\n")
    place = random.Random(7).randrange(1, len(lines) - 1)
    lines[place] = lines[place].replace(b",", b";", 1)
    damaged.write_bytes(gzip.compress(b"\n".join(lines), 1))
    summary = ingest(lake, [*aaic_files[:2], damaged, *aaic_files[3:]], "aaic")
    assert summary.num_read == 459_545
    assert summary.upsert == Upsert(num_new=459_544)
    assert rejects(lake) == [(damaged.name, place + 1, "expected 13 columns, found 12")]


@pytest.mark.parametrize(("num_values", "num_reasons"), [(20, 20), (21, 1)])
def test_reasons_name_their_values_as_long_as_they_are_few(
    lake: Lake, tmp_path: Path, num_values: int, num_reasons: int
) -> None:
    rows = [f"{n},ann,normal,completed,1,x{n},60,2018-01-01T00:00:00Z,," for n in range(num_values)]
    log = tmp_path / "a.csv"
    sample = (Path(__file__).resolve().parents[1] / "data" / "canonical.csv").read_text()
    log.write_text(sample + "\n".join(rows) + "\n")
    reasons = ingest(lake, [log], "c").rejected_by_reason
    assert (len(reasons), sum(reasons.values())) == (num_reasons, num_values)
