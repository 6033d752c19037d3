"""What-if on its pages: the form, its text, and a scenario from there to the day of a node."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from hakaru.web.what_if import check
from hakaru.web.what_if.bounds import Bounds
from hakaru.web.what_if.check import WrongScenario, checked, line_of
from hakaru.web.what_if.draft import Draft
from tests.web._look import CONTRAST, tab
from tests.web._site import Running
from tests.web.what_if._runs import API, ONE_NODE, ended


def test_without_the_extra_the_page_says_which_command(
    ask: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "is_installed", lambda: False)
    page = ask.get("/what-if", headers={"Accept": "text/html"})
    assert page.status_code == 200 and "hakaru[sim]" in page.text and "<form id" not in page.text
    answer = ask.post(API, json={"cluster": "c", "scenario": ONE_NODE})
    assert answer.status_code == 503 and "hakaru[sim]" in answer.json()["fix"]


def test_the_form_writes_what_the_parser_reads() -> None:
    fields = {
        "nodes": "38", "size": "8", "policy": "fcfs", "months": "all", "v1-nodes": "−4",
        "v2-user_gpus": "32", "v2-user_jobs": "9", "v3-accurate": "50 %", "v3-load": "20",
        "v4-favour": "yes", "v4-name": 'say "hi"',
    }  # fmt: skip
    scenario = checked(Draft(fields).toml(), Bounds())
    assert (scenario.machine.nodes, scenario.machine.size, scenario.months) == (38, 8, "all")
    first, second, third, fourth = scenario.variants
    assert scenario.baseline.policy == first.policy == "fcfs"
    assert (first.name, first.nodes) == ("4 fewer nodes", -4)
    assert [(limit.what, limit.value) for limit in second.limits] == [
        ("running-gpus", 32),
        ("running-jobs", 9),
    ]
    assert third.accurate_requests is not None and third.accurate_requests.users == 50
    assert third.load == pytest.approx(1.2)
    assert (fourth.name, fourth.policy, fourth.weights["size"]) == ('say "hi"', "multifactor", 2000)


@pytest.mark.parametrize(
    ("fields", "where", "told"),
    [
        ({"nodes": "many", "v1-nodes": "1"}, "nodes", "a whole number"),
        ({"nodes": "0", "v1-nodes": "1"}, "nodes", "at least 1"),
        (
            {"nodes": "1", "processors": "4", "v1-nodes": "1"},
            "processors",
            "not both; found processors and",
        ),
        ({"v2-accurate": "150"}, "v2-accurate", "at most 100"),
        ({"v3-policy": "fcfs", "v3-favour": "yes"}, "v3-favour", "has none"),
        ({"v4-load": "-100"}, "v4-load", "more than -100"),
        ({"v1-user_gpus": "-3"}, "v1-user_gpus", "at least 0"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(
    ask: httpx.Client, fields: dict[str, str], where: str, told: str
) -> None:
    draft = Draft(fields)
    with pytest.raises(WrongScenario):
        draft.check(Bounds())
    assert told in draft.errors[where][0]
    page = ask.post("/what-if", data={"cluster": "c", "do": "form"} | fields)
    assert page.status_code == 422
    assert f'aria-describedby="e-{where}"' in page.text or where.endswith("favour")
    assert f'id="e-{where}"' in page.text


def test_a_problem_has_a_line() -> None:
    text = "[machine]\nnodes = 0\n\n[[variant]]\nnodes = 1\n\n[[variant]]\nload = 0\n"
    assert line_of(text, "machine.nodes: expected") == 2
    assert line_of(text, "variant 2.load: expected") == 8
    assert line_of(text, "not valid TOML: x (at line 7, column 2)") == 7
    assert line_of(text, "there is no [[variant]]") is None


def test_the_form_writes_its_text_without_scripts(ask: httpx.Client) -> None:
    page = ask.post("/what-if", data={"cluster": "c", "do": "write", "v1-nodes": "3"})
    assert page.status_code == 200 and "nodes = 3" in page.text and 'as-toml" open' in page.text
    again = ask.post("/what-if", data={"cluster": "c", "do": "text", "text": "nodes = x"})
    assert again.status_code == 422 and "at line 1" in again.text


def test_from_the_form_to_the_day_of_a_node(
    chromium: Any, server: Running, done: dict[str, Any]
) -> None:
    """Built, watched and compared in a browser; no error, no other host (the tab looks).

    The kernel is compiled by then, since `done` has ended.
    """
    with tab(chromium, server) as page:
        page.open("/what-if")
        browser = page.page
        assert browser.locator(f"a[href='/what-if/{done['id']}']").count() == 1
        for name, value in {"nodes": "1", "size": "2", "v1-nodes": "1", "v2-accurate": ""}.items():
            browser.fill(f"#w-{name}", value)
        browser.select_option("#w-v2-policy", "fcfs")
        browser.click(".as-toml summary")
        written = browser.locator("#w-text")
        page.until(lambda: 'policy = "fcfs"' in written.input_value(), "the text of the form")
        assert "[machine]\nnodes = 1\nsize = 2\n" in written.input_value()
        browser.click("button:has-text('Run') >> nth=0")
        page.arrive("/what-if/", "the run")
        page.until(browser.locator("progress, tr[data-metric]").count, "how far it is, or the end")
        with server.client() as client:
            assert ended(client, browser.url.rsplit("/", 1)[1])["state"] == "done"
        metrics = browser.locator("tr[data-metric=mean_wait_s]")
        page.until(lambda: metrics.count() == 1, "the comparison")
        assert "1 more node" in browser.locator("thead").first.inner_text()
        assert metrics.locator(".delta.better").count() == 1
        for id in ("waits-by-class", "waits", "busy", "nodes"):
            page.drawn(id)
        assert page.overflow() <= 0 and browser.evaluate(CONTRAST) == []
        browser.select_option("#n-variant", "1")
        page.arrive("variant=1", "the variant in the address")
        browser.fill("#n-day", "2018-01-05")
        browser.locator("#n-day").blur()
        page.arrive("day=2018-01-05", "the day in the address")
        chart = page.drawn("nodes")
        assert "variant=1&day=2018-01-05" in chart.get_attribute("data-figure")
        notes = browser.locator("#nodes [data-notes]")
        page.until(lambda: "4 jobs ran on this day" in notes.inner_text(), "the day's jobs")
        browser.click("text=Change the scenario")
        page.until(lambda: browser.locator("#w-text").count() == 1, "the form again")
        assert 'policy = "fcfs"' in browser.locator("#w-text").input_value()


QUICK = """() => {
    for (const [id, value] of [['w-v1-nodes', '3'], ['w-v2-policy', 'fcfs']]) {
        const field = document.getElementById(id);
        field.value = value;
        field.dispatchEvent(new Event('change', {bubbles: true}));
    }
}"""


def test_the_text_follows_a_change_made_before_the_last_answer(
    chromium: Any, server: Running
) -> None:
    """The second change waits for the first one's answer, which replaces the text."""
    with tab(chromium, server) as page:
        page.open("/what-if")
        page.page.evaluate(QUICK)
        written = page.page.locator("#w-text")
        page.until(lambda: 'policy = "fcfs"' in written.input_value(), "the second change")
        assert "nodes = 3" in written.input_value()


