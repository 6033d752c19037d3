"""Who asks: a name for the page's corner, a role, and the user whose jobs are their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OPERATOR: Literal["operator"] = "operator"
USER: Literal["user"] = "user"
Role = Literal["operator", "user"]


@dataclass(frozen=True)
class Viewer:
    role: Role
    name: str
    user: str | None = None
    signed_in: bool = True
    has_session: bool = False

    @property
    def sees_all(self) -> bool:
        return self.role == OPERATOR


ANYBODY_HERE = Viewer(OPERATOR, "operator", signed_in=False)
