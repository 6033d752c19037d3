"""What each column of a job is made of: states, exit codes, times, resources."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.lake import Lake
from hakaru.sources.ingest import ingest
from tests.conftest import utc
from tests.sources.sacct._text import DONE, FIELDS, NEVER_STARTED, PENDING, line, one, read_lines


def test_a_finished_job_column_by_column(tmp_path: Path) -> None:
    assert one(tmp_path) == {
        "_line": 2,
        "_text": line(),
        "_reason": None,
        "_folded": None,
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
        # rarer ones: held after a requeue, stopped or signalled, refused by the prolog, moved to a sibling
        ("REQUEUE_HOLD", "pending"),
        ("REQUEUE_FED", "pending"),
        ("RESV_DEL_HOLD", "pending"),
        ("SIGNALING", "running"),
        ("STAGE_OUT", "running"),
        ("STOPPED", "running"),
        ("SPECIAL_EXIT", "failed"),
        ("LAUNCH_FAILED", "failed"),
        ("RECONFIG_FAIL", "failed"),
        ("REVOKED", "cancelled"),
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


def test_an_end_that_is_unknown_leaves_the_run_time_unknown(tmp_path: Path) -> None:
    row = one(tmp_path, State="NODE_FAIL", End="Unknown", ElapsedRaw="75")
    assert (row["ended_at"], row["run_s"]) == (None, None)
    assert row["started_at"] == utc("2018-01-01T00:00:10")


def test_second_0_is_no_time(tmp_path: Path) -> None:
    row = one(tmp_path, **{**PENDING, "Eligible": "0", "Start": "0", "End": "0"})
    assert row["_reason"] is row["eligible_at"] is row["started_at"] is row["ended_at"] is None


def test_nothing_allocated_yet_is_what_was_asked_for(tmp_path: Path) -> None:
    """Slurm prints 0 for what a waiting job has; NNodes and NCPUS say what it wants."""
    fields = (*FIELDS[:-1], "AllocNodes", "AllocCPUS", "JobName")
    cells = {**DONE, **PENDING, "NNodes": "3", "NCPUS": "12", "AllocNodes": "0", "AllocCPUS": "0"}
    (row,) = read_lines(tmp_path, "|".join(cells[name] for name in fields), fields=fields)
    assert (row["num_nodes"], row["num_cpus"]) == (3, 12)
    begun = {
        **cells,
        "State": "RUNNING",
        "Start": "1514764810",
        "AllocNodes": "2",
        "AllocCPUS": "8",
    }
    (row,) = read_lines(tmp_path, "|".join(begun[name] for name in fields), fields=fields)
    assert (row["num_nodes"], row["num_cpus"]) == (2, 8)


@pytest.mark.parametrize("text", ["UNLIMITED", "Partition_Limit", "", "0"])
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
        # a type of which it has none is no model of its GPUs
        ("cpu=1,gres/gpu=2,gres/gpu:a100=0,gres/gpu:h100=2", "", 2, "h100"),
        ("cpu=1,gres/gpu=0,gres/gpu:a100=0", "gres/gpu:a100=4", 0, None),
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


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("State", "NAPPING", "State is not one of Slurm's: NAPPING"),
        ("State", "", "State is missing"),
        ("Submit", "Unknown", "Submit is missing"),
        ("Submit", "0", "Submit is missing"),
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
