"""Open connections, in all and of each address; and how long a client may take to send its request.

A new connection is let in by closing the oldest one that still owes its request: whoever opens many and
sends nothing loses those, and locks nobody out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from hakaru.web.addresses import is_proxy, origin_of

REQUEST_S = 10.0  # from the first byte that is owed to the last of a request's body
SENDING_S = 60.0  # for which a client may read nothing of an answer
PROXY = "proxy"  # the origin of its connections: others of its network are not counted with them
OWING = (h11.IDLE, h11.SEND_BODY)
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 26\r\n\r\nToo many open connections\n"
)
LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 30\r\n\r\nThe request was not complete.\n"
)


class Connection(Protocol):
    @property
    def address(self) -> str: ...
    @property
    def owes_request(self) -> bool: ...
    def give_way(self) -> None: ...


class Connections:
    """Counts connections; a proxy, which stands for many people, has no limit of its own."""

    def __init__(self, most: int, most_of_address: int, proxy: str | None = None) -> None:
        self.most = most
        self.most_of_address = most_of_address
        self.proxy = proxy
        self._open: dict[Connection, str] = {}  # in the order in which they came
        self._by_origin: dict[str, dict[Connection, None]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> bool:
        """Whether the connection may stay; another may have been closed for it."""
        from_proxy = is_proxy(connection.address, self.proxy)
        origin = PROXY if from_proxy else origin_of(connection.address)
        mine = self._by_origin.get(origin, {})
        crowded = not from_proxy and len(mine) >= self.most_of_address
        if crowded and not self._make_room(mine):
            return False
        if len(self._open) >= self.most and not self._make_room(self._open):
            return False
        self._open[connection] = origin
        self._by_origin.setdefault(origin, {})[connection] = None
        return True

    def discard(self, connection: Connection) -> None:
        origin = self._open.pop(connection, None)
        if origin is not None:
            mine = self._by_origin[origin]
            del mine[connection]
            if not mine:
                del self._by_origin[origin]

    def _make_room(self, among: Iterable[Connection]) -> bool:
        oldest = next((each for each in among if each.owes_request), None)
        if oldest is None:
            return False
        self.discard(oldest)
        oldest.give_way()
        return True


def protocol_of(
    connections: Connections, request_s: float = REQUEST_S, sending_s: float = SENDING_S
) -> type[H11Protocol]:
    """uvicorn's HTTP with these limits."""

    class Limited(H11Protocol):
        _owed: asyncio.TimerHandle | None = None
        _unread: asyncio.TimerHandle | None = None

        @property
        def address(self) -> str:
            return self.client[0] if self.client else ""

        @property
        def owes_request(self) -> bool:
            return self.conn.their_state in OWING

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if connections.add(self):
                self._expect()
            else:
                self._end(BUSY)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.discard(self)
            self._stop_waiting()
            self.resume_writing()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._owed is None:  # the next request of a connection that was kept
                self._expect()
            super().data_received(data)
            if not self.owes_request:
                self._stop_waiting()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._unread = self.loop.call_later(sending_s, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._unread is not None:
                self._unread.cancel()
                self._unread = None

        def give_way(self) -> None:
            self._end(BUSY)

        def _expect(self) -> None:
            self._owed = self.loop.call_later(request_s, self._end, LATE)

        def _stop_waiting(self) -> None:
            if self._owed is not None:
                self._owed.cancel()
                self._owed = None

        def _end(self, words: bytes) -> None:
            """Close, with a word on why where no answer has begun."""
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(words)
            self.transport.close()

    return Limited
