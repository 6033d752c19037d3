"""What the pages of what-if count and draw, worked by hand without a server."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hakaru import sim
from hakaru.figures.theme import LIGHT
from hakaru.sim import whatif
from hakaru.sim.whatif.variants import ORIGIN
from hakaru.web.what_if import check, figures, models, player
from hakaru.web.what_if.bounds import Bounds
from hakaru.web.what_if.nodes import _longest, _taken, nodes_of_day
from tests.sim._jobs import play, workload

DAY_S, HOUR_S = 86400, 3600
NOON = int(datetime(2018, 1, 5, 12, tzinfo=UTC).timestamp())
SCENARIO = "[machine]\nnodes = 1\nsize = 2\n[[variant]]\nname = 'two'\nnodes = 1\n"


def test_a_lane_is_free_in_the_second_in_which_its_job_ends() -> None:
    assert _taken([10, 50], 1, 10, 60) == [(0, 1)]
    assert _taken([11, 50], 1, 10, 60) == []


def test_copies_of_users_are_played_too() -> None:
    text = "[machine]\nprocessors = 2\n[[variant]]\nload = 2\n[[variant]]\nload = 0.5\n"
    assert check.num_to_play(whatif.read(text), 100) == 100 + 200 + 100


def test_nodes_that_are_added_count() -> None:
    bounds = Bounds(nodes=10)
    text = "[machine]\nnodes = {}\nsize = 8\n[[variant]]\nname = 'a'\nnodes = {}\n"
    check.checked(text.format(8, 2), bounds)
    check.checked(text.format(10, -2), bounds)
    with pytest.raises(check.WrongScenario, match="a: at most 10 nodes"):
        check.checked(text.format(8, 3), bounds)


def test_the_day_of_the_longest_waits_is_on_the_sites_clock() -> None:
    """One PE: on the second day in Tokyo, which is still the first in London, three wait for one another."""
    late = int(datetime(2018, 1, 5, 16, tzinfo=UTC).timestamp())  # 1:00 on the 6th in Tokyo
    jobs = workload((NOON, 60, 1), *[(late, HOUR_S, 1)] * 4, (late + 3 * DAY_S, 60, 1))
    replayed = sim.simulate(jobs, sim.Machine.flat(1), sim.POLICIES.get("easy"))
    assert player._days(jobs, replayed, "Asia/Tokyo") == {
        "first_day": "2018-01-05", "last_day": "2018-01-09", "day": "2018-01-06",
    }  # fmt: skip
    assert player._days(jobs, replayed, "UTC")["day"] == "2018-01-05"


def test_a_job_of_unknown_start_is_nowhere_in_what_was_recorded() -> None:
    at = datetime.fromtimestamp(NOON, UTC)
    jobs = workload((NOON, HOUR_S, 2, {"started_at": at}), (NOON, HOUR_S, 1, {"started_at": None}))
    like = sim.simulate(jobs, sim.Machine.flat(4), sim.POLICIES.get("easy"))
    assert player._recorded(jobs, like) == [(NOON, 2.0)]


@pytest.fixture(scope="module")
def outcome() -> models.Outcome:
    """Ninety days at noon: two jobs of an hour on one GPU each, and one on both; one node, then two."""
    jobs: list[Any] = []
    for day in range(90):
        jobs += [(NOON + day * DAY_S + at, HOUR_S, pes) for at, pes in ((0, 1), (1, 1), (2, 2))]
    found = whatif.run(whatif.read(SCENARIO), workload(*jobs), num_processes=1)
    facts = {
        "machines": [
            {"num_nodes": n, "node_size": 2, "num_pes": 2 * n, "is_flat": False, "names": []}
            for n in (1, 2)
        ],
        "classes": ["single-pe", "single-node"], "recorded_busy": [],
        "first_day": "2018-01-05", "last_day": "2018-04-04", "day": "2018-01-05",
    }  # fmt: skip
    return models.Outcome(**(found.as_dict() | facts))


def test_bars_of_waits_are_those_of_the_classes(outcome: models.Outcome) -> None:
    """On one node the third waits from second 2 until 3601, on two it does not."""
    query = models.FigureQuery(measure="mean_wait_s")
    option, _, _ = figures.waits_by_class(outcome, query, LIGHT)
    bars = {
        each["name"]: [bar["value"] for bar in each["data"]] for each in option["series"]
    }  # minutes
    assert bars == {
        outcome.baseline.name: [0, pytest.approx(3599 / 60, abs=0.1)],
        "two": [0, 0],
    }
    assert option["xAxis"]["data"] == ["Single-GPU jobs", "Multi-GPU single-node jobs"]


def test_lines_of_waits_reach_what_the_jobs_waited(outcome: models.Outcome) -> None:
    option, _, notes = figures.waits(outcome, models.FigureQuery(), LIGHT)
    lines = {each["name"]: each["data"] for each in option["series"]}
    # two thirds do not wait and are drawn at a tenth of a minute, the others for an hour
    (none, most) = lines[outcome.baseline.name]
    assert none == [0.1, pytest.approx(66.7, abs=0.1)]
    assert most == [pytest.approx(3599 / 60, abs=0.1), 100]
    assert lines["two"] == [[0.1, 100]]
    assert notes == ["Waits below 0.1 min are drawn there."]


def stored(folder: Path, jobs: list[tuple[int, int]]) -> None:
    """Rows of (start, end) on node 0, one GPU each, as a player leaves them."""
    rows = np.zeros(len(jobs), player.ROW)
    for number, (start, end) in enumerate(jobs):
        rows[number] = (number, start, end, 1, number)
    np.save(folder / "rows-0.npy", rows)
    np.save(folder / "nodes-0.npy", np.zeros(len(jobs), np.int32))
    num = len(jobs)
    table = pa.table(
        {"job_id": [str(n) for n in range(num)], "user": ["ann"] * num, "queue": ["q"] * num,
         "num_pes": [1] * num, "class": pa.array([0] * num, pa.int8())}
    )  # fmt: skip
    with pa.ipc.new_file(str(folder / player.NAMES), table.schema) as sink:
        sink.write_table(table)


def test_a_day_has_the_jobs_that_ran_in_it(outcome: models.Outcome, tmp_path: Path) -> None:
    """Midnight belongs to the day that begins: who ended or began then ran in one of the two days only."""
    midnight = NOON - 12 * HOUR_S
    stored(
        tmp_path,
        [
            (midnight - 100, midnight),  # the day before
            (midnight - 100, midnight + 50),
            (midnight + 60, midnight + 70),
            (midnight + DAY_S - 10, midnight + DAY_S + 10),
            (midnight + DAY_S, midnight + DAY_S + 10),  # the day after
        ],
    )
    found = nodes_of_day(tmp_path, outcome, 0, date(2018, 1, 5))
    assert (found.num_jobs, found.num_left_out) == (3, 0)
    bars = [(bar.job_id, bar.start - midnight, bar.end - midnight, bar.lane) for bar in found.bars]
    assert bars == [("1", 0, 50, 0), ("2", 60, 70, 0), ("3", DAY_S - 10, DAY_S, 0)]


def test_what_cannot_be_drawn_is_what_ran_shortest() -> None:
    rows = np.zeros(3, player.ROW)
    rows["start"], rows["end"], rows["num_nodes"] = [0, 0, 50], [10, 90, 300], [1, 2998, 2]
    # within 0 to 100 they ran 10, 90 and 50 s: 2998 and 2 bars are 3000
    assert _longest(rows, 0, 100)["num_nodes"].tolist() == [2998, 2]


def test_rows_are_of_the_jobs_that_began() -> None:
    held = [sim.Limit("user", "running-jobs", 0, only="ben")]
    played = play(
        [(0, 10, 1, {"user": "ben"}), (5, 10, 1)], sim.Machine.flat(2), "easy", limits=held
    )
    table = played.workload.table.append_column(ORIGIN, pa.array([7, 8]))
    rows = player._rows(replace(played, workload=replace(played.workload, table=table)))
    assert rows[["job", "start", "end"]].tolist() == [(8, 5, 15)]
