"""`sacct` text: each trap of the format on a line of its own, worked by hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hakaru.engine.duckdb import connect
from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine, load
from hakaru.sources import _slurm as slurm
from hakaru.sources._base import detect
from hakaru.sources.ingest import ingest
from hakaru.sources.sacct import COMMAND, Sacct
from tests.conftest import utc

CAPTURED = Path(__file__).resolve().parents[1] / "data" / "sacct" / "slurm-22.05.txt"
FIELDS = (
    *("JobID", "User", "Account", "Partition", "QOS", "State", "ExitCode", "NNodes", "AllocTRES"),
    *("ReqTRES", "NCPUS", "ReqMem", "TimelimitRaw", "Submit", "Eligible", "Start", "End"),
    *("ElapsedRaw", "NodeList", "JobName"),
)
# an hour on two GPUs, ten seconds after its submission at 2018-01-01T00:00:00 UTC
DONE = {
    "JobID": "7",
    "User": "ann",
    "Account": "lab",
    "Partition": "gpu",
    "QOS": "normal",
    "State": "COMPLETED",
    "ExitCode": "0:0",
    "NNodes": "1",
    "AllocTRES": "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=8192M,node=1",
    "ReqTRES": "billing=4,cpu=4,gres/gpu=2,mem=8192M,node=1",
    "NCPUS": "4",
    "ReqMem": "8192M",
    "TimelimitRaw": "120",
    "Submit": "1514764800",
    "Eligible": "1514764805",
    "Start": "1514764810",
    "End": "1514768410",
    "ElapsedRaw": "3600",
    "NodeList": "gpu01",
    "JobName": "train",
}
NEVER_STARTED = {"AllocTRES": "", "NodeList": "None assigned", "ElapsedRaw": "0"}
PENDING = {**NEVER_STARTED, "State": "PENDING", "Start": "Unknown", "End": "Unknown"}


def line(fields: Sequence[str] = FIELDS, delimiter: str = "|", **changed: str) -> str:
    return delimiter.join({**DONE, **changed}[name] for name in fields)


def read(tmp_path: Path, text: str, **options: Any) -> list[dict[str, Any]]:
    """The rows of the source's query, in the order of their lines."""
    path = tmp_path / "sacct.txt"
    path.write_text(text, encoding="utf-8")
    con = connect(Engine())
    rows = con.sql(Sacct.read(con, path, "c", options).sql).to_arrow_table().to_pylist()
    con.close()
    return sorted(rows, key=lambda row: row["_line"])


def read_lines(
    tmp_path: Path,
    *lines: str,
    fields: Sequence[str] = FIELDS,
    delimiter: str = "|",
    end: str = "",
    **options: Any,
) -> list[dict[str, Any]]:
    text = "\n".join(text + end for text in (delimiter.join(fields), *lines)) + "\n"
    return read(tmp_path, text, **options)


def one(tmp_path: Path, **changed: str) -> dict[str, Any]:
    (row,) = read_lines(tmp_path, line(**changed))
    return row


def test_a_finished_job_column_by_column(tmp_path: Path) -> None:
    assert one(tmp_path) == {
        "_line": 2,
        "_text": line(),
        "_reason": None,
        "job_id": "7",
        "array_id": None,
        "user": "ann",
        "account": "lab",
        "queue": "gpu",
        "qos": "normal",
        "name": "train",
        "state": "completed",
        "exit_code": 0,
        "num_nodes": 1,
        "num_gpus": 2,
        "gpu_model": "a100",
        "num_cpus": 4,
        "memory_mib": 8192.0,
        "requested_s": 7200.0,
        "submitted_at": utc("2018-01-01T00:00:00"),
        "eligible_at": utc("2018-01-01T00:00:05"),
        "started_at": utc("2018-01-01T00:00:10"),
        "ended_at": utc("2018-01-01T01:00:10"),
        "wait_s": 10.0,
        "run_s": 3600.0,
        "nodes": ["gpu01"],
    }


# ---- the header


