"""Figures, used in a real Chromium: drilled down, grouped, brushed, downloaded."""

from __future__ import annotations

import io
import struct
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
from tests.web._site import Running, running

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


def test_a_click_on_a_bar_leads_to_its_jobs(page: Tab) -> None:
    """18 of the 43 jobs failed: a bar of its own, and that many jobs behind it."""
    page.open("/workload/states?cluster=c&until=2018-03-31")
    chart = page.drawn("states")
    names = chart.evaluate("e => echarts.getInstanceByDom(e).getOption().xAxis[0].data")
    x, y = chart.evaluate(PLACE, names.index("failed"))
    chart.click(position={"x": x, "y": y})
    page.arrive("/jobs?", "the jobs behind the bar")
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
    page.arrive("/jobs?", "the jobs behind the hour")
    assert parse_qs(urlsplit(page.page.url).query)["where"] == [where]
    assert page.count() == num_jobs


def test_jobs_behind_a_card_are_those_that_it_counts(page: Tab) -> None:
    page.open("/workload?cluster=c")
    page.drawn("gpus-single-node")
    card = page.page.locator('article[data-analysis="gpus-single-node"]')
    card.locator("[data-behind]").click()
    page.arrive("/jobs?", "the jobs")
    assert page.count() == 18


def test_hours_instead_of_jobs(page: Tab) -> None:
    page.open("/workload/queues?cluster=c")
    page.page.check("#w-hours", force=True)
    page.arrive("weight=gpu-hours", "the address to tell the weight")
    chart = page.drawn("queues")
    axis = "e => echarts.getInstanceByDom(e).getOption().yAxis[0].name"
    assert chart.evaluate(axis) == "GPU-hours"


def test_grouped_and_with_parameters(page: Tab) -> None:
    page.open("/workload/walltime?cluster=c")
    page.page.select_option("#o-by", "queue")
    page.arrive("by=queue", "the address to tell the group")
    page.page.fill("#o-short_h", "0.6")
    page.page.press("#o-short_h", "Enter")
    page.arrive("param.short_h=0.6", "the address to tell the parameter")
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
        page.arrive("/jobs?", "the brushed jobs")
        assert page.count() == 4
        assert "num_pes >=" in parse_qs(urlsplit(page.page.url).query)["where"][0]


LEADS = """([jobs, mine, where]) => {
    const element = document.createElement("div");
    Object.assign(element.dataset, { jobs, where: mine });
    return hakaru.jobsAddress(element, where);
}"""
BRUSHED = """async ([axes, ranges]) => {
    const card = document.createElement("div");
    card.append(document.createElement("p"), document.createElement("div"));
    card.firstChild.className = "brushed";
    Object.assign(card.lastChild.dataset, { jobs: "/jobs?cluster=c", where: "" });
    const component = (name, index) => ({ activeIntervals: ranges[index] });
    await hakaru.brushed(card.lastChild, {
        getOption: () => ({ parallel: [{}], parallelAxis: axes }),
        getModel: () => ({ getComponent: component }),
    });
    return [card.querySelector("a").getAttribute("href"), card.textContent];
}"""


def test_a_figure_leads_to_jobs_of_its_own_filter_and_the_page_s(page: Tab) -> None:
    page.open("/data")

    def leads(mine: str, where: str) -> dict[str, list[str]]:
        address = page.page.evaluate(LEADS, ["/jobs?cluster=c", mine, where])
        assert address.startswith("/jobs?")
        return parse_qs(urlsplit(address).query)

    cluster = {"cluster": ["c"]}
    both = "(num_gpus = 1 OR hour = 2) AND weekday = 3"
    assert leads("num_gpus = 1 OR hour = 2", "weekday = 3") == cluster | {"where": [both]}
    assert leads("hour = 2", "") == cluster | {"where": ["hour = 2"]}
    fielded = leads("", "state = 'failed' AND hour = 9")
    assert fielded == cluster | {"state": ["failed"], "where": ["hour = 9"]}
    assert leads("", "user = 'o''brien'") == cluster | {"user": ["o'brien"]}
    assert leads("", "queue = ' x'") == cluster | {"where": ["queue = ' x'"]}
    notes = [page.page.evaluate("hakaru.notesOf", drawn) for drawn in (
        {"notes": ["a"], "withheld": {"why": "b"}}, {"notes": ["a"], "withheld": None},
    )]  # fmt: skip
    assert notes == [["a", "b"], ["a"]]


def test_brushed_ranges_are_in_the_units_of_their_columns(page: Tab) -> None:
    """Hours of an axis are seconds of the filter; an end of an axis is no bound; 18 jobs are such."""
    page.open("/data")
    axes = [
        {"column": "run_s", "factor": 3600, "type": "log", "min": 0.01, "max": 100},
        {"column": "num_pes", "factor": 1, "type": "log", "min": 1, "max": 64},
        {"column": "wait_s", "factor": 3600, "type": "log", "min": 0.001, "max": 10},
        {"column": "queue", "factor": 1, "type": "category", "data": ["normal", "short", "rare"]},
    ]
    ranges = [[[0.5, 2]], [[1.2, 5.7]], [[0.0005, 9.95]], [[0.6, 1.4]]]
    address, text = page.page.evaluate(BRUSHED, [axes, ranges])
    (where,) = parse_qs(urlsplit(address).query)["where"]
    parts = ("run_s >= 1800", "run_s <= 7200", "num_pes >= 2", "num_pes <= 5", "queue IN ('short')")
    assert where == " AND ".join(parts)
    assert text == "18 jobs lie in the brushed ranges"


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


def test_a_saved_svg_is_well_formed_whatever_names_hold(chromium: Any, tmp_path: Path) -> None:
    lake = put_jobs(Lake.create(tmp_path), [job(i, queue="a\x01\x1b[31mb") for i in range(3)])
    with running(create_app(lake)) as server, tab(chromium, server) as page:
        page.open("/workload/queues?cluster=c")
        page.drawn("queues")
        page.page.click("summary:has-text('Download')")
        with page.page.expect_download() as got:
            page.page.click(".download >> text=SVG")
        image = ElementTree.fromstring(Path(got.value.path()).read_bytes())
    assert "a\ufffd\ufffd[31mb" in {each.text for each in image.iter() if each.text}


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
        assert page.page.locator("#o-days").count() == 0
        page.open("/workload/arrivals-by-hour?cluster=c&user=u8")
        assert page.page.locator("#o-days").count() == 1
        page.open("/workload/walltime?cluster=c")
        assert page.page.locator("#o-short_h").count() == 0
        page.open("/workload/walltime?cluster=c&user=u8")
        assert page.page.locator("#o-short_h").count() == 1


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
