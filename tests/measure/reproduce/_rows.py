"""Rows of training and storage written by hand, as the benchmarks store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hakaru.measure.record import Measurement, Run
from hakaru.measure.reproduce import Answer, Compared, Paper, compare
from hakaru.measure.verdict import Verdict
from tests.measure._runs import measured, run_of

GPUS = {"gpus": ["V100"] * 4, "num_usable": 32, "cpu": "Xeon"}
CORES = {"gpus": [], "num_usable": 2, "cpu": "EPYC"}
ON_GPUS = {"model": "V100 ranks", "hardware": GPUS}
ON_CORES = {"model": "processor ranks", "hardware": CORES}
UNITS = {
    "step": ("ms", "lower"), "exposed": ("ms", "lower"), "throughput": ("samples/s", "higher"),
    "efficiency": ("of linear", "higher"), "rate": ("samples/s", "higher"), "epoch": ("s", "lower"),
    "stall": ("0–1", "lower"),
}  # fmt: skip


def near(value: float, num: int = 7, noise: float = 0.004) -> tuple[float, ...]:
    """Repetitions around a value, the median being the value itself."""
    return tuple(value * (1 + noise * (at - num // 2) / num) for at in range(num))


def row(benchmark: str, quantity: str, samples: tuple[float, ...], **more: Any) -> Measurement:
    unit, better = UNITS[quantity]
    columns: dict[str, Any] = {
        "benchmark": benchmark, "quantity": quantity, "unit": unit, "better": better, "place": ON_GPUS,
    }  # fmt: skip
    return measured(*samples, **(columns | more))


def scaling(
    ranks: int, step_ms: float, *, quantity: str = "step", hosts: int = 1, facts: Mapping[str, Any] = {},
    noise: float = 0.004, place: Mapping[str, Any] = ON_GPUS, **more: Any,
) -> Measurement:  # fmt: skip
    """A row of the strong scaling of RaNNC's network, with what a test changes."""
    parameters = {
        "model": "mlp", "scaling": "strong", "strategy": "ddp" if ranks > 1 else "single",
        "compression": "none", "batch": 96, "ranks": ranks, "hosts": hosts,
    }  # fmt: skip
    names = parameters.keys() & more.keys()
    parameters |= {name: more.pop(name) for name in names}
    return row(
        "scaling", quantity, near(step_ms, noise=noise), parameters=parameters, validity=dict(facts),
        place=place, device=f"{ranks} ranks", host=",".join(f"n{at}" for at in range(hosts)), **more,
    )  # fmt: skip


def loading(layout: str, rate: float, state: str, label: str, **more: Any) -> Measurement:
    parameters = {"layout": layout, "workers": 2, "prefetch": 2, "mib": 32, "state": state}
    return row(
        "loading", "rate", near(rate), parameters=parameters, validity={"label": label}, **more
    )


def epoch(
    model: str, mib: int, *seconds: float, quantity: str = "epoch", facts: Mapping[str, Any] = {},
    memory: int = 64, **more: Any,
) -> Measurement:  # fmt: skip
    parameters = {"model": model, "layout": "packed", "workers": 2, "memory": memory, "mib": mib}
    return row("data-size", quantity, seconds, parameters=parameters, validity=dict(facts), **more)


def contaminated(each: Measurement) -> Measurement:
    return each.judged(Verdict.CONTAMINATED, "others used the machine")


def failed(each: Measurement) -> Measurement:
    return each.judged(Verdict.FAILED, "rank 1 died")


def by_words(paper: Paper, run: Run) -> dict[str, Compared]:
    return {each.finding.says: each for each in compare(paper, run)}


def answer(paper: Paper, says: str, *rows: Measurement) -> Answer:
    """What the rows say of the finding with these words."""
    (found,) = (each.answer for each in compare(paper, run_of(*rows)) if says in each.finding.says)
    return found
