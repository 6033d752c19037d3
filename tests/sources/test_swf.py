"""The Standard Workload Format: the header, -1 as unknown, other layouts refused, and real logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hakaru.analyses import Selection, load_all, open_session
from hakaru.engine.duckdb import connect, one_row, select_files
from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine, load
from hakaru.sources._base import detect, lines
from hakaru.sources.ingest import Summary, ingest
from hakaru.sources.swf import parse_header
from tests.conftest import utc

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "small.swf"
# job 9, submitted at 130, waits for 1 s and runs for 60 s on 1 processor
GOOD = "9 130 1 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1"


def test_each_number_becomes_its_column(lake: Lake) -> None:
    ingest(lake, [SAMPLE], "c")
    job = _jobs(lake)[0]
    assert {name: value for name, value in job.items() if value is not None} == {
        "cluster": "c",
        "job_id": "1",
        "user": "1",
        "account": "1",
        "queue": "batch",
        "state": "completed",
        "num_cpus": 8,
        "memory_mib": 8192.0,  # 1,048,576 kB for each of 8 processors
        "requested_s": 7200.0,
        "submitted_at": utc("2017-07-14T02:40:00"),  # 1,500,000,000
        "started_at": utc("2017-07-14T02:40:10"),
        "ended_at": utc("2017-07-14T03:40:10"),
        "wait_s": 10.0,
        "run_s": 3600.0,
    }


def test_unknown_is_null_and_zero_is_zero(lake: Lake) -> None:
    ingest(lake, [SAMPLE], "c")
    _, no_wait, fractions, cancelled, zeros, no_request = _jobs(lake)

    assert no_wait["wait_s"] is no_wait["started_at"] is no_wait["ended_at"] is None
    assert no_wait["state"] is no_wait["requested_s"] is no_wait["memory_mib"] is None
    assert (no_wait["run_s"], no_wait["num_cpus"], no_wait["queue"]) == (120.0, 16, "interactive")

    assert fractions["started_at"] == utc("2017-07-14T02:41:40")
    assert fractions["ended_at"] == utc("2017-07-14T02:42:10.250000")
    assert (fractions["num_cpus"], fractions["state"], fractions["queue"]) == (4, "failed", "2")

    assert (cancelled["state"], cancelled["num_cpus"]) == ("cancelled", 32)
    assert cancelled["started_at"] is cancelled["run_s"] is cancelled["wait_s"] is None
    assert cancelled["ended_at"] == utc("2017-07-14T02:50:00")  # given up 500 s after its submit

    assert (zeros["wait_s"], zeros["run_s"]) == (0.0, 0.0)
    assert zeros["ended_at"] == zeros["started_at"] == zeros["submitted_at"]
    assert zeros["user"] is zeros["account"] is zeros["queue"] is None

    assert (no_request["requested_s"], no_request["user"]) == (None, "0")


def test_the_machine_is_known_from_the_header(lake: Lake) -> None:
    ingest(lake, [SAMPLE], "c")
    cluster = load(lake.workspace, lake.facts()).cluster("c")
    assert (cluster.zone, cluster.unit, cluster.cpus_per_node) == ("Asia/Tokyo", "cpu", 8)
    assert [span.count for span in cluster.nodes] == [4]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", {}),
        ("; MaxProcs: 100", {"cpus": 100}),
        ("; MaxNodes: 151\n; MaxProcs: 2004", {"nodes": 151, "cpus": 2004}),
        ("; MaxNodes: 0\n; MaxProcs: many", {}),
        ("; MaxNodes: 338 (163 64)\n; MaxProcs: 338", {"nodes": 338, "cpus_per_node": 1}),
        ("; TimeZoneString: US/Pacific", {"zone": "US/Pacific"}),
        ("; TimeZoneString: Middle of Nowhere", {}),
        ("; TimeZone: -28800", {}),
    ],
)
def test_header_facts(text: str, facts: dict[str, Any]) -> None:
    assert parse_header(text).facts() == {"unit": "cpu", **facts}


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        ("; Queue:  0  interactive    interactive", {0: "interactive"}),
        ("; Queue:  1  ", {}),
        ("; Queue:  2 0 ", {}),
        (
            "; Queue: 1 - Normal jobs queue - normal priority - not preemptible",
            {1: "Normal jobs queue"},
        ),
        ("; Queue: 2 - Besteffort", {2: "Besteffort"}),
        ("; Queue: 1 - Normal jobs queue\n; Queue:  1  default  default", {1: "default"}),
        ("; Queue: 1 batch\n; Queue: 2 batch\n; Queue: 3 long", {3: "long"}),
        ("; Queues: Queue nb 1 is default queue.", {}),
    ],
)
def test_queue_names(text: str, queues: dict[int, str]) -> None:
    assert parse_header(text).queues == queues


@pytest.mark.parametrize(
    "start", ["", "; UnixStartTime: 0", "; UnixStartTime: soon", "; UnixStartTime: inf"]
)
def test_without_a_start_times_count_from_1970(start: str, lake: Lake, tmp_path: Path) -> None:
    _ingest(lake, tmp_path, start, GOOD)
    (job,) = _jobs(lake)
    assert job["submitted_at"] == utc("1970-01-01T00:02:10")
    assert (job["wait_s"], job["run_s"]) == (1.0, 60.0)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        (1, "-1", "field 1 (job number) is unknown or negative"),
        (1, "1.5", "field 1 (job number) is not a whole number"),
        (2, "-1", "field 2 (submit time) is unknown or negative"),
        (2, "1e300", "field 2 (submit time) is too large"),
        (2, "noon", "field 2 (submit time) is not a number"),
        (3, "-7", "field 3 (wait time) is negative, and not -1 for unknown"),
        (4, "nan", "field 4 (run time) is not a number"),
        (4, "inf", "field 4 (run time) is not a number"),
        (5, "0.5", "field 5 (allocated processors) is not a whole number"),
        (11, "6", "status 6 is not -1 to 5"),
        (11, "-2", "field 11 (status) is negative, and not -1 for unknown"),
        (18, "-1 -1", "expected 18 columns, found 19"),
        (18, "x", "field 18 (think time) is not a number"),
    ],
)
def test_a_bad_field_is_rejected_with_its_reason(
    field: int, value: str, reason: str, lake: Lake, tmp_path: Path
) -> None:
    cells = GOOD.split()
    cells[field - 1] = value
    before = GOOD.replace("9", "8", 1)
    summary = _ingest(lake, tmp_path, "; Version: 2.2", before, " ".join(cells))
    assert [(line, said) for _, line, said in summary.first_rejects] == [(3, reason)]
    assert [job["job_id"] for job in _jobs(lake)] == ["8"]


def test_parts_of_a_checkpointed_job_do_not_count_twice(lake: Lake, tmp_path: Path) -> None:
    """Job 1 ran for 100 s in two parts; job 2 has only a part, so it is a job of unknown end."""
    summary = _ingest(
        lake,
        tmp_path,
        "1 0 5 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1",
        "1 0 5  60 4 -1 -1 4 200 -1 2 1 1 -1 1 -1 -1 -1",
        "1 -1 30 40 4 -1 -1 4 200 -1 3 1 1 -1 1 -1 -1 -1",
        "2 10 5 100 4 -1 -1 4 200 -1 2 1 1 -1 1 -1 -1 -1",
        "3 20 5 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1",
    )
    jobs = _jobs(lake)
    assert [(job["job_id"], job["run_s"], job["state"]) for job in jobs] == [
        ("1", 100.0, "completed"),
        ("2", 100.0, None),
        ("3", 100.0, "completed"),
    ]
    part = "a part of a checkpointed job; the line of the whole job counts"
    assert summary.rejected_by_reason == {part: 2}


def test_tabs_and_narrow_columns_are_read(lake: Lake, tmp_path: Path) -> None:
    summary = _ingest(lake, tmp_path, "\t".join(GOOD.split()), "  " + GOOD.replace("9", "10", 1))
    assert (summary.num_read, summary.num_rejected) == (2, 0)


def _rows(count: int, **changed: Any) -> list[str]:
    """Lines of a plausible log; a field is changed by its number, as `f3=lambda i: …`."""
    table = []
    for i in range(count):
        cells: list[Any] = [
            i + 1,
            1000 * i,
            60,
            600,
            4,
            -1,
            -1,
            4,
            900,
            -1,
            1,
            i % 3,
            1,
            1,
            1,
            -1,
            -1,
            -1,
        ]
        for field, make in changed.items():
            cells[int(field[1:]) - 1] = make(i)
        table.append(" ".join(str(cell) for cell in cells))
    return table


@pytest.mark.parametrize(
    ("log", "seen"),
    [
        (
            [row + " 7" for row in _rows(20)],
            "expected 18 columns, found 19 in most lines (20 of the first 20",
        ),
        ([row + " 7 8 9" for row in _rows(20)], "found 21 in most lines"),
        ([",".join(row.split()) for row in _rows(5)], "found 1 in most lines"),
        (
            _rows(20, f11=lambda i: 10 + i),
            "field 11 (status) is not one of -1 to 5 in 20 of the first 20",
        ),
        (_rows(20, f11=lambda i: "COMPLETED"), "field 11 (status) is not one of"),
        (_rows(20, f1=lambda i: i % 3), "field 1 (job number) has only 3 values in 20 lines"),
        (_rows(20, f1=lambda i: i * 11 % 20), "do not rise together"),
        (_rows(20, f2=lambda i: 99_000 - 1000 * i), "do not rise together"),
        (_rows(20, f1=lambda i: 1000 * i, f2=lambda i: i + 1), "as if the two were exchanged"),
        (_rows(99, f3=lambda i: 1000 * i + 60), "as if it were a start time"),
        (
            ["; UnixStartTime: 1500000000", *_rows(5, f2=lambda i: 1_500_000_000 + 1000 * i)],
            "it holds Unix times",
        ),
    ],
)
def test_another_layout_is_refused_with_what_was_seen(
    log: list[str], seen: str, lake: Lake, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match="not the Standard Workload Format") as caught:
        _ingest(lake, tmp_path, *log)
    first = next(row for row in log if not row.startswith(";"))
    assert seen in str(caught.value)
    assert first[:60] in str(caught.value)
    assert str(tmp_path / "log.swf") in str(caught.value)
    assert lake.clusters() == []


@pytest.mark.parametrize(
    "log",
    [
        _rows(20),
        _rows(20)[::-1],
        _rows(20, f1=lambda i: 5 * i + 100),
        _rows(20, f2=lambda i: 1_500_000_000 + 1000 * i),
        _rows(20, f2=lambda i: i, f1=lambda i: i + 1),
        _rows(20, f3=lambda i: -1, f11=lambda i: -1),
        _rows(20)[:9] + ["garbage"] * 9 + _rows(20)[9:],
    ],
    ids=["plain", "unsorted", "gaps", "epochs without a start", "each second", "model", "half bad"],
)
def test_a_log_of_the_right_layout_is_not_refused(
    log: list[str], lake: Lake, tmp_path: Path
) -> None:
    summary = _ingest(lake, tmp_path, *log)
    assert summary.upsert.num_new == 20
    assert summary.num_rejected == len(log) - 20


def _by(moment: Callable[[list[int]], int], ids: str) -> list[str]:
    """Forty jobs sorted by a moment; ids count the lines, count the submissions, or say nothing."""
    jobs = [[i, 100 * i, 60 * (i * 7 % 11), 90 * (i * 13 % 17)] for i in range(40)]
    rows = []
    for line, (i, submit, wait, run) in enumerate(sorted(jobs, key=moment)):
        number = {"lines": line + 1, "submissions": i + 1, "none": i * 17 % 40 + 1}[ids]
        rows.append(f"{number} {submit} {wait} {run} 4 -1 -1 4 9000 -1 1 3 1 1 1 -1 -1 -1")
    return rows


@pytest.mark.parametrize("ids", ["lines", "submissions", "none"])
@pytest.mark.parametrize("moment", ["start", "end"])
def test_a_log_may_be_sorted_by_start_or_end(
    moment: str, ids: str, lake: Lake, tmp_path: Path
) -> None:
    key = {"start": lambda job: job[1] + job[2], "end": lambda job: sum(job[1:])}[moment]
    summary = _ingest(lake, tmp_path, *_by(key, ids))
    assert (summary.upsert.num_new, summary.num_rejected) == (40, 0)


def test_jobs_in_no_order_at_all_are_refused(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="do not rise together"):
        _ingest(lake, tmp_path, *_by(lambda job: job[0] * 17 % 40, "lines"))


def test_relative_dates_are_told_and_kept(lake: Lake, tmp_path: Path) -> None:
    summary = _ingest(lake, tmp_path, GOOD)
    (warning,) = summary.warnings
    assert "no UnixStartTime: its dates are relative" in warning and "--start 2014-03-01" in warning
    assert load(lake.workspace, lake.facts()).cluster("c").relative_dates


@pytest.mark.parametrize("header", ["; UnixStartTime: 1500000000", "; a remark"])
def test_absolute_dates_are_not_called_relative(header: str, lake: Lake, tmp_path: Path) -> None:
    job = GOOD if "Unix" in header else GOOD.replace("130", "1500000130", 1)
    summary = _ingest(lake, tmp_path, header, job, zone="UTC")
    assert summary.warnings == []
    assert not load(lake.workspace, lake.facts()).cluster("c").relative_dates


@pytest.mark.parametrize(
    ("start", "options", "submitted"),
    [
        ("2014-03-01", {}, "2014-03-01T00:02:10"),
        ("2014-03-01", {"zone": "Asia/Tokyo"}, "2014-02-28T15:02:10"),
        ("2014-03-01T06:00", {}, "2014-03-01T06:02:10"),
        ("2014-03-01T06:00+09:00", {}, "2014-02-28T21:02:10"),
    ],
)
def test_start_sets_the_dates(
    start: str, options: dict[str, str], submitted: str, lake: Lake, tmp_path: Path
) -> None:
    summary = _ingest(lake, tmp_path, GOOD, start=start, **options)
    assert _jobs(lake)[0]["submitted_at"] == utc(submitted)
    assert not any("relative" in warning for warning in summary.warnings)
    assert not load(lake.workspace, lake.facts()).cluster("c").relative_dates


def test_start_over_a_header_that_has_one_is_told(lake: Lake, tmp_path: Path) -> None:
    header = ("; UnixStartTime: 1500000000", "; TimeZoneString: Asia/Tokyo")
    summary = _ingest(lake, tmp_path, *header, GOOD, start="2014-03-01")
    assert _jobs(lake)[0]["submitted_at"] == utc("2014-02-28T15:02:10")
    assert (
        "replaces the header's UnixStartTime, which is 2017-07-14 02:40 UTC" in summary.warnings[0]
    )


def test_start_for_unix_times_is_refused(lake: Lake, tmp_path: Path) -> None:
    job = GOOD.replace("130", "1500000130", 1)
    with pytest.raises(SourceError, match="or --start: it holds Unix times"):
        _ingest(lake, tmp_path, job, start="2014-03-01")


def test_a_zone_of_the_header_that_is_none_is_told(lake: Lake, tmp_path: Path) -> None:
    header = ("; UnixStartTime: 1500000000", "; TimeZoneString: Asia/Tokio")
    told = _ingest(lake, tmp_path, *header, GOOD).warnings
    assert "TimeZoneString 'Asia/Tokio' in the header is not a time zone" in told[0]
    assert "the time zone of c is not known" in told[1]
    assert _ingest(lake, tmp_path, *header, GOOD, zone="Asia/Tokyo").warnings == []


@pytest.mark.parametrize(
    ("name", "content", "is_swf"),
    [
        ("log.swf", "anything", True),
        ("log.txt", "; MaxProcs: 8\n", True),
        ("log.txt", GOOD + "\n", True),
        ("log.txt", "; a remark\n\n" + GOOD + "\n", True),
        ("log.txt", GOOD + " 5\n", False),
        ("log.txt", "a,b,c\n1,2,3\n", False),
    ],
)
def test_recognised_by_name_header_or_columns(
    name: str, content: str, is_swf: bool, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    if is_swf:
        assert detect(path).id == "swf"
    else:
        with pytest.raises(SourceError, match="the format is not known"):
            detect(path)


def test_a_latin1_name_in_the_header_does_no_harm(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(
        "; Acknowledge: José\n; UnixStartTime: 1500000000\n".encode("latin-1") + GOOD.encode()
    )
    summary = ingest(lake, [path], "c")
    assert (summary.num_read, summary.num_rejected) == (1, 0)
    assert _jobs(lake)[0]["submitted_at"] == utc("2017-07-14T02:42:10")


# ---- the published logs: counts as in their headers, sums by awk over the files


def test_ricc(shared: Path, lake: Lake) -> None:
    path = shared / "data" / "swf" / "RICC-2010-2.swf.gz"
    summary = ingest(lake, [path], "ricc")
    assert (summary.num_read, summary.num_rejected) == (447_794, 0)
    con = _view(lake)
    assert one_row(con, "SELECT count(*) FROM jobs WHERE state = 'completed'") == (431_549,)
    assert one_row(con, "SELECT count(*) FROM jobs WHERE state = 'cancelled'") == (16_245,)
    assert one_row(con, "SELECT count(*) FROM jobs WHERE requested_s IS NULL") == (2,)
    assert one_row(con, "SELECT count(*) FROM jobs WHERE wait_s = 0") == (192_359,)
    assert one_row(con, "SELECT sum(run_s), max(num_cpus) FROM jobs") == (5_305_148_426, 8192)
    assert one_row(con, "SELECT list_sort(list(DISTINCT queue)) FROM jobs") == (["1", "2"],)
    assert summary.since == utc("2010-04-30T15:04:55")  # StartTime: Sat May 01 00:04:55 JST 2010
    cluster = load(lake.workspace, lake.facts()).cluster("ricc")
    assert (cluster.zone, cluster.cpus_per_node, cluster.nodes[0].count) == ("Asia/Tokyo", 8, 1024)


def test_lines_are_numbered_in_the_order_of_the_file(shared: Path) -> None:
    """RICC's job 1 stands on line 21, and its ids rise by one."""
    path = shared / "data" / "swf" / "RICC-2010-2.swf.gz"
    job = "CAST(string_split(trim(_text), ' ')[1] AS INTEGER)"
    odd = f"SELECT count(*) FROM ({lines(path)}) WHERE _line > 20 AND {job} <> _line - 20"
    assert one_row(connect(Engine()), odd) == (0,)


