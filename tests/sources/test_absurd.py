"""Rows whose numbers or names are absurd are rejected one by one; the others are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.lake import Lake
from hakaru.sources import ingest

HEADER = "JobID|User|State|Submit|Start|End|AllocTRES|NNodes\n"
AT = "1514764800|1514764810|1514768410"


@pytest.mark.parametrize(
    ("times", "tres", "nodes", "reason"),
    [
        ("0001-01-01T00:00:00|2018-01-01T00:00:10|2018-01-01T01:00:00", "gres/gpu=1", "1", "1900"),
        (AT, "gres/gpu=99999999999999999999999", "1", "billion"),
        (AT, "gres/gpu:a=9999999999999999999,gres/gpu:b=1", "1", "billion"),
        (AT, "gres/gpu=1", "99999999999999999999", "billion"),
        (AT, "gres/gpu=1", "9999999P", "billion"),
    ],
)
def test_one_absurd_row_costs_no_other(
    tmp_path: Path, times: str, tres: str, nodes: str, reason: str
) -> None:
    log = tmp_path / "sacct.txt"
    good = f"1|ann|COMPLETED|{AT}|gres/gpu=1000000000|1\n"
    log.write_text(f"{HEADER}{good}2|bob|COMPLETED|{times}|{tres}|{nodes}\n")
    lake = Lake.create(tmp_path / "lake")
    found = ingest(lake, [log], "c", options={"zone": "Europe/Berlin"})
    assert (found.num_read, found.num_rejected) == (2, 1)
    assert reason in next(iter(found.rejected_by_reason))


SACCT = "JobID|User|Account|Partition|QOS|NodeList|State|Submit|Start|End|JobName"
TABLE = "job_id,user,account,queue,qos,name,submitted_at\n1,ann,a,q,s,n,2018-01-01T00:00:00Z\n"
FIELDS = {"User": "user", "Account": "account", "Partition": "queue", "QOS": "qos"}
FIELDS |= {"JobName": "name", "NodeList": "nodes"}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    ("value", "reason"),
    [("x" * 1025, "is longer than 1,024 characters"), ("x\0y", "has a NUL byte in it")],
    ids=["long", "NUL"],
)
def test_a_name_without_end_or_with_a_nul_costs_no_other(
    tmp_path: Path, field: str, value: str, reason: str
) -> None:
    row = dict.fromkeys(SACCT.split("|"), "x" * 1024) | {"State": "COMPLETED", "JobID": "1"}
    row |= {"Submit": "1514764800", "Start": "1514764810", "End": "1514768410"}
    bad = row | {"JobID": "2", field: value}
    log = tmp_path / "sacct.txt"
    log.write_text("\n".join([SACCT, *("|".join(each.values()) for each in (row, bad)), ""]))
    found = ingest(Lake.create(tmp_path / "lake"), [log], "c")
    assert (found.num_read, found.rejected_by_reason) == (2, {f"{FIELDS[field]} {reason}": 1})


@pytest.mark.parametrize("column", ["job_id", "user", "queue", "name"])
def test_the_limit_is_that_of_every_source(tmp_path: Path, column: str) -> None:
    cells = {"job_id": "2", "user": "ann", "account": "a", "queue": "q", "qos": "s", "name": "n"}
    bad = ",".join((cells | {column: "x" * 10_000_000}).values()) + ",2018-01-01T00:00:00Z\n"
    log = tmp_path / "jobs.csv"
    log.write_text(TABLE + bad)
    found = ingest(Lake.create(tmp_path / "lake"), [log], "c")
    assert found.rejected_by_reason == {f"{column} is longer than 1,024 characters": 1}
