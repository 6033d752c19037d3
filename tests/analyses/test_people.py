"""Users and accounts, worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hakaru.analyses import Selection, caveat_remarks, load_all, open_session
from hakaru.analyses.people import ENDS
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.schema import STATES
from hakaru.texts import LANGUAGES, language
from tests.analyses._ask import ask
from tests.conftest import job, utc

ROWS = [
    job(1, user="ann", wait_s=0.0, run_s=3600.0, requested_s=7200.0),
    job(2, user="ann", wait_s=100.0, run_s=1800.0, requested_s=1800.0, num_gpus=4, state="timeout"),
    job(3, user="ann", account="other", wait_s=None, run_s=None, state="pending"),
    job(
        4,
        user="bob",
        wait_s=7.0,
        run_s=7200.0,
        requested_s=None,
        submitted_at=utc("2018-02-01T00:00:00"),
    ),
    job(5, user=None, account=None),
]


def rows_of(lake: Lake, id: str, **params: Any) -> list[dict[str, Any]]:
    return ask(lake, id, params).rows


def test_users(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of(ROWS)
    ann, bob = rows_of(lake, "users")
    assert (ann["user"], ann["num_jobs"], ann["num_accounts"], ann["num_all"]) == ("ann", 3, 2, 2)
    assert (ann["pe_hours"], bob["pe_hours"]) == (3.0, 2.0)  # an hour and four half ones; two
    assert ann["share_pe_hours"] == pytest.approx(0.6)
    assert (ann["median_wait_s"], ann["p95_wait_s"]) == (50.0, 95.0)
    assert ann["median_run_s"] == 2700.0
    assert (ann["median_request_accuracy"], bob["median_request_accuracy"]) == (0.75, None)
    assert (ann["share_completed"], ann["share_timeout"], ann["share_failed"]) == (0.5, 0.5, 0.0)
    assert bob["first_submit"] == bob["last_submit"] == utc("2018-02-01T00:00:00")
    assert ask(lake, "users").num_used == 4


def test_accounts(lake_of: Callable[..., Lake]) -> None:
    lab, other = rows_of(lake_of(ROWS), "accounts")
    assert (lab["account"], lab["num_users"], lab["num_jobs"], lab["pe_hours"]) == (
        "lab",
        2,
        3,
        5.0,
    )
    assert (other["account"], other["pe_hours"], other["median_wait_s"]) == ("other", None, None)


def test_sorted_and_limited_in_the_engine(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(i, user=f"u{i % 4}", wait_s=float(i % 4)) for i in range(10)])

    def users(**params: Any) -> list[str]:
        return [row["user"] for row in rows_of(lake, "users", **params)]

    assert users(sort="num_jobs") == ["u0", "u1", "u2", "u3"]
    assert users(sort="num_jobs", order="asc") == ["u2", "u3", "u0", "u1"]
    assert users(sort="name", order="desc", limit=2) == ["u3", "u2"]
    assert users(sort="median_wait_s", limit=2, offset=1) == ["u2", "u1"]
    assert users(offset=4) == []
    with pytest.raises(HakaruError, match="sort is one of"):
        users(sort="1; DROP")
    with pytest.raises(HakaruError, match="limit is between 1 and"):
        users(limit=0)


def test_nobody(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(1, user=None, account=None)])
    assert (rows_of(lake, "users"), rows_of(lake, "accounts")) == ([], [])


def test_aaic(aaic_lake: Lake) -> None:
    """The log's 275 names (a person has one a file) share all of its jobs and hours among them."""
    first = rows_of(aaic_lake, "users", sort="num_jobs", limit=1)[0]
    assert first["num_all"] == 275
    rest = rows_of(aaic_lake, "users", limit=1000)
    assert sum(row["num_jobs"] for row in rest) == 459_545
    assert sum(row["share_pe_hours"] for row in rest) == pytest.approx(1)


