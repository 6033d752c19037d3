"""A run on the terminal: the verdict first, what is not good by name, the answers, then the numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from hakaru.cli._table import Column, Line, emit, page_width, table_lines, wrapped
from hakaru.figures.measure.answers import answers
from hakaru.figures.measure.view import ARROW, RunView
from hakaru.figures.measure.words import amount, interval_text, meter_text
from hakaru.measure._base import BENCHMARKS, load_all
from hakaru.measure.judge import BASELINE
from hakaru.measure.record import Measurement, Run, shown_parameters
from hakaru.measure.statistics import LEAST_LEVEL
from hakaru.measure.verdict import EXIT_CODES, MEANINGS, ORDER, Verdict
from hakaru.registry import listed

FEW_DEVICES = 16
OF_BASELINE = "of baseline"
MOST_NAMED = 20
MOST_BENCHMARKS = 4  # that are named where several lack the same


def print_run(run: Run, tail: Sequence[str] = (), every: bool = False) -> None:
    emit(run_lines(run, page_width(), tail, every))


def run_lines(run: Run, width: int, tail: Sequence[str], every: bool) -> Iterator[Line]:
    yield headline(run), "bold"
    named = [each for each in _judged(run) if each.verdict is not Verdict.GOOD]
    named.sort(key=lambda each: ORDER.index(each.verdict))
    for text in _grouped(named)[:MOST_NAMED]:
        for line in wrapped(text, width, "    "):
            yield line, ""
    if len(_grouped(named)) > MOST_NAMED:
        yield f"  and {len(_grouped(named)) - MOST_NAMED:,} more", ""
    view = RunView.of(run)
    yield from _answer_lines(view, width)
    yield "", ""
    of_table: tuple[str, ...] = ()
    if every or any(each.samples for each in run.measurements):
        columns = _columns(run, every)
        hidden = "" if every else _hidden(run, len(columns[0].cells))
        of_table = (hidden, _without_interval(columns))
        yield from table_lines(columns, 3, width)
        yield "", ""
    for note in filter(None, (*of_table, _without_peers(run), *_notes(view), *tail)):
        for line in wrapped(note, width):
            yield line, "dim"


def _answer_lines(view: RunView, width: int) -> Iterator[Line]:
    found = answers(view)
    if found:
        yield "", ""
        yield "Answers", "bold"
    for sentence in found:
        for line in wrapped(f"  {sentence}", width, "    "):
            yield line, ""


def headline(run: Run) -> str:
    counts = Counter(each.verdict for each in _judged(run))
    parts = ", ".join(f"{counts[each]:,} {each}" for each in ORDER[::-1] if counts[each])
    return f"{run.verdict.upper()}: {parts or 'nothing was measured'}"


def _judged(run: Run) -> list[Measurement]:
    """What the verdict rests on: not the steps of a search."""
    return [each for each in run.measurements if not each.is_trial]


def to_json(run: Run, **more: Any) -> dict[str, Any]:
    """The run as data: the verdict and the exit code first."""
    return {
        "verdict": run.verdict.value,
        "exit_code": EXIT_CODES[run.verdict],
        "meaning": MEANINGS[run.verdict],
        "run": run.id,
        "cluster": run.cluster,
        "label": run.label,
        "started_at": run.started_at.isoformat(),
        **more,
        "left_out": list(run.left_out),
        "notes": list(run.notes),
        "measurements": [_as_json(each) for each in run.measurements],
    }


def _interval(each: Measurement) -> str:
    """The ends of the median's interval; too few independent repetitions have none of any use."""
    interval = each.interval
    if interval is None or interval.level < LEAST_LEVEL:
        return "–"
    return interval_text(interval.low, interval.high)


def _as_json(each: Measurement) -> dict[str, Any]:
    interval = each.interval
    return {
        "benchmark": each.benchmark,
        "parameters": dict(each.parameters),
        "host": each.host,
        "device": each.device,
        "model": each.model,
        "quantity": each.quantity,
        "unit": each.unit,
        "better": each.better,
        "median": interval.median if interval else None,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "level": interval.level if interval else None,
        "num_repetitions": len(each.samples),
        "reference": each.reference,
        "compared_with": each.compared_with,
        "verdict": each.verdict.value,
        "reason": each.reason,
        "validity": dict(each.validity),
    }


def _grouped(named: Sequence[Measurement]) -> list[str]:
    """A line for each verdict and reason, with whom it is about; the same reason once."""
    groups: dict[tuple[Verdict, str], list[Measurement]] = {}
    for each in named:
        alike = re.sub(r"[\d.,]+", "#", each.reason)
        groups.setdefault((each.verdict, alike), []).append(each)
    lines = []
    for (verdict, _), found in groups.items():
        places = list(dict.fromkeys(_place(each) for each in found))
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        names = listed(dict.fromkeys(each.benchmark for each in found), MOST_BENCHMARKS)
        points = list(dict.fromkeys((e.benchmark, shown_parameters(e.parameters)) for e in found))
        at = f" {points[0][1]}" if len(points) == 1 else f" ({len(points)} settings)"
        lines.append(f"  {verdict}: {', '.join(places[:3])}{more}: {names}{at}{_reason(found)}")
    return lines


