"""Sessions of the sign-in form, kept on the server; and a brake on failed attempts."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict, deque

from hakaru.web.access.tokens import digest_of

LASTS_S = 12 * 3600
MAX_SESSIONS, MAX_OF_TOKEN = 10_000, 20
MAX_FAILURES, WITHIN_S, MAX_PEERS = 10, 300.0, 10_000


class Sessions:
    """Which token each cookie stands for. A cookie is random; its hash is what is kept."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, token_id: str) -> str:
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            # the oldest of the same token go first, so that nobody can end another's by signing in
            same = [digest for digest, (token, _) in self._held.items() if token == token_id]
            for digest in same[: max(0, len(same) + 1 - MAX_OF_TOKEN)]:
                del self._held[digest]
            self._held[digest_of(cookie)] = (token_id, time.monotonic() + LASTS_S)
            while len(self._held) > MAX_SESSIONS:
                self._held.popitem(last=False)
        return cookie

    def token_id(self, cookie: str) -> str | None:
        with self._lock:
            token_id, ends = self._held.get(digest_of(cookie), (None, 0.0))
        return token_id if time.monotonic() < ends else None

    def end(self, cookie: str) -> None:
        with self._lock:
            self._held.pop(digest_of(cookie), None)


class Failures:
    """Failed attempts of each address: more than a few in five minutes are answered by 429.

    A right token is never refused for the wrong ones before it, so that nobody can lock out another.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, peer: str) -> bool:
        """Count a failure; whether there have been too many."""
        now = time.monotonic()
        with self._lock:
            times = self._seen.setdefault(peer, deque(maxlen=MAX_FAILURES + 1))
            self._seen.move_to_end(peer)
            times.append(now)
            while len(self._seen) > MAX_PEERS:
                self._seen.popitem(last=False)
            return len(times) > MAX_FAILURES and now - times[0] < WITHIN_S
