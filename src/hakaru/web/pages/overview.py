"""The cluster at a glance: now, over the period, against the one before, and what stands out."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from hakaru.texts import agreeing
from hakaru.web.filters import Nothing
from hakaru.web.models import AnalysisInfo, ClusterOverview, Measures
from hakaru.web.pages import _address as address
from hakaru.web.pages import _shown as shown
from hakaru.web.pages._cards import Card, card
from hakaru.web.pages._frame import Frame
from hakaru.web.privacy import FEWEST
from hakaru.web.problems import Refused

router = APIRouter(include_in_schema=False)
CHARTS = ("load", "arrivals-by-week", "states")
OF_GROUPS = ("jobs-by-quarter", "parallelism", "states")  # what a user may see of others' jobs


@router.get("/")
def overview(request: Request) -> Response:
    frame = Frame.of(request, "overview")
    if frame.hint:
        return frame.empty()
    address.read(Nothing, frame.own_only())
    names = frame.filters.cluster or tuple(each.name for each in frame.clusters)
    infos = {info.id: info for info in frame.asker.analyses().analyses}
    clusters = [_cluster(frame, infos, name) for name in dict.fromkeys(names)]
    return frame.render("overview.html", clusters=clusters)


@router.get("/findings")
def findings(request: Request) -> Response:
    """What stands out, which the front page fetches after it has shown the rest."""
    frame = Frame.of(request, "overview")
    if frame.hint:
        return frame.empty()
    address.read(Nothing, frame.own_only())
    found = frame.asker.findings(frame.filters)
    return frame.render("findings.html", found=found)


def _cluster(frame: Frame, infos: dict[str, AnalysisInfo], name: str) -> dict[str, Any]:
    """One cluster; what a user may not see of it takes nothing from the others beside it."""
    filters = frame.filters.model_copy(update={"cluster": (name,)})
    try:
        (each,) = frame.asker.overview(filters).clusters
    except Refused as error:
        if len(frame.filters.cluster) == 1:
            raise
        return {"name": name, "refused": f"{str(error).capitalize()}. {error.fix or ''}"}
    return {
        "name": name,
        "refused": "",
        "overview": each,
        "log": next(about for about in frame.clusters if about.name == name),
        "tiles": _tiles(each),
        "cards": _cards(frame, infos, name),
        "findings": frame.at("/findings", cluster=name),
    }


def _cards(frame: Frame, infos: dict[str, AnalysisInfo], name: str) -> list[Card]:
    cards = [card(frame, infos[id], name) for id in CHARTS]
    if any(each.refused for each in cards):
        cards = [card(frame, infos[id], name) for id in OF_GROUPS]
    return cards


def _tiles(each: ClusterOverview) -> list[dict[str, Any]]:
    """The numbers of a cluster: a label, the value, what it means, and the change."""
    mean = each.measures
    many = "GPUs" if each.unit == "gpu" else "processors"
    one = "GPU" if each.unit == "gpu" else "processor"
    share = f"{shown.share(mean.utilisation)} of those installed" if mean.utilisation else ""
    if not share and each.now.seen_pes:
        share = f"of at least {shown.number(each.now.seen_pes)} seen in use"
    return [
        _tile(f"Busy {many}, mean", shown.brief(mean.busy_pes), share or "over the period", each,
              "busy_pes", None),
        _tile("Jobs waiting, mean", shown.brief(mean.jobs_waiting), "over the period", each,
              "jobs_waiting", True),
        _tile("Median wait", shown.duration(mean.wait_median_s),
              _on_waits(mean), each, "wait_median_s", True),
        _tile(f"{one[:1].upper()}{one[1:]}-hours", shown.brief(mean.pe_hours),
              f"{agreeing(f'{shown.number(mean.num_jobs)} jobs')}; median run of all that ran "
              f"{shown.duration(mean.run_median_s)}", each, "pe_hours", None),
        _tile("Users", shown.number(mean.num_users),
              each.users_note or "who submitted a job", each, "num_users", None),
        _tile("Completed", shown.share(mean.share_completed),
              _of_which(mean), each, "share_completed", False),
    ]  # fmt: skip


def _on_waits(mean: Measures) -> str:
    """The 95th percentile, and which jobs both waits are of where some did not start."""
    if mean.wait_p95_s is None:
        return ""
    note = f"95 % wait under {shown.duration(mean.wait_p95_s)}"
    if mean.share_started == 1:
        return note
    share = f" ({shown.share(mean.share_started)})" if mean.share_started else ""
    return f"{note}; of the jobs that started{share}"


def _of_which(mean: Measures) -> str:
    """Which jobs the share of completed ones is of: for a user, those whose state is counted."""
    if mean.num_by_state is None or mean.num_by_state == mean.num_jobs:
        return "of the jobs that ended"
    counted = agreeing(f"{shown.number(mean.num_by_state)} jobs")
    return f"of {counted}, in groups of {FEWEST} or more people"


def _tile(
    label: str,
    value: str,
    note: str,
    each: ClusterOverview,
    measure: str,
    more_is_worse: bool | None,
) -> dict[str, Any]:
    changed = each.change.get(measure)
    tone = "even"
    if changed is not None and more_is_worse is not None and abs(changed) >= 0.005:
        tone = "worse" if (changed > 0) == more_is_worse else "better"
    return {
        "label": label,
        "value": value,
        "note": note,
        "change": shown.change(changed),
        "tone": tone,
        "measure": measure,
    }
