"""A comparison computed from a lake: which jobs each number counts, and why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hakaru.analyses import Selection, Session, load_all, open_session
from hakaru.comparison import (
    HEADLINE,
    Comparison,
    compare,
    notes_on_users,
    period_of,
    users_note,
)
from hakaru.comparison._compare import ACROSS_LOGS
from hakaru.comparison._contrast import SUBJECTS
from hakaru.figures import draw
from hakaru.lake import Lake
from hakaru.reference.metrics import Cell, find_metrics, load_metrics
from hakaru.schema import INGESTS
from tests.conftest import job, put, put_jobs, utc

METRICS = load_metrics()


def ended(number: int, state: str, run_s: float | None, **columns: Any) -> dict[str, Any]:
    return job(number, state=state, run_s=run_s, **columns)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """`c` has GPUs and runs of 3,600, 30 and 1,800 s; `d` has processors, is made up, and numbers its users
    anew in each of two files. Their clocks differ by an hour and a half."""
    lake = Lake.create(tmp_path_factory.mktemp("site"))
    rows = [
        ended(1, "completed", 3600.0, submitted_at=utc("2018-01-01T20:00:00")),
        ended(2, "completed", 30.0, num_gpus=4, queue="long", requested_s=600.0),
        ended(3, "failed", 1800.0, num_gpus=2, requested_s=None, user="bob"),
    ]
    queues = {"normal": {"max_walltime_h": 4}}
    facts = {"zone": "Asia/Kolkata", "nodes": 3, "gpus_per_node": 4, "queues": queues}
    put_jobs(lake, rows, str(facts).replace("'", '"'))
    cpu: dict[str, Any] = {"cluster": "d", "num_gpus": None, "num_cpus": 2}
    rows = [ended(f"q{n}/{n}", "completed", 60.0 * n, user=f"q{n}/7", **cpu) for n in (1, 2)]
    put_jobs(lake, rows, '{"zone": "Asia/Karachi"}')
    made_up = {"ingest_id": "m", "cluster": "d", "source": "test", "synthetic": True}
    put(lake, INGESTS.name, [made_up | {"started_at": utc("2018-01-01"), "ended_at": None}])
    with open_session(lake) as session:
        yield session


def cells(told: Comparison, cluster: str) -> dict[str, float | str | None]:
    """Each number, or the reason for its absence."""
    found = {line.metric.id: line.cells[cluster] for line in told.lines}
    return {id: cell.reason or cell.value for id, cell in found.items()}


def test_metrics_of_one_analysis_with_rules_of_their_own(site: Session) -> None:
    """(3600 + 30 + 1800) / 3, and without the short one, without the failed one, without both."""
    mean = METRICS["run_mean_s"]
    metrics = [
        mean,
        replace(mean, id="completed", states=("completed",)),
        replace(mean, id="minute", min_run_s=60.0),
        METRICS["run_mean_completed_s"],
    ]
    told = compare(site, ["c"], metrics, [], Selection())
    assert [line.cells["c"].value for line in told.lines] == [1810, 1815, 2700, 3600]
    assert [line.cells["c"].counted for line in told.lines] == [(3, 3), (2, 3), (2, 3), (1, 3)]
    assert [line.counting for line in told.lines] == [
        *("all that ran", "completed", "≥ 60 s", "completed, ≥ 60 s")
    ]
    assert [line.jobs for line in told.lines] == [
        "jobs",
        "completed jobs",
        "jobs that ran for at least 60 s",
        "completed jobs that ran for at least 60 s",
    ]


def test_chosen_rules_take_the_place_of_an_analysis_own(site: Session) -> None:
    """Not of those that a metric has; and 0 s is a choice."""
    metrics = [METRICS["run_mean_s"], METRICS["run_mean_completed_s"]]
    for chosen, value, counting in [
        (Selection(min_run_s=2000.0, states=("any",)), 3600, "≥ 2000 s"),
        (Selection(min_run_s=0.0), 1815, "completed"),
        (Selection(min_run_s=0.0, states=("any",)), 1810, ""),
        (Selection(states=("failed", "timeout")), 1800, "failed or timeout, ≥ 60 s"),
    ]:
        every, own = compare(site, ["c"], metrics, [], chosen).lines
        assert (every.cells["c"].value, every.counting) == (1810, "all that ran")
        assert (own.cells["c"].value, own.counting) == (value, counting)


def test_numbers_of_two_clusters_in_their_own_columns(site: Session) -> None:
    ids = ["num_jobs", "num_gpu_jobs", "num_users", "num_nodes", "num_gpus", "run_median_s"]
    told = compare(site, ["d", "c"], find_metrics(ids), ["Philly", "Kraken"], Selection())
    assert told.clusters == ["d", "c"] and told.published == ["Philly", "Kraken"]
    assert told.units == {"c": "gpu", "d": "cpu"} and told.synthetic == {"d"}
    assert (told.name("c"), told.name("d")) == ("c", "d (SYNTHETIC)")
    assert cells(told, "c") == {
        "num_jobs": 3,
        "num_gpu_jobs": 3,
        "num_users": 2,
        "num_nodes": 3,
        "num_gpus": 12,
        "run_median_s": 1800,
    }
    unset = "neither the log's header nor hakaru.toml says it"
    assert cells(told, "d") == {
        "num_jobs": 2,
        "num_gpu_jobs": "100 % of the jobs: the log does not count their GPUs",
        "num_users": ACROSS_LOGS,
        "num_nodes": unset,
        "num_gpus": unset,
        "run_median_s": 90,
    }
    assert told.lines[0].published.keys() == {"Philly", "Kraken"}
    assert list(told.lines[0].published) == ["Philly", "Kraken"], "in the order of the choice"
    assert (told.cell("num_jobs", "d"), told.cell("num_days", "d")) == (
        Cell(2, counted=(2, 2)),
        None,
    )
    sizes = next(line for line in told.lines if line.metric.id == "num_nodes")
    assert (sizes.counting, sizes.jobs) == ("", "jobs")


def test_without_names_the_headline_has_every_number_of_the_sentences() -> None:
    assert {id for subject in SUBJECTS for id in subject.metrics} <= {*HEADLINE}
    assert {*HEADLINE} - {id for subject in SUBJECTS for id in subject.metrics} == {
        *("num_jobs", "num_users", "share_multi_node")
    }
    assert len(set(HEADLINE)) == len(HEADLINE) == 16


def test_a_maximum_that_is_only_seen_says_so(site: Session) -> None:
    """`normal` has a limit, `long` has none; the first job asked for half of the four hours."""
    metric = find_metrics(["share_at_max", "wra_mean"])
    whole = compare(site, ["c"], metric, [], Selection(min_run_s=0.0))
    assert whole.cell("share_at_max", "c") == Cell(
        0.5,
        caveat="where no limit is known, it is the longest request seen in the queue",
        counted=(2, 3),
    )
    assert whole.cell("wra_mean", "c") == Cell(pytest.approx((0.5 + 0.05) / 2), counted=(2, 3))
    known = compare(site, ["c"], metric, [], Selection())
    assert known.cell("share_at_max", "c") == Cell(0.0, counted=(1, 3))


def test_a_utilisation_that_exceeds_the_machine_says_so(lake: Lake) -> None:
    """Four GPUs are held for the first of two hours, then one; there are two: 5 of 4 GPU-hours."""
    rows = [
        job(1, started_at=utc("2018-01-01T00:00:00"), ended_at=utc("2018-01-01T01:00:00")),
        job(2, started_at=utc("2018-01-01T01:00:00"), ended_at=utc("2018-01-01T02:00:00")),
    ]
    rows[0]["num_gpus"] = 4
    put_jobs(lake, rows, '{"gpus": 2}')
    put_jobs(lake, [row | {"cluster": "d"} for row in rows], '{"gpus": 4}')
    with open_session(lake) as session:
        told = compare(session, ["c", "d"], find_metrics(["utilisation_mean"]), [], Selection())
    assert told.cell("utilisation_mean", "c") == Cell(
        1.25, caveat="jobs exceed the machine's size for 50.0 % of this time", counted=(2, 2)
    )
    assert told.cell("utilisation_mean", "d") == Cell(0.625, counted=(2, 2))


@pytest.mark.parametrize(("num_jobs", "is_known"), [(19, True), (20, False)])
def test_a_state_that_a_long_log_never_has_may_not_be_recorded(
    lake: Lake, num_jobs: int, is_known: bool
) -> None:
    put_jobs(lake, [job(n, state="completed" if n else "timeout") for n in range(num_jobs)])
    ids = ["share_completed", "share_failed", "share_cancelled", "share_multi_node"]
    with open_session(lake) as session:
        told = compare(session, ["c"], find_metrics(ids), [], Selection())
    never = "no job of the log is {}: it may not record that"
    states = {
        "share_failed": "failed or out_of_memory or node_failed",
        "share_cancelled": "cancelled",
    }
    expected = {id: 0.0 if is_known else never.format(states[id]) for id in states}
    assert cells(told, "c") == expected | {
        "share_completed": (num_jobs - 1) / num_jobs,
        "share_multi_node": 0.0,
    }


def test_a_state_that_the_log_has_elsewhere_is_zero(lake: Lake) -> None:
    rows = [job(n, user="ann") for n in range(20)] + [job(99, state="node_failed", user="bob")]
    put_jobs(lake, rows)
    mine = Selection(where="user = 'ann'")
    with open_session(lake) as session:
        told = compare(session, ["c"], find_metrics(["share_failed"]), [], mine)
    assert told.cell("share_failed", "c") == Cell(0.0, counted=(20, 20))


# ---- what is left out


def test_jobs_left_out_by_cluster_and_rule(site: Session) -> None:
    """Sorted by cluster; analyses that leave out the same jobs for the same reason stand together."""
    ids = ["wait_mean_s", "run_median_completed_s", "wra_mean", "share_single_pe", "num_jobs"]
    told = compare(site, ["d", "c"], find_metrics(ids), [], Selection())
    short, failed = "1: only jobs that ran for at least 60 s", "1: only jobs that are completed"
    assert told.left_out == [
        f"c, parallelism: 2 of 3 jobs; left out {short}",
        "c, request-accuracy: 1 of 3 jobs; left out 1: only jobs with a known requested walltime, "
        + short,
        f"c, walltime: 1 of 3 jobs; left out {short}, {failed}",
    ]
    two = compare(
        site, ["c"], find_metrics(["run_mean_completed_s", "run_mean_s"]), [], Selection()
    )
    assert [each.split(":")[0] for each in two.left_out] == ["c, walltime"]
    same = find_metrics(["run_mean_completed_s", "spearman_size_run"])
    told = compare(site, ["c"], same, [], Selection())
    assert told.left_out == [
        f"c, walltime, size-vs-walltime: 1 of 3 jobs; left out {short}, {failed}"
    ]


def test_jobs_left_out_of_two_clusters(site: Session) -> None:
    metrics, longer = find_metrics(["run_mean_completed_s"]), Selection(min_run_s=100.0)
    short = "only jobs that ran for at least 100 s"
    assert compare(site, ["d", "c"], metrics, [], longer).left_out == [
        f"c, walltime: 1 of 3 jobs; left out 1: {short}, 1: only jobs that are completed",
        f"d, walltime: 1 of 2 jobs; left out 1: {short}",
    ]


def test_what_is_not_a_number_is_no_cell(site: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hakaru.comparison._compare.read", lambda *_: Cell(float("nan")))
    told = compare(site, ["c"], find_metrics(["num_jobs"]), [], Selection())
    assert told.cell("num_jobs", "c") == Cell(None, "these jobs do not define it")


def test_jobs_of_the_other_unit_are_told_once(lake: Lake) -> None:
    rows = [job(n, num_gpus=0, num_cpus=8, run_s=60.0) for n in range(1200)]
    put_jobs(lake, [*rows, job(5000, run_s=360_000.0)])
    metrics = find_metrics(["run_mean_s", "run_mean_completed_s", "share_single_pe"])
    remark = (
        'c: 1,200 jobs without GPUs are left out: --unit cpu (in hakaru.toml: unit = "cpu") '
        "counts processors"
    )
    rule = "1,200: only jobs with a known number of GPUs (or processors), at least one"
    with open_session(lake) as session:
        told = compare(session, ["c"], metrics, [], Selection()).left_out
        assert told == [
            f"c, parallelism, walltime: 1 of 1,201 jobs; left out {rule}",
            remark,
        ]
        failed = Selection(states=("failed",))
        (line,) = compare(session, ["c"], metrics[2:], [], failed).lines
        assert line.cells["c"].reason == (
            f"no job counts of 1,201; left out {rule}, 1: only jobs that are failed "
            f"(--state any counts jobs however they ended); {remark}"
        )
    with open_session(lake, unit="cpu") as session:
        rule = "1: only jobs with a known number of processors, at least one"
        assert compare(session, ["c"], metrics[:1], [], Selection()).left_out == [
            f"c, parallelism: 1,200 of 1,201 jobs; left out {rule}",
            "c: 1 job without processors is left out: --unit gpu "
            '(in hakaru.toml: unit = "gpu") counts GPUs',
        ]


@pytest.fixture
def tokyo(lake: Lake) -> Lake:
    """Submitted at nine in the evening in UTC, which is six in the morning of the next day in Tokyo."""
    rows = [
        job(f"q{n}/7", submitted_at=utc(f"2018-01-0{n}T21:00:00"), user=f"q{n}/0", run_s=30.0)
        for n in (1, 3)
    ]
    put_jobs(lake, rows, '{"zone": "Asia/Tokyo"}')
    return put_jobs(lake, [job(9, cluster="d", state="failed")])


def test_the_period_is_told_by_the_site_s_clock(tokyo: Lake) -> None:
    with open_session(tokyo) as session:
        told = period_of(session, "c")
        assert told == (
            "the jobs of c were submitted from 2018-01-02 06:00 to 2018-01-04 06:00 (Asia/Tokyo)"
        )


def test_users_of_a_log_that_numbers_them_anew(tokyo: Lake) -> None:
    """Whatever the rules leave out: the question is about the log."""
    analyses = load_all()
    with open_session(tokyo) as session:
        for chosen in (Selection(), Selection(states=("failed",)), Selection(min_run_s=99.0)):
            assert users_note(session, "c", chosen), chosen
            assert not users_note(session, "d", chosen), chosen
        mine = Selection(clusters=("c",))
        by_user = session.run(analyses.get("users-by-quarter"), mine)
        assert [line[:3] for line in notes_on_users(session, by_user)] == ["c: "]
        by_log = session.run(analyses.get("users-by-quarter"), mine, quarter="log")
        assert notes_on_users(session, by_log) == []
        assert notes_on_users(session, session.run(analyses.get("queues"), mine)) == []


def test_a_selection_without_jobs_tells_the_period(tokyo: Lake) -> None:
    with open_session(tokyo) as session:
        none = Selection(since="2030-01-01")
        (line,) = compare(session, ["c", "d"], find_metrics(["num_jobs"]), [], none).lines
        assert period_of(session, "e") == "e holds no jobs"
    assert line.cells["c"].reason == (
        "no job is selected; the jobs of c were submitted from 2018-01-02 06:00 to "
        "2018-01-04 06:00 (Asia/Tokyo)"
    )
    assert line.cells["d"].reason.endswith("from 2018-01-01 00:00 to 2018-01-01 00:00 (UTC)")


def test_users_of_a_part_of_the_log(tokyo: Lake) -> None:
    """One file numbers its users once, unless the log is said to be of several."""
    said = (
        "user ids hold within one log file only, and there are 2: somebody in two files has two ids"
    )
    known = find_metrics(["num_users"])
    with open_session(tokyo) as session:
        for chosen, note, users in [
            (Selection(), said, Cell(None, ACROSS_LOGS)),
            (Selection(where="job_id = 'q1/7'"), "", Cell(1.0, counted=(1, 1))),
        ]:
            assert users_note(session, "c", chosen) == note
            assert users_note(session, "c", replace(chosen, by="user", weight="gpu-hours")) == note
            assert compare(session, ["c"], known, [], chosen).cell("num_users", "c") == users
        both = Selection(clusters=("c", "d"), by="cluster")
        every = session.run(load_all().get("concentration"), both)
        assert notes_on_users(session, every) == [f"c: {said}"]
    put_jobs(tokyo, [job(1, cluster="e")], '{"users_per_file": true}')
    with open_session(tokyo) as session:
        assert "(users_per_file)" in users_note(session, "e", Selection())
        assert not users_note(session, "d", Selection())


def test_each_analysis_that_counts_users_says_so(tokyo: Lake) -> None:
    with open_session(tokyo) as session:
        for id in ("concentration", "users-by-quarter", "users", "accounts"):
            result = session.run(load_all().get(id), Selection(clusters=("c",)))
            assert len(notes_on_users(session, result)) == 1, id


def test_only_what_was_asked_for_stands_beside(tokyo: Lake) -> None:
    with open_session(tokyo) as session:
        session.missing = {"c": 0.5, "d": 0.25}
        jobs = find_metrics(["num_jobs"])
        every = compare(session, ["d"], jobs, None, Selection())
        some = compare(session, ["d"], jobs, ["Kraken"], Selection())
        part = compare(session, ["d"], jobs, ["Helios-Venus"], Selection())
    assert {"Helios", "Philly"} <= every.lines[0].published.keys()
    assert "Helios-Venus" not in every.lines[0].published, "a part of a whole that is there"
    assert list(some.lines[0].published) == ["Kraken"]
    assert list(part.lines[0].published) == ["Helios-Venus"], "a part that is asked for by its name"
    assert every.missing == {"d": 0.25}


def test_why_there_is_no_number(tokyo: Lake) -> None:
    """d's one job failed; those of c ran for half a minute. A rule that leaves nobody out is not named."""
    with open_session(tokyo) as session:
        (line,) = compare(session, ["c", "d"], find_metrics(["wra_mean"]), [], Selection()).lines
    assert line.cells["c"].reason == (
        "no job counts of 2; left out 2: only jobs that ran for at least 60 s"
    )
    assert line.cells["d"].reason == (
        "no job counts of 1; left out 1: only jobs that are completed "
        "(--state any counts jobs however they ended)"
    )


def test_an_analysis_that_counts_the_same_jobs_twice_is_named_once(lake: Lake) -> None:
    put_jobs(lake, [job(1), job(2), job(3, run_s=None)])
    metrics = find_metrics(["run_mean_s", "run_mean_completed_s"])
    with open_session(lake) as session:
        told = compare(session, ["c"], metrics, [], Selection()).left_out
    assert told == ["c, walltime: 2 of 3 jobs; left out 1: only jobs with a known run time"]


def test_people_whom_a_log_does_not_name_are_unknown_not_none(lake: Lake) -> None:
    put_jobs(lake, [job(n, user=None, account=None) for n in range(3)])
    ids = ["num_users", "num_accounts", "jobs_per_user_mean"]
    with open_session(lake) as session:
        told = compare(session, ["c"], find_metrics(ids), [], Selection())
        drawn = draw(session.run(load_all().get("concentration")))
    for line in told.lines:
        assert line.cells["c"].value is None, line.metric.id
        assert line.cells["c"].reason == "the log does not name them"
    assert [each["name"] for each in drawn.option["series"]] == ["– users", "– accounts"]
