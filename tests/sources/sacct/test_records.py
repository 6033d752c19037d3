"""From lines to records: ids, steps, arrays, and names that hold delimiters and newlines."""

from __future__ import annotations

import gzip
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from hakaru.engine.duckdb import connect
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine
from hakaru.sources.ingest import ingest
from hakaru.sources.sacct import Sacct
from tests.sources.sacct._text import CAPTURED, FIELDS, PENDING, line, one, read, read_lines

BELOW_LINE_3 = "part of a second export, whose header is in line 3"


def test_steps_are_neither_jobs_nor_rejects(tmp_path: Path) -> None:
    ids = ("7", "7.batch", "7.extern", "7.0", "8_4", "8_4.batch", "9+1", "9+1.0")
    rows = read_lines(tmp_path, *(line(JobID=id) for id in ids))
    found = [(row["job_id"], row["array_id"], row["_reason"]) for row in rows]
    assert found == [("7", None, None), ("8_4", "8", None), ("9+1", None, None)]


def test_control_characters_do_not_cut_a_name(tmp_path: Path) -> None:
    (row,) = read_lines(tmp_path, line(JobName="my\x01\x02\x03x"))
    assert (row["name"], row["_reason"]) == ("my\x01\x02\x03x", None)


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


# ---- lines that are no part of a job's name


def reasons(rows: list[dict[str, object]]) -> dict[int, str | None]:
    return {int(str(row["_line"])): row["_reason"] for row in rows}  # type: ignore[misc]


@pytest.mark.parametrize(
    "message",
    [
        "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection",
        "sacct: fatal: Problem getting jobs",
        "slurm_load_jobs error: Unable to contact slurm controller",
        "slurmdbd: error: Connection refused",
        "sacct[71]: debug: x",
        "srun: error: Unable to allocate resources: Invalid account",
        "srun: job 12 queued and waiting for resources",
        "error: Munge decode failed: Expired credential",
        "munged: Error: Unable to open the key",
        "bash: line 1: warning: setlocale: LC_ALL: cannot change locale",
        "[2024-01-01T00:00:00] error: slurm_receive_msg: Zero Bytes were transmitted",
        "[2024-01-01T00:00:00.123] done with job",
        "ssh: connect to host login1 port 22: Connection refused",
        "Connection to login1.example closed.",
        "kex_exchange_identification: Connection closed by remote host",
        "Warning: Permanently added 'login1' (ED25519) to the list of known hosts.",
    ],
)
def test_a_message_is_no_part_of_the_name_before_it(tmp_path: Path, message: str) -> None:
    rows = read_lines(tmp_path, line(), message, line(JobID="8", JobName="a\nb"), message)
    assert [(row["name"], row["_reason"]) for row in rows if row["_line"] in (2, 4)] == [
        ("train", None),
        ("a\nb", None),
    ]
    told = "a message of a command, not a record"
    assert reasons(rows) == {2: None, 3: told, 4: None, 6: told}


def test_what_follows_a_message_is_no_part_of_the_name_either(tmp_path: Path) -> None:
    rows = read_lines(tmp_path, line(JobName="a"), "b", "sacct: error: x", "c", line(JobID="8"))
    assert [row["name"] for row in rows] == ["a\nb", None, None, "train"]
    assert reasons(rows)[5] == "neither a record nor the rest of a job name"


def test_messages_before_the_header(tmp_path: Path) -> None:
    text = "\n".join(["sacct: error: x", "", "|".join(FIELDS), line(), ""])
    assert Sacct.recognises(tmp_path / "x", text)
    assert reasons(read(tmp_path, text)) == {1: "a message of a command, not a record", 4: None}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "\x1f", "^", "~"])
@pytest.mark.parametrize("header", [True, False], ids=["header", "no header"])
def test_a_second_export_with_another_delimiter(
    tmp_path: Path, delimiter: str, header: bool
) -> None:
    second = [line(delimiter=delimiter, JobID=str(i), AllocTRES="", ReqTRES="") for i in (8, 9)]
    first_line = [delimiter.join(FIELDS)] if header else []
    rows = read_lines(tmp_path, line(JobName="a"), *first_line, *second)
    assert [(row["_line"], row["name"]) for row in rows if row["_reason"] is None] == [(2, "a")]
    told = {reason for reason in reasons(rows).values() if reason}
    if header:
        assert (told, len(rows)) == ({BELOW_LINE_3}, 4)
    else:
        assert len(rows) == 3 and all("another delimiter" in reason for reason in told)


@pytest.mark.parametrize("drop", [0, 1, 2])
def test_a_second_export_with_other_fields(tmp_path: Path, drop: int) -> None:
    """Of the same delimiter: as many fields in another order, or fewer, would be read as others."""
    other = tuple(reversed(FIELDS[: len(FIELDS) - drop]))
    rows = read_lines(tmp_path, line(), "|".join(other), line(other, JobID="8"), line(JobID="9"))
    assert [row["_line"] for row in rows if row["_reason"] is None] == [2]
    assert {row["_reason"] for row in rows[1:]} == {BELOW_LINE_3}