def test_nasa_knows_neither_waits_nor_ends(shared: Path, lake: Lake) -> None:
    path = shared / "data" / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz"
    summary = ingest(lake, [path], "nasa")
    assert (summary.num_read, summary.num_rejected) == (18_239, 0)
    con = _view(lake)
    unknown = "count(wait_s), count(started_at), count(ended_at), count(requested_s), count(state)"
    assert one_row(con, f"SELECT {unknown} FROM jobs") == (0, 0, 0, 0, 0)
    assert one_row(con, "SELECT sum(run_s), count(run_s) FROM jobs") == (13_950_781, 18_239)
    assert summary.since == utc("1993-10-01T07:00:03")  # StartTime: Fri Oct 01 00:00:03 PDT 1993
    with open_session(lake) as session:
        completed = session.run(load_all().get("walltime"), Selection(min_run_s=0))
        any_state = session.run(load_all().get("walltime"), Selection(min_run_s=0, states=("any",)))
    left_out = {entry.rule: entry.num_jobs for entry in completed.left_out}
    assert (completed.num_used, left_out["that are completed"]) == (0, 18_239)
    assert any_state.num_used == 18_239


def test_gaia(shared: Path, lake: Lake) -> None:
    """Its 127 lines of status 2 are each a job's only line: kept, their end unknown."""
    path = shared / "data" / "swf" / "UniLu-Gaia-2014-2.swf.gz"
    summary = ingest(lake, [path], "gaia")
    assert (summary.num_read, summary.num_rejected) == (51_987, 0)
    con = _view(lake)
    assert con.execute("SELECT state, count(*) FROM jobs GROUP BY 1 ORDER BY 2").fetchall() == [
        (None, 127),
        ("failed", 10_592),
        ("completed", 41_268),
    ]
    assert one_row(con, "SELECT count(*) FROM jobs WHERE run_s IS NULL") == (28,)
    assert con.execute("SELECT queue, count(*) FROM jobs GROUP BY 1 ORDER BY 1").fetchall() == [
        ("besteffort", 14_915),
        ("default", 35_222),
        ("interactive", 1_850),
    ]


