"""What `scenario.toml` says: a machine, a baseline, and variants that each change a few things of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

from hakaru.sim.idle import IdleRule
from hakaru.sim.limits import LARGEST, SCOPES, WHAT, Limit, is_span
from hakaru.sim.notation import parse_limit
from hakaru.sim.policies import POLICIES
from hakaru.sim.queues import QueueRule
from hakaru.sim.site import MachineSpec
from hakaru.sim.whatif import _check as check
from hakaru.sim.whatif._check import Checker, ScenarioError
from hakaru.sim.workload import estimates_of

DAY_S = 86400.0
LIMIT_EXAMPLE = 'write { scope = "user", what = "running-gpus", value = 16 }'


@dataclass(frozen=True)
class AccurateRequests:
    """So many percent of the users ask for `factor` times what they run, no less than `at_least_min`."""

    users: float
    factor: float = 1.1
    at_least_min: float = 10.0


@dataclass(frozen=True)
class Failure:
    """Nodes that are lost (or take no new jobs: drain) at a moment, for some hours."""

    at: datetime
    nodes: int = 1
    hours: float = 24.0
    kind: str = "down"


@dataclass(frozen=True)
class Plan:
    """One run. A variant inherits the baseline and overrides it."""

    name: str
    policy: str = "easy"
    weights: Mapping[str, Any] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    nodes: int = 0  # added, or removed where negative
    machine: MachineSpec = field(default_factory=MachineSpec)
    estimates: str = "request"
    events: str = "one-by-one"
    accurate_requests: AccurateRequests | None = None
    scale_requests: float | None = None
    load: float | None = None
    queues: Mapping[str, QueueRule] = field(default_factory=dict)
    low_queues: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    end_idle_after_h: IdleRule | None = None


@dataclass(frozen=True)
class Scenario:
    baseline: Plan
    variants: tuple[Plan, ...]
    machine: MachineSpec = field(default_factory=MachineSpec)
    seed: int = 1
    num_resamples: int = 1000
    months: str = "trusted"  # whose jobs are compared: trusted, plausible, all

    @property
    def plans(self) -> tuple[Plan, ...]:
        return (self.baseline, *self.variants)

    @property
    def idle_rules(self) -> tuple[IdleRule, ...]:
        """What must be looked up in the samples before the scenario can be played."""
        rules = [plan.end_idle_after_h for plan in self.plans]
        return tuple(dict.fromkeys(rule for rule in rules if rule is not None))


def read(toml_text: str, where: str = "the scenario") -> Scenario:
    """Parse a scenario; all that is wrong is told at once, with the names that are allowed."""
    try:
        return _scenario(tomllib.loads(toml_text), where)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{where}: not valid TOML: {error}") from None
    except RecursionError:
        raise ScenarioError(
            f"{where}: lists or tables are nested too deeply; a scenario needs four levels at most"
        ) from None
    except ValueError:  # Python neither reads nor writes an integer of so many digits
        raise ScenarioError(
            f"{where}: holds a number of thousands of digits; {LARGEST:,} is the largest"
        ) from None


def example() -> str:
    """A scenario with every key and what it means."""
    from importlib.resources import files

    return (files("hakaru.sim.whatif") / "example.toml").read_text(encoding="utf-8")


def _scenario(raw: Any, where: str) -> Scenario:
    checker = Checker()
    top = checker.table(raw, "", TOP)
    machine = MachineSpec(**checker.table(top.get("machine", {}), "machine", MACHINE))
    _check_machine(checker, machine, "machine")
    baseline = _plan(checker, top.get("baseline", {}), "baseline", Plan("baseline"))
    variants = tuple(
        _plan(checker, item, f"variant {number}", replace(baseline, name=f"variant {number}"))
        for number, item in enumerate(top.get("variant", []), 1)
    )
    _check_names(checker, baseline, variants)
    checker.done(where)
    chosen = {key: top[key] for key in ("seed", "num_resamples", "months") if key in top}
    return Scenario(baseline, variants, machine, **chosen)


def _plan(checker: Checker, raw: Any, where: str, begin: Plan) -> Plan:
    name = raw.get("name") if isinstance(raw, Mapping) else None
    named = f"{where} ({name})" if isinstance(name, str) and name.strip() else where
    values = checker.table(raw, named, PLAN)
    for key, (make, keys) in PARTS.items():
        if key in values:
            values[key] = make(**checker.table(values[key], f"{named}.{key}", keys))
    if "limits" in values:
        values["limits"] = _each(checker, values["limits"], f"{named}.limits", _limit)
    if "failures" in values:
        values["failures"] = _each(checker, values["failures"], f"{named}.failures", _failure)
    if "queues" in values:
        values["queues"] = _queues(checker, values["queues"], named)
    if "accurate_requests" in values:
        values["accurate_requests"] = _accurate(checker, values["accurate_requests"], named)
    if "end_idle_after_h" in values:
        values["end_idle_after_h"] = _idle(checker, values["end_idle_after_h"], named)
    plan = replace(begin, **{key: value for key, value in values.items() if value is not None})
    _check_plan(checker, plan, named)
    return plan


def _each(checker: Checker, raw: list[Any], where: str, make: Any) -> tuple[Any, ...]:
    made = [make(checker, item, f"{where}[{number}]") for number, item in enumerate(raw, 1)]
    return tuple(item for item in made if item is not None)


def _limit(checker: Checker, raw: Any, where: str) -> Limit | None:
    if isinstance(raw, str):  # as on the command line
        read = checker.value(raw, where, parse_limit)
        return read if isinstance(read, Limit) else None
    values = checker.table(raw, where, LIMIT)
    missing = [key for key in ("scope", "what", "value") if not _has(raw, key)]
    if missing:
        checker.problems.append(f"{where}: lacks {', '.join(missing)}; {LIMIT_EXAMPLE}")
    if not {"scope", "what", "value"} <= set(values):
        return None
    made = checker.value(values, where, lambda given: Limit(**given))
    return made if isinstance(made, Limit) else None


def _failure(checker: Checker, raw: Any, where: str) -> Failure | None:
    values = checker.table(raw, where, FAILURE)
    if not _has(raw, "at"):
        checker.problems.append(f"{where}: lacks at, the moment, e.g. at = 2018-04-01T09:00:00")
    return Failure(**values) if "at" in values else None


def _queues(checker: Checker, raw: Any, where: str) -> dict[str, QueueRule]:
    if not isinstance(raw, Mapping):
        checker.problems.append(f"{where}.queues: expected a table a queue, found {raw!r}")
        return {}
    return {
        name: QueueRule(**checker.table(rule, f"{where}.queues.{name}", QUEUE))
        for name, rule in raw.items()
    }


def _accurate(checker: Checker, raw: Any, where: str) -> AccurateRequests | None:
    given = raw if isinstance(raw, Mapping) else {"users": raw}
    values = checker.table(given, f"{where}.accurate_requests", ACCURATE)
    if not _has(given, "users"):
        checker.problems.append(f"{where}.accurate_requests: lacks users, in percent")
    return AccurateRequests(**values) if "users" in values else None


def _idle(checker: Checker, raw: Any, where: str) -> IdleRule | None:
    given = raw if isinstance(raw, Mapping) else {"hours": raw}
    values = checker.table(given, f"{where}.end_idle_after_h", IDLE)
    if not _has(given, "hours"):
        checker.problems.append(f"{where}.end_idle_after_h: lacks hours")
    return IdleRule(**values) if "hours" in values else None


def _check_machine(checker: Checker, machine: MachineSpec, where: str) -> None:
    if machine.processors is None:
        return
    said = [key for key in MACHINE if getattr(machine, key) is not None]
    more = [name for name in said if name != "processors"]
    if more:
        checker.problems.append(
            f"{where}: say processors (one pool, without nodes) or nodes and size, not both; found "
            f"processors and {', '.join(more)}"
        )


def _check_plan(checker: Checker, plan: Plan, where: str) -> None:
    _check_machine(checker, plan.machine, f"{where}.machine")
    policy = POLICIES.get(plan.policy)
    if plan.weights and policy.weights is None:
        moving = [each.id for each in POLICIES if each.weights]
        checker.problems.append(
            f"{where}.weights: the policy {plan.policy} has none; use {' or '.join(moving)}"
        )
    if plan.low_queues and not policy.preempts:
        stopping = [each.id for each in POLICIES if each.preempts]
        checker.problems.append(
            f"{where}.low_queues: the policy {plan.policy} stops no job; use {' or '.join(stopping)}"
        )
    if policy.backfill == "conservative" and plan.limits:
        checker.problems.append(
            f"{where}.limits: the policy {plan.policy} knows no limits; use an EASY policy, e.g. easy"
        )
    if policy.preempts and not plan.low_queues:
        checker.problems.append(
            f"{where}: the policy {plan.policy} needs low_queues, the queues that yield"
        )


def _check_names(checker: Checker, baseline: Plan, variants: tuple[Plan, ...]) -> None:
    names = [plan.name for plan in (baseline, *variants)]
    for name in dict.fromkeys(each for each in names if names.count(each) > 1):
        checker.problems.append(f"the name {name!r} is used {names.count(name)} times")
    if not variants:
        checker.problems.append(
            "there is no [[variant]]: say at least one change, e.g. [[variant]] and nodes = +4"
        )


def _has(raw: Any, key: str) -> bool:
    return isinstance(raw, Mapping) and key in raw


def _policy(value: Any) -> str:
    return POLICIES.get(check.text(value)).id


def _estimates(value: Any) -> str:
    estimates_of(check.text(value))
    return str(value)


def _change(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(
            "expected nodes added or removed, a whole number without quotes such as +4 or -4, "
            f"found {value!r}"
        )
    return check.within(value)


def _hours(value: Any) -> tuple[int, int]:
    is_pair = isinstance(value, list) and len(value) == 2 and all(type(h) is int for h in value)
    if not is_pair or not is_span(value):
        raise ValueError(
            f"expected two hours from 0 to 24 that differ, such as [9, 18], found {value!r}"
        )
    return (value[0], value[1])


def _moment(value: Any) -> datetime:
    """A time without a zone is the site's; it gets one when the site is known."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(
                f"expected a time such as 2018-04-01T09:00:00, found {value!r}"
            ) from None
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise ValueError(f"expected a time such as 2018-04-01T09:00:00, found {value!r}")
    return value.astimezone(UTC) if value.tzinfo else value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list of tables in [ ], found {value!r}")
    return value


