"""Findings: sentences of numbers worked by hand, silence below the thresholds, and the paper's numbers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from hakaru.analyses import Selection, open_session
from hakaru.findings import FINDINGS, Finding, stand_out
from hakaru.lake import Lake
from hakaru.texts import LANGUAGES
from tests.conftest import job, utc


def findings(lake: Lake, lang: str = "en", **selection: Any) -> dict[str, Finding]:
    with open_session(lake) as session:
        return {each.id: each for each in stand_out(session, Selection(**selection), lang)}


def test_sentences_of_numbers_worked_by_hand(lake_of: Callable[..., Lake]) -> None:
    """Four jobs of an hour: three with one GPU, one with two; they asked for four hours, one for ten."""
    rows = [job(n, requested_s=14400.0) for n in (1, 2, 3)]
    rows.append(job(4, num_gpus=2, requested_s=36000.0, wait_s=7200.0))
    found = findings(lake_of(rows))
    assert found["single-pe"].text == (
        "75.0 % of jobs that ran for at least 60 s use one GPU, and take 60.0 % of the GPU-hours."
    )
    assert found["single-pe"].values == {"share": 0.75, "share_hours": pytest.approx(0.6)}
    assert found["single-pe"].analysis == "parallelism"
    # accuracies 1/4, 1/4, 1/4 and 1/10: the median is a quarter, the mean 0.2125
    assert found["over-request"].text == (
        "Of completed jobs that ran for at least 60 s, the median one uses 25.0 % of the time it requests "
        "and asks for 4.0 times its run time; the mean use is 21.2 %."
    )
    assert "at-max" in found and found["at-max"].values == {"share": 0.25}
    assert found["at-max"].text.endswith("(the queues' limits are not known).")
    assert found["waits"].values["p90"] == pytest.approx(10 + 0.7 * 7190)


def test_nothing_is_said_below_the_thresholds(lake_of: Callable[..., Lake]) -> None:
    """Two GPUs each, all their time used, at once, all completed: nothing stands out but the wait."""
    rows = [job(n, num_gpus=2, requested_s=3600.0, queue=f"q{n}") for n in (1, 2, 3)]
    rows = [
        row | {"submitted_at": row["submitted_at"] + timedelta(hours=n)}
        for n, row in enumerate(rows)
    ]
    found = findings(lake_of(rows))
    assert not {"single-pe", "over-request", "failed", "not-completed", "run-time"} & found.keys()
    assert found["waits"].text == "Jobs hardly wait: nine of ten start within 10 s."


def test_jobs_that_never_start_have_no_wait_to_tell_of(lake_of: Callable[..., Lake]) -> None:
    """Two start after an hour, three are cancelled before they start."""
    gone = {"started_at": None, "wait_s": None, "run_s": None, "state": "cancelled"}
    rows = [job(n, wait_s=3600.0) for n in range(2)] + [job(n, **gone) for n in range(2, 5)]
    found = findings(lake_of(rows))
    assert found["waits"].text.startswith("Of the jobs that started (40.0 %), half start within")
    assert found["waits"].values["share_started"] == 0.4
    assert found["abandoned"].values == {"share": 0.6}


@pytest.mark.parametrize("share_failed", [0.04, 0.06])
def test_failures_are_told_from_a_twentieth_on(
    share_failed: float, lake_of: Callable[..., Lake]
) -> None:
    states = ["failed"] * round(100 * share_failed)
    states += ["completed"] * (100 - len(states))
    found = findings(lake_of([job(n, state=state) for n, state in enumerate(states)]))
    assert ("failed" in found) == (share_failed >= 0.05)


@pytest.mark.parametrize("state", ["failed", "completed"])
def test_one_state_for_all_jobs_says_nothing_of_how_they_ended(
    state: str, lake_of: Callable[..., Lake]
) -> None:
    """Elsewhere 1 to 45 % failed: 100 % and 0 % would stand out. With a job of another state 100 % do.

    Where no job failed, the log may not record failures, whatever else it records.
    """
    about_ends = {"failed", "not-completed", "beside-share_failed"}
    one = findings(lake_of([job(n, state=state) for n in range(40)]))
    assert not about_ends & one.keys()
    assert "waits" in one
    other = "completed" if state == "failed" else "timeout"
    two = findings(lake_of([*(job(n, state=state) for n in range(40)), job(40, state=other)]))
    assert ({"beside-share_failed", "failed"} <= two.keys()) == (state == "failed")
    assert state == "failed" or not about_ends & two.keys()


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("en", "75.0 % of jobs ended before they started."),
        ("ja", "ジョブの 75.0% は、開始前に終了しました。"),
        ("ko", "작업의 75.0%는 시작하기 전에 끝났습니다."),
    ],
)
def test_abandoned_jobs_were_cancelled_killed_or_failed(
    lang: str, text: str, lake_of: Callable[..., Lake]
) -> None:
    """Three of four never started, each of another state."""
    times = {"run_s": None, "wait_s": None, "started_at": None, "ended_at": utc("2018-01-02")}
    rows = [job(n, state=s, **times) for n, s in enumerate(("cancelled", "killed", "failed"))]
    assert findings(lake_of([*rows, job(9)]), lang)["abandoned"].text == text


def test_users_that_cannot_be_counted_are_not(lake_of: Callable[..., Lake]) -> None:
    def rows(log: str) -> list[dict[str, Any]]:
        heavy = [job(f"{log}/{n}", user=f"{log}/{n}") for n in range(20)]
        return [*heavy, job(f"{log}/99", user=f"{log}/0", num_gpus=400, num_nodes=50)]

    lake = lake_of(rows("a") + rows("b"))
    assert "few-users" not in findings(lake)
    one = findings(lake, where="job_id LIKE 'a/%'")["few-users"]
    # 401 of the 420 GPU-hours are one user's; a tenth of 20 users are two of them
    assert one.values["share_top1"] == pytest.approx(401 / 420)
    assert one.values["share_hours"] == pytest.approx(402 / 420)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_finding_has_a_text_in_every_language(
    lang: str, lake_of: Callable[..., Lake]
) -> None:
    """A log in which all of them stand out."""
    day = utc("2018-01-01T00:00:00")
    rows = []
    for n in range(280):
        hour, weekday = (9 if n % 4 else 3), n % 7 if n % 3 else 2
        rows.append(
            job(
                n,
                user=f"u{n % 25}",
                run_s=100.0 + n,
                requested_s=72000.0,
                submitted_at=day + timedelta(days=weekday, hours=hour),
                wait_s=3000.0 if n % 5 == 0 else 1.0,
                state=("failed", "timeout", "completed", "completed", "completed")[n % 5],
            )
        )
    for n in range(280, 350):
        times = {"started_at": None, "ended_at": day + timedelta(days=1)}
        rows.append(
            job(n, num_gpus=8, num_nodes=2, run_s=90000.0 + 50 * n, user="u1", submitted_at=day)
            if n % 2
            else job(n, state="cancelled", run_s=None, wait_s=None, submitted_at=day, **times)
        )
    rows += [job(n, state="timeout", num_gpus=64, num_nodes=8, run_s=3e5) for n in range(350, 353)]
    found = findings(lake_of(rows, '{"nodes": 9, "gpus_per_node": 8}'), lang)
    assert {rule.id for rule in FINDINGS} - found.keys() == set()
    assert all("{" not in each.text for each in found.values())


def test_others_stand_beside_the_jobs_that_are_chosen(lake_of: Callable[..., Lake]) -> None:
    """All jobs of queue a failed, more than anywhere; of all jobs a fifth did, as elsewhere."""
    rows = [job(n, queue="a", state="failed") for n in range(40)]
    lake = lake_of(rows + [job(100 + n, queue="b") for n in range(160)])
    assert "beside-share_failed" not in findings(lake)
    chosen = findings(lake, where="queue = 'a'")
    assert chosen["beside-share_failed"].values["own"] == 1


def test_processors_are_told_as_such(lake_of: Callable[..., Lake]) -> None:
    found = findings(lake_of([job(n, num_gpus=None, num_cpus=1) for n in range(3)]))
    assert "use one processor" in found["single-pe"].text
    assert "processor-hours" in found["single-pe"].text


def test_an_empty_selection_says_nothing(lake_of: Callable[..., Lake]) -> None:
    assert findings(lake_of([job(1)]), since="2030-01-01") == {}


def test_the_sentences_of_the_paper(aaic_lake: Lake) -> None:
    found = findings(aaic_lake)
    assert found["single-pe"].text.startswith(
        "96.2 % of jobs that ran for at least 60 s use one GPU"
    )
    assert found["at-max"].text == (
        "36.5 % of completed jobs that ran for at least 60 s request the maximum time of their queue."
    )
    assert (
        "uses 4.0 % of the time it requests and asks for 25 times its run time"
        in found["over-request"].text
    )
    assert "weak scaling" in found["scaling"].text
    assert found["busiest-hour"].values["hour"] == 18
    assert "Kraken ~33.0 %" in found["beside-wra_mean"].text
    assert "few-users" not in found
    assert "AAIC" not in " ".join(each.text for each in found.values())


@pytest.mark.parametrize(
    ("facts", "zone", "end"),
    [
        ("{}", "Asia/Tokyo", "starts at 00:00."),
        ("{}", None, "(In UTC: the site's time zone is not known.)"),
        ('{"relative_dates": true}', None, None),
    ],
)
def test_hours_of_an_unknown_zone_are_told_as_such(
    lake_of: Callable[..., Lake], facts: str, zone: str | None, end: str | None
) -> None:
    """Ten jobs at midnight UTC and none at other hours; of relative dates no hour is told at all."""
    at = utc("2018-01-01T00:00:00")
    rows = [job(i, submitted_at=at, started_at=at, ended_at=at) for i in range(10)]
    found = findings(lake_of(rows, facts, zone))
    if end is None:
        assert "busiest-hour" not in found and "busiest-day" not in found
    else:
        assert found["busiest-hour"].text.endswith(end)
