"""Facts: what is read on a node, as plain JSON, so that one controller can judge all nodes together."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure.node.machine import HERE, Absent, Machine, Unread, waiting_once
from hakaru.registry import Registry
from hakaru.safety.text import one_line

SCHEMA = "hakaru-preflight-1"
MOST_TEXT, MOST_ITEMS = 300, 8192
HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")

Reader = Callable[[Machine], Any]


@dataclass(frozen=True)
class Fact:
    id: str
    read: Reader
    optional: bool  # whether a node may lack it: only then is a node that calls it absent believed


FACTS: Registry[Fact] = Registry("fact")


def fact(id: str, *, optional: bool = False) -> Callable[[Reader], Reader]:
    """Declare how a fact is read; the reader raises `Unread`, or `Absent` where it is optional."""

    def declare(read: Reader) -> Reader:
        FACTS.add(Fact(id, read, optional))
        return read

    return declare


def gather(machine: Machine = HERE) -> dict[str, Any]:
    """All facts of a node; a program that hangs costs those that need it, and not the others."""
    wrong = [name for name in machine.peers if not HOST_NAME.fullmatch(name)]
    if wrong:
        raise HakaruError(f"expected host names such as gpu01, found {wrong[0][:60]!r}")
    machine = replace(machine, run=waiting_once(machine.run))
    name = _read(lambda on: on.text("/proc/sys/kernel/hostname"), machine)["value"]
    return {
        "schema": SCHEMA,
        "node": name or "unknown host",
        "facts": {each.id: _read(each.read, machine) for each in FACTS},
    }


class Node:
    """The facts of one node: reading one that is missing raises, so that no check can pass without it."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.name = one_line(str(answer["node"]))[:MOST_TEXT]
        self._facts: Mapping[str, Any] = answer["facts"]
        self.controller: Mapping[str, Any] = answer.get("controller") or {}

    def __getitem__(self, id: str) -> Any:
        found = self._facts.get(id)
        if not isinstance(found, Mapping):
            raise Unread(
                f"{id} is missing from the node's answer: it may run another version of hakaru"
            )
        if found.get("value") is not None:
            return found["value"]
        reason = str(found.get("reason") or f"{id} could not be read; the node gave no reason")
        if found.get("absent") is not True:
            raise Unread(reason)
        if not FACTS.get(id).optional:
            raise Unread(f"the node calls {id} absent, but every node has it: {reason}")
        raise Absent(reason)

    def get(self, id: str, default: Any) -> Any:
        """The fact, or the default where there is none: for what only refines an answer."""
        try:
            return self[id]
        except (Absent, Unread):
            return default


def amount(value: Any) -> float:
    """A number of a node's answer; `unlimited` is infinite, and anything else was not read."""
    if value == "unlimited":
        return float("inf")
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) < float("inf")
    ):
        raise Unread(f"expected a number, found {str(value)[:40]!r}")
    return value


def _read(read: Reader, machine: Machine) -> dict[str, Any]:
    try:
        value = _clean(read(machine))
    except Absent as error:
        return {"value": None, "reason": _reason(str(error)), "absent": True}
    except Unread as error:
        return {"value": None, "reason": _reason(str(error)), "absent": False}
    except Exception as error:  # one broken reader must not cost the other facts
        reason = _reason(f"{type(error).__name__}: {error}")
        return {"value": None, "reason": reason, "absent": False}
    if value is None:
        return {"value": None, "reason": "the reader found nothing", "absent": False}
    return {"value": value}


def _reason(text: str) -> str:
    return str(_clean(" ".join(text.split())))


def _clean(value: Any) -> Any:
    """The same without control characters and of bounded length."""
    if isinstance(value, str):
        return one_line(value)[:MOST_TEXT]
    if isinstance(value, Mapping):
        items = list(value.items())[:MOST_ITEMS]
        return {str(_clean(str(key))): _clean(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value[:MOST_ITEMS]]
    return value
