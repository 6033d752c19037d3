"""Answers: what a launcher got from each node, in the form that `judge` takes; no answer is recorded too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hakaru.measure.preflight.facts import SCHEMA

MOST_CHARACTERS = 4 << 20


def read_answer(name: str, stdout: str, asked_s: float, answered_s: float) -> dict[str, Any]:
    """A node's printed facts, stamped; other lines, such as those of a login script, are ignored."""
    if len(stdout) > MOST_CHARACTERS:
        return unanswered(name, f"the answer is longer than {MOST_CHARACTERS:,} characters")
    for line in reversed(stdout.splitlines()):
        if line.startswith("{"):
            try:
                return stamp(json.loads(line, parse_constant=_refuse), asked_s, answered_s, name)
            except (ValueError, RecursionError) as error:
                return unanswered(name, f"the answer is not JSON: {error}")
    return unanswered(name, "the node printed no facts")


def stamp(
    facts: Mapping[str, Any], asked_s: float, answered_s: float, name: str | None = None
) -> dict[str, Any]:
    """Facts with the controller's time before and after, by which the node's clock is judged."""
    named = {"node": name} if name else {}
    return {**facts, **named, "controller": {"asked_s": asked_s, "answered_s": answered_s}}


def unanswered(name: str, why: str) -> dict[str, Any]:
    """Stands for a node that gave no answer."""
    return {"node": name, "error": why}


def problem_of(answer: Any) -> str | None:
    """Why an answer cannot be judged, or None."""
    if not isinstance(answer, Mapping):
        return "the answer is not a JSON object"
    if answer.get("error"):
        return str(answer["error"])
    if answer.get("schema") != SCHEMA:
        return f"the answer has schema {str(answer.get('schema'))[:40]!r}, expected {SCHEMA!r}"
    if not answer.get("node") or not isinstance(answer.get("facts"), Mapping):
        return "the answer lacks the node's name or its facts"
    return None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not a number")
