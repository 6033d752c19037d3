"""A module as a tree of its parts: built from paths, neighbours of one stage joined, open where it is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from hakaru.figures.measure.together import name_of
from hakaru.measure.documents import Document

MOST_NODES, MOST_DEPTH, MOST_ROWS = 5_000, 12, 60
MOST_IN_ROW = 3  # neighbours of one stage; more are drawn as one
MOST_OF_ONE = 12  # where the whole module is of one stage


@dataclass
class Node:
    """A module, or several neighbours of one stage that are drawn as one."""

    name: str
    path: str
    ms: float = 0.0
    parameters: float = 0.0
    stages: frozenset[int] = frozenset()
    children: list[Node] = field(default_factory=list)

    @property
    def stage(self) -> int | None:
        """Its only stage; None where it is cut."""
        return next(iter(self.stages)) if len(self.stages) == 1 else None


def tree_of(plan: Document) -> Node | None:
    """Modules as a tree by their paths; a container that is not listed sums up what it holds."""
    listed = plan.parts("tree") or [
        Document({"path": path, "stages": [stage.whole("stage")]})
        for stage in plan.parts("stages") for path in stage.texts("modules")
    ]  # fmt: skip
    root = Node(name_of(plan, "model") if plan.text("model") else "module", "")
    known = {"": root}
    for each in listed[:MOST_NODES]:
        node = _place(known, each.text("path", 300))
        if node is not None:
            node.ms, node.parameters = each.number("ms") or 0.0, each.number("parameters") or 0.0
            node.stages = frozenset(int(value) for value in each.numbers("stages"))
    _sum_up(root)
    return root if root.children or root.stages else None


def _place(known: dict[str, Node], path: str) -> Node | None:
    """The node of a path, with the containers on the way to it."""
    names = path.split(".") if path else []
    if len(names) > MOST_DEPTH or len(known) > 2 * MOST_NODES:
        return None
    for depth, name in enumerate(names, 1):
        at = ".".join(names[:depth])
        if at not in known:
            known[at] = Node(name or "?", at)
            known[".".join(names[: depth - 1])].children.append(known[at])
    return known[path]


def _sum_up(node: Node) -> None:
    for each in node.children:
        _sum_up(each)
    node.ms = max(node.ms, sum(each.ms for each in node.children))
    node.parameters = max(node.parameters, sum(each.parameters for each in node.children))
    node.stages = node.stages.union(*(each.stages for each in node.children))


def joined(node: Node) -> Node:
    """The node with long runs of neighbours of one stage as one."""
    children: list[Node] = []
    for stage, run in groupby(map(joined, node.children), key=lambda each: each.stage):
        own = list(run)
        most = MOST_IN_ROW if len(own) < len(node.children) else MOST_OF_ONE
        is_long = stage is not None and len(own) > most
        children += [_together(own)] if is_long else own
    if len(children) > MOST_ROWS:
        rest = _together(children[MOST_ROWS - 1 :])
        rest.name = f"{len(rest.children):,} more"
        children = [*children[: MOST_ROWS - 1], rest]
    return Node(node.name, node.path, node.ms, node.parameters, node.stages, children)


def _together(own: Sequence[Node]) -> Node:
    return Node(
        f"{own[0].name} … {own[-1].name}", f"{own[0].path} … {own[-1].path}", sum(each.ms for each in own),
        sum(each.parameters for each in own), frozenset().union(*(each.stages for each in own)), list(own),
    )  # fmt: skip


def is_open(node: Node, depth: int, most: int) -> bool:
    """The root, and above a depth what several stages share."""
    return bool(node.children) and (depth == 0 or (node.stage is None and depth < most))


def rows_of(node: Node, most: int, depth: int = 0) -> Iterator[tuple[int, Node]]:
    """What is not open, with its depth: a row of the figure each."""
    if not is_open(node, depth, most):
        yield depth, node
        return
    for each in node.children:
        yield from rows_of(each, most, depth + 1)


def depth_of(root: Node) -> int:
    """As deep as the rows still fit; where all stages share everything, the cuts are in no module."""
    fitting = (
        depth
        for depth in range(MOST_DEPTH, 1, -1)
        if sum(1 for _ in rows_of(root, depth)) <= MOST_ROWS
    )
    return next(fitting, 1)