def _reason(found: Sequence[Measurement]) -> str:
    """As `: too hot`; where the numbers differ, whose they are: `, such as n1/cuda:0: 5.8% slower`."""
    first = found[0]
    if all(each.reason == first.reason for each in found):
        return f": {first.reason}"
    own = (_place(first), first.benchmark, shown_parameters(first.parameters))
    others = [(_place(each), each.benchmark, shown_parameters(each.parameters)) for each in found]
    told = [
        text
        for text, texts in zip(own, zip(*others, strict=True), strict=True)
        if len(set(texts)) > 1
    ]  # what tells it from the others of the line
    return f", such as {' '.join(told or (first.quantity,))}: {first.reason}"


def _columns(run: Run, every: bool) -> list[Column]:
    main = sorted((each for each in run.measurements if every or _is_main(each)), key=_in_order)
    devices = {(each.host, each.device) for each in main}
    rows = [_row(each) for each in main]
    if len(devices) > FEW_DEVICES and not every:
        groups = _by_subject(main).values()
        rows = [_summary(group) if len(group) > 1 else _row(group[0]) for group in groups]
    numbers = ("median", "interval", "n", OF_BASELINE)
    names = ("benchmark", "parameters", "device", "quantity", *numbers, "verdict")
    columns = [
        Column(name, [row[at] for row in rows], right=name in numbers, wraps=name == "parameters")
        for at, name in enumerate(names)
    ]
    return [each for each in columns if each.name != OF_BASELINE or any(each.cells)]


def _hidden(run: Run, num_rows: int) -> str:
    """How many measurements have no row of their own; as in the headline, a search's steps are none."""
    num = len(_judged(run))
    if num_rows >= num:
        return ""
    return f"{num - num_rows:,} of {num:,} measurements have no row of their own here: --all shows them."


def _without_interval(columns: Sequence[Column]) -> str:
    """Why a row has no interval though it has repetitions."""
    cells = {each.name: each.cells for each in columns}
    rows = zip(cells["interval"], cells["n"], strict=True)
    if not any(interval == "–" and int(num) > 1 for interval, num in rows):
        return ""
    return "– for an interval: too few repetitions, or each too much like the one before."


def _without_peers(run: Run) -> str:
    """How many good numbers were compared with nothing: that they are good says less."""
    good = [each for each in _judged(run) if each.verdict is Verdict.GOOD]
    num = sum(not each.compared_with for each in good)
    if not num:
        return ""
    return (
        f"{num:,} of {len(good):,} good measurements are correct and valid, and were compared with nothing: "
        "a baseline is what later runs are compared with."
    )


def _in_order(each: Measurement) -> tuple[int, list[tuple[bool, int, str]]]:
    """As the benchmarks are listed, and sizes from small to large; what was imported comes last."""
    known = load_all().ids()
    at = known.index(each.benchmark) if each.benchmark in known else len(known)
    values = (value for _, value in sorted(each.parameters.items(), reverse=True))
    return at, [
        (False, value, "") if isinstance(value, int) else (True, 0, str(value)) for value in values
    ]


def _place(each: Measurement) -> str:
    """A link names its hosts itself; ranks on several hosts would name all of them."""
    num_hosts = each.host.count(",") + 1
    if num_hosts > 1 and ARROW not in each.device:
        return f"{each.device} on {num_hosts:,} hosts"
    return each.device if ARROW in each.device else f"{each.host}/{each.device}"


def _is_main(each: Measurement) -> bool:
    """A benchmark's first quantity stands for it; an imported one's quantities all do."""
    load_all()
    if each.is_trial:
        return False
    if each.benchmark not in BENCHMARKS:
        return True
    return each.quantity == BENCHMARKS.get(each.benchmark).quantities[0].name


def _row(each: Measurement) -> list[str]:
    return [
        each.benchmark,
        shown_parameters(each.parameters),
        _place(each),
        each.quantity,
        amount(each.median, each.unit),
        _interval(each),
        str(len(each.samples)),
        _of_baseline([each]),
        str(each.verdict),
    ]


def _of_baseline(group: Sequence[Measurement]) -> str:
    """How much of the baseline's median is reached, at least and at most; empty without a baseline."""
    shares = [
        share
        for each in group
        if each.compared_with.startswith(BASELINE) and (share := each.share_of_reference)
    ]
    ends = (min(shares), max(shares)) if shares else ()
    return " to ".join(dict.fromkeys(f"{each:.1%}" for each in ends))


def _by_subject(main: Sequence[Measurement]) -> dict[Any, list[Measurement]]:
    groups: dict[Any, list[Measurement]] = {}
    for each in main:
        groups.setdefault(each.subject, []).append(each)
    return groups


def _summary(group: Sequence[Measurement]) -> list[str]:
    """A fleet in one row: the middle, and the range of its devices."""
    first = group[0]
    values = [each.median for each in group if each.median is not None]
    counts = Counter(each.verdict for each in group)
    spread = interval_text(min(values), max(values)) if values else "–"
    return [
        first.benchmark,
        shown_parameters(first.parameters),
        f"{len(group):,} {'links' if ARROW in first.device else 'devices'}",
        first.quantity,
        amount(median(values) if values else None, first.unit),
        spread,
        str(min(len(each.samples) for each in group)),
        _of_baseline(group),
        ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items()),
    ]


def _notes(view: RunView) -> list[str]:
    left = [f"Left out: {each}." for each in view.left_out]
    when = f"{view.started_at:%Y-%m-%d %H:%M} UTC"
    return [*left, meter_text(view), f"Run {view.id} of {view.cluster}, {when}."]
