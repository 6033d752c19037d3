"""`hakaru serve`: what it passes on to the server, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hakaru.lake import Lake
from tests._cli import hakaru


def test_serve_passes_on_what_is_asked(log: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Tokens are those of the workspace, also where a log is read in place of it."""
    given: dict[str, Any] = {}

    def served(lake: Lake, host: str, port: int, **options: Any) -> None:
        given.update(options, host=host, port=port, clusters=lake.clusters())

    monkeypatch.setattr("hakaru.web.server.serve", served)
    options = ("-w", tmp_path / "w", "--host", "::1", "--port", 99, "--access-log", "--unit", "cpu")
    assert hakaru("serve", "--from", log, *options).exit_code == 0
    given.pop("ready")
    assert given == {"host": "::1", "port": 99, "clusters": ["mini"], "access_log": True,
                     "unit": "cpu", "access_folder": tmp_path / "w"}  # fmt: skip