def test_another_cluster_has_another_machine(chromium: Any, open_site: Running) -> None:
    """What was typed stays, and the text follows."""
    with tab(chromium, open_site) as page:
        page.open("/what-if?cluster=c")
        page.page.fill("#w-v1-nodes", "7")
        page.page.select_option("#w-cluster", "tiny")
        hint = page.page.locator(".hint").first
        page.until(lambda: "size of tiny" in hint.inner_text(), "the other machine")
        assert page.page.input_value("#w-v1-nodes") == "7"
        written = page.page.locator("#w-text")
        page.until(lambda: "nodes = 7" in written.input_value(), "the text of the form")
        assert not page.page.locator(".as-toml[open]").count()


def test_a_pool_has_no_nodes_and_a_run_can_be_cancelled(
    chromium: Any, server: Running, done: dict[str, Any]
) -> None:
    phone = {"width": 390, "height": 800}
    with tab(chromium, server, viewport=phone) as page, server.client() as client:
        text = "[machine]\nprocessors = 2\n[[variant]]\nmachine = { processors = 3 }\n"
        id = client.post(API, json={"cluster": "c", "scenario": text}).json()["id"]
        assert ended(client, id)["state"] == "done"
        page.open(f"/what-if/{id}")
        assert "it has no nodes" in page.page.locator("#nodes").inner_text()
        assert page.overflow() <= 0 and page.page.evaluate(CONTRAST) == []
        assert json.loads(client.get(f"{API}/{id}/nodes").text)["bars"] == []
        slow = text + "load = 10\n"
        id = client.post(API, json={"cluster": "c", "scenario": slow}).json()["id"]
        page.open(f"/what-if/{id}")
        page.page.click("button:has-text('Cancel')")
        page.until(lambda: page.page.locator("h1:has-text('Cancelled')").count(), "the end")