OTHER_FIELDS = (
    "a record with other fields than the header has; write each export to a file of its own"
)
OTHER_DELIMITER = OTHER_FIELDS.replace("other fields", "another delimiter")
TEN = ("JobID", "User", "State", "Submit", "Start", "End", "NNodes", "NCPUS", "QOS", "SubmitLine")


@pytest.mark.parametrize("fields", [TEN, FIELDS], ids=["submit line", "name"])
@pytest.mark.parametrize(
    ("delimiter", "reason"),
    [("|", OTHER_FIELDS), *((each, OTHER_DELIMITER) for each in (",", ";", "\t", "\x1f"))],
)
def test_a_second_export_without_header_and_in_another_order(
    tmp_path: Path, fields: tuple[str, ...], delimiter: str, reason: str
) -> None:
    cells = [("u1", "123", "COMPLETED", "1700000000"), ("u1", "4_7", "CANCELLED by 12", '"x y"')]
    second = [delimiter.join(each) for each in cells] * 15
    first = line(fields, SubmitLine="sbatch a.sh")
    rows = read_lines(tmp_path, first, *second, fields=fields)
    assert [row["_line"] for row in rows if row["_reason"] is None] == [2]
    assert rows[0]["_folded"] is None and rows[0]["_text"] == first
    assert reasons(rows) == {2: None} | dict.fromkeys(range(3, 33), reason)


def test_the_rest_of_a_record_is_told_from_a_record_of_another_export(tmp_path: Path) -> None:
    """Both have a number and a state; only one follows a record that lacks them."""
    fields = ("JobID", "JobName", "State", "Submit", "NNodes", "Comment")
    other = "u1|123|COMPLETED|1700000000"
    rows = read_lines(
        tmp_path, "7|a", "b|FAILED|1|2|c", "d", other, "8|a|FAILED|1", other, "x", fields=fields
    )
    assert [(row["name"], row["_folded"]) for row in rows if row["_reason"] is None] == [
        ("a\nb", 2)
    ]
    assert reasons(rows) == {
        2: None, 5: OTHER_FIELDS, 6: "expected 6 fields, found 4", 7: OTHER_FIELDS,
        8: "neither a record nor the rest of a job name",
    }  # fmt: skip


def test_so_many_lines_at_most_follow_a_record(tmp_path: Path) -> None:
    told = "more than 20 lines after a record: the rest is not part of its text"
    junk = [f"word{i}" for i in range(50)]
    rows = read_lines(tmp_path, line(JobName="a"), *junk, line(JobID="8"))
    assert rows[0]["name"] == "\n".join(["a", *junk[:20]]) and rows[0]["_folded"] == 20
    assert reasons(rows) == {2: None} | dict.fromkeys(range(23, 53), told) | {53: None}


def test_a_long_text_inside_of_a_record_is_kept(tmp_path: Path) -> None:
    """The fields after it show where it ends; one that never ends is a damaged record."""
    fields = ("JobID", "SubmitLine", "State", "Submit")
    script = "\n".join(["sbatch --wrap '", *(f"echo {i}" for i in range(40)), "'"])
    rows = read_lines(tmp_path, f"7|{script}|FAILED|1", "8|sbatch", *["x"] * 40, fields=fields)
    assert (rows[0]["_reason"], rows[0]["_folded"]) == (None, 41)
    assert rows[1]["_reason"] == "expected 4 fields, found 2"
    assert {row["_reason"] for row in rows[2:]} == {"neither a record nor the rest of a job name"}
    assert len(rows) == 42


def test_what_follows_a_whole_record_of_sacct_p_is_not_lost(tmp_path: Path) -> None:
    text = "\n".join(["|".join(FIELDS) + "|", line() + "|", "junk", ""])
    assert reasons(read(tmp_path, text)) == {
        2: None,
        3: "neither a record nor the rest of a job name",
    }


def test_words_of_a_name_are_not_a_header(tmp_path: Path) -> None:
    rows = read_lines(tmp_path, line(JobName="a\nJobID JobName State"), line(JobID="8"))
    assert [(row["name"], row["_reason"]) for row in rows] == [
        ("a\nJobID JobName State", None),
        ("train", None),
    ]
    wide = ["       JobID    JobName      State ", "------------ ---------- ---------- "]
    rows = read_lines(tmp_path, line(), *wide, "8  train  COMPLETED ", line(JobID="9"))
    assert [row["_reason"] for row in rows] == [None, *[BELOW_LINE_3] * 4]


