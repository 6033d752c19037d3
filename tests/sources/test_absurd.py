"""Rows whose numbers are absurd are rejected one by one; the others are kept."""

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
