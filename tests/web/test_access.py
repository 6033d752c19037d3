"""Who gets in: nobody without a token once there is one, and nobody by another's header."""

from __future__ import annotations

import json
import re
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.web.access.gate import COOKIE
from hakaru.web.access.tokens import Tokens, digest_of
from hakaru.web.app import create_app
from tests.web._site import Running, running, settings

ME = "/api/v1/me"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def routes_of(app: object) -> list[tuple[str, str]]:
    """Every method and path of the app itself, with something for each parameter."""
    found = []
    stack = list(app.routes)  # type: ignore[attr-defined]
    while stack:
        route = stack.pop()
        inner = getattr(route, "original_router", None) or getattr(route, "router", None)
        if getattr(route, "path", None) is None and inner is not None:
            stack += inner.routes
            continue
        path = re.sub(r"{[^}]*}", "queues", route.path)
        found += [(method, path) for method in getattr(route, "methods", None) or {"GET"}]
    return sorted(set(found))


def test_every_route_is_found(closed_site: Running) -> None:
    paths = {path for _, path in routes_of(closed_site.app)}
    assert {
        "/api/v1/jobs",
        "/api/v1/analyses/queues",
        "/api/v1/openapi.json",
        "/",
        "/sign-out",
        "/what-if",
        "/what-if/queues/cancel",
        "/api/v1/what-if",
        "/api/v1/what-if/queues/nodes",
        "/measure",
        "/api/v1/measure/queues/figures/queues",
    } <= paths
    assert len(paths) >= 16


def test_no_route_answers_a_stranger(closed_site: Running) -> None:
    """Neither without a token nor with a wrong one; of the form alone, and of what it looks like."""
    with closed_site.client() as client:
        for method, path in [
            *routes_of(closed_site.app),
            ("GET", "/nowhere"),
            ("PUT", "/api/v1/jobs"),
        ]:
            if path.startswith(("/sign-in", "/static")):
                continue
            answer = client.request(method, path)
            assert answer.status_code == 401, (method, path, answer.text)
            problem = {} if method == "HEAD" else answer.json()
            assert not set(problem) - {"title", "status", "detail", "fix"}
            for wrong in ("Bearer x", "Bearer", "Basic dTE6dTE=", "Bearer " + "hakaru_" + "A" * 43):
                answer = client.request(method, path, headers={"Authorization": wrong})
                assert answer.status_code in (401, 429), (method, path)


def test_a_browser_is_led_to_the_form(closed_site: Running) -> None:
    with closed_site.client(headers={"Accept": "text/html"}) as client:
        answer = client.get("/jobs?queue=a&user=b")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/sign-in?next=%2Fjobs%3Fqueue%3Da%26user%3Db"
        form = client.get("/sign-in")
        assert form.status_code == 200
        assert 'action="/sign-in"' in form.text


def test_tokens_say_who_asks(closed_site: Running) -> None:
    with closed_site.client("operator") as client:
        assert client.get(ME).json()["role"] == "operator"
    with closed_site.client("u1") as client:
        assert client.get(ME).json() == {
            "name": "u1",
            "role": "user",
            "user": "u1",
            "signed_in": True,
            "sign_out": False,
        }


def test_the_form_begins_a_session_and_signing_out_ends_it(closed_site: Running) -> None:
    with closed_site.client() as client:
        fields = {"token": closed_site.secrets["u1"], "next": "/jobs?queue=short"}
        answer = client.post("/sign-in", data=fields)
        assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?queue=short")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
        assert closed_site.secrets["u1"] not in cookie
        assert client.get(ME).json()["sign_out"] is True
        kept = client.cookies[COOKIE]
        assert client.post("/sign-out").status_code == 303
        stale = client.get(ME, headers={"Cookie": f"{COOKIE}={kept}"})
        assert stale.status_code == 401


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", "/a\r\nX: y", ""]
)
def test_nobody_is_sent_elsewhere(closed_site: Running, to: str) -> None:
    with closed_site.client() as client:
        answer = client.post("/sign-in", data={"token": closed_site.secrets["u1"], "next": to})
        assert answer.headers["location"] == "/"


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
)
def test_forms_of_other_sites_are_refused(closed_site: Running, headers: dict[str, str]) -> None:
    with closed_site.client() as client:
        body = {"token": closed_site.secrets["u1"]}
        answer = client.post("/sign-in", data=body, headers=headers)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