@pytest.mark.parametrize("delimiter", ["|", "\x1f", "\t", ";", "||", "SEP", "^", "~~"])
@pytest.mark.parametrize("end", [False, True], ids=["-P", "-p"])
def test_any_delimiter_with_or_without_one_at_the_end(
    tmp_path: Path, delimiter: str, end: bool
) -> None:
    text = line(delimiter=delimiter)
    rows = read_lines(tmp_path, text, delimiter=delimiter, end=delimiter if end else "")
    assert [{**row, "_text": ""} for row in rows] == [{**one(tmp_path), "_text": ""}]
    assert detect(tmp_path / "sacct.txt").id == "sacct"


def test_any_order_of_fields(tmp_path: Path) -> None:
    fields = tuple(reversed(FIELDS))
    (row,) = read_lines(tmp_path, line(fields), fields=fields)
    assert {**row, "_text": ""} == {**one(tmp_path), "_text": ""}


def test_fields_that_are_not_there_are_null(tmp_path: Path) -> None:
    fields = ("JobIDRaw", "State", "Submit")
    (row,) = read_lines(tmp_path, "7|COMPLETED|1514764800", fields=fields)
    known = {name for name, value in row.items() if value is not None}
    assert known == {"_line", "_text", "job_id", "state", "submitted_at"}


def test_a_field_of_a_later_slurm_is_passed_over(tmp_path: Path) -> None:
    fields = ("JobID", "Sparkle", "State", "Submit", "JobName")
    (row,) = read_lines(tmp_path, "7|x|FAILED|1514764800|a", fields=fields)
    assert (row["_reason"], row["state"], row["name"]) == (None, "failed", "a")


def test_a_missing_field_is_named_with_the_command_that_has_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read_lines(tmp_path, "7|FAILED|ann", fields=("JobID", "State", "User"))
    assert "the header lacks Submit; it has JobID, State, User" in str(caught.value)
    assert COMMAND in str(caught.value)


@pytest.mark.parametrize("text", [line() + "\n", "    JobID    JobName      State\n", "a,b,c\n"])
def test_no_header_is_not_recognised_and_says_what_to_do(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text(text)
    assert not Sacct.recognises(path, text)
    with pytest.raises(SourceError, match="Remove -n"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("header", "recognised"),
    [
        ("JobID|State|Submit", True),
        ("Submit;JobIDRaw", True),
        ("JobID|User", False),
        ("State", False),
        ("id,user,group,queue,nodes,gpus", False),
    ],
)
def test_recognised_by_two_of_id_state_and_submit(header: str, recognised: bool) -> None:
    assert Sacct.recognises(Path("x"), header + "\n1|2|3\n") is recognised


def test_a_repeated_header_is_no_record(tmp_path: Path) -> None:
    rows = read_lines(tmp_path, line(), "|".join(FIELDS), line(JobID="8"))
    assert [(row["job_id"], row["_reason"]) for row in rows] == [("7", None), ("8", None)]


def test_two_clusters_in_one_file_are_refused(tmp_path: Path) -> None:
    fields = ("Cluster", "JobID", "State", "Submit")
    rows = ("east|7|FAILED|1514764800", "west|7|FAILED|1514764800")
    with pytest.raises(SourceError, match=r"jobs of 2 clusters \(east, west\)"):
        read_lines(tmp_path, *rows, fields=fields)
    assert len(read_lines(tmp_path, rows[0], fields=fields)) == 1


# ---- ids


def test_steps_are_neither_jobs_nor_rejects(tmp_path: Path) -> None:
    ids = ("7", "7.batch", "7.extern", "7.0", "8_4", "8_4.batch", "9+1", "9+1.0")
    rows = read_lines(tmp_path, *(line(JobID=id) for id in ids))
    found = [(row["job_id"], row["array_id"], row["_reason"]) for row in rows]
    assert found == [("7", None, None), ("8_4", "8", None), ("9+1", None, None)]


@pytest.mark.parametrize(
    ("id", "tasks"),
    [
        ("5_[1-3,7%2]", ["5_1", "5_2", "5_3", "5_7"]),
        ("5_[0-40:10]", ["5_0", "5_10", "5_20", "5_30", "5_40"]),
        ("5_[9]", ["5_9"]),
        ("5_[0-5:2,9-10%1]", ["5_0", "5_2", "5_4", "5_9", "5_10"]),
    ],
)
def test_a_pending_array_is_one_row_a_task(tmp_path: Path, id: str, tasks: list[str]) -> None:
    rows = read_lines(tmp_path, line(JobID=id, **PENDING))
    assert sorted(row["job_id"] for row in rows) == sorted(tasks)
    assert {(row["array_id"], row["state"], row["num_gpus"]) for row in rows} == {
        ("5", "pending", 2)
    }


def test_a_task_that_ran_replaces_its_pending_row(lake: Lake, tmp_path: Path) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    header = "|".join(FIELDS)
    early.write_text(f"{header}\n{line(JobID='5_[1-3%2]', **PENDING)}\n")
    late.write_text(f"{header}\n{line(JobID='5_[3]', **PENDING)}\n{line(JobID='5_1')}\n")
    for path in (early, late, early):
        ingest(lake, [path], "c")
    con = connect(Engine())
    states = {row["job_id"]: row["state"] for row in lake.read(con, JOBS).to_pylist()}
    assert states == {"5_1": "completed", "5_2": "pending", "5_3": "pending"}


@pytest.mark.parametrize(
    ("id", "reason"),
    [
        ("5_[1,3,7...%4]", "SLURM_BITSTR_LEN=0"),
        ("5_[3-1]", "JobID is not a job"),
        ("5_[]", "JobID is not a job"),
        ("5_[a]", "JobID is not a job"),
        ("5_x", "JobID is not a job"),
        ("", "JobID is missing"),
    ],
)
def test_an_id_that_cannot_be_read_is_rejected(tmp_path: Path, id: str, reason: str) -> None:
    row = one(tmp_path, JobID=id)
    assert reason in row["_reason"] and row["_line"] == 2


# ---- states, exit codes, times


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("COMPLETED", "completed"),
        ("FAILED", "failed"),
        ("TIMEOUT", "timeout"),
        ("DEADLINE", "timeout"),
        ("CANCELLED", "cancelled"),
        ("CANCELLED by 61001", "cancelled"),
        ("OUT_OF_MEMORY", "out_of_memory"),
        ("NODE_FAIL", "node_failed"),
        ("BOOT_FAIL", "node_failed"),
        ("PREEMPTED", "preempted"),
        ("REQUEUED", "preempted"),
        ("RESIZING", "completed"),
        ("RUNNING", "running"),
        ("SUSPENDED", "running"),
        ("COMPLETING", "running"),
        ("CONFIGURING", "running"),
        ("PENDING", "pending"),
    ],
)
def test_states(tmp_path: Path, text: str, state: str) -> None:
    row = one(tmp_path, State=text)
    assert (row["state"], row["_reason"]) == (state, None)


