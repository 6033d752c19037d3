"""Pages of a small skewed log as the server sends them: each number under its own heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from hakaru.lake import Lake
from hakaru.web.app import create_app
from tests.conftest import job, put_jobs, utc
from tests.web._html import get, plain, table
from tests.web._site import running

FACTS = '{"zone": "Asia/Tokyo"}'


def log() -> list[dict[str, Any]]:
    """ann's four jobs wait 10, 20, 60 and 4000 s and run 1 to 4 h; bob's one failed on 8 GPUs.

    All were submitted on the 10th of May, bob's at 20:00 in UTC, when it was the 11th in Tokyo.
    """
    at = {"submitted_at": utc("2018-05-10T00:00:00"), "requested_s": 36000.0}
    rows = [
        job(n, user="ann", wait_s=wait_s, run_s=3600.0 * n, **at)
        for n, wait_s in enumerate((10.0, 20.0, 60.0, 4000.0), 1)
    ]
    late = utc("2018-05-10T20:00:00")
    times = {"submitted_at": late, "started_at": late, "ended_at": late + timedelta(hours=2)}
    bob = {"user": "bob", "account": "other", "queue": "long", "state": "failed", "num_gpus": 8}
    return [*rows, job(9, wait_s=0.0, run_s=7200.0, **bob, **times)]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    lake = put_jobs(Lake.create(tmp_path_factory.mktemp("served")), log(), FACTS)
    html = {"Accept": "text/html"}
    with running(create_app(lake)) as server, server.client(headers=html) as asking:
        yield asking


@pytest.mark.parametrize(
    "page", ["/", "/workload", "/workload/queues", "/jobs", "/people", "/compare"]
)
def test_a_cluster_that_is_not_there_is_not_found(client: httpx.Client, page: str) -> None:
    answer = client.get(page, params={"cluster": "nope"})
    assert answer.status_code == 404
    assert "there is no cluster" in answer.text


def test_people_by_their_headings(client: httpx.Client) -> None:
    """ann: 1 + 2 + 3 + 4 = 10 of 26 GPU-hours; median wait 40 s; 0.25 of what she asks for."""
    rows = {row["User"]: row for row in table(get(client, "/people?kind=users"))}
    ann, bob = rows["ann"], rows["bob"]
    assert (ann["Jobs"], bob["Jobs"]) == ("4", "1")
    assert (ann["GPU-hours"], bob["GPU-hours"]) == ("10", "16")
    assert (ann["Median wait"], bob["Median wait"]) == ("40 s", "0 s")
    # between 60 and 4000 s, 0.85 of the way
    assert ann["95 % wait under"] == "56.8 min"
    assert (ann["Median run"], ann["Used of request"]) == ("2.5 h", "25.0 %")
    assert (ann["Completed"], bob["Completed"]) == ("100.0 %", "0.0 %")
    assert (ann["Failed"], bob["Failed"]) == ("0.0 %", "100.0 %")
    assert (ann["Last job"], bob["Last job"]) == ("2018-05-10", "2018-05-11")


def test_accounts_are_not_users(client: httpx.Client) -> None:
    rows = table(get(client, "/people?kind=accounts&sort=num_jobs"))
    assert [(row["Account"], row["Jobs"]) for row in rows] == [("lab", "4"), ("other", "1")]


def test_jobs_by_their_headings(client: httpx.Client) -> None:
    rows = table(get(client, "/jobs?sort=run_s&order=asc"))
    assert [row["Job"] for row in rows] == ["1", "2", "9", "3", "4"] or [
        row["Job"] for row in rows
    ] == ["1", "9", "2", "3", "4"]
    bob = next(row for row in rows if row["Job"] == "9")
    assert (bob["User"], bob["Queue"], bob["State"], bob["GPUs"]) == ("bob", "long", "failed", "8")
    assert (bob["Wait"], bob["Run"], bob["Requested"]) == ("0 s", "2.0 h", "2.0 h")
    assert (bob["GPU-hours"], bob["Submitted"]) == ("16", "2018-05-11 05:00:00")


def test_a_heading_sorts_and_sorts_the_other_way(client: httpx.Client) -> None:
    def order(path: str, by: str) -> list[str]:
        (link,) = re.findall(rf'<th[^>]*><a href="([^"]*sort={by}[^"]*)"', get(client, path))
        return parse_qs(urlsplit(unescape(link)).query)["order"]

    for page, by in (("/jobs", "run_s"), ("/people", "median_wait_s")):
        assert order(f"{page}?page=1", by) == ["desc"]
        assert order(f"{page}?sort={by}&order=desc", by) == ["asc"]
        assert order(f"{page}?sort={by}&order=asc", by) == ["desc"]


def test_a_job_s_place_is_that_of_its_own_measure(client: httpx.Client) -> None:
    """Of ann's four, her second waited and ran longer than one: (1 + ½) / 4. Of all five, two waited
    less; in the run time one is shorter and bob's the same."""
    page = get(client, "/job?cluster=c&job_id=2")
    places = re.search(r'<table class="places">(.*?)</table>', page, re.S)
    assert places
    rows = [plain(row) for row in re.findall(r"<tr>(.*?)</tr>", places[1], re.S)]
    found = {
        name: row for row in rows for name in ("Wait", "Run time", "Size") if row.startswith(name)
    }
    assert found["Wait"] == "Wait 20 s 37.5 % waited less 50.0 % waited less"
    assert found["Run time"] == "Run time 2.0 h 37.5 % ran shorter 40.0 % ran shorter"
    assert found["Size"] == "Size 1 50.0 % were smaller 40.0 % were smaller"


