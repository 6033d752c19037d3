"""Differences between nodes: the most common value, and the nodes that have another."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hakaru.measure.node.machine import Absent, Unread
from hakaru.measure.preflight.check import ONE_NODE, Ask, Finding, Judged, passed
from hakaru.measure.preflight.facts import Node
from hakaru.registry import listed

MOST_NAMES = 8
UNSAFE = re.compile(r"[^A-Za-z0-9._+:@ ()-]")


def compare(
    nodes: Sequence[Node],
    ask: Ask,
    read: Callable[[Node], str],
    otherwise: Judged,
    fix: str,
) -> Finding:
    """Pass where all nodes have the same value; a value that some nodes lack is a difference too."""
    several(nodes, ask)
    groups: dict[str | None, list[str]] = {}
    lacks = ""
    for node in nodes:
        try:
            value: str | None = read(node)
        except Absent as error:
            value, lacks = None, str(error)
        except Unread as error:
            raise Unread(f"{node.name}: {error}") from None
        groups.setdefault(value, []).append(node.name)
    if list(groups) == [None]:
        raise Absent(f"on all nodes: {lacks}")
    return _judged(groups, lacks, otherwise, fix)


def several(nodes: Sequence[Node], ask: Ask) -> None:
    """Raise where there is one answer: n/a for a run on one node, else not measured."""
    if len(nodes) < 2:
        raise Absent(ONE_NODE) if ask.alone else Unread("only one node answered")


def _judged(
    groups: dict[str | None, list[str]],
    lacks: str,
    otherwise: Judged,
    fix: str,
) -> Finding:
    ordered = sorted(groups.items(), key=lambda each: -len(each[1]))
    common = next(value for value, _ in ordered if value is not None)
    if len(ordered) == 1:
        return passed(f"{common} on {len(ordered[0][1]):,} nodes")
    found = "; ".join(
        f"{lacks if value is None else value} on {listed(names, MOST_NAMES)}"
        for value, names in ordered
    )
    wanted = f"{common} on all nodes"
    # the fix is for a shell: what a node answered must not bring quotes into it
    return otherwise(found, wanted, fix.replace("{wanted}", UNSAFE.sub("", common)))
