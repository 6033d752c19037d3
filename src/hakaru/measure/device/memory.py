"""Memory: how fast a card moves its own memory, and how fast data gets there from the host."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from hakaru.measure import gpu
from hakaru.measure._base import AUTO, Case, Parameter, Quantity, WrongResult, benchmark
from hakaru.measure.condition import while_working
from hakaru.measure.context import Context, torch
from hakaru.measure.device._arrays import MIB, PERIOD, Arrays, room_of
from hakaru.measure.device._shared import shared
from hakaru.measure.device.gemm import synchroniser

SCALE = 3.0
CHUNK = 2**21  # elements that are checked at once, in a cache
SETTLE_S, LOOK_EVERY_S = 1.0, 0.02  # a card that was idle raises its link within a second


@benchmark(
    "memory",
    title="Memory bandwidth",
    answers="Which card's memory is slower than its peers'?",
    family="device",
    scope="device",
    parameters=[
        Parameter("operation", ("copy", "triad"), "copy: b = a; triad: c = a + 3 b.",
                  quick=("triad",), choices=("copy", "triad")),
        Parameter("mib", (AUTO,), "Size of each array in MiB; auto is four times the last-level cache and at "
                  "least 256, on a GPU 1024; at most an eighth of the free memory of the card or NUMA node."),
    ],
    quantities=[Quantity("bandwidth", "GB/s", "higher", "Bandwidth")],
    check="Every element of the result has the value that it must have.",
    judged="Against the other devices of its model, or a baseline.",
)  # fmt: skip
def memory(context: Context, operation: str, mib: int | str) -> Case:
    """Copies one array to another, or adds two into a third, as STREAM does; bytes read and written count."""
    found, device = torch(), context.torch_device
    room = room_of(context.device)
    used = room.choose_mib() if mib == AUTO else int(mib)
    num = used * MIB // 8
    arrays = shared(context.device, lambda: Arrays(device, num), "memory", num)
    is_copy = operation == "copy"

    def step() -> None:
        if is_copy:
            arrays.out.copy_(arrays.a)
        else:
            found.add(arrays.a, arrays.b, alpha=SCALE, out=arrays.out)

    def check() -> None:
        if device == "cpu":  # the last result may be another core's
            arrays.out.zero_()
            step()
        wrong = num_wrong(arrays.out, arrays.pattern + (0 if is_copy else SCALE))
        if wrong:
            raise WrongResult(f"{wrong:,} of {num:,} elements are wrong after {operation}")

    return Case(
        step=step,
        values=lambda seconds: {"bandwidth": (2 if is_copy else 3) * num * 8 / seconds / 1e9},
        check=check,
        sync=synchroniser(device),
        read=lambda: room.facts(used),
    )


def num_wrong(result: Any, pattern: Any) -> int:
    """How many elements are not the pattern's; what was read is not asked, as it may be corrupt too."""
    expected = pattern.repeat(CHUNK // PERIOD)
    chunks = result.split(CHUNK)
    return sum(int((chunk != expected[: len(chunk)]).sum()) for chunk in chunks)


@benchmark(
    "host-copy",
    title="Copies between host and card",
    answers="Which card sits on a narrow link, such as x8 in place of x16?",
    family="device",
    scope="device",
    reproduces="MN-1 §4.1",
    parameters=[
        Parameter("direction", ("to-device", "to-host"), "Which way the data goes.",
                  quick=("to-device",), choices=("to-device", "to-host")),
        Parameter("mib", (64,), "Size of the copy in MiB.", quick=(32,)),
    ],
    quantities=[Quantity("bandwidth", "GB/s", "higher", "Bandwidth")],
    check="What arrives is what was sent, byte for byte.",
    judged="Against the other devices of its model, or a baseline; and by the declared width of the link.",
)  # fmt: skip
def host_copy(context: Context, direction: str, mib: int) -> Case:
    """Copies between page-locked host memory and the card; on a processor, from memory to memory."""
    device = context.torch_device
    is_gpu = device != "cpu"
    buffers = shared(context.device, lambda: Buffers(device, mib), "host-copy", mib)
    source, target = buffers.ends(direction)
    target.zero_()

    def step() -> None:
        target.copy_(source, non_blocking=True)

    def check() -> None:
        if not is_gpu:  # what arrived last may be another core's
            target.zero_()
            step()
        if not torch().equal(target.cpu(), buffers.sent):
            raise WrongResult(f"the bytes that arrived {direction} are not those that were sent")

    return Case(
        step=step,
        values=lambda seconds: {"bandwidth": mib * MIB / seconds / 1e9},
        check=check,
        sync=synchroniser(device),
        read=(lambda: _link_under_load(step, synchroniser(device), context)) if is_gpu else None,
    )


class Buffers:
    """What is sent, where it goes on the device, and room for what comes back."""

    def __init__(self, device: str, mib: int) -> None:
        make = _pair if device == "cpu" else partial(page_locked, device)
        self.sent, self.back = make(mib)
        self.there = self.sent.to(device, copy=True)

    def ends(self, direction: str) -> tuple[Any, Any]:
        return (self.sent, self.there) if direction == "to-device" else (self.there, self.back)


def _pair(mib: int) -> tuple[Any, Any]:
    sent = torch().arange(mib * MIB // 4, dtype=torch().int32)
    return sent, torch().empty_like(sent)


@cache
def page_locked(device: str, mib: int) -> tuple[Any, Any]:
    """A card's own buffers for as long as the process lives, on the socket where it first asks for them.

    torch hands the page-locked memory that was freed last to whoever asks next: another card's, which may be
    on the other socket.
    """
    sent, received = _pair(mib)
    return sent.pin_memory(), received.pin_memory()


def _link_under_load(step: Any, sync: Any, context: Context) -> Mapping[str, Any]:
    """Width and generation while copies are under way: an idle card lowers its generation."""
    link = while_working(step, sync, lambda: settled_link(context.device.bus_id))
    return {"link": link, "link_limit_gbytes_s": gpu.link_limit_gbytes_s(link)}


def settled_link(bus_id: str | None, most_s: float = SETTLE_S) -> dict[str, Any]:
    """The link of a card that has just begun to copy, once it is whole or has had its time to be."""
    until = time.monotonic() + most_s
    while True:
        link = gpu.declared_link(bus_id)
        if gpu.link_problem(link) is None or time.monotonic() >= until:
            return link
        time.sleep(LOOK_EVERY_S)
