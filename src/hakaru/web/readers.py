"""The engine sessions that answer the web: few, with a limit of time, on the newest commit.

A session reads one snapshot. A reader that finds the lake changed opens its session anew; an ingest is
never waited for. Where compaction has deleted a file under a snapshot, the question is asked again.
All share the memory that `engine.memory` allows the process' one DuckDB.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from hakaru.analyses import Analysis, Result, Selection, Session, Unit, open_session
from hakaru.engine import Value
from hakaru.errors import HakaruError, InterruptedQuery
from hakaru.lake import Lake
from hakaru.schema import RUNS
from hakaru.settings import FILE_NAME, Settings, load
from hakaru.web.cache import Cache
from hakaru.web.problems import Busy, TooSlow, WebError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Version = tuple[Any, ...]
ATTEMPTS = 4
INTERRUPT_EVERY_S = 0.05
GONE = re.compile(r"No such file|cannot open file|No files found|does not exist", re.IGNORECASE)


def version_of(lake: Lake) -> Version:
    """What changes with every commit and with the settings."""
    return (*lake.version(), _stamp(lake.workspace / FILE_NAME))


@dataclass(frozen=True)
class Search:
    """Columns of `jobs` that a query needs, and a condition on them with `{0}` … for the values."""

    columns: tuple[str, ...]
    condition: str
    values: tuple[Value, ...]


@dataclass
class _Slot:
    """A place in the pool: a session and the version that it reads, or nothing yet."""

    session: Session | None = None
    version: Version = ()

    def close(self) -> None:
        if self.session is not None:
            with suppress(Exception):
                self.session.engine.close()
        self.session = None


class Readers:
    """Asks the lake, a few questions at a time, and keeps what was answered."""

    def __init__(
        self,
        lake: Lake,
        settings: Settings | None = None,
        cache: bool = True,
        unit: Unit | None = None,
    ) -> None:
        self.lake, self.unit = lake, unit
        web = (settings or load(lake.workspace)).web
        self.query_s = web.query_seconds
        self.num_sessions = web.sessions
        self.cache: Cache[Any] = Cache(web.cache_mb * 1_000_000 if cache else 0, _num_bytes)
        self._slots: queue.LifoQueue[_Slot] = queue.LifoQueue()
        self._version: Version = ()
        for _ in range(self.num_sessions):
            self._slots.put(_Slot())

    def ask(self, question: Hashable, answer: Callable[[Session], T]) -> T:
        """The answer of a session to the question that `question` names, kept while the lake stays."""
        version = self.version()
        value: T = self.cache.get((version, question), lambda: self._answer(answer))
        return value

    def run(self, analysis: Analysis, selection: Selection, params: Mapping[str, Any]) -> Result:
        question = ("run", analysis.id, selection, tuple(sorted(params.items())))
        return self.ask(question, lambda session: session.run(analysis, selection, **params))

    def table(self, sql: str, selection: Selection) -> pa.Table:
        """A query over `jobs`, the jobs that the selection keeps."""
        return self.ask(("sql", sql, selection), lambda session: session.ask(sql, selection))

    def rows(self, sql: str, selection: Selection) -> list[dict[str, Any]]:
        return list(self.table(sql, selection).to_pylist())

    def found(self, sql: str, selection: Selection, search: Search) -> pa.Table:
        """A query over `found`, those of the selected jobs that the search keeps; its values are bound."""

        def answer(session: Session) -> pa.Table:
            session.ask(f"SELECT {', '.join(search.columns)} FROM jobs LIMIT 0", selection)
            session.engine.define(
                "found",
                f"SELECT {', '.join(search.columns)} FROM jobs WHERE {search.condition}",
                search.values,
            )
            return session.engine.query(sql)

        return self.ask(("found", sql, selection, search), answer)

    @property
    def settings(self) -> Settings:
        return self.ask("settings", lambda session: session.settings)

    def version(self) -> Version:
        """The lake's version now; answers of older ones are forgotten."""
        version = version_of(self.lake)
        if version != self._version:
            self._version = version
            self.cache.clear()
        return version

    def open_first(self) -> None:
        """Open a session before anybody asks: the first loads libraries, and is slow.

        Whatever is wrong with the lake, the page that meets it says so.
        """
        with suppress(Exception):
            self.ask("settings", lambda session: session.settings)
            self.lake.files(RUNS)

    def close(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._slots.get_nowait().close()

    def _answer(self, answer: Callable[[Session], T]) -> T:
        deadline = time.monotonic() + self.query_s
        for attempt in range(1, ATTEMPTS + 1):
            with self._slot(deadline) as slot:
                try:
                    session = self._opened(slot)
                    with _stopped_at(session, deadline):
                        return answer(session)
                except (InterruptedQuery, duckdb.InterruptException):
                    slot.close()
                    raise self._too_slow() from None
                except Exception as error:
                    slot.close()  # whatever state it was left in
                    if not _is_gone(error) or attempt == ATTEMPTS:
                        raise _told(error) from error
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def _slot(self, deadline: float) -> Iterator[_Slot]:
        try:
            slot = self._slots.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise Busy(
                f"all {self.num_sessions} sessions were busy for {self.query_s:g} s",
                "Ask again in a moment; an operator can raise web.sessions in hakaru.toml.",
            ) from None
        try:
            yield slot
        finally:
            self._slots.put(slot)

    def _opened(self, slot: _Slot) -> Session:
        """The slot's session, opened anew where the lake has changed since."""
        version = version_of(self.lake)  # before opening: what is read may be newer, never older
        if slot.session is None or slot.version != version:
            slot.close()
            slot.session = open_session(self.lake, unit=self.unit)
            slot.version = version
        return slot.session

    def _too_slow(self) -> TooSlow:
        return TooSlow(
            f"the query was stopped after {self.query_s:g} s",
            "Choose a shorter period or fewer groups; an operator can raise web.query_seconds "
            "in hakaru.toml.",
        )


@contextmanager
def _stopped_at(session: Session, deadline: float) -> Iterator[None]:
    """Interrupt the session's queries, again and again, once the time is over."""
    done = threading.Event()

    def watch() -> None:
        pause = deadline - time.monotonic()
        while not done.wait(max(0.0, pause)):
            session.engine.interrupt()
            pause = INTERRUPT_EVERY_S

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _told(error: Exception) -> Exception:
    """The engine's own errors as one that a reader can do something about."""
    if isinstance(error, duckdb.Error):
        return WebError(
            "the engine could not run this query", "Try another filter or a shorter period."
        )
    return error


def _is_gone(error: BaseException) -> bool:
    """Whether a file of the snapshot was deleted under it."""
    if isinstance(error, FileNotFoundError):
        return True
    caused = isinstance(error.__cause__, duckdb.IOException | duckdb.HTTPException)
    return (caused or isinstance(error, duckdb.IOException | HakaruError)) and bool(
        GONE.search(f"{error} {error.__cause__ or ''}")
    )


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _num_bytes(value: Any) -> int:
    table = value.table if isinstance(value, Result) else value
    return int(getattr(table, "nbytes", 10_000))
