"""Whether jobs may be left out is said alike, whichever value one person's hidden job has."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hakaru.analyses import load_all
from hakaru.lake import Lake
from hakaru.schema import STATES
from hakaru.web.access import Viewer
from hakaru.web.filters import AnalysisQuery, Filters
from hakaru.web.privacy import look_at
from hakaru.web.privacy._partition import COLUMNS, MEASURES, NAMES, partitioned
from hakaru.web.privacy._people import FEWEST
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from hakaru.web.service import Asker, Service
from tests.conftest import put_jobs, utc
from tests.web.privacy._adversary import cells_of
from tests.web.privacy._ask import jobs_of

U0 = Viewer("user", "u0", "u0")
Jobs = list[dict[str, Any]]
SIZES = (
    (1, 1),
    (1, 16),
    (17, 64),
    (17, 128),
    (17, 256),
    (65, 128),
    (129, 256),
    (2, None),
    (None, 128),
)
WHOLE: tuple[dict[str, Any], ...] = (
    {"state": ("completed", "preempted")},
    {"since": "2018-02-01", "until": "2018-02-20", "min_gpus": 17, "max_gpus": 128},
)  # asked for with numbers, overview and findings
MONTHS = ("2018-01", "2018-02", "2018-06")


# ---- two sites that differ in one job, asked through the service


def site(**hidden: Any) -> Jobs:
    """Eight people, of whom six do something else too; u7's one job more joins what the six do."""
    rows: Jobs = []
    for i, month in enumerate(MONTHS):
        at = {"submitted_at": utc(f"{month}-10"), "application": "a"}
        rows += jobs_of("01234567", 100 * i, **at) + jobs_of(
            "012345", 100 * i + 10, **at, num_gpus=16
        )
        rows += jobs_of("01234567", 100 * i + 20, **at, num_gpus=32)
        rows += jobs_of("012345", 100 * i + 30, **at, state="failed", run_s=30.0)
        rows += jobs_of("01234567", 100 * i + 40, **at, queue="short")
        rows += jobs_of("012345", 100 * i + 50, **at, queue="long")
    own = {"submitted_at": utc("2018-02-11"), "application": "a"}
    return rows + jobs_of("7", 900, **own | hidden)


def large(num_gpus: int) -> dict[str, Any]:
    """A job of 512 GPU-hours."""
    return {"num_gpus": num_gpus, "run_s": 512 / num_gpus * 3600}


HIDDEN: dict[str, list[dict[str, Any]]] = {
    "state": [{"state": state} for state in ("preempted", "out_of_memory", "node_failed")],
    "size": [large(num) for num in (64, 128, 256)],
    "queue": [{"queue": queue} for queue in ("rare", "zebra")],
    "month": [{"submitted_at": utc(f"2018-0{month}-11")} for month in (3, 4, 5)],
    "run": [{"state": "failed", "run_s": run} for run in (30.0, 90.0)],
}


def conditions() -> Iterator[dict[str, Any]]:
    """One or two states, ranges of sizes, queues, periods; and some of these together."""
    states: list[dict[str, Any]] = [{"state": (each,)} for each in STATES]
    states += [{"state": pair} for pair in combinations(STATES, 2) if "completed" in pair]
    sizes = [{"min_gpus": least, "max_gpus": most} for least, most in SIZES]
    queues = [{"queue": each} for each in ("normal", "long", "rare")]
    periods = [(a, b) for a in range(1, 7) for b in range(a, 7)]
    months = [{"since": f"2018-0{a}-01", "until": f"2018-0{b}-20"} for a, b in periods]
    yield from ({}, *states, *sizes, *queues, *months)
    some = (states[-3:], sizes[-3:], queues[:1], months[-2:])
    for left, right in combinations(some, 2):
        yield from (one | other for one, other in product(left, right))


def remark(asker: Asker, id: str, query: dict[str, Any]) -> bool | str:
    """Whether jobs may be left out of the answer; or the refusal."""
    asked = AnalysisQuery(cluster=("c",), **query)
    try:
        view = look_at(asker.readers, asker.viewer, asked, asked.selection(), load_all().get(id))
    except Refused as error:
        return f"{error} {error.fix}"
    return view.is_partial


def told(asker: Asker, query: dict[str, Any]) -> list[Any]:
    """All that answers say beside their numbers, how many jobs they count, and which findings there are."""
    table = asker.result("queues", AnalysisQuery(cluster=("c",), **query))
    (overview,) = asker.overview(Filters(cluster=("c",), **query)).clusters
    (findings,) = asker.findings(Filters(cluster=("c",), **query)).clusters
    return [
        table.complete,
        table.withheld,
        [row["num_jobs"] for row in table.result.rows],
        overview.measures.num_jobs,
        overview.before_period,
        overview.before is None,
        [each.id for each in findings.findings],
    ]


