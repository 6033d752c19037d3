"""`hakaru ingest`: what is stored, refused and told."""

from __future__ import annotations

import csv
import io
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hakaru.lake import Lake
from tests._cli import hakaru


def test_ingest_show_and_repeat(log: Path, tmp_path: Path) -> None:
    space = tmp_path / "space"
    first = hakaru("ingest", log, "-w", space)
    assert first.exit_code == 0, first.output
    assert "mini: read 3 from 1 file (aaic)" in first.output
    assert "new 3, updated 0, unchanged 0" in first.output
    again = hakaru("ingest", log, "-w", space)
    assert "new 0, updated 0, unchanged 3" in again.output
    shown = hakaru("show", "walltime", "-w", space, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    assert [(r["class"], r["num_jobs"], r["mean_h"]) for r in rows] == [
        ("all", "2", "1.5"),
        ("single-pe", "1", "1"),
        ("single-node", "1", "2"),
    ]
    assert "left out 1: only jobs that are completed" in shown.stderr


def test_unknown_file_and_format(tmp_path: Path) -> None:
    missing = hakaru("ingest", tmp_path / "nothing.csv", "-w", tmp_path / "w")
    assert "there is no such file" in missing.output
    odd = tmp_path / "odd.txt"
    odd.write_text("hello\n")
    unknown = hakaru("ingest", odd, "-w", tmp_path / "w")
    assert unknown.exit_code == 1
    assert "the format is not known. It begins: 'hello'" in unknown.output
    assert f"ingest {odd} --format table" not in unknown.output  # that would be refused again


def test_strict_stores_nothing(log: Path, tmp_path: Path) -> None:
    log.write_text(log.read_text() + "3, x, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0\n")
    refused = hakaru("ingest", log, "-w", tmp_path / "w", "--strict")
    assert refused.exit_code == 1
    assert "mini.csv, line 5: user is not a whole number" in refused.output
    loose = hakaru("ingest", log, "-w", tmp_path / "w")
    assert "rejected 1" in loose.output
    assert "line 5: user is not a whole number" in loose.output
    status = hakaru("lake", "status", "-w", tmp_path / "w")
    assert "1 × user is not a whole number" in status.output


def test_standard_input(log: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hakaru", "ingest", "-", "-w", str(tmp_path / "w")]
    named = subprocess.run(
        [*command, "--cluster", "piped"], input=log.read_bytes(), capture_output=True, check=True
    )
    assert b"piped: read 3" in named.stdout
    unnamed = subprocess.run(command, input=log.read_bytes(), capture_output=True)
    assert unnamed.returncode == 1
    assert b"--cluster NAME" in unnamed.stderr


def test_lake_compact(log: Path, tmp_path: Path) -> None:
    space = tmp_path / "w"
    hakaru("ingest", log, "-w", space)
    hakaru("ingest", log, "-w", space)
    assert "files became" in hakaru("lake", "compact", "-w", space).output
    assert "mini" in hakaru("lake", "status", "-w", space).output


def test_an_interrupt_is_told_in_a_word(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hakaru.cli._progress.ingest_with_progress", interrupt)
    result = hakaru("ingest", log, "-w", log.parent / "w")
    assert (result.exit_code, result.stderr) == (130, "stopped; nothing was stored\n")


def test_two_logs_are_not_poured_into_one(log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(log.read_text())
    result = hakaru("ingest", log, other, "-w", tmp_path / "w")
    assert result.exit_code == 1
    assert "begin with mini and other" in result.output
    assert hakaru("ingest", log, other, "-w", tmp_path / "w", "--cluster", "c").exit_code == 0


def test_a_wrong_format_is_not_a_success(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; UnixStartTime: 0\n" + "1 0 0 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n" * 3)
    result = hakaru("ingest", path, "--format", "aaic", "-w", tmp_path / "w")
    assert result.exit_code == 1
    assert "None of the 3 rows could be read as aaic" in result.output
    assert "holds no jobs" in hakaru("show", "states", "-w", tmp_path / "w").output


def test_dates_of_the_summary_are_of_the_sites_zone_and_one_is_singular(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text("1 100 10 60 1 -1 -1 1 60 -1 1 7 1 -1 1 -1 -1 -1\n")
    arguments = ("ingest", log, "-w", tmp_path / "w", "--zone", "Asia/Tokyo", "--start")
    # midnight in Tokyo, the day before in UTC
    told = hakaru(*arguments, "2014-03-01")
    assert "submitted 2014-03-01 to 2014-03-01 (Asia/Tokyo), 1 user\n" in told.output


def test_a_mapping_makes_a_table_without_format(tmp_path: Path) -> None:
    log, mapping = tmp_path / "log.csv", tmp_path / "m.toml"
    log.write_text("n,t0\n5,2018-01-01T00:00:00Z\n")
    mapping.write_text('[columns]\njob_id = "n"\nsubmitted_at = "t0"\n')
    told = hakaru("ingest", log, "--mapping", mapping, "-w", tmp_path / "w")
    assert told.exit_code == 0 and "read 1 from 1 file (table)" in told.output


def test_commands_in_a_refusal_keep_the_cluster_the_zone_and_the_workspace(tmp_path: Path) -> None:
    log, workspace = tmp_path / "jobs.txt", tmp_path / "my work"
    log.write_text(
        "7|ann|gpu|COMPLETED|2018-01-01T00:00:00|2018-01-01T00:00:01|2018-01-01T00:00:02\n"
    )
    told = hakaru("ingest", log, "--cluster", "mine", "-w", workspace, "--zone", "Asia/Tokyo")
    assert told.exit_code == 1
    (command,) = (row for row in told.stderr.splitlines() if row.startswith("  hakaru ingest"))
    assert command.startswith(f"  hakaru ingest {log} --cluster mine -w '{workspace}' --fields ")
    assert command.endswith(" --zone Asia/Tokyo") and "ZONE" not in told.stderr
    assert hakaru(*shlex.split(command)[1:]).exit_code == 0
    told = hakaru("ingest", log, "-w", workspace)
    assert f"  hakaru ingest {log} --cluster NAME -w '{workspace}' --fields " in told.stderr
    assert " --zone ZONE\nZONE is the site's time zone, e.g. Asia/Tokyo." in told.stderr


@pytest.mark.parametrize(
    ("field", "cell", "state", "run_s", "analysis"),
    [
        ("NCPUS", "4", "COMPLETED", 60, "walltime"),
        ("NCPUS", "4", "COMPLETED", 59, "states"),
        ("NCPUS", "4", "FAILED", 3600, "states"),
        ("NCPUS", "0", "COMPLETED", 3600, "states"),
        ("AllocTRES", "cpu=4,gres/gpu=1", "COMPLETED", 3600, "walltime"),
        ("QOS", "x", "COMPLETED", 3600, "states"),
    ],
)
def test_the_next_command_shows_something(
    tmp_path: Path, field: str, cell: str, state: str, run_s: int, analysis: str
) -> None:
    log = tmp_path / "jobs.txt"
    log.write_text(f"7|{state}|1514764800|1514764801|{1514764801 + run_s}|{cell}\n")
    fields = f"JobID,State,Submit,Start,End,{field}"
    said = hakaru("ingest", log, "--cluster", "c", "--fields", fields, "-w", tmp_path / "w")
    command = said.stdout.partition("next: ")[2].strip()
    assert command == f"hakaru show {analysis} --cluster c -w {tmp_path / 'w'}"
    shown = hakaru(*shlex.split(command)[1:]).stdout
    assert "c: 1 of 1 job" in shown and "no jobs left" not in shown


def test_sacct_without_a_header_has_the_fields_that_are_named(tmp_path: Path) -> None:
    log = tmp_path / "jobs.txt"
    rows = [f"{n}|COMPLETED|2018-01-0{n}T09:00:00|2018-01-0{n}T09:00:10|2018-01-0{n}T10:00:10|ann"
            for n in (1, 3)]  # fmt: skip
    log.write_text("\n".join(rows) + "\n")
    fields = ("--fields", "JobID,State,Submit,Start,End,User", "--zone", "Asia/Tokyo")
    told = hakaru("ingest", log, "-w", tmp_path / "w", *fields)
    assert told.exit_code == 0, told.output
    assert "submitted 2018-01-01 to 2018-01-03 (Asia/Tokyo), 1 user" in told.output


@pytest.mark.parametrize("name", ["", " ", "\t"])
def test_a_cluster_needs_a_name(log: Path, tmp_path: Path, name: str) -> None:
    for words in (("ingest", log, "--cluster", name), ("synth", "--jobs", "9", "--cluster", name)):
        refused = hakaru(*words, "-w", tmp_path)
        assert refused.exit_code == 1
        assert f"cluster name {name!r} is not allowed" in refused.output
    assert Lake(tmp_path).clusters() == []
