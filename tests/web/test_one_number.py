"""One word, one number: the API, the pages, the report, the findings and the comparison agree.

The jobs are skewed, so that a mean is no median and a share of all jobs no share of those that ended:
22 jobs of three users on one node of 8 GPUs, of which 19 have ended.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from hakaru.analyses import Selection, load_all, open_session
from hakaru.comparison import compare
from hakaru.findings import stand_out
from hakaru.lake import Lake
from hakaru.reference.metrics import find_metrics
from hakaru.report import tell, to_html
from hakaru.web.app import create_app
from tests.conftest import job, put_jobs, utc
from tests.web._site import Running, running

BEGIN = utc("2018-01-01T00:00:00")
# state, how many, run time in seconds; each on one GPU, and waits of 10 s
JOBS = [
    ("completed", 8, 30), ("completed", 3, 3600), ("completed", 1, 36000), ("failed", 2, 60),
    ("out_of_memory", 1, 7200), ("node_failed", 1, 7200), ("cancelled", 2, 1800), ("timeout", 1, 14400),
]  # fmt: skip
COMPLETED, FAILED, CANCELLED, ENDED = 12, 4, 2, 19
LOST_S = 2 * 60 + 2 * 7200 + 2 * 1800 + 14400
ENDED_S = 8 * 30 + 3 * 3600 + 36000 + LOST_S


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for state, count, run_s in JOBS:
        for _ in range(count):
            number = len(found)
            start = BEGIN + timedelta(seconds=10)
            columns = {
                "submitted_at": BEGIN,
                "started_at": start,
                "ended_at": start + timedelta(seconds=run_s),
                "run_s": float(run_s),
                "user": f"u{number % 3}",
                "state": state,
            }
            found.append(job(number, **columns))
    open_ = {"ended_at": None, "run_s": None, "user": "u0"}
    found.append(job(90, state="running", **open_))
    waiting = open_ | {"started_at": None, "wait_s": None, "state": "pending"}
    return [*found, job(91, **waiting), job(92, **waiting)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    facts = '{"nodes": 1, "gpus_per_node": 8}'
    return put_jobs(Lake.create(tmp_path_factory.mktemp("one")), rows(), facts)


@pytest.fixture(scope="module")
def server(lake: Lake) -> Iterator[Running]:
    with running(create_app(lake)) as found:
        yield found


@pytest.fixture
def ask(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def measures(ask: httpx.Client) -> dict[str, Any]:
    (found,) = ask.get("/api/v1/overview").json()["clusters"]
    return dict(found["measures"])


def metrics(ask: httpx.Client) -> dict[str, float | None]:
    found = ask.get("/api/v1/compare", params={"metrics": "all"}).json()["metrics"]
    return {each["id"]: each["computed"]["c"]["value"] for each in found}


def tile(page: str, measure: str) -> str:
    """The tile's text, its tags taken away."""
    found = re.search(rf'data-measure="{measure}">(.*?)</div>', page)
    assert found, measure
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


def test_completed_and_failed_are_shares_of_what_has_ended(ask: httpx.Client, lake: Lake) -> None:
    completed, failed = pytest.approx(COMPLETED / ENDED), pytest.approx(FAILED / ENDED)
    assert measures(ask)["share_completed"] == completed
    (lab,) = ask.get("/api/v1/people", params={"kind": "accounts"}).json()["rows"]
    assert (lab["share_completed"], lab["share_failed"]) == (completed, failed)
    assert lab["share_cancelled"] == pytest.approx(CANCELLED / ENDED)
    compared = metrics(ask)
    assert (compared["share_completed"], compared["share_failed"]) == (completed, failed)
    assert compared["share_cancelled"] == pytest.approx(CANCELLED / ENDED)
    assert compared["num_failed_jobs"] == FAILED
    with open_session(lake) as session:
        table = session.run(load_all().get("states"), Selection()).rows
        found = {each.id: each for each in stand_out(session)}
    shares = {row["state"]: row["share"] for row in table}
    assert shares["completed"] == completed and shares["pending"] is shares["running"] is None
    assert found["failed"].values["share"] == failed
    assert found["failed"].text.startswith("21.1 % of the jobs that ended failed")


def test_the_pages_and_the_report_print_them(ask: httpx.Client, lake: Lake) -> None:
    page = ask.get("/").text
    assert tile(page, "share_completed") == "Completed 63.2 % of the jobs that ended"
    assert "63.2 %" in ask.get("/compare").text
    with open_session(lake) as session:
        story = tell(session)
    line = story.compared.line("share_completed")
    assert line is not None and line.cells["c"].value == pytest.approx(COMPLETED / ENDED)
    told = to_html(story)
    assert "21.1 % of the jobs that ended failed" in told
    assert re.search(r"Jobs completed, of those that ended.*?63\.2 %", told, re.DOTALL)


