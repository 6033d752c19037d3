"""Made-up runs of training and storage: scaling with a late rank, a plan of two stages, sizes with a knee."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hakaru.measure.record import Measurement, Run
from hakaru.measure.verdict import Verdict
from tests.measure.lakes import BEGIN, CLUSTER, measured

RANKS = (1, 2, 3, 4)
STEP_MS, DATA_MS, FORWARD_MS, OPTIMISER_MS = 40.0, 2.0, 12.0, 2.0
LATE, LATE_MS = 2, 25.0  # the rank that is late, and how much
BATCH = 64  # of a rank
BLOCKS = 12  # of the model that is cut
MEMORY_MIB, SIZES_MIB = 1024, (256, 512, 1024, 1536, 2048)
WORDS = "made up for a test"
PARTS = ("breakdown", "culprit", "communication", "law", "next", "verdict", "plan", "epochs", "fit", "needed",
         "timeline", "label", "loss_gap", "memory_mib")  # fmt: skip
QUANTITIES = {
    "throughput": ("samples/s", "higher"), "step": ("ms", "lower"), "exposed": ("ms", "lower"),
    "efficiency": ("of linear", "higher"), "rate": ("samples/s", "higher"), "bandwidth": ("MB/s", "higher"),
    "from_device": ("0–1", "higher"), "epoch": ("s", "lower"), "stall": ("0–1", "lower"),
    "au": ("0–1", "higher"),
}  # fmt: skip


def training_run(id: str = "20260401-000000-00000a", **more: Any) -> Run:
    """All of it, as one run of the made-up cluster."""
    rows = [*scaling_rows(), *scaling_rows(scaling="strong", strategy="fsdp"), *strategy_rows(),
            *loading_rows(), *data_size_rows(), *data_size_rows("alexnet", seconds_per_gib=4.0)]  # fmt: skip
    usual: dict[str, Any] = {"cluster": CLUSTER, "started_at": BEGIN, "label": "training"}
    return Run(id, measurements=tuple(rows), **(usual | more))


def timed(
    benchmark: str,
    parameters: Mapping[str, Any],
    values: Mapping[str, float],
    facts: Any,
    ranks: int = 1,
    **more: Any,
) -> list[Measurement]:
    """What was timed together: a row a quantity, each with the document."""
    return [
        measured(
            benchmark=benchmark, parameters=parameters, quantity=quantity, unit=QUANTITIES[quantity][0],
            better=QUANTITIES[quantity][1], device=f"{ranks} ranks",
            host=",".join(f"n{at + 1}" for at in range(parameters.get("hosts", 1))),
            samples=tuple(value * noise for noise in (0.98, 1.0, 1.02, 0.99, 1.01, 1.0)),
            place={"model": f"{ranks} ranks"}, reason="correct and valid", validity=_validity(facts),
            **more,
        )
        for quantity, value in values.items()
    ]  # fmt: skip


def _validity(facts: Any) -> dict[str, Any]:
    """The document stands among the validity; what is no document is put in its parts' place."""
    return dict(facts) if isinstance(facts, Mapping) else dict.fromkeys(PARTS, facts)


def scaling_rows(
    scaling: str = "weak", strategy: str = "ddp", ranks: Sequence[int] = RANKS, **more: Any
) -> Iterator[Measurement]:
    """Beyond two ranks one is late; the law does not know it."""
    for size in ranks:
        late = LATE_MS if size > LATE else 0.0
        batch = BATCH * (size if scaling == "weak" else max(ranks))
        alone = STEP_MS * batch / BATCH / size
        step = alone + 3.0 * (size - 1) + late
        rate = batch / step * 1e3
        parameters = {"model": "mlp", "scaling": scaling, "strategy": strategy, "compression": "none",
                      "batch": batch, "ranks": size, "hosts": size}  # fmt: skip
        values = {
            "throughput": rate,
            "step": step,
            "exposed": step - alone + 1,
            "efficiency": alone / step,
        }
        facts = {
            "breakdown": [split(rank, size, late) for rank in range(size)],
            "culprit": culprit() if late else None,
            "communication": {
                "bytes": 4_200_000,
                "exposed_ms": step - alone + 1,
                "hidden_ms": 5.0,
            },
            "law": law(step - late),
            "verdict": f"Scaling ({scaling}) stops at 2 ranks: with {size} a rank is late, {WORDS}.",
        }
        yield from timed("scaling", parameters, values, facts, size, **more)


