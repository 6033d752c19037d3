"""How machines, limits and outages are written in one line, on the command line and in scenarios."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Literal

from hakaru.errors import HakaruError
from hakaru.registry import hint
from hakaru.sim.limits import SCOPES, WHAT, Limit, is_span
from hakaru.sim.machine import MOST_NODES, MOST_PES, Group, Machine, Outage
from hakaru.sim.policies import Policy, Weights

NODES = re.compile(r"(?P<count>\d+)\s*[x×*]\s*(?P<size>\d+)(?::(?P<model>.+))?", re.IGNORECASE)
NODES_FORM = "write COUNTxSIZE[:MODEL], e.g. 38x8 for 38 nodes of 8 GPUs each, or 4x8:a100"
LIMIT = re.compile(
    r"(?P<scope>[^=:,]*)(?:=(?P<only>.+))?:(?P<what>[^=:,]*)=(?P<value>[^,]*)(?P<rest>(?:,.*)?)"
)
# what is read in part, to say what it lacks
UNFINISHED = re.compile(
    r"(?P<scope>[^=:,]*)(?:=(?P<only>[^:]*))?(?::(?P<what>[^=:,]*)(?P<value>)(?P<rest>(?:,.*)?))?"
)
HOURS = re.compile(r"(\d{1,2})-(\d{1,2})")
ONE_OF_MANY = {
    "^ask": "asks", "^have": "has", "^run": "runs", "^are": "is",
    "their": "its", "they": "it", "them": "it",
}  # fmt: skip
OUTAGE = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?@(?P<begin>.+?)\.\.(?P<end>.+)")
NAMED = ("queue", "qos")  # weights that are points by name
NAMED_OUTAGE = re.compile(r"(?P<name>[^@]+)@(?P<begin>.+?)\.\.(?P<end>.+)")
LIMIT_FORM = (
    "write SCOPE[=NAME]:WHAT=NUMBER[,queue=QUEUE][,hours=FROM-TO], e.g. user:running-gpus=16, "
    "queue=short:running-jobs=50 or user:running-jobs=4,queue=long,hours=9-18"
)


def parse_nodes(text: str) -> Group:
    """`4x8`: four nodes of eight; `4x8:a100` for jobs that ask for the model, or for none."""
    found = NODES.fullmatch(text.strip())
    if not found:
        raise HakaruError(f"--nodes {text!r}: {NODES_FORM}")
    for what, number in (("how many nodes", found["count"]), ("the size of a node", found["size"])):
        if not 1 <= int(number[:19]) <= MOST_PES:
            raise HakaruError(
                f"--nodes {text!r}: {what} is from 1 to {MOST_PES:,}, found {number[:40]}; {NODES_FORM}"
            )
    return Group(int(found["count"]), int(found["size"]), found["model"])


def write_machine(machine: Machine, unit: str) -> str:
    """The machine in words, e.g. `38 nodes x 8 = 304 GPUs`."""
    size = counted(machine.num_pes, "GPU" if unit == "gpu" else "processor")
    if machine.is_flat:
        return f"{size} in one pool"
    groups = [
        f"{counted(group.count, 'node')} x {group.size:,}"
        + (f" {group.model}" if group.model else "")
        for group in machine.groups
    ]
    placed, switch = machine.placement, machine.switch_size
    more = f", {placed.packing}" if placed.packing != "best-fit" else ""
    more += ", shared nodes" if not placed.whole_nodes else ""
    more += f", {switch} nodes a switch (locality {placed.locality})" if switch else ""
    more += ", nodes coming and going" if machine.closed or machine.changes else ""
    return f"{' + '.join(groups)} = {size}{more}"


def parse_limit(text: str) -> Limit:
    """`user:running-gpus=16`: so many at once for each user; see LIMIT_FORM for the rest."""
    found = LIMIT.fullmatch(text.strip()) or UNFINISHED.fullmatch(text.strip())
    if not found:
        raise HakaruError(f"limit {text!r} cannot be read: {LIMIT_FORM}")
    scope, what, number = ((found[name] or "").strip() for name in ("scope", "what", "value"))
    scope, what = scope.lower(), what.lower()
    if what == "walltime":
        queue = found["only"] or "short"
        raise HakaruError(
            f"limit {text!r}: the longest walltime of a queue is no limit of this kind. Set it with `hakaru "
            f"simulate --walltime {queue}=6`, or in a scenario of `hakaru whatif`: queues.{queue} = "
            "{ max_walltime_h = 6 }"
        )
    _check_word(text, "scope", scope, SCOPES)
    _check_word(text, "what", what, WHAT)
    more = _more(text, [part for part in (found["rest"] or "").split(",") if part])
    return _limit(text, scope, what, number, only=found["only"], **more)


def counted(number: int, noun: str = "job") -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def write_note(number: int, note: str) -> str:
    """The jobs and what is noted of them, whose verb follows their number."""
    if number == 1:
        for many, one in ONE_OF_MANY.items():
            note = re.sub(rf"{many}\b", one, note)
    return f"{counted(number)} {note}"


def _check_word(text: str, kind: str, word: str, known: Sequence[str]) -> None:
    told = {"scope": "who is limited", "what": "what is limited"}[kind]
    if not word:
        raise HakaruError(f"limit {text!r} does not say {told} ({', '.join(known)}); {LIMIT_FORM}")
    if word not in known:
        raise HakaruError(
            f"limit {text!r}: there is no {kind} {word!r} ({hint(word, known)}); {LIMIT_FORM}"
        )


def _limit(text: str, scope: Any, what: Any, number: str, **more: Any) -> Limit:
    if not re.fullmatch(r"[0-9]{1,18}", number):
        raise HakaruError(
            f"limit {text!r}: expected how many, a whole number from 0 on, after {what}=, found "
            f"{number[:40]!r}; e.g. {scope}:{what}=16"
        )
    try:
        return Limit(scope, what, int(number), **more)
    except HakaruError as error:
        raise HakaruError(f"limit {text!r}: {error}") from None


def write_limit(limit: Limit) -> str:
    """The text that `parse_limit` reads."""
    only = f"={limit.only}" if limit.only is not None else ""
    queue = f",queue={limit.queue}" if limit.queue is not None else ""
    hours = f",hours={limit.hours[0]}-{limit.hours[1]}" if limit.hours else ""
    return f"{limit.scope}{only}:{limit.what}={limit.value}{queue}{hours}"


def parse_weights(texts: Sequence[str], base: Weights) -> Weights:
    """`age=1000`, `queue.short=500` or `qos.high=500`, over the points that the policy has."""
    names = [each.name for each in fields(Weights) if each.name not in NAMED]
    points: dict[str, float] = {}
    named = {kind: dict(getattr(base, kind)) for kind in NAMED}
    for text in texts:
        name, _, value = text.partition("=")
        kind, _, whose = name.partition(".")
        number = _points(text, value)
        if kind in named and whose:
            named[kind][whose] = number
        elif name in names:
            if number <= 0 and name.endswith("_s"):
                raise HakaruError(f"weight {text!r}: {name} is a time above 0, in seconds")
            points[name] = number
        else:
            raise HakaruError(
                f"weight {text!r}: there is no {name!r}; "
                f"{hint(name, [*names, *(f'{kind}.NAME' for kind in NAMED)])}"
            )
    return replace(base, **points, **named)  # type: ignore[arg-type]


def write_weights(policy: Policy) -> list[str]:
    """The points and the depth of a policy that has them, as they are asked for."""
    depth = [f"depth: {policy.depth:,}"] if policy.depth else []
    if policy.weights is None:
        return depth
    given = {each.name: getattr(policy.weights, each.name) for each in fields(Weights)}
    named = {kind: given.pop(kind) for kind in NAMED}
    shown = [f"{name}={value:g}" for name, value in given.items() if value]
    shown += [f"{kind}.{n}={v:g}" for kind, points in named.items() for n, v in points.items()]
    return ["weights: " + " ".join(shown)]


def _points(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise HakaruError(f"weight {text!r}: write NAME=POINTS, e.g. age=1000 or queue.short=500")
    return number


def parse_outage(
    text: str, kind: Literal["drain", "down"], zone: str, names: Sequence[str] = ()
) -> list[Outage]:
    """`3@2018-04-01..2018-04-03T12:00`: node 3 (or 0-3), from when until when on the site's clock.

    Where the nodes have names, one of these does too.
    """
    option = {"down": "--fail", "drain": "--drain"}[kind]
    named = NAMED_OUTAGE.fullmatch(text.strip())
    if named and named["name"] in names:
        begin, end = _span(named, text, option, zone)
        own = [node for node, name in enumerate(names) if name == named["name"]]
        return [Outage(node, begin, end, kind) for node in own]
    found = OUTAGE.fullmatch(text.strip())
    if named and names and not found:
        raise HakaruError(f"{option} {text!r}: no node is called so; {hint(named['name'], names)}")
    if not found:
        raise HakaruError(
            f"{option} {text!r}: write NODE@FROM..TO or FIRST-LAST@FROM..TO with nodes counted from 0, "
            "e.g. 0-3@2018-04-01..2018-04-02T12:00"
        )
    first, last = int(found["first"][:19]), int((found["last"] or found["first"])[:19])
    begin, end = _span(found, text, option, zone)
    if not first <= last < MOST_NODES:
        raise HakaruError(
            f"{option} {text!r}: expected nodes FIRST-LAST, the lower first and counted from 0"
        )
    return [Outage(node, begin, end, kind) for node in range(first, last + 1)]


def _span(found: re.Match[str], text: str, option: str, zone: str) -> tuple[int, int]:
    from hakaru.engine.where import parse_moment

    try:
        begin, end = (int(parse_moment(found[w], zone).timestamp()) for w in ("begin", "end"))
    except HakaruError as error:
        raise HakaruError(f"{option} {text!r}: {error}") from None
    if end <= begin:
        raise HakaruError(f"{option} {text!r}: it ends before it begins; write FROM..TO")
    return begin, end


def _more(text: str, parts: Sequence[str]) -> dict[str, Any]:
    more: dict[str, Any] = {}
    for part in parts:
        name, _, value = (each.strip() for each in part.partition("="))
        if name == "queue" and value:
            more["queue"] = value
        elif name == "hours":
            more["hours"] = _hours(text, value)
        else:
            raise HakaruError(
                f"limit {text!r}: {part!r} is neither queue=QUEUE nor hours=FROM-TO; {LIMIT_FORM}"
            )
    return more


def _hours(text: str, value: str) -> tuple[int, int]:
    found = HOURS.fullmatch(value)
    begin, end = (int(found[1]), int(found[2])) if found else (0, 0)
    if not is_span((begin, end)):
        raise HakaruError(
            f"limit {text!r}: hours are two from 0 to 24 that differ, found {value!r}; write hours=9-18, "
            "or hours=22-6 past midnight"
        )
    return begin, end