def test_a_deadline_before_the_start_is_a_wait_given_up(tmp_path: Path) -> None:
    row = one(tmp_path, State="DEADLINE", Start="None", NodeList="None assigned")
    assert (row["state"], row["started_at"], row["_reason"]) == ("cancelled", None, None)


@pytest.mark.parametrize(
    ("state", "text", "code"),
    [
        ("FAILED", "3:0", 3),
        ("FAILED", "0:9", 137),
        ("FAILED", "1:15", 143),
        ("COMPLETED", "0:0", 0),
        # Slurm records no status here, only zeros
        ("CANCELLED by 0", "0:0", None),
        ("TIMEOUT", "0:0", None),
        ("NODE_FAIL", "0:0", None),
        ("RUNNING", "0:0", None),
    ],
)
def test_exit_codes(tmp_path: Path, state: str, text: str, code: int | None) -> None:
    assert one(tmp_path, State=state, ExitCode=text)["exit_code"] == code


def test_a_pending_job_has_no_start_and_asks_for_what_it_wants(tmp_path: Path) -> None:
    row = one(tmp_path, **PENDING)
    nothing = ("started_at", "ended_at", "wait_s", "run_s", "nodes", "exit_code")
    assert [row[name] for name in nothing] == [None] * 6
    assert (row["state"], row["num_gpus"], row["num_nodes"]) == ("pending", 2, 1)


def test_a_running_job_has_no_end_and_no_run_time_yet(tmp_path: Path) -> None:
    row = one(tmp_path, State="RUNNING", End="Unknown", ElapsedRaw="75")
    assert (row["ended_at"], row["run_s"], row["wait_s"]) == (None, None, 10.0)
    assert row["started_at"] == utc("2018-01-01T00:00:10")


