"""What the role user is shown of others, endpoint by endpoint; the site is that of test_look."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from hakaru.lake import Lake
from hakaru.schema import INGESTS
from hakaru.web.app import create_app
from hakaru.web.privacy import RULES
from tests.conftest import job, put, put_jobs, utc
from tests.web._site import closed
from tests.web.privacy._ask import API, get, refused

# Every endpoint of the API, and what decides what a user sees of it. A new one fails below until it is here.
DECIDED = {
    "/me": "nobody else",
    "/clusters": "whole clusters, names that can be asked for",
    "/overview": "cells",
    "/findings": "what the analyses show",
    "/analyses": "no jobs",
    "/analyses/{id}": "cells, or the whole cluster without counts and shares",
    "/figures/{id}": "the same",
    "/jobs": "own",
    "/job": "own, and its place in a fixed histogram",
    "/people": "own",
    "/compare": "what the analyses show",
    "/lake": "no counts",
    "/lake/rejects": "operators",
    "/what-if": "operators",
    "/what-if/{run}": "operators",
    "/what-if/{run}/nodes": "operators",
    "/what-if/{run}/figures/{figure}": "operators",
    "/measure": "operators",
    "/measure/history": "operators",
    "/measure/preflight": "operators",
    "/measure/{run}": "operators",
    "/measure/{run}/beside/{other}": "operators",
    "/measure/{run}/figures/{figure}": "operators",
}


def test_every_endpoint_is_decided(site: Lake) -> None:
    paths = create_app(site).openapi()["paths"]
    assert {path.removeprefix(API) for path in paths} == set(DECIDED)


@pytest.mark.parametrize("path", [path for path, who in DECIDED.items() if who == "operators"])
def test_what_is_for_operators_is_refused(u1: httpx.Client, path: str) -> None:
    refused(u1, path.format(run="x", other="y", figure="waits").removeprefix("/"))


def test_queues_are_counted_in_cells(u1: httpx.Client, boss: httpx.Client) -> None:
    """`rare` is u1's alone and shares February's cell with `short`, which is left out whole."""
    names = ("queue", "num_jobs", "pe_hours", "share")
    rows = get(boss, "analyses/queues", cluster="c")["rows"]
    assert [row["queue"] for row in rows] == ["normal", "short", "rare"]
    answer = get(u1, "analyses/queues", cluster="c")
    assert [tuple(row[name] for name in names) for row in answer["rows"]] == [
        ("normal", 24, 24.0, 24 / 36),
        ("short", 12, 12.0, 12 / 36),
    ]
    assert (answer["num_selected"], answer["num_used"]) == (36, 36)
    assert answer["withheld"]["columns"] == ["max_requested_h", "max_nodes", "max_pes"]
    assert {row["max_nodes"] for row in answer["rows"]} == {None}  # one job's


def test_hours_have_no_counts_beside_them(u1: httpx.Client) -> None:
    """By hours a table counts the jobs whose hours are known: a part of a cell."""
    answer = get(u1, "analyses/states", cluster="c", weight="gpu-hours")
    assert [(r["state"], r["num_jobs"], r["pe_hours"]) for r in answer["rows"]] == [
        ("completed", None, 24.0),
        ("failed", None, 12.0),
    ]
    assert (answer["num_selected"], answer["num_used"]) == (None, None)
    assert all(entry["num_jobs"] is None for entry in answer["left_out"])


def test_groups_are_made_of_cells(u1: httpx.Client) -> None:
    rows = get(u1, "analyses/states", cluster="c", by="queue")["rows"]
    assert [(r["queue"], r["state"], r["num_jobs"]) for r in rows] == [
        ("normal", "completed", 24),
        ("short", "failed", 12),
    ]
    rows = get(u1, "analyses/queues", cluster="c", by="quarter")["rows"]
    assert [(r["quarter"], r["queue"], r["num_jobs"]) for r in rows] == [
        ("2018Q1", "normal", 24),
        ("2018Q1", "short", 12),
    ]


def test_waits_and_run_times_of_cells_have_no_counts(u1: httpx.Client) -> None:
    """Ten seconds each in `normal`, sixty in `short`; runs of an hour, of completed jobs only."""
    answer = get(u1, "analyses/waits", cluster="c", by="queue")
    assert [(r["queue"], r["part"], r["median_s"], r["mean_s"]) for r in answer["rows"]] == [
        ("normal", "submit to start", 10.0, 10.0),
        ("short", "submit to start", 60.0, 60.0),
    ]
    hidden = ("num_jobs", "p99_s", "max_s", "share_within_1min", "share_within_1h")
    assert {row[name] for row in answer["rows"] for name in hidden} == {None}
    assert (answer["num_selected"], answer["num_used"]) == (None, None)
    rows = get(u1, "analyses/walltime", cluster="c", queue="normal")["rows"]
    assert [(row["class"], row["median_h"], row["num_jobs"], row["max_h"]) for row in rows] == [
        ("all", 1.0, None, None),
        ("single-pe", 1.0, None, None),
    ]
    refused(u1, "analyses/walltime", cluster="c", queue="short")  # none of them is completed
    rows = get(u1, "analyses/walltime", cluster="c", queue="short", state="failed")["rows"]
    assert [row["median_h"] for row in rows] == [0.5, 0.5]


def test_shares_are_of_cells(u1: httpx.Client) -> None:
    """Without February's cell of `short` and `rare`: 24 jobs on one GPU, 12 on two."""
    answer = get(u1, "analyses/parallelism", cluster="c")
    names = ("parallelism", "num_jobs", "pe_hours", "share")
    assert [tuple(row[name] for name in names) for row in answer["rows"]] == [
        ("single-pe", 24, 24.0, 24 / 36),
        ("single-node", 12, 12.0, 12 / 36),
    ]
    assert (answer["num_selected"], answer["num_used"]) == (36, 36)
    assert "left out" in answer["withheld"]["why"]


