"""The search for settings: what is tried, what the sampler is told, and what is chosen of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.sim import Limit
from hakaru.sim.advise import Effort, Measured, Objective, Rule, Space
from hakaru.sim.advise import search as searching
from hakaru.sim.advise.search import Search
from hakaru.sim.advise.space import Knob
from tests.sim.test_advise import EASY

optuna = pytest.importorskip("optuna")
SPACE = Space(EASY, (Knob("gpus_per_user", 8, 1, 8), Knob("jobs_per_user", 8, 1, 8)), 8)
BASELINE = Measured(1000.0, {}, {})


class Case:
    """A limit of so many GPUs gives so many seconds; fewer than 3 make somebody lose by an hour."""

    def __init__(self, metric: str = "mean_wait_s") -> None:
        self.objective, self.baseline = Objective(metric), BASELINE
        self.played: list[tuple[int, int]] = []

    def of(self, rule: Rule) -> Measured:
        held = {limit.what: limit.value for limit in rule.limits}
        gpus, jobs = held.get("running-gpus", 8), held.get("running-jobs", 8)
        self.played.append((gpus, jobs))
        lost = {"no user loses": 1.0 if gpus < 3 else -0.5, "keep p95_wait_s": jobs - 8.5}
        return Measured(100.0 * gpus + jobs, {}, {}, lost)


@pytest.fixture
def studies(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The studies that Optuna is asked for."""
    made: list[Any] = []
    create = optuna.create_study

    def kept(**options: Any) -> Any:
        made.append(create(**options))
        return made[-1]

    monkeypatch.setattr(optuna, "create_study", kept)
    return made


def searched(case: Any, effort: Effort, tell: Any = None) -> Search:
    search = Search(SPACE, case, effort, tell)
    search.run()
    return search


def test_the_sampler_is_told_values_and_what_they_break(studies: list[Any]) -> None:
    search = searched(Case(), Effort(12, seed=2))
    (study,) = studies
    assert len(study.trials) == search.num_trials == 12
    assert study.trials[0].params == {"gpus_per_user": 8, "jobs_per_user": 8}  # as it is now
    assert study.trials[0].value == 1000
    for trial in study.trials[1:]:
        gpus, jobs = trial.params["gpus_per_user"], trial.params["jobs_per_user"]
        if (gpus, jobs) != (8, 8):
            assert trial.value == 100 * gpus + jobs
            assert trial.constraints == {
                "no user loses": 1.0 if gpus < 3 else -0.5,
                "keep p95_wait_s": jobs - 8.5,
            }


def test_nothing_is_played_twice_and_the_baseline_not_at_all() -> None:
    case = Case()
    search = searched(case, Effort(40, seed=3))
    assert len(case.played) == len(set(case.played)) == len(search.known) - 1
    assert (8, 8) not in case.played


def test_another_seed_tries_other_settings() -> None:
    played = []
    for seed in (1, 1, 2):
        case = Case()
        searched(case, Effort(8, seed=seed))
        played.append(case.played)
    assert played[0] == played[1] != played[2]


@pytest.mark.parametrize(
    ("num_trials", "batches"), [(1, [1]), (4, [4]), (5, [4, 1]), (11, [4, 4, 3]), (0, [])]
)
def test_trials_are_asked_for_by_four(num_trials: int, batches: list[int]) -> None:
    search: Any = SimpleNamespace(effort=Effort(num_trials))
    assert list(Search._batches(search)) == batches


def test_progress_is_the_best_that_is_allowed_in_the_metric_s_own_sign() -> None:
    told: list[tuple[int, int, float]] = []
    search = Search(SPACE, Case("utilisation"), Effort(6), lambda *each: told.append(each))  # type: ignore[arg-type]
    search.known = {
        (1, 1): ({}, Measured(-0.5, {}, {})),
        (2, 1): ({}, Measured(-0.75, {}, {})),
        (3, 1): ({}, Measured(-0.9, {}, {}, {"every job begins": 1.0})),
    }
    search.num_trials = 4
    search._report()
    assert told == [(4, 6, 0.75)]