def test_quick_periods_end_with_the_last_submission(client: httpx.Client) -> None:
    """The last day is the 11th of May in Tokyo; seven days with it begin on the 5th."""
    links = re.findall(r'href="(/jobs[^"]*)"[^>]*>([^<]+)</a>', get(client, "/jobs"))
    since = {
        name.strip(): parse_qs(urlsplit(unescape(href)).query).get("since") for href, name in links
    }
    assert since["Last 7 days"] == ["2018-05-05"]
    assert since["30 days"] == ["2018-04-12"]
    assert since["Year"] == ["2017-05-12"]


def test_filters_are_chips_that_can_be_taken_away(client: httpx.Client) -> None:
    page = get(client, "/jobs?queue=long&state=failed&min_gpus=8")
    chips = {
        plain(text): set(parse_qs(urlsplit(unescape(href)).query))
        for href, text in re.findall(r'<a class="chip" href="([^"]*)"[^>]*>(.*?)</a>', page, re.S)
    }
    assert len(chips) == 3
    (queue,) = [rest for text, rest in chips.items() if "Queue" in text and "long" in text]
    assert queue == {"state", "min_gpus"}
    (size,) = [rest for text, rest in chips.items() if "GPUs ≥" in text and "8" in text]
    assert size == {"queue", "state"}


def test_a_chip_of_several_states_takes_one_away(client: httpx.Client) -> None:
    page = get(client, "/jobs?state=failed&state=completed")
    left = [
        parse_qs(urlsplit(unescape(href)).query).get("state")
        for href in re.findall(r'<a class="chip" href="([^"]*)"', page)
    ]
    assert sorted(left, key=str) == [["completed"], ["failed"]]


def test_the_filter_of_a_page_and_the_rules_of_a_figure_hold_together(client: httpx.Client) -> None:
    """`a OR b AND rule` would let jobs pass that the figure leaves out."""
    page = get(client, "/workload/walltime?where=num_gpus+%3E+1+OR+run_s+%3E+60")
    (href,) = re.findall(r'href="(/jobs[^"]*)">Jobs behind it', page)
    (where,) = parse_qs(urlsplit(unescape(href)).query)["where"]
    assert where.startswith("(num_gpus > 1 OR run_s > 60) AND ")


def test_jobs_behind_a_card_are_of_its_period_unless_it_shows_who_was_there(
    client: httpx.Client,
) -> None:
    page = get(client, "/workload?since=2018-05-10&queue=long")

    def behind(id: str) -> set[str]:
        card = page.split(f'data-analysis="{id}"')[1].split("</article>")[0]
        href = re.search(r'href="(/jobs[^"]*)" data-behind', card)
        assert href
        return set(parse_qs(urlsplit(unescape(href[1])).query))

    assert behind("states") == {"cluster", "since", "queue"}
    assert behind("load") == {"cluster", "queue"}


def test_of_several_clusters_a_table_without_groups_is_of_the_first(ask: httpx.Client) -> None:
    def asked(id: str) -> dict[str, list[str]]:
        path = f"/workload/{id}?cluster=tiny&cluster=c"
        page = ask.get(path, headers={"Accept": "text/html"}).text
        (href,) = re.findall(r'href="(/api/v1/analyses/[^"]*format=csv[^"]*)"', page)
        return parse_qs(urlsplit(unescape(href)).query)

    assert asked("users") == {"cluster": ["tiny"], "format": ["csv"]}
    assert asked("states") == {"cluster": ["tiny", "c"], "by": ["cluster"], "format": ["csv"]}


def test_an_analysis_with_its_numbers_and_links(client: httpx.Client) -> None:
    page = get(client, "/workload/queues?where=num_gpus+%3E+1&weight=gpu-hours")
    (row,) = table(page)
    assert (row["Queue"], row["Jobs"], row["GPU-hours"], row["Share"]) == (
        "long", "1", "16.000", "100.0 %",
    )  # fmt: skip
    csv = re.search(r'href="(/api/v1/analyses/queues\?[^"]*format=csv[^"]*)"', page)
    assert csv
    query = parse_qs(urlsplit(unescape(csv[1])).query)
    assert query["weight"] == ["gpu-hours"] and query["where"] == ["num_gpus > 1"]
    assert '"long",1,16' in client.get(unescape(csv[1])).text


def test_compared_metrics_carry_their_numbers_and_sources(client: httpx.Client) -> None:
    page = get(client, "/compare?cluster=c")
    text = plain(page)
    # one of the five jobs uses several GPUs, and all ran for a minute
    assert re.search(r"80\.0 %", text)
    numbers = [int(n) for n in re.findall(r'href="#source-(\d+)"', page)]
    listed = [int(n) for n in re.findall(r'id="source-(\d+)"', page)]
    assert numbers and set(numbers) <= set(listed)
    assert listed == list(range(1, len(listed) + 1))


@pytest.mark.parametrize(
    ("path", "title", "offers_no_filters"),
    [
        ("/nowhere?cluster=c", "Not found", False),
        ("/job?cluster=c&job_id=nobody", "Not found", False),
        ("/jobs?cluster=nobody", "Not found", True),
    ],
)
def test_a_page_that_is_not_found_links_to_none_that_is_not_there(
    client: httpx.Client, path: str, title: str, offers_no_filters: bool
) -> None:
    answer = client.get(path)
    assert answer.status_code == 404 and f"<h1>{title}</h1>" in answer.text
    assert ("The same page without filters" in answer.text) == offers_no_filters
