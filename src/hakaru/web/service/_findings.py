"""What stands out, in sentences; for a user only from answers that hold nothing back."""

from __future__ import annotations

from hakaru.analyses import Result, Session
from hakaru.findings import ANALYSES, BESIDE, Finding, find
from hakaru.web.access import Viewer
from hakaru.web.filters import AnalysisQuery, Filters
from hakaru.web.models import ClusterFindings, Findings, Sentence
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from hakaru.web.service import _analyses
from hakaru.web.service._clusters import EMPTY, about, chosen, note_on_users

Key = tuple[str, str]


def findings(readers: Readers, viewer: Viewer, filters: Filters) -> Findings:
    if not about(readers).zones:
        filters.check()
        return Findings(clusters=[], hint=EMPTY)
    names = chosen(readers, filters.cluster)
    return Findings(clusters=[_cluster(readers, viewer, filters, name) for name in names])


def _cluster(readers: Readers, viewer: Viewer, filters: Filters, name: str) -> ClusterFindings:
    one = filters.model_copy(update={"cluster": (name,)})
    results = _results(readers, viewer, one)
    told = _told(readers, viewer, results, name) if results else []
    sentences = [
        Sentence(id=each.id, text=each.text, analysis=each.analysis, values=dict(each.values))
        for each in told
    ]
    missing = about(readers).missing.get(name)
    return ClusterFindings(cluster=name, missing=missing, findings=sentences)


def _results(readers: Readers, viewer: Viewer, filters: Filters) -> dict[Key, Result]:
    """The analyses that findings read, as this viewer gets them; one that is not complete is left out."""
    found: dict[Key, Result] = {}
    for id, weight in ANALYSES:
        query = AnalysisQuery(**filters.model_dump(exclude_none=True) | {"weight": weight})
        try:
            guarded = _analyses.result(readers, viewer, id, query)
        except Refused:
            continue
        if guarded.complete:
            found[(id, weight)] = guarded.result
    return found


def _told(readers: Readers, viewer: Viewer, results: dict[Key, Result], name: str) -> list[Finding]:
    """An operator's also beside what others have published, which is computed of all jobs at once."""
    from hakaru.comparison import Comparison, compare
    from hakaru.reference.metrics import find_metrics

    selection = next(iter(results.values())).selection
    people = note_on_users(readers, selection) is None
    beside: Comparison | None = None

    def answer(session: Session) -> Comparison:
        return compare(session, [name], find_metrics(BESIDE), None, selection)

    if viewer.sees_all:
        beside = readers.ask(("beside", name, selection), answer)
    return find(results, "en", about(readers).units[name], beside, people)
