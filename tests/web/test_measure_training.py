"""Training, strategies and storage on the page Measure and in its API, over a made-up run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from hakaru.figures.measure.chapters import MEASURED_BY, PICTURES
from hakaru.lake import Lake
from hakaru.measure.record import Run
from hakaru.web.app import create_app
from tests.measure.lakes import BEGIN, measured, put_runs
from tests.measure.lakes_training import HOSTILE, hostile_rows, training_run
from tests.web._html import get, plain, table
from tests.web._look import CONTRAST, tab
from tests.web._site import Running, running

API = "/api/v1/measure"
RUN = training_run()
# where the first of the closed modules is drawn, and whether it is open
CLOSED = """chart => {
    const series = echarts.getInstanceByDom(chart).getModel().getSeriesByIndex(0);
    let found = null;
    series.getData().tree.root.eachNode((node) => {
        if (node.name.startsWith("blocks.0 …")) found = node;
    });
    const {x, y} = found.getLayout(), box = series.layoutInfo;
    return {x: box.x + x, y: box.y + y, isExpand: Boolean(found.isExpand)};
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The run, one of another cluster whose documents are damaged, and one of cards alone."""
    damaged = [
        row for number, facts in enumerate(HOSTILE) for row in hostile_rows(facts, workers=number)
    ]
    runs = [
        RUN,
        Run("0-damaged", "other", BEGIN - timedelta(days=9), tuple(damaged)),
        Run("0-cards", "cards", BEGIN - timedelta(days=9), (measured(),)),
    ]
    lake = put_runs(Lake.create(tmp_path_factory.mktemp("trained")), runs)
    with running(create_app(lake)) as found:
        yield found


@pytest.fixture
def ask(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.mark.parametrize("figure", PICTURES)
def test_each_figure_is_an_option_in_the_api(ask: httpx.Client, figure: str) -> None:
    for query in ("", "?dark=true"):
        drawing = ask.get(f"{API}/{RUN.id}/figures/{figure}{query}").json()
        assert drawing["id"] == figure and drawing["option"]["series"] and drawing["question"]
    none = ask.get(f"{API}/0-cards/figures/{figure}", params={"cluster": "cards"})
    assert none.status_code == 404
    assert none.json()["fix"] == f"Measure: hakaru bench run {MEASURED_BY[figure]}"


def test_a_figure_is_of_what_is_chosen(ask: httpx.Client) -> None:
    def bars(**query: str) -> int:
        drawing = ask.get(f"{API}/{RUN.id}/figures/breakdown", params=query).json()
        return len(drawing["option"]["series"][0]["data"])

    assert (bars(), bars(of="mlp, ddp, weak, 3 ranks")) == (4, 3)
    odd = ask.get(f"{API}/{RUN.id}/figures/breakdown", params={"of": "mlp, ddp, weak, 5 ranks"})
    assert odd.status_code == 404 and "mlp, ddp, weak, 4 ranks" in odd.json()["fix"]


def test_the_page_has_the_sentences_and_the_tables(ask: httpx.Client) -> None:
    page = get(ask, "/measure")
    text = plain(page)
    for part in ("Training", "Strategies", "Storage", "is ready 25 ms late, which costs 25 ms a step",
                 "86 % of loading and all of copying hide behind compute."):  # fmt: skip
        assert part in text, part
    assert text.index("Training mlp") < text.index("History"), (
        "what was measured before how it was before"
    )
    strategies, planner, needed = (table(page, number) for number in (0, 1, 2))
    assert strategies[0]["Strategy"] == "ddp" and strategies[0]["95 % interval"] == "4,900 to 5,100"
    assert planner[1]["Why"] == "needs 17.2 GiB a device, which has 16 GiB"
    assert needed[0]["4 times as fast"] == "520 MB/s, too slow"
    assert "The fleet" not in text, "ranks are no devices"


def test_a_run_of_cards_has_none_of_it(ask: httpx.Client) -> None:
    page = get(ask, "/measure?cluster=cards")
    assert 'id="fleet"' in page
    for id in ("training", "strategies", "storage", *PICTURES):
        assert f'id="{id}"' not in page


def test_the_links_keep_what_else_was_chosen(ask: httpx.Client) -> None:
    chosen = {"breakdown": "mlp, ddp, weak, 3 ranks", "timeline": "resnet50"}
    page = get(ask, f"/measure?{urlencode({'run': RUN.id} | chosen)}")
    for text in ("A step, by rank: mlp, ddp, weak, 3 ranks", "What runs when: resnet50"):
        assert text in plain(page)
    link = urlencode(
        {"run": RUN.id, "breakdown": "mlp, ddp, weak, 2 ranks", "timeline": "resnet50"}
    )
    assert link.replace("&", "&amp;") in page
    odd = get(ask, f"/measure?{urlencode({'breakdown': 'no such training'})}")
    assert "A step, by rank: mlp, ddp, weak, 4 ranks" in plain(odd), (
        "what is not there is as if not chosen"
    )


def test_the_page_in_a_browser(chromium: Any, server: Running) -> None:
    """All is drawn; another size is chosen; no error, no other host (the tab looks), and it can be read."""
    with tab(chromium, server) as page:
        page.open("/measure")
        for id in PICTURES:
            page.drawn(id)
        browser = page.page
        notes = browser.locator("#breakdown [data-notes]")
        assert "Rank 2 on n3 is ready 25 ms late" in notes.inner_text()
        browser.click("#breakdown .switches >> text=mlp, ddp, weak, 2 ranks")
        page.arrive("breakdown=", "the choice in the address")
        page.drawn("breakdown")
        page.until(lambda: "No rank keeps" in notes.inner_text(), "the two ranks")
        page.drawn("timeline")
        assert page.overflow() <= 0 and browser.evaluate(CONTRAST) == []


@pytest.mark.parametrize(
    "look", [{"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}}]
)
def test_it_fits_and_damaged_documents_are_inert(
    chromium: Any, server: Running, look: dict[str, Any]
) -> None:
    with tab(chromium, server, **look) as page:
        for path in ("/measure", "/measure?cluster=other"):
            page.open(path)
            for id in page.page.locator(".chart").evaluate_all("es => es.map(e => e.dataset.id)"):
                page.drawn(id)
            assert page.overflow() <= 0 and page.page.evaluate(CONTRAST) == []
        assert page.page.evaluate("window.hit") is None
        assert page.page.locator("main img").count() == 0
        assert "onerror" in page.page.locator("main").inner_text(), "shown as it is"


def test_it_is_for_operators_alone(closed_site: Running) -> None:
    for figure in PICTURES:
        with closed_site.client("u1") as client:
            assert client.get(f"{API}/latest/figures/{figure}").status_code == 403


def test_a_closed_module_opens_by_a_click(chromium: Any, server: Running) -> None:
    with tab(chromium, server) as page:
        page.open("/measure")
        chart = page.drawn("partition")
        found = chart.evaluate(CLOSED)
        assert found["isExpand"] is False
        chart.click(position={"x": found["x"], "y": found["y"]})
        page.until(lambda: chart.evaluate(CLOSED)["isExpand"], "the module to open")


def test_a_page_of_a_workspace_without_runs_is_unchanged(tmp_path: Path) -> None:
    with running(create_app(Lake.create(tmp_path))) as empty, empty.client() as client:
        assert "Nothing has been measured yet" in plain(get(client, "/measure"))