def test_how_jobs_end_and_what_is_lost(lake_of: Callable[..., Lake]) -> None:
    """Hours on one GPU: cid's are all cancelled; dan's fail in three ways, and one still runs."""
    rows = [
        *(job(i, user="cid", state="cancelled", run_s=3600.0) for i in (1, 2)),
        job(3, user="dan", state="failed", run_s=1800.0),
        job(4, user="dan", state="out_of_memory", run_s=5400.0),
        job(5, user="dan", state="node_failed", run_s=None),
        job(6, user="dan", state="completed", run_s=36000.0),
        job(7, user="dan", state="killed", run_s=7200.0),
        job(8, user="dan", state="running", run_s=7200.0),
        job(9, user="eve", state="completed", run_s=60.0),
        job(10, user="fay", state="pending", run_s=None),
        job(11, user="gus", state="preempted", run_s=None),
        job(12, user="gus", state="completed", run_s=60.0),
    ]
    lake = lake_of(rows)
    found = {row["user"]: row for row in rows_of(lake, "users")}
    ends = [f"share_{end}" for end in ("completed", "failed", "timeout", "cancelled", "other_end")]
    assert [found["cid"][name] for name in ends] == [0, 0, 0, 1, 0]
    assert [found["dan"][name] for name in ends] == pytest.approx([0.2, 0.6, 0, 0, 0.2])
    assert [found["gus"][name] for name in ends] == [0.5, 0, 0, 0, 0.5]
    assert [found["fay"][name] for name in ends] == [None] * 5
    lost = {name: row["lost_pe_hours"] for name, row in found.items()}
    assert lost == {"cid": 2.0, "dan": 4.0, "eve": 0.0, "fay": None, "gus": None}
    order = [row["user"] for row in rows_of(lake, "users", sort="lost_pe_hours")]
    assert order == ["dan", "cid", "eve", "fay", "gus"]
    least = [row["user"] for row in rows_of(lake, "users", sort="lost_pe_hours", order="asc")]
    assert least == ["eve", "cid", "dan", "fay", "gus"], "the unknown come last either way"
    assert rows_of(lake, "users", sort="share_cancelled")[0]["user"] == "cid"


def test_an_end_that_the_log_never_records_is_unknown(lake_of: Callable[..., Lake]) -> None:
    """As for `compare`: a log of completed and cancelled jobs may not record others; of few jobs it does."""
    for num_jobs, share in ((19, 0.0), (20, None)):
        states = ["cancelled", *["completed"] * (num_jobs - 1)]
        name = f"of{num_jobs}"
        lake = lake_of([job(n, state=state, cluster=name) for n, state in enumerate(states)])
        with open_session(lake) as session:
            results = [
                session.run(load_all().get(id), Selection(clusters=(name,)))
                for id in ("users", "accounts")
            ]
        for result in results:
            (row,) = result.rows
            assert {row[f"share_{end}"] for end in ("failed", "timeout", "other_end")} == {share}
            assert row["share_cancelled"] == pytest.approx(1 / num_jobs)
            told = [caveat_remarks(result, language(lang)) for lang in LANGUAGES]
            assert [len(lines) for lines in told] == [0 if share == 0 else 1] * len(LANGUAGES)
    assert told[0] == [
        "no job of of20 is failed, timeout, killed, preempted: its log may not record that, so such "
        "shares are unknown"
    ]


def test_the_shares_of_ends_add_up_to_one(lake_of: Callable[..., Lake]) -> None:
    """One job of each state; a user whose jobs are all killed or preempted ended in no other way."""
    rows = [job(i, user="all", state=state) for i, state in enumerate(STATES)]
    rows += [
        job(f"k{i}", user="kim", state=state) for i, state in enumerate(("killed", "preempted"))
    ]
    lake = lake_of(rows)
    found = {row["user"]: row for row in rows_of(lake, "users", sort="share_other_end")}
    assert list(found) == ["kim", "all"]
    for row in (*found.values(), *rows_of(lake, "accounts")):
        assert sum(row[f"share_{end}"] for end in ENDS) == pytest.approx(1)
    assert found["kim"]["share_other_end"] == 1 and found["kim"]["share_failed"] == 0


def test_accounts_that_no_job_has_are_unknown(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(1, user="ann", account=None), job(2, user="bob", account="lab")])
    found = {row["user"]: row["num_accounts"] for row in rows_of(lake, "users")}
    assert found == {"ann": None, "bob": 1}


def test_accounts_of_a_quarter_in_which_none_is_named_are_unknown(
    lake_of: Callable[..., Lake],
) -> None:
    lake = lake_of([job(1, user="ann", account=None)])
    assert [row["num_accounts"] for row in rows_of(lake, "users-by-quarter")] == [None]