def split(rank: int, ranks: int, late: float) -> dict[str, Any]:
    own = late if rank == LATE else 0.0
    return {"rank": rank, "host": f"n{rank + 1}", "data": DATA_MS, "forward": FORWARD_MS,
            "backward": 24.0 + own, "exposed": 1.0 + 3.0 * (ranks - 1) + late - own,
            "optimiser": OPTIMISER_MS}  # fmt: skip


def culprit() -> dict[str, Any]:
    sentence = f"Rank {LATE} on n{LATE + 1} is ready {LATE_MS:g} ms late, which costs 25 ms a step."
    return {"rank": LATE, "host": f"n{LATE + 1}", "late_ms": LATE_MS, "cost_ms": 25.0, "hidden_ms": 0.0,
            "sentence": sentence}  # fmt: skip


def law(step_ms: float) -> dict[str, Any]:
    return {"fitted_on": [1, 2], "predicted_step_ms": step_ms, "low_ms": 0.9 * step_ms,
            "high_ms": 1.1 * step_ms, "held_out_error": 0.04,
            "sentence": "By the law, a step takes 40 ms and 3 ms more for each rank."}  # fmt: skip


def strategy_rows(**more: Any) -> Iterator[Measurement]:
    """Data parallel, and a pipeline in two stages by the plan."""
    for strategy, micro, rate, gap, plan in (
        ("ddp", 0, 5000.0, 0.0, None), ("gpipe", 8, 3900.0, 2.1e-7, plan_document()),
        ("fsdp", 0, 4100.0, 3e-4, None),
    ):  # fmt: skip
        parameters = {"model": "transformer", "strategy": strategy, "compression": "none", "accumulate": 1,
                      "microbatches": micro, "batch": 256, "ranks": 4}  # fmt: skip
        values = {"throughput": rate, "step": 256 / rate * 1e3, "exposed": 4.0}
        facts = {"breakdown": [split(rank, 4, 0.0) for rank in range(4)], "loss_gap": gap, "plan": plan,
                 "verdict": "On 4 ranks ddp is the fastest, 28 % before gpipe."}  # fmt: skip
        yield from timed("strategies", parameters, values, facts, 4, **more)


def plan_document() -> dict[str, Any]:
    """A transformer of equal blocks, cut after the seventh."""
    half = BLOCKS // 2 + 1
    paths = ["embed", *(f"blocks.{at}" for at in range(BLOCKS)), "head"]
    stage = {path: int(at > half) for at, path in enumerate(paths)}
    tree: list[dict[str, Any]] = [
        module("embed", 0.5, 40_000, [0]),
        module("blocks", 24.0, 1_200_000, [0, 1]),
    ]
    for at in range(BLOCKS):
        path = f"blocks.{at}"
        tree += [module(path, 2.0, 100_000, [stage[path]]),
                 module(f"{path}.attention", 0.8, 40_000, [stage[path]]),
                 module(f"{path}.mlp", 1.2, 60_000, [stage[path]])]  # fmt: skip
    tree.append(module("head", 1.5, 40_000, [1]))
    return {
        "model": "transformer", "num_devices": 4, "memory_bytes": 1 << 34, "batch": 256,
        "chosen": {"strategy": "ddp2+gpipe2", "stages": 2, "data": 2, "microbatches": 8, "step_ms": 61.0,
                   "memory_bytes": 900 << 20, "why": "it is the fastest that fits"},
        "candidates": [
            {"strategy": "ddp2+gpipe2", "fits": True, "why": "", "step_ms": 61.0, "memory_bytes": 900 << 20,
             "microbatches": 8},
            {"strategy": "ddp", "fits": False, "why": "needs 17.2 GiB a device, which has 16 GiB",
             "step_ms": 48.0, "memory_bytes": 18_467_000_000, "microbatches": 1},
        ],
        "stages": [{"stage": number, "modules": [path for path in paths if stage[path] == number],
                    "ms": (14.5, 11.5)[number], "memory_bytes": 450 << 20, "parameters": 640_000}
                   for number in (0, 1)],
        "tree": tree, "cuts": [f"after blocks.{half - 1}"],
        "sentence": f"Two stages of 14.5 and 11.5 ms, cut after blocks.{half - 1}.",
    }  # fmt: skip


