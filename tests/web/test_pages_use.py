"""What one does with the pages, done in a real Chromium: filter, share, drill down, brush, download."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

from hakaru.lake import Lake
from hakaru.web.app import create_app
from tests.conftest import job, put_jobs, utc
from tests.web._look import Tab, tab
from tests.web.conftest import Running, running

# clicks a bar of the first series, or the place that an axis of parallel coordinates has for a value
PLACE = """(chart, at) => {
    const drawn = echarts.getInstanceByDom(chart);
    const [x, y] = drawn.convertToPixel({seriesIndex: 0}, [at, 0]);
    return [x, y - 6];
}"""
AXIS = """(chart, [axis, value]) => {
    const drawn = echarts.getInstanceByDom(chart);
    const system = drawn.getModel().getComponent('parallel', 0).coordinateSystem;
    return system.dataToPoint(value, 'dim' + axis);
}"""


@pytest.fixture
def page(chromium: Any, open_site: Running) -> Iterator[Tab]:
    with tab(chromium, open_site) as found:
        yield found


def test_a_filter_is_in_the_address_and_the_address_gives_the_view(
    page: Tab, chromium: Any, open_site: Running
) -> None:
    page.open("/jobs?cluster=c")
    everything = page.count()
    page.page.select_option("#f-queue", "short")
    page.until(lambda: "queue=short" in page.page.url, "the address to tell the queue")
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
    page.until(lambda: "since=2018-02-01" in page.page.url, "the address to tell the date")
    assert not [url for url in asked if "since=0" in url]
    for queue in ("short", "normal"):
        page.page.select_option("#f-queue", queue)
        page.until(lambda queue=queue: f"queue={queue}" in page.page.url, "the queue")
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
        query = parse_qs(urlsplit(plain.page.url).query)
        assert query == {"cluster": ["c"], "queue": ["rare"]}
        assert plain.count() == 1
        plain.open("/workload/states?cluster=c")
        table = plain.page.locator("main table").inner_text()
        assert "completed" in table and "failed" in table
        plain.open("/?cluster=c")
        plain.page.click("text=Read what stands out")
        assert plain.page.locator(".findings li").count()


def test_a_click_on_a_bar_leads_to_its_jobs(page: Tab) -> None:
    """18 of the 43 jobs failed: a bar of its own, and that many jobs behind it."""
    page.open("/workload/states?cluster=c&until=2018-03-31")
    chart = page.drawn("states")
    names = chart.evaluate("e => echarts.getInstanceByDom(e).getOption().xAxis[0].data")
    x, y = chart.evaluate(PLACE, names.index("failed"))
    chart.click(position={"x": x, "y": y})
    page.until(lambda: "/jobs?" in page.page.url, "the jobs behind the bar")
    query = parse_qs(urlsplit(page.page.url).query)
    assert query["cluster"] == ["c"] and query["until"] == ["2018-03-31"]
    assert query["state"] == ["failed"] and "where" not in query
    assert page.page.is_checked("#s-failed"), "what a field can say, the field says"
    assert page.count() == 18
    assert set(page.page.locator("td .state").all_inner_texts()) == {"failed"}


@pytest.mark.parametrize(
    ("id", "where", "below", "num_jobs"),
    [
        ("arrivals-by-hour", "hour = 9", 0, 42),
        ("arrivals-by-hour", "hour = 9", 40, 42),  # anywhere in the hour's column
        # Wednesdays at nine: the 10th and 17th of January, the 14th of February and of March
        ("arrivals-by-week", "weekday = 2 AND hour = 9", 0, 7),
    ],
)
def test_an_hour_leads_to_its_jobs(
    page: Tab, id: str, where: str, below: int, num_jobs: int
) -> None:
    page.open(f"/workload/{id}?cluster=c")
    chart = page.drawn(id)
    place = """(chart, at) => {
        const drawn = echarts.getInstanceByDom(chart);
        const { series } = drawn.getOption();
        const index = series.findLastIndex((each) => each.data.some((item) => item && item.where));
        const { value } = series[index].data.find((item) => item.where === at);
        const name = Array.isArray(value) ? value : [Number(at.match(/\\d+/)[0]), value];
        return drawn.convertToPixel({ seriesIndex: index }, name);
    }"""
    x, y = chart.evaluate(place, where)
    chart.click(position={"x": x, "y": y + below})
    page.until(lambda: "/jobs?" in page.page.url, "the jobs behind the hour")
    assert parse_qs(urlsplit(page.page.url).query)["where"] == [where]
    assert page.count() == num_jobs


def test_jobs_behind_a_card_are_those_that_it_counts(page: Tab) -> None:
    page.open("/workload?cluster=c")
    page.drawn("gpus-single-node")
    card = page.page.locator('article[data-analysis="gpus-single-node"]')
    card.locator("[data-behind]").click()
    page.until(lambda: "/jobs?" in page.page.url, "the jobs")
    assert page.count() == 18


def test_hours_instead_of_jobs(page: Tab) -> None:
    page.open("/workload/queues?cluster=c")
    page.page.check("#w-hours", force=True)
    page.until(lambda: "weight=gpu-hours" in page.page.url, "the address to tell the weight")
    chart = page.drawn("queues")
    axis = "e => echarts.getInstanceByDom(e).getOption().yAxis[0].name"
    assert chart.evaluate(axis) == "GPU-hours"


def test_grouped_and_with_parameters(page: Tab) -> None:
    page.open("/workload/walltime?cluster=c")
    page.page.select_option("#o-by", "queue")
    page.until(lambda: "by=queue" in page.page.url, "the address to tell the group")
    page.page.fill("#o-short_h", "0.6")
    page.page.press("#o-short_h", "Enter")
    page.until(lambda: "param.short_h=0.6" in page.page.url, "the address to tell the parameter")
    assert "by=queue" in page.page.url
    assert "normal" in page.page.locator("main table").inner_text()


def test_a_brush_counts_the_jobs_in_its_ranges(chromium: Any, tmp_path: Path) -> None:
    """Ten jobs of 1 to 10 minutes on 1 GPU and four of 8: a brush around 8 GPUs holds four."""
    at = {"submitted_at": utc("2018-05-01T00:00:00"), "ended_at": utc("2018-05-01T03:00:00")}
    rows = [job(i, run_s=60.0 * (i + 1), **at) for i in range(10)]
    rows += [job(100 + i, num_gpus=8, run_s=7200.0, **at) for i in range(4)]
    app = create_app(put_jobs(Lake.create(tmp_path), rows))
    with running(app) as server, tab(chromium, server) as page:
        page.open("/workload/job-shapes")
        chart = page.drawn("job-shapes")
        box = chart.bounding_box()
        (x, top), (_, bottom) = (chart.evaluate(AXIS, [1, value]) for value in (8, 6))
        page.page.mouse.move(box["x"] + x, box["y"] + bottom)
        page.page.mouse.down()
        page.page.mouse.move(box["x"] + x, box["y"] + top - 20, steps=4)
        page.page.mouse.up()
        link = page.page.locator(".brushed a")
        page.until(link.count, "the count of the brushed jobs")
        assert link.inner_text() == "4 jobs lie in the brushed ranges"
        link.click()
        page.until(lambda: "/jobs?" in page.page.url, "the brushed jobs")
        assert page.count() == 4
        assert "num_pes >=" in parse_qs(urlsplit(page.page.url).query)["where"][0]


def test_downloads(page: Tab) -> None:
    page.open("/workload/states?cluster=c&queue=short")
    page.drawn("states")
    page.page.click("summary:has-text('Download')")
    files = {}
    for name in ("CSV", "Parquet", "PNG", "SVG"):
        with page.page.expect_download() as got:
            page.page.click(f".download >> text={name}")
        files[name] = (got.value.suggested_filename, Path(got.value.path()).read_bytes())
    kinds = ("csv", "parquet", "png", "svg")
    assert [name for name, _ in files.values()] == [f"states.{kind}" for kind in kinds]
    assert files["CSV"][1].decode().splitlines()[0].startswith('"state"')
    assert "failed" in pq.read_table(io.BytesIO(files["Parquet"][1]))["state"].to_pylist()
    assert files["PNG"][1].startswith(b"\x89PNG") and len(files["PNG"][1]) > 5000
    chart = page.page.locator(".chart").bounding_box()
    width, height = struct.unpack(">II", files["PNG"][1][16:24])
    assert width == 2 * (int(chart["width"]) + 32), "a margin on both sides, at twice the pixels"
    assert height > 2 * (chart["height"] + 75), "title and cluster above, notes below"
    texts = ElementTree.fromstring(files["SVG"][1]).findall("{*}text")
    assert [each.text for each in texts] == [
        "How jobs ended",
        "c · queue short",
        "c: 18 of 18 jobs",
    ]


def test_another_cluster_that_lacks_the_queue_says_so(page: Tab) -> None:
    page.open("/workload/states?cluster=c&queue=short")
    assert page.page.locator(".filters .notice").count() == 0
    page.page.select_option("#f-cluster", "tiny")
    notice = page.page.locator(".filters .notice")
    page.until(notice.count, "to be told")
    assert (
        notice.inner_text() == "tiny has no queue short: nothing is selected. Remove this filter."
    )
    notice.locator("a").click()
    page.until(lambda: "queue" not in page.page.url, "the filter to go")
    assert "cluster=tiny" in page.page.url and notice.count() == 0


def test_times_of_a_table_are_the_sites(chromium: Any, tmp_path: Path) -> None:
    """Midnight in UTC is nine in Tokyo, in the table of a figure as in the list of jobs."""
    lake = put_jobs(Lake.create(tmp_path), [job(i) for i in range(3)])
    (tmp_path / "hakaru.toml").write_text('[clusters.c]\nzone = "Asia/Tokyo"\n')
    with running(create_app(lake)) as server, tab(chromium, server) as page:
        for path in ("/workload/job-shapes", "/workload/load", "/jobs"):
            page.open(path)
            time = page.page.locator("main table time").first
            assert time.inner_text() == "2018-01-01 09:00:00", path
            assert time.get_attribute("title") == "2018-01-01 00:00:00 UTC"
            assert "the site (Asia/Tokyo)" in page.page.locator("main").inner_text()
            assert "(UTC)" not in page.page.locator("main thead").inner_text()


def test_a_user_is_offered_only_what_is_granted(chromium: Any, closed_site: Running) -> None:
    with tab(chromium, closed_site, "u8") as page:
        page.open("/workload/arrivals-by-hour?cluster=c")
        assert page.page.locator("#o-days").count() == 1
        page.open("/workload/walltime?cluster=c")
        assert page.page.locator("#o-short_h").count() == 0
        page.open("/workload/walltime?cluster=c&user=u8")
        assert page.page.locator("#o-short_h").count() == 1


PRINT = """window.printed = [];
window.print = () => {
    const drawn = [...document.querySelectorAll('.chart[data-drawn]')];
    const backs = drawn.map((each) => echarts.getInstanceByDom(each).getOption().backgroundColor);
    window.printed.push([drawn.length, document.querySelectorAll('.chart').length, [...new Set(backs)]]);
    dispatchEvent(new Event('afterprint'));
};"""


@pytest.mark.parametrize("by", ["button", "keys"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_printing_waits_for_all_figures(page: Tab, by: str, scheme: str) -> None:
    """A browser prints what is there; the page draws all of its figures, light as paper, before it asks."""
    page.page.emulate_media(color_scheme=scheme)
    page.page.add_init_script(PRINT)
    page.open("/workload?cluster=c")
    charts = page.page.locator(".chart")
    assert page.page.locator(".chart[data-drawn]").count() < charts.count() > 20
    page.page.click("[data-print]") if by == "button" else page.page.keyboard.press("Control+p")
    page.until(lambda: page.page.evaluate("printed.length"), "to be asked to print")
    ((drawn, all_of_them, backs),) = page.page.evaluate("printed")
    failed = page.page.locator(".chart[data-failed]").count()
    assert (drawn, failed, backs) == (all_of_them, 0, ["#ffffff"])
    back = "e => echarts.getInstanceByDom(e).getOption().backgroundColor"
    again = {"light": "#ffffff", "dark": "#14181f"}[scheme]
    page.until(lambda: charts.last.evaluate(back) == again, "the screen's colours again")


def test_a_printed_page_fits_its_paper(page: Tab) -> None:
    page.page.add_init_script(PRINT)
    page.open("/workload/states?cluster=c")
    chart = page.drawn("states")
    wide = chart.evaluate("e => e.clientWidth")
    page.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert chart.evaluate("e => e.clientWidth") < 718 < wide, (
        "A4 has 718 pixels between its margins"
    )
    assert chart.locator("canvas").evaluate("e => e.getBoundingClientRect().width") < 718
    page.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert chart.evaluate("e => e.clientWidth") == wide


def test_a_chart_of_several_layers_is_printed_whole(page: Tab) -> None:
    """Nine o'clock on Wednesdays, 7 jobs in 4 such days of which most are elsewhere, is not white."""
    page.open("/workload/arrivals-by-week?cluster=c")
    chart = page.drawn("arrivals-by-week")
    page.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    seen = """chart => {
        const drawn = echarts.getInstanceByDom(chart);
        const [x, y] = drawn.convertToPixel({ seriesIndex: 0 }, [9, 2]);
        const layers = [...chart.querySelectorAll('canvas')];
        const shown = layers.filter((each) => each.style.visibility !== 'hidden');
        const scale = devicePixelRatio;
        return [shown.length, [...layers[0].getContext('2d').getImageData(x * scale, y * scale, 1, 1).data]];
    }"""
    shown, colour = chart.evaluate(seen)
    assert shown == 1 and colour[3] == 255 and min(colour[:3]) < 200
    page.page.evaluate("dispatchEvent(new Event('afterprint'))")
    hidden = "es => es.filter(e => e.style.visibility === 'hidden').length"
    assert chart.locator("canvas").evaluate_all(hidden) == 0


