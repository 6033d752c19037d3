"""What ran when: loading, copying, compute and waiting in lanes over time, as TSUBAME 3's Fig. 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.data_size import sizes_of
from hakaru.figures.measure.view import RunView
from hakaru.figures.theme import BLUE, GREEN, MAGENTA, ORANGE, PALETTE
from hakaru.measure.documents import Document, number_of
from hakaru.measure.numbers import amount, share

TITLE = "What runs when"
QUESTION = "Does loading hide behind compute, or does training wait for data?"
NOTHING = "No timeline was recorded."
MOST_LANES, MOST_EVENTS = 12, 2_000
FINEST = 1 / 1500  # of the whole time: gaps below are closed, and no rectangle is narrower
MOST_TOLD = 60  # rectangles of a lane that tell their times, the longest
HEIGHT_OF_LANE, HEIGHT_AROUND, THICK = 46, 130, 24
COLOURS = {"loading": ORANGE, "copy": BLUE, "compute": GREEN, "waiting": MAGENTA}

Event = tuple[float, float]


@dataclass(frozen=True)
class Timeline:
    """Each lane's events in ms, merged where one follows the other at once."""

    name: str
    lanes: dict[str, list[Event]]
    end: float
    hidden: dict[str, float]
    sentence: str


def timelines_of(view: RunView) -> list[Timeline]:
    """One for each line of the sizes that has one."""
    found = [(each.name, each.part("timeline")) for each in sizes_of(view)]
    drawn = [timeline_of(name, document) for name, document in found if document]
    return [each for each in drawn if any(each.lanes.values())]


def timeline_of(name: str, document: Document) -> Timeline:
    names = list(dict.fromkeys(document.texts("lanes")))[:MOST_LANES]
    events: dict[str, list[Event]] = {lane: [] for lane in names}
    for each in document.items("events")[:MOST_EVENTS]:
        found = _event(each, len(names))
        if found is not None:
            events[names[found[0]]].append(found[1])
    end = max((stop for lane in events.values() for _, stop in lane), default=0.0)
    merged = {lane: _merged(sorted(own), end * FINEST) for lane, own in events.items()}
    shares = {lane: document.part("hidden").number(lane) for lane in names}
    hidden = {lane: value for lane, value in shares.items() if value is not None and value <= 1.0}
    return Timeline(name, merged, end, hidden, document.text("sentence"))


def timeline(found: Timeline | None, dark: bool = False) -> Figure:
    """A row a lane; what happens is a thick stroke from its begin to its end."""
    theme = look.theme_of(dark)
    title = f"{TITLE}: {found.name}" if found else TITLE
    if found is None or not any(found.lanes.values()):
        return look.nothing("timeline", title, QUESTION, theme, NOTHING)
    names = list(found.lanes)
    option = {
        "grid": parts.grid(top=16),
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "xAxis": parts.value_axis(theme, "Time (ms)", min=0, max=look.digits(found.end)),
        "yAxis": parts.category_axis(theme, "", names, inverse=True, axisTick={"show": False}),
        "series": [one for at, lane in enumerate(names) for one in _series(at, lane, found.lanes[lane])],
    }  # fmt: skip
    height = HEIGHT_AROUND + HEIGHT_OF_LANE * len(names)
    return look.figure("timeline", title, QUESTION, option, theme, _notes(found), height)


def _event(each: Any, num_lanes: int) -> tuple[int, Event] | None:
    if not isinstance(each, list | tuple) or len(each) != 3:
        return None
    lane, begin, end = (number_of(value) for value in each)
    if lane is None or begin is None or end is None or end < begin:
        return None
    return (int(lane), (begin, end)) if lane == int(lane) and lane < num_lanes else None


def _merged(events: Sequence[Event], gap: float) -> list[Event]:
    """What overlaps or follows within `gap` is one; none is narrower than `gap`."""
    found: list[Event] = []
    for begin, end in events:
        end = max(end, begin + gap)
        if found and begin <= found[-1][1] + gap:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _series(at: int, lane: str, events: Sequence[Event]) -> list[dict[str, Any]]:
    """A line that is broken after each event; marks that cannot be seen tell the times."""
    colour = COLOURS.get(lane, PALETTE[at % len(PALETTE)])
    broken = [
        [look.digits(x), y]
        for begin, end in events
        for x, y in ((begin, at), (end, at), (end, None))
    ]
    longest = sorted(events, key=lambda each: each[0] - each[1])[:MOST_TOLD]
    told = [{"value": [look.digits((begin + end) / 2), at], "name": _told(lane, begin, end)}
            for begin, end in longest]  # fmt: skip
    return [
        {
            "type": "line", "name": lane, "color": colour, "data": broken, "showSymbol": False,
            "silent": True, "lineStyle": {"width": THICK, "cap": "butt"}, "tooltip": {"show": False},
        },
        parts.marks(lane, "rect", THICK, colour, told) | {"itemStyle": {"opacity": 0}},
    ]  # fmt: skip


def _told(lane: str, begin: float, end: float) -> str:
    return f"{lane} for {amount(end - begin, 'ms')}\nfrom {amount(begin)} to {amount(end, 'ms')}"


def _notes(found: Timeline) -> list[str]:
    hidden = [f"{share(value)} of {lane}" for lane, value in found.hidden.items()]
    behind = f"Hidden behind compute: {', '.join(hidden)}." if hidden else ""
    return [note for note in (found.sentence or behind,) if note]
