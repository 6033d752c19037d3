"""Judging: devices against their peers, runs against a baseline; doubt is never good."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hakaru.errors import HakaruError
from hakaru.measure.baseline import load, make_baseline, save
from hakaru.measure.condition import slowed
from hakaru.measure.fleet import Limits
from hakaru.measure.judge import judge_by, judge_devices
from hakaru.measure.meter import UNTESTED, Meter
from hakaru.measure.record import Measurement
from hakaru.measure.verdict import Verdict
from tests.measure._runs import measured, run_of


def fleet(*rates: float, noise: float = 0.002, num: int = 40) -> list[Measurement]:
    random = np.random.default_rng(1)
    return [
        measured(*(rate * (1 + noise * random.standard_normal(num))), device=f"cuda:{at}")
        for at, rate in enumerate(rates)
    ]


def verdicts(judged: list[Measurement]) -> list[str]:
    return [each.verdict.value for each in judged]


def test_the_slow_card_is_named_and_the_others_are_good() -> None:
    judged = judge_devices(fleet(100, 100, 94, 100, 100, 100, 100, 100), Limits())
    assert verdicts(judged) == ["good", "good", "slow", *["good"] * 5]
    assert "6." in judged[2].reason or "5.9" in judged[2].reason
    assert judged[2].reference == pytest.approx(100, rel=0.01)


def test_of_two_devices_the_slower_one_is_named() -> None:
    assert verdicts(judge_devices(fleet(50, 100), Limits())) == ["slow", "good"]


def test_lower_is_better_for_times() -> None:

    times = [replace(each, better="lower") for each in fleet(1.0, 1.0, 1.2, 1.0)]
    assert verdicts(judge_devices(times, Limits())) == ["good", "good", "slow", "good"]


def test_too_much_noise_is_undecided_and_says_what_would_decide_it() -> None:
    judged = judge_devices(fleet(100, 100, 96, 100, noise=0.05, num=6), Limits())
    assert "good" not in verdicts(judged)
    assert "repetitions would decide it" in judged[2].reason


def test_models_are_not_compared_with_one_another() -> None:

    old, new = fleet(50, 100)
    judged = judge_devices([replace(old, place={"model": "P100"}), new], Limits())
    assert verdicts(judged) == ["good", "good"]
    assert "nothing to compare" in judged[0].reason


def test_a_card_on_half_its_lanes_is_slow_whatever_its_bandwidth() -> None:
    link = {"link": {"width": 8, "max_width": 16, "generation": 3, "max_generation": 3}}
    cards = fleet(100, 100)

    judged = judge_devices([replace(cards[0], validity=link), cards[1]], Limits())
    assert verdicts(judged) == ["slow", "good"]
    assert "x8" in judged[0].reason
    assert "x16" in judged[0].reason


def test_a_narrow_link_needs_no_repetitions() -> None:
    link = {"link": {"width": 8, "max_width": 16, "generation": 3, "max_generation": 3}}
    cards = fleet(100, 100, 96, 100, noise=0.05, num=6)
    judged = judge_devices([*cards[:2], replace(cards[2], validity=link), cards[3]], Limits())
    assert verdicts(judged) == ["not measured", "not measured", "slow", "not measured"]
    assert judged[2].reason.startswith("its PCIe link is x8")
    empty = judge_devices([replace(measured(), validity=link)], Limits())
    assert verdicts(empty) == ["not measured"]


def test_what_could_not_be_read_of_a_link_is_said() -> None:
    link: dict[str, int | None] = {"width": 16, "max_width": 16, "generation": 4}
    card = measured(100, 101, 99)
    whole = replace(card, validity={"link": link | {"max_generation": 4}})
    part = replace(card, validity={"link": link | {"max_generation": None, "width": None}})
    judged = [judge_devices([each], Limits())[0] for each in (whole, part)]
    assert verdicts(judged) == ["good", "good"]
    assert [each.reason.partition("unread")[2] for each in judged] == [
        "", " of its PCIe link: width, newest generation",
    ]  # fmt: skip


@pytest.mark.parametrize("clocks", [{}, {"clocks.sm": 1410, "slowed_by": None}])
def test_a_card_whose_driver_is_silent_is_not_said_to_be_at_full_speed(
    clocks: dict[str, Any],
) -> None:
    card = replace(measured(100, 101, 99), validity={"clocks": clocks})
    (judged,) = judge_devices([card], Limits())
    assert judged.verdict is Verdict.GOOD
    assert judged.reason.endswith("; unread: what slows the card down")
    for known in ({"slowed_by": []}, {"core_mhz": 2400.0}):
        (judged,) = judge_devices([replace(card, validity={"clocks": known})], Limits())
        assert "unread" not in judged.reason


@pytest.mark.parametrize(
    ("taken", "verdict"), [(None, "slow"), (0.01, "slow"), (0.06, "contaminated")]
)
def test_what_others_took_of_a_core_is_not_its_own_lack(taken: float | None, verdict: str) -> None:
    """Less than what makes a core contaminated may still be more than a baseline's tolerance."""
    validity = {"taken": taken, "clocks": {"core_mhz": 2400.0}}
    core = replace(measured(*[91.0] * 6, device="cpu:0"), validity=validity)
    made = make_baseline("ok", run_of(measured(*[100.0] * 6, device="cpu:0")))
    (judged,) = judge_by([core], made, Limits(tolerance=0.05))
    assert judged.verdict == verdict
    assert judged.reason.startswith("91.0% of the baseline ok")
    assert ("others took 6.0% of its cores" in judged.reason) == (verdict == "contaminated")
    peers = judge_devices(
        [replace(fleet(91)[0], validity=validity), *fleet(100, 100)[1:]], Limits()
    )
    assert peers[0].verdict == verdict


