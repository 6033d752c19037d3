"""What-if in the web: who may ask, what is refused, and a scenario from the form to the day of a node."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from hakaru.cli import main
from hakaru.lake import Lake
from hakaru.web.app import create_app
from hakaru.web.what_if import check
from hakaru.web.what_if.bounds import Bounds
from hakaru.web.what_if.check import WrongScenario, checked, line_of
from hakaru.web.what_if.draft import Draft
from hakaru.web.what_if.nodes import _taken
from tests.conftest import job, put, put_jobs, utc
from tests.web._look import tab
from tests.web.conftest import Running, running
from tests.web.test_pages_look import CONTRAST

API = "/api/v1/what-if"
ONE_NODE = '[machine]\nnodes = 1\nsize = 2\n[[variant]]\nname = "two nodes"\nnodes = 1\n'


def queue_jobs() -> list[dict[str, Any]]:
    """Eighty days at nine: three one-hour jobs of one GPU and one of two, so that two GPUs are too few."""
    rows: list[dict[str, Any]] = []
    for day in range(80):
        at = utc("2018-01-01T09:00:00") + timedelta(days=day)
        for i, gpus in enumerate((1, 1, 1, 2)):
            times = {"submitted_at": at + timedelta(seconds=i), "started_at": at, "ended_at": at}
            rows.append(job(len(rows), user=f"u{i}", num_gpus=gpus, requested_s=3600.0, **times))
    return rows


@pytest.fixture(scope="module")
def queued(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return put_jobs(Lake.create(tmp_path_factory.mktemp("queued")), queue_jobs())


@pytest.fixture(scope="module")
def server(queued: Lake) -> Iterator[Running]:
    with running(create_app(queued)) as found:
        yield found


@pytest.fixture
def ask(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def ended(client: httpx.Client, id: str) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = client.get(f"{API}/{id}").json()
        if found["state"] not in ("queued", "running"):
            return dict(found)
        time.sleep(0.1)
    raise AssertionError("the run does not end")


@pytest.fixture(scope="module")
def done(server: Running) -> dict[str, Any]:
    """One node of two GPUs against two of them, played once for all that look at it."""
    with server.client() as client:
        answer = client.post(API, json={"cluster": "c", "scenario": ONE_NODE})
        assert answer.status_code == 202, answer.text
        return ended(client, answer.json()["id"])


def test_a_run_is_worked_by_hand(done: dict[str, Any]) -> None:
    """On one node the third job waits for 3598 s, the fourth for 7197 s.

    On two only the fourth waits, until the second of the two on the first node has ended: 3601 - 3 s.
    """
    assert (done["state"], done["num_done"], done["problem"]) == ("done", 2, None)
    outcome = done["outcome"]
    waits = outcome["baseline"]["metrics"]["mean_wait_s"]
    assert waits == pytest.approx((3598 + 7197) / 4)
    change = outcome["variants"][0]["changes"]["mean_wait_s"]
    assert change["after"] == pytest.approx(3598 / 4)
    assert change["low"] <= change["high"] < 0 and change["is_sure"]
    assert [each["num_nodes"] for each in outcome["machines"]] == [1, 2]
    assert (outcome["first_day"], outcome["last_day"]) == ("2018-01-01", "2018-03-21")
    assert any("shorter" in text or "falls" in text for text in outcome["sentences"])


def test_the_nodes_of_a_day(ask: httpx.Client, done: dict[str, Any]) -> None:
    day = "2018-01-05"
    found = ask.get(f"{API}/{done['id']}/nodes", params={"day": day}).json()
    at = int(utc(f"{day}T09:00:00").timestamp())
    bars = [(b["lane"], b["num_lanes"], b["start"] - at, b["end"] - at) for b in found["bars"]]
    assert bars == [(0, 1, 0, 3600), (1, 1, 1, 3601), (0, 1, 3600, 7200), (0, 2, 7200, 10800)]
    assert {b["node"] for b in found["bars"]} == {0} and found["num_left_out"] == 0
    other = ask.get(f"{API}/{done['id']}/nodes", params={"day": day, "variant": 1}).json()
    assert {b["node"] for b in other["bars"]} == {0, 1}
    assert ask.get(f"{API}/{done['id']}/nodes", params={"day": "2019-01-05"}).json()["bars"] == []


def test_nodes_go_by_their_names_where_the_lake_knows_them(lake: Lake) -> None:
    put_jobs(lake, queue_jobs())
    at = utc("2017-12-01T00:00:00")
    rows = [
        {"cluster": "c", "node": name, "since": at, "num_gpus": 2} for name in ("gpu-b", "gpu-a")
    ]
    put(lake, "nodes", rows)
    with running(create_app(lake)) as server, server.client() as client:
        text = "[[variant]]\nnodes = 1\n"
        found = ended(
            client, client.post(API, json={"cluster": "c", "scenario": text}).json()["id"]
        )
        machines = [each["names"] for each in found["outcome"]["machines"]]
        assert machines == [["gpu-a", "gpu-b"], ["gpu-a", "gpu-b", "added-1"]]
        said = "The baseline's machine is as the lake's nodes table has it: 2 nodes x 2 = 4 GPUs."
        assert said in found["outcome"]["notes"]
        drawn = client.get(
            f"{API}/{found['id']}/figures/nodes", params={"day": "2018-01-05"}
        ).json()
    names = [bar["name"] for series in drawn["option"]["series"] for bar in series["data"]]
    told = {name.splitlines()[0].split(", ")[1] for name in names}
    assert told == {"node gpu-a", "node gpu-b"}


def test_lanes_are_taken_side_by_side_or_in_pieces() -> None:
    lanes = [0, 50, 0, 0]
    assert _taken(lanes, 2, 10, 60) == [(2, 2)]
    assert lanes == [0, 50, 60, 60]
    assert _taken([0, 50, 0], 2, 10, 60) == [(0, 1), (2, 1)]


@pytest.mark.parametrize("figure", ["waits-by-class", "waits", "busy", "nodes"])
def test_figures(ask: httpx.Client, done: dict[str, Any], figure: str) -> None:
    for dark in (False, True):
        answer = ask.get(f"{API}/{done['id']}/figures/{figure}", params={"dark": dark})
        assert answer.status_code == 200 and answer.json()["option"]["series"], answer.text


def test_busy_is_recorded_and_replayed(done: dict[str, Any]) -> None:
    """A day has five GPU-hours in both; what is recorded ran at once."""
    outcome = done["outcome"]
    for points in (outcome["recorded_busy"], outcome["baseline"]["busy"]):
        width = points[1][0] - points[0][0]
        whole = sum(value for _, value in points) * width / 3600
        assert whole == pytest.approx(80 * 5, abs=6)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[variant]\n", "line 1"),
        ("a = " + "[" * 5000, "nested too deeply"),
        ("seed = " + "9" * 5000, "a number of thousands of digits"),
        ('[[variant]]\npolicy = "fair"\n', "line 2"),
        ("[baseline]\n\n[[variant]]\nname = 'a'\nnodes = 'x'\n", "line 5: variant 1 (a).nodes"),
        ("[machine]\nnodes = 1000000000\nsize = 8\n[[variant]]\nnodes = 1\n", "at most 20,000"),
        ("[machine]\nnodes = 1\nsize = 100000\n[[variant]]\nnodes = 1\n", "in a node"),
        ("num_resamples = 1000000\n[[variant]]\nnodes = 1\n", "at most 5,000"),
        ("[[variant]]\nnodes = 1\n" * 7, "6 at a time"),
        ("[baseline]\n", "no [[variant]]"),
        ("\u202e", "TOML"),
    ],
    ids=range(11),
)
def test_a_hostile_scenario_is_refused_with_its_place(
    ask: httpx.Client, text: str, told: str
) -> None:
    answer = ask.post(API, json={"cluster": "c", "scenario": text})
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert told in problem["detail"] and "Traceback" not in answer.text
    page = ask.post("/what-if", data={"cluster": "c", "do": "text", "text": text})
    assert page.status_code == 422 and "<textarea" in page.text


def test_what_is_too_large_or_not_there(ask: httpx.Client, done: dict[str, Any]) -> None:
    wanted = {"cluster": "c", "scenario": ONE_NODE}
    assert ask.post(API, json=wanted | {"cluster": "other"}).status_code == 404
    assert ask.post(API, json=wanted | {"since": "2030-01-01"}).status_code == 422
    assert ask.post(API, json=wanted | {"since": "yesterday"}).status_code == 422
    assert ask.post(API, json=wanted | {"more": 1}).status_code == 422
    assert ask.post(API, json=wanted | {"scenario": "#" * 20_001}).status_code == 422
    assert ask.post(API, json=wanted | {"scenario": "#" * 90_000}).status_code == 413
    assert ask.post(
        API, content=b"{", headers={"Content-Type": "application/json"}
    ).status_code in (
        400,
        422,
    )
    for path in ("0123456789abcdef", "0123456789abcdef/nodes", "0123456789abcdef/figures/busy"):
        assert ask.get(f"{API}/{path}").status_code == 404
    for path in ("nonsense", "0123456789abcdef", "nonsense/state/more"):
        assert ask.get(f"/what-if/{path}").status_code == 404
    assert ask.delete(f"{API}/0123456789abcdef").status_code == 404
    assert ask.get(f"{API}/..%2f..").status_code in (404, 422)
    assert ask.get(f"{API}/{done['id']}/nodes", params={"variant": 9}).status_code == 422
    assert ask.get(f"{API}/{done['id']}/nodes", params={"day": "0001-01-01"}).status_code == 422
    assert ask.get(f"{API}/{done['id']}/nodes", params={"day": "9999-12-31"}).status_code == 422


def test_a_name_that_no_job_has_fails_and_says_so(ask: httpx.Client) -> None:
    text = '[[variant]]\nlimits = [{scope="user", what="running-jobs", value=1, queue="nope"}]\n'
    text = "[machine]\nprocessors = 2\n" + text
    id = ask.post(API, json={"cluster": "c", "scenario": text}).json()["id"]
    found = ended(ask, id)
    assert found["state"] == "failed" and "'nope'" in found["problem"]
    assert "nope" in ask.get(f"/what-if/{id}", headers={"Accept": "text/html"}).text
    assert ask.get(f"{API}/{id}/nodes").status_code == 422


def test_a_machine_of_unknown_size_says_how_to_tell_it(ask: httpx.Client) -> None:
    id = ask.post(API, json={"cluster": "c", "scenario": "[[variant]]\nnodes = 1\n"}).json()["id"]
    found = ended(ask, id)
    assert found["state"] == "failed" and "[machine] nodes" in found["problem"]


def test_one_is_played_few_wait_and_any_can_be_cancelled(lake: Lake) -> None:
    text = "[machine]\nprocessors = 2\n[[variant]]\nload = 10\n"
    app = create_app(put_jobs(lake, queue_jobs()), bounds=Bounds(waiting=2, kept=1))
    with running(app) as server, server.client() as client:
        wanted = {"cluster": "c", "scenario": text}
        answers = [client.post(API, json=wanted) for _ in range(6)]
        refused = [each for each in answers if each.status_code == 503]
        assert len(refused) >= 3 and "retry-after" in refused[0].headers
        ids = [each.json()["id"] for each in answers if each.status_code == 202]
        states = {each["state"] for each in client.get(API).json()["runs"]}
        assert states <= {"queued", "running"}
        gone = client.delete(f"{API}/{ids[-1]}").json()
        assert gone["state"] == "cancelled" and gone["ended_at"]
        first = client.delete(f"{API}/{ids[0]}").json()
        assert first["state"] == "cancelled"
        assert ended(client, ids[1])["state"] in ("done", "cancelled")
        root = server.app.state.runs._root
        process = server.app.state.runs.find(ids[1]).process
    assert root is None or not root.exists()  # nothing is left of what was not done
    assert process is None or process.poll() is not None


def test_what_was_done_outlives_the_server(lake: Lake) -> None:
    """Its outcome, figures and nodes, in a folder that others cannot read, until its cluster is forgotten."""
    put_jobs(lake, queue_jobs())
    kept = lake.workspace / "what-if"
    wanted = {"cluster": "c", "since": "2018-01-03", "scenario": ONE_NODE}
    with running(create_app(lake)) as server, server.client() as client:
        first = ended(client, client.post(API, json=wanted).json()["id"])
        failing = wanted | {"scenario": "[[variant]]\nnodes = 1\n"}
        assert ended(client, client.post(API, json=failing).json()["id"])["state"] == "failed"
        path = f"{API}/{first['id']}/nodes?day=2018-01-05"
        bars = client.get(path).json()["bars"]
        assert first["state"] == "done" and bars
    assert [each.name for each in kept.iterdir()] == [first["id"]]
    assert kept.stat().st_mode & 0o777 == 0o700
    (kept / "0123456789abcdef").mkdir()
    (kept / "0123456789abcdef" / "run.json").write_text("{}")  # of another version
    with running(create_app(lake)) as server, server.client() as client:
        assert [each["id"] for each in client.get(API).json()["runs"]] == [first["id"]]
        assert client.get(f"{API}/{first['id']}").json() == first
        assert client.get(path).json()["bars"] == bars
        assert client.get(f"{API}/{first['id']}/figures/waits").status_code == 200
        assert client.get("/what-if", headers={"Accept": "text/html"}).status_code == 200
        second = ended(client, client.post(API, json=wanted).json()["id"])
        assert second["outcome"] == first["outcome"]
    with running(create_app(lake, bounds=Bounds(kept=1))) as server, server.client() as client:
        assert [each["id"] for each in client.get(API).json()["runs"]] == [second["id"]]
    assert not (kept / first["id"]).exists()
    done = CliRunner().invoke(
        main, ["lake", "forget", "-w", str(lake.workspace), "--cluster", "c", "--yes"]
    )
    assert "and 1 what-if run" in done.output
    assert not (kept / second["id"]).exists()


def test_a_workspace_that_cannot_be_written_keeps_a_run_while_the_server_lasts(lake: Lake) -> None:
    put_jobs(lake, queue_jobs())
    (lake.workspace / "what-if").write_text("in the way")
    with running(create_app(lake)) as server, server.client() as client:
        found = ended(
            client, client.post(API, json={"cluster": "c", "scenario": ONE_NODE}).json()["id"]
        )
        assert found["state"] == "done"
        assert client.get(f"{API}/{found['id']}/nodes").status_code == 200


def test_a_run_that_takes_too_long_is_stopped(queued: Lake) -> None:
    with (
        running(create_app(queued, bounds=Bounds(seconds=0.05))) as server,
        server.client() as client,
    ):
        id = client.post(API, json={"cluster": "c", "scenario": ONE_NODE}).json()["id"]
        found = ended(client, id)
        assert found["state"] == "failed" and "stopped after" in found["problem"]


def test_more_jobs_than_the_server_plays_are_refused(queued: Lake) -> None:
    with running(create_app(queued, bounds=Bounds(jobs=600))) as server, server.client() as client:
        answer = client.post(API, json={"cluster": "c", "scenario": ONE_NODE})
        assert answer.status_code == 422 and "320 jobs in 2 runs" in answer.json()["detail"]


def test_what_if_is_for_operators(closed_site: Running) -> None:
    with closed_site.client("u1") as user, closed_site.client("operator") as boss:
        wanted = {"cluster": "c", "scenario": ONE_NODE}
        some = "0123456789abcdef"
        for answer in (
            user.get(API), user.post(API, json=wanted), user.get(f"{API}/{some}"),
            user.delete(f"{API}/{some}"), user.get(f"{API}/{some}/nodes"),
            user.get(f"{API}/{some}/figures/busy"),
        ):  # fmt: skip
            assert answer.status_code == 403, answer.text
        html = {"Accept": "text/html"}
        for page in (
            user.get("/what-if", headers=html), user.get(f"/what-if/{some}", headers=html),
            user.post("/what-if", data={"cluster": "c"}, headers=html),
        ):  # fmt: skip
            assert page.status_code == 403
            assert "for operators" in page.text and 'href="/what-if"' not in page.text
        assert "What-if" not in user.get("/", headers=html).text
        assert "What-if" in boss.get("/", headers=html).text
        assert boss.get(API).json()["runs"] == []


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}],
)
def test_another_site_starts_and_stops_nothing(
    ask: httpx.Client, done: dict[str, Any], headers: dict[str, str]
) -> None:
    wanted = {"cluster": "c", "scenario": ONE_NODE}
    before = len(ask.get(API).json()["runs"])
    assert ask.post(API, json=wanted, headers=headers).status_code == 403
    assert ask.delete(f"{API}/{done['id']}", headers=headers).status_code == 403
    assert ask.post("/what-if", data=wanted | {"do": "text"}, headers=headers).status_code == 403
    assert ask.post(f"/what-if/{done['id']}/cancel", headers=headers).status_code == 403
    assert len(ask.get(API).json()["runs"]) == before


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


SPEC = create_app(Lake(Path("no-such-workspace"))).openapi()
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize(("path", "method"), [(API, "POST"), (f"{API}/{{run}}", "DELETE")])
def test_what_is_written_is_as_described(
    server: Running, path: str, method: str, mode: Any
) -> None:
    operation = schemathesis.openapi.from_dict(SPEC)[path][method]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=12, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def check_one(case: schemathesis.Case) -> None:
        case.call_and_validate(
            base_url=server.url.rstrip("/"),
            checks=[not_a_server_error, status_code_conformance, response_schema_conformance],
        )

    check_one()


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
        page.until(lambda: "/what-if/" in browser.url, "the run")
        page.until(lambda: browser.locator("progress").count() == 1, "how far it is")
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
        page.until(lambda: "variant=1" in browser.url, "the variant in the address")
        browser.fill("#n-day", "2018-01-05")
        browser.locator("#n-day").blur()
        page.until(lambda: "day=2018-01-05" in browser.url, "the day in the address")
        chart = page.drawn("nodes")
        assert "variant=1&day=2018-01-05" in chart.get_attribute("data-figure")
        notes = browser.locator("#nodes [data-notes]")
        page.until(lambda: "4 jobs ran on this day" in notes.inner_text(), "the day's jobs")
        browser.click("text=Change the scenario")
        page.until(lambda: browser.locator("#w-text").count() == 1, "the form again")
        assert 'policy = "fcfs"' in browser.locator("#w-text").input_value()


def test_another_cluster_has_another_machine(chromium: Any, open_site: Running) -> None:
    """What was typed stays, and the text follows."""
    with tab(chromium, open_site) as page:
        page.open("/what-if?cluster=c")
        page.page.fill("#w-v1-nodes", "7")
        page.page.select_option("#w-cluster", "tiny")
        hint = page.page.locator(".hint").first
        page.until(lambda: "size of tiny" in hint.inner_text(), "the other machine")
        assert page.page.input_value("#w-v1-nodes") == "7"
        assert "nodes = 7" in page.page.locator("#w-text").input_value()
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
