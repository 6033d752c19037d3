"""The plan of a partition on the module's tree: which stage each module is in, and where the cuts lie.

After RaNNC's automatic partitioning of an unmodified module (Tanaka et al., IPDPS 2021). The document is the
planner's, as `hakaru bench plan --format json` prints it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.collectives import size_text
from hakaru.figures.measure.documents import Document
from hakaru.figures.measure.sheet import Sheet
from hakaru.figures.measure.together import name_of, strategy_name, timed_of, unique
from hakaru.figures.measure.view import RunView
from hakaru.figures.measure.words import UNKNOWN, amount, counted
from hakaru.figures.theme import GREY, PALETTE, SYMBOLS, Theme

TITLE = "Partition of the module"
QUESTION = "Which stage computes which module, and where is it cut?"
NOTHING = "No plan was made."
MOST_NODES, MOST_DEPTH, MOST_STAGES = 5_000, 12, 16
MOST_IN_ROW = 3  # neighbours of one stage; more are drawn as one
MOST_OF_ONE = 12  # where the whole module is of one stage
MOST_DRAWN = 400
MOST_LABEL = 28
ROW_PX, AROUND_PX = 26, 56
MOST_CANDIDATES = 12


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


def plans_of(view: RunView) -> dict[str, Document]:
    """The plans of a run's strategies; one that several share is one."""
    found: dict[str, Document] = {}
    named = []
    for each in timed_of(view, "strategies"):
        plan = each.facts.part("plan")
        if plan.parts("tree") or plan.parts("stages"):
            named.append(
                (
                    f"{each.model}, {strategy_name(each.options)}, {counted(each.ranks, 'rank')}",
                    plan,
                )
            )
    for name, (_, plan) in zip(unique([name for name, _ in named]), named, strict=True):
        found[name] = plan
    return found


def partition(document: Mapping[str, Any] | Document, dark: bool = False) -> Figure:
    """The tree, closed where a module is in one stage as a whole, open where it is cut."""
    plan = document if isinstance(document, Document) else Document(document)
    theme = look.theme_of(dark)
    title = f"{TITLE}: {name_of(plan, 'model')}" if plan.text("model") else TITLE
    root = tree_of(plan)
    if root is None:
        return look.nothing("partition", title, QUESTION, theme, NOTHING)
    shown = _shown(root)
    series = {
        "type": "tree", "data": [_drawn(theme, shown, 0, [MOST_DRAWN])], "orient": "LR", "roam": False,
        "left": 16, "right": 190, "top": 24, "bottom": 24, "initialTreeDepth": -1,
        "expandAndCollapse": True, "edgeShape": "polyline", "edgeForkPosition": "40%",
        "lineStyle": {"color": theme.muted, "width": 1},
        "label": {"position": "top", "align": "left", "color": theme.text, "fontSize": theme.small,
                  "distance": 4, "offset": [-4, 0]},
        "leaves": {"label": {"position": "right", "align": "left", "verticalAlign": "middle",
                             "offset": [0, 0]}},
        "emphasis": {"disabled": True},
    }  # fmt: skip
    option = {
        "tooltip": {"trigger": "item", "triggerOn": "mousemove", "formatter": "{b}"},
        "media": [{"query": {"maxWidth": look.NARROW_PX}, "option": {"series": [{"left": 8, "right": 150}]}}],
        "series": [series],
    }  # fmt: skip
    height = AROUND_PX + ROW_PX * sum(1 for _ in _open_leaves(shown))
    return look.figure("partition", title, QUESTION, option, theme, _notes(plan, root), height)


def candidates_sheet(plan: Document) -> Sheet | None:
    """What the planner weighed up; None where the plan does not say it."""
    found = plan.parts("candidates")[:MOST_CANDIDATES]
    if not found:
        return None
    heads = ("Strategy", "Fits", "Predicted step", "Memory of a device", "Micro-batches", "Why")
    numbers = (False, False, True, True, True, False)
    return Sheet("What the planner weighed up", heads, numbers, tuple(map(_candidate, found)),
                 plan.part("chosen").text("why"))  # fmt: skip


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


def _shown(node: Node) -> Node:
    """The node with long runs of neighbours of one stage as one."""
    children: list[Node] = []
    for stage, run in groupby(map(_shown, node.children), key=lambda each: each.stage):
        own = list(run)
        most = MOST_IN_ROW if len(own) < len(node.children) else MOST_OF_ONE
        is_long = stage is not None and len(own) > most
        children += [_together(own)] if is_long else own
    return Node(node.name, node.path, node.ms, node.parameters, node.stages, children)


