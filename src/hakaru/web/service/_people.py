"""Users and accounts: the analyses of those names, a page at a time; for a user, only themselves."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hakaru.analyses import Check, caveat_remarks
from hakaru.texts import language
from hakaru.web.access import Viewer
from hakaru.web.filters import Filters, PeopleQuery
from hakaru.web.models import People
from hakaru.web.privacy import is_whole, own_only
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from hakaru.web.service._analyses import find
from hakaru.web.service._clusters import names_none, note_on_users, selected
from hakaru.web.service._overview import overview

COUNT = "num_all"
SHARE = "share_pe_hours"
HOURS = "SELECT sum(pe_hours) AS hours FROM jobs"


def people(readers: Readers, viewer: Viewer, query: PeopleQuery) -> People:
    selection = selected(readers, own_only(viewer, query))
    if query.q:
        named = Check(query.kind.removesuffix("s"), query.q, "contains")
        selection = replace(selection, checks=(*selection.checks, named))
    params = {
        "sort": query.sort,
        "order": query.order,
        "limit": query.size,
        "offset": (query.page - 1) * query.size,
    }
    result = readers.run(find(query.kind), selection, params)
    table = result.table
    # past the last page no row is left to tell how many there are
    first = (
        table if table.num_rows else readers.run(find(query.kind), selection, {"limit": 1}).table
    )
    num_rows = first[COUNT][0].as_py() if first.num_rows else 0
    shown = _of_cluster(readers, viewer, query, table.drop_columns(COUNT))
    return People(
        kind=query.kind,
        columns=shown.column_names,
        rows=shown.to_pylist(),
        page=query.page,
        size=query.size,
        num_rows=num_rows,
        num_pages=-(-num_rows // query.size),
        only_own=not viewer.sees_all,
        users_note=note_on_users(readers, selection),
        notes=caveat_remarks(result, language("en")),
        names_none=names_none(readers, selection.clusters[0], query.kind.removesuffix("s")),
    )


def _of_cluster(readers: Readers, viewer: Viewer, query: PeopleQuery, table: pa.Table) -> pa.Table:
    """The table with shares of what everybody used under the same filters, not only those listed."""
    total = _hours(readers, viewer, query)
    shares = [
        None if not total or own is None else own / total for own in _column(table, "pe_hours")
    ]
    at = table.column_names.index(SHARE)
    return table.set_column(at, SHARE, pa.array(shares, pa.float64()))


def _column(table: pa.Table, name: str) -> list[float | None]:
    return list(table[name].to_pylist())


def _hours(readers: Readers, viewer: Viewer, query: PeopleQuery) -> float | None:
    """Everybody's hours; for a user as the overview gives them, or unknown where it does not."""
    names = Filters.model_fields
    asked = Filters(**{n: getattr(query, n) for n in names if n not in ("user", "account")})
    if viewer.sees_all:
        (row,) = readers.rows(HOURS, selected(readers, asked))
        return float(row["hours"]) if row["hours"] is not None else None
    if not is_whole(asked):  # jobs may be left out of the cells, and be one's own
        return None
    try:
        (found,) = overview(readers, viewer, asked).clusters
    except (Refused, ValueError):
        return None
    return found.measures.pe_hours
