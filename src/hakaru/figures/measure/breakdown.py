"""Where a step of each rank goes: data, forward, backward until ready, exposed communication, optimiser.

In a synchronous job all ranks look equally slow; who is ready late keeps the others waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.together import NONE, Timed, name_of, strategy_name, timed_of, unique
from hakaru.figures.measure.view import RunView
from hakaru.figures.theme import BLUE, BROWN, GREEN, MAGENTA, ORANGE, SKY, Theme
from hakaru.measure.documents import Document
from hakaru.measure.numbers import amount, counted, share

TITLE = "A step, by rank"
QUESTION = "Where does the time of a step go, and which rank keeps the others waiting?"
NOTHING = "No step was split into its parts."
MOST_BARS, NUM_SLOWEST = 64, 8
QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95)
CULPRIT = "culprit"
NOBODY = "No rank keeps the others waiting."
Phase = tuple[str, str, str, float | None]
# name in the document, as shown, colour, and the angle of its hatching, so that colour is not needed
PHASES: tuple[Phase, ...] = (
    ("data", "data", ORANGE, None),
    ("forward", "forward", BLUE, 0.8),
    ("backward", "backward until ready", GREEN, None),
    ("exposed", "exposed communication", SKY, -0.8),
    ("optimiser", "optimiser", BROWN, None),
)
UNTIL_READY = ("data", "forward", "backward")


@dataclass(frozen=True)
class Split:
    """The parts of one rank's step in ms, by name of the phase."""

    rank: int
    host: str
    ms: dict[str, float]

    @property
    def ready(self) -> float:
        return sum(self.ms[name] for name in UNTIL_READY)

    @property
    def total(self) -> float:
        return sum(self.ms.values())


@dataclass(frozen=True)
class Steps:
    """One training among so many ranks; the culprit is one of them, or nobody."""

    name: str
    ranks: int
    splits: tuple[Split, ...]
    culprit: int | None
    is_blamed: bool
    sentence: str
    communication: Document
    doubt: str


def steps_of(view: RunView, benchmark: str) -> list[Steps]:
    """Every training that was split, of each model that of the most ranks first."""
    timed = sorted(timed_of(view, benchmark), key=_place)
    found = [each for each in timed if each.facts.parts("breakdown")]
    return [
        _steps(*pair) for pair in zip(found, unique([_name(each) for each in found]), strict=True)
    ]


def culprit_sentences(steps: Sequence[Steps]) -> list[str]:
    """Of each training that counts and has a culprit; what is said of several, of the largest alone."""
    blamed = [each for each in steps if each.is_blamed and not each.doubt]
    largest = {each.sentence: each.name for each in reversed(blamed)}  # the last is the largest
    return [f"{name}: {sentence}" for sentence, name in largest.items()]


def breakdown(steps: Steps | None, dark: bool = False) -> Figure:
    """A bar a rank; of many ranks the slowest, the culprit and some between."""
    theme = look.theme_of(dark)
    title = f"{TITLE}: {steps.name}" if steps else TITLE
    if steps is None or not steps.splits:
        return look.nothing("breakdown", title, QUESTION, theme, NOTHING)
    shown = _shown(steps)
    names = [shown_name for _, shown_name, *_ in PHASES]
    mark = _culprit(steps, shown)
    legend = [*names, *([CULPRIT] if mark else [])]
    option = {
        **look.legend_above(theme, legend, bottom=72),
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "xAxis": parts.category_axis(
            theme, "Rank", [label for label, _ in shown], nameGap=44, axisLabel={"fontSize": 11}
        ),
        "yAxis": parts.as_y(parts.value_axis(theme, "Time (ms)", min=0, boundaryGap=[0, "12%"])),
        "series": [*(_phase(theme, phase, shown) for phase in PHASES), *mark],
    }
    return look.figure("breakdown", title, QUESTION, option, theme, _notes(steps, shown))


def _place(timed: Timed) -> tuple[str, int, bool, str]:
    """Gradients as they are before those in fewer bits."""
    is_plain = timed.options.text("compression") in ("", NONE)
    return timed.model, -timed.ranks, not is_plain, _name(timed)


def _name(timed: Timed) -> str:
    options = timed.options
    scaling = f", {name_of(options, 'scaling')}" if options.text("scaling") else ""
    return f"{timed.model}, {strategy_name(options)}{scaling}, {counted(timed.ranks, 'rank')}"


