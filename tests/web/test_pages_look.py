"""How the pages look to those who see them: widths, themes, contrast, keys, and the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hakaru.lake import Lake
from hakaru.web.app import create_app
from tests.web._look import CONTRAST, tab
from tests.web._site import USERS, Running, running

PATHS = (
    "/?cluster=c", "/workload?cluster=c", "/workload/walltime?cluster=c", "/jobs?cluster=c",
    "/job?cluster=c&job_id=1", "/people?cluster=c", "/compare?cluster=c",
    "/what-if?cluster=c", "/measure", "/data",
    "/data/rejects?reason=no+end", "/findings?cluster=c", "/api/v1/docs",
)  # fmt: skip
LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "narrow": {"color_scheme": "light", "viewport": {"width": 390, "height": 800}},
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_fits_and_can_be_read(chromium: Any, open_site: Running, look: str) -> None:
    """No console error, no other host (the tab looks), no sideways scroll, and AA contrast."""
    with tab(chromium, open_site, **LOOKS[look]) as page:
        for path in PATHS:
            assert page.open(path).status == 200, path
            page.page.wait_for_timeout(100)  # for what a script may still push aside
            assert page.overflow() <= 0, path
            assert page.page.evaluate(CONTRAST) == [], (look, path)
            assert page.page.locator("h1").count() == 1, path


def test_the_open_filters_and_the_form_fit_a_phone(chromium: Any, closed_site: Running) -> None:
    with tab(chromium, closed_site, "operator", **LOOKS["narrow"]) as page:
        page.open(
            "/jobs?cluster=c&state=failed&state=completed&queue=normal&min_gpus=1&where=run_s+%3E+1"
        )
        assert page.page.locator(".more[open]").count() == 1
        assert page.page.locator(".chip").count() == 7
        assert page.overflow() <= 0
        page.page.click("text=Sign out")
        page.arrive("/sign-in", "the form")
        assert page.overflow() <= 0 and page.page.evaluate(CONTRAST) == []


def test_every_figure_is_drawn(chromium: Any, open_site: Running) -> None:
    with tab(chromium, open_site) as page:
        page.open("/workload?cluster=c")
        ids = page.page.locator(".chart").evaluate_all("es => es.map(e => e.dataset.id)")
        assert len(ids) >= 26
        lazy = page.page.locator(".chart:not([data-drawn])").count()
        assert lazy > len(ids) / 2  # those out of sight wait
        for id in ids:
            page.drawn(id)
            card = page.page.locator(f'article[data-analysis="{id}"]')
            assert card.locator("[data-notes] li").first.inner_text().startswith("c: "), id


def test_keys_reach_everything_and_one_sees_where_they_are(
    chromium: Any, open_site: Running
) -> None:
    with tab(chromium, open_site) as page:
        page.open("/people?cluster=c")
        page.page.keyboard.press("Tab")
        assert page.page.evaluate("document.activeElement.className") == "skip"
        assert page.page.locator(".skip").bounding_box()["y"] >= 0
        page.page.keyboard.press("Enter")
        page.until(lambda: page.page.evaluate("document.activeElement.id") == "main", "the jump")
        page.open("/people?cluster=c")
        seen = []
        for _ in range(60):
            page.page.keyboard.press("Tab")
            seen.append(page.page.evaluate(FOCUSED))
            if seen[-1][0] == "BODY":
                break
        told = {tuple(each[:2]) for each in seen}
        assert {
            ("SELECT", "f-cluster"),
            ("INPUT", "f-since"),
            ("INPUT", "w-jobs"),
            ("INPUT", "q"),
        } <= told
        assert len(told) > 15  # no trap
        assert [each for each in seen if each[0] != "BODY" and not each[2]] == []


FOCUSED = """() => {
    const e = document.activeElement;
    const shown = [e, e.parentElement, e.nextElementSibling].filter(Boolean).some((each) => {
        const style = getComputedStyle(each);
        return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
    });
    return [e.tagName, e.id || e.textContent.trim().slice(0, 20), shown];
}"""


def test_scripts_and_styles_are_ours_and_cached_by_version(open_site: Running) -> None:
    import re

    with open_site.client() as client:
        html = client.get("/jobs").text
        addresses = re.findall(r'(?:src|href)="(/static/[^"]+)"', html)
        names = "icon.svg hakaru.css theme.js leads.js charts.js save.js page.js print.js htmx.js echarts.js"
        assert [each.rpartition("/")[2] for each in addresses] == names.split()
        for each in addresses:
            answer = client.get(each)
            assert answer.status_code == 200
            assert "immutable" in answer.headers["cache-control"], each
        old = re.sub(r"/static/[0-9a-f]+/", "/static/000000000000/", addresses[0])
        assert "immutable" not in client.get(old).headers["cache-control"]
        for wrong in ("/static/../app.py", "/static/x/app.py", "/static/%2e%2e%2fapp.py"):
            assert client.get(wrong).status_code == 404
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script>", html)


def test_a_user_sees_nobody_else(chromium: Any, closed_site: Running) -> None:
    """No other name in the HTML of any page, and only one's own jobs."""
    others = [name for name in (*USERS, "zoe", "boss") if name != "u1"]
    with tab(chromium, closed_site, "u1") as page:
        for path in (*PATHS, "/workload/job-shapes?cluster=c", "/people?cluster=c&kind=accounts"):
            page.open(path)
            page.until(lambda: not page.page.locator(".chart[aria-busy]").count(), "the figures")
            html = page.page.content()
            assert not [name for name in others if f">{name}<" in html or f" {name} " in html], path
        page.open("/")  # of two people's cluster nothing, of the other all that many people share
        assert (
            "fewer than 6 people" in page.page.locator("[data-cluster=tiny]").inner_text().lower()
        )
        assert (
            "43 jobs" in page.page.locator("[data-cluster=c] [data-measure=pe_hours]").inner_text()
        )
        page.open("/jobs?cluster=c")
        assert page.count() == 7
        assert set(page.page.locator("td[data-label=User]").all_inner_texts()) == {"u1"}
        assert page.open("/jobs?user=u2").status == 403
        assert page.open("/data/rejects").status == 403
        assert page.open("/job?cluster=c&job_id=2").status == 404
        page.open("/workload/concentration?cluster=c")
        assert "only mine" in page.page.locator(".refused").inner_text()
        page.open("/workload/job-shapes?cluster=c&user=u1")
        page.drawn("job-shapes")
        page.open("/data")
        assert "Shown to operators" in page.page.locator("main").inner_text()


