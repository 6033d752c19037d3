"""How answers leave: models as JSON, tables as files, problems as JSON or as a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from hakaru.safety.text import spreadsheet_table
from hakaru.web.problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    import pyarrow as pa

ProblemPage = Callable[[Request, Problem], Response]
RETRY_AFTER = {429: "60", 503: "2"}


def json_response(model: BaseModel) -> Response:
    """JSON straight from the model; NaN and infinity, which JSON lacks, are null."""
    body = to_json(model, inf_nan_mode="null", exclude_none=False)
    return Response(body, media_type="application/json")


def problem_response(request: Request, problem: Problem) -> Response:
    """JSON, or the page that `app.state.problem_page` makes for a browser outside the API."""
    page: ProblemPage | None = _page_of(request)
    wants_page = "text/html" in request.headers.get("accept", "")
    if page is not None and wants_page and not request.url.path.startswith("/api/"):
        response = page(request, problem)
        response.status_code = problem.status
    else:
        body = to_json(problem, exclude_none=True)
        response = Response(body, problem.status, media_type=MEDIA_TYPE)
    if problem.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if problem.status in RETRY_AFTER:
        response.headers["Retry-After"] = RETRY_AFTER[problem.status]
    return response


def file_response(table: pa.Table, name: str, format: str) -> Response:
    """A table as a file to download."""
    write, media_type = FILES[format]
    headers = {"Content-Disposition": f'attachment; filename="{name}.{format}"'}
    return Response(write(table), media_type=media_type, headers=headers)


def _page_of(request: Request) -> ProblemPage | None:
    app = request.scope.get("app")
    return getattr(app.state, "problem_page", None) if app is not None else None


def _csv(table: pa.Table) -> bytes:
    import pyarrow as pa
    import pyarrow.csv

    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(spreadsheet_table(_flat(table)), sink)
    return bytes(sink.getvalue())


def _parquet(table: pa.Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def _flat(table: pa.Table) -> pa.Table:
    """CSV has no lists: their items, joined by a space."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for i, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            table = table.set_column(i, field.name, pc.binary_join(table[field.name], " "))
    return table


FILES: dict[str, tuple[Callable[[Any], bytes], str]] = {
    "csv": (_csv, "text/csv; charset=utf-8"),
    "parquet": (_parquet, "application/vnd.apache.parquet"),
}
