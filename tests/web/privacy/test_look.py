"""What the role user may ask: periods, filters and parameters that pick out nobody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from hakaru.analyses import load_all
from hakaru.lake import Lake
from hakaru.web.access import Viewer
from hakaru.web.filters import Filters
from hakaru.web.privacy import RULES, look
from hakaru.web.readers import Readers
from tests.conftest import job, put_jobs, utc
from tests.web.privacy._ask import API, Asked, Params, get, refused


@pytest.mark.parametrize(
    "params",
    [
        {"user": "u2"},
        {"user": "U1"},
        {"user": "u1 "},
        {"account": "other"},
        {"where": "user = 'u2'"},
        {"where": "user = 'u1'"},
        {"where": "true OR user = 'u2'"},
        {"where": "num_gpus = 2"},
        {"min_run": 10},
        {"min_run": 0},
        {"by": "user"},
        {"by": "account"},
        {"queue": "rare"},
        {"queue": "none such"},
        {"application": "secret"},
        {"min_gpus": 2, "max_gpus": 2, "queue": "rare"},
        {"min_gpus": 100},
    ],
    ids=str,
)
def test_what_could_pick_out_a_person_is_refused(u1: httpx.Client, params: Params) -> None:
    for path in ("analyses/states", "figures/states"):
        answer = u1.get(f"{API}/{path}", params={"cluster": "c", **params})
        assert answer.status_code in (403, 422), (path, answer.text[:200])
        assert "rows" not in answer.text
    if "by" not in params:
        assert u1.get(f"{API}/overview", params={"cluster": "c", **params}).status_code in (
            403,
            422,
        )


def test_a_cluster_of_few_people_is_refused(u1: httpx.Client) -> None:
    for path in ("analyses/states", "analyses/load", "overview", "compare", "figures/waits"):
        refused(u1, path, cluster="tiny")
    refused(u1, "analyses/states", by="cluster", cluster=["tiny"])


def test_side_by_side_a_small_cluster_is_refused(u1: httpx.Client) -> None:
    assert "of tiny" in refused(u1, "analyses/states", by="cluster")
    assert get(u1, "analyses/states", by="cluster", cluster="c")["rows"]


def test_the_difference_of_two_answers_is_of_many_people_too(u1: httpx.Client) -> None:
    """All but `rare`, which is one person's, cannot be had: normal and short are chosen one at a time."""
    assert get(u1, "analyses/states", cluster="c", queue="normal")["num_selected"] == 24
    # failed jobs are all in `short`; those in `short` that did not fail are nobody's
    assert get(u1, "analyses/states", cluster="c", queue="short", state="failed")["rows"]
    # without the queue, completed jobs gain only u1's in `rare`
    detail = refused(u1, "analyses/states", cluster="c", queue="normal", state="completed")
    assert "without queue" in detail
    # sizes from 1 to 1 leave out the six people with two GPUs: many
    assert get(u1, "analyses/states", cluster="c", max_gpus=1)["num_selected"] == 25


def test_periods_are_widened_to_months_of_many_people(u1: httpx.Client) -> None:
    asked = {"cluster": "c", "since": "2018-02-20", "until": "2018-02-20"}
    answer = get(u1, "analyses/states", **asked)
    assert answer["period"] == {"since": "2018-02-01", "until": "2018-02-28"}
    assert answer["num_selected"] == 15
    odd = asked | {"since": "2018-02-20T11:59:59", "until": "2018-02-20T12:00:01"}
    assert get(u1, "analyses/states", **odd)["period"] == answer["period"]
    late = get(u1, "analyses/states", cluster="c", since="2018-03-20")
    assert late["period"] == {"since": "2018-03-01", "until": None}
    after = get(u1, "analyses/states", cluster="c", since="2030-01-01")
    assert after["period"] == {"since": "2018-03-01", "until": None}


