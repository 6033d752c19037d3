"""The planner: which strategy trains a network on so many devices, where it cuts, and what it will take."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from hakaru.errors import HakaruError
from hakaru.measure.context import torch
from hakaru.measure.networks.layers import has_batch_norm, splittable
from hakaru.measure.networks.workload import Workload, arguments
from hakaru.measure.partition.cost import USABLE, Machine
from hakaru.measure.partition.document import Asked, Candidate, document_of, duration, rate
from hakaru.measure.preflight.check import size

if TYPE_CHECKING:
    from hakaru.measure.partition.scaled import Scaled
    from hakaru.measure.partition.strategies import Network

CLOSE = 1.05  # of the fastest: predictions are not better than that
FIRST_SAMPLES = 2
MEASURED_S = 1.5  # that one forward and backward of the larger of two measured sizes may take
LINKS = {"cpu": (1e9, 1e-4), "cuda": (10e9, 2e-5)}  # bytes/s and latency that are assumed


def plan(
    workload: Workload,
    num_devices: int,
    memory_bytes: int | None,
    batch: int | None = None,
    device: str = "cpu",
    link: float | None = None,
    optimiser_copies: int = 0,
) -> dict[str, Any]:
    """The partition document for a global batch; `link` is in bytes a second.

    The network is traced and measured on one device. Nothing runs on the others.
    """
    found = torch()
    check_device(device)
    kind = found.device(device)
    assumed_bytes_s, latency_s = LINKS[kind.type]
    if memory_bytes is None and kind.type == "cuda":
        memory_bytes = int(found.cuda.get_device_properties(kind).total_memory)
    batch = batch or workload.batch * num_devices
    module = _module(workload)
    network = _network(workload, module, device, max(1, batch // num_devices))
    from hakaru.measure.partition.trace import numbers_of

    asked = Asked(
        model=workload.name,
        num_devices=num_devices,
        batch=batch,
        machine=Machine(memory_bytes, link or assumed_bytes_s, latency_s, optimiser_copies),
        parameters=numbers_of(module),
        link_assumed=link is None,
    )
    from hakaru.measure.partition.strategies import candidates

    tried = candidates(asked, network)
    chosen = choose(asked, tried)
    return document_of(asked, chosen, _why(asked, chosen, tried), tried)


def check_device(device: str) -> None:
    """A wrong name, or a GPU that is not there, is an error before anything is measured."""
    found = torch()
    try:
        kind = found.device(device)
    except RuntimeError:
        raise HakaruError(f"{device!r} is no device; write cpu, cuda or cuda:0") from None
    if kind.type not in LINKS:
        raise HakaruError(f"networks are measured on cpu and cuda, not on {kind.type}")
    if kind.type == "cuda" and (kind.index or 0) >= found.cuda.device_count():
        raise HakaruError(f"{device}: there are {found.cuda.device_count()} GPUs here; write cpu")


def choose(asked: Asked, tried: Sequence[Candidate]) -> Candidate:
    """The fastest that fits; of those within 5 % of it the simplest."""
    fitting = [each for each in tried if each.fits and each.step_s is not None]
    if fitting:
        fastest = min(map(_seconds, fitting))
        return next(each for each in fitting if _seconds(each) <= CLOSE * fastest)
    raise HakaruError(_nothing_fits(asked, tried))


def _nothing_fits(asked: Asked, tried: Sequence[Candidate]) -> str:
    known = [each for each in tried if each.memory_bytes is not None]
    devices = _devices(asked.num_devices)
    if not known:
        reasons = "; ".join(f"{each.strategy}: {each.why}" for each in tried)
        return f"{asked.model}: no plan can be applied on {devices}: {reasons}"
    least = min(known, key=lambda each: each.memory_bytes or 0)
    needed = least.memory_bytes or 0
    return (
        f"{asked.model}: no plan fits in {size(asked.machine.memory_bytes or 0)} on {devices} with a batch of"
        f" {asked.batch:,}: the smallest, {least.strategy}, needs {size(needed)} on the fullest device; use"
        f" devices with {size(needed / USABLE)}, more devices, or a smaller batch (--batch)"
    )


def _why(asked: Asked, chosen: Candidate, tried: Sequence[Candidate]) -> str:
    """Why this one, with what was assumed."""
    fitting = [each for each in tried if each.fits and each.step_s is not None]
    others = sorted((each for each in fitting if each is not chosen), key=_seconds)
    reason = "the only plan that fits"
    if others:
        is_fastest = _seconds(chosen) <= _seconds(others[0])
        which = "the fastest" if is_fastest else "within 5 % of the fastest and the simplest"
        reason = f"{which} of {len(fitting)} plans that fit"
        reason += f"; {others[0].strategy} takes {duration(_seconds(others[0]))}"
    if too_large := [
        each.strategy for each in tried if not each.fits and each.memory_bytes is not None
    ]:
        reason += f"; too large: {', '.join(too_large)}"
    if asked.num_devices == 1:
        return reason
    assumed = "assuming links of" if asked.link_assumed else "with links of"
    return f"{reason}; {assumed} {rate(asked.machine.link_bytes_s)}"


def _seconds(candidate: Candidate) -> float:
    return candidate.step_s or 0.0


def _module(workload: Workload) -> Any:
    found = torch()
    with found.random.fork_rng(devices=[]):
        found.manual_seed(0)
        return workload.make().train()


def _network(workload: Workload, module: Any, device: str, most: int) -> Network:
    from hakaru.measure.partition.strategies import Network
    from hakaru.measure.training._fsdp import blocks

    paths = {id(each): path for path, each in module.named_modules()}
    return Network(
        costs=_measured(workload, module, device, most),
        splittable=partial(splittable, module),
        blocks=[paths[id(each)] for each in blocks(module)],
        least_samples=2 if has_batch_norm(module) and most > 1 else 1,
        exchanges_hide=torch().device(device).type == "cuda",
    )


def _measured(workload: Workload, module: Any, device: str, most: int) -> Scaled:
    """Graphs for two samples and for as many as can be measured in good time."""
    from hakaru.measure.partition.scaled import Scaled
    from hakaru.measure.partition.trace import graph_of

    first = min(FIRST_SAMPLES, most)
    inputs, _ = workload.batch_of(first, 0)
    small = graph_of(module, arguments(inputs), device)
    second = min(most, int(first * MEASURED_S / max(small.seconds, 1e-6)))
    if second <= first:
        return Scaled(small, first, small, first)
    inputs, _ = workload.batch_of(second, 0)
    return Scaled(small, first, graph_of(module, arguments(inputs), device), second)


def _devices(number: int) -> str:
    return "1 device" if number == 1 else f"{number} devices"
