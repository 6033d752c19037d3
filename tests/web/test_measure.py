"""The page Measure and its API, over made-up runs of a lake that has no jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from hakaru.lake import Lake
from hakaru.measure.folders import preflight_file
from hakaru.measure.record import Run
from hakaru.measure.verdict import Verdict
from hakaru.web.app import create_app
from tests._cli import hakaru
from tests.conftest import job, put_jobs
from tests.figures.measure._runs import ranked
from tests.measure.lakes import BEGIN, measured, put_runs, synthetic_runs
from tests.web._html import get, plain, table
from tests.web._look import CONTRAST, tab
from tests.web._site import Running, running

API = "/api/v1/measure"
BAD = "<script>window.hit=1</script>\"'><img src=x onerror=window.hit=1>{a|b}"
FIGURES = ("fleet", "cards", "history", "collectives", "search")


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return synthetic_runs(num_nodes=4, cards_per_node=4, num_runs=14)


@pytest.fixture(scope="module")
def server(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The runs, one of another cluster, and a preflight."""
    workspace = tmp_path_factory.mktemp("measured")
    hostile = measured(host=BAD, device=BAD, benchmark=BAD, quantity=BAD, unit=BAD,
                       parameters={BAD: BAD}, reason=BAD, verdict=Verdict.FAILED)  # fmt: skip
    other = Run("20260101-000000-abcdef", "other", BEGIN - timedelta(days=60), (hostile,),
                label=BAD, left_out=(BAD,), source=BAD)  # fmt: skip
    lake = put_runs(Lake.create(workspace), [other, *runs])
    (workspace / "bench").mkdir()
    row = {"check": BAD, "node": BAD, "status": "fail", "found": BAD, "wanted": BAD, "fix": BAD}
    preflight_file(workspace, runs[0].cluster).write_text(
        json.dumps({"verdict": "failed", "rows": [row]})
    )
    with running(create_app(lake)) as found:
        yield found


