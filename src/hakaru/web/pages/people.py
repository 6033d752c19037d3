"""Users and accounts: jobs, GPU-hours, waits, request accuracy and states."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from hakaru.web.filters import PeopleQuery
from hakaru.web.pages import _address as address
from hakaru.web.pages._frame import Frame

router = APIRouter(include_in_schema=False)
# column, heading, importance, the word to sort by
COLUMNS = (
    ("num_jobs", "Jobs", 1, "num_jobs"), ("pe_hours", "{one}-hours", 1, "pe_hours"),
    ("share_pe_hours", "Of the cluster’s hours", 2, None),
    ("median_wait_s", "Median wait", 1, "median_wait_s"),
    ("p95_wait_s", "95 % wait under", 2, "p95_wait_s"), ("median_run_s", "Median run", 3, "median_run_s"),
    ("median_request_accuracy", "Used of request", 2, "median_request_accuracy"),
    ("share_completed", "Completed", 1, "share_completed"), ("share_failed", "Failed", 1, "share_failed"),
    ("share_timeout", "Timed out", 1, "share_timeout"),
    ("share_cancelled", "Cancelled", 1, "share_cancelled"),
    ("share_other_end", "Killed or preempted", 2, "share_other_end"),
    ("lost_pe_hours", "Lost {one}-hours", 2, "lost_pe_hours"),
    ("last_submit", "Last job", 3, None),
)  # fmt: skip


@router.get("/people")
def people(request: Request) -> Response:
    frame = Frame.of(request, "people")
    if frame.hint:
        return frame.empty()
    query = address.read(PeopleQuery, [*address.pairs_of(frame.one), *frame.own_only()])
    if len(query.cluster) > 1:
        query = query.model_copy(update={"cluster": query.cluster[:1]})
    found = frame.asker.people(query)
    name = query.kind.removesuffix("s")
    columns = [(name, name.capitalize(), 1, _sort(frame, query, "name"), "name")]
    columns += [
        (column, frame.heading(title), width, _sort(frame, query, word), word or "")
        for column, title, width, word in COLUMNS
        if column in found.columns
    ]
    return frame.render(
        "people.html",
        found=found,
        query=query,
        columns=columns,
        name=name,
        cluster=query.cluster[0],
        switches=[(kind, frame.at(kind=kind, page=None, q=None)) for kind in ("users", "accounts")],
    )


def _sort(frame: Frame, query: PeopleQuery, word: str | None) -> str | None:
    if word is None:
        return None
    turned = "asc" if query.sort == word and query.order == "desc" else "desc"
    return frame.at(sort=word, order=turned, page=None)