def test_a_baseline_of_another_model_keeps_the_numbers_and_names_both() -> None:
    made = make_baseline("ok", run_of(*fleet(100, 100)))
    other = [replace(each, place={"model": "H100"}) for each in fleet(200, 200)]
    judged = judge_by(other, made, Limits())
    assert verdicts(judged) == ["not measured"] * 2
    assert {each.reason for each in judged} == {"the baseline ok has it of A100, and this is H100"}
    assert judged[0].samples


def test_a_run_of_some_benchmarks_does_not_lack_the_others() -> None:
    memory = measured(*[9.0] * 6, benchmark="memory", quantity="bandwidth", unit="GB/s")
    made = make_baseline("ok", run_of(*fleet(100, 100), memory))
    asked = judge_by(fleet(100, 100), made, Limits(), "measured")
    assert verdicts(asked) == ["good", "good"]
    one_is_gone = judge_by(fleet(100), made, Limits(), "measured")
    assert verdicts(one_is_gone) == ["good", "failed"]
    assert verdicts(judge_by(fleet(100, 100), made, Limits())) == ["good", "good", "not measured"]


QUOTA = {"quota": "a CPU quota stopped it 50% of the time"}


def test_a_quota_is_not_the_devices_fault_unless_its_peers_are_free() -> None:
    alone = judge_devices([replace(fleet(50)[0], validity=QUOTA)], Limits())
    assert verdicts(alone) == ["contaminated"]
    assert alone[0].reason.startswith("a CPU quota stopped it 50% of the time")
    cores = fleet(100, 50, 100)
    judged = judge_devices([cores[0], replace(cores[1], validity=QUOTA), cores[2]], Limits())
    assert verdicts(judged) == ["good", "slow", "good"]
    assert "slower than its peers" in judged[1].reason and QUOTA["quota"] in judged[1].reason
    everyone = [replace(each, validity=QUOTA) for each in fleet(50, 50, 50)]
    assert verdicts(judge_devices(everyone, Limits())) == ["contaminated"] * 3
    noisy = [replace(each, validity=QUOTA) for each in fleet(50, 48, noise=0.05, num=6)]
    assert verdicts(judge_devices(noisy, Limits())) == ["contaminated"] * 2


def slowed_by(*names: str) -> dict[str, object]:
    state = {"slowed_by": list(names)}
    return {"clocks": state, "throttled": slowed(state)}


