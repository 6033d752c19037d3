"""Lists of jobs, sorted and paged in the engine; and one job with its place among others."""

from __future__ import annotations

from typing import Any

from hakaru.analyses import DERIVED, Check, Selection
from hakaru.engine.where import parse_moment
from hakaru.schema import JOBS
from hakaru.web.access import Viewer
from hakaru.web.filters import Filters, JobQuery, JobsQuery
from hakaru.web.models import Job, Jobs, Place
from hakaru.web.privacy import own_only, partition_of, place_among
from hakaru.web.problems import Unknown
from hakaru.web.readers import Readers, Search
from hakaru.web.service._clusters import chosen, pooled

LISTED = (
    "cluster", "job_id", "user", "account", "queue", "name", "application", "state", "num_nodes",
    "num_pes", "requested_s", "submitted_at", "started_at", "ended_at", "wait_s", "run_s", "pe_hours",
)  # fmt: skip
SHOWN = ("num_pes", "pe_hours", "parallelism")  # of the derived columns
RECORD = (*JOBS.names, *SHOWN)
FOUND = (
    "(contains(lower(job_id), lower({0})) OR contains(lower(name), lower({0})) "
    "OR contains(lower(jobs.user), lower({0})))"
)
MEASURES = {
    "wait": "wait_s",
    "run": "run_s",
    "size": "num_pes",
    "request_accuracy": "CASE WHEN requested_s > 0 THEN run_s / requested_s END",
}


def jobs(readers: Readers, viewer: Viewer, query: JobsQuery) -> Jobs:
    selection = pooled(readers, own_only(viewer, query))
    search = Search(_columns(LISTED), FOUND if query.q else "true", (query.q,) if query.q else ())
    (counted,) = readers.found("SELECT count(*) AS num FROM found", selection, search).to_pylist()
    table = readers.found(_page(query), selection, search)
    return Jobs(
        columns=table.column_names,
        rows=table.to_pylist(),
        page=query.page,
        size=query.size,
        num_rows=counted["num"],
        num_pages=-(-counted["num"] // query.size),
        only_own=not viewer.sees_all,
    )


def job(readers: Readers, viewer: Viewer, query: JobQuery) -> Job:
    chosen(readers, (query.cluster,))
    checks = [Check("job_id", query.job_id)]
    if not viewer.sees_all:
        checks.append(Check("user", viewer.user))
    selection = Selection(clusters=(query.cluster,), checks=tuple(checks))
    search = Search(_columns(RECORD), "true", ())
    rows = readers.found(
        "SELECT * FROM found ORDER BY submitted_at DESC LIMIT 100", selection, search
    ).to_pylist()
    record = _attempt(readers, rows, query)
    among = Filters(cluster=(query.cluster,))
    mine = among.model_copy(update={"user": record["user"]})
    return Job(
        record=record,
        units={c.name: c.unit for c in JOBS.columns if c.unit},
        meanings={c.name: c.meaning for c in (*JOBS.columns, *DERIVED)},
        attempts=[row["submitted_at"] for row in rows],
        among_user=_place(readers, mine.selection(), record) if record["user"] else None,
        among_cluster=_place_in_cluster(readers, viewer, among.selection(), record),
    )


def _page(query: JobsQuery) -> str:
    """The words in it come from lists of allowed ones; ties are settled by the job's key."""
    direction = "ASC" if query.order == "asc" else "DESC"
    offset = (query.page - 1) * query.size
    return (
        f"SELECT * FROM found ORDER BY found.{query.sort} {direction} NULLS LAST, "
        f"submitted_at DESC, cluster, job_id LIMIT {query.size} OFFSET {offset}"
    )


def _columns(names: tuple[str, ...]) -> tuple[str, ...]:
    """`user` is a function too, and so are others: each column with its table's name."""
    return tuple(f"jobs.{name}" for name in names)


def _attempt(readers: Readers, rows: list[dict[str, Any]], query: JobQuery) -> dict[str, Any]:
    """The attempt asked for, else the last one."""
    if query.submitted_at is not None:
        zone = readers.settings.cluster(query.cluster).zone
        moment = parse_moment(query.submitted_at, zone)
        rows = [row for row in rows if row["submitted_at"] == moment]
    if not rows:
        raise Unknown(
            f"there is no job {query.job_id!r} on {query.cluster} that you may see",
            "Search for it in the list of jobs.",
        )
    return rows[0]


def _place_in_cluster(
    readers: Readers, viewer: Viewer, selection: Selection, record: dict[str, Any]
) -> Place | None:
    if viewer.sees_all:
        return _place(readers, selection, record)
    (cluster,) = selection.clusters
    if partition_of(readers, cluster) is None:
        return None
    (row,) = readers.rows("SELECT count(*) AS num_jobs FROM jobs", selection)
    return Place(**row | place_among(readers, cluster, MEASURES, _values(record)))


def _place(readers: Readers, selection: Selection, record: dict[str, Any]) -> Place:
    """Shares of the jobs that have less than this one; equals count half."""
    known = {name: value for name, value in _values(record).items() if value is not None}
    shares = [
        f"avg(CASE WHEN {MEASURES[name]} < {value!r} THEN 1e0 WHEN {MEASURES[name]} = {value!r} "
        f"THEN 5e-1 WHEN {MEASURES[name]} IS NOT NULL THEN 0e0 END) AS {name}"
        for name, value in known.items()  # numbers from the lake, not from the request
    ]
    sql = f"SELECT {', '.join(['count(*) AS num_jobs', *shares])} FROM jobs"
    (row,) = readers.rows(sql, selection)
    return Place(**row)


def _values(record: dict[str, Any]) -> dict[str, float | None]:
    return {
        "wait": record["wait_s"],
        "run": record["run_s"],
        "size": record["num_pes"],
        "request_accuracy": _accuracy(record),
    }


def _accuracy(record: dict[str, Any]) -> float | None:
    run_s, requested_s = record["run_s"], record["requested_s"]
    return run_s / requested_s if run_s is not None and requested_s else None
