"""Collectives: bandwidth over sizes with the α–β fit, what it predicts for more ranks, and who is slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.view import Reading, RunView
from hakaru.figures.theme import DASHES, PALETTE, SYMBOLS
from hakaru.measure.collective._blame import Blame
from hakaru.measure.collective._fit import Fit, fit
from hakaru.measure.collective._judge import LEAST_HOSTS, Probe, blame_links
from hakaru.measure.collective.operations import factor
from hakaru.measure.collective.pairs import NUMBER
from hakaru.measure.numbers import UNKNOWN, amount, share
from hakaru.measure.record import shown_parameters

TITLE = "Collectives"
QUESTION = "How fast do ranks exchange data, and does the α–β model explain it?"
MORE_RANKS = (2, 8)
MOST_MISS = 0.25  # of a size left out of the fit; a fit that misses more predicts nothing
NO_PREDICTION = (
    "A prediction holds while the algorithm stays a ring and the slowest link stays the same; – where it "
    "is no ring, where fewer than three sizes count, or where the fit misses a size left out of it by more "
    f"than {MOST_MISS * 100:.0f} %."
)
FIT_POINTS = 60
BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
# the ring's own collectives first, as people ask for them
ORDER = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all")


@dataclass(frozen=True)
class Sweep:
    """One collective over sizes, of one type among one group of ranks, with its fit."""

    benchmark: str
    setting: str
    num_ranks: int
    points: tuple[tuple[int, Reading], ...]  # bytes and busbw, the smallest first
    fit: Fit | None

    @property
    def name(self) -> str:
        return (
            f"{self.setting}, {self.num_ranks} ranks" if self.setting else f"{self.num_ranks} ranks"
        )

    @property
    def largest(self) -> int:
        return self.points[-1][0]

    @property
    def predicts(self) -> bool:
        """Whether the fit is good enough to say what more ranks would reach."""
        if self.fit is None or not self.fit.is_ring:
            return False
        return self.fit.error is not None and self.fit.error <= MOST_MISS

    def busbw(self, num_bytes: float, num_ranks: int | None = None) -> float | None:
        """GB/s by the fit; for another number of ranks only where the collective is a ring."""
        seconds = self.fit.seconds(num_bytes, num_ranks) if self.fit else None
        if not seconds:
            return None
        return num_bytes / seconds / 1e9 * factor(self.benchmark, num_ranks or self.num_ranks)


def sweeps_of(view: RunView) -> list[Sweep]:
    """All collectives of a run; only numbers that count."""
    groups: dict[tuple[str, str, int, str], dict[int, dict[str, Reading]]] = {}
    for each in view.readings:
        size, ranks = each.options.get("bytes"), each.num_ranks
        if each.is_link or not each.is_valid or not isinstance(size, int) or size < 1 or not ranks:
            continue
        other = {
            name: value for name, value in each.options.items() if name not in ("bytes", "ranks")
        }
        key = (each.benchmark, shown_parameters(other), ranks, each.host)
        groups.setdefault(key, {}).setdefault(size, {})[each.quantity] = each
    found = [_sweep(*key, sizes) for key, sizes in groups.items()]
    return sorted((each for each in found if each), key=_place)


def collectives_of(sweeps: Sequence[Sweep]) -> list[str]:
    return list(dict.fromkeys(each.benchmark for each in sweeps))


def collective(sweeps: Sequence[Sweep], benchmark: str, dark: bool = False) -> Figure:
    """Points with their intervals, and the fit as a line."""
    theme = look.theme_of(dark)
    own = [each for each in sweeps if each.benchmark == benchmark]
    title = f"{TITLE}: {benchmark}" if own else TITLE
    if not own:
        text = "No collective has a number that counts."
        return look.nothing("collectives", title, QUESTION, theme, text)
    series = [each for at, sweep in enumerate(own) for each in _series(at, sweep)]
    option = {
        "grid": parts.grid(),
        "legend": parts.legend(
            theme, [each.name for each in own], show=True, type="plain", **look.SMALL_ICONS
        ),
        "media": look.narrow(len(own)),
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "xAxis": parts.log_axis(theme, "Size of the buffer (bytes)", **_ends(own)),
        "yAxis": parts.as_y(parts.value_axis(theme, "Bus bandwidth (GB/s)", min=0)),
        "series": series,
    }
    return look.figure("collectives", title, QUESTION, option, theme, _notes(own))


@dataclass(frozen=True)
class Prediction:
    """A line of the table: the fit of a sweep, and its largest size among more ranks."""

    benchmark: str
    name: str
    alpha: str
    beta: str
    error: str
    size: str
    measured: str
    predicted: tuple[str, ...]


def predictions(sweeps: Sequence[Sweep]) -> list[Prediction]:
    return [_prediction(each) for each in sweeps]


def blame_of(view: RunView) -> list[Blame]:
    """What the pair probes say together, between hosts and inside them: who is slow, what bounds the ring."""
    probes = [
        Probe(each.device, each.parameters, each.median, each.high or each.median)
        for each in view.readings
        if each.is_link and each.is_valid and each.median
    ]
    both = (blame_links(probes, inside) for inside in (False, True))
    return [found for found in both if found is not None]


def blame_text(found: Sequence[Blame]) -> str:
    """A sentence for each."""
    return " ".join(f"{_blamed(each)}." for each in found)


def _blamed(found: Blame) -> str:
    if found.hosts or found.links:
        return found.sentence
    hosts = {name.partition(NUMBER)[0] for name in found.ring}
    if len(hosts) < LEAST_HOSTS and any(NUMBER in name for name in found.ring):
        few = "Links inside a host are compared between three hosts or more, and there are fewer"
        return f"{few}; {found.sentence}"
    return f"No host or link is slow; {found.sentence}"


def size_text(num_bytes: int) -> str:
    for size, unit in BYTES:
        if num_bytes >= size:
            return amount(num_bytes / size, unit)
    return f"{num_bytes} B"


def time_text(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return amount(seconds / size, unit)
    return amount(seconds * 1e9, "ns")


def _sweep(
    benchmark: str, setting: str, num_ranks: int, host: str, sizes: dict[int, dict[str, Reading]]
) -> Sweep | None:
    points = tuple((size, of["busbw"]) for size, of in sorted(sizes.items()) if "busbw" in of)
    if not points:
        return None
    times = [
        (float(size), time) for size, of in sorted(sizes.items()) if (time := _seconds(size, of))
    ]
    return Sweep(benchmark, setting, num_ranks, points, fit(benchmark, num_ranks, times))


def _seconds(size: int, of: dict[str, Reading]) -> float | None:
    """The time itself or, where it was not kept, what the bandwidth says of it."""
    if "time" in of and of["time"].unit == "µs" and of["time"].median:
        return of["time"].median / 1e6
    algbw = of["algbw"].median if "algbw" in of else None
    return size / algbw / 1e9 if algbw else None


def _place(each: Sweep) -> tuple[int, str, int, str]:
    known = each.benchmark in ORDER
    at = ORDER.index(each.benchmark) if known else len(ORDER)
    return at, each.benchmark, each.num_ranks, each.setting


def _series(at: int, sweep: Sweep) -> list[dict[str, Any]]:
    colour = PALETTE[at % len(PALETTE)]
    ends = [(float(size), each.low, each.high) for size, each in sweep.points
            if each.low is not None and each.high is not None]  # fmt: skip
    marks = parts.marks(
        sweep.name, SYMBOLS[at % len(SYMBOLS)], 9, colour, [_item(sweep, *point) for point in sweep.points]
    )  # fmt: skip
    return [marks, look.bars(sweep.name, colour, ends), *_line(at, sweep, colour)]


def _item(sweep: Sweep, size: int, each: Reading) -> dict[str, Any]:
    assert each.median is not None
    by_fit = sweep.busbw(size)
    lines = [f"{sweep.name}, {size_text(size)}", amount(each.median, each.unit)]
    if by_fit is not None:
        lines.append(f"by the fit {amount(by_fit, each.unit)}")
    return {"value": [size, look.digits(each.median)], "name": "\n".join(lines)}


def _line(at: int, sweep: Sweep, colour: str) -> list[dict[str, Any]]:
    """The fit between the smallest and the largest size."""
    if sweep.fit is None:
        return []
    low, high = sweep.points[0][0], sweep.largest
    sizes = [low * (high / low) ** (step / (FIT_POINTS - 1)) for step in range(FIT_POINTS)]
    values = [(size, sweep.busbw(size)) for size in sizes]
    return [{
        "type": "line", "name": sweep.name, "color": colour, "showSymbol": False, "silent": True,
        "lineStyle": {"width": 1.5, "type": DASHES[at % len(DASHES)]},
        "data": [[look.digits(size), look.digits(value)] for size, value in values if value],
    }]  # fmt: skip


def _ends(sweeps: Sequence[Sweep]) -> dict[str, Any]:
    """A little beyond the points, so that none is cut."""
    low, high = min(s.points[0][0] for s in sweeps), max(s.largest for s in sweeps)
    bare = {"showMinLabel": False, "showMaxLabel": False}
    return {"min": round(low / 1.5), "max": round(high * 1.5), "axisLabel": bare}


def _notes(sweeps: Sequence[Sweep]) -> list[str]:
    notes = [f"{each.name}: {_fit_text(each.fit)}" for each in sweeps if each.fit]
    few = [each.name for each in sweeps if each.fit is None]
    if few:
        notes.append(f"{', '.join(few)}: no fit, as there are fewer than three sizes that count.")
    return [*notes, "Points are medians with their 95 % intervals, lines the fit."]


def _fit_text(found: Fit) -> str:
    missed = "" if found.error is None else f"; it misses a size left out by {share(found.error)}"
    if not found.is_ring:
        return f"{time_text(found.intercept_s)} and {_rate(found.slope_s)} in all{missed}."
    return f"α = {time_text(found.alpha_s)}, 1/β = {_rate(found.beta_s)} a message{missed}."


def _rate(beta_s: float | None) -> str:
    return amount(1 / beta_s / 1e9, "GB/s") if beta_s else UNKNOWN


def _prediction(sweep: Sweep) -> Prediction:
    found, size = sweep.fit, sweep.largest
    more = tuple(_more(sweep, times) for times in MORE_RANKS)
    return Prediction(
        sweep.benchmark,
        sweep.name,
        time_text(found.alpha_s) if found else "–",
        _rate(found.beta_s) if found else "–",
        share(found.error) if found and found.error is not None else "–",
        size_text(size),
        amount(sweep.points[-1][1].median, "GB/s"),
        more,
    )


def _more(sweep: Sweep, times: int) -> str:
    ranks = times * sweep.num_ranks
    busbw = sweep.busbw(sweep.largest, ranks)
    if busbw is None or sweep.fit is None or not sweep.predicts:
        return "–"
    seconds = sweep.fit.seconds(sweep.largest, ranks)
    return f"{ranks} ranks: {amount(busbw, 'GB/s')}, {time_text(seconds)}"
