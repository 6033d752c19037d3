"""Training, strategies and storage: the figures, tables and sentences that a run has of each.

The page, the report and the API take them from here, so that all show the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from hakaru.figures._base import Figure
from hakaru.figures.measure import (
    breakdown,
    data_size,
    layouts,
    partition,
    scaling,
    strategies,
    timeline,
)
from hakaru.figures.measure._curves import curves_of
from hakaru.figures.measure.sheet import Sheet
from hakaru.figures.measure.together import distinct, timed_of
from hakaru.figures.measure.view import RunView

PictureId = Literal[
    "scaling", "breakdown", "steps", "partition", "data-size", "timeline", "layouts"
]
PICTURES: tuple[str, ...] = get_args(PictureId)
MEASURED_BY = {
    "scaling": "scaling", "breakdown": "scaling", "steps": "strategies", "partition": "strategies",
    "data-size": "data-size", "timeline": "data-size", "layouts": "loading",
}  # fmt: skip
MOST_SENTENCES, MOST_PLANS = 8, 4


@dataclass(frozen=True)
class Picture:
    """A figure that a run has, and of which of several things it can be drawn."""

    id: str
    title: str
    question: str
    label: str
    names: tuple[str, ...]
    paint: Callable[[str, bool], Figure]
    preferred: str = ""
    is_whole: bool = False  # as wide as the page

    @property
    def first(self) -> str | None:
        """What is drawn unless something else is chosen."""
        return self.preferred or next(iter(self.names), None)

    def draw(self, name: str | None = None, dark: bool = False) -> Figure:
        return self.paint(name or self.first or "", dark)

    def shown(self, chosen: Mapping[str, str | None] | None) -> list[str]:
        """What of its names is drawn where this is chosen: one of them, or all where nothing is."""
        if chosen is None:
            return list(self.names)
        wanted = chosen.get(self.id)
        if wanted is not None and wanted in self.names:
            return [wanted]
        return [self.first] if self.first else []


@dataclass(frozen=True)
class Chapter:
    id: str
    title: str
    sentences: tuple[str, ...]
    pictures: tuple[Picture, ...]
    sheets: tuple[Sheet, ...] = ()


def chapters_of(view: RunView, chosen: Mapping[str, str | None] | None = None) -> list[Chapter]:
    """Those of which the run has anything.

    Where one thing a figure is chosen, by the figure's id, tables are of what is drawn; else of all.
    """
    made = (_training(view), _strategies(view, chosen), _storage(view))
    return [each for each in made if each.pictures or each.sheets]


def find_picture(view: RunView, id: str) -> Picture | None:
    every = (picture for chapter in chapters_of(view) for picture in chapter.pictures)
    return next((each for each in every if each.id == id), None)


def training_sentences(view: RunView) -> list[str]:
    """Where scaling stops and why, and who keeps the others waiting."""
    verdicts = scaling.scaling_sentences(curves_of(view))
    steps = [each for each in breakdown.steps_of(view, "scaling")
             if not any(each.sentence.rstrip(".") in text for text in verdicts)]  # fmt: skip
    return distinct([*verdicts, *breakdown.culprit_sentences(steps)], MOST_SENTENCES)


def storage_sentences(view: RunView) -> list[str]:
    """The knee and the slopes, what storage has to deliver, and what hides behind compute."""
    sizes = data_size.data_size_sentences(data_size.sizes_of(view))
    hidden = [each.sentence for each in timeline.timelines_of(view)]
    loaders = layouts.loading_sentences(layouts.loaders_of(view))
    return distinct([*sizes, *hidden, *loaders], MOST_SENTENCES)


def _training(view: RunView) -> Chapter:
    if not timed_of(view, "scaling"):
        return Chapter("training", "Training", (), ())
    curves = curves_of(view)
    models = tuple(dict.fromkeys(each.model for each in curves))
    drawn = Picture(
        "scaling", scaling.TITLE, scaling.QUESTION, "Model", models,
        lambda name, dark: scaling.scaling(curves, name, dark),
    )  # fmt: skip
    steps = _steps_picture("breakdown", breakdown.steps_of(view, "scaling"))
    return Chapter("training", "Training", tuple(training_sentences(view)), (drawn, *steps))


def _strategies(view: RunView, chosen: Mapping[str, str | None] | None) -> Chapter:
    plans = partition.plans_of(view)
    pictures = list(_steps_picture("steps", breakdown.steps_of(view, "strategies")))
    sheets = [strategies.strategies_sheet(view)]
    if plans:
        drawn = Picture(
            "partition", partition.TITLE, partition.QUESTION, "Plan", tuple(plans),
            lambda name, dark: partition.partition(plans[name], dark),
            next((name for name, plan in plans.items() if len(plan.parts("stages")) > 1), ""),
        )  # fmt: skip
        pictures.append(drawn)
        several = len(plans) > 1
        sheets += [partition.candidates_sheet(plans[name], name if several else "")
                   for name in drawn.shown(chosen)[:MOST_PLANS]]  # fmt: skip
    sentences = tuple(strategies.strategies_sentences(view))
    return Chapter("strategies", "Strategies", sentences, tuple(pictures), _there(sheets))


def _storage(view: RunView) -> Chapter:
    sweeps, loaders = data_size.sizes_of(view), layouts.loaders_of(view)
    pictures = []
    if timed_of(view, "data-size"):
        pictures.append(Picture(
            "data-size", data_size.TITLE, data_size.QUESTION, "", (),
            lambda _, dark: data_size.data_size(sweeps, dark),
        ))  # fmt: skip
    found = {each.name: each for each in timeline.timelines_of(view)}
    if timed_of(view, "loading"):
        pictures.append(Picture(
            "layouts", layouts.TITLE, layouts.QUESTION, "", (),
            lambda _, dark: layouts.layouts(loaders, dark),
        ))  # fmt: skip
    if found:
        pictures.append(Picture(
            "timeline", timeline.TITLE, timeline.QUESTION, "Training", tuple(found),
            lambda name, dark: timeline.timeline(found[name], dark), is_whole=True,
        ))  # fmt: skip
    return Chapter("storage", "Storage", tuple(storage_sentences(view)), tuple(pictures),
                   _there([data_size.needed_sheet(sweeps)]))  # fmt: skip


def _steps_picture(id: str, steps: Sequence[breakdown.Steps]) -> tuple[Picture, ...]:
    """First the largest training in which somebody is to blame, else the largest."""
    if not steps:
        return ()
    named = {each.name: each for each in steps}
    first = max(steps, key=lambda each: (not each.doubt, each.is_blamed, each.ranks)).name
    return (Picture(
        id, breakdown.TITLE, breakdown.QUESTION, "Training", tuple(named),
        lambda name, dark: breakdown.breakdown(named[name], dark), first,
    ),)  # fmt: skip


def _there(sheets: Sequence[Sheet | None]) -> tuple[Sheet, ...]:
    return tuple(each for each in sheets if each is not None)
