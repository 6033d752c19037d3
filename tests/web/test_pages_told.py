"""Two sites with clocks of their own: each page shows the right column, in the right zone, with links that
keep their filters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from hakaru.lake import Lake
from hakaru.web.app import create_app
from tests.conftest import job, put, put_jobs, utc
from tests.web._html import asked, get, hidden, links, plain, table
from tests.web._site import running

EAST = '{"zone": "Asia/Tokyo", "gpus_per_node": 4, "nodes": [{"since": null, "count": 1}, \
{"since": "2018-02-05", "count": 2}]}'
COUNTS = ("num_read", "num_new", "num_updated", "num_unchanged", "num_conflicts", "num_rejected")


def east() -> list[dict[str, Any]]:
    """In January ann's nine of an hour; in February her seven of two hours, and the first failed at first.

    At the end, on the 10th of February, bob runs on five GPUs, and two wait for two and one.
    """
    rows = []
    for month, num, hours in (("01", 9, 1), ("02", 7, 2)):
        for n in range(num):
            # 1:00 on each day in Tokyo, from the first of the month on
            at = utc(f"2018-{month}-01T16:00:00") + timedelta(days=n - 1)
            times = {"submitted_at": at, "started_at": at, "ended_at": at + timedelta(hours=hours)}
            rows.append(job(n, cluster="east", run_s=3600.0 * hours, wait_s=0.0, **times))
    last = utc("2018-02-10T03:00:00")
    late = {"cluster": "east", "user": "bob", "account": "other", "queue": "long", "ended_at": None,
            "run_s": None, "submitted_at": last}  # fmt: skip
    waits = late | {"started_at": None, "wait_s": None, "state": "pending"}
    rows[0] |= {"state": "failed"}
    return [
        *rows,
        job(90, num_gpus=5, started_at=last, state="running", **late),
        job(91, num_gpus=2, **waits),
        job(92, **waits),
    ]


def west() -> list[dict[str, Any]]:
    at = utc("2018-01-10T12:00:00")
    times = {"submitted_at": at, "started_at": at, "ended_at": at + timedelta(hours=2)}
    return [
        job(7, cluster="west", user="zoe", account="lab/7", queue="wide", run_s=7200.0, **times)
    ]


def ingested(id: str, day: str, *counts: int) -> dict[str, Any]:
    at = {"started_at": utc(f"{day}T00:00:00"), "ended_at": utc(f"{day}T00:01:00")}
    facts = {"cluster": "east", "source": "swf", "synthetic": False, "inputs": ["a.swf", "b.swf"]}
    return {"ingest_id": id} | facts | at | dict(zip(COUNTS, counts, strict=True))


def rejected(cluster: str, reason: str, file: str, *lines: int) -> list[dict[str, Any]]:
    row = {"cluster": cluster, "file": file, "reason": reason}
    return [row | {"line": line, "text": f"{file} {line}"} for line in lines]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    lake = put_jobs(Lake.create(tmp_path_factory.mktemp("told")), east(), EAST)
    put_jobs(lake, west(), '{"zone": "America/New_York"}')
    put(lake, "ingests", [ingested("a", "2001-01-01", 1, 1, 0, 0, 0, 0)])
    put(lake, "ingests", [ingested("b", "2001-01-02", 100, 60, 20, 9, 4, 7)])
    rows = rejected("east", "no end", "a.csv", 3) + rejected("east", "no start", "b.csv", 8, 9)
    put(lake, "rejects", rows + rejected("west", "no start", "c.csv", 4, 5, 6))
    html = {"Accept": "text/html"}
    with running(create_app(lake)) as server, server.client(headers=html) as asking:
        yield asking


def test_times_are_those_of_each_job_s_cluster(client: httpx.Client) -> None:
    """Eastern ones are nine hours ahead of UTC, western ones five behind."""
    rows = {(row["Cluster"], row["Job"]): row for row in table(get(client, "/jobs?size=100"))}
    assert rows["west", "7"]["Submitted"] == "2018-01-10 07:00:00"
    assert rows["east", "90"]["Submitted"] == "2018-02-10 12:00:00"
    assert "the site (America/New_York)" in plain(get(client, "/job?cluster=west&job_id=7"))


def test_a_list_of_several_clusters_names_them_at_every_width(client: httpx.Client) -> None:
    assert '<th scope="col" class="w1">Cluster</th>' in get(client, "/jobs")
    assert "Cluster" not in table(get(client, "/jobs?cluster=east"))[0]


def test_each_attempt_of_a_job_has_its_own_page(client: httpx.Client) -> None:
    moments = ["2018-01-31T16:00:00+00:00", "2017-12-31T16:00:00+00:00"]
    found = [
        each
        for each in links(get(client, "/jobs?cluster=east&size=100"), "/job")
        if each["job_id"] == ["0"]
    ]
    assert [each["submitted_at"] for each in found] == [[moment] for moment in moments]
    last = get(client, "/job?cluster=east&job_id=0")  # without a time, the last one
    assert [each["submitted_at"][0] for each in links(last, "/job")] == moments
    states = [re.findall(r'<span class="state (\w+)">', get(client, path)) for path in (
        "/job?cluster=east&job_id=0",
        "/job?cluster=east&job_id=0&submitted_at=2018-01-01T01:00:00",  # as the site's clock has it
    )]  # fmt: skip
    assert states == [["completed"], ["failed"]]
    assert "run_s 2.0 h (7,200 s)" in plain(last)
    named = [each for each in links(last, "/jobs") if len(each) > 1]
    assert named == [{"cluster": ["east"], name: [value]} for name, value in (
        ("user", "ann"), ("account", "lab"), ("queue", "normal"),
    )]  # fmt: skip


def test_what_the_lake_holds_is_under_its_headings(client: httpx.Client) -> None:
    page = get(client, "/data")
    first, second = table(page, 0)
    assert (first["Cluster"], first["Jobs"], first["Time zone"]) == ("east", "19", "Asia/Tokyo")
    assert (first["First job"], first["Last job"]) == ("2018-01-01 01:00:00", "2018-02-10 12:00:00")
    assert second["First job"] == second["Last job"] == "2018-01-10 07:00:00"
    jobs = next(row for row in table(page, 1) if row["Table"] == "jobs")
    held = client.get("/api/v1/lake").json()["tables"]
    (size,) = [each["num_bytes"] for each in held if each["name"] == "jobs"]
    assert (jobs["Rows"], jobs["Files"], jobs["Size"]) == ("20", "2", f"{size / 1000:.1f} kB")


def test_the_last_ingests_come_first_each_count_under_its_heading(client: httpx.Client) -> None:
    rows = table(get(client, "/data"), 2)[-2:]
    names = ("Ended (UTC)", "Read", "New", "Updated", "Unchanged", "In conflict", "Rejected")
    assert [rows[0][name] for name in names] == [
        "2001-01-02 00:01:00", "100", "60", "20", "9", "4", "7",
    ]  # fmt: skip
    assert rows[1]["Ended (UTC)"] == "2001-01-01 00:01:00"
    assert rows[0]["Files"] == "2 files a.swf b.swf"


def test_rejected_records_are_those_of_their_reason_and_cluster(client: httpx.Client) -> None:
    page = get(client, "/data")
    told = [
        (row["Reason"], row["Cluster"], row["Records"], row["First seen"]) for row in table(page, 3)
    ]
    assert told == [
        ("no start", "west", "3", "c.csv:4"),  # the most first
        ("no start", "east", "2", "b.csv:8"),
        ("no end", "east", "1", "a.csv:3"),
    ]
    behind = [(each["cluster"], each["reason"]) for each in links(page, "/data/rejects")]
    assert behind == [(["west"], ["no start"]), (["east"], ["no start"]), (["east"], ["no end"])]
    rows = table(get(client, "/data/rejects?cluster=east&reason=no+start"))
    assert [(row["Where"], row["The record"]) for row in rows] == [
        ("b.csv:8", "b.csv 8"),
        ("b.csv:9", "b.csv 9"),
    ]
    assert len(table(get(client, "/data/rejects?cluster=east"))) == 3


def test_a_pager_says_which_rows_and_leads_to_the_others(client: httpx.Client) -> None:
    """Seven jobs of three a page: the last page has one."""
    chosen = "cluster=east&since=2018-02-01&state=completed&state=failed&size=3"

    def pager(page: int) -> tuple[str, list[str | None]]:
        text = get(client, f"/jobs?{chosen}&page={page}")
        (nav, *_) = re.findall(r'<nav class="pager".*?</nav>', text, re.S)
        found = links(nav, "/jobs")
        assert all(each["since"] == ["2018-02-01"] and each["size"] == ["3"] for each in found)
        return plain(nav), [each.get("page", [None])[0] for each in found]

    assert pager(1) == ("Previous 1–3 of 7 jobs Next", ["2"])
    assert pager(2) == ("Previous 4–6 of 7 jobs Next", [None, "3"])
    assert pager(3) == ("Previous 7 of 7 jobs Next", ["2"])


def test_a_form_sends_the_filters_along_but_not_the_page(client: httpx.Client) -> None:
    page = get(client, "/jobs?cluster=east&min_run=60&sort=run_s&order=asc&page=2&size=1&q=1")
    own = {("sort", "run_s"), ("order", "asc"), ("size", "1")}
    assert hidden(page, 'id="filters"') == own | {("min_run", "60.0"), ("q", "1")}
    assert hidden(page, 'class="search"') == own | {("min_run", "60"), ("cluster", "east")}
    (sorted_by,) = re.findall(r'aria-sort="(\w+)"[^>]*>(.*?)</th>', page, re.S)
    assert (sorted_by[0], plain(sorted_by[1])) == ("ascending", "Run ↑")
    shown = get(client, "/workload/walltime?cluster=east&queue=long&weight=gpu-hours")
    assert hidden(shown, 'class="options').issuperset(
        {("cluster", "east"), ("queue", "long"), ("weight", "gpu-hours")}
    )


def test_the_form_shows_the_filters_in_use(client: httpx.Client) -> None:
    chosen = "cluster=east&queue=long&state=pending&state=running&user=bob&account=other&min_gpus=2"
    page = get(
        client, f"/jobs?{chosen}&max_gpus=5&where=run_s+%3C+9&weight=gpu-hours&until=2018-02-28"
    )
    form = page.split('<form id="filters"')[1].split("</form>")[0]

    def selected(name: str) -> list[str]:
        (options,) = re.findall(rf'<select id="f-{name}".*?</select>', form, re.S)
        return [plain(each) for each in re.findall(r" selected>([^<]*)<", options)]

    assert (selected("cluster"), selected("queue")) == (["east"], ["long"])
    assert re.findall(r'value="(\w+)" checked', form) == ["pending", "running"]
    assert re.findall(r'id="(w-\w+)"[^>]* checked', form) == ["w-hours"]
    values = dict(re.findall(r'<input id="f-(\w+)"[^>]*? value="([^"]*)"', form))
    assert values == {"since": "", "until": "2018-02-28", "user": "bob", "account": "other",
                      "min_gpus": "2", "max_gpus": "5", "where": "run_s &lt; 9"}  # fmt: skip
    assert '<details class="more" open>' in form
    assert '<details class="more">' in get(client, "/jobs?cluster=east&queue=long")


def test_filters_that_select_nothing_say_what_there_is(client: httpx.Client) -> None:
    text = plain(get(client, "/?cluster=east&user=nobody"))
    assert "Its log runs from 2018-01-01 01:00:00 to 2018-02-10 12:00:00 ." in text
    assert "Remove a filter above" in plain(get(client, "/jobs?user=nobody"))
    assert "This page is past the end" in plain(get(client, "/jobs?page=99"))


def test_a_name_leads_to_its_jobs(client: httpx.Client) -> None:
    page = get(client, "/people?cluster=west&kind=accounts&since=2018-01-01&page=1&q=lab")
    (name,) = [each for each in links(page, "/jobs") if "account" in each or "user" in each]
    assert name == {"cluster": ["west"], "account": ["lab/7"], "since": ["2018-01-01"]}
    (users,) = {str(each) for each in links(page, "/people") if each.get("kind") == ["users"]}
    assert users == str({"cluster": ["west"], "since": ["2018-01-01"], "kind": ["users"]})


def test_a_download_is_of_what_the_page_shows(client: httpx.Client) -> None:
    page = get(client, "/workload/walltime?cluster=east&by=queue&param.short_h=1")
    for format in ("csv", "parquet", None):
        chosen = {"cluster": ["east"], "by": ["queue"], "param.short_h": ["1"]}
        chosen |= {"format": [format]} if format else {}
        assert chosen in links(page, "/api/v1/analyses/walltime")


def test_a_long_table_is_cut_on_its_page_and_whole_in_its_file(client: httpx.Client) -> None:
    """From noon on the last of December until six on the tenth of February, by six hours."""
    page = get(client, "/workload/load?cluster=east&param.bins=200")
    assert len(table(page)) == 100
    assert "The first 100 of 163 rows; the download has them all." in plain(page)
    (csv,) = [
        each for each in links(page, "/api/v1/analyses/load") if each.get("format") == ["csv"]
    ]
    lines = client.get("/api/v1/analyses/load", params=csv).text.splitlines()  # type: ignore[arg-type]
    assert len(lines) == 1 + 163


def test_the_overview_is_of_its_filters_and_its_cluster_s_clock(client: httpx.Client) -> None:
    """ann's seven jobs of two GPU-hours in February, against her nine of one in January."""
    february = "cluster=east&since=2018-02-01&until=2018-02-28&user=ann"
    text = plain(get(client, f"/?{february}"))
    assert "2018-02-01 to 2018-02-28, Asia/Tokyo" in text
    assert "changes against 2018-01-01 to 2018-01-31" in text
    assert "7 jobs; median run of all that ran 2.0 h" in text
    assert "GPU-hours 14 +56 %" in text  # 14 after 9
    whole = plain(get(client, "/?cluster=east"))
    assert "At the end 2018-02-10 12:00:00" in whole
    assert "Busy at the end 5 of 8 GPUs" in whole  # two nodes of four since the 5th
    assert "Running at the end 1 job" in whole
    assert "Waiting at the end 2 jobs for 3 GPUs" in whole


