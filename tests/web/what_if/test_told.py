"""A comparison written by hand, on its page and in its figures: each number in its place, unit and zone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from hakaru.figures.theme import LIGHT
from hakaru.lake import Lake
from hakaru.web.access import Viewer
from hakaru.web.app import create_app
from hakaru.web.problems import WebError
from hakaru.web.readers import Readers
from hakaru.web.what_if import check, figures, kept, models, player
from hakaru.web.what_if.bounds import Bounds
from hakaru.web.what_if.draft import Draft
from hakaru.web.what_if.nodes import nodes_of_day
from hakaru.web.what_if.runs import Run, Runs, _facts, _kept
from hakaru.web.what_if.service import Desk
from tests.conftest import job, put_jobs, utc
from tests.web._html import get, plain, table
from tests.web._site import running

BOSS = Viewer("operator", "boss")
BEGIN = int(datetime(2018, 1, 5, 20, tzinfo=UTC).timestamp())  # 5:00 on the sixth in Tokyo
METRICS = {
    "num_no_longer_run": 3, "num_unstarted": 4, "mean_wait_s": 600, "median_wait_s": 60,
    "p95_wait_s": 7200, "p99_wait_s": 86400, "mean_bounded_slowdown": 12.5, "utilisation": 0.625,
    "fragmentation": 0.031, "idle_while_waiting": 0.042, "gini_wait": 0.512, "worst_user_wait_s": 9000,
    "pe_hours_lost": 17, "num_jobs": 1234,
}  # fmt: skip


def change(before: float, after: float, sure: bool = True, **more: Any) -> dict[str, Any]:
    apart = after - before
    ends = {
        "low": apart * 1.5 if apart < 0 else apart / 2,
        "high": apart / 2 if apart < 0 else apart * 1.5,
    }
    return {
        "before": before,
        "after": after,
        "change": apart,
        "relative": None,
        "is_sure": sure,
        **ends,
        **more,
    }


def made() -> models.Outcome:
    """In the variant the mean wait falls from 10 to 5 min, the use rises by 12 points, and the share that
    idles rises, but not surely."""
    changes = {
        "mean_wait_s": change(600, 300), "utilisation": change(0.625, 0.745),
        "p95_wait_s": change(7200, 14400), "fragmentation": change(0.031, 0.051, sure=False),
        "median_wait_s": change(60, 30, is_within_error=True),
    }  # fmt: skip
    group = {
        "by": "class",
        "group": "single-pe",
        "num_jobs": 77,
        "changes": {"mean_wait_s": change(900, 1800)},
    }
    plain_run = {"notes": [], "waits": [], "changes": {}, "groups": []}
    machine = {"num_nodes": 2, "node_size": 2, "num_pes": 4, "is_flat": False}
    baseline = plain_run | {"name": "as it is", "metrics": METRICS, "busy": points(1.0, 2.0)}
    variant = plain_run | {"name": "more", "metrics": METRICS | {"mean_wait_s": 300}}
    variant |= {"changes": changes, "groups": [group], "busy": points(3.0, 4.0)}
    words: dict[str, Any] = {"headlines": [], "sentences": [], "known_error": "", "notes": []}
    days = {"first_day": "2018-01-05", "last_day": "2018-01-20", "day": "2018-01-06"}
    facts = {"baseline": baseline, "variants": [variant], "num_weeks": 20, "num_resamples": 1, "seed": 1,
             "unit": "gpu", "zone": "Asia/Tokyo", "machines": [machine, machine],
             "recorded_busy": points(7.0, 8.0), "classes": ["single-pe"]}  # fmt: skip
    return models.Outcome.model_validate(facts | words | days)


def points(first: float, second: float) -> list[tuple[int, float]]:
    return [(BEGIN, first), (BEGIN + 7200, second)]


def stored(folder: Path) -> None:
    """A job of three GPUs on both nodes, from 5:00 to 7:00 on the sixth in Tokyo."""
    folder.mkdir(parents=True, exist_ok=True)
    for n in (0, 1):
        rows = np.zeros(1, player.ROW)
        rows[0] = (0, BEGIN, BEGIN + 7200, 2, 0)
        np.save(folder / f"rows-{n}.npy", rows)
        np.save(folder / f"nodes-{n}.npy", np.array([0, 1], np.int32))
    names = {"job_id": ["5"], "user": ["ann"], "queue": ["q"], "num_pes": [3]}
    jobs = pa.table(names | {"class": pa.array([0], pa.int8())})
    with pa.ipc.new_file(str(folder / player.NAMES), jobs.schema) as sink:
        sink.write_table(jobs)


def done(folder: Path | None, cluster: str = "c", day: int = 1) -> Run:
    wanted = models.Wanted(
        cluster=cluster, since="2018-01-01", until="2018-01-31", scenario="[[variant]]"
    )
    at = {"asked_at": utc(f"2018-02-0{day}T16:00:00"), "began_at": utc(f"2018-02-0{day}T17:00:00"),
          "ended_at": utc(f"2018-02-0{day}T18:00:00")}  # fmt: skip
    return Run(wanted, ["as it is", "more"], 1234, None, state="done", num_done=2, doing="",
               outcome=made(), folder=folder, **at)  # type: ignore[arg-type]  # fmt: skip


# ---- figures


@pytest.mark.parametrize(
    ("seconds", "scale", "unit"),
    [(119, 1, "seconds"), (120, 60, "minutes"), (7199, 60, "minutes"), (7200, 3600, "hours"),
     (172_799, 3600, "hours"), (172_800, 86400, "days")],
)  # fmt: skip
def test_waits_are_drawn_in_a_unit_of_which_there_are_two(
    seconds: float, scale: float, unit: str
) -> None:
    assert figures._unit(seconds) == (scale, unit)


def test_busy_lines_are_on_the_sites_clock_and_each_its_own() -> None:
    option, _, notes = figures.busy(made(), models.FigureQuery(), LIGHT)
    five = int(
        utc("2018-01-06T05:00:00").timestamp() * 1000
    )  # Tokyo's clock, written as if it were UTC's
    lines = {each["name"]: each["data"] for each in option["series"]}
    assert lines == {
        "recorded in the log": [[five, 7.0], [five + 7_200_000, 8.0]],
        "as it is": [[five, 1.0], [five + 7_200_000, 2.0]],
        "more": [[five, 3.0], [five + 7_200_000, 4.0]],
    }
    assert notes == ["Means of bins of 2 h."]


def test_a_day_is_the_sites_and_a_job_s_gpus_are_dealt_out_to_its_nodes(tmp_path: Path) -> None:
    stored(tmp_path)
    assert nodes_of_day(tmp_path, made(), 0, date(2018, 1, 5)).num_jobs == 0
    found = nodes_of_day(tmp_path, made(), 0, date(2018, 1, 6))
    assert [(bar.node, bar.num_lanes, bar.num_pes) for bar in found.bars] == [(0, 2, 3), (1, 1, 3)]
    option, _, notes = figures.nodes(
        found.model_copy(update={"num_jobs": 9, "num_left_out": 8}), LIGHT, "gpu"
    )
    bars = [bar for series in option["series"] for bar in series["data"]]
    assert bars[0]["name"] == "job 5: 3 GPUs, node 0\nann, q\n05:00 to 07:00"
    assert [bar["value"][2:] for bar in bars] == [[0, 1], [1, 1.5]]
    assert notes == ["9 jobs ran on this day; a lane of a node is one GPU.",
                     "The 8 that ran shortest are not drawn."]  # fmt: skip


# ---- what is asked for, and what is kept


def test_a_run_is_of_its_period_and_shows_its_days(tmp_path: Path) -> None:
    stored(tmp_path / "run")
    run = done(tmp_path / "run")
    readers = Readers(put_jobs(Lake.create(tmp_path / "lake"), [job(1)]))
    runs: Any = SimpleNamespace(find=lambda id: run)
    desk = Desk(runs, readers, BOSS)
    chosen = desk._selection(run.wanted)
    assert (chosen.clusters, chosen.since, chosen.until) == (("c",), "2018-01-01", "2018-01-31")
    assert desk.nodes(run.id, models.DayQuery(day=date(2018, 1, 5))).bars == []
    assert len(desk.nodes(run.id, models.DayQuery()).bars) == 2  # the day of the longest waits
    with pytest.raises(WebError, match="the log begins on 2018-01-05"):
        desk.nodes(run.id, models.DayQuery(day=date(2018, 1, 4)))


def test_kept_runs_come_back_the_newest_first_and_go_with_their_cluster(tmp_path: Path) -> None:
    space = tmp_path / "w"
    space.mkdir()
    for day, cluster in ((2, "b"), (1, "c"), (3, "c")):
        files = tmp_path / f"{day}"
        stored(files)
        run = done(files, cluster, day)
        (files / player.OUTCOME).write_text(made().model_dump_json())
        kept.keep(space, run.id, files, _facts(run))
    assert [run.asked_at.day for run in _kept(space)] == [1, 2, 3]
    assert [run.asked_at.day for run in Runs(Bounds(kept=2), space).all()] == [3, 2]
    assert kept.forget(space, "c") == 1
    assert [run.wanted.cluster for run in _kept(space)] == ["b"]


def test_nodes_that_fail_count_too() -> None:
    text = "[machine]\nnodes = 9\nsize = 8\n[[variant]]\nname = 'a'\nfailures = [{}]\n"
    failing = '{{ at = "2018-01-05", nodes = {} }}'
    check.checked(text.format(failing.format(9)), Bounds(nodes=9))
    with pytest.raises(check.WrongScenario, match="at most 9 nodes fail"):
        check.checked(text.format(failing.format(9) + ", " + failing.format(1)), Bounds(nodes=9))


# ---- the page of a comparison


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("told")
    lake = put_jobs(Lake.create(folder / "lake"), [job(1)], '{"zone": "Asia/Tokyo"}')
    app = create_app(lake)
    stored(folder / "run")
    run = done(folder / "run")
    run.id = "0123456789abcdef"
    app.state.runs._runs[run.id] = run
    with running(app) as server, server.client(headers={"Accept": "text/html"}) as asking:
        yield asking


def test_each_metric_is_in_its_row_with_its_change(client: httpx.Client) -> None:
    page = get(client, "/what-if/0123456789abcdef")
    rows = {row.pop("Metric"): row for row in table(page)}
    before = {name: row["as it is"] for name, row in rows.items()}
    assert before == {
        "Jobs that no longer run, of all replayed": "3", "Jobs that never begin, of those compared": "4",
        "Mean wait": "10.0 min", "Median wait": "60 s", "95 % wait under": "2.0 h",
        "99 % wait under": "24.0 h",
        "Mean bounded slowdown": "12.5", "Machine in use, weeks compared": "62.5 %",
        "Lost to fragmentation, whole replay": "3.1 %", "Idle while jobs wait, whole replay": "4.2 %",
        "Inequality of users’ waits (Gini)": "0.512", "Mean wait of the worst-off user": "2.5 h",
        "GPU-hours lost to restarts": "17", "Jobs compared": "1,234",
    }  # fmt: skip
    assert rows["Mean wait"]["more"] == "5.0 min −5.0 min −7.5 min to −2.5 min"
    assert (
        rows["Machine in use, weeks compared"]["more"]
        == "62.5 % +12.0 points +6.0 points to +18.0 points"
    )
    assert "−30 s ≈" in rows["Median wait"]["more"]


def test_only_what_is_sure_is_better_or_worse(client: httpx.Client) -> None:
    page = get(client, "/what-if/0123456789abcdef")
    tones = dict(re.findall(r'data-metric="(\w+)">(?:(?!</tr>).)*?class="delta (\w*)"', page, re.S))
    assert tones == {
        "mean_wait_s": "better", "median_wait_s": "better", "p95_wait_s": "worse", "utilisation": "better",
        "fragmentation": "",
    }  # fmt: skip


def test_who_waits_longer_is_told_before_and_after(client: httpx.Client) -> None:
    (row,) = table(get(client, "/what-if/0123456789abcdef"), 1)
    assert (row["Jobs"], row["as it is"]) == ("77", "15.0 min")
    assert row["more"].startswith("30.0 min +15.0 min")


def test_the_chosen_run_and_day_are_those_that_are_drawn(client: httpx.Client) -> None:
    page = get(client, "/what-if/0123456789abcdef?variant=1&day=2018-01-07&measure=p95_wait_s")
    (chosen,) = re.findall(r'<select id="n-variant".*?</select>', page, re.S)
    assert re.findall(r"selected>([^<]*)<", chosen) == ["more"]
    drawn = re.findall(r'data-figure="/api/v1/what-if/0123456789abcdef/figures/([^"]*)"', page)
    assert drawn == [f"{id}?measure=p95_wait_s" for id in ("waits-by-class", "waits", "busy")] + [
        "nodes?variant=1&amp;day=2018-01-07"
    ]


def test_the_last_runs_say_what_was_asked_and_when(client: httpx.Client) -> None:
    (row,) = table(get(client, "/what-if"))
    assert row == {
        "Variants": "more", "Cluster": "c", "Period": "2018-01-01 to 2018-01-31", "Jobs": "1,234",
        "Asked at": "2018-02-02 01:00:00", "State": "done",
    }  # fmt: skip
    assert "1,234 jobs, against “ as it is ”" in plain(get(client, "/what-if/0123456789abcdef"))


def test_a_run_can_be_changed_and_run_again(client: httpx.Client) -> None:
    page = get(client, "/what-if?run=0123456789abcdef")
    for name, value in (("since", "2018-01-01"), ("until", "2018-01-31")):
        assert re.search(rf'name="{name}" type="date" value="{value}"', page)
    (text,) = re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.S)
    assert text == "[[variant]]"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"policy": "fcfs", "nodes": "+1"}, "fcfs, 1 more node"),
        ({"nodes": "−12"}, "12 fewer nodes"),
        ({"user_gpus": "32", "user_jobs": "9"}, "32 GPUs a user, 9 jobs a user"),
        ({"accurate": "50 %", "load": "+20%"}, "50 % ask accurately, 20 % more load"),
        ({"load": "-5"}, "5 % less load"),
        ({"favour": "yes"}, "multi-GPU favoured"),
    ],
)
def test_a_variant_is_called_by_what_it_changes(fields: dict[str, str], name: str) -> None:
    draft = Draft({f"v3-{key}": value for key, value in fields.items()})
    assert f'[[variant]]\nname = "{name}"\n' in draft.toml()
