"""The API's own page: its endpoints and parameters as plain HTML, made from the OpenAPI description."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

PATH = "/api/v1/docs"
router = APIRouter(include_in_schema=False)


@router.get(PATH)
def docs(request: Request) -> Response:
    """No script and no style of its own: what a page may load is `/static/hakaru.css`."""
    spec = request.app.openapi()
    parts = [
        _endpoint(method, path, operation, _body(spec, operation))
        for path, item in spec["paths"].items()
        for method, operation in item.items()
    ]
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>API · Hakaru</title>'
        '<meta name="viewport" content="width=device-width">'
        '<link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
        '<link rel="stylesheet" href="/static/hakaru.css"></head><body><main>'
        f"<h1>The API</h1><p>{escape(spec['info']['description'].strip())}</p>"
        f'<p>For programs: <a href="{escape(request.app.openapi_url)}">openapi.json</a></p>'
        f"{''.join(parts)}</main></body></html>"
    )


def _endpoint(method: str, path: str, operation: dict[str, Any], body: list[Any]) -> str:
    rows = "".join(_parameter(each) for each in [*operation.get("parameters", []), *body])
    table = (
        f"<table><thead><tr><th>parameter</th><th>type</th><th>meaning</th></tr></thead><tbody>{rows}</tbody></table>"
        if rows
        else "<p>No parameters.</p>"
    )
    told = escape(operation.get("description", ""))
    head = escape(f"{method.upper()} {path}")
    return f"<section><h2><code>{head}</code></h2><p>{told}</p>{table}</section>"


def _body(spec: dict[str, Any], operation: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of a JSON body, told like parameters."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return []
    model = spec["components"]["schemas"][content["schema"]["$ref"].rsplit("/", 1)[-1]]
    return [
        {"name": name, "schema": schema, "required": name in model.get("required", [])}
        for name, schema in model["properties"].items()
    ]


def _parameter(each: dict[str, Any]) -> str:
    needed = " (required)" if each.get("required") else ""
    cells = (
        f"<code>{escape(each['name'])}</code>{needed}",
        escape(_kind(each["schema"])),
        escape(each.get("description") or each["schema"].get("description", "")),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _kind(schema: dict[str, Any]) -> str:
    """A type in a few words: `integer`, `one of asc, desc`, `list of string`."""
    if "enum" in schema:
        return "one of " + ", ".join(str(each) for each in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"] if each.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