def test_the_whole_cluster_has_neither_shares_nor_counts(u1: httpx.Client) -> None:
    answer = get(u1, "analyses/interarrivals", cluster="c")
    assert {row[name] for row in answer["rows"] for name in ("num_gaps", "share_zero")} == {None}
    assert all(row["median_s"] is not None for row in answer["rows"])
    assert (answer["num_selected"], answer["num_used"]) == (None, None)
    assert all(entry["num_jobs"] is None for entry in answer["left_out"])
    assert "Counts, shares" in answer["withheld"]["why"]


@pytest.mark.parametrize("id", sorted(RULES))
def test_every_analysis_draws_what_it_shows(u1: httpx.Client, id: str) -> None:
    table = get(u1, f"analyses/{id}", cluster="c")
    drawn = get(u1, f"figures/{id}", cluster="c")
    assert (drawn["withheld"], "rare" in str(drawn["option"])) == (table["withheld"], False)
    assert "rare" not in str(table["rows"])
    counts = {"num_gaps", "busy_pe_hours"} & set(table["columns"])
    if RULES[id].cells is None or RULES[id].measure:
        counts |= {"num_jobs", "pe_hours"} & set(table["columns"])
        assert drawn["notes"] == []
    assert {row[name] for row in table["rows"] for name in counts} <= {None}


def test_downloads_withhold_the_same(u1: httpx.Client) -> None:
    for id, lines in (("queues", 3), ("parallelism", 3)):
        text = u1.get(f"{API}/analyses/{id}", params={"cluster": "c", "format": "csv"}).text
        assert "rare" not in text and len(text.strip().splitlines()) == lines
    assert '"single-pe",24,24,0.66' in text


def test_clusters_have_months_and_names_that_can_be_asked_for(
    u1: httpx.Client, boss: httpx.Client
) -> None:
    """The first and the last submission are one person's."""
    ends = ("first_submit", "last_submit")
    c, tiny = get(u1, "clusters")["clusters"]
    assert [c[end] for end in ends] == ["2018-01-01T00:00:00Z", "2018-03-31T00:00:00Z"]
    assert (c["num_jobs"], c["num_users"], c["queues"]) == (43, 8, ["normal", "short"])
    assert [tiny[name] for name in (*ends, "num_jobs", "num_users")] == [None] * 4
    assert tiny["queues"] == []
    assert get(boss, "clusters")["clusters"][0]["last_submit"] == "2018-03-17T09:00:00Z"


def test_a_small_cluster_takes_nothing_from_the_others(
    u1: httpx.Client, boss: httpx.Client
) -> None:
    both = get(u1, "overview")
    assert [each["cluster"] for each in both["clusters"]] == ["c"]
    assert both["withheld"] == ["tiny"]
    assert get(u1, "overview", cluster=["tiny", "c"])["withheld"] == ["tiny"]
    beside = get(u1, "compare")
    assert [each["name"] for each in beside["clusters"]] == ["c"]
    assert beside["withheld"] == ["tiny"]
    assert "tiny" not in beside["metrics"][0]["computed"]
    assert get(boss, "overview")["withheld"] == get(boss, "compare")["withheld"] == []