def test_a_form_is_a_form(closed_site: Running) -> None:
    with closed_site.client() as client:
        assert client.post("/sign-in", json={"token": "x"}).status_code == 400
        assert client.post("/sign-in", content=b"token=\xff", headers=FORM).status_code == 400
        assert client.post("/sign-in", content=b"a=1&" * 900, headers=FORM).status_code == 400
        assert client.post("/sign-in", content=b"a" * 5000, headers=FORM).status_code == 413


def test_a_revoked_or_expired_token_ends_its_sessions(site: Lake, tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    _, ann = tokens.create("ann", "operator", None)
    _, late = tokens.create("late", "operator", None, datetime.now(UTC) - timedelta(seconds=1))
    with running(create_app(site, access_folder=tmp_path)) as server, server.client() as client:
        assert client.get(ME, headers={"Authorization": f"Bearer {late}"}).status_code == 401
        assert client.post("/sign-in", data={"token": ann}).status_code == 303
        assert client.get(ME).status_code == 200
        tokens.revoke("ann")
        assert client.get(ME).status_code == 401
        tokens.revoke("late")
        # the file stays, empty: the app does not fall open again
        assert client.get(ME).status_code == 401


def test_an_open_app_closes_when_the_first_token_is_made(site: Lake, tmp_path: Path) -> None:
    with running(create_app(site, access_folder=tmp_path)) as server, server.client() as client:
        assert client.get(ME).json()["signed_in"] is False
        Tokens(tmp_path).create("ann", "operator", None)
        assert client.get(ME).status_code == 401


def test_an_unreadable_file_of_tokens_lets_nobody_in(site: Lake, tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text("{")
    with running(create_app(site, access_folder=tmp_path)) as server, server.client() as client:
        assert client.get(ME).status_code == 401
        answer = client.get(ME, headers={"Authorization": "Bearer x"})
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text


def test_an_app_that_others_reach_is_never_open(site: Lake, tmp_path: Path) -> None:
    app = create_app(site, access_folder=tmp_path, loopback=False)
    with running(app) as server, server.client() as client:
        assert client.get(ME).status_code == 401


def test_too_many_wrong_tokens(site: Lake, tmp_path: Path) -> None:
    _, right = Tokens(tmp_path).create("ann", "operator", None)
    with running(create_app(site, access_folder=tmp_path)) as server, server.client() as client:
        statuses = [client.post("/sign-in", data={"token": "x"}).status_code for _ in range(12)]
        assert statuses == [401] * 10 + [429] * 2
        assert "retry-after" in client.post("/sign-in", data={"token": "x"}).headers
        # a right one still gets in: nobody can lock out another
        assert client.post("/sign-in", data={"token": right}).status_code == 303


def test_tokens_are_kept_as_hashes_that_only_the_owner_reads(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    token, secret = tokens.create("ann", "user", "ann")
    text = tokens.path.read_text()
    assert secret not in text and secret.removeprefix("hakaru_") not in text
    assert json.loads(text)["tokens"][0]["hash"] == digest_of(secret)
    assert stat.S_IMODE(tokens.path.stat().st_mode) == 0o600
    assert len(secret.removeprefix("hakaru_")) == 43  # 256 bits
    assert Tokens(tmp_path).find(secret) == token
    with pytest.raises(HakaruError, match="has a token 'ann' already"):
        tokens.create("ann", "operator", None)
    with pytest.raises(HakaruError, match="no token 'bob'; known: ann"):
        tokens.revoke("bob")


PROXY = {"proxy_header": "X-Remote-User", "proxy_address": "127.0.0.1", "operators": ("boss",)}


def test_the_proxy_names_who_asks(site: Lake, tmp_path: Path) -> None:
    app = create_app(site, settings(**PROXY), access_folder=tmp_path)
    with running(app) as server, server.client() as client:
        named = client.get(ME, headers={"X-Remote-User": "u1"}).json()
        assert (named["role"], named["user"]) == ("user", "u1")
        ann = client.get(ME, headers={"X-Remote-User": "Ann"}).json()
        assert (ann["name"], ann["user"]) == ("Ann", "Ann")  # logs tell Ann from ann
        assert client.get(ME, headers={"X-Remote-User": "Boss"}).json()["role"] == "user"
        assert client.get(ME, headers={"X-Remote-User": "boss"}).json()["role"] == "operator"
        assert client.get(ME).status_code == 401
        assert client.get(ME, headers={"X-Remote-User": ""}).status_code == 401
        twice = [("X-Remote-User", "u1"), ("X-Remote-User", "boss")]
        assert client.get(ME, headers=twice).status_code == 400


def test_from_any_other_address_the_header_is_ignored(site: Lake, tmp_path: Path) -> None:
    app = create_app(
        site, settings(**PROXY | {"proxy_address": "10.1.2.3"}), access_folder=tmp_path
    )
    with running(app) as server, server.client() as client:
        sent = {"X-Remote-User": "boss", "X-Forwarded-For": "10.1.2.3", "Forwarded": "for=10.1.2.3"}
        assert client.get(ME, headers=sent).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "a b", "[::1", "", "127.1"]
)
def test_another_machines_name_is_refused(open_site: Running, host: str) -> None:
    """A page whose name leads here (DNS rebinding) reads nothing."""
    with open_site.client() as client:
        answer = client.get(ME, headers={"Host": host})
        assert answer.status_code in (400, 421)
        assert "role" not in answer.text


def test_other_sites_may_link_here_and_nothing_else(open_site: Running) -> None:
    with open_site.client(headers={"Sec-Fetch-Site": "cross-site"}) as client:
        assert client.get("/", headers={"Sec-Fetch-Mode": "navigate"}).status_code == 200
        for mode in ("no-cors", "cors", "websocket"):
            assert client.get("/api/v1/jobs", headers={"Sec-Fetch-Mode": mode}).status_code == 403
        assert client.post("/sign-out", headers={"Sec-Fetch-Mode": "navigate"}).status_code == 403


def test_every_answer_has_the_security_headers(closed_site: Running) -> None:
    paths = ("/api/v1/me", "/nowhere", "/sign-in", "/", "/api/v1/jobs?x=1", "/api/v1/docs")
    for token in (None, "operator"):
        with closed_site.client(token) as client:
            for path in paths:
                headers = client.get(path).headers
                assert "default-src 'none'" in headers["content-security-policy"]
                assert "unsafe" not in headers["content-security-policy"]
                assert "frame-ancestors 'none'" in headers["content-security-policy"]
                assert headers["x-content-type-options"] == "nosniff"
                assert headers["referrer-policy"] == "same-origin"
                assert headers["cache-control"] == "no-store"
                assert "server" not in headers


def test_the_log_has_neither_tokens_nor_queries(
    closed_site: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with closed_site.client("operator") as client:
        client.get("/api/v1/jobs", params={"user": "somebody-secret"})
        client.get("/api/v1/%0a%0dforged")
        client.get("/api/v1/nowhere")
    # a line is written once its answer has been sent
    deadline = time.monotonic() + 30
    while "GET /api/v1/nowhere 404" not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.01)
    text = "\n".join(record.getMessage() for record in caplog.records if record.name != "httpx")
    assert "GET /api/v1/jobs 200" in text and "GET /api/v1/nowhere 404" in text
    assert "somebody-secret" not in text
    assert closed_site.secrets["operator"] not in text
    assert "\nforged" not in text


def test_https_makes_the_cookie_secure(site: Lake, tmp_path: Path) -> None:
    _, right = Tokens(tmp_path).create("ann", "operator", None)
    app = create_app(site, settings(**PROXY), access_folder=tmp_path)
    with running(app) as server, httpx.Client(base_url=server.url) as client:
        sent = {"X-Forwarded-Proto": "https"}
        answer = client.post("/sign-in", data={"token": right}, headers=sent)
        assert "Secure" in answer.headers["set-cookie"]