def test_signing_in_and_out(chromium: Any, fresh_closed_site: Running) -> None:
    with tab(chromium, fresh_closed_site) as page:
        page.open("/people?kind=accounts")
        assert "/sign-in?next=" in page.page.url
        page.page.fill("input[name=token]", "hakaru_wrong")
        page.page.click("button")
        assert "unknown, revoked or expired" in page.page.locator("[role=alert]").inner_text()
        page.open("/people?kind=accounts")
        page.page.fill("input[name=token]", fresh_closed_site.secrets["operator"])
        page.page.click("button")
        page.arrive("/people?kind=accounts", "what was asked for")
        assert "boss operator" in page.page.locator(".who").inner_text()
        page.page.click("text=Sign out")
        page.arrive("/sign-in", "the form")
        page.open("/jobs")
        assert "/sign-in" in page.page.url


@pytest.fixture(scope="module")
def aaic_site(aaic_lake: Lake) -> Iterator[Running]:
    with running(create_app(aaic_lake)) as server:
        yield server


def test_the_pages_show_the_papers_numbers(chromium: Any, aaic_site: Running) -> None:
    """96.2 % on one GPU, 83 % completed, 459,545 jobs, and requests of which 4.0 % are used."""
    with tab(chromium, aaic_site) as page:
        page.open("/")
        assert "459,545 jobs" in page.page.locator("[data-measure=pe_hours]").inner_text()
        assert "83.2 %" in page.page.locator("[data-measure=share_completed]").inner_text()
        page.until(page.page.locator("[data-finding=single-pe]").count, "what stands out")
        assert "96.2 %" in page.page.locator("[data-finding=single-pe]").inner_text()
        assert "36.5 %" in page.page.locator("[data-finding=at-max]").inner_text()
        page.open("/workload/parallelism")
        chart = page.drawn("parallelism")
        bars = "e => echarts.getInstanceByDom(e).getOption().series[0].data.map(d => d.value)"
        assert chart.evaluate(bars) == [347086, 11850, 1820]
        page.open("/workload/walltime")
        assert "82.9 %" in page.page.locator("main table").inner_text()
        page.open("/compare")
        line = page.page.locator("[data-metric=wra_median]")
        assert "4.0 %" in line.locator(".own").inner_text()
        page.open("/jobs?where=num_nodes+%3E+1&size=5")
        with aaic_site.client() as client:
            told = client.get("/api/v1/jobs", params={"where": "num_nodes > 1", "size": 1}).json()
        assert page.count() == told["num_rows"] > 1820
