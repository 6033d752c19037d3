"""`hakaru serve` and `hakaru token` as a person runs them."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx
import pytest
from click.testing import CliRunner

from hakaru.cli import main
from hakaru.lake import Lake
from hakaru.measure.record import Run
from hakaru.web import server
from hakaru.web.server import is_loopback, listening, url_of, urls_of_others
from tests.conftest import job, put_jobs
from tests.measure.lakes import BEGIN, measured, put_runs

SAMPLE = "; MaxNodes: 4\n1 0 5 60 1 -1 -1 1 100 -1 1 1 1 -1 1 -1 -1 -1\n"


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "hakaru", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+/", process.stdout.readline())
        assert found, process.communicate()
        yield process, found.group()
    finally:
        process.kill()
        process.wait()


def test_it_says_where_it_is_and_ends_cleanly(tmp_path: Path) -> None:
    put_jobs(Lake.create(tmp_path), [job(1)])
    with serving("-w", str(tmp_path), "--access-log") as (process, url):
        assert httpx.get(f"{url}api/v1/jobs?user=ann", timeout=30).json()["num_rows"] == 1
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in errors and rest == ""
    assert "GET /api/v1/jobs 200" in errors and "ann" not in errors


def test_from_a_log_without_a_workspace(tmp_path: Path) -> None:
    log = tmp_path / "small.swf"
    log.write_text(SAMPLE)
    with serving("-w", str(tmp_path / "none"), "--from", str(log)) as (_, url):
        clusters = httpx.get(f"{url}api/v1/clusters", timeout=30).json()["clusters"]
    assert [(each["name"], each["num_jobs"]) for each in clusters] == [("small", 1)]
    assert not (tmp_path / "none").exists()


def test_what_is_no_workspace_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path / "nosuch", tmp_path):
        code, output = run("serve", "-w", str(folder), "--port", "0")
        assert code == 1
        assert f"{folder} is not a Hakaru workspace" in output
        assert "hakaru ingest FILE --cluster NAME" in output
    assert not (tmp_path / "nosuch").exists()


@pytest.mark.parametrize("begun_with", ["lake", "settings"])
def test_an_empty_workspace_says_which_command_to_run(tmp_path: Path, begun_with: str) -> None:
    if begun_with == "lake":
        Lake.create(tmp_path)
    else:
        (tmp_path / "hakaru.toml").write_text("")
    with serving("-w", str(tmp_path)) as (process, url):
        assert "hakaru ingest" in httpx.get(f"{url}api/v1/lake", timeout=30).json()["hint"]
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert "holds no jobs yet. Begin with: hakaru ingest FILE" in errors


def test_measurements_alone_are_not_an_empty_workspace(tmp_path: Path) -> None:
    put_runs(Lake.create(tmp_path), [Run("r1", "c", BEGIN, (measured(),))])
    with serving("-w", str(tmp_path)) as (process, url):
        page = httpx.get(url, timeout=30).text
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert 'measurements are on the page <a href="/measure">Measure</a>' in page
    assert "holds no jobs yet; measurements are on the page Measure." in errors


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.output


def test_a_port_in_use(tmp_path: Path) -> None:
    Lake.create(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = run("serve", "-w", str(tmp_path), "--port", str(port))
    assert code == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in output
    assert "--port" in output


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_others_are_not_let_in_without_access(tmp_path: Path, host: str) -> None:
    Lake.create(tmp_path)
    code, output = run("serve", "-w", str(tmp_path), "--host", host, "--port", "0")
    assert code == 1
    assert "hakaru token create" in output


def test_with_a_token_others_may_ask(tmp_path: Path) -> None:
    put_jobs(Lake.create(tmp_path), [job(1)])
    code, output = run("token", "create", "-w", str(tmp_path), "--name", "a", "--role", "operator")
    secret = output.splitlines()[0]
    assert code == 0 and secret.startswith("hakaru_")
    with serving("-w", str(tmp_path), "--host", "0.0.0.0") as (_, url):
        assert httpx.get(f"{url}api/v1/jobs", timeout=30).status_code == 401
        headers = {"Authorization": f"Bearer {secret}"}
        assert httpx.get(f"{url}api/v1/jobs", headers=headers, timeout=30).status_code == 200


def test_every_address_is_told_as_what_it_is(tmp_path: Path) -> None:
    """By the names that are set; a name that is not would be refused, and so is not told."""
    Lake.create(tmp_path)
    (tmp_path / "hakaru.toml").write_text('[web]\nhosts = ["gpu.example"]\n')
    run("token", "create", "-w", str(tmp_path), "--name", "a", "--role", "operator")
    with serving("-w", str(tmp_path), "--host", "0.0.0.0") as (process, url):
        port = url.rstrip("/").rsplit(":", 1)[1]
        assert process.stdout is not None
        told = process.stdout.readline()
    assert url == f"http://127.0.0.1:{port}/"
    assert "on every address of this machine" in told
    assert told.rstrip().endswith(f"as http://gpu.example:{port}/")


def test_its_own_addresses_answer() -> None:
    with listening("0.0.0.0", 0) as bound:
        for url in (url_of("0.0.0.0", bound), *urls_of_others("0.0.0.0", bound, ())):
            parts = urlsplit(url)
            assert parts.hostname is not None and parts.port == bound.getsockname()[1]
            with socket.create_connection((parts.hostname, parts.port), timeout=5):
                pass


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True), ("LocalHost", True), ("127.0.0.9", True), ("::1", True), ("", False),
        ("localhost.example.org", False), ("0.0.0.0", False), ("::", False), ("10.0.0.1", False),
    ],
)  # fmt: skip
def test_which_addresses_lead_to_this_machine_only(host: str, here: bool) -> None:
    assert is_loopback(host) is here


@pytest.mark.parametrize("asked", [False, True])
def test_requests_are_logged_only_if_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    logged: list[bool] = []
    monkeypatch.setattr(server, "_log_requests", lambda: logged.append(True))
    idle = SimpleNamespace(run=lambda sockets: None)
    monkeypatch.setattr(server, "server_of", lambda app: idle)
    server.serve(Lake.create(tmp_path), "127.0.0.1", 0, access_log=asked)
    assert bool(logged) is asked


def test_one_address_is_told_once() -> None:
    with listening("127.0.0.1", 0) as bound:
        assert urls_of_others("127.0.0.1", bound, ("gpu.example",)) == []


def test_tokens_are_made_listed_and_revoked(tmp_path: Path) -> None:
    where = ("-w", str(tmp_path))
    _, output = run("token", "create", *where, "--name", "ann", "--role", "user", "--user", "u1")
    secret = output.splitlines()[0]
    _, listed = run("token", "list", *where)
    assert "ann" in listed and "u1" in listed and secret not in listed
    code, output = run("token", "create", *where, "--name", "bob", "--role", "user")
    assert code == 1 and "add --user" in output
    code, output = run(
        "token", "create", *where, "--name", "b", "--role", "operator", "--user", "u"
    )
    assert code == 1 and "leave out --user" in output
    assert run("token", "revoke", *where, "ann") == (0, "revoked ann (user)\n")
    assert run("token", "list", *where)[1].startswith("no tokens")
