"""What SuperBench's metrics are: their unit, whether more or less of one is better, and their name here.

Its files hold neither unit nor direction. The direction is taken from the words of a name, as SuperBench's
own rules do (microsoft/superbenchmark, docs/user-tutorial/data-diagnosis.md: a bandwidth, rate or throughput
must not fall, a time, latency or overhead must not rise); the unit from its tables of metrics.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from hakaru.measure._base import Better
from hakaru.measure.imports._base import CHECK_UNIT

HIGHER = {"bw", "algbw", "busbw", "bandwidth", "flops", "tflops", "iops", "throughput"}
LOWER = {"time", "times", "steptime", "latency", "lat", "overhead", "cost"}
# not a result: settings, sizes, a factor whose good value is 1, and fingerprints of determinism
NO_RESULT = re.compile(r"(_bs|_x_\w+|threads|mem_allocated|_error)$|^deterministic_|^monitor")
PASSES = re.compile(r"^(tests_pass|gpu_\d+_pass|.*_correctness)$")
ABORTS = re.compile(r"^abort$")
# the first that fits; benchmark, then unit by word
UNITS: tuple[tuple[str, dict[str, str]], ...] = (
    (r"gemm-flops", {"flops": "GFLOP/s", "iops": "GOP/s"}),
    (r"cublaslt-gemm|hipblaslt-gemm", {"flops": "TFLOP/s"}),
    (r"cublas-function|cudnn-function|nccl-bw|rccl-bw", {"time": "µs", "algbw": "GB/s", "busbw": "GB/s"}),
    (r"cpu-hpl", {"throughput": "GFLOP/s", "time": "s"}),
    (r"cpu-stream", {"throughput": "MB/s", "time": "s"}),
    (r"cpu-memory-bw-latency", {"bw": "MB/s", "lat": "ns"}),
    (r"gpcnet-network-test", {"lat": "µs", "time": "µs", "bw": "MiB/s"}),
    (r"ib-traffic|ib-loopback", {"bw": "GB/s", "lat": "µs"}),
    (r"disk-benchmark", {"iops": "1/s", "lat": "ns"}),
    (r"gpu-burn", {"time": "s"}),
    (r"mem-bw|gpu-copy-bw|gpu-sm-copy-bw", {"bw": "GB/s"}),
    (r"kernel-launch|tensorrt-inference|ort-inference|tcp-connectivity|pytorch-.*|.*[-_]models|"
     r"model-benchmarks|megatron-gpt|dist-inference",
     {"time": "ms", "times": "ms", "steptime": "ms", "overhead": "ms", "cost": "ms",
      "throughput": "samples/s", "tflops": "TFLOP/s"}),
)  # fmt: skip


# what our own benchmarks measure too
NCCL = {"allreduce": "all-reduce", "allgather": "all-gather", "broadcast": "broadcast",
        "reducescatter": "reduce-scatter", "alltoall": "all-to-all"}  # fmt: skip
WAYS = {"h2d": "to-device", "d2h": "to-host"}
GEMM = re.compile(r"(fp64|fp32|tf32|fp16|bf16)(_tc|_xdlops)?_flops")
COPY = re.compile(r"(h2d|d2h)(?:_mem)?_bw", re.IGNORECASE)
COLLECTIVE = re.compile(rf"({'|'.join(NCCL)})_(\d{{1,15}})_(time|algbw|busbw)")
STREAM = re.compile(r"(copy|triad)_throughput")


@dataclass(frozen=True)
class Own:
    """A metric as our own benchmarks call it; `lacks` are parameters of ours that the file does not hold."""

    benchmark: str
    quantity: str
    parameters: dict[str, int | str]
    lacks: str
    is_of_ranks: bool = False
    scale: float = 1.0  # to our unit


def own_of(benchmark: str, metric: str) -> Own | None:
    """None where our own benchmarks measure nothing of the kind."""
    name, _, variant = benchmark.partition(":")
    more: dict[str, int | str] = {"variant": variant} if variant else {}
    if name == "gemm-flops" and (found := GEMM.fullmatch(metric)):
        cores = {"cores": "tensor"} if found[2] else {}
        return Own("gemm", "rate", {"dtype": found[1], **cores, **more}, "size")
    if name == "mem-bw" and (found := COPY.fullmatch(metric)):
        way = WAYS[found[1].lower()]
        return Own("host-copy", "bandwidth", {"direction": way, **more}, "size")
    if name == "cpu-stream" and (found := STREAM.fullmatch(metric)):
        # STREAM's MB/s
        return Own("memory", "bandwidth", {"operation": found[1], **more}, "size", scale=1e-3)
    if name in ("nccl-bw", "rccl-bw") and (found := COLLECTIVE.fullmatch(metric)):
        size = more | {"bytes": int(found[2])}
        return Own(NCCL[found[1]], found[3], size, "type and number of ranks", is_of_ranks=True)
    if (name, metric) == ("cpu-hpl", "throughput"):
        return Own("hpl", "rate", more, "number of ranks", is_of_ranks=True)
    return None


@dataclass(frozen=True)
class Kind:
    """`passes` is the value that a check must have; None for a number that is only measured."""

    unit: str
    better: Better
    passes: float | None = None


@lru_cache(maxsize=100_000)
def kind_of(benchmark: str, metric: str) -> Kind | None:
    """None where the name does not prove the direction."""
    if PASSES.match(metric):
        return Kind(CHECK_UNIT, "higher", passes=1.0)
    if ABORTS.match(metric):
        return Kind(CHECK_UNIT, "lower", passes=0.0)
    if NO_RESULT.search(metric):
        return None
    # the metric's last word counts: mem_bandwidth_matrix_numa_0_1_lat is a latency
    words = [word for word in _words(metric) if word in HIGHER | LOWER][-1:]
    words = words or [w for w in _words(benchmark.partition("/")[0]) if w in HIGHER | LOWER]
    if len(set(words)) != 1:
        return None
    return Kind(_unit(benchmark, words[0]), "higher" if words[0] in HIGHER else "lower")


def _words(name: str) -> list[str]:
    return re.split(r"[^a-z]+", name.lower())


def _unit(benchmark: str, word: str) -> str:
    """The empty text where SuperBench's tables name none."""
    name = re.split(r"[:/]", benchmark)[0]
    found = (units for pattern, units in UNITS if re.fullmatch(pattern, name))
    return next(found, {}).get(word, "")