def _together(own: Sequence[Node]) -> Node:
    return Node(
        f"{own[0].name} … {own[-1].name}", f"{own[0].path} … {own[-1].path}", sum(each.ms for each in own),
        sum(each.parameters for each in own), own[0].stages, list(own),
    )  # fmt: skip


def _is_open(node: Node, is_root: bool) -> bool:
    return bool(node.children) and (is_root or node.stage is None)


def _open_leaves(node: Node, is_root: bool = True) -> Iterator[Node]:
    if not _is_open(node, is_root):
        yield node
        return
    for each in node.children:
        yield from _open_leaves(each, False)


def _drawn(theme: Theme, node: Node, depth: int, left: list[int]) -> dict[str, Any]:
    """As the chart takes it; what is closed comes along while there is room, to be opened by a click."""
    left[0] -= 1
    is_open = _is_open(node, depth == 0)
    with_children = node.children and (is_open or left[0] >= len(node.children))
    children = (
        [_drawn(theme, each, depth + 1, left) for each in node.children] if with_children else []
    )
    colour, symbol = _looks(node)
    drawn: dict[str, Any] = {
        "name": _told(node), "value": look.digits(node.ms), "symbol": symbol, "symbolSize": 11,
        "itemStyle": {"color": colour, "borderColor": colour},
        "label": {"formatter": _label(node, is_open)},
    }  # fmt: skip
    if children:
        drawn |= {"children": children, "collapsed": not is_open}
        if not is_open:
            # a closed node stands where leaves do
            drawn["label"] |= {
                "position": "right",
                "align": "left",
                "verticalAlign": "middle",
                "offset": [0, 0],
            }
    return drawn


def _looks(node: Node) -> tuple[str, str]:
    stage = node.stage
    if stage is None:
        return GREY, "emptyCircle"
    return PALETTE[stage % len(PALETTE)], SYMBOLS[stage % len(SYMBOLS)]


def _label(node: Node, is_open: bool) -> str:
    name = node.name if len(node.name) <= MOST_LABEL else f"{node.name[: MOST_LABEL - 1]}…"
    return name if is_open else " · ".join(filter(None, (name, _stages(node), _ms(node))))


def _stages(node: Node) -> str:
    if not node.stages:
        return "no stage"
    stages = sorted(node.stages)
    return (
        f"stage {stages[0]}"
        if len(stages) == 1
        else f"stages {', '.join(map(str, stages[:MOST_STAGES]))}"
    )


def _ms(node: Node) -> str:
    return amount(node.ms, "ms") if node.ms else ""


def _told(node: Node) -> str:
    many = counted(int(node.parameters), "parameter")
    return "\n".join(filter(None, (node.path or node.name, _stages(node), _ms(node), many)))


def _notes(plan: Document, root: Node) -> list[str]:
    cuts = plan.texts("cuts")[:MOST_STAGES]
    notes = [plan.text("sentence"), *map(_stage_text, plan.parts("stages")[:MOST_STAGES])]
    notes.append(f"Cuts: {', '.join(cuts)}." if cuts else "")
    if any(each.children for each in _open_leaves(_shown(root))):
        notes.append("A module that one stage computes as a whole is closed; a click opens it.")
    return [note for note in notes if note]


def _stage_text(stage: Document) -> str:
    number, memory, many = (
        stage.whole("stage"),
        stage.number("memory_bytes"),
        stage.number("parameters"),
    )
    facts = (
        amount(stage.number("ms"), "ms") if stage.number("ms") is not None else "",
        size_text(int(memory)) if memory else "",
        counted(int(many), "parameter") if many is not None else "",
        counted(len(stage.items("modules")), "module") if stage.items("modules") else "",
    )
    return f"Stage {'?' if number is None else number}: {', '.join(filter(None, facts))}."


def _candidate(each: Document) -> tuple[str, ...]:
    step, memory, micro = (
        each.number("step_ms"),
        each.number("memory_bytes"),
        each.whole("microbatches"),
    )
    return (
        name_of(each, "strategy"), "yes" if each.is_true("fits") else "no",
        amount(step, "ms"), size_text(int(memory)) if memory else UNKNOWN, f"{micro:,}" if micro else UNKNOWN,
        each.text("why", 300) or UNKNOWN,
    )  # fmt: skip