@pytest.mark.parametrize(
    "start", ["None", "Unknown", "1514768410"], ids=["none", "unknown", "held"]
)
def test_cancelled_while_pending(tmp_path: Path, start: str) -> None:
    """Slurm 22.05 gives a held job the Start of its End; it never had nodes."""
    row = one(tmp_path, State="CANCELLED by 61001", Start=start, **NEVER_STARTED)
    assert (row["started_at"], row["wait_s"], row["run_s"]) == (None, None, None)
    assert (row["ended_at"], row["num_gpus"]) == (utc("2018-01-01T01:00:10"), 2)


def test_refused_at_submit(tmp_path: Path) -> None:
    same = dict.fromkeys(("Start", "End", "Eligible"), DONE["Submit"])
    row = one(tmp_path, State="FAILED", ExitCode="1:0", **NEVER_STARTED, **same)
    assert (row["state"], row["exit_code"]) == ("failed", 1)
    assert (row["started_at"], row["run_s"], row["nodes"]) == (None, None, None)


def test_elapsed_leaves_out_the_suspension(tmp_path: Path) -> None:
    assert one(tmp_path, ElapsedRaw="3000")["run_s"] == 3000.0


def test_a_requeued_job_is_a_row_an_attempt(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    again = {"Submit": "1514768500", "Eligible": "1514768500", **PENDING}
    rows = [line(State="NODE_FAIL"), line(**{**again, "Submit": "1514768410"})]
    path.write_text("\n".join(["|".join(FIELDS), *rows]))
    assert ingest(lake, [path], "c").upsert.num_new == 2


def test_a_resized_job_goes_on_where_its_first_part_ended(tmp_path: Path) -> None:
    """The second record has a new Submit but the old Start, and an Elapsed from there."""
    first = line(State="RESIZING", NodeList="gpu[01-02]")
    second = line(Submit="1514768410", Start="1514764810", End="1514768500", ElapsedRaw="3690")
    rows = read_lines(tmp_path, first, second)
    assert [row["run_s"] for row in rows] == [3600.0, 90.0]
    assert [row["wait_s"] for row in rows] == [10.0, None]
    assert rows[1]["started_at"] == rows[0]["ended_at"]


# ---- local times

LOCAL = ("JobID", "State", "Submit", "Start", "End", "Elapsed", "Timelimit")
LOCAL_ROW = (
    "7|COMPLETED|2018-01-01T09:00:00|2018-01-01T09:00:10|2018-01-02T10:00:10|1-01:00:00|UNLIMITED"
)


@pytest.mark.parametrize(
    ("options", "submitted"),
    [
        ({"zone": "Asia/Tokyo"}, "2018-01-01T00:00:00"),
        ({"site_zone": "Asia/Tokyo"}, "2018-01-01T00:00:00"),
        ({"zone": "UTC"}, "2018-01-01T09:00:00"),
        ({"zone": "UTC", "site_zone": "Asia/Tokyo"}, "2018-01-01T09:00:00"),
    ],
)
def test_local_times_are_read_in_the_zone_that_is_given(
    tmp_path: Path, options: dict[str, str], submitted: str
) -> None:
    (row,) = read_lines(tmp_path, LOCAL_ROW, fields=LOCAL, **options)
    assert row["submitted_at"] == utc(submitted)
    assert (row["run_s"], row["wait_s"], row["requested_s"]) == (90000.0, 10.0, None)


def test_a_zone_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="Mars/Base"):
        read_lines(tmp_path, LOCAL_ROW, fields=LOCAL, zone="Mars/Base")


