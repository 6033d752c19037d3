"""What-if: build a scenario, watch it run, and compare what came of it; for operators."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import RedirectResponse, Response

from hakaru.errors import HakaruError
from hakaru.sim.whatif.table import interval_text
from hakaru.sim.whatif.words import duration, whose
from hakaru.web.access.sign_in import FORM, check_same_site
from hakaru.web.pages import _address as address
from hakaru.web.pages import _shown as shown
from hakaru.web.pages._frame import Frame
from hakaru.web.problems import Malformed, Unknown, WebError, problem_of
from hakaru.web.what_if import models
from hakaru.web.what_if.api import desk_of
from hakaru.web.what_if.check import WrongScenario
from hakaru.web.what_if.draft import BEGIN, NUM_VARIANTS, Draft
from hakaru.web.what_if.figures import MEASURES
from hakaru.web.what_if.service import Desk

router = APIRouter(include_in_schema=False)
OWN_SITE = [Depends(check_same_site)]
At = Annotated[Desk, Depends(desk_of)]
FIGURES = (
    ("waits-by-class", "Waits by class", "Who waits longer, who shorter?"),
    ("waits", "All waits", "How many jobs wait no longer than this?"),
    ("busy", "Busy over time", "When is the machine full, and how full?"),
)
# metric, its name, how it is written, and whether less is better
METRICS: tuple[tuple[str, str, str, bool | None], ...] = (
    ("num_no_longer_run", "Jobs that no longer run, of all replayed", "count", True),
    ("num_unstarted", "Jobs that never begin, of those compared", "count", True),
    ("mean_wait_s", "Mean wait", "duration", True),
    ("median_wait_s", "Median wait", "duration", True),
    ("p95_wait_s", "95 % wait under", "duration", True),
    ("p99_wait_s", "99 % wait under", "duration", True),
    ("mean_bounded_slowdown", "Mean bounded slowdown", "number", True),
    ("utilisation", "Machine in use, weeks compared", "share", False),
    ("fragmentation", "Lost to fragmentation, whole replay", "share", True),
    ("idle_while_waiting", "Idle while jobs wait, whole replay", "share", True),
    ("gini_wait", "Inequality of users’ waits (Gini)", "number", True),
    ("worst_user_wait_s", "Mean wait of the worst-off user", "duration", True),
    ("pe_hours_lost", "{one}-hours lost to restarts", "number", True),
    ("num_jobs", "Jobs compared", "count", None),
)


class Asked(BaseModel):
    """What the address of the form may say beside the filters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str | None = Field(default=None, max_length=16, description="Begin with this run's text.")


