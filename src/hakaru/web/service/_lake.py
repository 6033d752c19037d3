"""What is in the lake: its tables, the last ingests, and the records that could not be read."""

from __future__ import annotations

from typing import Any

from hakaru.analyses import Session
from hakaru.lake import Lake
from hakaru.schema import REJECTS, TABLES
from hakaru.web.access import Viewer
from hakaru.web.filters import RejectsQuery
from hakaru.web.models import LakeContents, LakeTable, RejectReason, Rejects
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from hakaru.web.service._clusters import EMPTY

NUM_INGESTS = 50
NUM_REASONS = 200
REASONS = f"""
    SELECT cluster, reason, count(*) AS num_rejects,
           min_by(file, (file, line)) AS first_file, min_by(line, (file, line)) AS first_line
    FROM rejects_stored GROUP BY cluster, reason ORDER BY num_rejects DESC, cluster, reason
    LIMIT {NUM_REASONS}
"""


def contents(readers: Readers, viewer: Viewer) -> LakeContents:
    tables = readers.ask("tables", lambda session: _tables(session.lake))
    ingests = readers.ask("ingests", lambda session: _ingests(session.lake))
    return LakeContents(
        workspace=str(readers.lake.workspace) if viewer.sees_all else None,
        tables=tables if viewer.sees_all else [_without_sizes(table) for table in tables],
        ingests=ingests if viewer.sees_all else [_without_names(row) for row in ingests],
        rejects=_reasons(readers) if viewer.sees_all else None,
        hint=None if ingests else EMPTY,
    )


def rejects(readers: Readers, viewer: Viewer, query: RejectsQuery) -> Rejects:
    """The records themselves, whose text may name people: for operators."""
    if not viewer.sees_all:
        raise Refused("rejected records are shown to operators", "Ask an operator.")
    offset = (query.page - 1) * query.size

    def answer(session: Session) -> tuple[list[dict[str, Any]], int]:
        _define(session)
        wanted = {"cluster": query.cluster, "reason": query.reason}
        used = {name: value for name, value in wanted.items() if value is not None}
        tests = [f"{name} = {{{i}}}" for i, name in enumerate(used)]
        session.engine.define(
            "rejects_found",
            f"SELECT * FROM rejects_stored WHERE {' AND '.join(['true', *tests])}",
            tuple(used.values()),
        )
        (counted,) = session.engine.query("SELECT count(*) AS num FROM rejects_found").to_pylist()
        rows = session.engine.query(
            f"SELECT * FROM rejects_found ORDER BY cluster, file, line LIMIT {query.size} OFFSET {offset}"
        )
        return rows.to_pylist(), counted["num"]

    rows, num_rows = readers.ask(("rejects", query), answer)
    return Rejects(
        columns=REJECTS.names,
        rows=rows,
        page=query.page,
        size=query.size,
        num_rows=num_rows,
        num_pages=-(-num_rows // query.size),
    )


def _tables(lake: Lake) -> list[LakeTable]:
    return [
        LakeTable(
            name=status.name,
            meaning=TABLES[status.name].meaning,
            num_rows=status.num_rows,
            num_files=status.num_files,
            num_bytes=status.num_bytes,
            version=status.version,
            committed_at=status.committed_at,
        )
        for status in lake.status()
        if status.version >= 0
    ]


def _ingests(lake: Lake) -> list[dict[str, Any]]:
    return lake.ingests()[::-1][:NUM_INGESTS]


def _without_names(ingest: dict[str, Any]) -> dict[str, Any]:
    """Names of files may be names of people, and an ingest may be of one person's jobs."""
    counts = {name: None for name in ingest if name.startswith("num_")}
    return ingest | counts | {"inputs": None}


def _without_sizes(table: LakeTable) -> LakeTable:
    """All rows less those of the clusters of many people would be those of the others."""
    return table.model_copy(update=dict.fromkeys(("num_rows", "num_files", "num_bytes")))


def _reasons(readers: Readers) -> list[RejectReason]:
    def answer(session: Session) -> list[RejectReason]:
        _define(session)
        return [RejectReason(**row) for row in session.engine.query(REASONS).to_pylist()]

    return readers.ask("reasons", answer)


def _define(session: Session) -> None:
    session.engine.scan("rejects_stored", REJECTS, session.lake.files(REJECTS))