def test_local_times_without_a_zone_are_not_guessed(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text("|".join(LOCAL) + f"\n{LOCAL_ROW}\n")
    fix = "add --zone Asia/Tokyo (where sacct ran), or write with SLURM_TIME_FORMAT=%s"
    with pytest.raises(SourceError) as caught:
        ingest(lake, [path], "c", options={"zone": None})
    assert str(caught.value) == f"{path}: its times have no offset: {fix}"


def test_the_zone_of_the_site_is_that_of_its_local_times(lake: Lake, tmp_path: Path) -> None:
    (lake.workspace / "hakaru.toml").write_text('[clusters.c]\nzone = "Asia/Tokyo"\n')
    path = tmp_path / "jobs.txt"
    path.write_text("|".join(LOCAL) + f"\n{LOCAL_ROW}\n")
    assert ingest(lake, [path], "c").since == utc("2018-01-01T00:00:00")
    with pytest.raises(SourceError, match="no offset"):
        ingest(lake, [path], "another")


def test_a_zone_that_was_given_once_is_the_sites(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text("|".join(LOCAL) + f"\n{LOCAL_ROW}\n")
    ingest(lake, [path], "c", options={"zone": "Asia/Tokyo"})
    site = load(lake.workspace, lake.facts()).cluster("c")
    assert (site.zone, site.has_zone) == ("Asia/Tokyo", True)
    assert ingest(lake, [path], "c").upsert.num_unchanged == 1


def test_epochs_need_no_zone_whatever_a_job_is_called(tmp_path: Path) -> None:
    row = one(tmp_path, JobName="2018-01-01T09:00:00")
    assert (row["_reason"], row["submitted_at"]) == (None, utc("2018-01-01T00:00:00"))


def test_local_times_far_below_epochs_are_rejected(tmp_path: Path) -> None:
    epochs = [line(JobID=str(i)) for i in range(1, 801)]
    rows = read_lines(tmp_path, *epochs, line(JobID="900", Start="2018-01-01T09:00:10"))
    assert sum(row["_reason"] is None for row in rows) == 800
    assert rows[-1]["_reason"].startswith("Start has no offset: add --zone Asia/Tokyo")


def new_york(tmp_path: Path, day: str = "2024-11-03", **clocks: str) -> dict[str, Any]:
    """A job of the night in which 01:00 to 02:00 came twice: until 05:59:59 UTC, and from 06:00 on."""
    elapsed = clocks.pop("Elapsed", "")
    times = {name: f"{day}T{clock}:00" for name, clock in clocks.items()}
    text = line(**{"Eligible": times["Submit"], **times, "ElapsedRaw": elapsed})
    (row,) = read_lines(tmp_path, text, zone="America/New_York")
    return row


@pytest.mark.parametrize(
    ("submit", "start", "end", "elapsed", "expected"),
    [
        # nothing says that it was not the first time
        ("01:10", "01:20", "01:40", "1200", ("05:10", "05:20", "05:40")),
        ("00:50", "01:20", "02:10", "", ("04:50", "05:20", "07:10")),
        # the end shows an earlier clock than the start
        ("01:10", "01:50", "01:20", "1800", ("05:10", "05:50", "06:20")),
        ("01:10", "01:50", "01:20", "", ("05:10", "05:50", "06:20")),
        # the start shows an earlier clock than the submission, and draws the end with it
        ("01:50", "01:20", "01:40", "1200", ("05:50", "06:20", "06:40")),
        ("01:50", "01:20", "02:40", "4800", ("05:50", "06:20", "07:40")),
        # the order is right, but it ran for longer than the first reading has
        ("01:10", "01:20", "01:40", "4800", ("05:10", "05:20", "06:40")),
        # the end is certain, and the run time says which start it was
        ("00:50", "01:20", "02:10", "3000", ("04:50", "06:20", "07:10")),
        ("00:50", "01:20", "02:10", "6600", ("04:50", "05:20", "07:10")),
        # suspended for a while: the first start cannot be told from the second
        ("00:50", "01:20", "02:10", "2900", ("04:50", "05:20", "07:10")),
    ],
)
def test_an_hour_that_comes_twice(
    tmp_path: Path, submit: str, start: str, end: str, elapsed: str, expected: tuple[str, ...]
) -> None:
    row = new_york(tmp_path, Submit=submit, Start=start, End=end, Elapsed=elapsed)
    assert row["_reason"] is None
    times = (row["submitted_at"], row["started_at"], row["ended_at"])
    assert times == tuple(utc(f"2024-11-03T{clock}:00") for clock in expected)
    assert row["wait_s"] == (times[1] - times[0]).total_seconds()
    assert row["run_s"] == (float(elapsed) if elapsed else (times[2] - times[1]).total_seconds())


def test_a_hold_that_ends_in_the_second_of_two_hours(tmp_path: Path) -> None:
    row = new_york(tmp_path, Submit="01:50", Eligible="01:10", Start="01:30", End="03:00")
    assert row["eligible_at"] == utc("2024-11-03T06:10:00")
    assert row["started_at"] == utc("2024-11-03T06:30:00")


@pytest.mark.parametrize(
    ("start", "end", "elapsed"),
    [("00:30", "01:20", ""), ("02:30", "01:20", ""), ("01:50", "01:20", "7200")],
    ids=["starts too early", "ends too early", "ran for longer than either"],
)
def test_backwards_either_way_is_rejected_with_what_to_do(
    tmp_path: Path, start: str, end: str, elapsed: str
) -> None:
    row = new_york(tmp_path, Submit="01:10", Start=start, End=end, Elapsed=elapsed)
    told = (
        "its times run backwards in an hour that the clock repeats; write with SLURM_TIME_FORMAT=%s"
    )
    assert row["_reason"] == told


def test_backwards_on_another_day_has_no_such_excuse(tmp_path: Path) -> None:
    row = new_york(tmp_path, day="2024-11-04", Submit="01:10", Start="01:50", End="01:20")
    assert (row["_reason"], row["ended_at"]) == (None, utc("2024-11-04T06:20:00"))


@pytest.mark.parametrize("text", ["UNLIMITED", "Partition_Limit", ""])
def test_no_limit_is_null(tmp_path: Path, text: str) -> None:
    row = one(tmp_path, TimelimitRaw=text)
    assert (row["requested_s"], row["_reason"]) == (None, None)


# ---- resources


@pytest.mark.parametrize(
    ("alloc", "req", "gpus", "model"),
    [
        ("cpu=1,gres/gpu=4,gres/gpu:a100=3,gres/gpu:v100=1", "", 4, "a100,v100"),
        ("cpu=1,gres/gpu:a100=3,gres/gpu:v100=1", "", 4, "a100,v100"),
        ("gres/gpu:a100=2,gres/gpu=2,cpu=1", "gres/gpu=8", 2, "a100"),
        ("", "cpu=1,gres/gpu=8,node=1", 8, None),
        ("cpu=4,node=1", "cpu=4,gres/gpu=8", 0, None),
        ("cpu=4,gres/gpumem=80G,gres/shard=2,gres/gpuutil=5", "", 0, None),
        ("cpu=1,gres/gpu=2", "gres/gpu:h100=2,gres/gpu=2", 2, "h100"),
        ("", "", None, None),
    ],
)
def test_gpus_are_never_counted_twice(
    tmp_path: Path, alloc: str, req: str, gpus: int | None, model: str | None
) -> None:
    row = one(tmp_path, AllocTRES=alloc, ReqTRES=req)
    assert (row["num_gpus"], row["gpu_model"]) == (gpus, model)


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("4096M", 4096),
        ("1.50G", 1536),
        ("2T", 2097152),
        ("4Gc", 16384),
        ("4Gn", 8192),
        ("0n", None),
    ],
)
def test_requested_memory(tmp_path: Path, text: str, mib: float | None) -> None:
    row = one(tmp_path, AllocTRES="", ReqTRES="", ReqMem=text, NNodes="2", NCPUS="4")
    assert row["memory_mib"] == mib


