"""Time of an epoch against the size of the data set, across the size of memory, as TSUBAME 3's Fig. 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.sheet import Sheet
from hakaru.figures.measure.together import (
    NONE,
    Timed,
    distinct,
    ends_of,
    timed_of,
    unique,
    with_interval,
)
from hakaru.figures.measure.view import Reading, RunView
from hakaru.figures.theme import DASHES, PALETTE, Theme
from hakaru.measure.documents import Document
from hakaru.measure.numbers import UNKNOWN, amount, counted, share
from hakaru.measure.record import shown_parameters

TITLE = "Training time against the size of the data"
QUESTION = "Does an epoch take longer than its size explains once the data does not fit in memory?"
NOTHING = "No size of data has a number that counts."
LOADER = "loader alone"
GIB = 1024.0  # MiB
FAR = 1.5  # times the largest size: memory beyond it is told, not drawn
MOST_SENTENCES, MOST_EPOCHS = 6, 6
UNKNOWN_LABEL = "unknown"
DELIVERS = {True: "delivered", False: "too slow", None: "unknown"}
SHARES = (("stall", "waits for data"), ("au", "accelerator used"))
# where the bytes of an epoch came from has a shape
LABELS = {
    "cached": "circle", "partly cached": "triangle", "from the device": "rect", "over the network": "pin",
    UNKNOWN_LABEL: "diamond",
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """One size of the data set in MiB."""

    mib: float
    epoch: Reading
    timed: Timed

    @property
    def seconds(self) -> float:
        assert self.epoch.median is not None
        return self.epoch.median

    @property
    def label(self) -> str:
        """Where the last epoch's bytes came from: the first of a cold data set is never cached."""
        epochs = self.timed.facts.parts("epochs")
        found = epochs[-1].text("label") if epochs else ""
        return found if found in LABELS else UNKNOWN_LABEL


@dataclass(frozen=True)
class Sweep:
    """One model and loader over sizes, the smallest first."""

    name: str
    sizes: tuple[Size, ...]

    @property
    def memory_mib(self) -> float | None:
        known = (each.timed.facts.number("memory_mib") for each in reversed(self.sizes))
        return next((each for each in known if each), None)

    def part(self, name: str) -> Document:
        """Of the largest size that has it."""
        parts_of = (each.timed.facts.part(name) for each in reversed(self.sizes))
        return next((each for each in parts_of if each), Document())


def sizes_of(view: RunView) -> list[Sweep]:
    groups: dict[tuple[str, ...], list[Size]] = {}
    for timed in timed_of(view, "data-size"):
        epoch, mib = timed.valid("epoch"), timed.options.number("mib")
        if epoch is not None and mib:
            groups.setdefault(_key(timed), []).append(Size(mib, epoch, timed))
    keys = sorted(groups)
    named = zip(keys, unique(_names(keys)), strict=True)
    return [
        Sweep(name, tuple(sorted(groups[key], key=lambda each: each.mib))) for key, name in named
    ]


def data_size_sentences(sweeps: Sequence[Sweep]) -> list[str]:
    """What the fit says of each model, and what storage would have to deliver."""
    both = (
        _named(sweeps, each, each.part(part).text("sentence"))
        for each in sweeps
        for part in ("fit", "needed")
    )
    return distinct(both, MOST_SENTENCES)


def needed_sheet(sweeps: Sequence[Sweep]) -> Sheet | None:
    """What storage must deliver for the same training on faster devices; None where nothing says it."""
    found = [(each, each.part("needed")) for each in sweeps]
    found = [(each, needed) for each, needed in found if needed.number("mb_per_s_now") is not None]
    if not found:
        return None
    steps = sorted({times for _, needed in found for times in _faster(needed)})[:6]
    heads = (
        "Training",
        "Needs now",
        "Loader delivers",
        *(f"{times:g} times as fast" for times in steps),
    )
    rows = tuple(_needs(each.name, needed, steps) for each, needed in found)
    return Sheet("What storage has to deliver", heads, (False, *(True for _ in heads[1:])), rows)


