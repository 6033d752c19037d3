"""The partition document: what was weighed up, what was chosen and why, where it cuts, what it predicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.measure.partition.cost import Cost, Machine, Work
from hakaru.measure.partition.graph import Graph
from hakaru.measure.partition.names import cut_name, stage_modules, tree
from hakaru.measure.preflight.check import size
from hakaru.registry import listed

MOST_CUTS = 8  # in a sentence


@dataclass(frozen=True)
class Asked:
    """What is to be trained on what."""

    model: str
    num_devices: int
    batch: int  # global
    machine: Machine
    parameters: Mapping[str, int]  # numbers of parameters by module, depth first
    link_assumed: bool = False


@dataclass(frozen=True)
class Candidate:
    """A strategy with what it is predicted to need; without numbers where it cannot be applied."""

    strategy: str
    fits: bool
    why: str
    step_s: float | None = None
    memory_bytes: int | None = None
    microbatches: int = 1
    stages: int = 1
    data: int = 1
    graph: Graph | None = None  # for its micro-batch
    cost: Cost | None = None  # of a pipeline

    def as_json(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy,
            "fits": self.fits,
            "why": self.why,
            "step_ms": milliseconds(self.step_s),
            "memory_bytes": self.memory_bytes,
            "microbatches": self.microbatches,
        }


def document_of(
    asked: Asked, chosen: Candidate, why: str, candidates: Iterable[Candidate]
) -> dict[str, Any]:
    """The document as `hakaru bench plan --format json` prints it."""
    cuts = chosen.cost.cuts if chosen.cost else ()
    graph = chosen.graph or Graph(())
    names = [cut_name(graph, cut) for cut in cuts]
    return {
        "model": asked.model,
        "num_devices": asked.num_devices,
        "memory_bytes": asked.machine.memory_bytes,
        "batch": asked.batch,
        "link_bytes_s": asked.machine.link_bytes_s,
        "link_assumed": asked.link_assumed,
        "chosen": {
            "strategy": chosen.strategy,
            "stages": chosen.stages,
            "data": chosen.data,
            "microbatches": chosen.microbatches,
            "step_ms": milliseconds(chosen.step_s),
            "memory_bytes": chosen.memory_bytes,
            "why": why,
        },
        "candidates": [each.as_json() for each in candidates],
        "stages": _stages(asked, chosen, graph, cuts),
        "tree": tree(graph, cuts, asked.parameters),
        "cuts": names,
        "cut_before": [graph.nodes[cut].name for cut in cuts],
        "sentence": _sentence(asked, chosen, names),
    }


def milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1e3 * seconds, 6)


def rate(bytes_s: float) -> str:
    return f"{bytes_s / 1e9:,.3g} GB/s"


def _stages(
    asked: Asked, chosen: Candidate, graph: Graph, cuts: Sequence[int]
) -> list[dict[str, Any]]:
    """Each stage; `ms` is its time for one micro-batch, with the transfer."""
    found = []
    for number, (first, end) in enumerate(graph.stages(cuts)):
        work = Work.of(graph, first, end)
        cost = chosen.cost
        found.append(
            {
                "stage": number,
                "modules": stage_modules(graph, first, end),
                "ms": milliseconds(cost.slots_s[number] if cost else work.seconds),
                "compute_ms": milliseconds(work.seconds),
                "memory_bytes": cost.memory_bytes[number] if cost else chosen.memory_bytes,
                "received_bytes": work.crossing_bytes,
                "parameters": sum(node.num_parameters for node in graph.nodes[first:end]),
            }
        )
    return found


def _sentence(asked: Asked, chosen: Candidate, cuts: Sequence[str]) -> str:
    devices = "1 device" if asked.num_devices == 1 else f"{asked.num_devices} devices"
    limit = asked.machine.memory_bytes
    room = "" if limit is None else f" of {size(limit)}"
    parts = f" with {chosen.microbatches} micro-batches" if chosen.stages > 1 else ""
    where = f" It cuts {listed(cuts, MOST_CUTS)}." if cuts else ""
    return (
        f"{asked.model} on {devices}: {chosen.strategy}{parts}, a predicted step of"
        f" {duration(chosen.step_s or 0.0)} for {asked.batch:,} samples and"
        f" {size(chosen.memory_bytes or 0)}{room} on the fullest device.{where}"
    )


def duration(seconds: float) -> str:
    return (
        f"{seconds:,.2f} s"
        if seconds >= 10
        else f"{1e3 * seconds:,.3g} ms"
        if seconds < 1
        else f"{seconds:,.3g} s"
    )