def test_counts_without_noconvert(tmp_path: Path) -> None:
    row = one(tmp_path, NNodes="2K", AllocTRES="cpu=4,mem=1.50T,node=2048")
    assert (row["num_nodes"], row["memory_mib"]) == (2048, 1572864.0)


# ---- free text


def test_names_with_delimiters_and_newlines_where_the_name_is_last(tmp_path: Path) -> None:
    names = ["a|b c", "line1\nline2", "x\n\ny|z", "学習-é", "||", "plain"]
    texts = [line(JobID=str(i), JobName=name) for i, name in enumerate(names, 1)]
    rows = read_lines(tmp_path, *texts)
    assert [(row["job_id"], row["name"], row["_reason"]) for row in rows] == [
        (str(i), name, None) for i, name in enumerate(names, 1)
    ]
    assert [row["_line"] for row in rows] == [2, 3, 5, 8, 9, 10]


@pytest.mark.parametrize("at", [0, 1, 5, 19], ids=["first", "second", "sixth", "last"])
@pytest.mark.parametrize("end", ["", "|"], ids=["-P", "-p"])
def test_names_with_delimiters_and_newlines_anywhere(tmp_path: Path, at: int, end: str) -> None:
    others = [name for name in FIELDS if name != "JobName"]
    fields = (*others[:at], "JobName", *others[at:])
    names = ["a|b c", "line1\nline2", "plain", "u\nv\nw", "d|\ne"]
    texts = [line(fields, JobID=str(i), JobName=name) for i, name in enumerate(names, 1)]
    rows = read_lines(tmp_path, *texts, fields=fields, end=end)
    assert [row["_reason"] for row in rows] == [None] * 5
    assert [row["name"] for row in rows] == names
    assert [row["run_s"] for row in rows] == [3600.0] * 5


