"""Nobody can be found by sums and differences of what the role user may ask, on small sites and on AAIC."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from hakaru.analyses import Selection, load_all
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.web.access import Viewer
from hakaru.web.privacy import RULES
from hakaru.web.readers import Readers
from hakaru.web.service import Service
from tests.conftest import job, put_jobs, utc
from tests.web.privacy._adversary import Adversary

EACH = 12  # of so many questions one is asked for its numbers too, the others for their jobs alone
U0 = Viewer("user", "u0", "u0")
Jobs = list[dict[str, Any]]
GROUPS = ("queue", "state", "application", "quarter")
WHICH = (
    "states",
    "parallelism",
    "walltime",
    "request-accuracy-by-quarter",
    "waits",
)  # of all spaces
SIZES: tuple[dict[str, int], ...] = (
    {}, {"max_gpus": 1}, {"min_gpus": 2}, {"min_gpus": 2, "max_gpus": 4},
)  # fmt: skip
RANGES: tuple[dict[str, int], ...] = (
    {}, {"min_gpus": 1, "max_gpus": 2}, {"min_gpus": 2, "max_gpus": 8}, {"min_gpus": 3, "max_gpus": 16},
)  # fmt: skip
PERIODS: tuple[dict[str, str], ...] = (
    {},
    {"until": "2018-02-28"},
    {"since": "2018-02-10", "until": "2018-02-20"},
    {"since": "2018-03-01", "until": "2018-04-30"},
)


def heavy_tail() -> Jobs:
    """Thirty people: the first has a quarter of the jobs, and some have one; queues and all else likewise."""
    lots = random.Random(7)
    people = [f"u{i}" for i in range(30)]
    often = [30 / (i + 1) for i in range(30)]
    return [
        job(
            i,
            user=lots.choices(people, often)[0],
            queue=lots.choices(("normal", "short", "long"), (10, 4, 1))[0],
            state=lots.choices(("completed", "failed", "cancelled"), (10, 3, 1))[0],
            num_gpus=lots.choices((1, 2, 4, 16), (10, 3, 2, 1))[0],
            application=lots.choices(("a", "b", None), (5, 1, 2))[0],
            submitted_at=utc(f"2018-0{lots.randint(1, 4)}-10"),
            run_s=lots.choice((0.0, 30.0, 3600.0)),
        )
        for i in range(400)
    ]


def lonely() -> Jobs:
    """Eight people do the same each month; u0 alone has a queue, a state, a size, an application, a month."""
    rows = [
        job(100 * month + i, user=f"u{i}", submitted_at=utc(f"2018-0{month}-10"), application="a",
            queue=("normal", "short")[i % 2 if month > 1 else 0], num_gpus=1 + (month == 3))
        for month in (1, 2, 3)
        for i in range(8)
    ]  # fmt: skip
    alone = (
        {"queue": "rare"},
        {"state": "failed"},
        {"num_gpus": 8},
        {"application": "own"},
        {"submitted_at": utc("2018-04-10")},
        {"queue": "short", "num_gpus": 2},
    )
    at = {"application": "a", "submitted_at": utc("2018-02-11")}
    return rows + [job(900 + i, user="u0", **at | each) for i, each in enumerate(alone)]


def unknown_people() -> Jobs:
    """Of a third of the jobs nobody is known, and of all in the queue `ghost`."""
    lots = random.Random(3)
    rows = heavy_tail()[:250]
    for row in rows:
        if lots.random() < 0.3:
            row["user"] = None
    ghosts = [job(900 + i, user=None, queue="ghost", application="a") for i in range(20)]
    return rows + ghosts


def numbered_anew() -> Jobs:
    """Three files that number seven people anew: 21 names, and seven people at most."""
    rows = heavy_tail()[:300]
    for i, row in enumerate(rows):
        row["user"] = f"log{i % 3}/{int(row['user'][1:]) % 7}"
    return rows


def questions(rows: Jobs) -> Iterator[dict[str, Any]]:
    """Every combination of the conditions, of all their values."""
    values = {
        name: sorted({row[name] for row in rows} - {None})
        for name in ("queue", "state", "application")
    }
    named = [[{}, *({name: each} for each in known)] for name, known in values.items()]
    for conditions in product(*named, SIZES, PERIODS):
        found = {name: value for each in conditions for name, value in each.items()}
        yield found | ({"state": (found["state"],)} if "state" in found else {})


def wider_questions(rows: Jobs) -> Iterator[dict[str, Any]]:
    """Two states at once, of which nobody's jobs may have one, and ranges of sizes, in each queue."""
    states = (*sorted({row["state"] for row in rows}), "preempted")
    queues = [{}, *({"queue": each} for each in sorted({row["queue"] for row in rows} - {None}))]
    for pair, sizes, queue in product(combinations(states, 2), RANGES, queues):
        yield {"state": pair} | sizes | queue


