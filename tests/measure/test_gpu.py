"""What nvidia-smi and sysfs say of cards; the texts are written in their form, no GPU is here."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from hakaru.measure import gpu
from hakaru.measure.node.machine import Machine

ROW = ("GPU-aa, 00000000:07:00.0, NVIDIA A100, 8, 16, 3, 4, 1410, 1410, 61, 250.5, "
       "0x0000000000000024, 0x0000000000000024")  # fmt: skip


def answering(answer: str | Callable[[Sequence[str]], str], root: Path = Path("/none")) -> Machine:
    """A node whose commands print this; it has the files under `root` alone."""

    def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        text = answer if isinstance(answer, str) else answer(command)
        return subprocess.CompletedProcess(list(command), 0, text, "")

    return Machine(root, {}, run)


SMI = answering(f"{ROW}\n")


def test_cards_are_read_with_null_for_missing_values() -> None:
    (card,) = gpu.read_cards(answering(ROW.replace("61", "[N/A]")))
    assert card["uuid"] == "GPU-aa"
    assert card["pcie.link.width.current"] == 8
    assert card["temperature.gpu"] is None
    assert gpu.slowing_reasons(card) == ["power cap", "software thermal slowdown"]


def test_half_a_line_is_no_card() -> None:
    assert gpu.read_cards(answering("0, GPU-aa, 0000")) == []


def test_a_card_at_half_its_width_is_named() -> None:
    link = gpu.declared_link("0000:07:00.0", SMI)
    problem = gpu.link_problem(link)
    assert problem is not None
    assert "x8" in problem
    assert "generation 3 of 4 under load" in problem
    assert gpu.link_limit_gbytes_s(link) == 8 * 0.985


def test_a_card_at_an_older_generation_is_named() -> None:
    link = {"width": 16, "max_width": 16, "generation": 1, "max_generation": 4}
    problem = gpu.link_problem(link)
    assert problem is not None
    assert problem.startswith(
        "its PCIe link runs at generation 1 of 4 under load: the slot or a BIOS"
    )
    assert gpu.link_problem(link | {"generation": 4}) is None
    assert gpu.link_problem(link | {"max_generation": None}) is None


def test_sysfs_has_the_first_word(tmp_path: Path) -> None:
    folder = tmp_path / "sys/bus/pci/devices/0000:07:00.0"
    folder.mkdir(parents=True)
    for name, text in {
        "current_link_width": "16",
        "max_link_width": "16",
        "current_link_speed": "16.0 GT/s PCIe",
        "max_link_speed": "16.0 GT/s PCIe",
    }.items():
        (folder / name).write_text(text)  # fmt: skip
    link = gpu.declared_link("0000:07:00.0", answering(ROW, tmp_path))
    assert link == {"width": 16, "max_width": 16, "generation": 4, "max_generation": 4}
    assert gpu.link_problem(link) is None


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