@pytest.mark.parametrize(
    "name", ["hardware slowdown", "hardware thermal slowdown", "hardware power brake"]
)
def test_a_card_with_a_fault_of_cooling_or_power_is_slow_also_among_its_like(name: str) -> None:
    state = slowed_by("power cap", name)
    (alone,) = judge_devices([replace(fleet(100)[0], validity=state)], Limits())
    assert alone.verdict is Verdict.SLOW
    assert alone.reason == f"the driver slows it down: power cap, {name}"
    node = [replace(each, validity=state) for each in fleet(100, 100, 90)]
    judged = judge_devices(node, Limits())
    assert verdicts(judged) == ["slow"] * 3
    assert judged[2].reason.count(name) == 1 and "slower than its peers" in judged[2].reason


def test_a_power_cap_is_no_fault() -> None:
    state = slowed_by("power cap", "software thermal slowdown")
    assert verdicts(judge_devices([replace(fleet(100)[0], validity=state)], Limits())) == ["good"]


def test_a_failed_device_stays_failed_and_is_nobodys_peer() -> None:

    cards = fleet(100, 100, 10)
    broken = replace(cards[2], verdict=Verdict.FAILED, reason="wrong result")
    assert verdicts(judge_devices([*cards[:2], broken], Limits())) == ["good", "good", "failed"]


def test_a_baseline_gates_what_is_slower_missing_or_unknown(tmp_path: Path) -> None:
    save(tmp_path, make_baseline("ok", run_of(*fleet(100, 100))))
    baseline = load(tmp_path, "ok")
    assert baseline.entries[0].median == pytest.approx(100, rel=0.01)
    judge = lambda *rates: judge_by(fleet(*rates), baseline, Limits(tolerance=0.05))  # noqa: E731
    assert verdicts(judge(97, 90)) == ["good", "slow"]
    assert "baseline ok" in judge(90, 100)[0].compared_with
    (missing,) = judge_by([], baseline, Limits())
    assert missing.verdict is Verdict.NOT_MEASURED
    other = measured(100.0, parameters={"dtype": "fp16", "size": 512})
    assert verdicts(judge_by([*fleet(100, 100), other], baseline, Limits())) == [
        "good",
        "good",
        "not measured",
    ]


@pytest.mark.parametrize(
    ("rate", "verdict"), [(60.0, "slow"), (97.0, "not measured"), (100.0, "not measured")]
)
def test_one_repetition_passes_no_baseline(rate: float, verdict: str) -> None:
    baseline = make_baseline("ok", run_of(*fleet(100)))
    (found,) = judge_by([measured(rate)], baseline, Limits(tolerance=0.05))
    assert found.verdict == verdict
    assert rate < 90 or found.reason.endswith("but too few repetitions to tell: 1")


def test_a_node_that_lost_cards_does_not_pass_its_baseline() -> None:
    baseline = make_baseline("ok", run_of(*fleet(100, 100, 100, 100)))
    *_, lacking = judge_by(fleet(100), baseline, Limits())
    assert (lacking.verdict, lacking.reason) == (
        Verdict.FAILED,
        "1 of 4 devices were measured",
    )


def test_a_wide_interval_is_not_good_though_its_median_is() -> None:
    baseline = make_baseline("ok", run_of(*fleet(100)))
    wide = measured(*[40.0, 60.0, 97.0, 99.0, 101.0, 150.0, 170.0])
    assert verdicts(judge_by([wide], baseline, Limits(tolerance=0.05))) == ["not measured"]


def test_every_measurement_carries_the_meters_error() -> None:
    card = measured(100.0)
    tested = Meter(0.03, "2026-11-01").applied(card)
    assert tested.verdict is Verdict.GOOD
    assert tested.validity["meter"] == {
        "error": 0.03, "tested_at": "2026-11-01", "untested": (), "problem": None,
    }  # fmt: skip
    assert UNTESTED.applied(card).validity["meter"]["error"] is None


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
def test_a_repetition_that_is_no_number_above_0_has_failed(wrong: float) -> None:
    cards = [*fleet(100, 100, 100, num=6), measured(100.0, wrong, 100.0, 100.0, device="cuda:9")]
    judged = judge_devices(cards, Limits())
    assert verdicts(judged) == ["good", "good", "good", "failed"]
    assert "1 of 4 repetitions are not numbers above 0" in judged[3].reason
    assert verdicts(judge_devices([measured()], Limits())) == ["not measured"]


