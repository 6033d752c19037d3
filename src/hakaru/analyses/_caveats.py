"""What a log does not say and a figure must: the site's time zone, when the log began, how its jobs ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hakaru.analyses._ends import named
from hakaru.schema import ENDED
from hakaru.settings import toml_table

if TYPE_CHECKING:
    from hakaru.analyses._result import Result
    from hakaru.engine import Engine
    from hakaru.settings import Settings
    from hakaru.texts import Language

# What a query names that goes by the site's clock.
CALENDAR = {
    *("submitted_local", "ended_local", "sites", "hour", "weekday"),
    *("quarter", "quarter_number", "ended_quarter_number"),
}
FEW_JOBS = 20  # in so few, one state may be chance


@dataclass(frozen=True)
class OneState:
    """The state (null: unknown) of all jobs of a cluster that are neither pending nor running."""

    state: str | None


@dataclass(frozen=True)
class Caveats:
    """The clusters of a result whose hours are in UTC, whose dates are relative, whose states are all one."""

    unzoned: tuple[str, ...] = ()
    relative: tuple[str, ...] = ()
    one_state: Mapping[str, OneState] = field(default_factory=dict)
    keeps_some: bool = False  # jobs of some states only
    unrecorded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # ends that no job has


def caveats_of(
    settings: Settings,
    clusters: Collection[str],
    asked: Collection[str],
    states: Collection[str],
    one_state: Callable[[str], OneState | None],
) -> Caveats:
    """By the words of the query (`asked`, with the group) and the states that it keeps (none: all)."""
    unzoned, relative, alone = [], [], {}
    keeps = bool(states) and "any" not in states
    for name in clusters:
        site = settings.cluster(name)
        if CALENDAR & {*asked}:
            relative += [name] if site.relative_dates else []
            unzoned += [] if site.has_zone or site.relative_dates else [name]
        found = one_state(name) if keeps or "state" in asked else None
        # Where all are completed, a figure of the completed ones loses nothing.
        if found and ("state" in asked or found.state not in states):
            alone[name] = found
    return Caveats(tuple(unzoned), tuple(relative), alone, keeps)


def recorded_states(
    engine: Engine, stored: Callable[[Collection[str]], str], name: str
) -> dict[str | None, int]:
    """The states of a cluster's jobs (null: unknown), with the number of jobs of each."""
    rows = engine.query(
        f"""
        SELECT state, count(*) AS num_jobs FROM {stored(["cluster", "state"])} AS stored
        WHERE cluster = '{name}' GROUP BY state
        """
    ).to_pylist()
    return {row["state"]: row["num_jobs"] for row in rows}


def never_recorded(recorded: Mapping[str | None, int], states: Collection[str]) -> bool:
    """Whether a log may not record these states: of its jobs, which are not few, none has one."""
    return sum(recorded.values()) >= FEW_JOBS and not recorded.keys() & {*states}


def one_state(recorded: Mapping[str | None, int]) -> OneState | None:
    """The only state of a cluster's ended jobs, or of jobs whose end is unknown; null where they differ."""
    ended = [state for state in recorded if state is None or state in ENDED]
    if len(ended) != 1 or recorded[ended[0]] < FEW_JOBS:
        return None
    return OneState(ended[0])


def caveat_remarks(result: Result, words: Language) -> list[str]:
    """Sentences without a count, so that somebody who may not see counts can read them."""
    caveats = result.caveats
    lines = [words.say("remark", "dates_relative", cluster=name) for name in caveats.relative]
    for name in caveats.unzoned:
        told = words.say("remark", "zone_unknown", cluster=name, table=toml_table(name))
        lines += [told, 'zone = "Asia/Tokyo"']
    for name, found in caveats.one_state.items():
        key = "one_state" if found.state else "no_states"
        text = words.say("remark", key, cluster=name, state=found.state or "")
        helps = caveats.keeps_some and _left_by_state(result)
        lines.append(words.say("remark", "any_state", text=text) if helps else text)
    for name, ends in caveats.unrecorded.items():
        if name not in caveats.one_state:  # which says more
            states = words.listed([words.told("word", s, s) for end in ends for s in named(end)])
            lines.append(words.say("remark", "unrecorded", cluster=name, states=states))
    return lines


def _left_by_state(result: Result) -> int:
    """The jobs that only their state leaves out: its rule is the last."""
    return sum(each.num_jobs for each in result.left_out if each.rule.startswith("that are "))