def test_run_times_say_which_jobs_they_count(ask: httpx.Client, lake: Lake) -> None:
    """Of the 19 runs the middle is 60 s; of the four completed ones of a minute and more it is an hour."""
    assert measures(ask)["run_median_s"] == metrics(ask)["run_median_s"] == 60
    assert "median run of all that ran 60 s" in tile(ask.get("/").text, "pe_hours")
    with open_session(lake) as session:
        found = {each.id: each for each in stand_out(session)}["run-time"]
        ids = ["run_mean_s", "run_mean_completed_s", "run_median_completed_s"]
        lines = compare(session, ["c"], find_metrics(ids), [], Selection()).lines
    assert found.text.startswith("Half of the completed jobs that ran for at least 60 s ")
    values = {line.metric.id: (line.counting, line.cells["c"].value) for line in lines}
    mean = (3 * 3600 + 36000) / 4
    assert values["run_mean_completed_s"] == ("completed, ≥ 60 s", pytest.approx(mean))
    assert (found.values["mean"], found.values["median"]) == (pytest.approx(mean), 3600)
    assert values["run_mean_s"] == ("all that ran", pytest.approx(ENDED_S / ENDED))


def test_lost_hours_are_those_of_jobs_that_did_not_complete(ask: httpx.Client, lake: Lake) -> None:
    (lab,) = ask.get("/api/v1/people", params={"kind": "accounts"}).json()["rows"]
    assert lab["lost_pe_hours"] == pytest.approx(LOST_S / 3600)
    with open_session(lake) as session:
        found = {each.id: each for each in stand_out(session)}["not-completed"]
    assert found.values["share_hours"] == pytest.approx(LOST_S / ENDED_S)
    assert metrics(ask)["share_gpu_time_completed"] == pytest.approx(1 - LOST_S / ENDED_S)


def test_the_machine_s_use_is_the_same_everywhere(ask: httpx.Client, lake: Lake) -> None:
    """From the first submission to the last end, 36,010 s; one job still runs to the end of the log."""
    busy_s = ENDED_S + 36000
    own = measures(ask)
    assert own["busy_pes"] == pytest.approx(busy_s / 36010)
    assert own["utilisation"] == pytest.approx(busy_s / 36010 / 8)
    assert metrics(ask)["utilisation_mean"] == pytest.approx(own["utilisation"])
    page = ask.get("/").text
    assert tile(page, "busy_pes").startswith("Busy GPUs, mean 3.2 ")
    assert "<dt>Busy at the end</dt><dd>1 " in page
    with open_session(lake) as session:
        found = {each.id: each for each in stand_out(session)}["utilisation"]
    assert found.values["share"] == pytest.approx(own["utilisation"])


def test_more_busy_than_there_are_is_a_warning(lake: Lake, tmp_path: Path) -> None:
    """Twenty jobs begin at once, so that up to 20 GPUs are busy where the node has 8."""
    small = put_jobs(Lake.create(tmp_path / "w"), rows(), '{"nodes": 1, "gpus_per_node": 8}')
    with running(create_app(small)) as server, server.client() as client:
        (found,) = client.get("/api/v1/overview").json()["clusters"]
        (warning,) = found["warnings"]
        assert warning.startswith("more GPUs are busy than c has in ") and " of 8: " in warning
        assert f"M{warning[1:]}." in html.unescape(client.get("/").text)
    with open_session(small) as session:
        assert warning in html.unescape(to_html(tell(session)))
    ample = put_jobs(Lake.create(tmp_path / "a"), rows(), '{"nodes": 3, "gpus_per_node": 8}')
    with running(create_app(ample)) as server, server.client() as client:
        assert client.get("/api/v1/overview").json()["clusters"][0]["warnings"] == []


def test_users_are_counted_everywhere_or_nowhere(ask: httpx.Client, tmp_path: Path) -> None:
    assert measures(ask)["num_users"] == metrics(ask)["num_users"] == 3
    assert tile(ask.get("/").text, "num_users") == "Users 3 who submitted a job"
    ids = [row | {"user": f"{i % 2}/u", "job_id": f"{i % 2}/{i}"} for i, row in enumerate(rows())]
    lake = put_jobs(Lake.create(tmp_path / "w"), ids, '{"users_per_file": true}')
    with running(create_app(lake)) as server, server.client() as client:
        (found,) = client.get("/api/v1/overview").json()["clusters"]
        assert found["measures"]["num_users"] is None and found["users_note"]
        (listed,) = client.get("/api/v1/clusters").json()["clusters"]
        assert listed["num_users"] is None
        for id in ("concentration", "users-by-quarter", "waits"):
            notes = client.get(f"/api/v1/figures/{id}").json()["notes"]
            assert (f"c: {found['users_note']}" in notes) == (id != "waits"), id
        assert metrics(client)["num_users"] is None
        assert tile(client.get("/").text, "num_users").startswith("Users – ")
        assert client.get("/api/v1/people").json()["users_note"] == found["users_note"]
    with open_session(lake) as session:
        assert "not counted: user ids hold within one log file only" in to_html(tell(session))


def test_a_job_s_use_of_its_request_is_no_percentile(ask: httpx.Client) -> None:
    """Job 8 ran for one of two hours; of 19 runs, 12 used less and 3 as much, itself among them."""
    page = ask.get("/job", params={"cluster": "c", "job_id": "8"}).text
    row = re.search(r"Used of the requested time(.*?)</tr>", page, re.DOTALL)
    assert row
    told = " ".join(re.sub(r"<[^>]+>", " ", row[1]).split())
    assert told.startswith("50.0 %")
    used_less = 8 + 2 + 2 + 1.5  # of 30 s, 60 s and 1800 s; half of the three equals
    assert told.endswith(f"{used_less / ENDED:.1%} used less of theirs".replace("%", " %"))