def test_a_device_twice_does_not_stand_for_a_missing_one() -> None:
    baseline = make_baseline("ok", run_of(*fleet(100, 100)))
    twice = [*fleet(100), *fleet(100)]
    assert verdicts(judge_by(twice, baseline, Limits())) == ["good", "good", "failed"]


def test_devices_that_the_baseline_does_not_have_are_not_held_against_the_node() -> None:
    baseline = make_baseline("ok", run_of(*fleet(100)))
    core = measured(1.0, device="cpu:0", place={"model": "core"})
    assert verdicts(judge_by([*fleet(100), core], baseline, Limits())) == ["good"]
    broken = replace(core, verdict=Verdict.FAILED, reason="wrong result")
    assert verdicts(judge_by([*fleet(100), broken], baseline, Limits())) == ["good", "failed"]
    # another model in the place of the one that was there is missed all the same
    assert verdicts(judge_by([core], baseline, Limits())) == ["not measured"]


def test_another_unit_or_direction_cannot_be_compared() -> None:
    baseline = make_baseline("ok", run_of(*fleet(100)))
    for change in ({"unit": "TFLOP/s"}, {"better": "lower"}):
        other = replace(fleet(100)[0], **change)
        assert verdicts(judge_by([other], baseline, Limits())) == ["not measured"]


def test_an_undecided_card_says_which_way() -> None:
    judged = judge_devices(fleet(100, 97, 100, 100, noise=0.03, num=6), Limits())
    reasons = [each.reason for each in judged if each.reason.startswith("undecided")]
    assert reasons and "faster to" in reasons[0] and "and it has 6" in reasons[0]


def test_what_a_wrong_meter_reads_is_not_measured() -> None:
    wrong = Meter(tested_at="2026-11-01", problem="the meter was wrong on 2026-11-01")
    found = wrong.applied(measured(100.0))
    assert (found.verdict, found.reason) == (Verdict.NOT_MEASURED, wrong.problem)
    failed = measured(verdict=Verdict.FAILED, reason="wrong result")
    assert wrong.applied(failed).verdict is Verdict.FAILED


def test_noise_that_hides_the_answer_is_not_good() -> None:
    baseline = make_baseline("ok", run_of(*fleet(100)))
    noisy = measured(*[80.0, 110.0, 85.0, 108.0, 88.0, 83.0, 104.0])
    assert verdicts(judge_by([noisy], baseline, Limits(tolerance=0.05))) == ["not measured"]


def test_a_time_of_zero_is_never_good() -> None:
    times = measured(*[5.0] * 6, better="lower", quantity="time")
    baseline = make_baseline("ok", run_of(times))
    for value in (0.0, -5.0):
        none = measured(*[value] * 6, better="lower", quantity="time")
        assert verdicts(judge_by([none], baseline, Limits()))[0] == "not measured"
        with pytest.raises(HakaruError, match="not good"):
            make_baseline("x", run_of(none))


def test_only_a_wholly_good_run_makes_a_baseline(tmp_path: Path) -> None:
    bad = measured(verdict=Verdict.CONTAMINATED, reason="busy")
    with pytest.raises(HakaruError, match="1 of its 2 measurements are not good"):
        make_baseline("x", run_of(measured(1.0), bad))
    with pytest.raises(HakaruError, match="cannot be called"):
        make_baseline("../x", run_of(measured(1.0)))


@pytest.mark.parametrize("text", ["", "{}", '{"name": 1}', "[1]", "[" * 100_000])
def test_a_broken_baseline_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "x.json").write_text(text)
    with pytest.raises(HakaruError, match="cannot be read"):
        load(tmp_path, "x")


def test_a_baseline_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    save(tmp_path, make_baseline("acceptance", run_of(measured(1.0))))
    with pytest.raises(HakaruError, match="did you mean acceptance"):
        load(tmp_path, "acceptence")