class Look(BaseModel):
    """What the address of a comparison may say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    measure: models.Measure = "mean_wait_s"
    variant: int = Field(default=0, ge=0, le=100)
    day: date | None = None


async def fields_of(request: Request) -> dict[str, str]:
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != FORM:
        raise Malformed("expected a form", f"Send it as {FORM}.")
    try:
        fields = parse_qs((await request.body()).decode("utf-8"), max_num_fields=100)
    except (UnicodeDecodeError, ValueError):
        raise Malformed("the form cannot be read") from None
    return {name: values[0].replace("\r\n", "\n") for name, values in fields.items()}


@router.get("/what-if")
def form(request: Request, desk: At) -> Response:
    frame = Frame.of(request, "what-if")
    if frame.hint:
        return frame.empty()
    asked = address.read(Asked, frame.own_only())
    cluster = frame.one.cluster[0]
    values = BEGIN | {"cluster": cluster, "since": frame.filters.since or "",
                      "until": frame.filters.until or ""}  # fmt: skip
    if asked.run is None:
        return _page(frame, desk, Draft(values), None)
    earlier = desk.find(asked.run)
    told = {name: getattr(earlier, name) or "" for name in ("cluster", "since", "until")}
    return _page(frame, desk, Draft(values | told), earlier.scenario, opened=True)


@router.post("/what-if", dependencies=OWN_SITE)
def begin(
    request: Request, desk: At, fields: Annotated[dict[str, str], Depends(fields_of)]
) -> Response:
    """Play what the form says (`do=form`) or its text (`do=text`), or only write the text (`do=write`).

    With `do=cluster` the form is shown anew, for the machine of another cluster.
    """
    frame = Frame.of(request, "what-if")
    if frame.hint:
        return frame.empty()
    draft, do = Draft(fields), fields.get("do", "form")
    if do == "cluster":
        return _page(frame, desk, draft, None)
    text = draft.toml() if do == "write" else fields.get("text", "")
    problem: HakaruError
    try:
        if do == "write":
            draft.check(desk.runs.bounds)
            return _page(frame, desk, draft, text, opened=True)
        text = draft.check(desk.runs.bounds) if do == "form" else text
        run = desk.start(_wanted(fields, text))
        return RedirectResponse(f"/what-if/{run.id}", status_code=303)
    except WrongScenario as error:
        problem = error
    except HakaruError as error:
        if isinstance(error, WebError) and error.status >= 500:
            raise
        problem = error
    answer = _page(frame, desk, draft, text, problem, opened=do != "form")
    answer.status_code = 200 if do == "write" else 422
    return answer


@router.get("/what-if/{run}")
def watch(request: Request, run: str, desk: At) -> Response:
    frame = Frame.of(request, "what-if")
    look = address.read(Look, frame.own_only())
    found = desk.find(run)
    if found.outcome is None:
        return frame.render("what_if_run.html", run=found, max_seconds=desk.runs.bounds.seconds)
    return _compared(frame, found, found.outcome, look)


@router.get("/what-if/{run}/state")
def state(request: Request, run: str, desk: At) -> Response:
    """What is polled while it runs; once it has ended, or is gone, the browser loads its page anew."""
    try:
        found = desk.find(run)
    except Unknown:
        return Response(headers={"HX-Refresh": "true"})
    answer = Frame.of(request, "what-if").render("what_if_state.html", run=found)
    if found.state not in ("queued", "running"):
        answer.headers["HX-Refresh"] = "true"
    return answer


@router.post("/what-if/{run}/cancel", dependencies=OWN_SITE)
def cancel(run: str, desk: At) -> Response:
    desk.cancel(run)
    return RedirectResponse(f"/what-if/{run}", status_code=303)


def _wanted(fields: dict[str, str], text: str) -> models.Wanted:
    given = {name: fields[name].strip() for name in ("cluster", "since", "until") if name in fields}
    pairs = [(name, value) for name, value in given.items() if value]
    return address.read(models.Wanted, [*pairs, ("scenario", text or " ")])


def _page(
    frame: Frame,
    desk: Desk,
    draft: Draft,
    text: str | None,
    problem: HakaruError | None = None,
    opened: bool = False,
) -> Response:
    about = desk.about()
    cluster = next((c for c in frame.clusters if c.name == draft.get("cluster")), frame.clusters[0])
    return frame.render(
        "what_if.html",
        about=about,
        draft=draft,
        text=draft.toml() if text is None else text,
        problems=_told(problem, draft),
        fix=problem_of(problem).fix if problem else None,
        opened=opened,
        cluster=cluster,
        machine=_machine(desk, cluster.name, cluster.unit),
        variants=range(1, NUM_VARIANTS + 1),
        unit=cluster.unit.upper(),
        zone=cluster.zone,
    )


def _told(problem: HakaruError | None, draft: Draft) -> list[str]:
    if problem is None:
        return []
    at_fields = [name for name in draft.errors if name]
    if isinstance(problem, WrongScenario):
        return problem.lines if not at_fields else draft.errors.get("", [])
    return [problem_of(problem).detail]


def _machine(desk: Desk, name: str, unit: str) -> dict[str, Any]:
    """What the cluster's settings know of its machine."""
    cluster = desk.readers.settings.cluster(name)
    counts = [each.count for each in cluster.nodes]
    nodes = counts[-1] if counts else None
    return {"nodes": nodes, "size": cluster.per_node(unit), "changes": len(set(counts)) > 1}


