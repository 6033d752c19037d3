"""`hakaru lake`: its status, and a cluster that is forgotten, as a person at a terminal meets them."""

from __future__ import annotations

import hashlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.filesize import decimal

from hakaru.cli import main
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put, put_jobs, utc

HEADER = (
    "id, user, group, queue, nodes, gpus, walltime_req, termcode, "
    "time_submit, time_start, time_end, waittime, walltime"
)
ROW = "{}, 0, 0, 0, 1, 1, 7200, 0, {}, {}, {}, 10, 3600"


def write(path: Path, *lines: str, shift_s: int = 0) -> Path:
    at = [1514764800 + i + shift_s for i in range(3)]
    rows = [ROW.format(i, at[i], at[i] + 10, at[i] + 3610) for i in range(3)]
    path.write_text("\n".join([HEADER, *rows, *lines]) + "\n")
    return path


@pytest.fixture
def space(tmp_path: Path) -> Path:
    log = write(tmp_path / "log.csv", "broken")
    for name in ("one", "two"):
        told = hakaru("ingest", log, "-w", tmp_path / "w", "--cluster", name)
        assert told.exit_code == 3  # one row of four is rejected
    return tmp_path / "w"


def on_a_terminal(space: Path, answer: str) -> str:
    """What `hakaru lake forget` says to a person who answers so."""
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "hakaru",
        "lake",
        "forget",
        "--cluster",
        "one",
        "-w",
        str(space),
    ]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, text=True) as process:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        told, _ = process.communicate(timeout=60)
    os.close(ours)
    return told


def test_forget_says_what_went(space: Path) -> None:
    told = hakaru("lake", "forget", "--cluster", "one", "--yes", "-w", space)
    expected = "one: removed 3 rows of jobs, 1 of rejects, 1 of clusters, 1 of ingests\n"
    assert (told.exit_code, told.output) == (0, expected)
    assert Lake.open(space).clusters() == ["two"]
    status = hakaru("lake", "status", "-w", space).output
    assert "two" in status and "one" not in status


def test_forget_asks_a_person(space: Path) -> None:
    assert "Remove 3 rows of jobs, 1 of rejects" in on_a_terminal(space, "n")
    assert Lake.open(space).clusters() == ["one", "two"]
    assert "one: removed 3 rows of jobs" in on_a_terminal(space, "y")
    assert Lake.open(space).clusters() == ["two"]


def test_forget_without_a_person_needs_yes(space: Path) -> None:
    told = hakaru("lake", "forget", "--cluster", "one", "-w", space)
    assert told.exit_code == 1 and "this would remove 3 rows of jobs" in told.output
    assert "add --yes" in told.output and Lake.open(space).clusters() == ["one", "two"]


def test_an_unknown_cluster_is_named_with_those_known(space: Path) -> None:
    told = hakaru("lake", "forget", "--cluster", "three", "--yes", "-w", space)
    assert told.exit_code == 1
    assert "holds nothing of a cluster 'three'; its clusters: one, two" in told.output


def test_a_wrong_zone_is_refused_and_mended_by_the_command(space: Path, tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", shift_s=3600)
    again = hakaru("ingest", log, "-w", space, "--cluster", "one")
    assert again.exit_code == 1 and "one has the jobs of this log already" in again.output
    command = again.output.splitlines()[-1]
    assert command == f"  hakaru lake forget --cluster one --workspace {space}"
    assert hakaru(*command.split()[1:], "--yes").exit_code == 0
    anew = hakaru("ingest", log, "-w", space, "--cluster", "one").output
    assert "new 3, updated 0" in anew and "warning" not in anew


def test_standard_input_is_called_a_dash_with_a_mark_of_its_contents(tmp_path: Path) -> None:
    text = write(tmp_path / "log.csv", "broken").read_bytes()
    name = f"- ({hashlib.sha256(text).hexdigest()[:12]})"
    arguments = ["ingest", "-", "-", "--cluster", "c", "-w", str(tmp_path / "w")]
    told = CliRunner().invoke(main, arguments, input=text)
    assert "read 4 from 1 file" in told.output and f"    {name}, line 5: expected 13" in told.output
    assert Lake.open(tmp_path / "w").ingests()[0]["inputs"] == [name]
    assert f"(first: {name}, line 5)" in " ".join(
        hakaru("lake", "status", "-w", tmp_path / "w").output.split()
    )


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
