"""Questions to the API, granted or refused."""

from __future__ import annotations

from typing import Any

import httpx

from tests.conftest import job

API = "/api/v1"
Asked = tuple[str | None, str | None]
Params = dict[str, Any]


def get(client: httpx.Client, path: str, **params: Any) -> Params:
    answer = client.get(f"{API}/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def refused(client: httpx.Client, path: str, **params: Any) -> str:
    answer = client.get(f"{API}/{path}", params=params)
    assert answer.status_code == 403, (path, params, answer.text[:300])
    return str(answer.json()["detail"])


def jobs_of(users: str, first: int, **columns: Any) -> list[Params]:
    """A job for each letter."""
    return [job(first + i, user=f"u{user}", **columns) for i, user in enumerate(users)]