def data_size(sweeps: Sequence[Sweep], dark: bool = False) -> Figure:
    theme = look.theme_of(dark)
    if not sweeps:
        return look.nothing("data-size", TITLE, QUESTION, theme, NOTHING)
    largest = max(each.sizes[-1].mib for each in sweeps)
    scale, unit = (GIB, "GiB") if largest >= 4 * GIB else (1.0, "MiB")
    labels = [
        each for each in LABELS if any(size.label == each for s in sweeps for size in s.sizes)
    ]
    names = [*(each.name for each in sweeps), *labels]
    memories = sorted({m for each in sweeps if (m := each.memory_mib) and m <= FAR * largest})
    end = max([largest, *memories]) / scale * 1.06
    option = {
        **look.legend_above(theme, names),
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "xAxis": parts.value_axis(theme, f"Size of the data ({unit})", min=0, max=look.digits(end),
                                  axisLabel={"showMaxLabel": False}),
        "yAxis": parts.as_y(parts.value_axis(theme, "Time of an epoch (s)", min=0)),
        "series": [
            *(one for at, each in enumerate(sweeps) for one in _series(at, each, scale)),
            *(_marks(theme, sweeps, label, scale) for label in labels),
            *([_memory(theme, memories, scale)] if memories else []),
        ],
    }  # fmt: skip
    return look.figure("data-size", TITLE, QUESTION, option, theme, _notes(sweeps, largest))


def _key(timed: Timed) -> tuple[str, ...]:
    options = timed.options
    memory = options.whole("memory") or 0
    model = LOADER if timed.model == NONE else timed.model
    workers = options.whole("workers")
    return (
        model, options.text("layout", 60), "" if workers is None else counted(workers, "worker"),
        f"{memory:,} MiB of memory" if memory else "",
        shown_parameters(options.without("model", "layout", "workers", "memory", "mib", "ranks")),
    )  # fmt: skip


def _names(keys: Sequence[tuple[str, ...]]) -> list[str]:
    """The model, and what else differs between the lines."""
    varies = [len({key[at] for key in keys}) > 1 for at in range(len(keys[0]))] if keys else []
    return [
        ", ".join(part for at, part in enumerate(key) if part and (varies[at] or at == 0))
        for key in keys
    ]


def _named(sweeps: Sequence[Sweep], each: Sweep, text: str) -> str:
    """With the name of the line, unless the sentence says it itself."""
    known = len(sweeps) == 1 or each.name in text
    return f"{each.name}: {text}" if text and not known else text


def _series(at: int, sweep: Sweep, scale: float) -> list[dict[str, Any]]:
    """A thin line through the sizes, their intervals, and the slopes of the fit, broader."""
    colour = PALETTE[at % len(PALETTE)]
    points = [(each.mib / scale, each.seconds) for each in sweep.sizes]
    ends = ends_of((each.mib / scale, each.epoch) for each in sweep.sizes)
    return [
        look.line(sweep.name, colour, "solid", points, 1),
        look.bars(sweep.name, colour, ends),
        *(look.line(sweep.name, colour, dash, [(x / scale, y) for x, y in line], 2.5)
          for dash, line in zip(DASHES[1:], _slopes(sweep), strict=False)),
    ]  # fmt: skip


def _slopes(sweep: Sweep) -> list[list[tuple[float, float]]]:
    """Below and above the knee, else below and above memory; each amid its points."""
    fit = sweep.part("fit")
    below, above = (fit.number(f"slope_{name}_s_per_gib", -1e12) for name in ("below", "above"))
    knee, last = fit.number("knee_mib") or sweep.memory_mib, sweep.sizes[-1].mib
    if below is None:
        return []
    if knee is None or above is None:
        return [_slope(sweep.sizes, below, 0.0, last)]
    lower = [each for each in sweep.sizes if each.mib <= knee]
    upper = [each for each in sweep.sizes if each.mib >= knee]
    lines = [(lower, below, 0.0, min(knee, last)), (upper, above, knee, last)]
    return [_slope(*each) for each in lines if each[0] and each[2] <= each[3]]