def _steps(timed: Timed, name: str) -> Steps:
    facts = timed.facts
    splits = [split for each in facts.parts("breakdown") if (split := _split(each))]
    culprit = facts.part("culprit")
    known = {each.rank for each in splits}
    rank, sentence = culprit.whole("rank"), culprit.text("sentence")
    is_judged = timed.first.benchmark == "scaling" and timed.ranks > 1
    return Steps(
        name, timed.ranks, tuple(sorted(splits, key=lambda each: each.rank)),
        rank if rank in known else None, bool(sentence), sentence or (NOBODY if is_judged else ""),
        facts.part("communication"), timed.doubt,
    )  # fmt: skip


def _split(each: Document) -> Split | None:
    rank = each.whole("rank")
    if rank is None:
        return None
    return Split(
        rank, each.text("host", 80), {name: each.number(name) or 0.0 for name, *_ in PHASES}
    )


Shown = Sequence[tuple[str, Split]]


def _shown(steps: Steps) -> Shown:
    """A label for each bar."""
    if len(steps.splits) <= MOST_BARS:
        return [(str(each.rank), each) for each in steps.splits]
    ordered = sorted(steps.splits, key=lambda each: each.ready)
    last = len(ordered) - 1
    between = [
        (f"{quantile * 100:.0f} %", ordered[round(quantile * last)]) for quantile in QUANTILES
    ]
    slowest = [("slow", each) for each in ordered[-NUM_SLOWEST:]]
    own = [("slow", each) for each in ordered if each.rank == steps.culprit]
    taken = {each.rank for _, each in slowest}
    kept = [*between, *(pair for pair in own if pair[1].rank not in taken), *slowest]
    return [(f"{label}\n{each.rank}", each) for label, each in kept]


def _phase(theme: Theme, phase: Phase, shown: Shown) -> dict[str, Any]:
    name, shown_name, colour, hatch = phase
    style: dict[str, Any] = {
        "borderColor": theme.background,
        "borderWidth": 1 if len(shown) <= 32 else 0,
    }
    if hatch is not None:
        style["decal"] = {
            "symbol": "rect", "color": "rgba(255, 255, 255, 0.45)", "rotation": hatch,
            "dashArrayX": [1, 0], "dashArrayY": [2, 6],
        }  # fmt: skip
    return {
        "type": "bar", "name": shown_name, "stack": "step", "color": colour, "barMaxWidth": 64,
        "barCategoryGap": "15%", "itemStyle": style,
        "data": [{"value": look.digits(each.ms[name]), "name": _told(each)} for _, each in shown],
    }  # fmt: skip


def _told(each: Split) -> str:
    where = f"rank {each.rank}" + (f" on {each.host}" if each.host else "")
    return "\n".join(
        [where, *(f"{shown}: {amount(each.ms[name], 'ms')}" for name, shown, *_ in PHASES)]
    )


def _culprit(steps: Steps, shown: Shown) -> list[dict[str, Any]]:
    """A mark with its name above the bar."""
    at = next(
        (at for at, (_, each) in reversed(list(enumerate(shown))) if each.rank == steps.culprit),
        None,
    )
    if at is None:
        return []
    split = shown[at][1]
    item = {
        "value": [at, look.digits(split.total)],
        "name": f"{_told(split)}\n{steps.sentence}".strip(),
    }
    label = {
        "show": True,
        "position": "top",
        "formatter": CULPRIT,
        "color": "inherit",
        "fontWeight": "bold",
    }
    return [
        parts.marks(CULPRIT, "triangle", 12, MAGENTA, [item])
        | {"symbolRotate": 180, "symbolOffset": [0, -9], "label": label}
    ]  # fmt: skip


def _notes(steps: Steps, shown: Shown) -> list[str]:
    notes = [steps.sentence, steps.doubt, _exposed(steps.communication)]
    if len(steps.splits) > MOST_BARS:
        notes.append(
            f"Of {len(steps.splits):,} ranks, ordered by when they are ready, {len(shown)} are drawn: "
            f"some quantiles, and the {NUM_SLOWEST} slowest."
        )
    return [note for note in notes if note]


def _exposed(communication: Document) -> str:
    exposed, hidden = communication.number("exposed_ms"), communication.number("hidden_ms")
    num_bytes = communication.number("bytes")
    if exposed is None or hidden is None or exposed + hidden <= 0:
        return ""
    size = f" of {amount(num_bytes / 1e6, 'MB')}" if num_bytes else ""
    return (
        f"Communication{size}: {amount(exposed, 'ms')} exposed and {amount(hidden, 'ms')} hidden behind "
        f"compute, which is {share(hidden / (exposed + hidden))}."
    )
