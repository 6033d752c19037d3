"""What `hakaru simulate` prints and writes of a schedule that is worked by hand."""

from __future__ import annotations

import csv
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from hakaru.cli import main
from hakaru.lake import Lake
from hakaru.sim import POLICIES
from tests.conftest import job, put_jobs, utc

AT = utc("2018-01-31T19:00:00")  # half past midnight on the first of February in India


@pytest.fixture
def workspace(lake: Lake) -> Path:
    """First come, first served on two nodes of two GPUs: waits of 0, 100 and 140 s."""
    rows = [
        job(1, num_gpus=2, run_s=100.0, requested_s=100.0, submitted_at=AT, wait_s=30.0),
        job(2, num_gpus=4, num_nodes=2, run_s=50.0, submitted_at=AT, queue="long", user="bob",
            wait_s=60.0, account="=lab"),
        job(3, run_s=3600.0, submitted_at=AT + timedelta(seconds=10), wait_s=600.0),
        job(4, run_s=None, started_at=None, ended_at=None, wait_s=None, state="pending"),
    ]  # fmt: skip
    facts = '{"zone": "Asia/Kolkata", "gpus_per_node": 2, "nodes": 2}'
    return put_jobs(lake, rows, facts, zone=None).workspace


def simulate(workspace: Path, *options: object) -> list[str]:
    words = ("simulate", "-w", workspace, "--policy", "fcfs", *options)
    done = CliRunner(env={"COLUMNS": "220"}).invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def table_after(lines: list[str], heading: str) -> list[list[str]]:
    """The cells of the table whose first heading is this."""
    at = next(n for n, line in enumerate(lines) if re.match(rf"{heading}  ", line))
    rows = lines[at : lines.index("", at)]
    return [re.split(r"\s{2,}", row) for row in (rows[0], *rows[2:])]


def test_every_metric_beside_the_recorded_one(workspace: Path) -> None:
    """Ann waits 70 s on average and bob 100 s; 4,000 of 4 × 3,750 GPU-seconds are used."""
    lines = simulate(workspace)
    assert lines[:3] == [
        "c under fcfs: First come, first served: nobody overtakes",
        "3 jobs on 2 nodes x 2 = 4 GPUs",
        "",
    ]
    assert table_after(lines, "metric")[:-1] == [
        ["metric", "simulated", "recorded"],
        ["wait, mean", "80 s", "3.8 min"],
        ["wait, median", "100 s", "60 s"],
        ["wait, 95th percentile", "2.3 min", "9.1 min"],
        ["wait, 99th percentile", "2.3 min", "9.8 min"],
        ["bounded slowdown, mean", "1.68"],
        ["bounded slowdown, median", "1.04"],
        ["machine in use, whole replay", "26.7 %"],
        ["machine idle while jobs wait, whole replay", "1.3 %"],
        ["machine free in pieces too small, whole replay", "0.0 %"],
        ["inequality of users' mean waits (Gini)", "0.09"],
        ["mean wait of the worst-off user", "100 s"],
        ["GPU-hours lost to restarts", "0.00"],
    ]
    assert table_after(lines, "why jobs waited") == [
        ["why jobs waited", "jobs", "share of jobs", "share of waiting"],
        ["resources", "2", "66.7 %", "100.0 %"],
    ]
    assert lines[-3:] == [
        "left out 1: no run time (never started, or still running)",
        "the machine is as hakaru.toml or the log says",
        "estimates: request, events: one-by-one",
    ]


def test_processors_are_called_so_and_no_wait_is_said(workspace: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text("; UnixStartTime: 1000000000\n; MaxProcs: 4\n"
                   "1 0 -1 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n")  # fmt: skip
    done = CliRunner().invoke(main, ["simulate", "--from", str(log)])
    lines = done.stdout.splitlines()
    assert lines[1] == "1 job on 4 processors in one pool" and "no job waits" in lines
    cells = table_after(lines, "metric")
    assert cells[0] == ["metric", "simulated"], "the log records no wait"
    assert cells[-1] == ["processor-hours lost to restarts", "0.00"]
    assert not any(line.startswith("recorded: ") for line in lines)
    assert "the machine is as the log's header says" in lines


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        ("queue", [["long", "1", "100 s"], ["normal", "2", "70 s"]]),
        ("user", [["ann", "2", "70 s"], ["bob", "1", "100 s"]]),
        ("account", [["=lab", "1", "100 s"], ["lab", "2", "70 s"]]),
        ("size", [["1", "1", "2.3 min"], ["2", "1", "0 s"], ["3-4", "1", "100 s"]]),
        ("class", [["single-pe", "1", "2.3 min"], ["single-node", "1", "0 s"], ["multi-node", "1", "100 s"]]),
        ("month", [["2018-02", "3", "80 s"]]),
    ],
)  # fmt: skip
def test_waits_of_each_group(workspace: Path, by: str, rows: list[list[str]]) -> None:
    found = table_after(simulate(workspace, "--by", by), by)
    assert found[0][:3] == [by, "num_jobs", "mean_wait"]
    assert [row[:3] for row in found[1:]] == rows


