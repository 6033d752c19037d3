"""Nobody locks others out: half-open connections, slow requests, and many questions at once."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from hakaru.lake import Lake
from hakaru.settings import Web
from hakaru.web import turns
from hakaru.web.access.tokens import Tokens
from hakaru.web.access.viewer import ANYBODY_HERE, Viewer
from hakaru.web.addresses import is_proxy, origin_of
from hakaru.web.app import create_app
from hakaru.web.connections import Connections
from hakaru.web.server import most_connections, server_of
from hakaru.web.turns import _Line
from tests._asyncio import finish
from tests.web._site import Running, running, settings

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
BUSY = b"HTTP/1.1 503 Service Unavailable"
STATIC = "/static/hakaru.css"
TIMEOUT_S = 60


@pytest.fixture
def patient(site: Lake) -> Iterator[Running]:
    """A server whose deadline for a request never comes within a test."""
    with limited(site, request_s=3600) as server:
        yield server


@contextmanager
def limited(site: Lake, **limits: float) -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.web._site.server_of", lambda app: server_of(app, **limits))
        with running(create_app(site)) as server:
            yield server


def connected(server: Running, source: str = "127.0.0.1") -> socket.socket:
    parts = urlsplit(server.url)
    assert parts.hostname and parts.port
    address = (parts.hostname, parts.port)
    return socket.create_connection(address, TIMEOUT_S, source_address=(source, 0))


def client_at(server: Running, source: str, token: str | None = None) -> httpx.Client:
    return server.client(token, transport=httpx.HTTPTransport(local_address=source))


# ---- connections


def test_half_open_connections_of_one_address_lock_nobody_out(patient: Running) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(connected(patient)) for _ in range(300)]
        for each in opened:
            with suppress(ConnectionError):  # closed already, to make room
                each.sendall(HALF)
        for source in ("127.0.0.2", "127.0.0.1"):
            with client_at(patient, source) as client:
                assert client.get(STATIC).status_code == 200
                assert client.get("/api/v1/clusters").status_code == 200
        # 64 of the 300 may stay, and the oldest make room
        said = [first_line(each) for each in opened[: 300 - 64]]
        assert set(said) <= {BUSY, None} and said.count(BUSY) > 100


def first_line(connection: socket.socket) -> bytes | None:
    """What the server said last; nothing where the answer was lost, as bytes of ours were unread."""
    try:
        return connection.recv(1000).partition(b"\r\n")[0]
    except ConnectionResetError:
        return None


@pytest.mark.parametrize("sent", [b"", HALF], ids=["nothing", "half"])
def test_a_request_that_is_not_complete_in_time_is_ended(site: Lake, sent: bytes) -> None:
    with limited(site, request_s=0.3) as server, connected(server) as slow:
        slow.sendall(sent)
        assert slow.recv(1000).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert slow.recv(1000) == b""


def test_the_next_request_of_a_connection_has_the_same_deadline(site: Lake) -> None:
    with limited(site, request_s=0.3) as server, connected(server) as slow:
        connection = http.client.HTTPConnection("127.0.0.1")
        connection.sock = slow
        connection.request("GET", STATIC)
        answer = connection.getresponse()
        assert (answer.status, len(answer.read()) > 1000) == (200, True)
        slow.sendall(HALF)
        assert slow.recv(1000).startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_a_body_that_does_not_come_ends_the_connection(site: Lake) -> None:
    head = (
        b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\ntok"
    )
    with limited(site, request_s=0.3) as server, connected(server) as slow:
        slow.sendall(head)
        assert slow.recv(1000) == b""
        assert httpx.get(f"{server.url}static/hakaru.css").status_code == 200


def test_a_question_that_takes_longer_than_the_deadline_is_answered(site: Lake) -> None:
    """The deadline is for what the client owes, not for the answer."""
    app, slow = with_slow(create_app(site))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.web._site.server_of", lambda app: server_of(app, request_s=0.1))
        with running(app) as server, ThreadPoolExecutor() as pool, server.client() as client:
            asked = pool.submit(client.get, "/slow")
            assert slow.started.acquire(timeout=TIMEOUT_S)
            with connected(server) as late:
                assert late.recv(1000).startswith(b"HTTP/1.1 408")  # its deadline has passed
            slow.go.set()
            assert asked.result().status_code == 200


@dataclass(eq=False)
class Fake:
    address: str
    owes_request: bool = True
    closed: bool = False

    def give_way(self) -> None:
        self.closed = True


def test_the_oldest_that_owes_its_request_gives_way() -> None:
    held = Connections(most=100, most_of_address=3)
    busy, first, second = Fake("10.0.0.1", False), Fake("10.0.0.1"), Fake("10.0.0.1")
    assert all(held.add(each) for each in (busy, first, second))
    assert held.add(Fake("10.0.0.1"))
    assert (busy.closed, first.closed, second.closed) == (False, True, False)
    assert len(held) == 3


def test_where_all_are_at_work_a_new_one_is_refused() -> None:
    held = Connections(most=100, most_of_address=2)
    mine = [Fake("10.0.0.1", False) for _ in range(2)]
    assert all(held.add(each) for each in mine)
    assert not held.add(Fake("10.0.0.1"))
    assert held.add(Fake("10.0.0.2"))
    held.discard(mine[0])
    held.discard(mine[0])
    assert held.add(Fake("10.0.0.1"))
    assert len(held) == 3


def test_all_together_have_a_limit_too() -> None:
    held = Connections(most=4, most_of_address=3)
    many = [Fake(f"10.0.0.{i}") for i in range(4)]
    assert all(held.add(each) for each in many)
    assert held.add(Fake("10.0.0.9"))
    assert [each.closed for each in many] == [True, False, False, False]
    for each in many:
        each.owes_request = False
    assert held.add(Fake("10.0.0.9", False))  # the place of the other one of 10.0.0.9
    assert not held.add(Fake("10.0.0.8"))
    assert len(held) == 4


def test_a_proxy_stands_for_many() -> None:
    held = Connections(most=5, most_of_address=2, proxy="10.0.0.1")
    assert all(held.add(Fake("10.0.0.1", False)) for _ in range(5))
    assert not held.add(Fake("10.0.0.1"))


def test_a_neighbour_of_the_proxy_has_limits() -> None:
    """2001:db8::2 is in the proxy's /64: it is counted, apart from the proxy, and closes nothing of it."""
    held = Connections(most=20, most_of_address=2, proxy="2001:db8::1")
    through = [Fake("2001:db8:0::1") for _ in range(5)]
    assert all(held.add(each) for each in through)
    assert all(held.add(Fake("2001:db8::2", False)) for _ in range(2))
    assert not held.add(Fake("2001:db8::3"))
    assert not any(each.closed for each in through)


