"""The condition of a device while it was measured: who else used it, its clocks, and what slowed it down."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from hakaru.measure import gpu, validity
from hakaru.measure.context import Alone, Ranks, torch
from hakaru.measure.devices import Device
from hakaru.measure.protocol import Timed

HOST_BOUND = frozenset({"host-copy"})  # benchmarks of cards that a loaded host slows down
Answer = TypeVar("Answer")


def contamination(
    device: Device, machine: validity.Reading, span: validity.Reading, benchmark: str = ""
) -> list[str]:
    """Why this device's numbers do not count: who else used it or, where that matters, its host.

    `machine` is of all cores, `span` of the device's own while it was its turn.
    """
    if device.kind == "gpu":
        others = others_on(device)
        host = _host_problems(machine) if benchmark in HOST_BOUND else []
        return [*([others] if others else []), *host]
    taken = (
        validity.off_cpu(span)
        if device.kind == "core"
        else validity.shared_cores(span, len(device.cores))
    )
    return [*_host_problems(machine), *([taken] if taken else [])]


def _host_problems(machine: validity.Reading) -> list[str]:
    return validity.problems(machine, os.cpu_count() or 1)


def others_on(device: Device, friends: Collection[int] = ()) -> str | None:
    """Who else is on the card, besides `friends` of this run; what cannot be known is a reason too."""
    is_amd = torch().version.hip is not None
    listed = gpu.read_rocm_processes() if is_amd else gpu.read_processes(device.uuid)
    others = gpu.strangers([pid for pid in listed if pid not in friends], os.getpid())
    if others is None:
        tool = "rocm-smi" if is_amd else "nvidia-smi"
        return (
            f"cannot tell who else is on the card: {tool} does not list even this process; check that it "
            "works here, and start a container with --pid=host"
        )
    where = "the cards of this node" if is_amd else "the card"
    return f"other processes are on {where}: {others[:5]}" if others else None


def state_under_load(device: Device, timed: Timed, ranks: Ranks | None = None) -> dict[str, Any]:
    """Clocks and, of a card, temperature, power and what slows it down, while it works."""
    if device.kind != "gpu":
        return clocks_now(device)
    case = timed.case
    return while_working(case.step, case.sync, lambda: clocks_now(device), ranks)


def clocks_now(device: Device) -> dict[str, Any]:
    """Clocks and, of a card, temperature, power and what slows it down; empty where the driver is silent."""
    if device.kind != "gpu":
        return {"core_mhz": validity.core_clock_mhz(device.cores)}
    return gpu.state_of(device.uuid)


def while_working(
    step: Callable[[], object],
    sync: Callable[[], None],
    ask: Callable[[], Answer],
    ranks: Ranks | None = None,
) -> Answer:
    """The answer to a question about a card that works until it is answered, and no longer.

    The driver takes a tenth of a second, or one, to answer; idle cards lower clocks and links at once. Ranks
    that work together go on until each of them has its answer.
    """
    group = ranks or Alone()
    step()
    sync()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask)
        while group.maximum(float(not answer.done()))[0]:
            step()
            sync()
        return answer.result()


def slowed(state: Mapping[str, Any]) -> str | None:
    """The driver's reasons for lower clocks, in words; None where it has none or was not read."""
    reasons = state.get("slowed_by")
    return f"the driver slows it down: {', '.join(reasons)}" if reasons else None
