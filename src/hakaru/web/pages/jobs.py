"""The jobs as a table, sorted and paged in the engine; and one job's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from hakaru.web.filters import JobQuery, JobsQuery
from hakaru.web.models import Job, Place
from hakaru.web.pages import _address as address
from hakaru.web.pages import _shown as shown
from hakaru.web.pages._frame import Frame

router = APIRouter(include_in_schema=False)
# column, heading, how much it matters: 1 is shown on every width, 3 on wide screens only
COLUMNS = (
    ("job_id", "Job", 1), ("cluster", "Cluster", 1), ("user", "User", 1), ("account", "Account", 3),
    ("queue", "Queue", 1), ("application", "Application", 3), ("state", "State", 1),
    ("num_pes", "{many}", 1), ("num_nodes", "Nodes", 2), ("submitted_at", "Submitted", 1),
    ("wait_s", "Wait", 1), ("run_s", "Run", 1), ("requested_s", "Requested", 2),
    ("pe_hours", "{one}-hours", 2),
)  # fmt: skip
UNSORTED = ("cluster",)
GROUPS = (
    ("What and whose", ("cluster", "job_id", "array_id", "name", "user", "account", "queue", "qos",
                        "application", "modules")),
    ("How it went", ("state", "exit_code", "submitted_at", "eligible_at", "started_at", "ended_at",
                     "wait_s", "run_s", "requested_s")),
    ("What it had", ("parallelism", "num_pes", "pe_hours", "num_nodes", "num_gpus", "gpu_model",
                     "num_cpus", "memory_mib", "nodes", "gpu_ids")),
)  # fmt: skip
PLACES = (
    ("wait", "Wait", "waited less"),
    ("run", "Run time", "ran shorter"),
    ("size", "Size", "were smaller"),
    ("request_accuracy", "Used of the requested time", "used less of theirs"),
)


@router.get("/jobs")
def jobs(request: Request) -> Response:
    frame = Frame.of(request, "jobs")
    if frame.hint:
        return frame.empty()
    query = address.read(JobsQuery, [*frame.pairs, *frame.own_only()])
    found = frame.asker.jobs(query)
    known = {name for name, _, _ in COLUMNS if any(row[name] is not None for row in found.rows)}
    many = len(frame.shown) > 1
    columns = [
        (name, frame.heading(title), width, _sort(frame, query, name))
        for name, title, width in COLUMNS
        if (name in known or name == query.sort) and (name != "cluster" or many)
    ]
    return frame.render("jobs.html", found=found, query=query, columns=columns, title="Jobs")


@router.get("/job")
def job(request: Request) -> Response:
    frame = Frame.of(request, "jobs")
    query = address.read(JobQuery, address.given(request))
    found = frame.asker.job(query)
    return frame.render(
        "job.html",
        found=found,
        groups=_record(found),
        places=_places(found),
        zone=frame.zone_of(query.cluster),
        query=query,
    )


def _sort(frame: Frame, query: JobsQuery, name: str) -> str | None:
    """The address that sorts by the column, the other way round if it does already."""
    if name in UNSORTED:
        return None
    turned = "asc" if query.sort == name and query.order == "desc" else "desc"
    return frame.at(sort=name, order=turned, page=None)


def _record(found: Job) -> list[tuple[str, list[tuple[str, Any, str, str]]]]:
    """Column, value, unit and meaning, in three groups."""
    return [
        (
            title,
            [
                (name, found.record[name], found.units.get(name, ""), found.meanings.get(name, ""))
                for name in names
                if name in found.record
            ],
        )
        for title, names in GROUPS
    ]


def _places(found: Job) -> list[tuple[str, str, str, float | None, float | None]]:
    """The job's own values, and the shares of the others that have less."""
    own = _own(found.record)

    def of(place: Place | None, name: str) -> float | None:
        return None if place is None else getattr(place, name)

    return [
        (title, own[name], told, of(found.among_user, name), of(found.among_cluster, name))
        for name, title, told in PLACES
    ]


def _own(record: Mapping[str, Any]) -> dict[str, str]:
    run_s, requested_s = record["run_s"], record["requested_s"]
    used = run_s / requested_s if run_s is not None and requested_s else None
    return {
        "wait": shown.duration(record["wait_s"]),
        "run": shown.duration(run_s),
        "size": shown.number(record["num_pes"]),
        "request_accuracy": shown.share(used),
    }