@pytest.mark.parametrize(
    ("address", "proxy", "same"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8:0::1", "2001:db8::1", True),
        ("2001:db8::2", "2001:db8::1", False),
        ("fe80::1%eth0", "fe80::1%eth0", True),
        ("fe80::1%eth1", "fe80::1%eth0", False),
        ("10.0.0.1", None, False),
        ("", None, False),
        ("", "10.0.0.1", False),
    ],
)
def test_the_proxy_is_one_address(address: str, proxy: str | None, same: bool) -> None:
    assert is_proxy(address, proxy) is same


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("", ""),
    ],
)
def test_one_host_is_one_origin(address: str, origin: str) -> None:
    assert origin_of(address) == origin


def test_files_are_left_for_the_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, expected in ((1024, 512), (1_000_000, 1000), (20, 16), (-1, 1000)):
        monkeypatch.setattr("resource.getrlimit", lambda _, soft=soft: (soft, soft))
        assert most_connections() == expected


# ---- questions


@dataclass
class Slow:
    """A question that says that it has begun, and waits for a sign."""

    started: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go: threading.Event = field(default_factory=threading.Event)

    def answer(self) -> dict[str, str]:
        self.started.release()
        assert self.go.wait(TIMEOUT_S)
        return {}


def with_slow(app: Any) -> tuple[Any, Slow]:
    slow = Slow()
    app.get("/slow")(slow.answer)
    return app, slow


