"""Measure: the verdict of a run first, then its cards, links and search, and how things were before."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from pydantic import Field
from starlette.responses import Response

from hakaru.figures.measure import words
from hakaru.figures.measure.beside import beside
from hakaru.figures.measure.cards import cost_sentence, curve_of
from hakaru.figures.measure.chapters import PICTURES, Chapter, Picture, chapters_of
from hakaru.figures.measure.choice import Subject, card_subjects, find_subject, history_subjects
from hakaru.figures.measure.collectives import (
    MORE_RANKS,
    NO_PREDICTION,
    blame_of,
    blame_text,
    collectives_of,
    predictions,
    sweeps_of,
)
from hakaru.figures.measure.fleet import cards_of, named_cards
from hakaru.figures.measure.search import search_of, search_sentence
from hakaru.figures.measure.stored import Listed
from hakaru.figures.measure.view import RunView
from hakaru.registry import hint
from hakaru.web.filters import Text
from hakaru.web.measure.api import bench_of
from hakaru.web.measure.models import Long, RunId, SubjectQuery
from hakaru.web.measure.service import Bench
from hakaru.web.pages import _address as address
from hakaru.web.pages._frame import Frame
from hakaru.web.problems import Unknown

router = APIRouter(include_in_schema=False)
At = Annotated[Bench, Depends(bench_of)]
NUM_LISTED, FEW = 60, 8
CHOICE = ("benchmark", "parameters", "quantity", "model")
FIGURE = "/api/v1/measure/{run}/figures/{figure}?{query}"


class Asked(SubjectQuery):
    """What the address of the page may choose; the cluster is one of the filters."""

    run: RunId | None = Field(default=None, description="The run that is shown; else the newest.")
    beside: RunId | None = Field(default=None, description="A run to set beside it.")
    collective: Text | None = None
    scaling: Long | None = Field(default=None, description="The model whose scaling is drawn.")
    breakdown: Long | None = Field(default=None, description="The training whose step is split.")
    steps: Long | None = Field(default=None, description="The strategy whose step is split.")
    partition: Long | None = Field(default=None, description="The plan that is drawn.")
    timeline: Long | None = Field(default=None, description="The training whose time is drawn.")

    @property
    def pictures(self) -> dict[str, str | None]:
        """What is chosen of each figure of training and storage."""
        return {name: getattr(self, name) for name in PICTURES if name in Asked.model_fields}


@dataclass(frozen=True)
class Switch:
    """A link that chooses something, and whether it is chosen."""

    name: str
    href: str
    is_chosen: bool


@router.get("/measure")
def measure(request: Request, bench: At) -> Response:
    frame = Frame.of(request, "measure")
    asked = address.read(Asked, frame.own_only())
    every = bench.runs()
    chosen = frame.filters.cluster[0] if frame.filters.cluster else None
    _check_cluster(frame, every, chosen)
    if asked.run is None and not any(chosen in (None, each.cluster) for each in every):
        return frame.render(
            "measure_none.html", chosen=chosen, preflight=bench.preflight_table(chosen),
            clusters=_clusters(every, chosen), options=_options(bench, chosen),
        )  # fmt: skip
    run = bench.find(asked.run or "latest", chosen, asked.benchmark)
    return frame.render(
        "measure.html",
        run=run,
        zone=bench.zone(run.cluster),
        clusters=_clusters(every, run.cluster),
        preflight=bench.preflight_table(run.cluster),
        more_ranks=MORE_RANKS,
        no_prediction=NO_PREDICTION,
        few=FEW,
        **_describe(bench, run, asked),
        **_beside(bench, run, asked),
        **_runs(bench, run),
    )


def _options(bench: Bench, cluster: str | None) -> str:
    """What a command needs to measure into this workspace."""
    name = f" --cluster {shlex.quote(cluster)}" if cluster else ""
    return f"{name} -w {shlex.quote(str(bench.readers.lake.workspace.resolve()))}"


def _check_cluster(frame: Frame, runs: Sequence[Listed], name: str | None) -> None:
    known = list(dict.fromkeys([c.name for c in frame.clusters] + [each.cluster for each in runs]))
    if name is not None and name not in known:
        raise Unknown(f"there is no cluster {name!r}", hint(name, known))


def _clusters(runs: Sequence[Listed], chosen: str | None) -> list[Switch]:
    names = dict.fromkeys(each.cluster for each in runs)
    return [
        Switch(name, f"/measure?{urlencode({'cluster': name})}", name == chosen) for name in names
    ]


def _describe(bench: Bench, run: Listed, asked: Asked) -> dict[str, Any]:
    """All that there is of one run, and the addresses of its figures."""
    view = bench.view(run)
    summary = words.summarise(view)
    return {
        "summary": summary,
        "left_out": view.left_out,
        "worst": [(each, _of_card(run, each)) for each in summary.worst],
        "truths": [(each, each.options.get("truth")) for each in view.readings if run.is_selftest],
        "chapters": [_chapter(run, asked, each) for each in chapters_of(view, asked.pictures)],
        **_devices(run, view, asked),
        **_collectives(run, view, asked),
        **_search(run, view),
        **_history(bench, run, view, asked),
    }


def _devices(run: Listed, view: RunView, asked: Asked) -> dict[str, Any]:
    subjects = card_subjects(view)
    wanted = find_subject(history_subjects(view), asked.choice)
    subject = wanted if wanted in subjects else next(iter(subjects), None)
    # without a choice a device has the worst verdict of all that was measured on it
    own = None if asked.choice.is_open or wanted not in subjects else subject
    curve = curve_of(view, subject) if subject else None
    everything = Switch("all together", _at(run, asked), own is None)
    return {
        # a self-test measures things of known truth, and no devices
        "num_devices": 0 if run.is_selftest else len({(e.host, e.device) for e in view.cards}),
        "fleet": _figure(run, "fleet", own),
        "card_switches": [everything, *_switches(run, asked, subjects, own)],
        "named_cards": named_cards(cards_of(view, own)),
        "cards": _figure(run, "cards", subject),
        "cards_of": subject,
        "cost": cost_sentence(curve) if curve else None,
    }


def _collectives(run: Listed, view: RunView, asked: Asked) -> dict[str, Any]:
    sweeps = sweeps_of(view)
    known = collectives_of(sweeps)
    name = asked.collective if asked.collective in known else next(iter(known), None)
    found = blame_of(view)
    return {
        "collective": name,
        "collectives": _figure(run, "collectives", None, collective=name),
        "collective_switches": [
            Switch(each, _at(run, asked, collective=each), each == name) for each in known
        ],
        "predictions": predictions(sweeps),
        "blame": blame_text(found),
        "blamed": any(each.hosts or each.links for each in found),
    }


def _search(run: Listed, view: RunView) -> dict[str, Any]:
    found = search_of(view)
    return {
        "search": _figure(run, "search", None) if found else None,
        "search_sentence": search_sentence(found) if found else "",
    }


def _chapter(run: Listed, asked: Asked, chapter: Chapter) -> dict[str, Any]:
    cards = [_card(run, asked, each) for each in chapter.pictures]
    return {name: getattr(chapter, name) for name in ("id", "title", "sentences", "sheets")} | {
        "cards": cards
    }


def _card(run: Listed, asked: Asked, each: Picture) -> dict[str, Any]:
    """A figure of training or storage, and the links that choose what it is of."""
    wanted = asked.pictures.get(each.id)
    name = wanted if wanted in each.names else each.first
    return {
        "id": each.id, "title": each.title, "question": each.question, "label": each.label,
        "is_whole": each.is_whole, "chosen": name, "address": _figure(run, each.id, None, of=name),
        "switches": [Switch(one, _at(run, asked, **{each.id: one}), one == name) for one in each.names],
    }  # fmt: skip


def _history(bench: Bench, run: Listed, view: RunView, asked: Asked) -> dict[str, Any]:
    subjects = history_subjects(view)
    subject = find_subject(subjects, asked.choice)
    if subject is None:
        return {"history": None, "history_of": None, "history_switches": [], "history_sentence": "",
                "history_where": "", "history_whole": ""}  # fmt: skip
    series = bench.series(run.cluster, subject, asked.host, asked.device)
    return {
        "history": _figure(run, "history", subject, host=asked.host, device=asked.device),
        "history_of": subject,
        "history_switches": _switches(run, asked, subjects, subject),
        "history_sentence": series.sentence,
        "history_where": series.where,
        "history_whole": _at(run, asked, **_named(subject), host=None, device=None),
    }


def _beside(bench: Bench, run: Listed, asked: Asked) -> dict[str, Any]:
    if asked.beside is None:
        return {"beside": None, "lines": [], "only": {}}
    other = bench.find(asked.beside, run.cluster)
    earlier, later, lines = bench.compared(run, other)
    found = beside(lines)
    return {
        "beside": (("Earlier", earlier), ("Later", later)),
        "lines": found.lines,
        "only": found.only,
    }


def _runs(bench: Bench, run: Listed) -> dict[str, Any]:
    """The list of runs: each leads to itself, or beside the one that is shown."""
    known = bench.runs(run.cluster)
    return {
        "runs": [
            (each, f"/measure?{urlencode({'run': each.id})}",
             f"/measure?{urlencode({'run': run.id, 'beside': each.id})}#beside")
            for each in known[:NUM_LISTED]
        ],
        "num_older": max(0, len(known) - NUM_LISTED),
    }  # fmt: skip


def _switches(
    run: Listed, asked: Asked, subjects: Sequence[Subject], chosen: Subject | None
) -> list[Switch]:
    """The models are named where two subjects differ in nothing else."""
    counts = Counter(each.title for each in subjects)
    return [
        Switch(
            f"{each.title} · {each.model}" if counts[each.title] > 1 else each.title,
            _at(run, asked, **_named(each)),
            each == chosen,
        )
        for each in subjects
    ]


def _named(subject: Subject) -> dict[str, str]:
    pairs = (subject.benchmark, subject.shown, subject.quantity, subject.model)
    return {name: value for name, value in zip(CHOICE, pairs, strict=True) if value}


def _at(run: Listed, asked: Asked, **more: str | None) -> str:
    """This page of this run with another choice; what is None is left open."""
    kept = {"run": run.id, "beside": asked.beside, "collective": asked.collective} | asked.pictures
    if not set(more) & set(CHOICE):
        kept |= {name: getattr(asked, name) for name in CHOICE} if more else {}
    pairs = {name: value for name, value in (kept | more).items() if value}
    return f"/measure?{urlencode(pairs)}"


def _of_card(run: Listed, named: words.Named) -> str | None:
    """The history of a device that is not good."""
    each = named.reading
    if not each.is_card:
        return None
    choice = dict(zip(CHOICE, (each.benchmark, each.shown, each.quantity, each.model), strict=True))
    pairs = {"run": run.id, **choice, "host": each.host, "device": each.device}
    return f"/measure?{urlencode({k: v for k, v in pairs.items() if v})}#history"


def _figure(run: Listed, figure: str, subject: Subject | None, **more: str | None) -> str:
    pairs = {"cluster": run.cluster, **(_named(subject) if subject else {}), **more}
    query = urlencode({name: value for name, value in pairs.items() if value})
    return FIGURE.format(run=run.id, figure=figure, query=query)
