"""Each key of a scenario: where it goes, what it is by default, and from where to where it may go."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from hakaru.sim import Limit
from hakaru.sim.idle import IdleRule
from hakaru.sim.queues import QueueRule
from hakaru.sim.site import MachineSpec
from hakaru.sim.whatif import Plan, Scenario, ScenarioError, read
from hakaru.sim.whatif._check import Checker
from hakaru.sim.whatif.scenario import AccurateRequests, Failure, _moment

ONE = "[[variant]]\nnodes = 4\n"
EVERYTHING = """
seed = 0
num_resamples = 100
months = "plausible"
[machine]
nodes = 3
size = 4
packing = "spread"
whole_nodes = false
locality = "required"
switch_size = 2
[baseline]
name = "now"
policy = "multifactor"
weights = { age = 1, max_age_d = 2, size = 3, fair_share = 4, half_life_d = 0.5, period_s = 6 }
limits = ["all:queued-jobs=7"]
nodes = -1
machine = { processors = 9 }
estimates = "scaled:2"
events = "batched"
accurate_requests = { users = 25, factor = 1.5, at_least_min = 3 }
scale_requests = 0.5
load = 10
queues.short = { max_walltime_h = 0.5, max_gpus = 1, over = "refuse", takes_from = ["long", "night"] }
failures = [{ at = 2018-04-01T09:00:00, nodes = 2, hours = 0.5, kind = "drain" }]
end_idle_after_h = { hours = 3, use = 0.99, gap_min = 5 }
[[variant]]
name = "v"
"""


def only_problem(text: str) -> str:
    with pytest.raises(ScenarioError) as raised:
        read(text)
    (problem,) = raised.value.problems
    return problem


def test_every_key_goes_to_its_place() -> None:
    got = read(EVERYTHING)
    assert (got.seed, got.num_resamples, got.months) == (0, 100, "plausible")
    assert got.machine == MachineSpec(3, 4, None, "spread", False, "required", 2)
    assert got.baseline == Plan(
        name="now",
        policy="multifactor",
        weights={
            "age": 1.0, "max_age_s": 172800.0, "size": 3.0, "fair_share": 4.0, "half_life_s": 43200.0,
            "period_s": 6.0,
        },
        limits=(Limit("all", "queued-jobs", 7),),
        nodes=-1,
        machine=MachineSpec(processors=9),
        estimates="scaled:2",
        events="batched",
        accurate_requests=AccurateRequests(25, 1.5, 3),
        scale_requests=0.5,
        load=10,
        queues={"short": QueueRule(0.5, 1, "refuse", ("long", "night"))},
        failures=(Failure(datetime(2018, 4, 1, 9), 2, 0.5, "drain"),),
        end_idle_after_h=IdleRule(3, 0.99, 5),
    )  # fmt: skip
    assert got.plans == (got.baseline, *got.variants)
    assert got.idle_rules == (IdleRule(3, 0.99, 5),)  # once, though the variant has it too


def test_what_is_not_said_is_as_documented() -> None:
    got = read(ONE)
    assert got == Scenario(Plan("baseline"), (Plan("variant 1", nodes=4),))
    assert (got.seed, got.num_resamples, got.months) == (1, 1000, "trusted")
    plan = got.baseline
    assert (plan.policy, plan.estimates, plan.events) == ("easy", "request", "one-by-one")
    assert (plan.load, plan.scale_requests, plan.nodes) == (None, None, 0)
    assert got.idle_rules == ()
    assert QueueRule() == QueueRule(None, None, "cut", None)
    changed = "[baseline]\nend_idle_after_h = 3\n[[variant]]\nend_idle_after_h = 2"
    assert read(changed).idle_rules == (IdleRule(3), IdleRule(2))
    assert read("[[variant]]\nend_idle_after_h = 2").variants[0].end_idle_after_h == IdleRule(
        2, 0.0, 10.0
    )
    assert read("[[variant]]\naccurate_requests = 50").variants[0].accurate_requests == (
        AccurateRequests(50, 1.1, 10)
    )


def test_a_limit_with_all_its_keys() -> None:
    text = 'limits = [{scope="user", what="running-jobs", value=0, queue="q", only="u", hours=[0, 24]}]'
    (variant,) = read(f"[[variant]]\n{text}").variants
    assert variant.limits == (Limit("user", "running-jobs", 0, "q", "u", (0, 24)),)


@pytest.mark.parametrize(
    ("key", "least", "below", "said"),
    [
        ("seed", "0", "-1", "a whole number of at least 0"),
        ("num_resamples", "100", "99", "a whole number of at least 100"),
        ("machine.nodes", "1", "0", "a whole number of at least 1"),
        ("machine.size", "1", "0", "a whole number of at least 1"),
        ("machine.processors", "1", "0", "a whole number of at least 1"),
        ("machine.switch_size", "1", "0", "a whole number of at least 1"),
        ("baseline.scale_requests", "0.01", "0", "a number above 0"),
        (
            "baseline.load",
            "0.01",
            "0",
            "a number above 0 and at most 10 (1.2 for a fifth more)",
        ),
        ("baseline.load", "10", "10.5", "a number above 0 and at most 10 (1.2 for a fifth more)"),
        ("baseline.accurate_requests.users", "0", "-1", "a number of at least 0 and at most 100"),
        ("baseline.end_idle_after_h.hours", "0.1", "0", "a number above 0"),
        ("baseline.queues.q.max_walltime_h", "0.1", "0", "a number above 0"),
        ("baseline.queues.q.max_gpus", "1", "0", "a whole number of at least 1"),
    ],
)
def test_the_least_of_each_number(key: str, least: str, below: str, said: str) -> None:
    read(f"{key} = {least}\n{ONE}")
    assert only_problem(f"{key} = {below}\n{ONE}") == f"{key}: expected {said}, found {below}"


@pytest.mark.parametrize(
    ("table", "least", "below", "said"),
    [
        ("end_idle_after_h = {{ hours = 1, use = {} }}", "0", "-0.1", "of at least 0 and at most 0.99"),
        ("end_idle_after_h = {{ hours = 1, use = {} }}", "0.99", "1", "of at least 0 and at most 0.99"),
        ("end_idle_after_h = {{ hours = 1, gap_min = {} }}", "0.1", "0", "above 0"),
        ("failures = [{{ at = 2018-01-01, hours = {} }}]", "0.1", "0", "above 0"),
        ("policy = 'multifactor'\nweights = {{ age = {} }}", "0", "-1", "of at least 0"),
        ("policy = 'multifactor'\nweights = {{ size = {} }}", "0", "-1", "of at least 0"),
        ("policy = 'multifactor'\nweights = {{ fair_share = {} }}", "0", "-1", "of at least 0"),
        ("policy = 'multifactor'\nweights = {{ max_age_d = {} }}", "0.1", "0", "above 0"),
        ("policy = 'multifactor'\nweights = {{ half_life_d = {} }}", "0.1", "0", "above 0"),
        ("policy = 'multifactor'\nweights = {{ period_s = {} }}", "0.1", "0", "above 0"),
        ("policy = 'multifactor'\nweights = {{ queue = {{ q = {} }} }}", "0", "-1", "of at least 0"),
        ("policy = 'multifactor'\nweights = {{ qos = {{ q = {} }} }}", "0", "-1", "of at least 0"),
        ("scale_requests = {}", "9", "inf", "above 0"),
        ("scale_requests = {}", "9", "nan", "above 0"),
        ("scale_requests = {}", "9", "true", "above 0"),
        ("scale_requests = {}", "9", "'9'", "above 0"),
    ],
)  # fmt: skip
def test_the_least_of_numbers_in_tables(table: str, least: str, below: str, said: str) -> None:
    read("[[variant]]\n" + table.format(least))
    told = only_problem("[[variant]]\n" + table.format(below))
    found = {"true": "True"}.get(below, below)
    assert told.endswith(f": expected a number {said}, found {found}")
    assert told.startswith("variant 1.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed = true", "seed: expected a whole number of at least 0, found True"),
        ("seed = 1.0", "seed: expected a whole number of at least 0, found 1.0"),
        ("seed = 2147483648",
         "seed: expected a number of at most 2,147,483,647, found one of about 10 digits"),
        ("machine.whole_nodes = 1", "machine.whole_nodes: expected true or false, found 1"),
        ("machine.locality = 'near'", "machine.locality: found 'near'; known: anywhere, preferred, required"),
        ("baseline.name = ' '", "baseline.name: expected a text, found ' '"),
        ("baseline.name = 5", "baseline.name: expected a text, found 5"),
        ("baseline.nodes = true", "baseline.nodes: expected nodes added or removed, a whole number without "
         "quotes such as +4 or -4, found True"),
        ("baseline.nodes = '+4'", "baseline.nodes: expected nodes added or removed, a whole number without "
         "quotes such as +4 or -4, found '+4'"),
        ("baseline.events = 'all'", "baseline.events: found 'all'; known: one-by-one, batched"),
        ("baseline.limits = 3", "baseline.limits: expected a list of tables in [ ], found 3"),
        ("baseline.failures = {}", "baseline.failures: expected a list of tables in [ ], found {}"),
        ("baseline.limits = [5]", "baseline.limits[1]: expected a table, found 5"),
        ("baseline.accurate_requests = {}", "baseline.accurate_requests: lacks users, in percent"),
        ("baseline.queues.q.over = 'end'", "baseline.queues.q.over: found 'end'; known: cut, refuse"),
        ("baseline.queues.q.takes_from = 'n'",
         "baseline.queues.q.takes_from: expected a list of names such as [\"short\"], found 'n'"),
        ("baseline.queues.q.takes_from = [1]", "baseline.queues.q.takes_from: expected a text, found 1"),
        ("baseline.queues.q = 6", "baseline.queues.q: expected a table, found 6"),
        ("baseline.failures = [{ at = 2018-01-01, kind = 'up' }]",
         "baseline.failures[1].kind: found 'up'; known: down, drain"),
        ("baseline.failures = [{ at = 2018-01-01, nodes = 0 }]",
         "baseline.failures[1].nodes: expected a whole number of at least 1, found 0"),
        ("baseline.failures = [{ at = 'soon' }]",
         "baseline.failures[1].at: expected a time such as 2018-04-01T09:00:00, found 'soon'"),
        ("baseline.failures = [{ at = 5 }]",
         "baseline.failures[1].at: expected a time such as 2018-04-01T09:00:00, found 5"),
        ("baseline.machine = { processors = 3, size = 2, nodes = 2 }",
         "baseline.machine: say processors (one pool, without nodes) or nodes and size, not both; found "
         "processors and nodes, size"),
        ("baseline.policy = 'preempting'",
         "baseline: the policy preempting needs low_queues, the queues that yield"),
    ],
)  # fmt: skip
def test_what_a_value_may_be(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        read(f"{text}\n{ONE}")
    assert raised.value.problems[0] == said


@pytest.mark.parametrize(
    "hours", ["[9]", "[9, 18, 20]", "[9, 25]", "[-1, 5]", "'9-18'", "[9, 18.0]"]
)
def test_hours_that_are_no_part_of_a_day(hours: str) -> None:
    text = f"limits = [{{scope='all', what='running-jobs', value=1, hours={hours}}}]"
    found = hours if hours[0] == "[" else repr(hours.strip("'"))
    assert only_problem(f"[[variant]]\n{text}") == (
        "variant 1.limits[1].hours: expected two hours from 0 to 24 that differ, such as [9, 18], found "
        + found
    )


def test_what_a_limit_lacks_is_listed() -> None:
    assert only_problem("[[variant]]\nlimits = [{ only = 'x' }]") == (
        "variant 1.limits[1]: lacks scope, what, value; "
        'write { scope = "user", what = "running-gpus", value = 16 }'
    )
    second = "limits = ['all:running-jobs=1', { scope = 'all', what = 'running-jobs' }]"
    assert only_problem(f"[[variant]]\n{second}").startswith("variant 1.limits[2]: lacks value; ")


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2018-04-01T09:00:00+05:30", datetime(2018, 4, 1, 3, 30, tzinfo=UTC)),
        ("2018-04-01T09:00", datetime(2018, 4, 1, 9)),
        (date(2018, 4, 1), datetime(2018, 4, 1)),
        (datetime(2018, 4, 1, 9), datetime(2018, 4, 1, 9)),
    ],
)
def test_moments(value: Any, moment: datetime) -> None:
    got = _moment(value)
    assert (got, got.tzinfo) == (moment, moment.tzinfo)


def test_a_name_that_is_used_three_times_is_told_once() -> None:
    text = (
        "[[variant]]\nname = 'baseline'\n[[variant]]\nname = 'x'\n[[variant]]\nname = 'baseline'\n"
    )
    assert only_problem(text) == "the name 'baseline' is used 3 times"


def test_policies_that_do_not_go_with_what_is_said() -> None:
    assert only_problem("[[variant]]\npolicy = 'sjf'\nweights = { age = 1 }").startswith(
        "variant 1.weights: the policy sjf has none; use multifactor"
    )
    assert only_problem("[[variant]]\nlow_queues = ['x']").startswith(
        "variant 1.low_queues: the policy easy stops no job; use preempting"
    )
    text = "[[variant]]\npolicy = 'conservative'\nlimits = ['user:running-jobs=3']"
    assert only_problem(text) == (
        "variant 1.limits: the policy conservative knows no limits; use an EASY policy, e.g. easy"
    )


def test_there_must_be_a_variant() -> None:
    assert only_problem("seed = 1") == (
        "there is no [[variant]]: say at least one change, e.g. [[variant]] and nodes = +4"
    )


def test_where_a_scenario_cannot_be_read_the_file_is_named() -> None:
    for text, said in (
        (
            "x = " + "[" * 5000,
            "lists or tables are nested too deeply; a scenario needs four levels",
        ),
        (
            "seed = 1" + "0" * 5000,
            "holds a number of thousands of digits; 2,147,483,647 is the largest",
        ),
        ("seed = ", "not valid TOML: "),
    ):
        with pytest.raises(ScenarioError) as raised:
            read(text, "s.toml")
        assert str(raised.value).startswith(f"s.toml: {said}")
        assert raised.value.problems == [str(raised.value)]


def test_an_error_counts_its_problems_and_points_to_the_example() -> None:
    checker = Checker()
    checker.done("s.toml")
    checker.name("ann", ["ann", "bob"], "user")
    assert checker.problems == []
    checker.problems = ["a", "b"]
    with pytest.raises(ScenarioError) as raised:
        checker.done("s.toml")
    assert str(raised.value) == (
        "s.toml has 2 problems:\n  a\n  b\n`hakaru whatif --example` prints a scenario with every key."
    )
    checker.problems = ["a"]
    with pytest.raises(ScenarioError, match=r"^s.toml has 1 problem:\n  a\n`hakaru"):
        checker.done("s.toml")


def test_of_many_names_six_are_listed() -> None:
    checker = Checker()
    checker.name("zzz", [f"user-{n:02}" for n in range(9)], "v.only")
    (problem,) = checker.problems
    assert problem.startswith("v.only: no job has 'zzz'; known: user-00, ")
    assert "user-05" in problem and "user-06" not in problem
