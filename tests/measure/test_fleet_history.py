"""Histories of many devices: their median, and one that changed among many without its name being typed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.measure.record import Measurement, Run
from hakaru.measure.series import MOST_CHANGED, DeviceSeries, find_series
from hakaru.measure.store import save
from hakaru.measure.verdict import Verdict
from tests._cli import hakaru
from tests.measure._runs import NOW, measured

WAVE = (1.0, 1.003, 0.997)
MANY, RUNS, STEP_AT = 30, 14, 9


def nights(
    factors: Mapping[int, float], num: int = MANY, num_runs: int = RUNS, **more: Any
) -> list[Run]:
    """A run a night of many cards; the factor of a card is that of its rate from the step on."""
    return [_night(day, factors, num, more) for day in range(num_runs)]


def _night(day: int, factors: Mapping[int, float], num: int, more: Mapping[str, Any]) -> Run:
    when = NOW + timedelta(days=day)
    rates = [100.0 * WAVE[(day + card) % 3] for card in range(num)]
    cards = [
        card_of(card, rate * (factors.get(card, 1.0) if day >= STEP_AT else 1.0), when, more)
        for card, rate in enumerate(rates)
    ]
    return Run(f"r{day:02}", "c", when, tuple(cards))


def card_of(card: int, rate: float, when: Any, more: Mapping[str, Any]) -> Measurement:
    at = {"started_at": when, "ended_at": when}
    return measured(rate, rate, rate, host=f"n{card // 8}", device=f"cuda:{card % 8}", **at, **more)


def nobody(run: Run, **more: Any) -> Run:
    """The run with a failure that no card can be named for, as of a rank that died."""
    failed = measured(host="rank 0", device="unknown", verdict=Verdict.FAILED, place={},
                      started_at=run.started_at, ended_at=run.started_at, **more)  # fmt: skip
    return replace(run, measurements=(*run.measurements, failed))


def places(found: list[DeviceSeries]) -> list[str]:
    return [each.where for each in found]


def test_a_step_of_one_card_among_many_is_found_without_its_name(lake: Lake) -> None:
    for run in nights({11: 0.92}):
        save(lake, run)
    output = hakaru("bench", "history", "gemm", "-w", lake.workspace).output
    assert "gemm fp64 size 512 on 30 devices of A100: rate (GFLOP/s)" in output
    assert "29 other devices: no change of their own; --device HOST/DEVICE shows one." in output
    assert "on n1/cuda:3: rate" in output and output.count(" on ") == 2
    words = ("bench", "history", "gemm", "-w", lake.workspace, "--format", "json")
    fleet, card = json.loads(hakaru(*words).output)
    assert (fleet["num_devices"], fleet["where"]) == (30, "30 devices of A100")
    assert fleet["others"] == {"num": 29, "num_too_few_runs": 0, "changed": []}
    assert (fleet["changes"], fleet["sentence"]) == ([], "No change.")
    assert {each["num_devices"] for each in fleet["points"]} == {30}
    assert (card["where"], card["num_devices"], card["others"]) == ("n1/cuda:3", 1, None)
    assert card["changes"][0]["run"] == f"r{STEP_AT:02}"


def test_of_a_few_devices_each_one_is_listed() -> None:
    assert places(find_series(nights({}, num=2), "gemm")) == [
        "2 devices of A100", "n0/cuda:0", "n0/cuda:1",
    ]  # fmt: skip
    assert places(find_series(nights({}, num=1), "gemm")) == ["n0/cuda:0"]
    chosen = find_series(nights({}), "gemm", device="n1/cuda:3")
    assert places(chosen) == ["n1/cuda:3"], "changed or not"


def test_what_all_devices_did_is_not_said_of_each() -> None:
    """All lose 8 %, and two of them have their own story."""
    fleet, *single = find_series(
        nights(dict.fromkeys(range(MANY), 0.92) | {4: 0.6, 5: 1.0}), "gemm"
    )
    (change,) = fleet.series.changes
    assert change.is_confirmed and change.size == pytest.approx(-0.08, abs=0.01)
    assert places(single) == ["n0/cuda:4"], "a card that did not move has no change to show"
    assert fleet.others and fleet.others.lines[0].startswith(
        "29 other devices: no change of their own"
    )


def test_of_many_that_changed_the_largest_are_listed_and_others_named() -> None:
    factors = {card: 0.9 - card / 100 for card in range(MOST_CHANGED + 2)}
    fleet, *single = find_series(nights(factors), "gemm")
    assert places(single)[0] == "n1/cuda:5" and len(single) == MOST_CHANGED
    assert fleet.others and set(fleet.others.changed) == {"n0/cuda:0", "n0/cuda:1"}
    assert (
        fleet.others.lines[0] == "2 other devices changed on their own too: n0/cuda:1, n0/cuda:0."
    )


def test_too_few_runs_do_not_say_that_nothing_changed() -> None:
    fleet, *single = find_series(nights({}, num_runs=4), "gemm")
    assert fleet.others and not single
    assert fleet.others.lines[0].startswith("30 devices: too few runs to tell a change;")


def test_what_never_had_a_number_has_no_history_beside_what_has() -> None:
    runs = nights({}, num=1)
    mixed = [*runs[:-1], nobody(runs[-1])]
    assert places(find_series(mixed, "gemm")) == ["n0/cuda:0"]
    bare = [replace(run, measurements=()) for run in runs[:2]]
    assert places(find_series(list(map(nobody, bare)), "gemm")) == ["rank 0/unknown"]
    assert places(find_series(mixed, "gemm", device="unknown")) == ["rank 0/unknown"]


def test_a_cluster_that_grows_keeps_its_history() -> None:
    grown = nights({}, 17, RUNS + 1)[-1]
    small = nights(dict.fromkeys(range(8), 0.9), 8)
    fleet = find_series([*small, replace(grown, id="grown")], "gemm")[0]
    assert fleet.series.num_partial == 0
    assert fleet.series.sentence.startswith("Confirmed: −10.0 %, worse")


def test_numbers_of_another_unit_have_a_history_of_their_own() -> None:
    runs = nights({}, 1)
    (last,) = runs[-1].measurements
    runs[-1] = replace(runs[-1], measurements=(replace(last, unit="TFLOP/s", samples=(0.1,) * 3),))
    found = find_series(runs, "gemm")
    assert [(each.unit, len(each.series.points)) for each in found] == [
        ("GFLOP/s", 13),
        ("TFLOP/s", 1),
    ]


def test_a_missing_entry_of_a_baseline_is_no_device_of_the_fleet() -> None:
    """A gate stores it as the device `any` of the model."""
    runs = nights({}, num=2)
    missing = measured(host="any", device="any", verdict=Verdict.NOT_MEASURED)
    gate = replace(runs[-1], measurements=(*runs[-1].measurements, missing))
    found = find_series([*runs[:-1], gate], "gemm")
    assert places(found) == ["2 devices of A100", "n0/cuda:0", "n0/cuda:1"]


def test_links_and_groups_of_ranks_are_called_what_they_are() -> None:
    links = [measured(1.0, benchmark="pairs", host="n1,n2", device=device, place={"model": "link"})
             for device in ("n1>n2", "n2>n1")]  # fmt: skip
    ranks = [measured(1.0, benchmark="hpl", host=host, device="8 ranks", place={"model": "A100 ranks"})
             for host in ("n1", "n2")]  # fmt: skip
    run = Run("r1", "c", NOW, (*links, *ranks))
    assert places(find_series([run], "pairs"))[0] == "2 links"
    assert places(find_series([run], "hpl"))[0] == "2 groups of ranks of A100"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"params": {"dtyp": "fp64"}},
            "--param dtyp=fp64: gemm has no 'dtyp'; its parameters: dtype, size",
        ),
        (
            {"params": {"dtype": "fp65"}},
            "--param dtype=fp65: no run has gemm with it; there is: fp32, fp64",
        ),
        ({"params": {"size": "9"}}, "--param size=9: no run has gemm with it; there is: 512, 1024"),
        (
            {"params": {"dtype": "fp32", "size": "512"}},
            "--param size=512: no run has gemm with it and dtype=fp32; there is: 1024",
        ),
        ({"quantity": "foo"}, "--quantity foo: gemm has no such quantity; there is: rate"),
        ({"device": "vm/cpu:7"}, "--device vm/cpu:7: no run has gemm on it; there is: n0/cuda:0"),
    ],
)
def test_the_part_that_is_wrong_is_named(asked: dict[str, Any], message: str) -> None:
    other = nights({}, num=1, num_runs=1, parameters={"dtype": "fp32", "size": 1024})
    runs = [*nights({}, num=1), replace(other[0], id="other")]
    with pytest.raises(HakaruError) as error:
        find_series(runs, "gemm", **asked)
    assert str(error.value) == message


def test_too_many_settings_say_what_there_is_to_choose() -> None:
    sizes = [nights({}, 1, 1, parameters={"size": size})[0].measurements for size in range(1, 42)]
    run = Run("r1", "c", NOW, tuple(each for (each,) in sizes))
    with pytest.raises(HakaruError, match=r"41 histories.*choose with --param: size=1, 2, 3"):
        find_series([run], "gemm")
    with pytest.raises(
        HakaruError, match="41 histories of gemm; choose with HOST/DEVICE and --param"
    ):
        find_series([run], "gemm", device="cuda:0")


def test_the_cards_of_two_clusters_are_no_fleet() -> None:
    runs = nights({}, num=1)
    with pytest.raises(HakaruError, match="choose one with --cluster: c, other"):
        find_series([*runs[1:], replace(runs[0], cluster="other")], "gemm")
