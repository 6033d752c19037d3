"""`hakaru lake status` and `compact`: each number under its heading, and files that are joined."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from rich.filesize import decimal

from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put, put_jobs, utc


def rejects(cluster: str, file: str, reason: str, *lines: int) -> list[dict[str, Any]]:
    each = {"cluster": cluster, "file": file, "reason": reason, "text": ""}
    return [each | {"line": line} for line in lines]


def cells_of(lines: list[str]) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.count("│") > 5
    ]


def test_replaced_files_are_kept_as_long_as_is_asked(lake: Lake) -> None:
    for number in range(3):
        put_jobs(lake, [job(number)])

    def files() -> int:
        found = (lake.root / "jobs").rglob("*.parquet")
        return sum("_delta_log" not in path.parts for path in found)

    before = files()
    compact = ("lake", "compact", "-w", lake.workspace)
    assert hakaru(*compact).exit_code == 0 and files() > before  # the joined one, beside the others
    put_jobs(lake, [job(9)])
    assert hakaru(*compact, "--retain-hours", 0).exit_code == 0
    assert files() == sum(table.num_files for table in lake.status() if table.name == "jobs")


def test_status_has_each_number_under_its_heading(lake: Lake) -> None:
    days = ("2018-01-01", "2018-01-03", "2018-01-09")
    put(lake, "jobs", [job(n, submitted_at=utc(f"{day}T05:30:00"), user=f"u{n % 2}")
                       for n, day in enumerate(days)])  # fmt: skip
    for id, day in (("a", "2018-02-01"), ("b", "2018-02-03")):
        at = {"started_at": utc(f"{day}T00:00:00"), "ended_at": utc(f"{day}T00:07:00")}
        put(
            lake,
            "ingests",
            [{"ingest_id": id, "cluster": "c", "source": "x", "synthetic": False} | at],
        )
    for reason, first, num in (("seldom", 5, 1), ("often", 7, 3)):
        put(lake, "rejects", [{"cluster": "c", "file": "f.csv", "line": line, "reason": reason, "text": ""}
                              for line in range(first, first + num)])  # fmt: skip
    lines = hakaru("lake", "status", "-w", lake.workspace).output.splitlines()
    cells = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.count("│") > 5
    ]
    assert ["c", "3", "2", "2018-01-01 05:30", "2018-01-09 05:30", "2018-02-03 00:07"] in cells
    (stored,) = [table for table in lake.status() if table.name == "jobs"]
    (shown,) = [row for row in cells if row[0] == "jobs"]
    assert shown[1:4] == ["3", "1", decimal(stored.num_bytes)]
    assert [line for line in lines if line.startswith("rejected")] == [
        "rejected in c: 3 × often (first: f.csv, line 7)",
        "rejected in c: 1 × seldom (first: f.csv, line 5)",
    ]


def test_clusters_with_their_marks_and_notes(lake: Lake) -> None:
    """`a` is synthetic, its ingest did not end, and its users hold within one log only."""
    rows = [job(n, submitted_at=utc(f"2018-01-0{n}T05:30:00"), user=f"u{n}") for n in (1, 2, 3)]
    rows += [job(f"q{n}/1", cluster="a", user=user)
             for n, user in ((1, "q1/0"), (2, "q2/0"), (3, None))]  # fmt: skip
    put(lake, "jobs", rows)
    begun = utc("2018-02-01T00:00:00")
    for name, synthetic, ended in (("c", False, utc("2018-02-03T00:07:00")), ("a", True, None)):
        row = {"ingest_id": name, "cluster": name, "source": "x", "synthetic": synthetic}
        put(lake, "ingests", [row | {"started_at": begun, "ended_at": ended}])
    lines = hakaru("lake", "status", "-w", lake.workspace).output.splitlines()
    found = [row for row in cells_of(lines) if row[0] in ("a (synthetic)", "c")]
    assert found == [
        ["a (synthetic)", "3", "2", "2018-01-01 00:00", "2018-01-01 00:00", "interrupted"],
        ["c", "3", "3", "2018-01-01 05:30", "2018-01-03 05:30", "2018-02-03 00:07"],
    ]
    notes = [line for line in lines if line.startswith(("a: ", "c: "))]
    assert len(notes) == 1 and notes[0].startswith("a: user ids hold within one log file only")
    assert lines[-1] == "no rejects"


def test_tables_with_their_version_and_last_commit(lake: Lake) -> None:
    for number in range(3):
        put(lake, "jobs", [job(number)])
    lines = hakaru("lake", "status", "-w", lake.workspace).output.splitlines()
    assert "".join(line.strip() for line in lines[:3]).startswith(str(lake.workspace))
    (row,) = [row for row in cells_of(lines) if row[0] == "jobs"]
    (stored,) = [table for table in lake.status() if table.name == "jobs"]
    assert stored.committed_at is not None and stored.num_files == 3
    assert row[1:3] == ["3", "3"]
    assert row[4:] == [str(stored.version), f"{stored.committed_at:%Y-%m-%d %H:%M:%S}"]
    assert datetime.fromisoformat(row[5])
    names = {row[0] for row in cells_of(lines)}
    assert "samples" not in names, "a table that was never written is not listed"


def test_the_first_reject_is_a_line_of_the_file_that_is_named(lake: Lake) -> None:
    """The first file has line 70, and another file has line 2."""
    put_jobs(lake, [job(1), job(2, cluster="a")])
    rows = rejects("c", "z.csv", "often", 2, 3) + rejects("c", "y.csv", "often", 71, 70)
    rows += rejects("a", "b.csv", "often", 5) + rejects("a", "b.csv", "alike", 9)
    put(lake, "rejects", rows)
    lines = hakaru("lake", "status", "-w", lake.workspace).output.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("rejected"))
    forget = f"  hakaru lake forget --cluster {{}} --rejects {{}} --workspace {lake.workspace}"
    assert lines[at:] == [
        "rejected in c: 4 × often (first: y.csv, line 70)",
        "rejected in a: 1 × alike (first: b.csv, line 9)",
        "rejected in a: 1 × often (first: b.csv, line 5)",
        "if you read the rejected rows from another file, clear them here with:",
        forget.format("a", "b.csv"),
        forget.format("c", "y.csv"),
        forget.format("c", "z.csv"),
    ]


def test_at_most_twenty_reasons_and_five_files(lake: Lake) -> None:
    put_jobs(lake, [job(1)])
    rows = [
        row for n in range(25) for row in rejects("c", f"f{n % 7}.csv", f"reason {n:02}", n + 1)
    ]
    put(lake, "rejects", rows)
    lines = hakaru("lake", "status", "-w", lake.workspace).output.splitlines()
    assert sum(line.startswith("rejected in c: ") for line in lines) == 20
    assert sum("--rejects" in line for line in lines) == 5


def test_compact_says_how_many_files_there_were_and_are(lake: Lake) -> None:
    for number in range(3):
        put(lake, "jobs", [job(number)])
    assert hakaru("lake", "compact", "-w", lake.workspace).stdout == "3 files became 1\n"
    assert hakaru("lake", "compact", "-w", lake.workspace, "--retain-hours", -1).exit_code == 2


@pytest.mark.parametrize("verb", [("status",), ("compact",), ("forget", "--cluster", "c", "--yes")])
def test_what_is_no_workspace_is_refused(tmp_path: Path, verb: tuple[str, ...]) -> None:
    refused = hakaru("lake", *verb, "-w", tmp_path / "none")
    assert refused.exit_code == 1 and "is not a Hakaru workspace" in refused.stderr