@contextmanager
def asking(
    site: Lake, folder: Path, **web: Any
) -> Iterator[tuple[Running, Slow, ThreadPoolExecutor]]:
    """A site with two users and a slow question, which is answered at the end in any case."""
    app, slow = with_slow(create_app(site, settings(**web), access_folder=folder))
    with running(app) as server, ThreadPoolExecutor(80) as pool:
        for user in ("u1", "u8"):
            server.secrets[user] = Tokens(folder).create(user, "user", user)[1]
        try:
            yield server, slow, pool
        finally:
            slow.go.set()


def begun(slow: Slow, num: int) -> bool:
    return all(slow.started.acquire(timeout=TIMEOUT_S) for _ in range(num))


def test_sixty_questions_of_one_viewer_delay_nobody(site: Lake, tmp_path: Path) -> None:
    with asking(site, tmp_path) as (server, slow, pool), ExitStack() as stack:
        mine = [stack.enter_context(server.client("u1")) for _ in range(60)]
        answers = [pool.submit(each.get, "/slow") for each in mine]
        assert begun(slow, 3)  # of the four sessions
        refused = [each for each in first_answers(answers, 41) if each.status_code == 429]
        assert len(refused) == 41  # 3 at work, 16 waiting
        assert refused[0].headers["Retry-After"] == "60"
        assert "19 of your questions are not answered yet" in refused[0].json()["detail"]
        with server.client("u8") as other:
            assert other.get(STATIC).status_code == 200
            assert other.get("/sign-in").status_code == 200
            assert other.get("/api/v1/me").json()["name"] == "u8"
        assert not slow.started.acquire(blocking=False)
        slow.go.set()
        assert sorted(each.result().status_code for each in answers) == [200] * 19 + [429] * 41


def first_answers(answers: list[Future[httpx.Response]], num: int) -> list[httpx.Response]:
    found: list[httpx.Response] = []
    enough = threading.Event()

    def keep(each: Future[httpx.Response]) -> None:
        found.append(each.result())
        if len(found) >= num:
            enough.set()

    for each in answers:
        each.add_done_callback(keep)
    assert enough.wait(TIMEOUT_S)
    return found


def test_static_files_wait_for_no_thread(site: Lake, tmp_path: Path) -> None:
    """All forty threads of the server are held by questions, and a file is sent all the same."""
    app, slow = with_slow(create_app(site, settings(sessions=50)))
    with running(app) as server, ThreadPoolExecutor(50) as pool, ExitStack() as stack:
        mine = [stack.enter_context(server.client()) for _ in range(50)]
        answers = [pool.submit(each.get, "/slow") for each in mine]
        assert begun(slow, 40)
        assert httpx.get(f"{server.url}static/hakaru.css", timeout=TIMEOUT_S).status_code == 200
        slow.go.set()
        assert {each.result().status_code for each in answers} == {200}


def test_where_nobody_signs_in_fifty_are_answered(site: Lake) -> None:
    with running(create_app(site)) as server, ThreadPoolExecutor(50) as pool:
        urls = [f"{server.url}api/v1/me"] * 50
        found = pool.map(lambda url: httpx.get(url, timeout=TIMEOUT_S).status_code, urls)
        assert set(found) == {200}


