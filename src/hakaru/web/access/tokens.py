"""Tokens: random, shown once, kept as hashes in a file that only its owner can read.

A token has 256 bits of chance, so that one SHA-256 of it is as good as a slow hash. The file's presence says
that access is configured: it stays, empty, when the last token is revoked, and nobody gets in.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.safety.files import open_lock
from hakaru.web.access.viewer import OPERATOR, USER, Role, Viewer

FILE_NAME = "tokens.json"
PREFIX = "hakaru_"
MAX_LENGTH = 100


@dataclass(frozen=True)
class Token:
    """A token as it is kept: everything but the token itself."""

    id: str
    name: str
    role: Role
    user: str | None
    created: datetime
    expires: datetime | None
    hash: str

    def is_valid(self, now: datetime) -> bool:
        return self.expires is None or now < self.expires

    def viewer(self, has_session: bool = False) -> Viewer:
        return Viewer(self.role, self.name, self.user, has_session=has_session)


class Tokens:
    """The tokens of a workspace."""

    def __init__(self, workspace: Path) -> None:
        self.path = workspace / FILE_NAME
        self._read: tuple[Any, tuple[Token, ...]] | None = None

    @property
    def exist(self) -> bool:
        return self.path.exists()

    def all(self) -> tuple[Token, ...]:
        """Every token of the file; read again only when the file has changed."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise HakaruError(f"{self.path} cannot be read: {error.strerror}") from None
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        if self._read is None or self._read[0] != stamp:
            self._read = (stamp, _parse(self.path))
        return self._read[1]

    def find(self, secret: str) -> Token | None:
        """The valid token that this text is, in a time that says nothing of how near it came."""
        if len(secret) > MAX_LENGTH:
            return None
        digest, found = digest_of(secret), None
        for token in self.all():
            if hmac.compare_digest(token.hash, digest):
                found = token
        return found if found is not None and found.is_valid(datetime.now(UTC)) else None

    def by_id(self, id: str) -> Token | None:
        now = datetime.now(UTC)
        return next((t for t in self.all() if t.id == id and t.is_valid(now)), None)

    def create(
        self, name: str, role: Role, user: str | None, expires: datetime | None = None
    ) -> tuple[Token, str]:
        """A new token, and the text of it that is never seen again."""
        _check(name, role, user)
        secret = PREFIX + secrets.token_urlsafe(32)
        now = datetime.now(UTC).replace(microsecond=0)
        token = Token(secrets.token_hex(4), name, role, user, now, expires, digest_of(secret))
        with self._writing() as tokens:
            if any(other.name == name for other in tokens):
                raise HakaruError(
                    f"{self.path} has a token {name!r} already: revoke it first with "
                    f"hakaru token revoke {name}, or choose another --name"
                )
            self._write([*tokens, token])
        return token, secret

    def revoke(self, name: str) -> Token:
        """Remove the token of this name or id; its sessions end with it."""
        with self._writing() as tokens:
            gone = next((token for token in tokens if name in (token.name, token.id)), None)
            if gone is None:
                known = ", ".join(token.name for token in tokens) or "none"
                raise HakaruError(f"{self.path} has no token {name!r}; known: {known}")
            self._write([token for token in tokens if token != gone])
        return gone

    @contextmanager
    def _writing(self) -> Iterator[tuple[Token, ...]]:
        """One writer at a time, who sees what the last one wrote."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open_lock(self.path.with_suffix(".lock")) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield self.all()
        except OSError as error:
            raise HakaruError(
                f"{self.path} cannot be written: {error.strerror or error}\nCheck the folder's permissions "
                "and its disk, or choose another one with --workspace. The tokens are as they were before."
            ) from None

    def _write(self, tokens: list[Token]) -> None:
        """All or nothing, and never readable by others, not even for a moment."""
        rows = [asdict(token) for token in tokens]
        text = json.dumps({"tokens": rows}, default=datetime.isoformat, indent=1)
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".tokens-")  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _check(name: str, role: str, user: str | None) -> None:
    if not name or len(name) > 100 or not name.isprintable():
        raise HakaruError("a token's name is a short text that says who or what uses it")
    if role == USER and not user:
        raise HakaruError("a token of the role user needs the user that it stands for: add --user")
    if role == OPERATOR and user:
        raise HakaruError("an operator sees everybody's jobs: leave out --user, or use --role user")


def _parse(path: Path) -> tuple[Token, ...]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["tokens"]
        return tuple(_token(row) for row in rows)
    except OSError as error:
        raise HakaruError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise HakaruError(
            f"{path} is not a file of tokens: restore it, or delete it and create the tokens anew"
        ) from None


def _token(row: dict[str, Any]) -> Token:
    if row["role"] not in (OPERATOR, USER) or (row["role"] == USER and not row["user"]):
        raise ValueError(row["role"])
    expires = row["expires"]
    return Token(
        id=str(row["id"]),
        name=str(row["name"]),
        role=row["role"],
        user=row["user"],
        created=datetime.fromisoformat(row["created"]),
        expires=datetime.fromisoformat(expires) if expires else None,
        hash=str(row["hash"]),
    )
