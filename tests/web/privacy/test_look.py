"""What the role user may ask of others' jobs: whole cells of the partition, or the whole cluster.

The site: eight people run in `normal` each month, six of them fail in `short` on two GPUs; u1's one job in
`rare`, in February, shares a cell with that month's of `short`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from hakaru.analyses import HAS_SIZE, load_all
from hakaru.analyses._base import HAS_RUN
from hakaru.lake import Lake
from hakaru.web.access import Viewer
from hakaru.web.filters import Filters
from hakaru.web.privacy import GROUPS, RULES, look
from hakaru.web.privacy._look import counted_by
from hakaru.web.privacy._partition import COLUMNS
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from tests.conftest import job, put_jobs, utc
from tests.web.privacy._ask import API, Params, get, jobs_of, refused

U0 = Viewer("user", "u0", "u0")


@pytest.mark.parametrize(
    "params",
    [
        {"user": "u2"},
        {"user": "U1"},
        {"user": "u1 "},
        {"account": "other"},
        {"where": "user = 'u2'"},
        {"where": "user = 'u1'"},
        {"where": "num_gpus = 1 OR user = 'u2'"},
        {"where": "num_gpus = 2"},
        {"min_run": 10},
        {"min_run": 0},
        {"by": "user"},
        {"by": "account"},
        {"by": "num_gpus"},
        {"by": "num_nodes"},
        {"by": "parallelism"},
        {"queue": "rare"},
        {"queue": "none such"},
        {"application": "secret"},
        {"min_gpus": 2, "max_gpus": 2, "queue": "rare"},
        {"min_gpus": 100},
        {"since": "2030-01-01"},
        {"until": "2000-01-01"},
    ],
    ids=str,
)
def test_what_could_pick_out_a_person_is_refused(u1: httpx.Client, params: Params) -> None:
    for path in ("analyses/states", "figures/states"):
        refused(u1, path, cluster="c", **params)
    if "by" not in params:
        refused(u1, "overview", cluster="c", **params)


def test_a_cluster_of_few_people_is_refused(u1: httpx.Client) -> None:
    for path in ("analyses/states", "analyses/load", "overview", "compare", "figures/waits"):
        refused(u1, path, cluster="tiny")
    refused(u1, "analyses/states", by="cluster", cluster=["tiny"])


def test_side_by_side_a_small_cluster_is_refused(u1: httpx.Client) -> None:
    assert "on tiny" in refused(u1, "analyses/states", by="cluster")
    assert get(u1, "analyses/states", by="cluster", cluster="c")["rows"]


@pytest.mark.parametrize(
    ("asked", "num_jobs", "is_partial"),
    [
        ({}, 36, True),  # states: without the cell of February that holds two
        ({"queue": "normal"}, 24, True),  # that cell does not say which queues it holds
        ({"queue": "short"}, 12, True),  # without February's, where u1's `rare` is
        ({"state": "completed"}, 24, True),
        ({"state": "failed"}, 12, True),
        ({"state": ["failed", "completed"]}, 36, True),
        ({"queue": "normal", "state": "completed"}, 24, True),
        ({"queue": "short", "state": "failed"}, 12, True),
        ({"max_gpus": 1}, 24, True),
        ({"min_gpus": 2}, 12, True),
        ({"min_gpus": 1, "max_gpus": 2}, 36, True),
        ({"min_gpus": 2, "max_gpus": 2}, 12, True),
        ({"since": "2018-02-20", "until": "2018-02-20", "queue": "normal"}, 8, True),
        ({"since": "2018-03-01", "queue": "normal"}, 8, False),
        ({"since": "2018-03-01"}, 14, False),
        ({"until": "2018-01-01"}, 14, False),
    ],
    ids=str,
)
def test_a_question_gets_the_cells_inside_its_conditions(
    u1: httpx.Client, asked: Params, num_jobs: int, is_partial: bool
) -> None:
    answer = get(u1, "analyses/states", cluster="c", **asked)
    assert answer["num_selected"] == answer["num_used"] == num_jobs
    assert sum(row["num_jobs"] for row in answer["rows"]) == num_jobs
    assert sum(row["pe_hours"] for row in answer["rows"]) == num_jobs  # an hour each
    assert ("left out" in (answer["withheld"] or {"why": ""})["why"]) == is_partial


FEBRUARY = {"since": "2018-02-01", "until": "2018-02-28"}


@pytest.mark.parametrize(
    ("id", "asked", "fix"),
    [
        ("states", {"queue": "short", **FEBRUARY}, "Leave out queue, or choose normal."),
        ("states", {"since": "2030-01-01"},
         "Leave out since and until, or choose one of 2018-01, 2018-02, 2018-03."),
        ("states", {"queue": "short", "since": "2030-01-01"},
         "Leave out since and until, or choose one of 2018-01, 2018-03."),
        ("states", {"min_gpus": 3}, "Leave out min_gpus and max_gpus, or choose one of 1, 2."),
        ("states", {"min_gpus": 2, **FEBRUARY},
         "Leave out since and until, or choose one of 2018-01, 2018-03."),
        ("walltime", {"min_gpus": 2, "max_gpus": 2}, "Ask with state=any, or choose failed."),
        ("states", {"state": "preempted"}, "Ask with state=any, or choose one of completed, failed."),
        ("states", {"queue": "none such", "application": "x", "state": "preempted"},
         "Ask with fewer conditions or without by."),
    ],
    ids=str,
)  # fmt: skip
def test_a_refusal_names_the_condition_to_drop(
    u1: httpx.Client, id: str, asked: Params, fix: str
) -> None:
    answer = u1.get(f"{API}/analyses/{id}", params={"cluster": "c", **asked}).json()
    assert "too few people ran jobs on c" in answer["detail"]
    assert answer["fix"].startswith(fix + " ")


def test_the_advice_of_a_refusal_is_answered(u1: httpx.Client) -> None:
    """Each queue that is named for a month can be asked for in that month, and each month for a queue."""
    for month in ("2018-01", "2018-02", "2018-03"):
        days = {"since": f"{month}-01", "until": f"{month}-28"}
        fix = u1.get(f"{API}/analyses/states", params={"cluster": "c", "queue": "x", **days}).json()
        for queue in _chosen(fix["fix"]):
            assert get(u1, "analyses/states", cluster="c", queue=queue, **days)["rows"]
    late = {"cluster": "c", "queue": "short", "since": "2030-01-01"}
    for month in _chosen(u1.get(f"{API}/analyses/states", params=late).json()["fix"]):
        days = {"since": f"{month}-01", "until": f"{month}-28"}
        assert get(u1, "analyses/states", cluster="c", queue="short", **days)["rows"]


def _chosen(fix: str) -> list[str]:
    """The values that a refusal names."""
    _, _, named = fix.partition("or choose ")
    return named.partition(". ")[0].removeprefix("one of ").split(", ")


def test_periods_are_whole_months(u1: httpx.Client) -> None:
    february = {"since": "2018-02-01", "until": "2018-02-28"}
    for since, until in (
        ("2018-02-20", "2018-02-20"),
        ("2018-02-01", "2018-02-28"),
        ("2018-02-20T11:59:59", "2018-02-20T12:00:01"),
        ("2018-02-28", "2018-02-28T23:59:59"),
    ):
        (found,) = get(u1, "overview", cluster="c", since=since, until=until)["clusters"]
        assert (found["period"], found["measures"]["num_jobs"]) == (february, 15)
    two = get(u1, "overview", cluster="c", since="2018-02-28", until="2018-03-01")["clusters"][0]
    assert two["period"] == {"since": "2018-02-01", "until": "2018-03-31"}
    assert two["measures"]["num_jobs"] == 29


def test_sizes_are_whole_classes(tmp_path: Path) -> None:
    """3 and 4 GPUs are one class, asked for whole or not at all."""
    rows = jobs_of("012345", 0, num_gpus=3) + jobs_of("012345", 10, num_gpus=4)
    rows += jobs_of("012345", 20, num_gpus=5) + jobs_of("012345", 30, num_gpus=None)
    readers = Readers(put_jobs(Lake.create(tmp_path), rows))

    def num(**sizes: int) -> int:
        filters = Filters(cluster=("c",), **sizes)
        view = look(readers, U0, filters, filters.selection())
        return int(readers.rows("SELECT count(*) AS num FROM jobs", view.selection)[0]["num"])

    assert num(min_gpus=3, max_gpus=4) == num(min_gpus=2, max_gpus=7) == 12
    assert num(min_gpus=4, max_gpus=8) == num(min_gpus=5) == 6
    for sizes in ({"min_gpus": 4, "max_gpus": 4}, {"min_gpus": 3, "max_gpus": 3}, {"min_gpus": 6}):
        with pytest.raises(Refused):
            num(**sizes)


def test_side_by_side_each_cluster_has_its_own_cells(tmp_path: Path) -> None:
    """In b one person is there in February, whom the six of c would hide from a count over both."""
    rows = [
        job(100 * month + i, cluster=cluster, user=f"u{i}", submitted_at=utc(f"2018-0{month}-10"))
        for cluster, people in (("b", (6, 1, 6)), ("c", (6, 6, 6)))
        for month, num in enumerate(people, 1)
        for i in range(num)
    ]
    readers = Readers(put_jobs(Lake.create(tmp_path), rows))
    filters = Filters(since="2018-02-01", until="2018-03-31")
    both = replace(filters.selection("cluster"), clusters=("b", "c"))
    found = readers.rows(
        "SELECT cluster, count(*) AS num FROM jobs GROUP BY cluster",
        look(readers, U0, filters, both).selection,
    )
    # of b January's cell holds February too
    assert {row["cluster"]: row["num"] for row in found} == {"b": 6, "c": 12}
    with pytest.raises(Refused, match="on b that"):
        february = Filters(since="2018-02-01", until="2018-02-28")
        look(readers, U0, february, replace(february.selection("cluster"), clusters=("b", "c")))


def test_side_by_side_only_what_enough_people_of_each_have_is_shown(tmp_path: Path) -> None:
    """In b nobody's wait is known."""
    rows = [job(i, cluster=name, user=f"u{i}") for name in "bc" for i in range(6)]
    rows = [row | ({"wait_s": None} if row["cluster"] == "b" else {}) for row in rows]
    readers = Readers(put_jobs(Lake.create(tmp_path), rows))
    filters = Filters()
    both = replace(filters.selection("cluster"), clusters=("b", "c"))
    assert look(readers, U0, filters, both).measures == {"hours", "runs", "requests"}
    alone = replace(filters.selection(), clusters=("c",))
    assert look(readers, U0, filters, alone).measures == {"hours", "waits", "runs", "requests"}