def test_several_groups_stand_one_after_another(workspace: Path) -> None:
    lines = simulate(workspace, "--by", "user", "--by", "queue")
    heads = [line.split()[0] for line in lines if "num_jobs" in line]
    assert heads == ["user", "queue"]
    assert not any("num_jobs" in line for line in simulate(workspace))


def test_the_schedule_in_each_kind_of_file(workspace: Path, tmp_path: Path) -> None:
    simulate(workspace, "-o", tmp_path / "new" / "s.CSV")
    with open(tmp_path / "new" / "s.CSV", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[1] == {
        "job_id": "2", "start": "2018-01-31T19:01:40Z", "end": "2018-01-31T19:02:30Z",
        "nodes": "node-0 node-1", "why": "resources",
    }  # fmt: skip
    simulate(workspace, "-o", tmp_path / "s.parquet")
    row = pq.read_table(tmp_path / "s.parquet").to_pylist()[1]
    assert (row["start"], row["end"]) == (AT + timedelta(seconds=100), AT + timedelta(seconds=150))
    assert (row["nodes"], row["why"]) == (["node-0", "node-1"], "resources")


def test_json_has_the_metrics_the_reasons_and_the_notes(workspace: Path, tmp_path: Path) -> None:
    simulate(workspace, "-o", tmp_path / "s.json")
    told: dict[str, Any] = json.loads((tmp_path / "s.json").read_text())
    assert (told["cluster"], told["policy"]) == ("c", "fcfs")
    assert told["machine"] == "2 nodes x 2 = 4 GPUs"
    assert told["metrics"]["mean_wait_s"] == 80 and told["metrics"]["median_wait_s"] == 100
    assert told["notes"] == [
        "left out 1: no run time (never started, or still running)",
        "the machine is as hakaru.toml or the log says",
        "estimates: request, events: one-by-one",
    ]
    (why,) = told["why_waited"]
    assert list(why.values())[:2] == ["resources", 2]
    assert told["schedule"][2]["start"] == "2018-01-31T19:02:30Z"


def test_in_one_pool_nothing_is_said_of_places_on_nodes(lake: Lake) -> None:
    """Recorded on four nodes with four GPUs; on nodes of two it is placed on two."""
    rows = [job(n, num_gpus=4, num_nodes=4, run_s=100.0) for n in range(3)]
    put_jobs(lake, rows, '{"gpus_per_node": 2, "nodes": 4}')
    told = "assumed: 3 jobs are recorded with a node a processor: on nodes, placed on as few as hold them"
    assert told in simulate(lake.workspace)
    assert told not in simulate(lake.workspace, "--processors", 8)


def test_a_job_whose_id_reads_as_a_formula_is_marked_in_csv(lake: Lake, tmp_path: Path) -> None:
    rows = [job(1) | {"job_id": "=1+1"}]
    put_jobs(lake, rows, '{"gpus_per_node": 2, "nodes": 2}')
    simulate(lake.workspace, "-o", tmp_path / "s.csv")
    (row,) = csv.DictReader((tmp_path / "s.csv").read_text().splitlines())
    assert row["job_id"] == "'=1+1"


def test_policies_with_what_they_do_and_after_whom(lake: Lake) -> None:
    rows = table_after([*simulate(lake.workspace, "--policy", "list"), ""], "policy")
    assert rows[0] == ["policy", "what it does", "after"]
    assert [row[0] for row in rows[1:]] == [policy.id for policy in POLICIES]
    assert ["easy", "EASY backfilling", "Lifka 1995; Mu'alem and Feitelson 2001"] in rows
