"""What nvidia-smi and sysfs say of cards; the texts are written in their form, no GPU is here."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from hakaru.measure import gpu
from hakaru.measure.node.driver import CLOCK_FIELDS
from hakaru.measure.node.machine import Machine

ROW = ("GPU-aa, 00000000:07:00.0, NVIDIA A100, 8, 3, 4, 1410, 1410, 61, 250.5, "
       "0x0000000000000024, 0x0000000000000024")  # fmt: skip


def answering(answer: str | Callable[[Sequence[str]], str], root: Path = Path("/none")) -> Machine:
    """A node whose commands print this; it has the files under `root` alone."""

    def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        text = answer if isinstance(answer, str) else answer(command)
        return subprocess.CompletedProcess(list(command), 0, text, "")

    return Machine(root, {}, run)


BUS = "0000:07:00.0"
SMI = answering(f"{ROW}\n")


def test_cards_are_read_with_null_for_missing_values() -> None:
    (card,) = gpu.read_cards(answering(ROW.replace("61", "[N/A]")))
    assert card["uuid"] == "GPU-aa"
    assert card["pcie.link.width.current"] == 8
    assert card["temperature.gpu"] is None
    assert gpu.slowing_reasons(card) == ["power cap", "software thermal slowdown"]
    assert gpu.slowing_reasons(card | dict.fromkeys(CLOCK_FIELDS, "0x0000000000000000")) == []
    assert (
        gpu.slowing_reasons(card | dict.fromkeys(CLOCK_FIELDS)) is None
    )  # not read: not "nothing"
    assert gpu.slowing_reasons(card | dict.fromkeys(CLOCK_FIELDS, "what")) is None


def test_half_a_line_is_no_card() -> None:
    assert gpu.read_cards(answering("0, GPU-aa, 0000")) == []


def slot(root: Path, card: dict[str, str], port: dict[str, str] | None = None) -> Path:
    """The files of a card and of the port it sits on, linked as sysfs links them."""
    folder = root / "sys/devices/pci0000:00" / ("0000:00:01.0" if port else "") / "0000:07:00.0"
    folder.mkdir(parents=True)
    for where, files in ((folder, card), (folder.parent, port or {})):
        for name, text in files.items():
            (where / name).write_text(f"{text}\n")
    listed = root / "sys/bus/pci/devices"
    listed.mkdir(parents=True)
    (listed / "0000:07:00.0").symlink_to(folder)
    return root


def speeds(now: str, most: str, width: str = "16") -> dict[str, str]:
    return {
        "current_link_width": width, "max_link_width": "16",
        "current_link_speed": f"{now} GT/s PCIe", "max_link_speed": f"{most} GT/s PCIe",
    }  # fmt: skip


GEN4 = {"max_link_speed": "16.0 GT/s PCIe", "max_link_width": "8"}


def test_a_card_at_half_its_width_is_named_also_in_a_slot_that_has_no_more(tmp_path: Path) -> None:
    link = gpu.declared_link(BUS, answering("", slot(tmp_path, speeds("8.0", "16.0", "8"), GEN4)))
    problem = gpu.link_problem(link)
    assert problem is not None
    assert "x8, and the card can do x16" in problem
    assert "generation 3 of 4 under load" in problem
    assert gpu.link_limit_gbytes_s(link) == 8 * 0.985


def test_a_new_card_in_an_older_host_has_no_problem(tmp_path: Path) -> None:
    link = gpu.declared_link(BUS, answering("", slot(tmp_path, speeds("16.0", "32.0"), GEN4)))
    assert link == {"width": 16, "max_width": 16, "generation": 4, "max_generation": 4}
    assert gpu.link_problem(link) is None


def test_without_a_port_the_driver_knows_the_highest_generation(tmp_path: Path) -> None:
    root = slot(tmp_path, speeds("8.0", "32.0"))
    assert gpu.declared_link(BUS, answering("", root))["max_generation"] is None
    link = gpu.declared_link(BUS, answering(ROW, root))  # which takes the width from sysfs
    assert link == {"width": 16, "max_width": 16, "generation": 3, "max_generation": 4}


def test_the_drivers_highest_width_is_the_slots_and_so_none() -> None:
    link = gpu.declared_link(BUS, SMI)
    assert link == {"width": 8, "max_width": None, "generation": 3, "max_generation": 4}


def test_a_card_at_an_older_generation_is_named() -> None:
    link = {"width": 16, "max_width": 16, "generation": 1, "max_generation": 4}
    problem = gpu.link_problem(link)
    assert problem is not None
    assert problem.startswith(
        "its PCIe link runs at generation 1 of 4 under load: the slot or a BIOS"
    )
    assert gpu.link_problem(link | {"generation": 4}) is None
    assert gpu.link_problem(link | {"max_generation": None}) is None


def test_an_unknown_link_is_no_problem_and_no_limit() -> None:
    link = gpu.declared_link("0000:99:00.0", answering(""))
    assert set(link.values()) == {None}
    assert gpu.link_problem(link) is None
    assert gpu.link_limit_gbytes_s(link) is None


def test_the_processes_of_a_card_are_read() -> None:
    text = "GPU-aa, 100\nGPU-aa, 200\nGPU-bb, 300\n"
    assert gpu.read_processes("GPU-aa", answering(text)) == [100, 200]
    assert gpu.read_processes("GPU-cc", answering(text)) == []
    assert gpu.read_processes(None, answering(text)) == []
    hidden = "GPU-aa, 100\nGPU-aa, [Insufficient Permissions]\n"
    assert gpu.read_processes("GPU-aa", answering(hidden)) == []  # a part is no answer


def test_the_processes_on_amds_cards_are_read() -> None:
    text = '{"system": {"PID4711": "python3, 1, 1139888128, 0, unknown", "PID12": "x, 8, 0, 0, 0"}}'
    assert gpu.read_rocm_processes(answering(text)) == [4711, 12]
    for nothing in ("", "WARNING: No JSON data to report", "[]", '{"system": null}', "{}"):
        assert gpu.read_rocm_processes(answering(nothing)) == []


def test_who_else_is_on_a_card_follows_only_from_a_list_with_us() -> None:
    assert gpu.strangers([100], own=100) == []
    assert gpu.strangers([100, 200], own=100) == [200]
    assert gpu.strangers([200], own=100) == []  # ours, seen from outside the container
    assert gpu.strangers([200, 300], own=100) == [200, 300]
    assert gpu.strangers([], own=100) is None


def test_copies_far_below_what_the_link_carries_are_named() -> None:
    assert gpu.copy_problem(15.76, 13.0) is None
    assert "38%" in str(gpu.copy_problem(15.76, 6.0))
    assert gpu.copy_problem(None, 6.0) is None


def test_what_slows_a_card_down_is_read() -> None:
    state = gpu.state_of("GPU-aa", SMI)
    assert state["slowed_by"] == ["power cap", "software thermal slowdown"]
    assert gpu.state_of("GPU-xx", SMI) == {}
    assert gpu.state_of(None, SMI) == {}
    asked: list[Sequence[str]] = []
    gpu.state_of("GPU-aa", answering(lambda words: asked.append(words) or ROW))
    assert "--id=GPU-aa" in asked[0]  # the other cards of the node would take their time too
