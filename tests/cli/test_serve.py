"""`hakaru serve`: what it passes on to the server, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put_jobs


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


@pytest.fixture
def served(monkeypatch: Any) -> dict[str, Any]:
    """What the server is called with; it says that it is ready and ends."""
    given: dict[str, Any] = {"others": []}

    def serve(lake: Lake, host: str, port: int, ready: Any, **options: Any) -> None:
        given.update(options, host=host, port=port, lake=lake)
        ready("http://x:1/", given["others"])

    monkeypatch.setattr("hakaru.web.server.serve", serve)
    monkeypatch.setattr("click.launch", lambda url: given.update(opened=url))
    return given


def test_the_defaults_listen_on_this_machine_only(lake: Lake, served: dict[str, Any]) -> None:
    put_jobs(lake, [job(1)])
    done = hakaru("serve", "-w", lake.workspace)
    assert done.output == "Hakaru is at http://x:1/ (Ctrl-C ends it)\n"
    assert (served["host"], served["port"]) == ("127.0.0.1", 8080)
    assert (served["access_log"], served["unit"], "opened" in served) == (False, None, False)
    assert served["access_folder"] == lake.workspace
    hakaru("serve", "-w", lake.workspace, "--open", "--port", 0)
    assert (served["opened"], served["port"]) == ("http://x:1/", 0)
    assert hakaru("serve", "-w", lake.workspace, "--port", 65536).exit_code == 2


@pytest.mark.parametrize(
    ("host", "others", "more"),
    [
        ("0.0.0.0", [], "\nIt listens on every address of this machine: others reach it too"),
        (
            "::",
            ["http://a/", "http://b/"],
            "\nIt listens on every address of this machine: others reach it too, as http://a/ or "
            "http://b/",
        ),
        ("10.0.0.1", ["http://a/"], ""),
    ],
)
def test_others_who_reach_it_are_told_of(
    lake: Lake, served: dict[str, Any], host: str, others: list[str], more: str
) -> None:
    put_jobs(lake, [job(1)])
    served["others"] = others
    done = hakaru("serve", "-w", lake.workspace, "--host", host)
    assert done.output == f"Hakaru is at http://x:1/ (Ctrl-C ends it){more}\n"


def test_an_empty_workspace_says_how_to_begin(tmp_path: Path, served: dict[str, Any]) -> None:
    (tmp_path / "hakaru.toml").write_text("")
    done = hakaru("serve", "-w", tmp_path)
    assert done.stderr == (
        f"{tmp_path} holds no jobs yet. Begin with: hakaru ingest FILE --cluster NAME --workspace "
        f"{tmp_path}\n"
    )
    refused = hakaru("serve", "-w", tmp_path / "none")
    assert refused.exit_code == 1 and "is not a Hakaru workspace" in refused.stderr