# ---- which analyses may be narrowed


NARROWED = {"queue": "normal", "since": "2018-02-01", "until": "2018-02-28"}


@pytest.mark.parametrize("id", sorted(RULES))
def test_only_tables_of_cells_are_narrowed(u1: httpx.Client, id: str) -> None:
    if RULES[id].cells is None:
        assert "whole cluster only" in refused(u1, f"analyses/{id}", cluster="c", **NARROWED)
        assert "whole cluster only" in refused(u1, f"analyses/{id}", cluster="c", by="queue")
        return
    assert get(u1, f"analyses/{id}", cluster="c", **NARROWED)["rows"]
    own = {"queues": "queue", "states": "state"}.get(id, "quarter" if "quarter" in id else None)
    for by in GROUPS:
        answer = u1.get(f"{API}/analyses/{id}", params={"cluster": "c", "by": by})
        assert answer.status_code == (422 if by == own else 200), (by, answer.text)


def test_which_answers_are_not_of_cells() -> None:
    """What is of the whole cluster has no counts and no shares; each of these was thought about."""
    whole = {id for id, rule in RULES.items() if rule.cells is None}
    assert whole == {"interarrivals", "utilisation"}


@pytest.mark.parametrize("id", sorted(RULES))
def test_what_an_analysis_leaves_out_the_cells_leave_out(id: str) -> None:
    """Counts are sums of cells only if each rule of the analysis is a column of the partition."""
    analysis, rule = load_all().get(id), RULES[id]
    known = {HAS_SIZE} | ({HAS_RUN} if analysis.min_run_s else set())
    others = {each for each in analysis.rules if each not in known}
    assert rule.cells is None or rule.measure or not others
    assert set(counted_by(analysis)) <= set(COLUMNS)


