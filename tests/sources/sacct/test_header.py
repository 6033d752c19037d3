"""The header of `sacct` text: any delimiter, any order, and what is missing from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.sources._base import detect
from hakaru.sources._slurm import COMMAND
from hakaru.sources.ingest import ingest
from hakaru.sources.sacct import Sacct
from tests.sources.sacct._text import FIELDS, line, one, read, read_lines


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
    with pytest.raises(SourceError, match="remove -n"):
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


# ---- no header at all


NAMED = ",".join(FIELDS)


@pytest.mark.parametrize("delimiter", ["|", ",", ";", "\t", "\x1f", "^"])
@pytest.mark.parametrize("end", [False, True], ids=["-P", "-p"])
def test_text_without_a_header_is_read_by_its_fields(
    tmp_path: Path, delimiter: str, end: bool
) -> None:
    plain = {"AllocTRES": "", "ReqTRES": ""}
    rows = [line(delimiter=delimiter, JobID=str(i), **plain) for i in (7, 8)]
    text = "".join(row + delimiter * end + "\n" for row in rows)
    found = read(tmp_path, text, fields=NAMED)
    assert [(row["_line"], row["job_id"], row["_reason"]) for row in found] == [
        (1, "7", None),
        (2, "8", None),
    ]
    assert (found[0]["user"], found[0]["run_s"], found[0]["name"]) == ("ann", 3600.0, "train")


def test_the_delimiter_is_the_one_that_most_lines_fit(tmp_path: Path) -> None:
    """A line that was cut out of another export comes first."""
    text = "5|FAILED|1514764800\n6;FAILED;1514764800\n7;FAILED;1514764801\n"
    found = read(tmp_path, text, fields="JobID,State,Submit")
    assert [row["job_id"] for row in found if row["_reason"] is None] == ["6", "7"]


def test_fields_may_have_the_widths_that_sacct_takes(tmp_path: Path) -> None:
    """`sacct -P` ignores them: -o JobName%30 does not cut the name."""
    (row,) = read(
        tmp_path,
        "7|ann|FAILED|1514764800|train\n",
        fields="JobID%20,User%-9,State%10,Submit%5,JobName%30",
    )
    assert (row["job_id"], row["user"], row["state"], row["name"]) == (
        "7",
        "ann",
        "failed",
        "train",
    )


def test_names_of_fields_in_any_case_and_with_spaces(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "7|FAILED|1514764800\n", fields="jobid, state,SUBMIT")
    assert (row["job_id"], row["state"], row["_reason"]) == ("7", "failed", None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("JobID,State", "--fields lacks Submit"),
        ("JobID,Stat,Submit", "sacct has no field 'Stat'"),
        ("JobID,State,Submit,User", "no line has the 4 fields of --fields"),
        ("State,JobID,Submit", "no line has the 3 fields of --fields"),
    ],
)
def test_fields_that_do_not_fit_are_refused(tmp_path: Path, fields: str, message: str) -> None:
    text = "7|FAILED|1514764800\n" if message.startswith(("no", "sacct")) else "7|FAILED\n"
    with pytest.raises(SourceError, match=message):
        read(tmp_path, text, fields=fields)


@pytest.mark.parametrize(("delimiter", "shown"), [("|", "|"), ("\x1f", r"'\x1f'")])
@pytest.mark.parametrize("end", [False, True], ids=["-P", "-p"])
def test_too_few_fields_are_told_from_commas_inside_a_field(
    tmp_path: Path, delimiter: str, shown: str, end: bool
) -> None:
    """Both TRES have commas: a line with one of them has as many parts between commas as names."""
    fields = ("JobID", "User", "State", "Submit", "AllocTRES", "ReqTRES", "NodeList")
    rows = [line(fields, delimiter, JobID=id, NodeList="n1,n2") for id in ("7_1", "8_[2-3]", "9")]
    text = "".join(row + delimiter * end + "\n" for row in rows)
    names = [*fields[:4], "Start", "End", "Account", "QOS", "NNodes", "NCPUS", "Partition"]
    assert [len(row.split(",")) for row in rows] == [len(names)] * 3
    with pytest.raises(SourceError) as caught:
        read(tmp_path, text, fields=",".join(names))
    found = f"in its place; found 7 fields between {shown}. Name all fields"
    assert "no line has the 11 fields of --fields" in str(caught.value)
    assert found in str(caught.value)


def test_fields_for_a_file_with_a_header_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"has a header .*: leave out --fields"):
        read(tmp_path, "JobID|State|Submit\n7|FAILED|1\n", fields="JobID,State,Submit")


def test_fields_choose_the_format(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text("7|FAILED|1514764800\n8|COMPLETED|1514764900\n")
    summary = ingest(lake, [path], "c", options={"fields": "JobID,State,Submit"})
    assert (summary.sources, summary.upsert.num_new) == (["sacct"], 2)


def test_without_a_header_the_message_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="--fields JobID,User,State"):
        read(tmp_path, line() + "\n")


def test_fewer_fields_than_the_lines_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no line has the 3 fields of --fields"):
        read(tmp_path, "7|FAILED|1514764800|ann\n", fields="JobID,State,Submit")
