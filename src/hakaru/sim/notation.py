"""How machines, limits and outages are written in one line, on the command line and in scenarios."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Literal, cast

from hakaru.errors import HakaruError
from hakaru.registry import hint
from hakaru.sim.limits import SCOPES, WHAT, Limit
from hakaru.sim.machine import Group, Machine, Outage
from hakaru.sim.policies import Policy, Weights

NODES = re.compile(r"(?P<count>\d+)x(?P<size>\d+)(?::(?P<model>.+))?", re.IGNORECASE)
LIMIT = re.compile(
    r"(?P<scope>[a-z]+)(?:=(?P<only>.+))?:(?P<what>[a-z-]+)=(?P<value>[^,]*)(?P<rest>(?:,.*)?)"
)
HOURS = re.compile(r"(\d{1,2})-(\d{1,2})")
OUTAGE = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?@(?P<begin>.+?)\.\.(?P<end>.+)")
LIMIT_FORM = (
    "write SCOPE[=NAME]:WHAT=NUMBER[,queue=QUEUE][,hours=FROM-TO], e.g. user:running-gpus=16, "
    "queue=short:running-jobs=50 or user:running-jobs=4,queue=long,hours=9-18"
)


def parse_nodes(text: str) -> Group:
    """`4x8`: four nodes of eight; `4x8:a100` for jobs that ask for the model, or for none."""
    found = NODES.fullmatch(text.strip())
    if not found or int(found["count"]) < 1 or int(found["size"]) < 1:
        raise HakaruError(
            f"nodes {text!r}: write COUNTxSIZE[:MODEL], e.g. 38x8 for 38 nodes of 8, or 4x8:a100"
        )
    return Group(int(found["count"]), int(found["size"]), found["model"])


def write_machine(machine: Machine, unit: str) -> str:
    """The machine in words, e.g. `38 nodes x 8 = 304 GPUs`."""
    name = "GPUs" if unit == "gpu" else "processors"
    if machine.is_flat:
        return f"{machine.num_pes:,} {name} in one pool"
    groups = [
        f"{group.count:,} nodes x {group.size:,}" + (f" {group.model}" if group.model else "")
        for group in machine.groups
    ]
    placed, switch = machine.placement, machine.switch_size
    more = f", {placed.packing}" if placed.packing != "best-fit" else ""
    more += ", shared nodes" if not placed.whole_nodes else ""
    more += f", {switch} nodes a switch (locality {placed.locality})" if switch else ""
    more += ", nodes coming and going" if machine.closed or machine.changes else ""
    return f"{' + '.join(groups)} = {machine.num_pes:,} {name}{more}"


def parse_limit(text: str) -> Limit:
    """`user:running-gpus=16`: so many at once for each user; see LIMIT_FORM for the rest."""
    found = LIMIT.fullmatch(text.strip())
    if not found:
        raise HakaruError(f"limit {text!r} cannot be read: {LIMIT_FORM}")
    for word, known in (("scope", SCOPES), ("what", WHAT)):
        if found[word] not in known:
            raise HakaruError(
                f"limit {text!r}: there is no {word} {found[word]!r}; {hint(found[word], known)}"
            )
    if not found["value"].isdigit():
        raise HakaruError(
            f"limit {text!r}: {found['what']} is a whole number, found {found['value']!r}"
        )
    more = _more(text, [part for part in found["rest"].split(",") if part])
    scope, what = cast(Any, found["scope"]), cast(Any, found["what"])
    return Limit(scope, what, int(found["value"]), only=found["only"], **more)


def write_limit(limit: Limit) -> str:
    """The text that `parse_limit` reads."""
    only = f"={limit.only}" if limit.only is not None else ""
    queue = f",queue={limit.queue}" if limit.queue is not None else ""
    hours = f",hours={limit.hours[0]}-{limit.hours[1]}" if limit.hours else ""
    return f"{limit.scope}{only}:{limit.what}={limit.value}{queue}{hours}"


def parse_weights(texts: Sequence[str], base: Weights) -> Weights:
    """`age=1000` or `queue.short=500`, over the points that the policy has."""
    names = [each.name for each in fields(Weights) if each.name != "queue"]
    points: dict[str, float] = {}
    queues = dict(base.queue)
    for text in texts:
        name, _, value = text.partition("=")
        number = _points(text, value)
        if name.startswith("queue.") and name != "queue.":
            queues[name.removeprefix("queue.")] = number
        elif name in names:
            if number <= 0 and name.endswith("_s"):
                raise HakaruError(f"weight {text!r}: {name} is a time above 0, in seconds")
            points[name] = number
        else:
            raise HakaruError(
                f"weight {text!r}: there is no {name!r}; {hint(name, [*names, 'queue.NAME'])}"
            )
    return replace(base, **points, queue=queues)


def write_weights(policy: Policy) -> list[str]:
    """The points and the depth of a policy that has them, as they are asked for."""
    depth = [f"depth: {policy.depth:,}"] if policy.depth else []
    if policy.weights is None:
        return depth
    given = {each.name: getattr(policy.weights, each.name) for each in fields(Weights)}
    queues = given.pop("queue")
    shown = [f"{name}={value:g}" for name, value in given.items() if value]
    return ["weights: " + " ".join([*shown, *(f"queue.{n}={v:g}" for n, v in queues.items())])]


def _points(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise HakaruError(f"weight {text!r}: write NAME=POINTS, e.g. age=1000 or queue.short=500")
    return number


def parse_outage(text: str, kind: Literal["drain", "down"], zone: str) -> list[Outage]:
    """`3@2018-04-01..2018-04-03T12:00`: node 3 (or 0-3), from when until when on the site's clock."""
    from hakaru.engine.where import parse_moment

    found = OUTAGE.fullmatch(text.strip())
    if not found:
        raise HakaruError(
            f"{text!r}: write NODE@FROM..TO or FIRST-LAST@FROM..TO with nodes counted from 0, "
            "e.g. 0-3@2018-04-01..2018-04-02T12:00"
        )
    first, last = int(found["first"]), int(found["last"] or found["first"])
    begin, end = (int(parse_moment(found[w], zone).timestamp()) for w in ("begin", "end"))
    if last < first or end <= begin:
        raise HakaruError(f"{text!r}: it ends before it begins")
    return [Outage(node, begin, end, kind) for node in range(first, last + 1)]


def _more(text: str, parts: Sequence[str]) -> dict[str, Any]:
    more: dict[str, Any] = {}
    for part in parts:
        name, _, value = part.partition("=")
        if name == "queue" and value:
            more["queue"] = value
        elif name == "hours" and (hours := HOURS.fullmatch(value)):
            more["hours"] = _hours(text, int(hours[1]), int(hours[2]))
        else:
            raise HakaruError(f"limit {text!r}: {part!r} cannot be read: {LIMIT_FORM}")
    return more


def _hours(text: str, begin: int, end: int) -> tuple[int, int]:
    if not (0 <= begin <= 24 and 0 <= end <= 24) or begin == end:
        raise HakaruError(
            f"limit {text!r}: hours are two from 0 to 24 that differ, e.g. hours=22-6"
        )
    return begin, end