@pytest.mark.parametrize(
    "site", [heavy_tail, lonely, unknown_people, numbered_anew], ids=lambda site: site.__name__
)
def test_no_sum_of_answers_is_of_few_people(tmp_path: Path, site: Callable[[], Jobs]) -> None:
    began, rows = time.monotonic(), site()
    by_file = site is numbered_anew
    facts = '{"users_per_file": true}' if by_file else "{}"
    lake = put_jobs(Lake.create(tmp_path), rows, facts)
    found = Adversary(Service(Readers(lake)).of(U0), "c", by_file)
    for i, question in enumerate((*questions(rows), *wider_questions(rows))):
        for id in WHICH:
            found.ask_which(id, **question)
        if i % EACH == 0:
            found.ask(WHICH[i // EACH % len(WHICH)], **question)
        if len(question) <= 1:
            found.overview(**question)
            every_analysis(found, **question)
    _tell(found, began, site.__name__)
    assert found.num_answered > 20
    assert found.exposed() == []


def every_analysis(found: Adversary, **question: Any) -> None:
    """Every analysis that a user may ask for, in all groups, by jobs and by hours."""
    for id, rule in RULES.items():
        analysis = load_all().get(id)
        groups = [by for by in GROUPS if by not in (rule.cells or ())] if analysis.groups else []
        for by in (None, *groups):
            found.ask(id, **question, **({"by": by} if by else {}))
        if analysis.weighted:
            found.ask(id, **question, weight="gpu-hours")


ONE_OF_EACH = f"""
    SELECT {", ".join(f"jobs.{name}" for name in JOBS.names)} FROM jobs QUALIFY row_number() OVER (
        PARTITION BY date_trunc('month', submitted_local), queue, state, num_pes, application,
                     jobs.user, pe_hours > 0, run_s >= 60, wait_s IS NULL
        ORDER BY job_id, submitted_at) = 1
"""


def test_no_sum_of_answers_is_of_few_people_in_aaic(aaic_lake: Lake, tmp_path: Path) -> None:
    """One job of each kind that each user has: the same people behind every question, and far quicker."""
    began = time.monotonic()
    rows = Readers(aaic_lake).rows(ONE_OF_EACH, Selection(clusters=("aaic",)))
    lake = put_jobs(Lake.create(tmp_path), rows, '{"zone": "Asia/Tokyo"}')
    found = Adversary(Service(Readers(lake)).of(U0), "aaic", by_file=True)
    months = [f"{2017 + m // 12}-{m % 12 + 1:02}-15" for m in range(6, 24)]
    queues = ("normal", "short", "middle", "long")
    states = ("completed", "failed", "cancelled", "timeout", "killed")
    one: list[list[dict[str, Any]]] = [
        [{"queue": each} for each in queues],
        [{"state": (each,)} for each in states],
        [{"since": each, "until": each} for each in months],
        [{"min_gpus": a, "max_gpus": b} for a, b in ((1, 1), (2, 2), (3, 4), (5, 8), (1, 8))],
    ]
    alone = [{}, *(each for several in one for each in several)]
    pairs = [left | right for a, b in combinations(one, 2) for left, right in product(a, b)]
    for i, question in enumerate((*alone, *pairs)):
        for id in WHICH:
            found.ask_which(id, **question)
        if i % EACH == 0:
            found.ask(WHICH[i // EACH % len(WHICH)], **question)
    for question in alone[:2]:
        every_analysis(found, **question)
    _tell(found, began, "AAIC")
    assert found.num_answered > 200
    assert found.exposed() == []


def test_the_adversary_finds_what_three_answers_show(tmp_path: Path) -> None:
    """Whole less two parts: had the queues been counted one by one, `rare` would be u0's."""
    found = Adversary(Service(Readers(put_jobs(Lake.create(tmp_path), lonely()))).of(U0), "c")
    for queue in ("normal", "short"):
        found.keep([kind for kind in found._kinds if kind[1] == queue], queue)
    assert any("normal" in each and "short" in each for each in found.exposed())


def _tell(found: Adversary, began: float, site: str) -> None:
    print(
        f"\nadversary on {site}: {found.num_asked} questions, {found.num_answered} answered, "
        f"{sum(map(len, found.answers.values()))} different sets of jobs, {time.monotonic() - began:.1f} s"
    )
