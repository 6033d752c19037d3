"""The sessions behind the app: stopped in time, never blocked by a writer, and remembered within bounds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hakaru.analyses import Selection, Session
from hakaru.lake import Lake
from hakaru.web.app import create_app
from hakaru.web.cache import ENTRY_BYTES, Cache
from hakaru.web.problems import Busy, TooSlow
from hakaru.web.readers import Readers
from tests.conftest import job, put_jobs
from tests.web._site import running, settings

API = "/api/v1"
TIMEOUT_S = 30
ENDLESS = "SELECT count(*) AS n FROM range(10000000000) AS a, jobs"
COUNT = "SELECT count(*) AS n FROM jobs"


@pytest.fixture
def few(lake: Lake) -> Lake:
    return put_jobs(lake, [job(i) for i in range(20)])


def count(readers: Readers) -> int:
    return int(readers.rows(COUNT, Selection(clusters=("c",)))[0]["n"])


def test_a_query_over_the_limit_is_stopped(few: Lake) -> None:
    readers = Readers(few, settings(query_seconds=0.3, sessions=1))
    with pytest.raises(TooSlow, match=r"stopped after 0\.3 s") as stopped:
        readers.table(ENDLESS, Selection(clusters=("c",)))
    assert "web.query_seconds" in str(stopped.value.fix)
    assert count(readers) == 20, "the session's place is free again"


def test_whoever_finds_no_free_session_is_told(few: Lake) -> None:
    readers = Readers(few, settings(query_seconds=0.5, sessions=1))
    begun, told = threading.Event(), threading.Event()

    def hold(session: Session) -> None:
        begun.set()
        told.wait(60)

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(readers.ask, "hold", hold)
        begun.wait()
        with pytest.raises(Busy, match="all 1 sessions were busy"):
            count(readers)
        told.set()
        held.result()
    assert count(readers) == 20


def test_over_http_a_slow_query_is_a_504(lake: Lake) -> None:
    """A thousand samples of four thousand jobs each take far longer than a list of jobs."""
    put_jobs(lake, [job(i, num_gpus=1 + i % 2, run_s=60.0 + i) for i in range(4000)])
    with (
        running(create_app(lake, settings(query_seconds=0.25))) as server,
        server.client() as client,
    ):
        client.get(f"{API}/clusters")
        answer = client.get(f"{API}/analyses/size-vs-walltime", params={"param.draws": 1000})
        assert answer.status_code == 504
        assert "web.query_seconds" in answer.json()["fix"]
        assert answer.headers["content-type"] == "application/problem+json"
        assert client.get(f"{API}/jobs").json()["num_rows"] == 4000


def test_reads_go_on_while_ingest_and_compaction_do(lake: Lake) -> None:
    """Files are deleted at once, under the readers: each answer is of one commit, and none is an error."""
    put_jobs(lake, [job(0)])
    stop, seen, wrong = threading.Event(), [], []
    with running(create_app(lake, settings(sessions=2), cache=False)) as server:

        def read() -> None:
            with server.client() as client:
                while not stop.is_set():
                    answer = client.get(f"{API}/jobs", params={"size": 200})
                    if answer.status_code != 200:
                        wrong.append(answer.text)
                        continue
                    page: dict[str, Any] = answer.json()
                    seen.append(page["num_rows"])

        readers = [threading.Thread(target=read) for _ in range(4)]
        for thread in readers:
            thread.start()
        for i in range(1, 13):
            put_jobs(lake, [job(i)])
            if i % 3 == 0:
                lake.compact(retain_hours=0)
        stop.set()
        for thread in readers:
            thread.join()
        with server.client() as client:
            assert client.get(f"{API}/jobs").json()["num_rows"] == 13
    assert not wrong, wrong[0]
    assert len(seen) > 12 and set(seen) <= set(range(1, 14))


def test_a_snapshot_whose_files_are_gone_is_left(few: Lake) -> None:
    readers = Readers(few, settings(sessions=1), cache=False)
    assert count(readers) == 20
    put_jobs(few, [job(99)])
    few.compact(retain_hours=0)
    assert count(readers) == 21


def test_what_was_answered_is_kept_until_the_lake_changes(few: Lake) -> None:
    readers = Readers(few)
    asked = []

    def answer(session: Session) -> pa.Table:
        asked.append(1)
        return session.ask(COUNT, Selection(clusters=("c",)))

    assert readers.ask("q", answer) is readers.ask("q", answer)
    assert len(asked) == 1
    put_jobs(few, [job(99)])
    assert readers.ask("q", answer).to_pylist() == [{"n": 21}]
    (few.workspace / "hakaru.toml").write_text("[clusters.c]\nzone = 'Asia/Tokyo'\n")
    readers.ask("q", answer)
    assert len(asked) == 3
    assert readers.settings.cluster("c").zone == "Asia/Tokyo"


def test_an_answer_from_before_a_commit_is_not_given_after_it(few: Lake) -> None:
    """The lake changes while the answer is made, and somebody else notices before it is kept."""
    readers = Readers(few)

    def answer(session: Session) -> pa.Table:
        found = session.ask(COUNT, Selection(clusters=("c",)))
        if found.to_pylist() == [{"n": 20}]:
            put_jobs(few, [job(99)])
            readers.version()
        return found

    assert readers.ask("q", answer).to_pylist() == [{"n": 20}]
    assert readers.ask("q", answer).to_pylist() == [{"n": 21}]


def test_the_cache_is_bounded_in_bytes_and_the_oldest_leave() -> None:
    made: list[str] = []

    def make(key: str, size: int) -> bytes:
        made.append(key)
        return b"x" * size

    cache: Cache[bytes] = Cache(4 * (ENTRY_BYTES + 1000), len)
    for key in "abcd":
        cache.get(key, lambda key=key: make(key, 1000))  # type: ignore[misc]
    cache.get("a", lambda: make("a", 1000))
    cache.get("e", lambda: make("e", 1000))
    assert cache.num_bytes == 4 * (ENTRY_BYTES + 1000)
    cache.get("a", lambda: make("a", 1000))
    cache.get("b", lambda: make("b", 1000))
    cache.get("large", lambda: make("large", 50_000))
    cache.get("large", lambda: make("large", 50_000))
    cache.get("a", lambda: make("a", 1000))  # what is too large to keep pushes nothing out
    assert made == ["a", "b", "c", "d", "e", "b", "large", "large"]
    assert cache.num_bytes <= cache.max_bytes
    cache.clear()
    assert cache.num_bytes == 0


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Released once for each who waits for the answer to another's question."""
    waiting = threading.Semaphore(0)

    class Watched(Future[int]):
        def result(self, timeout: float | None = None) -> int:
            waiting.release()
            return super().result(timeout)

    monkeypatch.setattr("hakaru.web.cache.Future", Watched)
    return waiting


