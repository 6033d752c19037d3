"""Who else used a device while it was measured: what cannot be known is never *nobody*."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest

from hakaru.measure import condition, validity
from hakaru.measure.condition import contamination, while_working
from hakaru.measure.context import Alone
from hakaru.measure.devices import Device

QUIET = validity.Reading(10.0, 0.0, 0.0, 0.0, 0.0, None, 0.0, 0.0, 0.0)
CARD = Device("cuda:0", "A100", uuid="GPU-aa")
OWN = os.getpid()


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that the driver lists on the card."""
    pids: list[int] = []
    monkeypatch.setattr(condition.gpu, "read_processes", lambda uuid: pids)
    return pids


def problems(benchmark: str = "gemm", machine: validity.Reading = QUIET) -> str:
    return "; ".join(contamination(CARD, machine, QUIET, benchmark))


def test_a_card_of_our_own_is_clean(listed: list[int]) -> None:
    listed.append(OWN)
    assert problems() == ""
    listed[:] = [1]  # ours, as the container's host counts
    assert problems() == ""


def test_others_on_the_card_are_named(listed: list[int]) -> None:
    listed[:] = [OWN, 4711]
    assert problems() == "other processes are on the card: [4711]"
    listed[:] = [1, 2]
    assert "[1, 2]" in problems()


def test_a_driver_that_lists_nobody_cannot_tell(listed: list[int]) -> None:
    assert problems().startswith("cannot tell who else is on the card: nvidia-smi")
    assert "--pid=host" in problems()


def test_a_driver_that_is_not_there_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "cannot tell" in problems()
    monkeypatch.setattr("torch.version.hip", "6.2")
    assert "cannot tell who else is on the card: rocm-smi" in problems()


def test_others_on_amds_cards_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.version.hip", "6.2")
    monkeypatch.setattr(condition.gpu, "read_rocm_processes", lambda: [OWN, 4711])
    assert problems() == "other processes are on the cards of this node: [4711]"


def test_a_loaded_host_spoils_copies_and_not_products(listed: list[int]) -> None:
    listed.append(OWN)
    loaded = replace(QUIET, busy_s=10.0 * (os.cpu_count() or 1))
    assert "other processes used 100% of the machine's cores" in problems("host-copy", loaded)
    assert problems("host-copy") == ""
    assert problems("gemm", loaded) == ""


def numa_problems(busy_s: float, own_s: float, wall_s: float = 10.0) -> list[str]:
    """Of a node of four cores, on a machine that is quiet as a whole."""
    node = Device("numa:1", "4 cores", (4, 5, 6, 7))
    return contamination(node, QUIET, replace(QUIET, wall_s=wall_s, busy_s=busy_s, own_s=own_s))


def test_a_load_of_others_on_a_numa_nodes_own_cores_is_seen() -> None:
    assert numa_problems(busy_s=40.0, own_s=39.0) == []
    assert numa_problems(busy_s=40.0, own_s=30.0) == ["other processes used 25% of its cores"]
    # in a short span a few ticks of 10 ms are nothing
    assert numa_problems(busy_s=0.40, own_s=0.36, wall_s=0.1) == []


def test_what_others_take_of_a_core_is_seen() -> None:
    core = Device("cpu:0", "core", (0,))
    assert contamination(core, QUIET, replace(QUIET, own_s=9.5)) == []
    (taken,) = contamination(core, QUIET, replace(QUIET, own_s=5.0))
    assert "taken from it 50%" in taken
    # six blocks of a quick run
    short = replace(QUIET, wall_s=0.12, own_s=0.072)
    assert contamination(core, QUIET, short) == ["its core was taken from it 40% of the time"]
    assert contamination(core, QUIET, replace(short, wall_s=0.02, own_s=0.017)) == []
    unknown = contamination(core, replace(QUIET, busy_s=None), replace(QUIET, own_s=10.0))
    assert unknown == ["other processes' use of the machine cannot be read from /proc/stat"]


def test_a_card_works_until_the_driver_has_answered() -> None:
    steps: list[str] = []
    enough = threading.Event()

    def step() -> None:
        steps.append("step")
        if len(steps) > 20:
            enough.set()

    def ask() -> int:
        assert enough.wait(60)  # it is answered only after many steps
        return 7

    assert while_working(step, lambda: steps.append("sync"), ask) == 7
    assert steps[:2] == ["step", "sync"]
    assert steps[-1] == "sync"


def test_ranks_work_together_until_each_has_its_answer() -> None:
    """One that has its answer goes on, as its steps are the others' too."""
    steps: list[int] = []

    class Group(Alone):
        def maximum(self, *values: float) -> tuple[float, ...]:
            return (1.0,) if len(steps) < 5 else values  # until then another rank waits

    assert while_working(lambda: steps.append(1), lambda: None, lambda: 7, Group()) == 7
    assert len(steps) >= 5


def test_a_question_that_fails_is_an_error() -> None:
    def ask() -> int:
        raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        while_working(lambda: None, lambda: None, ask)
