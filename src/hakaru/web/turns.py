"""Questions take turns: a viewer has fewer at work than there are sessions, so that others find one free.

Those beyond wait here, in the event loop, and hold no thread; too many are answered by 429. Static files and
the sign-in form ask nothing and do not wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from hakaru.settings import Web
from hakaru.web.access.gate import is_open, peer_of
from hakaru.web.addresses import is_proxy, origin_of
from hakaru.web.answers import problem_response
from hakaru.web.problems import Busy, TooMany, WebError, problem_of

MAX_WAITING = 16  # of one viewer; a browser asks six at once
MAX_WAITING_HERE = 64  # where nobody signs in, all are one viewer
UNSIGNED = "the questions of people who are not signed in"


@dataclass
class _Line:
    """Who is at work, and who waits for it in which order; `questions` says whose they are."""

    questions: str
    most: int
    max_waiting: int
    num_running: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    @property
    def is_idle(self) -> bool:
        return not self.num_running and not self.waiting

    async def enter(self, seconds: float) -> None:
        if self.num_running < self.most:
            self.num_running += 1
            return
        if len(self.waiting) >= self.max_waiting:
            raise TooMany(
                f"{self.num_running + len(self.waiting)} of {self.questions} are not answered yet",
                "Ask again when some of them are answered.",
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        try:
            await asyncio.wait_for(asyncio.shield(turn), seconds)
        except BaseException as error:
            self._give_up(turn)
            if isinstance(error, TimeoutError):
                raise Busy(
                    f"others of {self.questions} took longer than {seconds:g} s",
                    "Ask again in a moment, and fewer at a time.",
                ) from None
            raise

    def leave(self) -> None:
        """The next in line takes over the place."""
        if self.waiting:
            self.waiting.popleft().set_result(None)
        else:
            self.num_running -= 1

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        if turn.done():  # the turn came while it gave up
            self.leave()
        else:
            self.waiting.remove(turn)


class Turns:
    """Lets a few questions of each viewer and of each address through at a time."""

    def __init__(self, app: ASGIApp, web: Web) -> None:
        self.app = app
        self.web = web
        self._lines: dict[Hashable, _Line] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_open(scope["path"]):
            await self.app(scope, receive, send)
            return
        async with AsyncExitStack() as turns:
            try:
                for key, line in self._wanted(scope):
                    await turns.enter_async_context(self._turn(key, line))
            except WebError as error:
                answer = problem_response(Request(scope), problem_of(error))
                await answer(scope, receive, send)
                return
            await self.app(scope, receive, send)

    def _wanted(self, scope: Scope) -> Iterator[tuple[Hashable, _Line]]:
        """Whose turn a question takes: its viewer's, and its address' unless that is the proxy's."""
        viewer, peer = scope["state"]["viewer"], peer_of(scope)
        all_but_one = max(1, self.web.sessions - 1)
        mine = (
            _Line("your questions", all_but_one, MAX_WAITING)
            if viewer.signed_in
            else _Line(UNSIGNED, self.web.sessions, MAX_WAITING_HERE)
        )
        yield ("viewer", viewer.role, viewer.name), mine
        if not is_proxy(peer, self.web.proxy_address):
            most = self.web.address_connections
            line = _Line("the questions from your address", max(mine.most, most // 4), most)
            yield ("address", origin_of(peer)), line

    @asynccontextmanager
    async def _turn(self, key: Hashable, new: _Line) -> AsyncIterator[None]:
        line = self._lines.setdefault(key, new)
        try:
            await line.enter(self.web.query_seconds)
            try:
                yield
            finally:
                line.leave()
        finally:
            if line.is_idle:
                self._lines.pop(key, None)