def test_jobs_are_sorted_paged_and_searched(page: Tab) -> None:
    page.open("/jobs?cluster=c&size=10")
    page.page.click("th a:has-text('Run')")
    page.until(lambda: "sort=run_s" in page.page.url, "to be sorted")
    assert page.page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.page.locator("a[rel=next]").first.click()
    page.until(lambda: "page=2" in page.page.url, "the second page")
    assert "11–20 of 43" in page.page.locator(".pager").first.inner_text()
    page.page.keyboard.press("/")
    page.page.keyboard.type("train u3")
    page.page.keyboard.press("Enter")
    page.until(lambda: "q=train" in page.page.url, "the search")
    assert page.count() == 3 and "page=" not in page.page.url


def test_a_job_in_the_sites_time_and_in_utc(page: Tab) -> None:
    page.open("/jobs?cluster=c&queue=rare")
    page.page.click("tbody a")
    page.until(lambda: "/job?" in page.page.url, "the job")
    time = page.page.locator("dd time").first
    assert time.get_attribute("title") == "2018-02-20 12:00:00 UTC"
    assert page.page.locator(".places svg").count() >= 4
    assert "The queue or partition." in page.page.locator("main").inner_text()


def test_the_theme_is_kept_and_the_charts_follow(page: Tab) -> None:
    page.open("/workload/states?cluster=c")
    page.drawn("states")
    back = "e => echarts.getInstanceByDom(e).getOption().backgroundColor"
    chart = page.page.locator(".chart")
    assert chart.evaluate(back) == "#ffffff"
    page.page.check(".theme input[value=dark]", force=True)
    page.until(lambda: chart.evaluate(back) == "#14181f", "a dark chart")
    page.open("/jobs")
    assert page.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_slow_answer_is_seen_to_be_on_its_way(page: Tab) -> None:
    page.open("/jobs?cluster=c")
    held: list[Any] = []
    page.page.route("**/jobs?*queue=short*", lambda route: held.append(route))
    page.page.select_option("#f-queue", "short")
    page.until(lambda: held, "the request")
    assert page.page.locator("html.loading main[aria-busy=true]").count() == 1
    held[0].continue_()
    page.until(lambda: "queue=short" in page.page.url, "the answer")
    page.until(lambda: not page.page.locator("html.loading, [aria-busy]").count(), "the end of it")


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
        page.until(lambda: "/jobs?" in page.page.url, "the jobs of that name")
        assert page.count() == 6
        listed = page.page.locator("tbody").inner_html()
        assert "&lt;script&gt;" in listed
        assert "<script>" not in listed


WRONG = {
    "/": ("cluster=nope", "colour=red", "since=never", "min_gpus=-1", "state=happy"),
    "/findings": ("by=queue",),
    "/jobs": ("page=0", "sort=price", "user=a&user=b", "size=201"),
    "/job": ("", "cluster=c", "cluster=c&job_id=x", "cluster=c&cluster=d&job_id=1"),
    "/people": ("size=9999", "kind=cats"),
    "/compare": ("metrics=few", "cluster=nope"),
    "/data": ("x=1",),
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