def _variants(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("expected [[variant]] in double brackets before each, found one table")
    return value


def _points(value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected points by name such as {{short = 500}}, found {value!r}")
    return {name: check.number(0)(points) for name, points in value.items()}


def _weights(**given: Any) -> dict[str, Any]:
    """In the simulator's words: days are seconds."""
    days = {"max_age_d": "max_age_s", "half_life_d": "half_life_s"}
    return {
        days.get(key, key): value * DAY_S if key in days else value for key, value in given.items()
    }


def _as_it_is(value: Any) -> Any:
    return value


TOP: dict[str, check.Parse] = {
    "seed": check.whole(0),
    "num_resamples": check.whole(100),
    "months": check.one_of("trusted", "plausible", "all"),
    "machine": _as_it_is,
    "baseline": _as_it_is,
    "variant": _variants,
}
MACHINE: dict[str, check.Parse] = {
    "nodes": check.whole(1),
    "size": check.whole(1),
    "processors": check.whole(1),
    "packing": check.one_of("best-fit", "spread"),
    "whole_nodes": check.flag,
    "locality": check.one_of("anywhere", "preferred", "required"),
    "switch_size": check.whole(1),
}
PLAN: dict[str, check.Parse] = {
    "name": check.text,
    "policy": _policy,
    "weights": _as_it_is,
    "limits": _list,
    "nodes": _change,
    "machine": _as_it_is,
    "estimates": _estimates,
    "events": check.one_of("one-by-one", "batched"),
    "accurate_requests": _as_it_is,
    "scale_requests": check.number(0, above=True),
    "load": check.number(0, 10, above=True, such_as="1.2 for a fifth more"),
    "queues": _as_it_is,
    "low_queues": check.texts,
    "failures": _list,
    "end_idle_after_h": _as_it_is,
}
LIMIT: dict[str, check.Parse] = {
    "scope": check.one_of(*SCOPES),
    "what": check.one_of(*WHAT),
    "value": check.whole(0),
    "queue": check.text,
    "only": check.text,
    "hours": _hours,
}
ACCURATE: dict[str, check.Parse] = {
    "users": check.number(0, 100),
    "factor": check.number(1),
    "at_least_min": check.number(0),
}
IDLE: dict[str, check.Parse] = {
    "hours": check.number(0, above=True),
    "use": check.number(0, 0.99),
    "gap_min": check.number(0, above=True),
}
QUEUE: dict[str, check.Parse] = {
    "max_walltime_h": check.number(0, above=True),
    "max_gpus": check.whole(1),
    "over": check.one_of("cut", "refuse"),
    "takes_from": check.texts,
}
FAILURE: dict[str, check.Parse] = {
    "at": _moment,
    "nodes": check.whole(1),
    "hours": check.number(0, above=True),
    "kind": check.one_of("down", "drain"),
}
WEIGHTS: dict[str, check.Parse] = {
    "age": check.number(0),
    "max_age_d": check.number(0, above=True),
    "size": check.number(0),
    "fair_share": check.number(0),
    "half_life_d": check.number(0, above=True),
    "period_s": check.number(0, above=True),
    "queue": _points,
    "qos": _points,
}
PARTS: dict[str, tuple[Any, dict[str, check.Parse]]] = {
    "machine": (MachineSpec, MACHINE),
    "weights": (_weights, WEIGHTS),
}
