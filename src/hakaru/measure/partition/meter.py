"""Time and memory of each operation of a traced network, on the device that will run it.

Each operation runs by itself on the values of the one before, with a backward of its own. The sum over all
is then scaled to a forward and backward of the whole network: small operations take longer one by one.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch
from torch import fx
from torch.fx.node import map_aggregate

from hakaru.measure.partition.storages import Storages, tensors_of

LEAST_RUNS, MOST_RUNS = 3, 7
BUDGET_S = 8.0
UPDATE_BYTES = 32 << 20  # that the optimiser's rate is measured with


@dataclass
class Reading:
    """What was measured of one operation."""

    forward_s: list[float] = field(default_factory=list)
    backward_s: list[float] = field(default_factory=list)
    output_bytes: int = 0
    saved_bytes: int = 0
    contiguous: bool = (
        True  # its value is one tensor in the order of its dimensions: all that can be sent
    )


@dataclass(frozen=True)
class Measured:
    """Seconds and bytes of one operation."""

    forward_s: float
    backward_s: float
    output_bytes: int
    saved_bytes: int
    contiguous: bool


def measure(
    module: fx.GraphModule, inputs: Sequence[Any], device: str, budget_s: float = BUDGET_S
) -> dict[str, Measured]:
    """Each operation of a traced network by its name: medians of several runs; its state stays as it was."""
    if device == "cuda":
        device = f"cuda:{torch.cuda.current_device()}"
    meter = _Meter(module, device)
    with _quiet_state(module, device):
        meter.run(*inputs)
        meter.settle()
        _repeat(lambda: meter.run(*inputs), budget_s / 2)
        wholes = _whole_times(module, inputs, device, budget_s / 2)
    readings = meter.readings
    forward = _scale([each.forward_s for each in readings.values()], [each[0] for each in wholes])
    backward = _scale([each.backward_s for each in readings.values()], [each[1] for each in wholes])
    return {
        name: Measured(
            median(each.forward_s) * forward,
            median(each.backward_s) * backward,
            each.output_bytes,
            each.saved_bytes,
            each.contiguous,
        )
        for name, each in readings.items()
    }


def update_s_per_byte(device: str) -> float:
    """The time of plain SGD's step for a byte of parameters."""
    with _quiet_state(None, device):
        weights = torch.ones(UPDATE_BYTES // 4, device=device)
        gradients = torch.ones_like(weights)
        times = []
        for _ in range(5):
            begun = _now(device)
            weights.add_(gradients, alpha=-0.01)
            times.append(_now(device) - begun)
    return median(times) / UPDATE_BYTES


class _Meter(fx.Interpreter):
    """Runs a graph operation by operation. The first run finds out the bytes; it warms up, too."""

    def __init__(self, module: fx.GraphModule, device: str) -> None:
        super().__init__(module)
        self.device = device
        self.readings: dict[str, Reading] = {}
        self._storages: Storages | None = Storages()

    def settle(self) -> None:
        """After the first run: keep its bytes, and forget its times."""
        if self._storages is None:
            return
        for name, num_bytes in self._storages.saved_by_owner().items():
            self.readings[name].saved_bytes = num_bytes
        self._storages = None
        for each in self.readings.values():
            each.forward_s.clear()
            each.backward_s.clear()

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._state(super().placeholder(target, args, kwargs))

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._state(super().get_attr(target, args, kwargs))

    def run_node(self, node: fx.Node) -> Any:
        if node.op != "call_function":
            return super().run_node(node)
        args, kwargs = self.fetch_args_kwargs_from_env(node)
        return self._timed(node, args, kwargs)

    def _state(self, value: Any) -> Any:
        """Parameters, buffers and inputs are no activations."""
        if isinstance(value, torch.Tensor):
            value = value.to(self.device) if value.device != torch.device(self.device) else value
            if self._storages is not None:
                self._storages.ignore(value)
        return value

    def _timed(self, node: fx.Node, args: Any, kwargs: Any) -> Any:
        leaves: dict[int, torch.Tensor] = {}
        args = map_aggregate(args, lambda value: _leaf(value, leaves))
        kwargs = map_aggregate(kwargs, lambda value: _leaf(value, leaves))
        kwargs = {**kwargs, **({"device": torch.device(self.device)} if "device" in kwargs else {})}
        args = _writable(node, args)
        reading = self.readings.setdefault(node.name, Reading())
        target: Any = node.target
        with self._storages.watch(node.name) if self._storages else _nothing():
            begun = _now(self.device)
            result = target(*args, **kwargs)
            reading.forward_s.append(_now(self.device) - begun)
        reading.backward_s.append(self._backward_s(result, list(leaves.values())))
        if self._storages is not None:
            self._storages.own(node.name, result)
            reading.output_bytes = sum(each.nbytes for each in tensors_of(result))
            reading.contiguous = isinstance(result, torch.Tensor) and result.is_contiguous()
        return map_aggregate(result, _detached)

    def _backward_s(self, result: Any, leaves: Sequence[torch.Tensor]) -> float:
        outputs = [each for each in tensors_of(result) if each.requires_grad]
        wanted = [each for each in leaves if each.requires_grad]
        if not outputs or not wanted:
            return 0.0
        gradients = [torch.ones_like(each) for each in outputs]
        begun = _now(self.device)
        torch.autograd.grad(outputs, wanted, gradients, allow_unused=True)
        return _now(self.device) - begun


def _leaf(value: Any, leaves: dict[int, torch.Tensor]) -> Any:
    """A tensor as the start of a graph of its own; the same for the same tensor."""
    if not isinstance(value, torch.Tensor):
        return value
    if id(value) not in leaves:
        leaves[id(value)] = value.detach().requires_grad_(value.requires_grad)
    return leaves[id(value)]


def _detached(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


def _writable(node: fx.Node, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A leaf that needs a gradient must not be written: the operation gets a copy."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return args
    written = [a.alias_info is not None and a.alias_info.is_write for a in schema.arguments]
    return tuple(
        arg.clone() if writes and isinstance(arg, torch.Tensor) and arg.requires_grad else arg
        for arg, writes in zip(args, written, strict=False)
    )


def _whole_times(
    module: fx.GraphModule, inputs: Sequence[Any], device: str, budget_s: float
) -> list[tuple[float, float]]:
    """Forward and backward of the whole network; nothing where it does not fit the device as a whole."""
    times: list[tuple[float, float]] = []
    try:
        whole = _on(device, module)
        moved = [each.to(device) if isinstance(each, torch.Tensor) else each for each in inputs]
        _whole_time(whole, moved, device)
        _repeat(lambda: times.append(_whole_time(whole, moved, device)), budget_s)
    except torch.OutOfMemoryError:
        return []
    return times


def _whole_time(module: fx.GraphModule, inputs: Sequence[Any], device: str) -> tuple[float, float]:
    wanted = [each for each in module.parameters() if each.requires_grad]
    begun = _now(device)
    result = module(*inputs)
    forward = _now(device)
    outputs = [each for each in tensors_of(result) if each.requires_grad]
    if outputs and wanted:
        gradients = [torch.ones_like(each) for each in outputs]
        torch.autograd.grad(outputs, wanted, gradients, allow_unused=True)
    return forward - begun, _now(device) - forward


def _on(device: str, module: fx.GraphModule) -> fx.GraphModule:
    """The network as a whole on the device: itself where it is there, else a copy."""
    if all(each.device == torch.device(device) for each in module.parameters()):
        return module
    copied = copy.deepcopy(module).to(device)
    for node in copied.graph.nodes:
        if "device" in node.kwargs:
            node.update_kwarg("device", torch.device(device))
    copied.recompile()
    return copied


def _scale(parts: Sequence[Sequence[float]], wholes: Sequence[float]) -> float:
    total = sum(map(median, parts))
    return median(wholes) / total if wholes and total > 0 else 1.0


def _repeat(work: Callable[[], Any], budget_s: float) -> None:
    begun = time.perf_counter()
    for count in range(MOST_RUNS):
        if count >= LEAST_RUNS and time.perf_counter() - begun > budget_s:
            return
        work()


def _now(device: str) -> float:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _quiet_state(module: torch.nn.Module | None, device: str) -> Iterator[None]:
    """One thread, as a rank has; buffers and random numbers are afterwards what they were before."""
    buffers = [(each, each.clone()) for each in (module.buffers() if module else ())]
    threads, on_cpu = torch.get_num_threads(), torch.device(device).type == "cpu"
    if on_cpu:
        torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[] if on_cpu else [torch.device(device)]):
            yield
    finally:
        torch.set_num_threads(threads)
        with torch.no_grad():
            for each, before in buffers:
                each.copy_(before)
