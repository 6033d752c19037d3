"""One session for several questions and several clusters: nothing of one answer is left in the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hakaru.analyses import Check, Result, Selection, Session, load_all, open_session, remarks
from hakaru.errors import FilterError, HakaruError
from hakaru.lake import Lake
from hakaru.schema import INGESTS
from hakaru.texts import language
from tests.analyses._ask import ask
from tests.analyses.test_load import at, stay
from tests.conftest import job, put, put_jobs, utc

Make = Callable[..., Lake]
SIZED = '{"nodes": 1, "gpus_per_node": 4}'


def run(session: Session, id: str, **selection: Any) -> Result:
    return session.run(load_all().get(id), Selection(**selection))


def test_counts_are_of_the_question_that_is_asked(lake_of: Make) -> None:
    """Of queue a one job is left out, of queue b two; of both the size of one counts in processors."""
    rows = [job(1, queue="a", run_s=59.0), job(2, queue="a"), job(3, queue="a", num_gpus=0)]
    rows += [job(i, queue="b", run_s=59.0) for i in (4, 5)] + [job(6, queue="b")]
    rows[2]["num_cpus"] = 8
    with open_session(lake_of(rows), unit="gpu") as session:
        a, b, again = (run(session, "parallelism", where=f"queue = '{q}'") for q in "aba")
    assert [(each.num_selected, each.num_used) for each in (a, b, again)] == [
        (3, 1),
        (3, 1),
        (3, 1),
    ]
    left = [[entry.num_jobs for entry in each.left_out] for each in (a, b, again)]
    assert left == [[1, 1], [0, 2], [1, 1]]
    assert [dict(each.uncounted) for each in (a, b, again)] == [{"c": 1}, {}, {"c": 1}]


def test_jobs_of_the_other_unit_are_those_of_the_question(lake_of: Make) -> None:
    rows = [job(n, queue=queue, num_gpus=0, num_cpus=8) for n, queue in enumerate("abb")]
    with open_session(lake_of([*rows, job(9)]), unit="gpu") as session:
        found = [run(session, "parallelism", where=f"queue = '{q}'").uncounted for q in "ab"]
    assert found == [{"c": 1}, {"c": 2}]


def test_what_exceeds_the_machine_is_that_of_the_question(lake_of: Make) -> None:
    rows = [stay(1, 0, 0, 60, num_gpus=6, queue="a"), stay(2, 0, 0, 60, num_gpus=5, queue="b")]
    with open_session(lake_of(rows, facts=SIZED)) as session:
        most = [run(session, "load", where=f"queue = '{q}'").over["c"].most for q in "ab"]
    assert most == [6, 5]


def test_the_machine_limits_and_period_are_those_of_the_question(lake: Lake) -> None:
    """Four GPUs for an hour, on 4 and on 16 of them; requests of 2 h, the maximum of `c` but not of `d`."""
    sites = {
        "c": '{"gpus": 4, "queues": {"normal": {"max_walltime_h": 2}}, "zone": "Asia/Tokyo"}',
        "d": '{"gpus": 16, "queues": {"normal": {"max_walltime_h": 9}}, "zone": "UTC"}',
    }
    for name, facts in sites.items():
        row = stay(1, 0, 0, 60, cluster=name, num_gpus=4, requested_s=7200.0)
        put_jobs(lake, [row], facts)
    asked = [
        {"clusters": ("c",)},
        {"clusters": ("d",)},
        {"clusters": ("d",), "since": "2018-01-01T00:00", "until": "2018-01-01T02:00"},
        {"clusters": ("c",)},
    ]
    with open_session(lake) as session:
        used = [run(session, "utilisation", **each).rows[-1]["utilisation"] for each in asked]
        at_max = [run(session, "request-accuracy", **e).rows[0]["share_at_max"] for e in asked]
        hours = [run(session, "arrivals-by-hour", **each).rows for each in asked]
    assert used == [1.0, 0.25, 0.125, 1.0]
    assert at_max == [1.0, 0.0, 0.0, 1.0]
    assert [[r["hour"] for r in rows if r["num_jobs"]] for rows in hours] == [[9], [0], [0], [9]]


@pytest.fixture
def two(lake: Lake) -> Lake:
    """`c` in Tokyo on four GPUs, six of which are busy; `d` in Berlin, on nodes that its log names."""
    mine = [
        stay(1, 0, 0, 60, num_gpus=6, nodes=["n9"]),
        stay(2, 30, 30, 60, num_gpus=None, num_nodes=None),
    ]
    put_jobs(lake, mine, '{"nodes": 1, "gpus_per_node": 4, "zone": "Asia/Tokyo"}')
    theirs = [
        stay(1, 0, 0, 60, cluster="d", num_gpus=2, nodes=["n1"]),
        stay(2, 0, 0, 60, cluster="d", num_gpus=0, nodes=["n2"]),
        stay(3, 30, 30, 60, cluster="d", num_gpus=8, num_nodes=2, nodes=["n1", "n3"], queue="b"),
    ]
    return put_jobs(lake, theirs, zone="Europe/Berlin")


def test_several_clusters_stand_side_by_side_or_one_is_chosen(two: Lake) -> None:
    for by in (None, "queue"):
        with pytest.raises(HakaruError, match="choose one with --cluster"):
            ask(two, "states", by=by)
    both = ask(two, "states", by="cluster")
    assert [(row["cluster"], row["num_jobs"]) for row in both.rows] == [("c", 2), ("d", 3)]
    assert both.zone == "UTC", "clocks that differ are not one of them"
    assert ask(two, "states", clusters=("c",)).zone == "Asia/Tokyo"


def test_remarks_are_of_each_cluster(two: Lake) -> None:
    """n2 has no GPU in use, n1 and n3 four each. Two GPUs of d are busy, and ten for half of the time."""
    told = remarks(ask(two, "load", by="cluster"), language("en"))
    assert told[0].startswith("more GPUs are busy than c has in 100.0 % of this time, up to 6 of 4")
    assert "the size of d is unknown" in told[1] and "6.0 GPUs are busy on average" in told[1]
    assert "at least 8 seen in use on the 2 nodes" in told[1]
    assert told[2:] == ["nodes = 2", "gpus_per_node = 4"]


def test_busy_gpus_of_all_groups_are_added(two: Lake) -> None:
    told, *_ = remarks(ask(two, "load", by="queue", clusters=("d",)), language("en"))
    assert "6.0 GPUs are busy on average" in told
    told, *_ = remarks(ask(two, "utilisation", by="queue", clusters=("d",)), language("en"))
    assert "6.0 GPUs are busy on average" in told


def test_one_synthetic_cluster_makes_the_answer_synthetic(two: Lake) -> None:
    when = utc("2024-01-01T00:00:00")
    row = {"ingest_id": "s", "cluster": "d", "source": "synth", "synthetic": True}
    put(two, INGESTS.name, [row | {"started_at": when, "ended_at": when}])
    assert ask(two, "states", by="cluster").synthetic
    assert ask(two, "states", clusters=("d",)).synthetic
    assert not ask(two, "states", clusters=("c",)).synthetic


def test_a_queue_s_limit_is_that_of_its_own_cluster(lake: Lake) -> None:
    rows = [job(1, requested_s=7200.0), job(2, requested_s=3600.0)]
    put_jobs(lake, rows, '{"queues": {"normal": {"max_walltime_h": 2}}}')
    put_jobs(lake, [row | {"cluster": "d"} for row in rows])
    put_jobs(
        lake,
        [row | {"cluster": "e"} for row in rows],
        '{"queues": {"normal": {"max_walltime_h": 9}}}',
    )
    found = ask(lake, "request-accuracy", by="cluster").rows
    known = [(row["share_at_max"], row["share_with_known_limit"]) for row in found]
    assert known == [(0.5, 1.0), (0.5, 0.0), (0.0, 1.0)]


def test_what_can_be_weighed_is_listed_without_the_rest(lake_of: Make) -> None:
    with pytest.raises(FilterError) as error:
        ask(lake_of([]), "waits", weight="gpu-hours")
    able = str(error.value).rpartition(": ")[2].split(", ")
    assert {"queues", "concentration"} <= set(able)
    assert not {"waits", "walltime", "users", "load"} & set(able)


# ---- periods


def test_days_of_a_period_are_the_site_s(lake_of: Make) -> None:
    """A week in Tokyo begins at 15:00 UTC of the day before; its first job comes on the third day."""
    submitted = utc("2018-01-03T03:00:00")
    lake = lake_of([job(1, submitted_at=submitted)], '{"zone": "Asia/Tokyo"}')
    week = {"since": "2018-01-01", "until": "2018-01-07"}
    noon = ask(lake, "arrivals-by-hour", **week).rows[12]
    assert (noon["num_days"], noon["mean"]) == (7, pytest.approx(1 / 7))
    days = ask(lake, "arrivals-by-weekday", **week).rows
    assert [row["num_days"] for row in days] == [1] * 7
    assert [row["num_days"] for row in ask(lake, "arrivals-by-week", **week).rows] == [1] * 168
    assert ask(lake, "arrivals-by-hour", since="2018-01-01").rows[12]["num_days"] == 3


def test_the_most_of_an_hour_is_in_what_is_weighed(lake_of: Make) -> None:
    lake = lake_of([job(1, num_gpus=4), job(2)])
    (first, *_) = ask(lake, "arrivals-by-hour", weight="gpu-hours").rows
    assert (first["most"], first["num_jobs"]) == (5.0, 2)
    assert ask(lake, "arrivals-by-weekday", weight="gpu-hours").rows[0]["most"] == 5.0


def test_who_waits_or_runs_does_so_to_the_last_event_not_to_the_end_chosen(lake_of: Make) -> None:
    """The log ends at 01:00. One was submitted before the period and still waits, another still runs."""
    rows = [
        stay(1, 0, 0, 60),
        stay(2, 0, None, None, state="pending"),
        stay(3, 0, 0, None, state="running"),
    ]
    chosen = {"since": "2018-01-01T00:30", "until": "2018-01-01T01:30"}
    result = ask(lake_of(rows), "load", **chosen)
    assert result.num_selected == 3
    assert [row["num_jobs_waiting"] for row in result.rows] == [1, 1, 0, 0]
    assert [row["num_jobs_running"] for row in result.rows] == [2, 2, 0, 0]


def test_a_period_of_centuries_is_cut_near_the_jobs(lake_of: Make) -> None:
    lake = lake_of([stay(1, 0, 0, 60)])
    rows = ask(lake, "load", since="1900-01-01", until="2900-01-01").rows
    assert (at(0) - rows[0]["since_at"]).days == 366
    assert 5 * 365 - 1 <= (rows[-1]["until_at"] - at(0)).days <= 5 * 365 + 1


# ---- lists of values, as a program asks for them


@pytest.mark.parametrize(
    ("column", "values", "num_jobs"),
    [
        ("size_class", (0,), 1),
        ("size_class", (1,), 1),
        ("size_class", (2,), 2),
        ("size_class", (3,), 1),
        ("size_class", (-1,), 1),
        ("size_class", (0, 2), 3),
        ("size_class", (None,), 1),
        ("size_class", (3, None), 2),
        ("queue", ("normal",), 7),
        ("queue", (), 0),
        ("month", (2018 * 12,), 7),
        ("month", (2018 * 12 - 1,), 0),
    ],
)
def test_values_in_a_list(
    lake_of: Make, column: str, values: tuple[Any, ...], num_jobs: int
) -> None:
    """One, two, three and four, and five to eight GPUs are a class each; none and unknown are two more."""
    sizes = (1, 2, 3, 4, 5, 0, None)
    lake = lake_of([job(i, num_gpus=size) for i, size in enumerate(sizes)])
    with open_session(lake) as session:
        chosen = Selection(clusters=("c",), checks=(Check(column, values, "in"),))
        (row,) = session.ask("SELECT count(*) AS num FROM jobs", chosen).to_pylist()
    assert row["num"] == num_jobs