def asked_at_once(
    cache: Cache[int], answer: Callable[[], int], waiting: threading.Semaphore
) -> tuple[list[Future[int]], int]:
    """What four who ask the same get, and how often it was asked; the answer comes when three wait."""
    calls: list[int] = []
    go = threading.Event()

    def make() -> int:
        calls.append(1)
        go.wait()
        return answer()

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(cache.get, "q", make) for _ in range(4)]
        all_wait = all(waiting.acquire(timeout=TIMEOUT_S) for _ in range(3))
        go.set()
    assert all_wait, "some asked for themselves"
    return asked, len(calls)


def test_a_question_that_many_ask_at_once_is_asked_once(waiting: threading.Semaphore) -> None:
    cache: Cache[int] = Cache(100_000, lambda value: 1)
    asked, num_calls = asked_at_once(cache, lambda: 7, waiting)
    assert [each.result() for each in asked] == [7] * 4
    assert num_calls == 1


def test_a_failure_is_told_to_all_who_wait_and_not_kept(waiting: threading.Semaphore) -> None:
    def fail() -> int:
        raise ValueError("no")

    cache: Cache[int] = Cache(100_000, lambda value: 1)
    asked, num_calls = asked_at_once(cache, fail, waiting)
    assert [str(each.exception()) for each in asked] == ["no"] * 4
    assert num_calls == 1
    assert cache.get("q", lambda: 7) == 7


def test_people_are_counted_in_the_fullest_file_where_ids_are_per_file(tmp_path: Path) -> None:
    """Six names over two files may be three people."""
    from hakaru.web.privacy._people import num_people

    rows = [job(i, user=f"{log}/{i % 3}") for i, log in enumerate(["Q1"] * 3 + ["Q2"] * 3)]
    for facts, people in (("{}", 6), ('{"users_per_file": true}', 3)):
        lake = put_jobs(Lake.create(tmp_path / str(people)), rows, facts)
        assert num_people(Readers(lake), Selection(clusters=("c",)), "jobs") == people
