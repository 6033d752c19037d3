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

from hakaru.cli import main
from hakaru.cli.lake import _listed
from hakaru.lake import Lake
from hakaru.web.what_if.kept import keep
from tests._cli import hakaru

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
    assert again.exit_code == 1 and "one has 3 of the jobs in this log already" in again.output
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


def test_what_if_runs_over_its_jobs_go_with_a_cluster(space: Path, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for number, cluster in enumerate(("one", "one", "two")):
        keep(space, f"run{number}", tmp_path / "files", {"wanted": {"cluster": cluster}})
    told = hakaru("lake", "forget", "--cluster", "two", "--yes", "-w", space).stdout
    assert told.endswith("1 of ingests, and 1 what-if run\n")
    told = hakaru("lake", "forget", "--cluster", "one", "--yes", "-w", space).stdout
    assert told.endswith("1 of ingests, and 2 what-if runs\n")


def test_one_row_is_a_row_and_thousands_are_set_apart() -> None:
    assert _listed({"jobs": 1, "samples": 0, "ingests": 1}) == "1 row of jobs, 1 of ingests"
    assert _listed({"samples": 0, "jobs": 2000, "rejects": 1234}) == (
        "2,000 rows of jobs, 1,234 of rejects"
    )


def test_rejects_are_cleared_without_asking_and_jobs_stay(space: Path, tmp_path: Path) -> None:
    told = hakaru(
        "lake", "forget", "--cluster", "one", "--rejects", tmp_path / "log.csv", "-w", space
    )
    assert told.stdout == f"one: removed 1 rejects of {tmp_path / 'log.csv'}; its jobs stay\n"
    assert Lake.open(space).clusters() == ["one", "two"]
