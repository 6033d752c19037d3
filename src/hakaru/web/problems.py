"""What goes wrong, as a web client hears of it: RFC 9457 problem objects that say how to mend it."""

from __future__ import annotations

import logging
import re

from pydantic import BaseModel, Field

from hakaru.errors import EngineError, FilterError, HakaruError, InterruptedQuery, LakeError

OPTION = re.compile(r"--(cluster|by|weight|since|until|where|state|min-run|param)\b")
log = logging.getLogger("hakaru.web")
MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """Why a request was not answered."""

    title: str = Field(description="What went wrong, in a few words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What was found, and what was expected.")
    fix: str | None = Field(default=None, description="What to do about it.")


class WebError(HakaruError):
    """An error that knows its HTTP status, its title, and how to mend it."""

    status = 422
    title = "This cannot be answered"

    def __init__(self, detail: str, fix: str | None = None) -> None:
        super().__init__(detail)
        self.fix = fix


class Malformed(WebError):
    status = 400
    title = "The request cannot be read"


class Unknown(WebError):
    status = 404
    title = "Not found"


class NotSignedIn(WebError):
    status = 401
    title = "Sign in first"


class Refused(WebError):
    status = 403
    title = "Access denied"


class TooMany(WebError):
    status = 429
    title = "Too many attempts"


class Busy(WebError):
    status = 503
    title = "Too busy just now"


class TooSlow(WebError):
    status = 504
    title = "The query took too long"


def problem_of(error: HakaruError) -> Problem:
    """An error of any room as a problem; options of the command line become URL parameters."""
    if isinstance(error, WebError):
        return Problem(title=error.title, status=error.status, detail=str(error), fix=error.fix)
    detail = OPTION.sub(lambda found: found.group(1).replace("-", "_"), str(error))
    if isinstance(error, InterruptedQuery):
        return Problem(title=TooSlow.title, status=504, detail=detail)
    if isinstance(error, LakeError | EngineError):
        log.error("%s", error)  # it may name files: for the log, not for everybody
        return Problem(
            title="The lake cannot be read",
            status=503,
            detail="a table of the lake could not be read; the app's log tells which",
            fix="Ask again in a moment; if it stays, tell an operator.",
        )
    title = "The filter is wrong" if isinstance(error, FilterError) else WebError.title
    return Problem(title=title, status=422, detail=detail)
