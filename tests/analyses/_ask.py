"""Ask an analysis a question in one line."""

from __future__ import annotations

from typing import Any

from hakaru.analyses import Result, Selection, load_all, open_session
from hakaru.lake import Lake


def ask(lake: Lake, id: str, params: dict[str, Any] | None = None, **selection: Any) -> Result:
    with open_session(lake) as session:
        return session.run(load_all().get(id), Selection(**selection), **(params or {}))