def module(path: str, ms: float, parameters: int, stages: list[int]) -> dict[str, Any]:
    return {"path": path, "ms": ms, "parameters": parameters, "stages": stages}


def loading_rows(**more: Any) -> Iterator[Measurement]:
    """The archive is fastest; the cold tar shards were cached after all."""
    for layout, cold in (("files", 300.0), ("tar", 900.0), ("packed", 1000.0)):
        for state in ("cold", "warm"):
            for workers in (1, 2):
                rate = cold * workers**0.8 * (3.0 if state == "warm" else 1.0)
                label = "from the device" if state == "cold" and layout != "tar" else "cached"
                parameters = {
                    "layout": layout,
                    "workers": workers,
                    "prefetch": 2,
                    "state": state,
                    "mib": 512,
                }
                values = {
                    "rate": rate,
                    "bandwidth": rate * 0.11,
                    "from_device": float(label != "cached"),
                }
                read = 512 << 20
                facts = {"label": label, "read_bytes": read, "delivered_bytes": read,
                         "device_counter_bytes": read, "path": "/data/set", "filesystem": "ext4"}  # fmt: skip
                yield from timed("loading", parameters, values, facts, **more)


def data_size_rows(
    model: str = "resnet50", seconds_per_gib: float = 8.0, **more: Any
) -> Iterator[Measurement]:
    """Beyond memory a GiB takes three times as long."""
    for mib in SIZES_MIB:
        beyond = max(0.0, mib - MEMORY_MIB)
        seconds = (seconds_per_gib * mib + 2 * seconds_per_gib * beyond) / 1024
        label = (
            "cached"
            if mib < MEMORY_MIB
            else "partly cached"
            if mib < 2 * MEMORY_MIB
            else "from the device"
        )
        parameters = {
            "model": model,
            "layout": "tar",
            "workers": 2,
            "memory": MEMORY_MIB,
            "mib": mib,
        }
        values = {
            "epoch": seconds,
            "stall": 0.4 * beyond / mib + 0.01,
            "au": 0.99 - 0.4 * beyond / mib,
        }
        epochs = [
            epoch(1.2 * seconds, mib, 1.0, "from the device"),
            epoch(seconds, mib, beyond / mib, label),
        ]
        facts: dict[str, Any] = {"memory_mib": MEMORY_MIB, "epochs": epochs}
        if mib == max(SIZES_MIB):
            facts |= {
                "fit": fit(model, seconds_per_gib),
                "needed": needed(model),
                "timeline": timeline_document(),
            }
        yield from timed("data-size", parameters, values, facts, **more)


def epoch(seconds: float, mib: int, share: float, label: str) -> dict[str, Any]:
    return {"seconds": seconds, "read_bytes": int(share * mib * 2**20), "delivered_bytes": mib * 2**20,
            "label": label}  # fmt: skip


def fit(model: str, slope: float) -> dict[str, Any]:
    sentence = f"{model}: a GiB takes {slope:g} s below memory, {3 * slope:g} s above; the knee is at 1 GiB."
    return {"slope_below_s_per_gib": slope, "slope_above_s_per_gib": 3 * slope, "knee_mib": MEMORY_MIB,
            "sentence": sentence}  # fmt: skip


def needed(model: str) -> dict[str, Any]:
    return {"mb_per_s_now": 130.0, "loader_mb_per_s": 300.0,
            "for_faster": [{"times": 2, "mb_per_s": 260.0, "delivers": True},
                           {"times": 4, "mb_per_s": 520.0, "delivers": False}],
            "sentence": f"{model}: storage has to deliver 260 MB/s for devices twice as fast."}  # fmt: skip


