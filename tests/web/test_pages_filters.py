"""Filters and addresses, used in a real Chromium: shared, taken away, wrong, and without scripts."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.web._look import Tab, tab
from tests.web._site import Running


def test_a_filter_is_in_the_address_and_the_address_gives_the_view(
    page: Tab, chromium: Any, open_site: Running
) -> None:
    page.open("/jobs?cluster=c")
    everything = page.count()
    page.page.select_option("#f-queue", "short")
    page.arrive("queue=short", "the address to tell the queue")
    page.until(lambda: page.page.locator(".chip:has-text('short')").count(), "the chip")
    assert page.count() == 18 < everything
    assert "queue=short" in page.page.locator("nav a:has-text('Workload')").get_attribute("href")
    rows = page.page.locator("tbody").inner_text()
    with tab(chromium, open_site) as other:
        other.open(page.page.url.removeprefix(other.url))
        assert other.page.locator("tbody").inner_text() == rows
        assert other.page.input_value("#f-queue") == "short"
    page.page.click(".chip:has-text('short')")
    page.until(lambda: "queue" not in page.page.url, "the chip to take the filter away")
    page.settle()
    assert page.count() == everything
    page.page.go_back()
    page.until(lambda: "queue=short" in page.page.url and page.count() == 18, "the way back")


def test_a_date_is_typed_and_stays(page: Tab) -> None:
    """A date field changes with every digit of its year; only the whole date is asked for, and it stays."""
    page.open("/jobs?cluster=c")
    asked: list[str] = []
    page.page.on("request", lambda request: asked.append(request.url))
    page.page.focus("#f-since")
    page.page.keyboard.type("02012018", delay=60)
    page.arrive("since=2018-02-01", "the address to tell the date")
    assert not [url for url in asked if "since=0" in url]
    for queue in ("short", "normal"):
        page.page.select_option("#f-queue", queue)
        page.arrive(f"queue={queue}", "the queue")
        assert "since=2018-02-01" in page.page.url
        assert page.page.input_value("#f-since") == "2018-02-01"


def test_filters_that_select_nothing_say_so(page: Tab) -> None:
    page.open("/?cluster=c&since=2030-01-01")
    told = page.page.locator("main").inner_text()
    assert "select no job of c" in told and "2018-01-10" in told
    assert page.page.locator(".tile").count() == 0


def test_clusters_are_put_beside_one_another_and_taken_away(page: Tab) -> None:
    page.open("/compare?cluster=c")
    heads = page.page.locator("table.compare thead th.number")
    assert heads.all_inner_texts() == ["c"]
    page.page.click('[data-cluster="tiny"]')
    page.until(lambda: heads.all_inner_texts() == ["c", "tiny"], "both side by side")
    assert "cluster=c&cluster=tiny" in page.page.url
    page.page.click('[data-cluster="c"]')
    page.until(lambda: heads.all_inner_texts() == ["tiny"], "the other alone")


def test_a_form_works_without_scripts(chromium: Any, open_site: Running) -> None:
    with tab(chromium, open_site, java_script_enabled=False) as plain:
        plain.open("/jobs?cluster=c")
        plain.page.select_option("#f-queue", "rare")
        plain.page.click(".apply")
        plain.arrive("queue=rare", "the answer")
        query = parse_qs(urlsplit(plain.page.url).query)
        assert query == {"cluster": ["c"], "queue": ["rare"]}
        assert plain.count() == 1
        plain.open("/workload/states?cluster=c")
        table = plain.page.locator("main table").inner_text()
        assert "completed" in table and "failed" in table
        plain.open("/?cluster=c")
        plain.page.click("text=Read what stands out")
        plain.until(plain.page.locator(".findings li").count, "what stands out")


def test_another_cluster_that_lacks_the_queue_says_so(page: Tab) -> None:
    page.open("/workload/states?cluster=c&queue=short")
    assert page.page.locator(".filters .notice").count() == 0
    page.page.select_option("#f-cluster", "tiny")
    notice = page.page.locator(".filters .notice")
    page.until(notice.count, "to be told")
    page.settle()
    assert (
        notice.inner_text() == "tiny has no queue short: nothing is selected. Remove this filter."
    )
    notice.locator("a").click()
    page.until(lambda: "queue" not in page.page.url, "the filter to go")
    page.settle()
    assert "cluster=tiny" in page.page.url and notice.count() == 0


def test_a_slow_answer_is_seen_to_be_on_its_way(page: Tab) -> None:
    page.open("/jobs?cluster=c")
    held: list[Any] = []
    page.page.route("**/jobs?*queue=short*", lambda route: held.append(route))
    page.page.select_option("#f-queue", "short")
    page.until(lambda: held, "the request")
    assert page.page.locator("html.loading main[aria-busy=true]").count() == 1
    held[0].continue_()
    page.arrive("queue=short", "the answer")
    page.until(lambda: not page.page.locator("html.loading, [aria-busy]").count(), "the end of it")


def test_what_stands_out_may_come_before_the_script_of_the_charts(page: Tab) -> None:
    held: list[Any] = []
    page.page.route("**/echarts.js", lambda route: held.append(route))
    page.page.goto(f"{page.url}/?cluster=c", wait_until="commit")
    page.until(page.page.locator(".stands-out .findings li").count, "what stands out")
    assert page.page.locator(".stands-out [aria-busy]").count() == 0
    held[0].continue_()
    page.drawn("states")


def test_what_is_wrong_is_told_on_a_page(page: Tab) -> None:
    answer = page.open("/jobs?where=nothing")
    assert answer.status == 422
    assert "is not allowed in a filter" in page.page.locator("[role=alert]").inner_text()
    assert page.open("/nowhere").status == 404
    assert page.open("/workload?colour=red").status == 422
    page.open("/jobs?cluster=c")
    page.page.click("text=More filters")
    page.page.fill("#f-where", "queue =")
    page.page.press("#f-where", "Enter")
    page.until(page.page.locator("[role=alert]").count, "the fragment of the error")


WRONG = {
    "/": ("cluster=nope", "colour=red", "since=never", "min_gpus=-1", "state=happy"),
    "/findings": ("by=queue",),
    "/jobs": ("page=0", "sort=price", "user=a&user=b", "size=201"),
    "/job": ("", "cluster=c", "cluster=c&job_id=x", "cluster=c&cluster=d&job_id=1"),
    "/people": ("size=9999", "kind=cats"),
    "/compare": ("metrics=few", "cluster=nope"),
    "/data": ("x=1",),
    "/measure": ("x=1", "run=nope", "run=..", "cluster=nope", "beside=%20x"),
    "/data/rejects": ("page=x",),
    "/workload": ("colour=red", "since=2018-02-01&until=2018-01-01"),
    "/workload/none": ("",),
    "/workload/states": ("by=user&by=queue", "by=colour", "param.x=1"),
    "/workload/walltime": ("param.short_h=cat",),
    "/static/none.js": ("",),
    "//evil.example/": ("a=1",),
}
FINE = (
    "/findings?user=", "/workload", "/workload?cluster=c&cluster=tiny", "/people", "/workload/users",
    "/workload/states?cluster=c&cluster=tiny", "/workload/load?weight=gpu-hours", "/jobs?page=999",
    "/data/rejects?cluster=c&cluster=tiny", "/compare?queue=normal",
)  # fmt: skip


def test_a_wrong_address_is_answered_by_a_page_that_says_so(open_site: Running) -> None:
    with open_site.client(headers={"Accept": "text/html"}) as client:
        for path, queries in WRONG.items():
            for query in queries:
                answer = client.get(f"{open_site.url.rstrip('/')}{path}?{query}")
                assert 400 <= answer.status_code < 500, (path, query)
                assert 'role="alert"' in answer.text, (path, query)
                assert 'href="//' not in answer.text, (path, query)


def test_an_address_may_leave_things_open(open_site: Running) -> None:
    """Where one cluster must be chosen, it is the first; several stand side by side where they can."""
    client = open_site.client(headers={"Accept": "text/html"}, follow_redirects=True)
    with client:
        for path in FINE:
            answer = client.get(path)
            assert answer.status_code == 200, (path, answer.text)
        table = client.get("/workload/states?cluster=c&cluster=tiny").text
        assert "tiny" in table.split("<tbody>")[1]


TWICE = """() => {
    for (const value of ['user', 'queue']) {
        document.getElementById('o-by').value = value;
        document.querySelector('form.options').requestSubmit();
    }
}"""


def test_the_last_of_two_quick_changes_counts(page: Tab) -> None:
    """The second is sent before the first one's answer, which would replace its form."""
    page.open("/workload/walltime?cluster=c")
    page.page.evaluate(TWICE)
    page.arrive("by=queue", "the second change in the address")
    assert page.page.locator("#o-by").input_value() == "queue"
