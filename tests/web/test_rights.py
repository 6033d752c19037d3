"""The edges of access: when a session, a token and a brake end, and where each limit of a request lies."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hakaru.lake import Lake
from hakaru.settings import Web
from hakaru.web.access import sessions as sessions_of
from hakaru.web.access import tokens as tokens_of
from hakaru.web.access.gate import COOKIE, Access, is_open
from hakaru.web.access.sessions import Failures, Sessions
from hakaru.web.access.tokens import Tokens
from hakaru.web.app import create_app
from hakaru.web.guard import Guard
from tests._asyncio import finish
from tests.web._site import Running, running

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    """The time that sessions and tokens see; a test moves it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        patch.setattr(sessions_of.time, "monotonic", lambda: self.seconds)
        clock = self

        class Moved(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:
                return NOON + timedelta(seconds=clock.seconds)

        patch.setattr(tokens_of, "datetime", Moved)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def scope(**headers: str) -> dict[str, Any]:
    pairs = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    return {"type": "http", "headers": pairs, "client": ("10.0.0.9", 1), "scheme": "http"}


# ---- sessions


def test_a_session_lasts_twelve_hours_and_no_longer(clock: Clock) -> None:
    held = Sessions()
    cookie = held.begin("ann")
    for seconds, expected in ((0, "ann"), (43_199, "ann"), (43_200, None), (90_000, None)):
        clock.seconds = seconds
        assert held.token_id(cookie) == expected, seconds


def test_the_use_of_a_session_does_not_prolong_it(clock: Clock) -> None:
    held = Sessions()
    cookie = held.begin("ann")
    for hour in range(12):
        clock.seconds = hour * 3600
        assert held.token_id(cookie) == "ann"
    clock.seconds = 12 * 3600
    assert held.token_id(cookie) is None


def test_a_session_does_not_outlive_its_token(clock: Clock, tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    _, secret = tokens.create("ann", "operator", None, NOON + timedelta(hours=1))
    access = Access(tokens, Web(), open_here=False)
    cookie = access.sign_in(secret, scope())
    for seconds, there in ((0, True), (3599, True), (3600, False), (3601, False)):
        clock.seconds = seconds
        viewer = access.viewer(scope(cookie=f"{COOKIE}={cookie}"))
        assert (viewer is not None) == there, seconds
        assert (tokens.find(secret) is not None) == there, seconds


def test_each_cookie_is_its_own_session() -> None:
    held = Sessions()
    ann, bob = held.begin("ann"), held.begin("bob")
    assert (held.token_id(ann), held.token_id(bob)) == ("ann", "bob")
    held.end(ann)
    assert (held.token_id(ann), held.token_id(bob)) == (None, "bob")
    assert held.token_id(bob[:-1]) is None
    assert len(ann) == 43  # 256 bits


def test_of_too_many_sessions_the_oldest_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_of, "MAX_SESSIONS", 2)
    held = Sessions()
    first, second, third = (held.begin(name) for name in "abc")
    assert [held.token_id(each) for each in (first, second, third)] == [None, "b", "c"]


def test_signing_in_again_and_again_ends_only_ones_own_sessions() -> None:
    held = Sessions()
    operator = held.begin("boss")
    own = [held.begin("ann") for _ in range(21)]
    assert held.token_id(operator) == "boss"
    assert [held.token_id(each) for each in own[:2]] == [None, "ann"]
    assert held.token_id(own[-1]) == "ann"


# ---- the brake on wrong tokens


def test_the_eleventh_wrong_token_within_five_minutes_is_too_many(clock: Clock) -> None:
    brake = Failures()
    for i in range(10):
        clock.seconds = i
        assert not brake.add("a")
    clock.seconds = 299.9
    assert brake.add("a")
    assert not brake.add("b")


def test_after_five_minutes_the_brake_lets_go(clock: Clock) -> None:
    brake = Failures()
    for _ in range(10):
        brake.add("a")
    clock.seconds = 300
    assert not brake.add("a")


def test_the_brake_forgets_the_addresses_it_has_not_seen_for_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions_of, "MAX_PEERS", 2)
    monkeypatch.setattr(sessions_of, "MAX_FAILURES", 1)
    brake = Failures()
    assert [brake.add(each) for each in ("a", "b", "a", "c", "a", "b")] == [
        *(False, False, True, False, True),
        False,  # b was forgotten for c
    ]


