"""Run what the findings need, and tell what is worth telling; beside other clusters where there are any."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from hakaru.analyses import Result, Selection, counted, load_all
from hakaru.comparison import Comparison, Line, compare, users_note
from hakaru.findings import _rules  # noqa: F401 — fills the table
from hakaru.findings._base import FINDINGS, Finding, Numbers, Told, written
from hakaru.reference.metrics import find_metrics
from hakaru.reference.published import Published
from hakaru.texts import Language, language

if TYPE_CHECKING:
    from hakaru.analyses import Session

Key = tuple[str, str]  # analysis, weight

ANALYSES: tuple[Key, ...] = tuple(dict.fromkeys((f.analysis, f.weight) for f in FINDINGS))
BESIDE = (
    *("share_single_pe", "share_multi_node", "wra_mean", "spearman_size_run", "wait_median_s"),
    *("weekday_peak_ratio", "share_failed"),
)
APART = 1.5  # times the nearest published figure
COUNTS_PEOPLE = ("few-users",)
BY_CLOCK = ("busiest-hour", "busiest-day")
OF_STARTED = "waits"
FATES = ("abandoned-waits", "jobs")  # which says how many jobs started
BY_STATE = "states"  # the analysis that says nothing where a log has one state for all


def stand_out(
    session: Session, selection: Selection | None = None, lang: str = "en"
) -> list[Finding]:
    """What stands out among the selected jobs of one cluster, and beside what others have published."""
    results = gather(session, selection)
    chosen = next(iter(results.values())).selection
    (cluster,) = chosen.clusters
    beside = compare(session, [cluster], find_metrics(BESIDE), None, chosen)
    people = not users_note(session, cluster, chosen)
    return find(results, lang, session.unit(cluster), beside, people)


def gather(session: Session, selection: Selection | None = None) -> dict[Key, Result]:
    """The results that `find` reads: each analysis over the selection, ungrouped."""
    plain = replace(selection or Selection(), by=None)
    return {
        (id, weight): session.run(load_all().get(id), replace(plain, weight=weight))
        for id, weight in ANALYSES
    }


def find(
    results: Mapping[Key, Result],
    lang: str = "en",
    unit: str = "gpu",
    beside: Comparison | None = None,
    counts_people: bool = True,
) -> list[Finding]:
    """The findings that pass their thresholds; without `counts_people` none that counts users."""
    words = language(lang, unit)
    rules = [f for f in FINDINGS if counts_people or f.id not in COUNTS_PEOPLE]
    found = [_found(rule, results, words) for rule in rules]
    compared = _beside(beside, words) if beside else ()
    told = [*(each for each in found if each is not None), *compared]
    states = results.get((BY_STATE, "jobs"))
    if states and states.caveats.one_state:  # it shows how the log was written, not how jobs ended
        return [each for each in told if each.analysis != BY_STATE]
    return told


def _found(rule: Numbers, results: Mapping[Key, Result], words: Language) -> Finding | None:
    result = results.get((rule.analysis, rule.weight))
    told = rule.rule(result.rows) if result and result.num_used else None
    if result is None or told is None or not all(map(math.isfinite, told.values.values())):
        return None
    by_clock = rule.id in BY_CLOCK
    if by_clock and result.caveats.relative:  # no hour of the day is known
        return None
    counts = counted(result.analysis, result.selection)
    jobs = words.jobs(counts.min_run_s, counts.states)
    if rule.id == OF_STARTED and (share := _started(results)) != 1:
        told, jobs = _of_started(told, share, words)
    text = written(told, words, jobs)
    if by_clock and result.caveats.unzoned:
        text = words.say("finding", "in_utc", text=text)
    for over in result.over.values():
        text = words.say("finding", "over", text=text, share=words.share(over.share))
    return Finding(rule.id, text, rule.analysis, told.values)


def _started(results: Mapping[Key, Result]) -> float | None:
    """The share of jobs that started, as the viewer may see it; null where it is unknown."""
    fates = results.get(FATES)
    found = [row["share"] for row in fates.rows if row["fate"] == "started"] if fates else []
    return found[0] if found else None


def _of_started(told: Told, share: float | None, words: Language) -> tuple[Told, str]:
    """The same numbers, told of the jobs that started: others waited in vain, or wait still."""
    key = f"{told.key}-started"
    if not share:
        return replace(told, key=key), words.say("jobs", "started")
    jobs = words.say("jobs", "started_share", share=words.share(share))
    return replace(told, key=key, values=told.values | {"share_started": share}), jobs


def _beside(comparison: Comparison, words: Language) -> Iterator[Finding]:
    """The metrics in which the first cluster lies apart from every published one, on one side of all."""
    name = comparison.clusters[0]
    for line in comparison.lines:
        own = line.cells[name].value
        others = [f for f in line.published.values() if f.cluster.lower() != name.lower()]
        if line.metric.id not in BESIDE or own is None or not others or not _apart(own, others):
            continue
        values = {"own": own} | {figure.cluster: figure.value for figure in others}
        yield Finding(
            f"beside-{line.metric.id}",
            _sentence(line, own, others, words),
            line.metric.analysis,
            values,
        )


def _apart(own: float, others: list[Published]) -> bool:
    values = [figure.value for figure in others]
    if own < 0 or min(values) < 0:
        return (own > 0) != (max(values) > 0) and all((v > 0) == (values[0] > 0) for v in values)
    return own >= APART * max(values) or own * APART <= min(values)


def _sentence(line: Line, own: float, others: list[Published], words: Language) -> str:
    unit = line.metric.unit
    listed = [f"{f.cluster} {f.bound}{words.of_unit(f.value, unit)}" for f in others]
    return words.say(
        "finding",
        "beside",
        metric=words.told("metric", line.metric.id, line.metric.label),
        own=words.of_unit(own, unit),
        others=words.listed(listed),
    )
