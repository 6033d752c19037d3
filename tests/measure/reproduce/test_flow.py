"""Flow's findings against rows written by hand: each verdict, and every way in which there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakaru.measure.record import Measurement
from hakaru.measure.reproduce import Answer
from hakaru.measure.reproduce.flow import FLOW
from hakaru.measure.verdict import Verdict as Judged
from tests.measure.reproduce._rows import (
    ON_CORES,
    answer,
    contaminated,
    failed,
    near,
    row,
    scaling,
)

THREE = "3 GPUs are slower than 2"
FOUR = "4 GPUs of a node are the fastest"
NODES = "4 nodes are slower than 1"
MORE_NODES = "4 nodes are faster than 2"
CAUSE = "4 nodes are slower because of"


def inside(*steps: float, **more: Any) -> list[Measurement]:
    """Steps of 1, 2, 3… ranks of a host."""
    return [scaling(num, step, **more) for num, step in enumerate(steps, start=1)]


def told(found: Answer) -> tuple[str, bool]:
    return found.verdict.value, found.is_lacking


@pytest.mark.parametrize(
    ("steps", "three", "four"),
    [
        ((8, 5, 6, 4), "agrees", "agrees"),
        ((8, 5, 4, 4.5), "differs", "differs"),
        ((8, 5, 5.0, 3), "differs", "agrees"),
        ((3, 5, 6, 4), "agrees", "differs"),
    ],
)
def test_steps_inside_a_node(steps: tuple[float, ...], three: str, four: str) -> None:
    rows = inside(*steps)
    assert told(answer(FLOW, THREE, *rows)) == (three, False)
    assert told(answer(FLOW, FOUR, *rows)) == (four, False)
    assert "2 ranks 5 ms, 3 ranks" in answer(FLOW, THREE, *rows).measured


def test_noise_leaves_it_open() -> None:
    """Samples of unlike noise: some repetitions are faster, some slower."""
    two = scaling(2, 5.0)
    three = replace(two, samples=(4.5, 5.6, 4.4, 5.7, 4.6, 5.5, 5.1),
                    parameters={**two.parameters, "ranks": 3})  # fmt: skip
    found = answer(FLOW, THREE, two, three)
    assert told(found) == ("not measured", False) and "differ too much" in found.why
    few = [replace(each, samples=each.samples[:3]) for each in (two, scaling(3, 9.0))]
    assert told(answer(FLOW, THREE, *few)) == ("not measured", False)


def test_repetitions_in_turn_are_compared_pair_by_pair() -> None:
    """A drift over the run is in both; by themselves the intervals overlap."""
    drift = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6)
    two = replace(scaling(2, 5.0), samples=tuple(5.0 * each for each in drift))
    three = replace(scaling(3, 5.0), samples=tuple(5.3 * each for each in drift))
    assert told(answer(FLOW, THREE, two, three)) == ("agrees", False)
    later = replace(three, started_at=three.started_at.replace(hour=13))
    assert told(answer(FLOW, THREE, two, later)) == ("not measured", False)


def test_ranks_that_share_cores_are_not_compared() -> None:
    rows = inside(8, 5, 9, 12, place=ON_CORES)
    for says in (THREE, FOUR):
        found = answer(FLOW, says, *rows)
        assert told(found) == ("not comparable", False)
        assert "ranks share the 2 cores" in found.why and "3 ranks 9 ms" in found.measured


@pytest.mark.parametrize("spoil", [contaminated, failed])
@pytest.mark.parametrize("says", [THREE, FOUR, NODES, CAUSE, MORE_NODES])
def test_a_bad_number_never_counts(spoil: Any, says: str) -> None:
    """All would agree; with one bad row of those that they need, none does."""
    rows = agreeing()
    assert told(answer(FLOW, says, *rows)) == ("agrees", False)
    spoilt = [spoil(each) if each.parameters["ranks"] in (3, 16) else each for each in rows]
    found = answer(FLOW, says, *spoilt)
    assert told(found) == ("not measured", True)
    assert ("others used the machine" in found.why) is (spoil is contaminated)
    assert not found.measured


def agreeing() -> list[Measurement]:
    """As the paper found it: three slower than two, four nodes faster than two and slower than one."""
    rows = inside(8, 5, 6, 4)
    rows += [scaling(8, 9.0, hosts=2), scaling(12, 8.0, hosts=3), scaling(16, 7.0, hosts=4)]
    exposed = [(4, 1, 0.5), (8, 2, 5.5), (12, 3, 5.0), (16, 4, 3.2)]
    return rows + [scaling(n, ms, hosts=hosts, quantity="exposed") for n, hosts, ms in exposed]


def test_the_cause_is_measured() -> None:
    found = answer(FLOW, CAUSE, *agreeing())
    assert found.measured.startswith("exposed communication 0.5 ms on 1 host, 3.2 ms on 4: 90.0 %")
    slow_compute = [
        each if each.quantity == "step" or each.parameters["hosts"] < 4
        else replace(each, samples=near(0.6)) for each in agreeing()
    ]  # fmt: skip
    assert told(answer(FLOW, CAUSE, *slow_compute)) == ("differs", False)
    fast = [each for each in agreeing() if each.parameters["ranks"] < 16]
    fast += [scaling(16, 2.0, hosts=4), scaling(16, 1.0, hosts=4, quantity="exposed")]
    assert told(answer(FLOW, CAUSE, *fast)) == ("not comparable", False)
    assert told(answer(FLOW, NODES, *fast)) == ("differs", False)


def test_one_host_cannot_tell_of_four() -> None:
    rows = inside(8, 5, 6, 4)
    for says in (NODES, MORE_NODES, CAUSE, "time on 4 nodes"):
        found = answer(FLOW, says, *rows)
        assert told(found) == ("not measured", False)
        assert found.why == "the run has 1 host, and this takes 4"


def test_two_ranks_cannot_tell_of_three() -> None:
    found = answer(FLOW, THREE, *inside(8, 5))
    assert told(found) == ("not measured", False) and "the run has 2 ranks" in found.why
    spread = [scaling(2, 5.0, hosts=2), scaling(3, 5.0, hosts=3)]
    assert "--ranks-per-host 4" in answer(FLOW, THREE, *spread).why


def test_absolute_times_are_never_compared() -> None:
    """Not even where they are the same."""
    rows = [*inside(8, 5, 6, 13_590), scaling(16, 15_460, hosts=4)]
    for says, shown in (("time on 1 node", "13,590 ms"), ("time on 4 nodes", "15,460 ms")):
        found = answer(FLOW, says, *rows)
        assert told(found) == ("not comparable", False)
        assert shown in found.measured and "V100 × 4" in found.why


def test_other_settings_are_left_alone() -> None:
    """Weak scaling, compressed gradients and other networks are not the paper's experiment."""
    others = [
        scaling(3, 1.0, scaling="weak"), scaling(3, 1.0, compression="fp16"),
        scaling(3, 1.0, model="resnet50"), scaling(3, 1.0, strategy="fsdp"),
    ]  # fmt: skip
    assert told(answer(FLOW, THREE, *inside(8, 5, 6, 4), *others)) == ("agrees", False)
    small = [scaling(num, step, model="mlp@hidden=64") for num, step in ((2, 5.0), (3, 6.0))]
    assert told(answer(FLOW, THREE, *small)) == ("agrees", False)


