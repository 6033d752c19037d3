"""What-if over the API: who may ask, what is refused, how many run, and the numbers by hand."""

from __future__ import annotations

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
from hakaru.web.what_if.bounds import Bounds
from hakaru.web.what_if.nodes import _taken
from tests.conftest import put, put_jobs, utc
from tests.web._site import Running, running
from tests.web.what_if._runs import API, ONE_NODE, ended, queue_jobs


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
    assert found["state"] == "failed" and "under [machine]: nodes" in found["problem"]


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
        assert client.get(API).json()["runs"] == []
        assert client.get(f"{API}/{second['id']}").status_code == 404
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