def test_constraints_are_counted_the_one_most_broken_first() -> None:
    search: Any = SimpleNamespace(
        known={
            1: ({}, Measured(1.0, {}, {}, {"a": 1.0, "b": 1.0})),
            2: ({}, Measured(1.0, {}, {}, {"a": 0.0, "b": 0.1})),
            3: ({}, Measured(1.0, {}, {}, {"c": -1.0, "b": 2.0})),
        }
    )
    assert list(Search.broken(search).items()) == [("b", 3), ("a", 1)]


def simplified(values: dict[tuple[int, ...], Measured], num: int) -> list[int]:
    """Of a point where all settings are 1 and give 500 s, against 1000 s where all are 0."""
    names = [f"knob {number}" for number in range(num)]

    def measured(points: Sequence[Any], _: Any) -> list[Measured]:
        return [values[tuple(each.values())] for each in points]

    search: Any = SimpleNamespace(
        baseline=BASELINE,
        space=SimpleNamespace(now=dict.fromkeys(names, 0)),
        measured=measured,
    )
    best = Measured(500.0, {}, {})
    got = Search.simplified(search, dict.fromkeys(names, 1), best, None)  # type: ignore[arg-type]
    return [int(value) for value in got.values()]


def test_a_setting_is_not_put_back_where_that_breaks_what_must_be_kept() -> None:
    better, broken = Measured(400.0, {}, {}), {"no user loses": 0.1}
    assert simplified({(0,): better}, 1) == [0]
    assert simplified({(0,): Measured(400.0, {}, {}, broken)}, 1) == [1]


def test_settings_are_put_back_one_after_the_other() -> None:
    """Each alone brings nothing, but both together bring the whole gain: one of them stays."""
    values = {(0, 1): Measured(500.0, {}, {}), (0, 0): Measured(1000.0, {}, {})}
    assert simplified(values, 2) == [0, 1]


def test_without_says_what_each_change_brings() -> None:
    search = Search(SPACE, Case(), Effort(), None)  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as pool:
        got = search.without({"gpus_per_user": 3, "jobs_per_user": 2}, pool)
        one = search.without({"gpus_per_user": 3, "jobs_per_user": 8}, pool)
    assert {name: each.value for name, each in got.items()} == {
        "gpus_per_user": 802,
        "jobs_per_user": 308,
    }
    assert {name: each.value for name, each in one.items()} == {"gpus_per_user": 1000}


@pytest.mark.parametrize(
    ("knob", "is_on"),
    [
        (Knob("k", 5, 5, 9), True),
        (Knob("k", 9, 5, 9), True),
        (Knob("k", 4, 5, 9), False),
        (Knob("k", 10, 5, 9), False),
        (Knob("k", 1000, -500, 9000, step=500), True),
        (Knob("k", 1100, -500, 9000, step=500), False),
        (Knob("k", 5, 1, 9, step=2), True),
        (Knob("k", 4, 1, 9, step=2), False),
        (Knob("k", "easy", choices=("easy", "easy++")), True),
        (Knob("k", "fcfs", choices=("easy", "easy++")), False),
    ],
)
def test_only_settings_that_the_sampler_could_choose_are_its_first_trial(
    knob: Knob, is_on: bool
) -> None:
    search: Any = SimpleNamespace(space=Space(EASY, (Knob("other", 0, 0, 1), knob), 8))
    assert Search._is_on_grid(search, "k") == is_on


def test_importance_is_by_setting_and_empty_from_too_few_trials() -> None:
    assert searched(Case(), Effort(1)).importance == {}
    importance = searched(Case(), Effort(40, seed=1)).importance
    assert sum(importance.values()) == pytest.approx(1)
    assert importance["gpus_per_user"] > importance["jobs_per_user"]


def test_effort_by_default() -> None:
    assert Effort() == Effort(100, math.inf, 1, 0, 0.7)
    assert searching.BATCH == 4


def test_both_limits_of_a_point_are_in_its_rule() -> None:
    rule = SPACE.rule({"gpus_per_user": 3, "jobs_per_user": 2})
    assert rule.limits == (Limit("user", "running-gpus", 3), Limit("user", "running-jobs", 2))