def test_extra_delimiters_go_to_the_only_text_that_can_hold_them(tmp_path: Path) -> None:
    fields = ("JobID", "JobName", "State", "Submit", "Comment", "End")
    good = "7|train|FAILED|1514764800|a|b|1514768410"
    name = "8|tr|ain|FAILED|1514764800|a|1514768410"
    both = "9|tr|ain|FAILED|1514764800|a|b|1514768410"
    rows = read_lines(tmp_path, good, name, both, fields=fields)
    assert [row["name"] for row in rows[:2]] == ["train", "tr|ain"]
    assert [row["_reason"] for row in rows[:2]] == [None, None]
    assert "expected 6 fields, found 8" in rows[2]["_reason"]


def test_a_damaged_record_does_not_end_in_a_job_name(tmp_path: Path) -> None:
    whole, lost_id, short = line(JobID="x7"), line().split("|", 8)[8], line(JobID="8")[:30]
    rows = read_lines(tmp_path, line(), whole, lost_id, short, line(JobID="9"))
    assert [row["_line"] for row in rows] == [2, 3, 4, 5, 6]
    assert [row["name"] for row in rows if row["_reason"] is None] == ["train", "train"]
    reasons = [row["_reason"] for row in rows[1:4]]
    assert reasons[0] == "JobID is not a job: x7"
    assert reasons[1] == "neither a record nor the rest of a job name"
    assert reasons[2].startswith("expected 20 fields, found ")


def test_too_many_fields_without_any_free_text(tmp_path: Path) -> None:
    (row,) = read_lines(tmp_path, "7|FAILED|1|2", fields=("JobID", "State", "Submit"))
    assert row["_reason"].startswith("expected 3 fields, found 4; write with --delimiter")


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("State", "NAPPING", "State is not one of Slurm's: NAPPING"),
        ("State", "", "State is missing"),
        ("Submit", "Unknown", "Submit is missing"),
        ("Submit", "noon", "Submit is not a time: noon"),
        ("Submit", "2018-13-01T00:00:00", "Submit is not a time: 2018-13-01T00:00:00"),
        ("Start", "01/02-10:00", "Start is not a time: 01/02-10:00"),
        ("End", "later", "End is not a time: later"),
        ("ExitCode", "bad", "ExitCode is not CODE:SIGNAL: bad"),
        ("TimelimitRaw", "soon", "Timelimit is not a duration: soon"),
        ("ElapsedRaw", "long", "Elapsed is not a duration: long"),
        ("NNodes", "many", "NNodes is not a number: many"),
        ("NCPUS", "-x", "NCPUS is not a number: -x"),
        ("NodeList", "gpu[1-", "NodeList is not a list of nodes: gpu[1-"),
        ("NodeList", "gpu[3-1]", "NodeList is not a list of nodes: gpu[3-1]"),
    ],
)
def test_a_bad_value_is_rejected_with_its_reason(
    tmp_path: Path, field: str, value: str, reason: str
) -> None:
    (row,) = read_lines(tmp_path, line(**{field: value}), zone="UTC")
    assert row["_reason"] == reason


def test_records_of_a_real_slurm(tmp_path: Path) -> None:
    """Captured from Slurm 22.05: 69 records besides steps; the held array of five was cancelled."""
    rows = read(tmp_path, CAPTURED.read_text())
    assert [row["_reason"] for row in rows] == [None] * len(rows)
    told = re.findall(r"(?m)^([\d_+]+|4_\[0,10,20,30,40\])\|\d+\|", CAPTURED.read_text())
    assert (len(told), len(rows)) == (69, 73)
    states = Counter(row["state"] for row in rows)
    assert states["preempted"] == 1 and states["node_failed"] == 5 and states["timeout"] == 1
    by_id = {(row["job_id"], row["state"]): row for row in rows}
    assert by_id["30", "completed"]["name"] == "line1\nline2"
    assert by_id["28", "completed"]["name"] == "a|b c"
    assert by_id["1", "completed"]["nodes"] == ["gpu02", "gpu04"]
    assert by_id["187", "completed"]["num_gpus"] == 32
    assert by_id["14", "completed"]["run_s"] == 7.0
    assert by_id["10", "cancelled"]["started_at"] is None
    assert {id for id, _ in by_id if id.startswith("4_")} == {f"4_{i}" for i in range(0, 50, 10)}


