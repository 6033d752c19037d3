"""What `hakaru advise` prints and stores of an advice written by hand: each number in its place."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from hakaru.cli import _advice
from hakaru.cli._advice import Told
from hakaru.cli._schedule import SHOWN
from hakaru.cli._table import Column
from hakaru.sim.advise import Constraints, Loss, Objective, Rule
from hakaru.sim.limits import Limit
from hakaru.sim.machine import Machine
from hakaru.sim.policies import POLICIES

WAIT = "p95_wait_s"


def measures(wait_s: float, **others: float) -> dict[str, float]:
    """Every metric is 0.5, but the waits that are given."""
    return dict.fromkeys(SHOWN, 0.5) | {WAIT: wait_s} | others


def measured(chosen: dict[str, float], every: dict[str, float], **more: Any) -> Any:
    return SimpleNamespace(chosen=chosen, all_jobs=every, **({"broken": (), "losses": ()} | more))


def found(point: dict[str, Any], searched: Any, held_out: Any) -> Any:
    return SimpleNamespace(point=point, searched=searched, held_out=held_out)


NOW = {"gpus_per_user": 16, "jobs_per_user": 16, "half_life_h": 168, "age": 1000}
POINT = NOW | {"gpus_per_user": 4, "half_life_h": 48}


def advice(**changed: Any) -> Any:
    """Waits of the chosen: 100 s searched and 200 s held out, brought to 50 s and 120 s."""
    baseline = found(
        NOW, measured(measures(100), measures(10)), measured(measures(200), measures(30))
    )
    advised = found(
        POINT, measured(measures(50), measures(11)), measured(measures(120), measures(33))
    )
    other = found(
        NOW | {"jobs_per_user": 2},
        measured(measures(70), measures(12)),
        measured(measures(180), measures(34), broken=("user", "utilisation")),
    )
    workload = SimpleNamespace(left_out={"too large": 1200}, notes={"ask for no time": 1})
    given = {
        "verdict": SimpleNamespace(kind="change", sentence="Change them.", why=("because",)),
        "rule": None, "point": POINT, "baseline": baseline, "advised": advised, "refused": None,
        "best": [advised, other], "importance": {"gpus_per_user": 0.75},
        "without": {"gpus_per_user": 90.0, "half_life_h": 60.0},
        "broken_without": {"gpus_per_user": ("user",), "half_life_h": ()},
        "split": 1514764800, "num_trials": 1, "num_settings": 9, "num_allowed": 7,
        "broken": {"user": 2}, "num_searched": 1234, "num_held_out": 1, "seconds": 90.0,
        "constraints": Constraints({"utilisation": 0.015}, {"account": 0.0, "user": 0.1}),
        "months": (2, 5), "replayed": SimpleNamespace(workload=workload),
        "errors": {"chosen": {WAIT: 80.0}, "all": {WAIT: 2.9}},
        "space": SimpleNamespace(
            now=NOW,
            knobs=[SimpleNamespace(name=name) for name in NOW],
            baseline=Rule(POLICIES.get("easy"), (Limit("user", "running-gpus", 16),)),
        ),
    }  # fmt: skip
    return SimpleNamespace(**(given | changed))


def told(**changed: Any) -> Told:
    objective = Objective(WAIT, lambda workload: None, "ann's jobs")
    return Told(
        advice(**changed), "c", "gpu", "Asia/Kolkata", Machine.of_nodes(2, 8), objective,
        whence="that of the settings",
    )  # fmt: skip


def cells(columns: list[Column]) -> dict[str, list[str]]:
    return {column.name: list(column.cells) for column in columns}


def test_what_was_asked_and_searched() -> None:
    """The split is at midnight in UTC, which is half past five in India."""
    assert [text for text, _ in _advice._asked(told(), 1000)] == [
        "for c, 2 nodes x 8 = 16 GPUs",
        "asked: the lowest p95 wait of ann's jobs, utilisation kept within 1.5 %, no account losing "
        "more than 0 %, no user losing more than 10 %",
        "the machine is that of the settings",
        "what you have: easy, user:running-gpus=16",
        "searched: 1,234 jobs submitted before 2018-01-01 05:30, 1 trial in 90 s, 7 of 9 settings keep "
        "what must be kept (broken by others: user: 2); judged by the 1 job after",
        "counted are the jobs of the 2 of 5 months the log can reproduce (see below); all are replayed; "
        "--months all counts them all",
        "left out 1,200: too large",
        "assumed: 1 job asks for no time",
    ]


def test_what_is_said_where_nothing_is_kept_broken_or_left_out() -> None:
    workload = SimpleNamespace(left_out={}, notes={})
    plain = told(
        broken={}, months=(5, 5), constraints=Constraints(),
        replayed=SimpleNamespace(workload=workload),
    )  # fmt: skip
    plain = replace(plain, objective=Objective("utilisation"))
    lines = [text for text, _ in _advice._asked(plain, 1000)]
    assert lines[1] == "asked: the highest utilisation of all jobs, nothing to be kept"
    assert "7 of 9 settings keep what must be kept; judged" in lines[4] and len(lines) == 5


def test_settings_that_change_with_what_each_is_worth() -> None:
    assert cells(_advice._settings(told())) == {
        "setting": ["GPUs at once for each user", "half-life of usage"],
        "now": ["no limit", "7.0 days"],
        "advised": ["4", "2.0 days"],
        "p95 wait without it": ["90 s", "60 s"],
        "importance": ["75.0 %", "–"],
        "breaks without it": ["user", "–"],
    }
    assert "breaks without it" not in cells(_advice._settings(told(broken={})))
    assert _advice._without(told()).startswith(
        "without it: if this setting alone stayed, on the weeks searched, where all together bring 100 s "
        "to 50 s;"
    )


@pytest.mark.parametrize(
    ("kind", "heading"),
    [("change", "advised"), ("try", "to try"), ("keep", "best found, not advised")],
)
def test_the_heading_says_whether_settings_are_advised(kind: str, heading: str) -> None:
    verdict = SimpleNamespace(kind=kind, sentence="", why=())
    assert _advice._settings(told(verdict=verdict))[2].name == heading


def test_evidence_is_of_the_weeks_held_out() -> None:
    """Chosen: 200 s to 120 s, just within the error of 80 s; all: 30 s to 33 s, above their 2.9 s."""
    columns = _advice._evidence(told())
    assert [column.name for column in columns] == [
        "weeks held out", "chosen: now", "then", "change", "all: now", "then", "change",
    ]  # fmt: skip
    at = list(columns[0].cells).index("wait, 95th percentile")
    row = [column.cells[at] for column in columns[1:]]
    assert row == ["3.3 min", "2.0 min", "−40.0 % ≈", "30 s", "33 s", "+10.0 %"]
    assert "GPU-hours lost to restarts (whole replay)" in columns[0].cells
    assert "jobs that never start" not in columns[0].cells and "machine in use" in columns[0].cells
    assert _advice._marks(columns).startswith("≈: the change is smaller")
    assert _advice._marks([Column("a", ["1"])]) == ""


def test_evidence_of_all_jobs_alone_and_none_where_nothing_changes() -> None:
    processors = replace(told(), objective=Objective(WAIT), unit="cpu")
    columns = _advice._evidence(processors)
    assert [column.name for column in columns][1:] == ["all: now", "then", "change"]
    assert "processor-hours lost to restarts (whole replay)" in columns[0].cells
    assert _advice._evidence(told(point=NOW)) == []


def test_no_change_has_no_mark_and_an_unknown_error_none() -> None:
    for errors, now, then, is_within in (
        ({WAIT: 80.0}, 200.0, 120.0, True),
        ({WAIT: 79.9}, 200.0, 120.0, False),
        ({WAIT: 80.0}, 200.0, 200.0, False),
        ({}, 200.0, 199.0, False),
        ({WAIT: 0.0}, 200.0, 199.0, False),
    ):
        given = told(errors={"chosen": errors, "all": {}})
        assert _advice._is_within(given, "chosen", WAIT, now, then) is is_within, (errors, then)


def test_the_best_of_the_search_by_both_parts_of_the_weeks() -> None:
    assert cells(_advice._best(told())) == {
        "best of the search": ["1", "2"],
        "gpus_per_user": ["4", "no limit"],
        "jobs_per_user": ["no limit", "2"],
        "half_life_h": ["2.0 days", "7.0 days"],
        "age": ["1,000", "1,000"],
        "searched": ["50 s", "70 s"],
        "held out": ["2.0 min", "3.0 min"],
        "breaks there": ["–", "user, utilisation"],
    }


def test_a_metric_to_raise_has_its_own_sign() -> None:
    """The search lowers −0.8: it is a utilisation of 80 %."""
    given = replace(told(without={"gpus_per_user": -0.8, "half_life_h": -0.7}),
                    objective=Objective("utilisation"))  # fmt: skip
    assert cells(_advice._settings(given))["utilisation without it"] == ["80.0 %", "70.0 %"]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("half_life_h", 48, "2.0 days"),
        ("gpus_per_user", 15, "15"),
        ("gpus_per_user", 16, "no limit"),
        ("jobs_per_user", 17, "no limit"),
        ("age", 1500, "1,500"),
        ("age", 16, "16"),
        ("backfill", "easy", "easy"),
    ],
)
def test_settings_are_written_in_their_units(name: str, value: Any, text: str) -> None:
    assert _advice._setting_value(told(), name, value) == text


def test_who_loses_is_of_what_was_refused_if_anything_was() -> None:
    lost = Loss("user", "ann", 5, 10.0, 20.0)
    refused = found(POINT, None, SimpleNamespace(losses=(lost,)))
    assert _advice._judged(advice(refused=refused)).losses == (lost,)
    assert _advice._judged(advice()).losses == ()


def test_the_error_of_the_replay_in_a_sentence(monkeypatch: Any) -> None:
    row = {"jobs": "all", "num_jobs": 1234, "recorded_mean_s": 50.0, "simulated_mean_s": 40.0,
           "recorded_median_s": 30.0, "simulated_median_s": 20.0, "median_apart_s": 10.0,
           "share_within_5min": 0.9}  # fmt: skip
    asked: list[Any] = []

    def differences(
        replayed: Any, by: str | None = None, zone: str = "UTC", keep: Any = None
    ) -> Any:
        asked.append(keep)
        return pa.Table.from_pylist([row])

    monkeypatch.setattr("hakaru.sim.replay.differences", differences)
    monkeypatch.setattr("hakaru.sim.replay.months_of", lambda replayed, zone: [])
    given = replace(told(counted="those that count"), date_notes=["its dates are relative"])
    lines = _advice._fidelity(given, 1000)
    assert [next(lines)[0] for _ in range(3)] == [
        "The error of the replay",
        "for the 1,234 jobs compared, the recorded median wait is 30 s and that replayed under what you "
        "have 20 s (means 50 s and 40 s); half of the jobs are less than 10 s apart, 90.0 % within 5 min",
        "its dates are relative",
    ]
    assert asked == ["those that count"]
    row["num_jobs"] = 0
    assert [text for text, _ in _advice._fidelity(told(counted=None), 1000)] == [
        "The error of the replay",
        "the log records no waits to compare the replay with",
    ]
