"""Users and accounts: the analyses of those names, a page at a time; for a user, only themselves."""

from __future__ import annotations

from dataclasses import replace

from hakaru.analyses import Check
from hakaru.web.access import Viewer
from hakaru.web.filters import PeopleQuery
from hakaru.web.models import People
from hakaru.web.privacy import own_only
from hakaru.web.readers import Readers
from hakaru.web.service._analyses import find
from hakaru.web.service._clusters import selected

COUNT = "num_all"


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
    table = readers.run(find(query.kind), selection, params).table
    # past the last page no row is left to tell how many there are
    first = (
        table if table.num_rows else readers.run(find(query.kind), selection, {"limit": 1}).table
    )
    num_rows = first[COUNT][0].as_py() if first.num_rows else 0
    shown = table.drop_columns(COUNT)
    return People(
        kind=query.kind,
        columns=shown.column_names,
        rows=shown.to_pylist(),
        page=query.page,
        size=query.size,
        num_rows=num_rows,
        num_pages=-(-num_rows // query.size),
        only_own=not viewer.sees_all,
    )
