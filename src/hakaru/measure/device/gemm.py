"""Matrix multiplication: the rate at which a card computes, and whether it computes right."""

from __future__ import annotations

from typing import Any

from hakaru.measure._base import AUTO, Case, Parameter, Quantity, WrongResult, benchmark
from hakaru.measure.context import Context, torch
from hakaru.measure.device._reference import Reference, reference
from hakaru.measure.device._shared import shared
from hakaru.measure.device._types import TYPES, set_multiplication

ON_GPU, ON_CORE = 8192, 512  # large enough that starting a step costs nothing beside it
FP64_ON_GPU = 4096  # cards for inference have a 32nd or 64th of their rate in fp64
MOST_PLACES, PLACES_BYTES = 7, 96 * 2**20
EVERY = 4  # a checksum after so many blocks: 0.1 ms each time at most, of blocks of 20 ms or more


@benchmark(
    "gemm",
    title="Matrix multiplication",
    answers="Which card computes slower than its peers, or wrongly?",
    family="device",
    scope="device",
    reproduces="MN-1 Fig. 3",
    parameters=[
        Parameter(
            "dtype",
            ("fp64", "fp32", "tf32", "fp16", "bf16"),
            "Number type.",
            quick=("fp64", "fp32"),
            quick_on_gpu=("fp64", "fp32", "bf16"),
            choices=tuple(TYPES),
        ),
        Parameter(
            "size",
            (AUTO,),
            "Rows and columns; auto is 8192 on a GPU (4096 in fp64) and 512 on a core.",
        ),
    ],
    quantities=[Quantity("rate", "GFLOP/s", "higher", "Rate")],
    check="C·x and every element of C are what the host expects within rounding, and repeated products are "
    "the same bit for bit.",
    judged="Against the other devices of its model, or a baseline.",
)
def gemm(context: Context, dtype: str, size: int | str) -> Case:
    """Multiplies two square matrices of random numbers, again and again: 2·size³ operations a step."""
    used = auto_size(context.torch_device, dtype) if size == AUTO else int(size)
    return _product(context, dtype, used)


def auto_size(device: str, dtype: str) -> int:
    if device == "cpu":
        return ON_CORE
    return FP64_ON_GPU if dtype == "fp64" else ON_GPU


def _product(context: Context, dtype: str, size: int) -> Case:
    found, device = torch(), context.torch_device
    known = reference(dtype, size)
    set_multiplication(dtype)
    matrices = shared(context.device, lambda: Matrices(known, device), "gemm", dtype, size)
    num_blocks = 0
    a, b, c = matrices.place(num_blocks)
    first = found.mm(a, b)
    sums = Checksums(first)
    wait = synchroniser(device)

    def step() -> None:
        found.mm(a, b, out=c)

    def sync() -> None:
        nonlocal num_blocks, a, b, c
        wait()
        sums.add(c)
        num_blocks += 1
        a, b, c = matrices.place(num_blocks)

    def check() -> None:
        if device == "cpu":  # the last result may be another core's
            c.zero_()
            step()
        if not found.equal(first, c) or sums.differ():
            raise WrongResult(f"the same product twice gave two results ({dtype}, size {size})")
        known.check(c)

    return Case(
        step=step,
        values=lambda seconds: {"rate": 2.0 * size**3 / seconds / 1e9},
        check=check,
        sync=sync,
        read=lambda: {"size": size, "checksum": sums.text()},
        together=device != "cpu",  # heat and power show where all cards of a node work
    )


class Matrices:
    """A, B and room for C, for a core in several places: a core's rate depends on where its matrices lie.

    Each block of steps takes the next place, so that the median is over places. The matrices of a card are
    larger than its caches.
    """

    def __init__(self, known: Reference, device: str) -> None:
        a, b = known.matrices(device)
        num = 1
        if device == "cpu":
            fit = PLACES_BYTES // (3 * a.nbytes)
            num = max(
                1, min(MOST_PLACES, fit - 1 + fit % 2)
            )  # odd: checksums then meet each of them
        self.places = [(a, b, a.clone())]
        self.places += [(a.clone(), b.clone(), a.clone()) for _ in range(num - 1)]

    def place(self, num_blocks: int) -> tuple[Any, Any, Any]:
        return self.places[num_blocks % len(self.places)]


class Checksums:
    """Sums of a result's bits between blocks of steps: a fault that passes is not in the last result.

    A card computes the sum after its time was taken, while the harness reads the host's counters or measures
    another card. Cards of one model have the same sums.
    """

    def __init__(self, first: Any) -> None:
        self._sums = [_sum_of_bits(first)]
        self._num_blocks = 0

    def add(self, result: Any) -> None:
        """Called after each block; a sum stays on the card, since fetching it would wait."""
        if self._num_blocks % EVERY == 0:
            self._sums.append(_sum_of_bits(result))
        self._num_blocks += 1

    def differ(self) -> bool:
        return len({int(each) for each in self._sums}) > 1

    def text(self) -> str:
        """The first of them; a result that differs fails."""
        return f"{int(self._sums[0]) % 2**64:016x}"


def _sum_of_bits(result: Any) -> Any:
    found, flat = torch(), result.view(-1)
    is_whole = flat.numel() * flat.element_size() % 8 == 0
    return flat.view(found.int64 if is_whole else found.uint8).sum()


def synchroniser(device: str) -> Any:
    """Waits for the device's queue; a processor has none."""
    if device == "cpu":
        return lambda: None
    return lambda: torch().cuda.synchronize(device)
