"""Printed pages: all figures are drawn, whole, and fit the paper."""

from __future__ import annotations

import pytest

from tests.web._look import Tab

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