def test_the_overview_is_of_cells(u1: httpx.Client) -> None:
    (whole,) = get(u1, "overview", cluster="c")["clusters"]
    shown = {name: whole["measures"][name] for name in ("num_jobs", "num_users", "pe_hours")}
    assert shown == {"num_jobs": 43, "num_users": 8, "pe_hours": 43.0}
    assert whole["measures"]["share_completed"] == 24 / 36  # of the cells of one state
    assert (whole["measures"]["wait_median_s"], whole["measures"]["busy_pes"] > 0) == (10.0, True)
    assert set(whole["now"].values()) == {None}
    (part,) = get(u1, "overview", cluster="c", queue="normal")["clusters"]
    assert (part["measures"]["num_jobs"], part["measures"]["share_completed"]) == (24, 1.0)
    for name in ("num_users", "busy_pes", "jobs_waiting", "utilisation"):
        assert part["measures"][name] is None


def test_a_period_has_one_before_it_where_nobody_is_left_out(u1: httpx.Client) -> None:
    march = {"cluster": "c", "since": "2018-03-01", "until": "2018-03-31"}
    (found,) = get(u1, "overview", **march)["clusters"]
    assert found["before_period"] == {"since": "2018-02-01", "until": "2018-02-28"}
    assert (found["measures"]["num_jobs"], found["before"]["num_jobs"]) == (14, 15)
    (found,) = get(u1, "overview", **march, state="failed")["clusters"]
    assert (found["measures"]["num_jobs"], found["before"]) == (6, None)


def test_compare_is_of_cells_and_rounded(u1: httpx.Client, boss: httpx.Client) -> None:
    answer = get(u1, "compare", cluster="c")
    values = {each["id"]: each["computed"]["c"]["value"] for each in answer["metrics"]}
    assert (values["num_jobs"], values["num_users"], values["share_single_pe"]) == (43, 8, 0.667)
    assert (values["share_completed"], answer["left_out"]) == (0.667, [])
    exact = {
        m["id"]: m["computed"]["c"]["value"] for m in get(boss, "compare", cluster="c")["metrics"]
    }
    assert (exact["share_single_pe"], exact["share_completed"]) == (25 / 43, 25 / 43)
    assert "whole log only" in refused(u1, "compare", cluster="c", since="2018-02-01")
    assert "whole log only" in refused(u1, "compare", cluster="c", until="2018-02-01")


def test_the_lake_has_no_counts(u1: httpx.Client, boss: httpx.Client) -> None:
    """All jobs less those of c would be those of the two people of tiny."""
    lake, full = get(u1, "lake"), get(boss, "lake")
    assert {
        table[n] for table in lake["tables"] for n in ("num_rows", "num_bytes", "num_files")
    } == {None}
    assert next(table["num_rows"] for table in full["tables"] if table["name"] == "jobs") == 45


def test_ingests_have_no_counts(tmp_path: Path) -> None:
    """An ingest may have brought one person's jobs."""
    lake = put_jobs(Lake.create(tmp_path / "lake"), [job(i, user=f"u{i}") for i in range(7)])
    at = {"started_at": utc("2018-05-01"), "ended_at": utc("2018-05-01")}
    ingest = {"ingest_id": "i", "cluster": "c", "source": "sacct", "synthetic": False} | at
    put(lake, INGESTS.name, [ingest | {"num_read": 9, "num_new": 7, "num_rejected": 2}])
    with closed(lake, tmp_path) as server:
        for name, shown in (("u1", set()), ("operator", {9, 7, 2})):
            with server.client(name) as client:
                rows = get(client, "lake")["ingests"]
            counts = [v for row in rows for n, v in row.items() if n.startswith("num_")]
            assert counts and {each for each in counts if each is not None} == shown


def test_a_page_says_what_it_withholds(u1: httpx.Client) -> None:
    html = {"Accept": "text/html"}
    page = u1.get("/workload/queues?cluster=c", headers=html).text
    assert "Withheld columns: max_requested_h, max_nodes, max_pes." in page
    assert "Jobs of groups that fit these conditions only in part may be left out." in page
    assert "Withheld" not in u1.get("/workload/queues?cluster=c&user=u1", headers=html).text


def test_files_of_the_pages_hold_no_more_than_the_api(u1: httpx.Client) -> None:
    for path in ("/", "/workload", "/workload/queues", "/workload/load", "/compare", "/data"):
        answer = u1.get(path, params={"cluster": "c"})
        assert answer.status_code == 200, (path, answer.text[:300])
        assert "rare" not in answer.text
