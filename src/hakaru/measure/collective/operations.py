"""The collectives: bandwidth over sizes, with algbw and busbw as nccl-tests define them.

The size is that of the larger buffer. busbw scales the time to what a link must carry: 2(n-1)/n for
all-reduce, (n-1)/n for reduce-scatter, all-gather and all-to-all, 1 for broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hakaru.measure._base import Case, NotApplicable, Parameter, Quantity, WrongResult, benchmark
from hakaru.measure.context import Context, torch
from hakaru.measure.device._types import SIZES, torch_type
from hakaru.measure.device.gemm import synchroniser

TYPES = ("fp32", "fp16")
BYTES = (4096, 65536, 1 << 20, 4 << 20, 16 << 20)
PARAMETERS = (
    Parameter("dtype", TYPES, "Number type.", quick=("fp32",), choices=(*TYPES, "fp64", "bf16")),
    Parameter(
        "bytes",
        BYTES,
        "Size of the larger buffer in bytes.",
        quick=(4096, 1 << 20, 8 << 20),
        on_gpu=(4096, 1 << 20, 16 << 20, 128 << 20, 1 << 30),  # NCCL levels off at the end of this
        quick_on_gpu=(4096, 16 << 20, 256 << 20),
    ),
)
QUANTITIES = (
    Quantity("busbw", "GB/s", "higher", "Bus bandwidth"),
    Quantity("algbw", "GB/s", "higher", "Algorithm bandwidth"),
    Quantity("time", "µs", "lower", "Time"),
)
JUDGED = "Against a baseline; the fit and the pair probe say what is to blame."
CHECK = "Every element on every rank has the value that it must have."
PERIOD = 11  # of the test pattern


def factor(id: str, size: int) -> float:
    """What busbw is to algbw among so many ranks."""
    if id == "broadcast" or size == 1:
        return 1.0
    return (2.0 if id == "all-reduce" else 1.0) * (size - 1) / size


def pattern(num: int, rank: int, dtype: Any, device: str, begin: int = 0) -> Any:
    """A rank's zeros and ones from place `begin` on; their sums over the ranks are exact in every type."""
    return _repeated(_period(rank, begin), num, dtype, device)


def summed(num: int, size: int, dtype: Any, device: str) -> Any:
    """The sum of all ranks' patterns."""
    return _repeated(sum(_period(rank) for rank in range(size)), num, dtype, device)


def _period(rank: int, begin: int = 0) -> Any:
    at = (torch().arange(PERIOD) + begin) * 7 + rank * 13
    return (at % PERIOD == 0).long()


def _repeated(period: Any, num: int, dtype: Any, device: str) -> Any:
    """So many numbers, made in their own type: indices of as many would be four times as large."""
    return period.to(device, dtype).repeat(-(-num // PERIOD))[:num]


def _collective(
    id: str, title: str, answers: str, build: Callable[[Any, Context, int, Any], Any]
) -> None:
    """Register one collective: `build` gives the step, the call that is checked, and what it must give."""

    def prepare(context: Context, dtype: str, bytes: int) -> Case:
        if context.ranks.size < 2:
            raise NotApplicable("a collective needs two ranks or more")
        import torch.distributed as dist

        kind, size = torch_type(dtype), context.ranks.size
        num = max(size, bytes // SIZES[dtype] // size * size)
        step, checked = build(dist, context, num, kind)
        num_bytes = num * SIZES[dtype]

        def values(seconds: float) -> dict[str, float]:
            algbw = num_bytes / seconds / 1e9
            return {"busbw": algbw * factor(id, size), "algbw": algbw, "time": seconds * 1e6}

        def check() -> None:
            got, wanted = checked()
            wrong = int((got != wanted).sum())
            if wrong:
                raise WrongResult(f"{wrong:,} of {wanted.numel():,} elements are wrong after {id}")

        return Case(step, values, check, synchroniser(context.torch_device))

    prepare.__doc__ = f"{title} over sizes among all ranks; the slowest rank's time counts."
    benchmark(
        id, title=title, answers=answers, family="collective", scope="ranks", check=CHECK,
        judged=JUDGED, parameters=PARAMETERS, quantities=QUANTITIES,
        reproduces="MN-1 §3.2 (the ring all-reduce)" if id == "all-reduce" else "",
    )(prepare)  # fmt: skip


def _all_reduce(dist: Any, context: Context, num: int, kind: Any) -> Any:
    device = context.torch_device
    buffer = torch().zeros(num, dtype=kind, device=device)

    def checked() -> Any:
        filled = pattern(num, context.ranks.rank, kind, device)
        dist.all_reduce(filled)
        return filled, summed(num, context.ranks.size, kind, device)

    return (lambda: dist.all_reduce(buffer)), checked


def _reduce_scatter(dist: Any, context: Context, num: int, kind: Any) -> Any:
    size, rank, device = context.ranks.size, context.ranks.rank, context.torch_device
    whole = torch().zeros(num, dtype=kind, device=device)
    part = torch().zeros(num // size, dtype=kind, device=device)
    call = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

    def checked() -> Any:
        call(part, pattern(num, rank, kind, device))
        return part, summed(num, size, kind, device).chunk(size)[rank]

    return (lambda: call(part, whole)), checked


def _all_gather(dist: Any, context: Context, num: int, kind: Any) -> Any:
    size, rank, device = context.ranks.size, context.ranks.rank, context.torch_device
    whole = torch().zeros(num, dtype=kind, device=device)
    part = torch().zeros(num // size, dtype=kind, device=device)
    call = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor

    def checked() -> Any:
        call(whole, pattern(num // size, rank, kind, device))
        parts = [pattern(num // size, each, kind, device) for each in range(size)]
        return whole, torch().cat(parts)

    return (lambda: call(whole, part)), checked


def _broadcast(dist: Any, context: Context, num: int, kind: Any) -> Any:
    device = context.torch_device
    buffer = torch().zeros(num, dtype=kind, device=device)

    def checked() -> Any:
        filled = pattern(num, context.ranks.rank, kind, device)
        dist.broadcast(filled, 0)
        return filled, pattern(num, 0, kind, device)

    return (lambda: dist.broadcast(buffer, 0)), checked


def _all_to_all(dist: Any, context: Context, num: int, kind: Any) -> Any:
    size, rank, device = context.ranks.size, context.ranks.rank, context.torch_device
    sent = torch().zeros(num, dtype=kind, device=device)
    got = torch().zeros(num, dtype=kind, device=device)

    def checked() -> Any:
        dist.all_to_all_single(got, pattern(num, rank, kind, device))
        own = num // size  # each rank's pattern, the part of it that is sent here
        parts = [pattern(own, each, kind, device, begin=rank * own) for each in range(size)]
        return got, torch().cat(parts)

    return (lambda: dist.all_to_all_single(got, sent)), checked


_collective(
    "all-reduce", "All-reduce", "How fast are gradients summed over all ranks?", _all_reduce
)
_collective(
    "reduce-scatter", "Reduce-scatter", "How fast are sums split over the ranks?", _reduce_scatter
)
_collective(
    "all-gather", "All-gather", "How fast are shards collected from all ranks?", _all_gather
)
_collective("broadcast", "Broadcast", "How fast does one rank reach all others?", _broadcast)
_collective(
    "all-to-all", "All-to-all", "How fast does every rank send to every other?", _all_to_all
)