def test_what_stands_out_leads_to_the_figure_of_its_cluster(client: httpx.Client) -> None:
    page = get(client, "/findings?min_gpus=1&weight=gpu-hours")
    seen = []
    for part, name in zip(page.split("<h2>")[1:], ("east", "west"), strict=True):
        seen += [(name, asked(href)) for href in re.findall(r'class="see" href="([^"]*)"', part)]
    assert {name for name, _ in seen} >= {"east"}
    assert all(query == {"cluster": [name], "min_gpus": ["1"]} for name, query in seen)


def test_a_comparison_is_of_its_period(client: httpx.Client) -> None:
    def jobs(query: str) -> str:
        (row,) = [r for r in table(get(client, f"/compare?{query}")) if r["Metric"] == "Jobs"]
        return row["east"]

    assert (jobs("cluster=east"), jobs("cluster=east&since=2018-02-01")) == ("19", "10")
    assert jobs("cluster=east&until=2018-01-31") == "9"
    narrowed = get(client, "/compare?cluster=east&queue=long&since=2018-02-01")
    assert "only the clusters and the period count here, not queue." in plain(narrowed)
    beside = [each.get("cluster") for each in links(narrowed, "/compare")]
    assert ["east", "west"] in beside


def test_where_no_cluster_is_chosen_a_page_is_of_the_first(client: httpx.Client) -> None:
    assert "the site (Asia/Tokyo)" in plain(get(client, "/workload/load"))
    (row,) = table(get(client, "/people?q=bob"))
    assert row["Last job"] == "2018-02-10"
    assert "has no queue wide" in plain(get(client, "/people?queue=wide"))
    assert "has no queue" not in plain(get(client, "/jobs?queue=wide"))


def test_the_form_of_what_if_knows_the_machine_and_the_period(client: httpx.Client) -> None:
    page = get(client, "/what-if?cluster=east&since=2018-02-01")
    said = "Left empty, it is the cluster’s own: 2 × 4 at the end, as it changed over time."
    assert said in plain(page)
    assert re.search(r'name="since" type="date" value="2018-02-01"', page)
    assert "The settings do not know the size of west" in plain(
        get(client, "/what-if?cluster=west")
    )
