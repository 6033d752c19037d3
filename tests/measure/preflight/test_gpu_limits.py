"""Clocks and power limits of GPUs: lowered ones are found, and what a card does not report is no pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.measure.preflight import Ask, Finding, judge
from hakaru.measure.preflight.gpu import FIELDS
from hakaru.measure.verdict import Verdict
from tests.measure.preflight._fake import BUSES, Fake, finding, fleet

ONE = Ask(8, 8, gpus_per_node=8)
ALL = range(8)
APPLICATION = [name for name in FIELDS if "applications" in name]
POWER = [name for name in FIELDS if "power." in name]
GONE = "[Requested functionality has been deprecated]"  # seen with driver 595


def judged(root: Path, id: str, cards: object, values: dict[str, str]) -> Finding:
    """The check of a node on which these cards answer so."""
    node = Fake("gpu01")
    for index in cards if isinstance(cards, range | tuple) else (cards,):
        node.gpus[index] |= values
    return finding(judge([node.facts(root)], ONE), id, "gpu01")


LOW, LOW_MEMORY = {"clocks.applications.graphics": "1095"}, {"clocks.applications.memory": "1215"}
NEWER = dict.fromkeys(APPLICATION, GONE)
HELD = NEWER | {"clocks_event_reasons.active": "0x2"}


@pytest.mark.parametrize(
    ("cards", "values", "status", "text"),
    [
        (3, LOW, "fail", f"GPU 3 ({BUSES[3]}): graphics 1095 of 1275 MHz"),
        (3, LOW, "fail", "sudo nvidia-smi -i 3 -rac"),
        (ALL, LOW, "warn", "sudo nvidia-smi -i 0,1,2,3,4,5,6,7 -rac"),
        ((2, 3), LOW_MEMORY, "fail", "sudo nvidia-smi -i 2,3 -rac"),
        (3, LOW | LOW_MEMORY, "fail", "graphics 1095 of 1275 MHz, memory 1215 of 1593 MHz"),
        (3, {"clocks.applications.graphics": "1410"}, "pass", "default clocks on 8 of 8 GPUs"),
        (3, {"clocks_event_reasons.active": "0x2"}, "pass", ""),  # its default holds it, under load
        (ALL, HELD, "warn", "-rgc"),
        ((1, 2), HELD, "not measured", "no value of clocks.applications.graphics"),
        (ALL, NEWER, "n/a", "cannot be read: measure under load"),
        (ALL, dict.fromkeys(APPLICATION, "[N/A]"), "n/a", "no application clocks"),
        (ALL, dict.fromkeys(APPLICATION, "[Not Supported]"), "n/a", "no application clocks"),
        (3, NEWER | {"name": "T1000"}, "pass", "default clocks on 7 of 8 GPUs"),
        (3, {"clocks.applications.graphics": "[N/A]"}, "not measured", BUSES[3]),
        (3, {"clocks.applications.memory": "[N/A]"}, "not measured", BUSES[3]),
        (3, {"clocks.applications.graphics": "fast"}, "not measured", "fast"),
        (3, {"clocks.applications.graphics": "nan"}, "not measured", "nan"),
    ],
)
def test_clocks_below_their_default_are_found(
    tmp_path: Path, cards: object, values: dict[str, str], status: str, text: str
) -> None:
    found = judged(tmp_path, "gpu-clocks", cards, values)

    assert (found.status, text in f"{found.found} {found.fix}") == (status, True)


def test_locked_clocks_of_one_card_warn(tmp_path: Path) -> None:
    node = Fake("gpu01")
    for card in node.gpus:
        card |= NEWER
    node.gpus[3] |= HELD
    found = finding(judge([node.facts(tmp_path)], ONE), "gpu-clocks", "gpu01")

    assert (found.status, f"GPU 3 ({BUSES[3]}): held" in found.found) == ("warn", True)
    assert found.fix == "sudo nvidia-smi -i 3 -rgc"


def limit(watts: str, enforced: str | None = None) -> dict[str, str]:
    return {"power.limit": watts, "enforced.power.limit": enforced or watts}


@pytest.mark.parametrize(
    ("cards", "values", "status", "text"),
    [
        (3, limit("300.00"), "fail", f"GPU 3 ({BUSES[3]}): 300 W of 400 W"),
        (3, limit("300.00"), "fail", "sudo nvidia-smi -i 3 -pl 400"),
        (ALL, limit("300.00"), "warn", "sudo nvidia-smi -i 0,1,2,3,4,5,6,7 -pl 400"),
        (3, limit("400.00", "250.00"), "fail", "the board or the chassis enforces it"),
        (3, limit("399.80"), "pass", "default limit on 8 of 8 GPUs"),
        (3, limit("500.00"), "pass", ""),
        (ALL, limit("[N/A]", "300.00"), "warn", "the board or the chassis enforces it"),
        (ALL, limit("300.00", "[N/A]"), "warn", "-pl 400"),
        (3, limit("[N/A]"), "not measured", BUSES[3]),
        (3, limit("400.00", "[N/A]"), "not measured", "no value of enforced.power.limit"),
        (3, limit("[N/A]", "400.00"), "not measured", "no value of power.limit"),
        (3, {"power.default_limit": "[N/A]"}, "not measured", BUSES[3]),
        (3, limit("nan"), "not measured", "nan"),
        (ALL, dict.fromkeys(POWER, "[Not Supported]"), "n/a", "do not report power.limit"),
        (3, dict.fromkeys(POWER, "[N/A]") | {"name": "T1000"}, "pass", "7 of 8 GPUs"),
    ],
)
def test_power_limits_below_their_default_are_found(
    tmp_path: Path, cards: object, values: dict[str, str], status: str, text: str
) -> None:
    found = judged(tmp_path, "gpu-power-limit", cards, values)

    assert (found.status, text in f"{found.found} {found.fix}") == (status, True)


@pytest.mark.parametrize(
    ("refused", "clocks", "power"),
    [(APPLICATION, "n/a", "pass"), (["power.default_limit"], "pass", "not measured")],
)
def test_a_driver_without_the_fields_does_not_pass(
    tmp_path: Path, refused: list[str], clocks: str, power: str
) -> None:
    node = Fake("gpu01", unknown_fields=tuple(refused))
    preflight = judge([node.facts(tmp_path)], ONE)

    assert finding(preflight, "gpu-clocks", "gpu01").status == clocks
    assert finding(preflight, "gpu-power-limit", "gpu01").status == power


@pytest.mark.parametrize(
    ("cards", "values", "status", "text"),
    [
        ((), {}, "pass", "NVIDIA A100-SXM4-80GB: 1410 MHz, 400 W on 2 nodes"),
        (ALL, limit("500.00"), "fail", "1410 MHz, 500 W on gpu01"),
        (3, limit("500.00"), "fail", "1410 MHz, 400 or 500 W on gpu01"),
        (ALL, {"clocks.max.sm": "1275"}, "fail", "1275 MHz, 400 W on gpu01"),
        (3, limit("399.97"), "pass", "1410 MHz, 400 W on 2 nodes"),
        (ALL, limit("399.02"), "pass", "1410 MHz, 400 W on 2 nodes"),
        (3, limit("398.99"), "fail", "1410 MHz, 399 or 400 W on gpu01"),
        (3, {"power.limit": "[N/A]"}, "not measured", "gpu01: GPU 3"),
        (3, {"clocks.max.sm": "[N/A]"}, "not measured", "gpu01: GPU 3"),
        (ALL, {"clocks.max.sm": "[N/A]"}, "fail", "unknown MHz, 400 W on gpu01"),
    ],
)
def test_cards_of_one_model_must_be_limited_alike_on_all_nodes(
    tmp_path: Path, cards: object, values: dict[str, str], status: str, text: str
) -> None:
    ill = Fake("gpu01")
    for index in cards if isinstance(cards, range | tuple) else (cards,):
        ill.gpus[index] |= values
    preflight = judge(fleet(tmp_path, ill, Fake("gpu02")), Ask(16, 8, gpus_per_node=8))
    found = finding(preflight, "same-gpu-limits", "all nodes")

    assert (found.status, text in found.found) == (status, True)
    assert (preflight.verdict is Verdict.GOOD) == (status == "pass")


@pytest.mark.parametrize(
    "watts", [("299.50", "299.49"), ("300.50", "299.51"), ("299.97", "300.02")]
)
def test_limits_within_a_rounding_are_the_same(tmp_path: Path, watts: tuple[str, str]) -> None:
    nodes = (Fake("gpu01"), Fake("gpu02"))
    for node, each in zip(nodes, watts, strict=True):
        for card in node.gpus:
            card |= limit(each)
    preflight = judge(fleet(tmp_path, *nodes), Ask(16, 8, gpus_per_node=8))

    assert finding(preflight, "same-gpu-limits", "all nodes").status == "pass"


def test_limits_of_one_model_do_not_round_those_of_another(tmp_path: Path) -> None:
    nodes = (Fake("gpu01"), Fake("gpu02"))
    for node, watts in zip(nodes, ("399.80", "400.00"), strict=True):
        node.gpus[3] |= limit("400.90") | {"name": "T1000"}
        node.gpus[4] |= limit(watts)
    found = finding(
        judge(fleet(tmp_path, *nodes), Ask(16, 8, gpus_per_node=8)), "same-gpu-limits", "all nodes"
    )

    assert found.status == "pass"
    assert "80GB: 1410 MHz, 400 W; T1000: 1410 MHz, 401 W on 2 nodes" in found.found


def test_cards_that_report_no_limits_do_not_pass_as_alike(tmp_path: Path) -> None:
    nodes = (Fake("gpu01"), Fake("gpu02"))
    for card in (card for node in nodes for card in node.gpus):
        card |= dict.fromkeys((*POWER, "clocks.max.sm"), "[N/A]")
    preflight = judge(fleet(tmp_path, *nodes), Ask(16, 8, gpus_per_node=8))

    assert finding(preflight, "same-gpu-limits", "all nodes").status == "n/a"