@pytest.fixture
def ask(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def test_a_lake_without_runs_says_which_command(tmp_path: Path) -> None:
    with running(create_app(Lake.create(tmp_path))) as server, server.client() as client:
        assert "hakaru bench run --quick" in plain(get(client, "/measure"))
        assert client.get(API).json() == {
            "runs": [],
            "hint": "Measure first: hakaru bench run --quick",
        }
        put_runs(Lake.open(tmp_path), [Run("r1", "c", BEGIN, (measured(),))])
        assert "One measurement: good" in plain(get(client, "/measure")), "seen at once"


def test_a_run_without_numbers_says_nothing_of_the_meter(tmp_path: Path) -> None:
    missing = measured(samples=()).judged(Verdict.NOT_MEASURED, "hpcc is not installed")
    lake = put_runs(Lake.create(tmp_path), [Run("r1", "c", BEGIN, (missing,))])
    with running(create_app(lake)) as server, server.client() as client:
        page = get(client, "/measure")
        assert client.get(f"{API}/r1").json()["meter"] == ""
    assert "hpcc is not installed" in page
    assert "The meter" not in plain(page) and '<p class="muted"></p>' not in page


def test_a_self_test_is_no_fleet(tmp_path: Path) -> None:
    reading = measured(
        benchmark="selftest", quantity="reading", device="meter", unit="ms",
        parameters={"truth": "a sleep"}, reason="reads 50.1 where the truth is 50",
    )  # fmt: skip
    lake = put_runs(Lake.create(tmp_path), [Run("r1", "c", BEGIN, (reading,))])
    with running(create_app(lake)) as server, server.client() as client:
        page = get(client, "/measure")
    assert "a sleep good reads 50.1 where the truth is 50" in plain(page)
    assert "The fleet" not in page and "Devices from slow to fast" not in page


def test_an_empty_page_names_the_workspace_and_the_cluster(tmp_path: Path) -> None:
    workspace = tmp_path / "a b"
    other = Run("r1", "other", BEGIN, (measured(),))
    with running(create_app(put_runs(Lake.create(workspace), [other]))) as server:
        put_jobs(Lake.open(workspace), [job(1, cluster="mine")])
        with server.client() as client:
            page = plain(get(client, "/measure?cluster=mine"))
    assert f"hakaru bench run --quick --cluster mine -w '{workspace.resolve()}'" in page


def test_a_preflight_is_shown_with_its_own_cluster_only(ask: httpx.Client, runs: list[Run]) -> None:
    own = runs[0].cluster
    assert 'id="preflight"' in get(ask, "/measure")
    assert 'id="preflight"' in get(ask, f"/measure?cluster={own}")
    assert 'id="preflight"' not in get(ask, "/measure?cluster=other")
    found = [ask.get(f"{API}/preflight{query}").json()["cluster"]
             for query in ("", f"?cluster={own}", "?cluster=other")]  # fmt: skip
    assert found == [own, own, None]


@pytest.mark.parametrize("year", [1, 9999])
def test_a_time_at_the_end_of_the_calendar_ends_no_page(tmp_path: Path, year: int) -> None:
    lake = Lake.create(tmp_path)
    (tmp_path / "hakaru.toml").write_text(
        f'[clusters.c]\nzone = "{"America/New_York" if year == 1 else "Asia/Tokyo"}"\n'
    )
    when = datetime(year, *((1, 1) if year == 1 else (12, 31, 23, 59)), tzinfo=UTC)
    put_runs(lake, [Run("r1", "c", when, (measured(started_at=when, ended_at=when),))])
    with running(create_app(Lake.open(tmp_path))) as server, server.client() as client:
        assert "One measurement: good" in plain(get(client, "/measure"))
        for path in ("", "/r1", "/r1/figures/history"):
            assert client.get(f"{API}{path}").status_code == 200, path


def test_the_verdict_comes_first_and_the_slow_are_named(ask: httpx.Client, runs: list[Run]) -> None:
    page = plain(get(ask, "/measure"))
    verdict = page.index("Slow Of 16 devices: 3 slow, 13 good. Of 12 links: 6 slow, 6 good.")
    assert verdict < page.index("its PCIe link is x8") < page.index("The fleet")
    assert "gpu003 is slow to all its partners" in page
    assert "where the fit misses a size left out of it by more than 25 %" in page
    assert "The meter itself was off by 0.6 %" in page and "has no tf32 of its own" in page
    listed = table(get(ask, "/measure").partition('id="runs"')[2])
    assert [row["Verdict"] for row in listed] == ["slow", *["good"] * 13]
    assert listed[0]["Label"] == "into service" and listed[1]["Benchmarks"] == "all-reduce, gemm"


def test_the_api_pages_and_narrows_the_measurements(ask: httpx.Client, runs: list[Run]) -> None:
    known = ask.get(API, params={"cluster": "made-up"}).json()["runs"]
    assert [each["id"] for each in known] == [run.id for run in reversed(runs)]
    slow = ask.get(f"{API}/latest", params={"cluster": "made-up", "verdict": "slow"}).json()
    assert slow["num_rows"] == slow["counts"]["slow"] == len(slow["measurements"])
    one = ask.get(
        f"{API}/{runs[-1].id}", params={"benchmark": "memory", "size": 10, "page": 2}
    ).json()
    assert (one["num_rows"], len(one["measurements"])) == (16, 6)
    assert one["measurements"][0]["parameters"] == {"mib": 256, "operation": "triad"}
    found = ask.get(f"{API}/history", params={"cluster": "made-up"}).json()
    assert len(found["points"]) == 14 and found["points"][0]["num_devices"] == 16
    (step,) = found["changes"]
    assert step["worse"] and step["confirmed"] and step["size"] == pytest.approx(-0.05, abs=0.005)
    for first, second in ((runs[0], runs[-1]), (runs[-1], runs[0])):
        both = ask.get(f"{API}/{first.id}/beside/{second.id}").json()
        assert (both["first"]["id"], both["second"]["id"]) == (runs[0].id, runs[-1].id)
        (rate,) = [each for each in both["lines"] if each["benchmark"] == "gemm" and each["ratio"]]
        assert rate["ratio"] == pytest.approx(0.95, abs=0.01) and rate["change"] == "worse"
        assert sum(rate["devices"].values()) == 16 and "cuda:" in rate["most"]


def test_side_by_side_goes_from_the_earlier_run_to_the_later(
    ask: httpx.Client, runs: list[Run]
) -> None:
    """Whichever of the two is shown: what has become worse comes first."""
    for shown, other in ((runs[0], runs[-1]), (runs[-1], runs[0])):
        page = get(ask, f"/measure?run={shown.id}&beside={other.id}")
        (rate,) = [row for row in table(page, -3) if row["Measured"].startswith("gemm fp64")]
        assert float(rate["Later / earlier"]) == pytest.approx(0.95, abs=0.01)
        assert " of 16 worse: " in rate["Change"]


def test_the_api_and_the_terminal_confirm_the_same(tmp_path: Path) -> None:
    """One run labelled `confirm` is one value: it settles nothing, however many repetitions it has."""
    lake = Lake.create(tmp_path)
    for day in range(14):
        when, rate = BEGIN + timedelta(days=day), 100.0 if day < 12 else 94.0
        samples = tuple(rate * (1 + 0.001 * ((day + at) % 5 - 2)) for at in range(20))
        label = "confirm" if day == 13 else None
        run = Run(
            f"r{day:02d}", "c", when, (measured(samples=samples, started_at=when),), label=label
        )
        put_runs(lake, [run])
    result = hakaru("bench", "history", "gemm", "-w", tmp_path, "--format", "json")
    (terminal,) = json.loads(result.output)
    with running(create_app(lake)) as server, server.client() as client:
        api = client.get(f"{API}/history").json()
        page = get(client, "/measure")
    assert api["sentence"] == terminal["sentence"] and api["changes"] == terminal["changes"]
    assert api["sentence"].startswith("Suspected: −6.") and api["sentence"] in plain(page)
    assert len(api["points"]) == 13


def test_a_history_is_of_the_newest_run_that_has_the_benchmark(tmp_path: Path) -> None:
    """Cards are measured each night and collectives each week."""
    lake = Lake.create(tmp_path)
    for day in range(4):
        when = {"started_at": BEGIN + timedelta(days=day)}
        each = ranked(1 << 20, 0.01 + day / 1000, **when) if day == 1 else [measured(**when)]
        put_runs(lake, [Run(f"r{day}", "c", when["started_at"], tuple(each))])
    with running(create_app(lake)) as server, server.client() as client:
        for path in ("/history", "/latest/figures/history"):
            found = client.get(f"{API}{path}", params={"benchmark": "all-reduce"})
            assert found.status_code == 200 and "all-reduce" in found.text, path
        page = plain(get(client, "/measure?benchmark=all-reduce"))
        assert "all-reduce" in page.partition("History")[2]
        odd = client.get(f"{API}/history", params={"benchmark": "none"})
        assert odd.status_code == 422 and "this run has no" in odd.json()["detail"]


@pytest.mark.parametrize("figure", FIGURES)
def test_what_a_run_does_not_have_is_refused_by_name(ask: httpx.Client, figure: str) -> None:
    for path, status in (
        (f"{API}/nope/figures/{figure}", 404),
        (f"{API}/latest/figures/none", 422),
    ):
        assert ask.get(path).status_code == status
    odd = ask.get(
        f"{API}/latest/figures/{figure}", params={"benchmark": "none", "collective": "none"}
    )
    assert odd.status_code == (
        200 if figure == "search" else 404 if figure == "collectives" else 422
    )
    if figure != "search":
        assert "this run has no" in odd.json()["detail"]


def test_the_page_in_a_browser(chromium: Any, server: Running, runs: list[Run]) -> None:
    """All is drawn, chosen and compared; no error, no other host (the tab looks), and it can be read."""
    with tab(chromium, server) as page:
        page.open("/measure")
        for id in FIGURES:
            page.drawn(id)
        browser = page.page
        notes = browser.locator("#fleet [data-notes]").inner_text()
        assert "gpu004 cuda:2" in notes and "slower" in notes
        assert "GPU-hours a month" in browser.locator("#cards [data-notes]").inner_text()
        browser.click("#fleet .switches >> text=host-copy")
        page.arrive("benchmark=host-copy", "the choice in the address")
        page.drawn("fleet")
        notes = browser.locator("#fleet [data-notes]")
        page.until(lambda: notes.inner_text().count("cuda:") == 1, "the one card on a narrow link")
        page.drawn("history")
        browser.click("text=side by side >> nth=0")
        page.arrive("beside=", "two runs")
        assert browser.locator("#beside tbody tr").count() == 4
        assert page.overflow() <= 0 and browser.evaluate(CONTRAST) == []


@pytest.mark.parametrize(
    "look", [{"color_scheme": "dark"}, {"viewport": {"width": 400, "height": 800}}]
)
def test_it_fits_and_what_others_wrote_is_inert(
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
        text = page.page.locator("main").inner_text()
        assert "onerror" in text and "Failed" in text, "shown as it is"


def test_the_page_is_for_operators_alone(closed_site: Running) -> None:
    """Measurements name hosts; a user's token sees neither them nor whether there are any."""
    for path in ("/measure", "/measure?run=r1&beside=r2", "/measure?cluster=c"):
        for token, status in (("u1", 403), (None, 401)):
            with closed_site.client(token) as client:
                for accept in ("text/html", "application/json"):
                    answer = client.get(path, headers={"Accept": accept})
                    expected = 303 if (token, accept) == (None, "text/html") else status
                    assert answer.status_code == expected, (path, token, accept)
                    assert "hakaru bench" not in answer.text
    with closed_site.client("operator") as client:
        assert client.get("/measure").status_code == 200


def test_a_run_of_another_cluster_is_not_set_beside(ask: httpx.Client, runs: list[Run]) -> None:
    path = f"/measure?run={runs[-1].id}&beside=20260101-000000-abcdef"
    assert ask.get(path, headers={"Accept": "text/html"}).status_code == 404