def test_who_shares_an_app_without_signing_in_reads_what_is_full(
    site: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The questions that wait may all be others': nobody's own are counted."""
    monkeypatch.setattr(turns, "MAX_WAITING_HERE", 0)
    app, slow = with_slow(create_app(site, settings(sessions=1)))
    with running(app) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(server.client().get, "/slow")
        assert begun(slow, 1)
        refused = server.client().get("/slow")
        slow.go.set()
        assert first.result().status_code == 200
    assert refused.status_code == 429
    told = "1 of the questions of people who are not signed in are not answered yet"
    assert told in refused.json()["detail"]


@pytest.mark.parametrize(
    ("viewer", "whose"),
    [
        (Viewer("user", "ann", "ann"), "your questions"),
        (ANYBODY_HERE, "the questions of people who are not signed in"),
    ],
)
def test_each_limit_says_whose_questions_it_counts(viewer: Viewer, whose: str) -> None:
    scope = {"client": ("192.0.2.7", 1), "headers": [], "state": {"viewer": viewer}}
    wanted: Any = turns.Turns(with_slow, Web())._wanted(scope)
    said = {key[0]: line.questions for key, line in wanted}
    assert said == {"viewer": whose, "address": "the questions from your address"}


def test_a_turn_that_does_not_come_is_said_and_leaves_no_trace(site: Lake, tmp_path: Path) -> None:
    with asking(site, tmp_path, sessions=2, query_seconds=0.3) as (server, slow, pool):
        first = pool.submit(server.client("u1").get, "/slow")
        assert begun(slow, 1)
        late = server.client("u1").get("/slow")
        assert (late.status_code, late.headers["Retry-After"]) == (503, "2")
        assert "took longer than 0.3 s" in late.json()["detail"]
        slow.go.set()
        assert first.result().status_code == 200
        assert server.client("u1").get("/slow").status_code == 200


def test_who_waits_longest_is_next() -> None:
    async def waits() -> list[int]:
        line, order = _Line("your questions", 1, 5), []

        async def ask(number: int) -> None:
            await line.enter(TIMEOUT_S)
            order.append(number)
            line.leave()

        await line.enter(TIMEOUT_S)
        asked = [asyncio.create_task(ask(number)) for number in range(4)]
        while len(line.waiting) < 4:
            await asyncio.sleep(0)
        line.leave()
        await asyncio.gather(*asked)
        assert line.is_idle
        return order

    assert finish(waits()) == [0, 1, 2, 3]


def test_those_who_wait_get_their_turns(site: Lake, tmp_path: Path) -> None:
    """Two may work and three wait: when the two end, the three get their turns and nothing is left."""
    with asking(site, tmp_path, sessions=3) as (server, slow, pool):
        answers = [pool.submit(server.client("u1").get, "/slow") for _ in range(5)]
        assert begun(slow, 2)
        assert not slow.started.acquire(blocking=False)
        slow.go.set()
        assert [each.result().status_code for each in answers] == [200] * 5
        assert begun(slow, 3)


def test_an_address_has_its_share_unless_it_is_the_proxy(site: Lake, tmp_path: Path) -> None:
    with asking(site, tmp_path, address_connections=8) as (server, slow, pool):
        mine = [pool.submit(server.client("u1").get, "/slow") for _ in range(3)]
        assert begun(slow, 3)
        held = pool.submit(server.client("u8").get, "/api/v1/me")
        with client_at(server, "127.0.0.2", "u8") as elsewhere:
            assert elsewhere.get("/api/v1/me").status_code == 200
        assert not held.done()
        slow.go.set()
        assert [each.result().status_code for each in (*mine, held)] == [200] * 4


def test_people_behind_the_proxy_do_not_share_a_turn(site: Lake, tmp_path: Path) -> None:
    proxy = {"proxy_header": "X-User", "proxy_address": "127.0.0.1", "address_connections": 4}
    with asking(site, tmp_path, **proxy) as (server, slow, pool):
        ann, bob = (server.client(headers={"X-User": name}) for name in ("ann", "bob"))
        mine = [pool.submit(ann.get, "/slow") for _ in range(3)]
        assert begun(slow, 3)
        assert bob.get("/api/v1/me").json()["name"] == "bob"
        slow.go.set()
        assert [each.result().status_code for each in mine] == [200] * 3
