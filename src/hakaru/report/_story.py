"""All that a report says, as data: gathered once, in the order in which the AAIC paper tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from hakaru.analyses import Result, Selection, load_all
from hakaru.comparison import (
    HEADLINE,
    Comparison,
    Notes,
    compare,
    contrasts,
    notes_on_users,
    users_note,
)
from hakaru.errors import HakaruError
from hakaru.figures import Figure, draw
from hakaru.findings import ANALYSES as NEEDED
from hakaru.findings import Finding, find
from hakaru.reference.metrics import find_metrics
from hakaru.reference.published import find_clusters
from hakaru.registry import hint
from hakaru.report._measure import measured_view, other_runs
from hakaru.report._quality import Quality, quality_of
from hakaru.texts import Language, language

if TYPE_CHECKING:
    from hakaru.analyses import Session

MEASURES = """
    SELECT count(*) AS num_jobs, count(DISTINCT jobs.user) AS num_users,
           count(DISTINCT account) AS num_accounts, sum(pe_hours) AS pe_hours,
           min(submitted_local) AS since, max(submitted_local) AS until
    FROM jobs
"""


@dataclass(frozen=True)
class Part:
    """One analysis: its result, its figure, and whether it counts ids that are not people."""

    result: Result
    figure: Figure
    counts_ids: bool


@dataclass(frozen=True)
class Log:
    """The selected jobs in a few numbers; users are null where they cannot be counted."""

    num_jobs: int
    num_users: int | None
    num_accounts: int | None
    pe_hours: float | None
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True)
class Story:
    cluster: str
    session: Session
    words: Language
    selection: Selection
    log: Log
    findings: list[Finding]
    parts: list[Part]
    published: Comparison  # every metric of the cluster, with all published figures
    compared: Comparison  # the headline, with the clusters that were asked for
    contrasts: list[str]
    quality: Quality
    notes: Notes
    made_at: datetime
    version: str
    measured: dict[str, Any] | None = None  # the newest run of the cluster, where there is one
    not_measured: str = ""  # where there are runs of other clusters only, which

    @property
    def synthetic(self) -> bool:
        return self.cluster in self.session.synthetic

    @property
    def missing(self) -> float | None:
        return self.session.missing.get(self.cluster)


def tell(
    session: Session,
    selection: Selection | None = None,
    beside: Sequence[str] | None = None,
    lang: str = "en",
) -> Story:
    """Gather the story of one cluster; `beside` names clusters, stored or published, to set next to it."""
    language(lang)  # a wrong one is told before any work
    results = _run_all(session, replace(selection or Selection(), by=None, weight="jobs"))
    chosen = results[0].selection
    (cluster,) = chosen.clusters
    words = language(lang, session.unit(cluster))
    stored, others = _split(session, cluster, beside)
    parts = [_part(session, result, lang) for result in results]
    published = compare(session, [cluster], find_metrics(()), None, chosen)
    compared = compare(session, [cluster, *stored], find_metrics(HEADLINE), others, chosen)
    people = not users_note(session, cluster, chosen)
    measured = measured_view(session, cluster)
    return Story(
        cluster=cluster,
        session=session,
        words=words,
        selection=chosen,
        log=_log(session, chosen, people),
        findings=find(_needed(session, chosen, parts), lang, words.unit, published, people),
        parts=parts,
        published=published,
        compared=compared,
        contrasts=_contrasts(compared, stored, lang),
        quality=quality_of(session, chosen, [part.result for part in parts]),
        notes=Notes(),
        made_at=datetime.now(UTC),
        version=version("hakaru"),
        measured=measured,
        not_measured="" if measured else other_runs(session),
    )


def _run_all(session: Session, selection: Selection) -> list[Result]:
    """Every registered analysis; the first run also names the cluster, or says that there are several."""
    return [session.run(analysis, selection) for analysis in load_all()]


def _split(
    session: Session, cluster: str, names: Sequence[str] | None
) -> tuple[list[str], list[str] | None]:
    """The named clusters of the workspace, and the published ones: all of those where none is named."""
    if names is None:
        return [], None
    stored = [name for name in names if name in session.known_clusters and name != cluster]
    others = [name for name in names if name not in (*session.known_clusters, cluster)]
    try:
        return stored, find_clusters(others)
    except HakaruError as error:
        known = hint(others[0], session.known_clusters)
        raise HakaruError(f"{error}; nor is it a cluster of the workspace ({known})") from None


def _part(session: Session, result: Result, lang: str) -> Part:
    (cluster,) = result.selection.clusters
    figure = draw(result, unit="cpu" if session.unit(cluster) == "cpu" else "gpu", lang=lang)
    return Part(result, figure, bool(notes_on_users(session, result)))


def _needed(
    session: Session, chosen: Selection, parts: Sequence[Part]
) -> dict[tuple[str, str], Result]:
    """What the findings read: the parts' own results, and those that count otherwise."""
    own = {part.result.analysis.id: part.result for part in parts}
    return {
        (id, weight): own[id]
        if weight == chosen.weight
        else session.run(load_all().get(id), replace(chosen, weight=weight))
        for id, weight in NEEDED
    }


def _contrasts(compared: Comparison, stored: Sequence[str], lang: str) -> list[str]:
    """The sentences of `hakaru compare`, which are in English, where clusters of one's own are compared."""
    if not stored or lang != "en":
        return []
    return [sentence for contrast in contrasts(compared) for sentence in contrast.sentences]


def _log(session: Session, chosen: Selection, people: bool) -> Log:
    plain = replace(chosen, weight="jobs", min_run_s=None, states=())
    (row,) = session.ask(MEASURES, plain).to_pylist()
    uncounted = {} if people else {"num_users": None, "num_accounts": None}
    return Log(**(row | uncounted))
