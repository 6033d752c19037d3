"""The fleet: every device a mark, hosts in rows and devices in columns, in the colour of its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.choice import Subject
from hakaru.figures.measure.view import Reading, RunView, natural
from hakaru.figures.measure.words import behind
from hakaru.figures.theme import Theme
from hakaru.measure.numbers import amount, counted, share
from hakaru.measure.verdict import ORDER, Verdict

TITLE, QUESTION = "The fleet", "Which devices are not as fast as their peers?"
MOST_CARDS = 4_096
MOST_NAMED = 20
ROWS = 32  # of a block, where there is room for another one beside it
MOST_MARKS = 40  # beside one another in all blocks together
CELL_PX, LEAST_PX, MOST_PX = 16, 6, 1_200
TOP, BOTTOM, LABEL_PX = 44, 28, 62
ALONE_PX = 34  # a column of a single block
NARROW_PX = 640
SIZES = {Verdict.GOOD: 9}
LARGE = 13


@dataclass(frozen=True)
class Card:
    """A device: the reading that counts of it, and how many there are."""

    host: str
    device: str
    worst: Reading
    num_readings: int

    @property
    def verdict(self) -> Verdict:
        return self.worst.verdict


def cards_of(view: RunView, subject: Subject | None = None) -> list[Card]:
    """Each device by its worst reading, or by that of one subject; in the order of hosts and devices."""
    places: dict[tuple[str, str], list[Reading]] = {}
    for each in view.cards if subject is None else subject.of(view):
        places.setdefault((each.host, each.device), []).append(each)
    found = [Card(*place, min(all, key=_badness), len(all)) for place, all in places.items()]
    return sorted(found, key=lambda card: (natural(card.host), natural(card.device)))


def named_cards(cards: Sequence[Card]) -> list[str]:
    """A line for each verdict but good: who, and by how much."""
    lines = []
    for verdict in ORDER:
        bad = [card for card in cards if card.verdict is verdict is not Verdict.GOOD]
        bad.sort(key=lambda card: _badness(card.worst))
        if bad:
            names = ", ".join(_short(card) for card in bad[:MOST_NAMED])
            more = f" and {len(bad) - MOST_NAMED:,} more" if len(bad) > MOST_NAMED else ""
            lines.append(f"{verdict.capitalize()}: {names}{more}.")
    return lines


def fleet(view: RunView, subject: Subject | None = None, dark: bool = False) -> Figure:
    """The figure; without a subject a device has the worst verdict of all that was measured on it."""
    theme = look.theme_of(dark)
    cards = cards_of(view, subject)
    if not cards:
        return look.nothing("fleet", TITLE, QUESTION, theme, "No device was measured by itself.")
    kept, notes = _kept(cards)
    layout = _Layout.of(kept)
    option = {
        "legend": parts.legend(
            theme, layout.names, show=True, type="plain", left=0, **look.SMALL_ICONS
        ),
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        **layout.axes(theme),
        "series": layout.series(subject is None),
        "media": layout.media(),
    }
    return look.figure("fleet", TITLE, _asked(subject), option, theme, notes, layout.height)


@dataclass(frozen=True)
class _Layout:
    """Blocks of hosts side by side, each a grid of its own."""

    cards: Sequence[Card]
    hosts: list[str]
    devices: list[str]
    num_blocks: int

    @classmethod
    def of(cls, cards: Sequence[Card]) -> _Layout:
        hosts = sorted({card.host for card in cards}, key=natural)
        devices = sorted({card.device for card in cards}, key=natural)
        room = max(1, MOST_MARKS // len(devices))
        return cls(cards, hosts, devices, max(1, min(-(-len(hosts) // ROWS), room)))

    @property
    def rows(self) -> int:
        return -(-len(self.hosts) // self.num_blocks)

    @property
    def row_px(self) -> float:
        return max(LEAST_PX, min(CELL_PX, MOST_PX / self.rows))

    @property
    def height(self) -> int:
        return TOP + BOTTOM + max(24, round(self.rows * self.row_px))

    @property
    def verdicts(self) -> list[Verdict]:
        return [each for each in reversed(ORDER) if any(c.verdict is each for c in self.cards)]

    @property
    def names(self) -> list[str]:
        return [self._name(each) for each in self.verdicts]

    def axes(self, theme: Theme) -> dict[str, Any]:
        blocks = range(self.num_blocks)
        word = {"fontSize": 11, "color": theme.muted}
        every = {"interval": 0} if len(self.devices) <= 16 else {}
        bare = {"axisLine": {"show": False}, "axisTick": {"show": False}}
        return {
            "grid": [self._grid(block) for block in blocks],
            "xAxis": [
                parts.category_axis(theme, "", self._columns(), gridIndex=block,
                                    axisLabel=word | every, **bare)
                for block in blocks
            ],
            "yAxis": [
                parts.category_axis(theme, "", self._hosts(block), gridIndex=block, inverse=True,
                                    axisLabel=word | {"width": LABEL_PX - 8, "overflow": "truncate"},
                                    **bare)
                for block in blocks
            ],
        }  # fmt: skip

    def series(self, is_worst: bool) -> list[dict[str, Any]]:
        """One a verdict and block: their names are those of the legend."""
        column = {name: at for at, name in enumerate(self.devices)}
        place = {name: divmod(at, self.rows) for at, name in enumerate(self.hosts)}
        data: dict[tuple[Verdict, int], list[dict[str, Any]]] = {
            (verdict, block): [] for verdict in self.verdicts for block in range(self.num_blocks)
        }
        for card in self.cards:
            block, row = place[card.host]
            name = _describe(card, is_worst)
            data[card.verdict, block].append({"value": [column[card.device], row], "name": name})
        return [self._marks(*key, items) for key, items in data.items()]

    def media(self) -> list[dict[str, Any]]:
        """On a phone hosts have no names beside them, as there is no room; a touch shows them."""
        if self.num_blocks == 1:
            return []
        width = 100 / self.num_blocks
        small = {
            "grid": [{"left": f"{block * width + 1:.3g}%", "width": f"{width - 3:.3g}%"}
                     for block in range(self.num_blocks)],
            "yAxis": [{"axisLabel": {"show": False}}] * self.num_blocks,
            "series": [{"symbolSize": 6 if verdict is Verdict.GOOD else 10}
                       for verdict in self.verdicts for _ in range(self.num_blocks)],
        }  # fmt: skip
        return [{"query": {"maxWidth": NARROW_PX}, "option": small}]

    def _grid(self, block: int) -> dict[str, Any]:
        sides = {"top": TOP, "bottom": BOTTOM}
        if self.num_blocks == 1 and len(self.devices) <= 16:
            longest = max(len(each) for each in self._columns())
            column = min(max(ALONE_PX, 8 * longest), 240 // len(self.devices) + ALONE_PX)
            return {"left": LABEL_PX, "width": column * len(self.devices), **sides}
        if self.num_blocks == 1:
            return {"left": LABEL_PX, "right": 16, **sides}
        width = 100 / self.num_blocks
        # the names of the hosts take a third of the way between two blocks
        return {"left": f"{(block + 0.3) * width:.3g}%", "width": f"{0.66 * width:.3g}%", **sides}

    def _columns(self) -> list[str]:
        """A column alone has room for its whole name."""
        return (
            self.devices if len(self.devices) == self.num_blocks == 1 else _shortened(self.devices)
        )

    def _hosts(self, block: int) -> list[str]:
        """As many in each block, so that rows stand at one height; the last may end in empty ones."""
        own = self.hosts[block * self.rows : (block + 1) * self.rows]
        return own + [""] * (self.rows - len(own))

    def _name(self, verdict: Verdict) -> str:
        return f"{verdict} ({sum(card.verdict is verdict for card in self.cards):,})"

    def _marks(self, verdict: Verdict, block: int, items: list[dict[str, Any]]) -> dict[str, Any]:
        size = min(SIZES.get(verdict, LARGE), max(3, round(self.row_px) - 3))
        return parts.marks(
            self._name(verdict), look.SYMBOLS[verdict], size, look.COLOURS[verdict], items
        ) | {"xAxisIndex": block, "yAxisIndex": block, "z": 2 if verdict is Verdict.GOOD else 3}


def _kept(cards: Sequence[Card]) -> tuple[list[Card], list[str]]:
    """As many as a browser draws at once, the bad ones first; all of them are named."""
    notes = named_cards(cards)
    if len(cards) <= MOST_CARDS:
        return list(cards), notes
    ordered = sorted(range(len(cards)), key=lambda at: (cards[at].verdict is Verdict.GOOD, at))
    kept = [cards[at] for at in sorted(ordered[:MOST_CARDS])]
    return kept, [*notes, f"{len(cards) - MOST_CARDS:,} of {len(cards):,} devices are not drawn."]


def _describe(card: Card, is_worst: bool) -> str:
    """The text of a mark; short where all is well, as there may be thousands."""
    worst, head = card.worst, f"{card.host} {card.device}: {card.verdict}"
    if is_worst and card.verdict is Verdict.GOOD:
        return f"{head}, {counted(card.num_readings, 'measurement')}"
    value = amount(worst.median, worst.unit)
    lines = [head, f"{worst.what}: {value}", behind(worst), _clipped(worst.reason)]
    return "\n".join(line for line in lines if line)


def _short(card: Card) -> str:
    deficit = card.worst.deficit
    known = deficit is not None and card.worst.is_valid and deficit > 0
    return f"{card.host} {card.device}" + (f" ({share(deficit or 0.0)} slower)" if known else "")


def _clipped(text: str, most: int = 160) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _badness(each: Reading) -> tuple[int, float]:
    return ORDER.index(each.verdict), -(each.deficit or 0.0)


def _shortened(devices: Sequence[str]) -> list[str]:
    """`0`, `1`, … for cuda:0, cuda:1, …, where all are of one kind."""
    kinds = {each.partition(":")[0] for each in devices}
    return (
        [each.partition(":")[2] or each for each in devices] if len(kinds) == 1 else list(devices)
    )


def _asked(subject: Subject | None) -> str:
    return QUESTION if subject is None else f"{QUESTION} By {subject.title}."