# ---- tokens


@pytest.mark.parametrize("place", range(64))
def test_every_digit_of_a_hash_counts(tmp_path: Path, place: int) -> None:
    tokens = Tokens(tmp_path)
    _, secret = tokens.create("ann", "operator", None)
    document = json.loads(tokens.path.read_text())
    digits = document["tokens"][0]["hash"]
    other = "0" if digits[place] != "0" else "1"
    document["tokens"][0]["hash"] = digits[:place] + other + digits[place + 1 :]
    tokens.path.write_text(json.dumps(document))
    assert Tokens(tmp_path).find(secret) is None


def test_of_several_tokens_the_right_one_is_found(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    made = [tokens.create(name, "user", f"u-{name}") for name in ("a", "b", "c")]
    for token, secret in made:
        found = tokens.find(secret)
        assert found == token and found.viewer().user == f"u-{token.name}"
        assert tokens.by_id(token.id) == token
    assert tokens.by_id(made[0][0].id + "x") is None
    assert tokens.find("") is None and tokens.find("x" * 200) is None
    tokens.revoke(made[1][0].id)
    assert [each.name for each in tokens.all()] == ["a", "c"]


@pytest.mark.parametrize(
    "change", [{"role": "admin"}, {"role": "user", "user": None}, {"role": "user", "user": ""}]
)
def test_a_token_of_no_known_role_lets_nobody_in(
    tmp_path: Path, site: Lake, change: dict[str, Any]
) -> None:
    tokens = Tokens(tmp_path)
    _, secret = tokens.create("ann", "operator", None)
    document = json.loads(tokens.path.read_text())
    document["tokens"][0] |= change
    tokens.path.write_text(json.dumps(document))
    with running(create_app(site, access_folder=tmp_path)) as server, server.client() as client:
        answer = client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"})
        assert answer.status_code == 503


def test_a_right_token_under_another_scheme_is_wrong(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    _, secret = tokens.create("ann", "operator", None)
    access = Access(tokens, Web(), open_here=True)
    found = access.viewer(scope(authorization=f"bearer  {secret} "))
    assert found is not None and found.sees_all and not found.has_session
    with pytest.raises(Exception, match="unknown"):
        access.viewer(scope(authorization=f"Basic {secret}"))


# ---- the gate


@pytest.mark.parametrize(
    ("path", "open"),
    [
        ("/sign-in", True), ("/static/a.css", True), ("/static/x/a.css", True), ("/sign-in/", False),
        ("/sign-inx", False), ("/static", False), ("/statics/", False), ("/", False),
        ("/api/static/", False), ("/sign-out", False),
    ],
)  # fmt: skip
def test_only_the_form_and_its_looks_are_open(path: str, open: bool) -> None:
    assert is_open(path) is open


PROXY = Web(proxy_header="X-User", proxy_address="10.0.0.9", operators=("boss",))


def test_only_the_proxy_says_who_and_over_what_it_was_asked(tmp_path: Path) -> None:
    access = Access(Tokens(tmp_path), PROXY, open_here=True)
    asked = scope(x_user=" boss ", x_forwarded_proto="https")
    for client, role in (("10.0.0.9", "operator"), ("::ffff:10.0.0.9", "operator")):
        found = access.viewer(asked | {"client": (client, 1)})
        assert found is not None and (found.role, found.name, found.user) == (role, "boss", None)
        assert access.is_https(asked | {"client": (client, 1)})
    for client in ("10.0.0.8", "10.0.0.90", "110.0.0.9", "", "::1"):
        assert access.viewer(asked | {"client": (client, 1)}) is None
        assert not access.is_https(asked | {"client": (client, 1)})
    found = access.viewer(scope(x_user="ann"))
    assert found is not None and (found.role, found.user) == ("user", "ann")
    assert not access.is_https(scope())
    assert access.is_https(scope() | {"scheme": "https"})


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Sec-Fetch-Site": "none"}, 303),
        ({"Origin": "http://127.0.0.1"}, 403),  # another port
        ({}, 303),
    ],
)
def test_where_a_sign_in_may_come_from(
    fresh_closed_site: Running, headers: dict[str, str], status: int
) -> None:
    with fresh_closed_site.client() as client:
        form = {"token": fresh_closed_site.secrets["u1"]}
        answer = client.post("/sign-in", data=form, headers=headers)
        assert answer.status_code == status
        assert "Secure" not in answer.headers.get("set-cookie", "")
        if status == 303:
            assert "Max-Age=43200" in answer.headers["set-cookie"]
            assert client.get("/api/v1/me").json()["user"] == "u1"