def _slope(
    sizes: Sequence[Size], slope: float, begin: float, end: float
) -> list[tuple[float, float]]:
    start = median(each.seconds - slope * each.mib / GIB for each in sizes)
    return [(x, max(0.0, start + slope * x / GIB)) for x in (begin, end)]


def _marks(theme: Theme, sweeps: Sequence[Sweep], label: str, scale: float) -> dict[str, Any]:
    """The points of one origin in the colours of their lines; the legend shows the shape alone."""
    items = [
        {"value": [look.digits(size.mib / scale), look.digits(size.seconds)], "name": _told(each, size),
         "itemStyle": {"color": PALETTE[at % len(PALETTE)]}}
        for at, each in enumerate(sweeps) for size in each.sizes if size.label == label
    ]  # fmt: skip
    return parts.marks(label, LABELS[label], 10, theme.muted, items)


def _told(sweep: Sweep, size: Size) -> str:
    timed = size.timed
    epochs = timed.facts.parts("epochs")
    lines = [
        f"{sweep.name}, {amount(size.mib, 'MiB')}",
        with_interval(size.epoch),
        *(f"{name} {share(value)}" for quantity, name in SHARES
          if (value := timed.value(quantity)) is not None),
        *(_epoch(at, each) for at, each in enumerate(epochs[:MOST_EPOCHS], 1)),
    ]  # fmt: skip
    return "\n".join(lines)


def _epoch(number: int, each: Document) -> str:
    read, delivered = each.number("read_bytes"), each.number("delivered_bytes")
    how = (
        f", {share(read / delivered)} read from the device"
        if read is not None and delivered
        else ""
    )
    label = each.text("label", 40) or UNKNOWN_LABEL
    return f"epoch {number}: {amount(each.number('seconds'), 's')}, {label}{how}"


def _memory(theme: Theme, memories: Sequence[float], scale: float) -> dict[str, Any]:
    """Upright lines with their name, which no legend entry switches off."""
    return {
        "type": "line", "data": [], "silent": True,
        "markLine": {
            "silent": True, "symbol": "none", "animation": False,
            "lineStyle": {"color": theme.text, "type": "solid", "width": 1.5},
            "label": {"color": theme.text, "fontSize": theme.small, "position": "insideEndTop"},
            "data": [{"xAxis": look.digits(each / scale), "label": {"formatter": f"memory {_size(each)}"}}
                     for each in memories],
        },
    }  # fmt: skip


def _size(mib: float) -> str:
    return amount(mib / GIB, "GiB") if mib >= GIB else amount(mib, "MiB")


def _notes(sweeps: Sequence[Sweep], largest: float) -> list[str]:
    notes = ["The shape of a point says where the bytes of its last epoch came from; a cached epoch is no "
             "measurement of storage."]  # fmt: skip
    far = sorted({m for each in sweeps if (m := each.memory_mib) and m > FAR * largest})
    notes += [
        f"Memory of {_size(each)} is far beyond the largest size, {_size(largest)}." for each in far
    ]
    if any(each.part("fit") for each in sweeps):
        notes.append(
            "Broad dashed and dotted lines are the fitted slopes, below and above memory or the knee."
        )
    return notes


def _faster(needed: Document) -> dict[float, Document]:
    return {times: each for each in needed.parts("for_faster") if (times := each.number("times"))}


def _needs(name: str, needed: Document, steps: Sequence[float]) -> tuple[str, ...]:
    faster = _faster(needed)
    cells = []
    for times in steps:
        each = faster.get(times, Document())
        rate = each.number("mb_per_s")
        enough = DELIVERS[each.truth("delivers")]
        cells.append(UNKNOWN if rate is None else f"{amount(rate, 'MB/s')}, {enough}")
    return name, amount(needed.number("mb_per_s_now"), "MB/s"), _delivered(needed), *cells


def _delivered(needed: Document) -> str:
    """What the loader delivers, and where its bytes came from: memory says nothing of storage."""
    rate, label = needed.number("loader_mb_per_s"), needed.text("loader_label", 40)
    shown = f" ({label})" if rate is not None and label in LABELS else ""
    return f"{amount(rate, 'MB/s')}{shown}"