@pytest.mark.parametrize("column", HIDDEN)
def test_the_value_of_a_hidden_job_shows_in_no_remark(tmp_path: Path, column: str) -> None:
    askers = [
        Service(Readers(put_jobs(Lake.create(tmp_path / str(i)), site(**hidden)))).of(U0)
        for i, hidden in enumerate(HIDDEN[column])
    ]
    for query in conditions():
        for id in ("states", "queues", "parallelism"):
            assert len({remark(asker, id, query) for asker in askers}) == 1, (id, query)
    for query in WHOLE:
        first, *others = [told(asker, query) for asker in askers]
        assert all(each == first for each in others), query


# ---- many small sites, asked at the partition


COMMON: dict[str, tuple[Any, ...]] = {
    "queue": ("a", "b"),
    "state": ("completed", "failed"),
    "ran_minute": (1, 0),
    "parallelism": ("single-pe", None),
    "size_class": (0, 4, None),
    "month": (1, 2),
    "application": (None,),
    "fate": (1,),
}
RARE: dict[str, tuple[Any, ...]] = {  # of the last person's only job
    "queue": ("x", "y", None),
    "state": ("preempted", "out_of_memory"),
    "ran_minute": (1, 0),
    "parallelism": ("multi-node", "single-pe", None),
    "size_class": (6, 7, None),
    "month": (1, 3, 4),
}
ASKED = ("queue", "state", "size_class", "month")  # by the filters; of the others analyses ask for
COUNTED = {"ran_minute": bool, "parallelism": lambda name: name is not None}


def a_site(lots: random.Random) -> Jobs:
    """Twenty people with some jobs each, and one with one."""
    people = [f"u{i}" for i in range(20) for _ in range(lots.randint(1, 8))] + ["last"]
    often = {name: [3.0**-i for i in range(len(known))] for name, known in COMMON.items()}
    return [
        {name: lots.choices(known, often[name])[0] for name, known in COMMON.items()}
        | {"holder": user}
        | dict.fromkeys(MEASURES, True)
        for user in people
    ]


def questions() -> list[tuple[dict[str, Any], tuple[str, ...]]]:
    """Every value of every column alone, and two of them together; with an analysis' own rules or not."""
    each = []
    for name in ASKED:
        known = [value for value in dict.fromkeys(COMMON[name] + RARE[name]) if value is not None]
        sets: list[Any] = [None, *([value] for value in known), [known[0], known[-1]]]
        each.append([{} if some is None else {name: set(some).__contains__} for some in sets])
    return [
        ({k: v for part in parts for k, v in part.items()}, ())
        for parts in product(*each, [{}, COUNTED])
    ]


QUESTIONS = questions()


def answers(jobs: Jobs) -> tuple[list[int], list[bool]]:
    """The number of jobs that each question counts, 0 for a refusal; and whether jobs may be left out."""
    partition = partitioned(_table(jobs), by_file=False)
    assert partition is not None
    sizes = np.array([len(cell) for cell in cells_of(partition, jobs)])
    found = [partition.choose(wanted, keys) for wanted, keys in QUESTIONS]
    counts = [int(sizes[each.inside].sum()) for each in found]
    return counts, [each.is_partial for each in found if each]


def test_remarks_tell_nothing_that_counts_do_not() -> None:
    """One job of one person is given other values: where no count changes, no remark does."""
    num_alike = 0
    for seed in range(3):
        for one, other in _changes(a_site(random.Random(seed))):
            (counts, remarks), (other_counts, other_remarks) = answers(one), answers(other)
            if counts == other_counts:
                num_alike += 1
                assert remarks == other_remarks, (seed, one[-1], other[-1])
    assert num_alike > 10


def _changes(jobs: Jobs) -> Iterator[tuple[Jobs, Jobs]]:
    """Two sites that differ in one value of the last job."""
    for name, known in RARE.items():
        sites = [[*jobs[:-1], jobs[-1] | {name: value}] for value in known]
        yield from combinations(sites, 2)


def _table(jobs: Jobs) -> pa.Table:
    """As the query for the partition gives it: names of few people are no names."""
    columns = {name: [job[name] for job in jobs] for name in (*COLUMNS, "holder", *MEASURES)}
    for name in NAMES:
        people: dict[Any, set[str]] = {}
        for job in jobs:
            people.setdefault(job[name], set()).add(job["holder"])
        rare = [len(people[job[name]]) < FEWEST for job in jobs]
        columns[name] = [None if few else job[name] for job, few in zip(jobs, rare, strict=True)]
        columns[f"{name}_is_rare"] = rare
    return pa.table(columns)
