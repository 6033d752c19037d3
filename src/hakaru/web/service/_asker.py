"""One viewer's questions, each answered by a small file of its own."""

from __future__ import annotations

from dataclasses import dataclass

from hakaru.web import filters as asked
from hakaru.web import models
from hakaru.web.access import Viewer
from hakaru.web.privacy import Guarded
from hakaru.web.readers import Readers
from hakaru.web.service import (
    _analyses,
    _clusters,
    _compare,
    _findings,
    _jobs,
    _lake,
    _overview,
    _people,
)


@dataclass(frozen=True)
class Service:
    readers: Readers

    def of(self, viewer: Viewer) -> Asker:
        return Asker(self.readers, viewer)


@dataclass(frozen=True)
class Asker:
    readers: Readers
    viewer: Viewer

    def me(self) -> models.Me:
        viewer = self.viewer
        return models.Me(
            name=viewer.name,
            role=viewer.role,
            user=viewer.user,
            signed_in=viewer.signed_in,
            sign_out=viewer.has_session,
        )

    def clusters(self) -> models.Clusters:
        return _clusters.clusters(self.readers, self.viewer)

    def analyses(self) -> models.Analyses:
        return _analyses.listed()

    def result(self, id: str, query: asked.AnalysisQuery) -> Guarded:
        """The result itself, for a file or a figure; what is withheld is gone from its table."""
        return _analyses.result(self.readers, self.viewer, id, query)

    def table(self, id: str, query: asked.AnalysisQuery) -> models.Table:
        return _analyses.table(self.result(id, query))

    def figure(self, id: str, query: asked.FigureQuery) -> models.Drawing:
        return _analyses.figure(self.readers, self.result(id, query), query.dark)

    def overview(self, filters: asked.Filters) -> models.Overview:
        return _overview.overview(self.readers, self.viewer, filters)

    def findings(self, filters: asked.Filters) -> models.Findings:
        return _findings.findings(self.readers, self.viewer, filters)

    def jobs(self, query: asked.JobsQuery) -> models.Jobs:
        return _jobs.jobs(self.readers, self.viewer, query)

    def job(self, query: asked.JobQuery) -> models.Job:
        return _jobs.job(self.readers, self.viewer, query)

    def people(self, query: asked.PeopleQuery) -> models.People:
        return _people.people(self.readers, self.viewer, query)

    def compare(self, query: asked.CompareQuery) -> models.Comparison:
        return _compare.compare(self.readers, self.viewer, query)

    def lake(self) -> models.LakeContents:
        return _lake.contents(self.readers, self.viewer)

    def rejects(self, query: asked.RejectsQuery) -> models.Rejects:
        return _lake.rejects(self.readers, self.viewer, query)