def test_the_machine_is_seen_whole_or_not_at_all(u1: httpx.Client) -> None:
    assert get(u1, "analyses/load", cluster="c")["rows"]
    refused(u1, "analyses/load", cluster="c", queue="normal")
    refused(u1, "analyses/utilisation", cluster="c", by="queue")
    (narrowed,) = get(u1, "overview", cluster="c", queue="normal")["clusters"]
    assert narrowed["measures"]["num_jobs"] == 24
    assert (narrowed["measures"]["busy_pes"], narrowed["now"]["busy_pes"]) == (None, None)


def test_an_analysis_that_nobody_has_thought_about_is_refused(u1: httpx.Client) -> None:
    undecided = [id for id in load_all().ids() if id not in RULES]
    assert {"users", "accounts", "concentration", "job-shapes"} <= set(undecided)
    for id in undecided:
        refused(u1, f"analyses/{id}", cluster="c")


# ---- periods


@pytest.mark.parametrize(
    ("people", "asked", "used"),
    [
        # February has two people: it is shown together with its neighbours
        ((6, 2, 6), ("2018-02-01", "2018-02-28"), ("2018-01-01", "2018-03-31")),
        # after March comes one person, whom the difference to an open end would show
        ((6, 6, 6, 1), ("2018-02-01", "2018-03-31"), ("2018-02-01", None)),
        ((1, 6, 6, 6), ("2018-02-01", "2018-03-31"), (None, "2018-03-31")),
        ((6, 6, 6, 6), ("2018-02-01", "2018-03-31"), ("2018-02-01", "2018-03-31")),
        # no month has enough: the whole log it is
        ((4, 4, 4), ("2018-02-01", "2018-02-28"), (None, None)),
    ],
)
def test_what_lies_outside_a_period_is_of_many_or_nobody(
    tmp_path: Path, people: tuple[int, ...], asked: Asked, used: Asked
) -> None:
    rows = [
        job(
            100 * month + i,
            user=f"u{i + 4 * (month % 2)}",
            submitted_at=utc(f"2018-0{month}-10T00:00:00"),
        )
        for month, num in enumerate(people, 1)
        for i in range(num)
    ]
    readers = Readers(put_jobs(Lake.create(tmp_path), rows))
    filters = Filters(since=asked[0], until=asked[1])
    selection = replace(filters.selection(), clusters=("c",))
    found = look(readers, Viewer("user", "u0", "u0"), filters, selection).selection
    assert (found.since, found.until) == used


# ---- parameters


@pytest.mark.parametrize(
    ("id", "name", "value"),
    [
        ("walltime", "short_h", "1"),
        ("walltime", "long_h", "0.99"),
        ("think-time", "max_h", "7.5"),
        ("size-vs-walltime", "sample", "10"),
        ("size-vs-walltime", "draws", "1"),
        ("size-vs-walltime", "seed", "2"),
    ],
)
def test_a_threshold_is_not_moved_over_others_jobs(
    u1: httpx.Client, id: str, name: str, value: str
) -> None:
    """`share_short` is 1 from the longest run on: halving would find it though `max_h` is null."""
    chosen = {"cluster": "c", f"param.{name}": value}
    assert name in refused(u1, f"analyses/{id}", **chosen)
    refused(u1, f"figures/{id}", **chosen)
    assert get(u1, f"analyses/{id}", **chosen, user="u1")["columns"]


@pytest.mark.parametrize(
    ("id", "name", "value"),
    [
        ("walltime", "short_h", "3"),
        ("jobs-by-quarter", "quarter", "ended"),
        ("users-by-quarter", "quarter", "submitted"),
        ("arrivals-by-hour", "days", "active"),
        ("arrivals-by-weekday", "days", "active"),
        ("load", "bins", "10"),
    ],
)
def test_defaults_and_choices_stay(u1: httpx.Client, id: str, name: str, value: str) -> None:
    assert get(u1, f"analyses/{id}", cluster="c", **{f"param.{name}": value})["columns"]
