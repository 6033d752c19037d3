"""The plan of a partition on the module's tree: which stage each module is in, and where the cuts lie.

After RaNNC's automatic partitioning of an unmodified module (Tanaka et al., IPDPS 2021). The document is the
planner's, as `hakaru bench plan --format json` prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure._tree import Node, depth_of, is_open, joined, rows_of, tree_of
from hakaru.figures.measure.collectives import size_text
from hakaru.figures.measure.sheet import Sheet
from hakaru.figures.measure.together import name_of, strategy_name, timed_of, unique
from hakaru.figures.measure.view import RunView
from hakaru.figures.theme import GREY, PALETTE, SYMBOLS, Theme
from hakaru.measure.documents import Document
from hakaru.measure.numbers import UNKNOWN, amount, counted

TITLE = "Partition of the module"
QUESTION = "Which stage computes which module, and where is it cut?"
NOTHING = "No plan was made."
MOST_STAGES = 16
MOST_DRAWN = 400
MOST_LABEL = 20
ROW_PX, AROUND_PX = 20, 72
LETTER_PX, MOST_LABEL_PX, MOST_LABEL_PX_NARROW = 6.2, 300, 210
LEAF_LABEL = {"position": "right", "align": "left", "verticalAlign": "middle", "offset": [0, 0]}
MOST_CANDIDATES = 12


def plans_of(view: RunView) -> dict[str, Document]:
    """The plans of a run's strategies, by the training that each is for."""
    found = sorted(
        (f"{each.model}, {strategy_name(each.options)}, {counted(each.ranks, 'rank')}", at, plan)
        for at, each in enumerate(timed_of(view, "strategies"))
        if tree_of(plan := each.facts.part("plan")) is not None
    )
    return dict(
        zip(unique([name for name, *_ in found]), (plan for *_, plan in found), strict=True)
    )


def partition(document: Mapping[str, Any] | Document, dark: bool = False) -> Figure:
    """The tree, closed where a module is in one stage as a whole, open where it is cut."""
    plan = document if isinstance(document, Document) else Document(document)
    theme = look.theme_of(dark)
    title = f"{TITLE}: {name_of(plan, 'model')}" if plan.text("model") else TITLE
    root = tree_of(plan)
    if root is None:
        return look.nothing("partition", title, QUESTION, theme, NOTHING)
    shown = joined(root)
    most = depth_of(shown)
    rows = list(rows_of(shown, most))
    deepest = max(depth for depth, _ in rows)
    drawn = _Drawing(theme, most, deepest).node(shown, 0)
    letters = max(len(_label(node, False)) for _, node in rows)
    # the chart keeps rows of one parent closer than others
    height = AROUND_PX + ROW_PX * sum(1 + (depth < deepest) for depth, _ in rows)
    is_closed = any(node.children for _, node in rows)
    option = _option(theme, drawn, round(LETTER_PX * letters) + 28)
    return look.figure("partition", title, QUESTION, option, theme, _notes(plan, is_closed), height)


def candidates_sheet(plan: Document, name: str = "") -> Sheet | None:
    """What the planner weighed up; None where there was but one way."""
    found = plan.parts("candidates")[:MOST_CANDIDATES]
    if len(found) < 2:
        return None
    heads = ("Strategy", "Fits", "Predicted step", "Memory of a device", "Micro-batches", "Why")
    numbers = (False, False, True, True, True, False)
    title = f"What the planner weighed up: {name}" if name else "What the planner weighed up"
    return Sheet(title, heads, numbers, tuple(map(_candidate, found)),
                 _chosen(plan.part("chosen")))  # fmt: skip


def _chosen(chosen: Document) -> str:
    strategy, why = chosen.text("strategy", 60), chosen.text("why")
    return f"Chosen: {strategy}{f'; {why}' if why else ''}." if strategy else ""


def _option(theme: Theme, drawn: dict[str, Any], label_px: int) -> dict[str, Any]:
    label = {
        "position": "top", "align": "left", "color": theme.text, "fontSize": theme.small, "distance": 4,
        "offset": [-4, 0], "backgroundColor": theme.background, "padding": [0, 2],
    }  # fmt: skip
    series = {
        "type": "tree", "data": [drawn], "orient": "LR", "roam": False, "left": 16,
        "right": min(label_px, MOST_LABEL_PX), "top": 28, "bottom": 24, "initialTreeDepth": -1,
        "expandAndCollapse": True, "edgeShape": "polyline", "edgeForkPosition": "40%",
        "lineStyle": {"color": theme.muted, "width": 1}, "label": label, "leaves": {"label": LEAF_LABEL},
        "emphasis": {"disabled": True},
    }  # fmt: skip
    on_phone = {"left": 8, "right": min(label_px, MOST_LABEL_PX_NARROW)}
    return {
        "tooltip": {"trigger": "item", "triggerOn": "mousemove", "formatter": "{b}"},
        "media": [{"query": {"maxWidth": look.NARROW_PX}, "option": {"series": [on_phone]}}],
        "series": [series],
    }


@dataclass
class _Drawing:
    """How deep the tree is open, how deep its rows are, and how many nodes may still be drawn."""

    theme: Theme
    most: int
    deepest: int
    left: int = MOST_DRAWN

    def row(self, node: Node, depth: int) -> dict[str, Any]:
        """A leaf or a closed module; all stand in one column, so that no label lies on another's row."""
        drawn = self.node(node, depth)
        for _ in range(self.deepest - depth):
            drawn = {"name": "", "symbol": "none", "children": [drawn], "tooltip": {"show": False},
                     "label": {"show": False}}  # fmt: skip
        return drawn

    def node(self, node: Node, depth: int) -> dict[str, Any]:
        """As the chart takes it; what is closed comes along while there is room, to be opened by a click."""
        self.left -= 1
        symbol, style = _looks(self.theme, node)
        opened = is_open(node, depth, self.most)
        drawn: dict[str, Any] = {
            "name": _told(node), "value": look.digits(node.ms), "symbol": symbol, "symbolSize": 11,
            "itemStyle": style, "label": {"formatter": _label(node, opened)},
        }  # fmt: skip
        if opened:
            drawn["children"] = [
                (self.node if is_open(each, depth + 1, self.most) else self.row)(each, depth + 1)
                for each in node.children
            ]
        else:
            drawn["label"] |= LEAF_LABEL
            if node.children and self.left > len(node.children):
                drawn["children"] = [self.node(each, depth + 1) for each in node.children]
                drawn["collapsed"] = True
        return drawn


def _looks(theme: Theme, node: Node) -> tuple[str, dict[str, Any]]:
    """The symbol and its colour; what several stages compute is only an outline."""
    stage = node.stage
    if stage is None:
        return "circle", look.hollow(theme, GREY)
    return SYMBOLS[stage % len(SYMBOLS)], {"color": PALETTE[stage % len(PALETTE)]}


def _label(node: Node, opened: bool) -> str:
    name = node.name if len(node.name) <= MOST_LABEL else f"{node.name[: MOST_LABEL - 1]}…"
    return name if opened else " · ".join(filter(None, (name, _stages(node), _ms(node))))


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


def _notes(plan: Document, is_closed: bool) -> list[str]:
    cuts = plan.texts("cuts")[:MOST_STAGES]
    notes = [plan.text("sentence"), *map(_stage_text, plan.parts("stages")[:MOST_STAGES])]
    notes.append(f"Cuts: {', '.join(cuts)}." if cuts and not plan.text("sentence") else "")
    if is_closed:
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
