"""Filters over the columns of jobs: the examples of the documentation, and values that no job has."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hakaru.analyses import Selection, open_session
from hakaru.errors import FilterError
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put_jobs, utc

PAGE = Path(__file__).parents[2] / "docs" / "filters.md"

# Each example, and the numbers of the jobs of `log` that it chooses, worked out by hand.
EXAMPLES = {
    "num_gpus >= 8 AND queue IN ('normal', 'long')": {1},
    "queue = 'long'": {1},
    "queue <> 'long'": {2, 3},
    "name = 'bob''s run'": {1},
    "state IN ('failed', 'timeout')": {1, 3},
    "queue NOT IN ('debug', 'long')": {2},
    "user LIKE 'ann%'": {1, 3},
    "name NOT LIKE 'test_'": {1},
    "run_s > 3600": {1, 3},
    "num_gpus BETWEEN 2 AND 8": {1, 3},
    "num_gpus >= 8 AND wait_s > 600": {1},
    "state = 'failed' OR run_s < 60": {1, 2},
    "(queue = 'long' OR num_gpus = 1) AND NOT state = 'failed'": {2},
    "application IS NULL": {2},
    "requested_s IS NOT NULL": {1, 3},
    "application <> 'pytorch' OR application IS NULL": {2, 3},
    "submitted_at >= '2018-04-02'": {1},
    "started_at < '2018-04-02 09:00'": {2, 3},
    "ended_at < '2018-04-02T09:00+09:00'": {2, 3},
    "hour BETWEEN 9 AND 11": {1},
    "weekday >= 5": {2, 3},
    "quarter = '2018Q2'": {1, 2},
    "pe_hours > 100": {3},
    "parallelism = 'multi-node'": {3},
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Tokyo: a Monday at 10:00, the first Sunday of the second quarter at 01:00, a Saturday at 08:30."""
    many = {"num_gpus": 8, "application": "pytorch", "name": "bob's run"}
    few = {"application": None, "name": "test1", "requested_s": None}
    wide = {"num_gpus": 4, "num_nodes": 2, "application": "tensorflow", "user": "anna"}
    rows = [
        at("2018-04-02T01:00:00", 700, 7200) | {"queue": "long", "state": "failed"} | many,
        at("2018-03-31T16:00:00", 10, 30) | {"user": "bob"} | few,
        at("2018-01-05T23:30:00", 0, 400_000) | {"queue": "debug", "state": "timeout"} | wide,
    ]
    lake = Lake.create(tmp_path_factory.mktemp("filtered"))
    return put_jobs(lake, [job(n) | row for n, row in enumerate(rows, 1)], zone="Asia/Tokyo")


def at(submitted: str, wait_s: float, run_s: float) -> dict[str, Any]:
    start = utc(submitted) + timedelta(seconds=wait_s)
    times = {"submitted_at": utc(submitted), "started_at": start, "wait_s": float(wait_s)}
    return times | {"ended_at": start + timedelta(seconds=run_s), "run_s": float(run_s)}


def test_the_page_has_these_examples() -> None:
    text = PAGE.read_text(encoding="utf-8")
    written = re.findall(r'--where "(.+)"', text) + re.findall(r"^\|.*\| `(.+)` \|$", text, re.M)
    assert [each for each in written if each != "…"] == [*EXAMPLES]


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_of_the_page_chooses_its_jobs(log: Lake, text: str) -> None:
    with open_session(log) as session:
        found = session.ask("SELECT job_id FROM jobs", Selection(where=text))
    assert {int(id) for id in found["job_id"].to_pylist()} == EXAMPLES[text]


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("state = 'FAILED'", [("state", "FAILED", ["completed", "failed", "timeout"])]),
        (
            "queue IN ('long', 'Long') OR run_s > 1",
            [("queue", "Long", ["debug", "long", "normal"])],
        ),
        ("NOT quarter <> '2018q2'", [("quarter", "2018q2", ["2018Q1", "2018Q2"])]),
        ("application = 'pytorch' AND state = 'failed'", []),
        ("job_id = '99' AND name = 'x' AND user LIKE 'z%' AND started_at > '2018-01-01'", []),
    ],
)
def test_values_that_no_job_has(log: Lake, text: str, absent: list[Any]) -> None:
    with open_session(log) as session:
        assert session.absent_values(Selection(where=text)) == absent
        assert session.absent_values(Selection()) == []
        with pytest.raises(FilterError, match="there is no column"):
            session.absent_values(Selection(where="cost = 'x'"))


@pytest.mark.parametrize(
    "command", [["show", "states"], ["compare"], ["export", "--format", "swf", "-o", "{out}"]]
)
def test_the_command_line_warns_of_them(log: Lake, tmp_path: Path, command: list[str]) -> None:
    words = [word.format(out=tmp_path / "out.swf") for word in command]
    told = hakaru(*words, "-w", log.workspace, "--where", "state = 'FAILED'").stderr
    assert (
        "warning: no job has state = 'FAILED'; it is one of: completed, failed, timeout\n" in told
    )
    right = hakaru(*words, "-w", log.workspace, "--where", "state = 'failed'")
    assert right.exit_code == 0 and "warning: no job has" not in right.stderr


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("application <> 'torch' OR application IS NULL", "no job of the log has an application"),
        ("name NOT LIKE 'test_'", "no job of the log has a name"),
        ("name BETWEEN 'a' AND 'b'", "no job of the log has a name"),
    ],
)
def test_a_column_in_which_no_job_has_a_value(lake: Lake, where: str, told: str) -> None:
    put_jobs(lake, [job(1)])
    done = hakaru("show", "states", "-w", lake.workspace, "--where", where)
    assert [row for row in done.stderr.splitlines() if "no job" in row] == [f"warning: {told}"]
    put_jobs(lake, [job(2, application="jax", name="a")])
    done = hakaru("show", "states", "-w", lake.workspace, "--where", where)
    assert "no job of the log" not in done.stderr
