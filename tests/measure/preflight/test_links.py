"""Links of cards: one that cannot be read is not hidden by those that can."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.measure.preflight import Ask, judge
from hakaru.measure.verdict import Verdict
from tests.measure.preflight._fake import BUSES, CARD, Fake, finding, pci

DARK = pci(BUSES[3], "0302", "10de", most=255)


@pytest.mark.parametrize(
    ("files", "status", "found"),
    [
        (DARK, "not measured", f"GPU {BUSES[3]}: the full width of the link cannot be read"),
        (DARK | pci(BUSES[4], "0302", "10de", width=8), "fail", f"GPU {BUSES[4]} runs x8 of x16"),
        # the display of a management board, and a virtual function of the network card
        (pci("0000:e1:00.0", "0300", "1a03", most=255), "pass", "9 links at full width"),
        (pci("0000:41:00.1", "0200", "15b3", most=0), "pass", "9 links at full width"),
        (pci("0000:41:00.1", "0207", "15b3", most=0), "not measured", "0000:41:00.1"),
    ],
)
def test_a_link_that_cannot_be_read_does_not_pass_with_the_others(
    tmp_path: Path, files: dict[str, str], status: str, found: str
) -> None:
    preflight = judge([Fake("gpu01", files=files).facts(tmp_path)], Ask(8, 8))
    width = finding(preflight, "pcie-width", "gpu01")

    assert (width.status, found in width.found) == (status, True)
    assert status == "pass" or preflight.verdict is not Verdict.GOOD


def test_cards_without_links_as_in_virtual_machines_are_not_applicable(tmp_path: Path) -> None:
    files = pci(CARD, "0207", "15b3", width=0, most=0)
    for bus in BUSES:
        files |= pci(bus, "0302", "10de", width=0, most=0)
    preflight = judge([Fake("gpu01", files=files).facts(tmp_path)], Ask(8, 8))
    found = finding(preflight, "pcie-width", "gpu01")

    assert (found.status, "virtual" in found.found) == ("n/a", True)


def test_a_link_whose_speed_alone_is_unknown_does_not_pass(tmp_path: Path) -> None:
    node = Fake("gpu01", files=pci(BUSES[3], "0302", "10de", speed="Unknown"))
    found = finding(judge([node.facts(tmp_path)], Ask(8, 8)), "pcie-speed", "gpu01")

    assert (found.status, f"GPU {BUSES[3]}" in found.found) == ("not measured", True)


def test_an_infiniband_card_without_ports_does_not_pass(tmp_path: Path) -> None:
    node = Fake("gpu01").facts(tmp_path)
    node["facts"]["rdma-devices"]["value"] = {}
    found = finding(judge([node], Ask(8, 8)), "rdma-ports", "gpu01")

    assert (found.status, "none of its ports" in found.found) == ("not measured", True)