def test_the_analysis_is_quoted() -> None:
    rows = inside(8, 5, 6, 4, facts={"verdict": "Scaling stops at 2 ranks."})
    found = answer(FLOW, "what scaling loses", *rows)
    assert told(found) == ("not comparable", False)
    assert found.measured == "Scaling stops at 2 ranks."
    assert told(answer(FLOW, "what scaling loses", *inside(8))) == ("not measured", True)


def partitioned(gap: float | None, **more: Any) -> Measurement:
    plan = {"stages": [{"stage": 0}, {"stage": 1}]}
    parameters = {"model": "mlp", "strategy": "1f1b", "ranks": 2}
    return row("strategies", "step", near(5.0), parameters=parameters,
               validity={"plan": plan, "loss_gap": gap}, **more)  # fmt: skip


def test_a_partition_of_the_unmodified_network() -> None:
    says = "partitioned without changing"
    found = answer(FLOW, says, partitioned(4e-8))
    assert told(found) == ("agrees", False)
    assert found.measured == (
        "1f1b in 2 stages, 5 ms a step; its losses are those of one process within 4e-08"
    )
    assert told(answer(FLOW, says, failed(partitioned(0.3)))) == ("not measured", True)
    assert told(answer(FLOW, says, partitioned(None))) == ("not measured", True)
    without = replace(partitioned(0.0), validity={"plan": None})
    assert told(answer(FLOW, says, without)) == ("not measured", True)


def test_an_empty_run_has_nothing() -> None:
    for finding in FLOW.findings:
        found = answer(FLOW, finding.says)
        assert told(found) == ("not measured", True), finding.says


def test_a_study_that_broke_off_gives_its_reason() -> None:
    """Its row has all ranks and no samples; the other sizes have none at all."""
    broken = replace(scaling(4, 1.0), samples=(), quantity="throughput",
                     verdict=Judged.FAILED, reason="rank 2: out of memory")  # fmt: skip
    found = answer(FLOW, THREE, broken)
    assert told(found) == ("not measured", True) and "rank 2: out of memory" in found.why
