"""Two sites that differ in what one person did: a user who sees both sees the same.

All but sums and means, which one person moves as the documentation says.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from hakaru.analyses import load_all
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.web.access import Viewer
from hakaru.web.filters import AnalysisQuery, CompareQuery, Filters
from hakaru.web.readers import Readers
from hakaru.web.service import Asker, Service
from tests.conftest import job, put_jobs, utc

SUMS = {"mean", "mean_s", "mean_h", "pe_hours", "busy_pes", "jobs_waiting", "utilisation"}
SUMS |= {"utilisation_mean", "run_mean_s", "wait_mean_s", "wra_mean"}
Jobs = list[dict[str, Any]]


def site(**last: Any) -> Jobs:
    """Seven people with a job on two days each, far apart; of u6 the second is as a twin has it."""
    days = [utc("2018-01-01T00:00:00"), utc("2018-01-11T00:00:00")]
    rows = [
        job(10 * k + i, user=f"u{i}", submitted_at=day, requested_s=None)
        for k, day in enumerate(days)
        for i in range(7)
    ]
    return [*rows[:-1], rows[-1] | last]


TWINS: dict[str, tuple[Jobs, Jobs]] = {
    # after the job that ended at 01:00:10
    "pause": (site(submitted_at=utc("2018-01-01T02:00:00")), site(submitted_at=utc("2018-01-01T05:00:00"))),
    "wait": (site(wait_s=20.0), site(wait_s=90000.0)),
    "run": (site(run_s=3700.0), site(run_s=90000.0)),
    "request": (site(), site(requested_s=7200.0)),
    "quarter": (site(account="lab"), site(account="secret", submitted_at=utc("2018-01-12"))),
}  # fmt: skip


@pytest.mark.parametrize("twin", TWINS)
def test_what_one_person_did_changes_no_answer(tmp_path: Path, twin: str) -> None:
    one, other = (
        shown(Service(Readers(put_jobs(Lake.create(tmp_path / str(i)), rows))).of(U0))
        for i, rows in enumerate(TWINS[twin])
    )
    assert one.keys() == other.keys()
    assert {key: (one[key], other[key]) for key in one if not _alike(one[key], other[key])} == {}


U0 = Viewer("user", "u0", "u0")


def shown(asker: Asker) -> dict[str, Any]:
    """Every answer that a user gets of the whole cluster, or the words of its refusal; without the sums."""
    found: dict[str, Any] = {}
    for id in load_all().ids():
        try:
            table = asker.table(id, AnalysisQuery(cluster=("c",)))
        except HakaruError as error:
            found[id] = str(error)
            continue
        for i, row in enumerate(table.rows):
            found |= {f"{id} {i} {name}": v for name, v in row.items() if name not in SUMS}
    (overview,) = asker.overview(Filters(cluster=("c",))).clusters
    measures = overview.measures.model_dump()
    found |= {f"overview {name}": v for name, v in measures.items() if name not in SUMS}
    for each in asker.compare(CompareQuery(cluster=("c",))).metrics:
        if each["id"] not in SUMS or each["computed"]["c"]["value"] is None:
            found[f"compare {each['id']}"] = each["computed"]["c"]
    return found


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other)
    return bool(one == other)