def timeline_document(steps: int = 12) -> dict[str, Any]:
    """A step each 20 ms: loading and copying beside compute, and a wait at each third step."""
    events: list[list[float]] = []
    for step in range(steps):
        begin, wait = 20.0 * step, 6.0 if step % 3 == 2 else 0.0
        events += [
            [0, begin, begin + 12 + wait],
            [1, begin + 13, begin + 15],
            [2, begin + wait, begin + 19],
        ]
        events += [[3, begin, begin + wait]] if wait else []
    return {"lanes": ["loading", "copy", "compute", "waiting"], "events": events,
            "hidden": {"loading": 0.86, "copy": 1.0},
            "sentence": "86 % of loading and all of copying hide behind compute."}  # fmt: skip


NAN = float("nan")
BAD = "<script>window.hit=1</script>\"'><img src=x onerror=window.hit=1>{a|b}"
HALF = f"{BAD}\ud800\x00"  # half of a character, which JSON can hold and no file as it is
HOSTILE: tuple[Any, ...] = (
    None, 7, "text", [], [1, 2], {},
    {"breakdown": "x", "culprit": 3, "communication": [], "law": [1], "verdict": {"a": 1}, "plan": "x",
     "epochs": 4, "fit": 3, "needed": [], "timeline": "t", "label": 9, "loss_gap": "1"},
    {"breakdown": [{"rank": -1, "data": float("nan")}, {"rank": 1e300}, {"rank": True}, 4, None,
                   {"rank": 0, "host": HALF, "data": "1", "forward": 1e308, "backward": -3, "exposed": None}],
     "culprit": {"rank": 99, "sentence": HALF}, "communication": {"exposed_ms": float("inf"), "hidden_ms": 0},
     "law": {"predicted_step_ms": 1e-320, "low_ms": float("nan"), "fitted_on": "1"}, "verdict": HALF,
     "loss_gap": float("nan"),
     "plan": {"model": HALF,
              "tree": [{"path": "." * 5000}, {"path": HALF, "ms": 1e308, "stages": [0.5, -1, 1e300]},
                       {"path": "a..b", "stages": ["x", 0]}, 4, {"path": {"a": 1}}],
              "stages": [{"stage": HALF, "modules": 7}, 3], "cuts": [1, HALF], "chosen": 1,
              "candidates": [{"strategy": HALF, "step_ms": "x", "fits": "yes"}, None]},
     "epochs": [{"seconds": HALF, "label": HALF, "read_bytes": -1, "delivered_bytes": 0}],
     "memory_mib": 1e308, "fit": {"slope_below_s_per_gib": 1e308, "knee_mib": "x", "sentence": HALF},
     "needed": {"mb_per_s_now": 1, "for_faster": [{"times": 0}, {"times": 2, "mb_per_s": None}],
                "sentence": HALF},
     "timeline": {"lanes": ["a", HALF, 3, "a"], "hidden": {"a": 9e99}, "sentence": HALF,
                  "events": [[0, 1, 2], [9, 1, 2], [0, 5, 1], [0, 1], "x", [0.5, 1, 2], [0, NAN, 3]]},
     "label": HALF, "path": HALF, "filesystem": HALF},
)  # fmt: skip


def hostile_rows(facts: Any, **parameters: Any) -> list[Measurement]:
    """A row of each benchmark with the document, and with parameters that are no words or numbers."""
    odd: dict[str, Any] = {
        "model": BAD, "strategy": ["ddp"], "scaling": 1, "compression": None, "batch": "x", "hosts": 1,
        "ranks": 2, "layout": BAD, "state": 3, "workers": "x", "mib": 64, **parameters,
    }  # fmt: skip
    values = {
        "scaling": "throughput",
        "strategies": "throughput",
        "loading": "rate",
        "data-size": "epoch",
    }
    return [row for benchmark, quantity in values.items()
            for row in timed(benchmark, odd, {quantity: 5.0}, facts, 2, verdict=Verdict.GOOD)]  # fmt: skip
