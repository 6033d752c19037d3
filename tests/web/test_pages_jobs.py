"""Lists of jobs and people: sorted, searched, empty, and full of hostile names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hakaru.lake import Lake
from hakaru.web.app import create_app
from tests.conftest import job, put_jobs
from tests.web._look import Tab, tab
from tests.web._site import running


def test_jobs_are_sorted_paged_and_searched(page: Tab) -> None:
    page.open("/jobs?cluster=c&size=10")
    page.page.click("th a:has-text('Run')")
    page.arrive("sort=run_s", "to be sorted")
    assert page.page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.page.locator("a[rel=next]").first.click()
    page.arrive("page=2", "the second page")
    assert "11–20 of 43" in page.page.locator(".pager").first.inner_text()
    page.page.keyboard.press("/")
    page.page.keyboard.type("train u3")
    page.page.keyboard.press("Enter")
    page.arrive("q=train", "the search")
    assert page.count() == 3 and "page=" not in page.page.url


def test_a_job_in_the_sites_time_and_in_utc(page: Tab) -> None:
    page.open("/jobs?cluster=c&queue=rare")
    page.page.click("tbody a")
    page.arrive("/job?", "the job")
    time = page.page.locator("dd time").first
    assert time.get_attribute("title") == "2018-02-20 12:00:00 UTC"
    assert page.page.locator(".places svg").count() >= 4
    assert "The queue or partition." in page.page.locator("main").inner_text()


def test_an_empty_lake_says_how_to_begin(chromium: Any, tmp_path: Path) -> None:
    with running(create_app(Lake.create(tmp_path))) as server, tab(chromium, server) as page:
        for path in ("/", "/workload", "/jobs", "/people", "/compare", "/data"):
            assert page.open(path).status == 200
            text = page.page.locator("main").inner_text()
            assert "hakaru ingest FILE --cluster NAME" in text and "hakaru demo" in text


def test_hostile_names_are_inert(chromium: Any, tmp_path: Path) -> None:
    bad = "<script>window.hit=1</script>\"'><img src=x onerror=window.hit=1>"
    rows = [job(i, user=bad, queue=bad, account=bad, name=bad, application=bad) for i in range(6)]
    app = create_app(put_jobs(Lake.create(tmp_path), rows))
    with running(app) as server, tab(chromium, server) as page:
        for path in ("/", "/jobs", "/people", "/workload/queues", "/job?cluster=c&job_id=1"):
            page.open(path)
            for id in page.page.locator(".chart").evaluate_all("es => es.map(e => e.dataset.id)"):
                page.drawn(id)
            assert page.page.evaluate("window.hit") is None
            assert page.page.locator("main img").count() == 0
        page.open("/people")
        page.page.click("tbody a")
        page.arrive("/jobs?", "the jobs of that name")
        assert page.count() == 6
        listed = page.page.locator("tbody").inner_html()
        assert "&lt;script&gt;" in listed
        assert "<script>" not in listed
