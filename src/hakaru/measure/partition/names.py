"""Cuts and stages as people find them: by the modules of the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hakaru.measure.partition.graph import Graph


def within(path: str, parent: str) -> bool:
    """Whether a module is another one or in it; all are in the network, whose path is empty."""
    return not parent or path == parent or path.startswith(f"{parent}.")


def parents(path: str) -> Iterator[str]:
    """The module and all around it, the outermost first, without the network itself."""
    names = path.split(".") if path else []
    for depth in range(1, len(names) + 1):
        yield ".".join(names[:depth])


def cut_name(graph: Graph, cut: int) -> str:
    """`after layer2.1`: the largest module that ends there, else the operation."""
    last = graph.nodes[cut - 1]
    after = {parent for node in graph.nodes[cut:] for parent in parents(node.path)}
    for path in parents(last.path):
        if path not in after:
            return f"after {path}"
    return f"after {last.name} in {last.path}" if last.path else f"after {last.name}"


def stage_modules(graph: Graph, first: int, end: int) -> list[str]:
    """The largest modules that are in a stage as a whole, and the smallest that are in part."""
    outside = {
        parent
        for node in (*graph.nodes[:first], *graph.nodes[end:])
        for parent in parents(node.path)
    }
    found: dict[str, None] = {}
    for node in graph.nodes[first:end]:
        whole = next((path for path in parents(node.path) if path not in outside), node.path)
        if whole:
            found.setdefault(whole)
    inner = list(found)
    if not inner and first < end:
        return [f"{graph.nodes[first].name} … {graph.nodes[end - 1].name}"]
    return [
        each for each in inner if not any(other != each and within(other, each) for other in inner)
    ]


def tree(graph: Graph, cuts: Sequence[int], parameters: Mapping[str, int]) -> list[dict[str, Any]]:
    """Every module with its parameters, its time for a micro-batch and its stages, depth first.

    `parameters` are the modules by path, depth first, with the number of parameters in each.
    """
    seconds: dict[str, float] = {}
    stages: dict[str, set[int]] = {}
    for number, (first, end) in enumerate(graph.stages(cuts)):
        for node in graph.nodes[first:end]:
            for path in parents(node.path):
                seconds[path] = seconds.get(path, 0.0) + node.seconds
                stages.setdefault(path, set()).add(number)
    return [
        {
            "path": path,
            "parameters": count,
            "ms": round(1e3 * seconds[path], 6),
            "stages": sorted(stages[path]),
        }
        for path, count in parameters.items()
        if path in stages
    ]