def test_an_analysis_that_nobody_has_thought_about_is_refused(u1: httpx.Client) -> None:
    undecided = [id for id in load_all().ids() if id not in RULES]
    assert {"users", "accounts", "concentration", "job-shapes"} <= set(undecided)
    for id in undecided:
        refused(u1, f"analyses/{id}", cluster="c")


@pytest.mark.parametrize(
    ("id", "name", "value"),
    [
        ("walltime", "short_h", "1"),
        ("walltime", "long_h", "0.99"),
        ("size-vs-walltime", "sample", "10"),
        ("size-vs-walltime", "draws", "1"),
        ("size-vs-walltime", "seed", "2"),
        ("jobs-by-quarter", "quarter", "ended"),
        ("jobs-by-quarter", "quarter", "log"),
    ],
)
def test_parameters_keep_their_defaults_over_others_jobs(
    u1: httpx.Client, id: str, name: str, value: str
) -> None:
    """`share_short` is 1 from the longest run on: halving would find it though `max_h` is null."""
    chosen = {"cluster": "c", f"param.{name}": value}
    assert name in refused(u1, f"analyses/{id}", **chosen)
    refused(u1, f"figures/{id}", **chosen)
    assert get(u1, f"analyses/{id}", **chosen, user="u1")["columns"]


def test_defaults_may_be_named(u1: httpx.Client) -> None:
    assert get(u1, "analyses/walltime", cluster="c", **{"param.short_h": "3"})["columns"]