def test_two_exports_in_one_file_are_split_as_the_warning_says(lake: Lake, tmp_path: Path) -> None:
    """The commands that it gives make two files that are read in whole."""
    other = tuple(reversed(FIELDS))
    both = [
        "|".join(FIELDS),
        line(),
        "|".join(other),
        line(other, JobID="8"),
        line(other, JobID="9"),
    ]
    path = tmp_path / "my jobs.txt"
    path.write_text("\n".join([*both, ""]))
    told = ingest(lake, [path], "c", max_missing=1.0)
    assert told.rejected_by_reason == {BELOW_LINE_3: 3}
    (split,) = [warning for warning in told.warnings if "second export begins in line 3" in warning]
    subprocess.run(split.split("\n", 1)[1], shell=True, check=True, cwd=tmp_path)
    parts = [tmp_path / "my jobs-1.txt", tmp_path / "my jobs-2.txt"]
    found = ingest(lake, parts, "split")
    assert (found.num_read, found.num_rejected) == (3, 0)
    packed = tmp_path / "jobs.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    warnings = ingest(lake, [packed], "packed").warnings
    assert any("Write the two to files of their own" in warning for warning in warnings)
    assert not any("head -n" in warning for warning in warnings)


def test_the_same_export_twice_in_one_file_is_read_in_whole(tmp_path: Path) -> None:
    rows = read_lines(tmp_path, line(), "|".join(FIELDS), line(JobID="8"))
    assert reasons(rows) == {2: None, 4: None}


def test_sacct_without_p_behind_it(tmp_path: Path) -> None:
    wide = ["JobID           JobName      State", "------------ ---------- ----------"]
    rows = read_lines(tmp_path, line(), wide[1], "8               train  COMPLETED")
    assert [row["_reason"] for row in rows] == [
        None,
        "a ruler of sacct without -P, not a record",
        "a record with another delimiter than the header has; write each export to a file of its own",
    ]
    assert len(read_lines(tmp_path, line(), *wide)) == 3


def test_a_second_header_without_free_text(tmp_path: Path) -> None:
    fields = ("JobID", "State", "Submit")
    rows = read_lines(tmp_path, "7|FAILED|1", "JobID|Submit|State", "8|1|FAILED", fields=fields)
    assert [row["_reason"] is None for row in rows] == [True, False, False]


def test_a_name_has_a_limit(tmp_path: Path) -> None:
    fits, junk = "x\n" + "y" * 1022, ["z" * 100] * 11
    rows = read_lines(tmp_path, line(JobName=fits), line(JobID="8", JobName="a"), *junk)
    assert [(row["name"], row["_reason"]) for row in rows[:2]] == [(fits, None), ("a", None)]
    assert {row["_reason"] for row in rows[2:]} == {
        "not the rest of a job name: longer than 1,024 characters"
    }
    assert [row["_line"] for row in rows[2:]] == list(range(5, 16))


@pytest.mark.parametrize(("length", "is_read"), [(1024, True), (1025, False)])
def test_a_name_on_one_line_has_the_same_limit(
    lake: Lake, tmp_path: Path, length: int, is_read: bool
) -> None:
    path = tmp_path / "jobs.txt"
    rows = [line(), line(JobID="8", JobName="n" * length)]
    path.write_text("\n".join(["|".join(FIELDS), *rows, ""]))
    expected = {} if is_read else {"name is longer than 1,024 characters": 1}
    assert ingest(lake, [path], "c").rejected_by_reason == expected


def test_a_submit_line_may_be_longer_than_a_name(tmp_path: Path) -> None:
    fields = ("JobID", "State", "Submit", "SubmitLine")
    rows = read_lines(tmp_path, "7|FAILED|1|sbatch", "a" * 2000, fields=fields)
    assert [(row["_reason"], row["_folded"]) for row in rows] == [(None, 1)]
    rows = read_lines(tmp_path, "7|FAILED|1|sbatch", "a" * 70_000, fields=fields)
    assert [row["_reason"] is None for row in rows] == [True, False]


def test_numbers_and_lists_in_a_name_stay_in_it(tmp_path: Path) -> None:
    names = ["run\n10:20:30", "run\n1,2,3", "run\n7 of 9", "run\nJobID State User of my other jobs"]
    fields = ("JobID", "State", "Submit", "JobName")
    rows = read_lines(tmp_path, *(f"{i}|FAILED|1|{n}" for i, n in enumerate(names)), fields=fields)
    assert [row["name"] for row in rows] == names


def test_how_many_lines_were_joined_to_names_is_in_the_summary(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    array = line(JobID="5_[1-3]", **{**PENDING, "JobName": "a\nb"})
    rejected = line(JobID="9", State="NAPPING", JobName="x\ny")
    rows = [line(JobName="a\n\nb\nc"), line(JobID="8"), rejected, array]
    path.write_text("\n".join(["|".join(FIELDS), *rows]) + "\n\n")
    (warning,) = ingest(lake, [path], "c", options={"zone": "UTC"}).warnings
    assert warning.startswith("3 lines were joined to the names or comments of 2 jobs")
