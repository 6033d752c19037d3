"""`hakaru advise`: what each option hands to the search."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from hakaru.cli import advise
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put, put_jobs, utc

NAMES = ("workload", "machine", "baseline", "parts", "objective", "constraints", "effort", "options",
         "tell", "months")  # fmt: skip


class Stopped(Exception):
    """In place of the search."""


@pytest.fixture
def searched(lake: Lake, monkeypatch: Any) -> Any:
    """What the search is called with, for a cluster of 2 nodes of 4 GPUs in India."""
    seen: dict[str, Any] = {}

    def stop(*given: Any) -> None:
        seen.update(zip(NAMES, given, strict=True))
        raise Stopped

    facts = '{"zone": "Asia/Kolkata", "nodes": 2, "gpus_per_node": 4}'
    rows = [job(1), job(2, user="bob", num_gpus=2), job(3, num_nodes=2, num_gpus=8)]
    put_jobs(lake, rows, facts, zone=None)
    monkeypatch.setattr("hakaru.sim.advise.advise", stop)

    def call(*options: object) -> dict[str, Any]:
        done = hakaru("advise", "-w", lake.workspace, *options)
        assert isinstance(done.exception, Stopped), done.output
        return seen

    return call


def test_what_is_searched_by_default(searched: Any) -> None:
    found = searched()
    assert found["baseline"].policy.id == "easy" and found["baseline"].limits == ()
    assert found["parts"] == ["weights", "limits"] and found["months"] == "trusted"
    assert (found["objective"].metric, found["objective"].of) == ("p95_wait_s", None)
    assert (found["constraints"].keep, found["constraints"].loses) == ({}, {})
    effort = found["effort"]
    assert (effort.num_trials, effort.seconds, effort.seed, effort.searched) == (
        100, math.inf, 0, pytest.approx(0.7),
    )  # fmt: skip
    assert effort.threads == os.cpu_count() and found["tell"] is None
    assert found["options"].zone == "Asia/Kolkata"
    assert found["machine"].num_pes == 8 and len(found["workload"]) == 3


def test_every_option_reaches_the_search(searched: Any) -> None:
    found = searched(
        "--policy", "fcfs", "--limit", "user:running-gpus=2", "--limit", "queue=normal:running-jobs=9",
        "--search", " limits , backfill,", "--months", "all", "--trials", 7, "--seconds", 0,
        "--threads", 3, "--seed", 5, "--search-part", "60%", "--nodes", "3x8",
        "--minimise", "gini-wait", "--keep", "p95-wait:0%", "--keep", "utilisation",
    )  # fmt: skip
    assert found["baseline"].policy.id == "fcfs"
    limits = [(each.scope, each.only, each.what, each.value) for each in found["baseline"].limits]
    assert limits == [("user", None, "running-gpus", 2), ("queue", "normal", "running-jobs", 9)]
    assert found["parts"] == ["limits", "backfill"] and found["months"] == "all"
    effort = found["effort"]
    assert (effort.num_trials, effort.seconds, effort.threads, effort.seed) == (7, 0.0, 3, 5)
    assert effort.searched == pytest.approx(0.6) and found["machine"].num_pes == 24
    assert found["objective"].metric == "gini_wait"
    assert found["constraints"].keep == {"p95_wait_s": 0.0, "utilisation": 0.01}
    assert searched("--maximise", "utilisation")["objective"].metric == "utilisation"


@pytest.mark.parametrize(
    ("options", "loses"),
    [
        (("--no-user-loses-more-than", "0%"), {"user": 0.0}),
        (("--no-account-loses-more-than", "0"), {"account": 0.0}),
        (("--no-account-loses-more-than", "25%"), {"account": 0.25}),
        (("--no-user-loses-more-than", "any"), {"user": math.inf}),
        (
            ("--no-user-loses-more-than", "5%", "--no-account-loses-more-than", "0.5"),
            {"user": 0.05, "account": 0.5},
        ),
    ],
)
def test_what_nobody_may_lose(searched: Any, options: tuple[str, ...], loses: Any) -> None:
    """Nothing is not the default of a tenth."""
    assert searched(*options)["constraints"].loses == loses


@pytest.mark.parametrize(
    ("jobs", "words", "chosen"),
    [
        ("single-pe", "single-pe jobs", ["1"]),
        ("multi-node", "multi-node jobs", ["3"]),
        ("user = 'bob'", "jobs with user = 'bob'", ["2"]),
        ("num_gpus >= 2", "jobs with num_gpus >= 2", ["2", "3"]),
    ],
)
def test_whose_metric_it_is(searched: Any, jobs: str, words: str, chosen: list[str]) -> None:
    found = searched("--for", jobs)
    assert found["objective"].words == words
    ids = found["workload"].table["job_id"].to_pylist()
    keep = found["objective"].of(found["workload"])
    assert [id for id, is_chosen in zip(ids, keep, strict=True) if is_chosen] == chosen


def test_the_same_id_at_another_time_is_another_job(lake: Lake, searched: Any) -> None:
    put(lake, "jobs", [job(1, user="bob", submitted_at=utc("2018-01-01T05:00:00"))])
    found = searched("--for", "user = 'bob'")
    chosen = found["workload"].table.filter(found["objective"].of(found["workload"]))
    assert sorted(chosen["job_id"].to_pylist()) == ["1", "2"]


@pytest.mark.parametrize("part", ["0%", "100%", "150%"])
def test_weeks_for_the_search_are_a_real_part(lake: Lake, part: str) -> None:
    done = hakaru("advise", "-w", lake.workspace, "--search-part", part)
    assert done.exit_code == 1
    assert done.stderr == (
        f"error: --search-part is above 0% and below 100%, found {part}: the rest is held out\n"
    )


@pytest.mark.parametrize(("option", "least"), [("--trials", 1), ("--threads", 1), ("--seed", 0)])
def test_less_than_the_least_is_refused(lake: Lake, searched: Any, option: str, least: int) -> None:
    searched(option, least)
    assert hakaru("advise", "-w", lake.workspace, option, least - 1).exit_code == 2


@pytest.mark.parametrize(
    ("qos", "is_a_name"), [("gpu_long-2.x", True), ("a;b", False), ("", False), ("a\n", False)]
)
def test_a_qos_is_a_name_that_a_shell_takes_as_it_is(
    searched: Any, lake: Lake, qos: str, is_a_name: bool
) -> None:
    if is_a_name:
        searched("--qos", qos)
        return
    done = hakaru("advise", "-w", lake.workspace, "--qos", qos)
    assert (done.exit_code, "is no name of a QOS" in done.stderr) == (1, True)


@pytest.mark.parametrize(("text", "part"), [("10%", 0.1), ("0.1", 0.1), ("25 %", 0.25), ("1", 1.0)])
def test_a_part_is_in_percent_only_if_it_says_so(text: str, part: float) -> None:
    assert advise.part_of(text, "--keep") == pytest.approx(part)


def test_advice_is_written_as_json_whatever_the_case(lake: Lake, searched: Any) -> None:
    searched("-o", "A.JSON")
    done = hakaru("advise", "-w", lake.workspace, "-o", Path("a.txt"))
    assert done.stderr == "error: a.txt: advice is written as JSON; end it in .json\n"
