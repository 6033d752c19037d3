"""Scenarios: what each key means, and every problem told at once with the names that are allowed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hakaru.sim import Limit
from hakaru.sim.whatif import ScenarioError, example, read
from hakaru.sim.whatif.scenario import PLAN, TOP, AccurateRequests

ONE = "[[variant]]\nnodes = +4\n"


def problems(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as raised:
        read(text, "s.toml")
    first, *lines = str(raised.value).splitlines()
    number = len(lines) - 1
    assert first == f"s.toml has {number} problem{'s' if number > 1 else ''}:"
    return [line.strip() for line in lines[:-1]]


def test_a_variant_begins_as_the_baseline() -> None:
    scenario = read(
        """
        [baseline]
        policy = "multifactor"
        limits = [{ scope = "user", what = "running-gpus", value = 8, hours = [22, 6] }]
        [[variant]]
        name = "more"
        nodes = +4
        [[variant]]
        limits = []
        """
    )
    more, second = scenario.variants
    assert (scenario.baseline.name, more.name, second.name) == ("baseline", "more", "variant 2")
    assert (more.policy, more.nodes) == ("multifactor", 4)
    assert more.limits == (Limit("user", "running-gpus", 8, hours=(22, 6)),)
    assert second.limits == ()
    assert second.nodes == 0


def test_a_limit_may_be_written_as_on_the_command_line() -> None:
    (variant,) = read('[[variant]]\nlimits = ["user:running-gpus=8,hours=22-6"]').variants
    assert variant.limits == (Limit("user", "running-gpus", 8, hours=(22, 6)),)


def test_days_of_weights_become_seconds() -> None:
    scenario = read(
        '[[variant]]\npolicy = "multifactor"\n'
        "weights = { max_age_d = 2, queue = { short = 5 }, qos = { high = 3 } }"
    )
    points = {"queue": {"short": 5.0}, "qos": {"high": 3.0}}
    assert scenario.variants[0].weights == {"max_age_s": 172800.0} | points


def test_failures_are_moments() -> None:
    scenario = read(
        "[[variant]]\nfailures = [{ at = 2018-04-01 }, { at = 2018-04-01T09:00:00+09:00, nodes = 2 }]"
    )
    first, second = scenario.variants[0].failures
    assert (first.at, first.nodes, first.hours) == (datetime(2018, 4, 1), 1, 24.0)
    assert second.at == datetime(2018, 4, 1, tzinfo=UTC)


def test_the_least_that_is_allowed() -> None:
    text = "[[variant]]\naccurate_requests = {{ users = {}, factor = {}, at_least_min = {} }}\n"
    (variant,) = read(text.format(0, 1, 0)).variants
    assert variant.accurate_requests == AccurateRequests(0, 1, 0)
    for values in ((-1, 1, 0), (100.5, 1, 0), (0, 0.99, 0), (0, 1, -0.5)):
        assert len(problems(text.format(*values))) == 1, values


def test_all_problems_are_told_at_once() -> None:
    found = problems(
        """
        sed = 1
        [machine]
        processors = 8
        packing = "tight"
        nodes = 2
        [[variant]]
        name = "a"
        policy = "esy"
        limits = [{ scope = "usr", what = "running-gpus" }]
        [[variant]]
        name = "a"
        load = -1
        accurate_requests = 120
        low_queues = ["x"]
        weights = { size = 1 }
        failures = [{ hours = 1 }]
        """
    )
    assert found == [
        "sed: unknown key; did you mean seed?",
        "machine.packing: found 'tight'; known: best-fit, spread",
        "machine: say processors (one pool, without nodes) or nodes and size, not both; found processors "
        "and nodes",
        "variant 1 (a).policy: there is no policy 'esy'; did you mean easy or easy++?",
        "variant 1 (a).limits[1].scope: found 'usr'; did you mean user?",
        "variant 1 (a).limits[1]: lacks value; "
        'write { scope = "user", what = "running-gpus", value = 16 }',
        "variant 2 (a).load: expected a number above 0 and at most 10 (1.2 for a fifth more), found -1",
        "variant 2 (a).failures[1]: lacks at, the moment, e.g. at = 2018-04-01T09:00:00",
        "variant 2 (a).accurate_requests.users: expected a number of at least 0 and at most 100, found 120",
        "variant 2 (a).weights: the policy easy has none; use multifactor",
        "variant 2 (a).low_queues: the policy easy stops no job; use preempting",
        "the name 'a' is used 2 times",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no [[variant]]"),
        (
            "[[variant]]\nend_idle_after_h = 0",
            "variant 1.end_idle_after_h.hours: expected a number above 0",
        ),
        ("[[variant]]\nend_idle_after_h = { use = 2 }", "end_idle_after_h: lacks hours"),
        ('[[variant]]\npolicy = "preempting"', "needs low_queues"),
        ("[[variant]]\nnodes = 1.5", "a whole number without quotes such as +4 or -4, found 1.5"),
        ("[[variant]]\nqueues = 3", "expected a table a queue, found 3"),
        ("variant = 3", "variant: expected [[variant]] in double brackets"),
        ("[variant]\nnodes = 3", "variant: expected [[variant]] in double brackets"),
        ("baseline = 3\n" + ONE, "baseline: expected a table, found 3"),
        ('months = "some"\n' + ONE, "found 'some'; known: trusted, plausible, all"),
        ('[[variant]]\nestimates = "x"', "use request, perfect, or scaled:FACTOR"),
        ("[[variant]]\nfailures = [{ at = true }]", "expected a time such as"),
        ("[[variants]]\nnodes = 3", "variants: unknown key; did you mean variant?"),
        ("[[variant]]\nnods = 3", "variant 1.nods: unknown key; did you mean nodes?"),
        ('[[variant]]\nlimits = ["user:runing-gpus=3"]', "did you mean running-gpus"),
        (
            '[[variant]]\nlimits = [{scope="all", what="running-jobs", value=1, only="x"}]',
            "takes no name, found 'x'",
        ),
        (
            '[[variant]]\nlimits = [{scope="all", what="running-jobs", value=1, hours=[9, 9]}]',
            "limits[1].hours: expected two hours from 0 to 24 that differ",
        ),
        (
            '[[variant]]\nlimits = [{scope="all", what="running-jobs", value=1, hours=[24, 0]}]',
            "limits[1].hours: expected two hours from 0 to 24 that differ",
        ),
        (
            '[[variant]]\npolicy = "conservative"\nlimits = ["user:running-jobs=3"]',
            "the policy conservative knows no limits",
        ),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    assert any(said in problem for problem in problems(text))


def test_what_is_no_toml_is_said() -> None:
    with pytest.raises(ScenarioError, match=r"s\.toml: not valid TOML: "):
        read("[[variant", "s.toml")


def test_the_example_is_a_scenario_that_names_every_key() -> None:
    scenario = read(example())
    assert len(scenario.variants) == 5
    assert scenario.variants[0].nodes == 4
    words = example()
    assert all(key in words for key in set(PLAN) | set(TOP))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = " + "[" * 5000, "nested too deeply"),
        ("seed = 1" + "0" * 5000, "a number of thousands of digits; 2,147,483,647 is the largest"),
        ("[[variant]]\nqueues = 0x" + "f" * 5000, "a number of thousands of digits"),
        ("seed = 1" + "0" * 30 + "\n" + ONE, "at most 2,147,483,647, found one of about 31 digits"),
        ("[[variant]]\nnodes = -0x1\n", "not valid TOML"),
        ("[[variant]]\nnodes = -1" + "0" * 30, "found one of about 31 digits"),
        ("[[variant]]\nload = 1" + "0" * 400, "found one of about 401 digits"),
    ],
    ids=["deep", "digits", "digits of a table", "seed", "sign", "nodes", "load"],
)
def test_texts_that_only_a_foe_would_write_are_refused(text: str, told: str) -> None:
    with pytest.raises(ScenarioError, match=told) as raised:
        read(text)
    assert len(raised.value.problems) == 1


def test_an_error_has_its_problems_one_by_one() -> None:
    with pytest.raises(ScenarioError) as raised:
        read("seed = -1\n[[variant]]\nload = -1\n", "s.toml")
    assert [each.split(":")[0] for each in raised.value.problems] == [
        "seed",
        "variant 1.load",
    ]
