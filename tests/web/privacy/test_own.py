"""What the role user sees of jobs and people: their own whole, and nobody else's."""

from __future__ import annotations

import httpx

from tests.web._site import Running
from tests.web.privacy._ask import API, get, refused


def test_only_own_jobs_are_listed(u1: httpx.Client) -> None:
    answer = get(u1, "jobs", cluster="c", size=200)
    assert {row["user"] for row in answer["rows"]} == {"u1"}
    assert (answer["num_rows"], answer["only_own"]) == (7, True)
    assert get(u1, "jobs", cluster="c", q="u2")["num_rows"] == 0
    everything = "user <> 'u1' OR user = 'u1' OR user IS NULL"
    assert get(u1, "jobs", cluster="c", where=everything)["num_rows"] == 7
    refused(u1, "jobs", cluster="c", user="u2")


def test_others_jobs_are_as_if_they_were_not_there(u1: httpx.Client, boss: httpx.Client) -> None:
    others = get(boss, "jobs", cluster="c", user="u2")["rows"][0]
    params = {"cluster": "c", "job_id": others["job_id"], "submitted_at": others["submitted_at"]}
    there = u1.get(f"{API}/job", params=params)
    absent = u1.get(f"{API}/job", params=params | {"job_id": "12345"})
    assert there.status_code == absent.status_code == 404
    assert there.json()["detail"].replace(others["job_id"], "12345") == absent.json()["detail"]


def test_an_own_job_has_its_place_among_many_but_not_among_few(u1: httpx.Client) -> None:
    """25 of 43 jobs waited ten seconds, 18 a minute: five deciles are alike, and so are the other four."""
    found = get(u1, "job", cluster="c", job_id="900")
    assert found["among_cluster"] == {
        "num_jobs": 43,
        "wait": 0.25,
        "run": 0.7,  # 18 ran for half an hour, which is four deciles; the middle of the other six
        "size": 0.25,
        "request_accuracy": 0.7,
    }
    assert found["among_user"]["num_jobs"] == 7
    assert get(u1, "job", cluster="tiny", job_id="0")["among_cluster"] is None


def test_people_are_oneself(u1: httpx.Client, closed_site: Running) -> None:
    assert [row["user"] for row in get(u1, "people", cluster="c")["rows"]] == ["u1"]
    assert get(u1, "people", cluster="c", q="u2")["rows"] == []
    refused(u1, "people", cluster="c", user="u2")
    accounts = get(u1, "people", cluster="c", kind="accounts")["rows"]
    assert {row["account"]: row["num_jobs"] for row in accounts} == {"lab": 6, "other": 1}
    with closed_site.client("nobody") as client:
        assert get(client, "people", cluster="c")["num_rows"] == 0


def test_rejects_and_names_of_files_are_for_operators(u1: httpx.Client, boss: httpx.Client) -> None:
    assert get(boss, "lake")["rejects"] and get(boss, "lake")["workspace"]
    answer = get(u1, "lake")
    assert (answer["rejects"], answer["workspace"]) == (None, None)
    assert all(ingest["inputs"] is None for ingest in answer["ingests"])
    refused(u1, "lake/rejects")


def test_one_self_may_be_asked_of_in_every_way(u1: httpx.Client) -> None:
    own = {"cluster": "c", "user": "u1"}
    assert get(u1, "analyses/queues", **own)["rows"][2]["queue"] == "rare"
    assert get(u1, "analyses/states", **own, where="queue = 'rare'")["num_selected"] == 1
    assert get(u1, "analyses/job-shapes", **own)["num_selected"] == 7
    assert get(u1, "analyses/users", **own)["rows"][0]["user"] == "u1"
    assert get(u1, "analyses/states", **own, by="account", since="2018-02-20")["num_selected"] == 3
    assert get(u1, "overview", cluster="c", user="u1")["clusters"][0]["measures"]["num_jobs"] == 7


def test_own_jobs_stay_own_whatever_the_filter_says(u1: httpx.Client) -> None:
    own = {"cluster": "c", "user": "u1", "where": "user = 'u2' OR user LIKE 'u%'"}
    assert get(u1, "analyses/states", **own)["num_selected"] == 7
