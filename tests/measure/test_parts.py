"""Parts of a procedure as rows, what was left open and is chosen by then, and the time of child processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from hakaru.cli.bench import check
from hakaru.lake import Lake
from hakaru.measure import journal, validity
from hakaru.measure import run as runs
from hakaru.measure._base import (
    BENCHMARKS,
    Benchmark,
    Parameter,
    Part,
    Procedure,
    Quantity,
    load_all,
)
from hakaru.measure.baseline import load, make_baseline, save
from hakaru.measure.collect import Gathered, gather, measurements
from hakaru.measure.judge import checked, judge_by
from hakaru.measure.record import Measurement
from hakaru.measure.task import Item, Task, journal_of
from hakaru.measure.verdict import Verdict
from tests.measure._runs import NOW, measured, run_of

QUANTITIES = (Quantity("rate", "1/s"), Quantity("step", "ms", "lower"))


@pytest.fixture(autouse=True)
def _benchmark() -> Iterator[None]:
    made = Benchmark(
        "parted", "Parted", "?", "training", "ranks", "", "", lambda context: Procedure(lambda s: []), "",
        parameters=(Parameter("mode", ("both",), ""),), quantities=QUANTITIES,
    )  # fmt: skip
    load_all()
    BENCHMARKS._items["parted"] = made
    yield
    del BENCHMARKS._items["parted"]  # sorting makes the table anew, so that no patch undoes it


def rows(*parts: Part, problem: Any = None) -> list[Measurement]:
    entry = {
        "kind": "result", "item": "parted {}", "benchmark": "parted",
        "parameters": {"mode": "both", "ranks": 4},
        "host": "n1", "device": "4 ranks", "device_uuid": None, "model": "A100", "hosts": ["n1"] * 4,
        "started_at": NOW.isoformat(), "ended_at": NOW.isoformat(), "rank": 0, "problem": problem,
        "validity": {"machine": {}}, "samples": {}, "subjects": {}, "parts": [asdict(e) for e in parts],
    }  # fmt: skip
    return measurements(Task("ranks", (Item("parted"),)), Gathered(results=[entry]))


def test_a_part_has_its_own_parameters_documents_and_only_the_quantities_that_it_has() -> None:
    found = rows(
        Part({"rate": [2.0, 3.0]}, {"ranks": 2}, facts={"verdict": "fine"}),
        Part({"rate": [5.0], "step": [7.0]}, {"ranks": 4}, device="all of it"),
    )
    seen = [(e.quantity, e.parameters["ranks"], e.device, e.samples) for e in found]
    assert seen == [
        ("rate", 2, "2 ranks", (2.0, 3.0)),
        ("rate", 4, "all of it", (5.0,)),
        ("step", 4, "all of it", (7.0,)),
    ]
    assert found[0].validity == {"machine": {}, "verdict": "fine", "item": {"mode": "both"}}
    assert found[2].better == "lower"


def test_the_verdict_of_a_part_counts_where_nothing_is_wrong_with_the_whole() -> None:
    slow = Part({"rate": [1.0]}, verdict=Verdict.SLOW, reason="rank 2 is late")
    good = Part({"rate": [1.0]}, reason="the same loss as one process")
    assert [(e.verdict, e.reason) for e in rows(slow, good)] == [
        (Verdict.SLOW, "rank 2 is late"),
        (Verdict.GOOD, "the same loss as one process"),
    ]
    busy = {"verdict": Verdict.CONTAMINATED, "reason": "others"}
    wrong = Part({"rate": [1.0]}, verdict=Verdict.FAILED, reason="other losses")
    none = Part({"rate": []}, verdict=Verdict.NOT_MEASURED, reason="it does not fit")
    assert [e.verdict for e in rows(wrong, none, problem=busy)] == [
        Verdict.FAILED,
        Verdict.NOT_MEASURED,
    ]
    died = {"verdict": Verdict.FAILED, "reason": "rank 1 died"}
    assert {e.reason for e in rows(slow, none, problem=died)} == {"rank 1 died"}
    assert {(e.verdict, e.reason) for e in rows(slow, good, problem=busy)} == {
        (Verdict.CONTAMINATED, "others")
    }


def test_one_rank_is_named_as_one() -> None:
    assert [each.device for each in rows(Part({"rate": [1.0]}, {"ranks": 1}))] == ["1 rank"]


def test_a_gate_repeats_what_was_asked_for_and_finds_all_parts_again(lake: Lake) -> None:
    asked = rows(
        Part({"rate": [2.0, 2.01] * 4}, {"ranks": 2, "mode": "left", "batch": 128}),
        Part({"rate": [4.0, 4.01] * 4}, {"ranks": 4, "mode": "right", "batch": 256}),
    )
    baseline = make_baseline("b", run_of(*asked))
    assert [entry.item for entry in baseline.entries] == [{"mode": "both"}] * 2
    save(lake.workspace, baseline)
    again = load(lake.workspace, "b")
    assert again == baseline
    plan = check._plan(again, 60.0, 0.05, devices=(), hosts=None, nodes=1, ranks_per_host=None,
                       slurm_options=(), launcher="local", timeout=None)  # fmt: skip
    assert plan.points == {"parted": [{"mode": "both"}]}
    judged = judge_by(asked, again, plan.limits)
    assert {each.verdict for each in judged} == {Verdict.GOOD}
    missing = judge_by(asked[:1], again, plan.limits)
    assert [each.verdict for each in missing] == [Verdict.GOOD, Verdict.NOT_MEASURED]


def test_a_rank_that_broke_off_says_why_although_the_others_waited(tmp_path: Path) -> None:
    for rank in range(2):
        log = journal_of(tmp_path, rank)
        journal.append(log, {"kind": "begin", "rank": rank, "place": {"host": "n1", "versions": {}},
                             "devices": []})  # fmt: skip
    error = {"kind": "error", "item": "parted {}", "reason": "rank 1: OutOfMemoryError: 2 GiB"}
    journal.append(journal_of(tmp_path, 1), error)
    found = gather(tmp_path, 2, ["time ran out after 90 s"])
    assert "rank 1: OutOfMemoryError: 2 GiB" in str(found.problem_of(1))
    assert "OutOfMemoryError" in str(found.problem_of(None))


def test_a_part_without_repetitions_is_not_measured() -> None:
    (found,) = rows(Part({"rate": []}))
    assert found.verdict is Verdict.NOT_MEASURED


def test_a_part_is_of_the_item_that_it_was_asked_for_with() -> None:
    (part,) = rows(Part({"rate": [1.0]}, {"mode": "left", "ranks": 2}))
    assert runs._is_of(Item("parted", {"mode": "both"}), part)
    assert not runs._is_of(Item("parted", {"mode": "left"}), part)
    whole = measured(1.0, parameters={"dtype": "fp64", "size": 8, "ranks": 2})
    assert runs._is_of(Item("gemm", {"dtype": "fp64", "size": 8}), whole)
    assert not runs._is_of(Item("gemm", {"dtype": "fp32", "size": 8}), whole)


def test_children_count_as_own_while_they_run_and_when_they_have_ended() -> None:
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); input()"
    before_s = validity.family_s()
    child = subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1)
    assert child.stdout is not None
    child.stdout.readline()
    assert validity.family_s() - before_s >= 0.28
    child.communicate(b"\n")
    assert validity.family_s() - before_s >= 0.28


def test_a_share_may_be_zero_and_a_rate_may_not() -> None:
    assert checked(measured(0.0, 0.5, unit="0–1")).verdict is Verdict.GOOD
    assert checked(measured(0.0, 0.5)).verdict is Verdict.FAILED
    assert checked(measured(-0.1, unit="0–1")).verdict is Verdict.FAILED