def _compared(frame: Frame, run: models.RunResult, outcome: models.Outcome, look: Look) -> Response:
    one, many = ("GPU", "GPUs") if outcome.unit == "gpu" else ("processor", "processors")
    day = look.day or outcome.day
    variant = min(look.variant, len(outcome.runs) - 1)
    base = f"/api/v1/what-if/{run.id}/figures/"
    return frame.render(
        "what_if_done.html",
        run=run,
        outcome=outcome,
        look=look,
        day=day,
        variant=variant,
        metrics=[_metric(outcome, *each, one) for each in METRICS],
        groups=_groups(outcome),
        figures=[(id, title, question, f"{base}{id}?measure={look.measure}")
                 for id, title, question in FIGURES],
        nodes=f"{base}nodes?variant={variant}&day={day}",
        measures=[(id, name, frame.at(measure=id)) for id, name in MEASURES.items()],
        many_of_run=many,
    )  # fmt: skip


def _metric(
    outcome: models.Outcome, id: str, title: str, kind: str, less_is_better: bool | None, one: str
) -> dict[str, Any]:
    cells = [
        {
            "value": _written(run.metrics.get(id), kind),
            "name": run.name,
            **_change(run.changes.get(id), kind, less_is_better),
        }
        for run in outcome.runs
    ]
    return {"id": id, "title": title.format(one=one), "cells": cells}


def _change(change: models.Change | None, kind: str, less_is_better: bool | None) -> dict[str, str]:
    """The change in words, its interval, and whether it is surely for the better."""
    if change is None or not _signed(change.change, kind).startswith(("+", "−")):
        return {"change": "", "interval": "", "tone": ""}
    tone = ""
    if change.is_sure and less_is_better is not None:
        tone = "better" if ((change.change or 0) < 0) == less_is_better else "worse"
    interval = interval_text(change, lambda bound, _: _signed(bound, kind))
    mark = " ≈" if change.is_sure and change.is_within_error else ""
    return {"change": _signed(change.change, kind) + mark, "interval": interval, "tone": tone}


def _signed(value: float | None, kind: str) -> str:
    if value is None:
        return shown.UNKNOWN
    if kind == "duration":
        return duration(value, signed=True)
    unit = " points" if kind == "share" else ""
    text = _digits(value * 100 if unit else value, kind)
    sign = "" if not text.strip("0.") else "−" if value < 0 else "+"
    return f"{sign}{text}{unit}"


def _digits(value: float, kind: str) -> str:
    size = abs(value)
    if kind == "share":
        return f"{size:.1f}"
    if kind == "count" or size >= 100 or not size:
        return f"{size:,.0f}"
    return f"{size:.3g}" if size >= 1 else f"{size:.3f}"  # what is left beyond is rounding


def _written(value: float | None, kind: str) -> str:
    if value is None:
        return shown.UNKNOWN
    if kind == "duration":
        return duration(value)
    if kind == "share":
        return f"{value * 100:.1f} %"
    return _digits(value, kind)


def _groups(outcome: models.Outcome) -> list[dict[str, Any]]:
    """Mean waits of each group: before, and in each variant."""
    keys: dict[tuple[str, str], models.GroupChange] = {}
    for run in outcome.variants:
        for group in run.groups:
            keys.setdefault((group.by, group.group), group)
    return [
        {
            "name": whose(first, outcome.unit),  # type: ignore[arg-type]
            "num_jobs": first.num_jobs,
            "before": _written(first.changes["mean_wait_s"].before, "duration"),
            "cells": [_of_group(run, by, name) for run in outcome.variants],
        }
        for (by, name), first in keys.items()
    ]


def _of_group(run: models.Variant, by: str, name: str) -> dict[str, str]:
    found = next((g for g in run.groups if (g.by, g.group) == (by, name)), None)
    if found is None:
        return {"name": run.name, "value": shown.UNKNOWN, "change": "", "interval": "", "tone": ""}
    change = found.changes["mean_wait_s"]
    return {"name": run.name, "value": _written(change.after, "duration"),
            **_change(change, "duration", True)}  # fmt: skip
