"""Scripts and styles under our own address: cached for a year where the address holds their version."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from hakaru.assets import SCRIPTS, script
from hakaru.web.problems import Unknown

router = APIRouter(include_in_schema=False)
FOLDER = Path(__file__).parents[1] / "static"
SCRIPT = "text/javascript; charset=utf-8"
TYPES = {".css": "text/css; charset=utf-8", ".js": SCRIPT, ".svg": "image/svg+xml"}
OWN = {path.name: TYPES[path.suffix] for path in FOLDER.iterdir()}
FETCHED = {f"{name}.js": name for name in SCRIPTS}
FOREVER = "public, max-age=31536000, immutable"
SHORTLY = "public, max-age=300"


@dataclass(frozen=True)
class Asset:
    body: bytes
    packed: bytes
    media_type: str
    version: str


# `async`, and from memory: no static file waits for a thread that a query holds
@router.get("/static/{version}/{name}")
async def versioned(request: Request, version: str, name: str) -> Response:
    asset = _known(name)
    return _sent(request, asset, FOREVER if version == asset.version else SHORTLY)


@router.get("/static/{name}")
async def plain(request: Request, name: str) -> Response:
    return _sent(request, _known(name), SHORTLY)


def address_of(name: str) -> str:
    """Where a page finds the asset; another version has another address."""
    return f"/static/{asset(name).version}/{name}"


@cache
def asset(name: str) -> Asset:
    if name in FETCHED:
        body, media_type = script(FETCHED[name]).encode(), SCRIPT
    else:
        body, media_type = (FOLDER / name).read_bytes(), OWN[name]
    version = hashlib.sha256(body).hexdigest()[:12]
    return Asset(body, gzip.compress(body, 6), media_type, version)


def _known(name: str) -> Asset:
    if name not in OWN and name not in FETCHED:
        raise Unknown("there is no such file")
    return asset(name)


def _sent(request: Request, asset: Asset, caching: str) -> Response:
    packs = "gzip" in request.headers.get("accept-encoding", "")
    headers = {"Cache-Control": caching, "Vary": "Accept-Encoding"}
    if packs:
        headers["Content-Encoding"] = "gzip"
    return Response(asset.packed if packs else asset.body, 200, headers, asset.media_type)