# ---- grammars, against a plain reference

CON = duckdb.connect()


def value(expression: str, text: str) -> Any:
    ((found,),) = CON.execute(f"SELECT {expression} FROM (SELECT ? AS t)", [text]).fetchall()
    return found


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
@settings(max_examples=60, deadline=None)
def test_durations(days: int, hours: int, minutes: int, seconds: int) -> None:
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    clock = f"{hours:02}:{minutes:02}:{seconds:02}"
    assert value(slurm.duration_s("t"), f"{days}-{clock}") == total
    assert value(slurm.duration_s("t"), clock) == total - days * 86400
    assert value(slurm.duration_s("t"), f"{minutes:02}:{seconds:02}") == minutes * 60 + seconds
    assert value(slurm.duration_s("t"), f"{days}-{hours:02}") == (days * 24 + hours) * 3600


@pytest.mark.parametrize("text", ["", "x", "1", "1:2:3:4", "1-", "-1:00", "1-1:1:1:1", "00:00:00x"])
def test_what_is_no_duration(text: str) -> None:
    assert value(slurm.duration_s("t"), text) is None


ranges = st.tuples(st.integers(0, 120), st.integers(0, 12), st.integers(1, 4))
prefixes = st.sampled_from(["gpu", "n", "rack-a.x", "node1-"])
items = st.one_of(
    st.tuples(prefixes, st.lists(ranges, min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["login1", "a", "gpu-7.site.org"]), st.just([])),
)


def written(first: int, more: int, width: int) -> str:
    return f"{first:0{width}}" if more == 0 else f"{first:0{width}}-{first + more:0{width}}"


@given(st.lists(items, min_size=1, max_size=4))
@settings(max_examples=80, deadline=None)
def test_node_lists(parts: list[tuple[str, list[tuple[int, int, int]]]]) -> None:
    texts, names = [], []
    for prefix, spans in parts:
        if not spans:
            texts.append(prefix)
            names.append(prefix)
            continue
        texts.append(f"{prefix}[{','.join(written(*span) for span in spans)}]")
        for first, more, width in spans:
            names += [f"{prefix}{i:0{width}}" for i in range(first, first + more + 1)]
    assert value(slurm.node_names("t"), ",".join(texts)) == names


def test_a_node_list_of_two_dimensions() -> None:
    names = ["r1n08-ib", "r1n09-ib", "r1n10-ib", "r2n08-ib", "r2n09-ib", "r2n10-ib", "x"]
    assert value(slurm.node_names("t"), "r[1-2]n[08-10]-ib,x") == names


amounts = st.dictionaries(
    st.sampled_from(["billing", "cpu", "node", "gres/gpu:a100", "gres/gpu:v100", "gres/shard"]),
    st.integers(0, 64),
)


@given(amounts, st.one_of(st.none(), st.integers(0, 64)), st.randoms())
@settings(max_examples=80, deadline=None)
def test_tres_strings(amounts: dict[str, int], total: int | None, random: Any) -> None:
    entries = [*amounts.items(), *([("gres/gpu", total)] if total is not None else [])]
    random.shuffle(entries)
    text = ",".join(f"{name}={amount}" for name, amount in entries)
    typed = [(name[9:], amount) for name, amount in entries if name.startswith("gres/gpu:")]
    expected = total if total is not None else sum(amount for _, amount in typed)
    assert value(slurm.num_gpus("t"), text) == expected
    assert value(slurm.tres("t", "cpu"), text) == (
        str(amounts["cpu"]) if "cpu" in amounts else None
    )
    models = ",".join(name for name, amount in typed if amount)
    assert value(slurm.gpu_model("t"), text) == (models or None)