def test_kth_counts_from_the_epoch(shared: Path, lake: Lake) -> None:
    summary = ingest(lake, [shared / "data" / "schedules" / "kth-100.swf.gz"], "kth")
    assert (summary.num_read, summary.num_rejected) == (28_481, 0)
    assert summary.since == utc("1970-01-01T00:00:00")
    facts = {"unit": "cpu", "nodes": 100, "cpus_per_node": 1, "relative_dates": True}
    assert lake.facts() == {"kth": facts}
    assert _jobs(lake)[0]["run_s"] == 97_225.0


def _ingest(lake: Lake, folder: Path, *rows: str, **options: str) -> Summary:
    path = folder / "log.swf"
    path.write_text("".join(f"{row}\n" for row in rows))
    return ingest(lake, [path], "c", options=options)


def _jobs(lake: Lake) -> list[dict[str, Any]]:
    con = connect(Engine())
    rows = lake.read(con, JOBS).to_pylist()
    con.close()
    return sorted(rows, key=lambda row: int(row["job_id"]))


def _view(lake: Lake) -> duckdb.DuckDBPyConnection:
    con = connect(Engine())
    con.execute(f"CREATE VIEW jobs AS {select_files(JOBS, lake.files(JOBS))}")
    return con


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("12", "12"),
        ("007", "7"),
        ("3.0", "3"),
        ("-1", None),
        ("9007199254740993", "9007199254740993"),  # 2^53 + 1, which no float holds
        ("18446744073709551615", "18446744073709551615"),
        ("-6148914691236517206", "-6148914691236517206"),
        ("u9f86d081884c7d65", "u9f86d081884c7d65"),
    ],
)
def test_ids_of_users_and_groups_may_be_large_hashes(
    lake: Lake, tmp_path: Path, text: str, id: str | None
) -> None:
    cells = GOOD.split()
    cells[11] = cells[12] = text
    summary = _ingest(lake, tmp_path, " ".join(cells))
    assert summary.num_rejected == 0
    assert [(job["user"], job["account"]) for job in _jobs(lake)] == [(id, id)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("1.5", "field 12 (user) is not a whole number"), ("nan", "field 12 (user) is not a number")],
)
def test_an_id_that_is_a_quantity_is_rejected(
    lake: Lake, tmp_path: Path, text: str, reason: str
) -> None:
    cells = GOOD.split()
    cells[11] = text
    summary = _ingest(lake, tmp_path, GOOD.replace("9", "8", 1), " ".join(cells))
    assert list(summary.rejected_by_reason) == [reason]


@pytest.mark.parametrize(
    ("run", "procs", "run_s"),
    [("0", "0", None), ("-1", "-1", None), ("60", "-1", 60.0), ("60", "0", 60.0), ("0", "4", 0.0)],
)
def test_a_cancelled_job_never_started_if_it_neither_ran_nor_had_processors(
    run: str, procs: str, run_s: float | None, lake: Lake, tmp_path: Path
) -> None:
    _ingest(lake, tmp_path, f"9 130 5 {run} {procs} -1 -1 4 60 -1 5 1 1 -1 1 -1 -1 -1")
    (job,) = _jobs(lake)
    assert job["run_s"] == run_s
    assert (job["started_at"] is None, job["wait_s"]) == (
        run_s is None,
        None if run_s is None else 5.0,
    )