# ---- the guard


def guarded(**changes: Any) -> int:
    """The status that the guard gives a request; 200 where it lets it pass."""
    statuses: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    headers = {"host": "localhost"} | changes.pop("headers", {})
    asked = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "query_string": b""}
    asked |= {"headers": [(k.encode(), v.encode("latin-1")) for k, v in headers.items()]}
    guard = Guard(app, changes.pop("hosts", ("localhost", "Hakaru.example")))
    finish(guard(asked | changes, None, send))  # type: ignore[arg-type]
    return statuses[0]


@pytest.mark.parametrize(
    ("path", "length", "status"),
    [
        ("/", "4000", 200), ("/", "4001", 413), ("/sign-in", "4001", 413), ("/", "0", 200),
        ("/what-if", "80000", 200), ("/what-if", "80001", 413), ("/api/v1/what-if", "80000", 200),
        ("/api/v1/what-if", "80001", 413), ("/what-if/x", "4001", 413),
        ("/", "-1", 413), ("/", "x", 413), ("/", "", 413), ("/", "²", 413),
    ],
)  # fmt: skip
def test_how_long_a_body_may_be(path: str, length: str, status: int) -> None:
    assert guarded(path=path, headers={"content-length": length}) == status


@pytest.mark.parametrize("coding", ["chunked", "gzip, chunked", "identity"])
def test_a_body_must_say_how_long_it_is(coding: str) -> None:
    assert guarded(headers={"transfer-encoding": coding}) == 413


@pytest.mark.parametrize(("num", "status"), [(7999, 200), (8000, 414)])
def test_how_long_an_address_may_be(num: int, status: int) -> None:
    """With the slash before it, 8,000 characters are allowed."""
    assert guarded(query_string=b"a" * num) == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("LOCALHOST:8000", 200), ("hakaru.example:1", 200), ("other", 421),
        ("localhost:123456", 400), ("localhost.", 421), ("user@localhost", 400), ("", 400),
    ],
)  # fmt: skip
def test_which_names_are_answered_to(host: str, status: int) -> None:
    assert guarded(headers={"host": host}) == status
    assert guarded(headers={"host": "other"}, hosts=None) == 200


def test_one_host_is_named() -> None:
    twice = [(b"host", b"localhost"), (b"host", b"localhost")]
    assert guarded() == 200
    assert guarded_raw(twice) == 400
    assert guarded_raw([]) == 400


def guarded_raw(headers: list[tuple[bytes, bytes]]) -> int:
    error = Guard(None, ("localhost",))._check(  # type: ignore[arg-type]
        {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "headers": headers}
    )
    return error.status if error else 200


@pytest.mark.parametrize(
    ("query", "status"),
    [
        (b"a=%20+%E8%A8%88", 200), (b"a=%7f", 400), (b"a=%1f", 400), (b"a=%00", 400),
        (b"a=%80", 400), (b"a=%C3", 400), (b"a=%C2%A0", 200), (b"a=%0a", 400),
    ],
)  # fmt: skip
def test_an_address_is_text(query: bytes, status: int) -> None:
    assert guarded(query_string=query) == status


@pytest.mark.parametrize(
    ("method", "site", "mode", "status"),
    [
        ("GET", "cross-site", "navigate", 200), ("GET", "cross-site", "cors", 403),
        ("POST", "cross-site", "navigate", 403), ("POST", "same-origin", "cors", 200),
        ("GET", "same-site", "cors", 200),
    ],
)  # fmt: skip
def test_what_another_site_may_do(method: str, site: str, mode: str, status: int) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode}
    assert guarded(method=method, headers=headers) == status


def test_a_chunked_body_is_refused_by_the_server_however_short(open_site: Running) -> None:
    parts = urlsplit(open_site.url)
    head = "POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    for chunk in (b"3\r\nabc\r\n0\r\n\r\n", b"1388\r\n" + b"a" * 5000 + b"\r\n0\r\n\r\n"):
        assert parts.hostname and parts.port
        with socket.create_connection((parts.hostname, parts.port), 60) as connection:
            connection.sendall(head.encode() + chunk)
            assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")
