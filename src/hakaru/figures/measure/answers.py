"""What a run answers, in plain sentences: slow devices and links, more ranks, LINPACK, training, storage."""

from __future__ import annotations

from collections.abc import Iterator

from hakaru.figures.measure.cards import cost_sentence, curve_of
from hakaru.figures.measure.chapters import chapters_of
from hakaru.figures.measure.choice import Choice, card_subjects, find_subject
from hakaru.figures.measure.collectives import (
    MORE_RANKS,
    Sweep,
    blame_of,
    blame_text,
    predictions,
    sweeps_of,
)
from hakaru.figures.measure.search import search_of, search_sentence
from hakaru.figures.measure.view import RunView
from hakaru.measure.numbers import amount

ALL_REDUCE = "all-reduce"


def answers(view: RunView) -> list[str]:
    """A sentence for each question that the run answers, and none for the others."""
    return [sentence for sentence in _sentences(view) if sentence]


def _sentences(view: RunView) -> Iterator[str | None]:
    subject = find_subject(card_subjects(view), Choice())
    curve = curve_of(view, subject) if subject else None
    cost = cost_sentence(curve) if curve else None
    yield f"{cost.removesuffix('.')} (by {subject.title})." if subject and cost else None
    yield blame_text(blame_of(view))
    for sweep in sweeps_of(view):
        if sweep.benchmark == ALL_REDUCE:
            yield _fit_sentence(sweep)
    found = search_of(view)
    yield search_sentence(found) if found else None
    for chapter in chapters_of(view):
        yield from chapter.sentences


def _fit_sentence(sweep: Sweep) -> str | None:
    """The fit, what it predicts for more ranks, and how far it misses sizes that were left out of it."""
    if sweep.fit is None or not sweep.fit.is_ring:
        return None
    (line,) = predictions([sweep])
    reached = f"All-reduce, {sweep.name}: {line.measured} at {line.size}"
    if not sweep.predicts:
        return f"{reached}; the ring model does not fit it, so that nothing is said of more ranks."
    more = [times * sweep.num_ranks for times in MORE_RANKS]
    rates = [(ranks, sweep.busbw(sweep.largest, ranks)) for ranks in more]
    predicted = " and ".join(f"{amount(rate, 'GB/s')} with {ranks:,}" for ranks, rate in rates)
    return (
        f"{reached}; the ring model (α = {line.alpha}, 1/β = {line.beta}) predicts {predicted} ranks over "
        f"links as fast; it misses a size left out of the fit by {line.error}."
    )
