"""Each rule on rows written by hand: its sentence, its numbers, and the thresholds that it keeps to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakaru.analyses._caveats import Caveats
from hakaru.analyses._machine import Over
from hakaru.findings import FINDINGS, Finding, find
from hakaru.texts import LANGUAGES
from tests.figures._result import result


def told(
    id: str, columns: dict[str, list[Any]], started: float | None = 1.0, **how: Any
) -> Finding | None:
    """The finding of one rule on a table, if it has one to tell; beside it, the share that started."""
    (rule,) = [each for each in FINDINGS if each.id == id]
    made = result(rule.analysis, columns, weight=rule.weight)
    fates = result("abandoned-waits", {"fate": ["started"], "num_jobs": [1], "share": [started]})
    beside = {} if started is None else {("abandoned-waits", "jobs"): fates}
    found = find({**beside, (rule.analysis, rule.weight): made}, **how)
    return next((each for each in found if each.id == id), None)


def values(id: str, columns: dict[str, list[Any]]) -> dict[str, Any] | None:
    found = told(id, columns)
    return None if found is None else {k: pytest.approx(v) for k, v in found.values.items()}


def sizes(single: int, several: int, single_h: float, several_h: float) -> dict[str, list[Any]]:
    return {
        "parallelism": ["single-pe", "single-node", "multi-node"],
        "num_jobs": [single, 0, several],
        "pe_hours": [single_h, 0.0, several_h],
    }


def test_one_gpu_is_told_from_half_of_the_jobs_on() -> None:
    assert values("single-pe", sizes(50, 50, 20.0, 180.0)) == {"share": 0.5, "share_hours": 0.1}
    assert told("single-pe", sizes(49, 51, 20.0, 180.0)) is None


def test_jobs_of_several_nodes_take_more_than_their_share() -> None:
    assert values("multi-node", sizes(98, 2, 75.0, 25.0)) == {"share": 0.02, "share_hours": 0.25}
    assert told("multi-node", sizes(99, 1, 96.0, 4.0)) is None, "less than a twentieth of the hours"
    assert told("multi-node", sizes(90, 10, 81.0, 19.0)) is None, "less than twice their share"
    assert told("multi-node", sizes(100, 0, 75.0, 25.0)) is None


def test_requests_are_told_where_the_median_job_uses_half_or_less() -> None:
    skewed = {"median": [0.05], "mean": [0.3], "share_at_max": [0.0]}
    assert values("over-request", skewed) == {"times": 20.0, "median": 0.05, "mean": 0.3}
    assert told("over-request", {"median": [0.5], "mean": [0.5], "share_at_max": [0.0]})
    assert told("over-request", {"median": [0.51], "mean": [0.1], "share_at_max": [0.0]}) is None


def test_the_maximum_is_told_from_a_tenth_on() -> None:
    def asked(share: float, known: float = 1.0) -> dict[str, list[Any]]:
        row = {"median": 0.9, "mean": 0.9, "share_at_max": share, "share_with_known_limit": known}
        return {name: [value] for name, value in row.items()}

    assert values("at-max", asked(0.1)) == {"share": 0.1}
    assert told("at-max", asked(0.099)) is None
    texts = {known: told("at-max", asked(0.1, known)) for known in (0.0, 0.25, 1.0)}
    ends = {
        known: found.text.rpartition("request the ")[2] for known, found in texts.items() if found
    }
    assert ends == {
        0.0: "longest time that anyone requests in their queue (the queues' limits are not known).",
        0.25: "maximum time of their queue; where no limit is known, which is so for 75.0 % of these "
        "jobs, it is the longest request seen.",
        1.0: "maximum time of their queue.",
    }


def runs(mean_h: float, median_h: float) -> dict[str, list[Any]]:
    return {
        "class": ["single-pe", "all"],
        "num_jobs": [90, 100],
        "mean_h": [99.0, mean_h],
        "median_h": [1.0, median_h],
        "share_short": [0.9, 0.8],
        "share_long": [0.5, 0.02],
    }


def test_run_times_are_those_of_all_jobs() -> None:
    found = told("run-time", runs(6.0, 0.5))
    assert found is not None
    assert found.values == {"median": 1800.0, "mean": 21600.0, "share_long": 0.02}
    for number in ("30.0 min", "6.0 h", "2.0 %"):
        assert number in found.text
    assert told("run-time", runs(1.0, 0.5))
    assert told("run-time", runs(0.99, 0.5)) is None


@pytest.mark.parametrize(
    ("reading", "word"),
    [("weak scaling", "longer"), ("strong scaling", "shorter"), ("neither", "")],
)
def test_scaling_is_spearman_s(reading: str, word: str) -> None:
    table = {
        "coefficient": ["pearson of logs", "spearman"],
        "mean": [0.9, 0.25],
        "low": [0.8, 0.125],
        "high": [0.99, 0.375],
        "reading": ["weak scaling", reading],
    }
    found = told("scaling", table)
    assert (found is not None) == bool(word)
    if found:
        assert found.values == {"mean": 0.25, "low": 0.125, "high": 0.375}
        assert f"run {word}" in found.text and "Spearman 0.250" in found.text


def hours(peak: float, peak_hour: int = 23) -> dict[str, list[Any]]:
    """Ten jobs in every hour but the peak, nine at five o'clock: the mean is found by hand below."""
    means = [10.0] * 24
    means[5] = 9.0
    means[peak_hour] = peak
    return {"hour": list(range(24)), "mean": means}


def test_the_busiest_hour_and_the_quietest() -> None:
    """Of 22 × 10 + 9 + 41 = 270 in 24 hours the mean is 11.25, of which 41 are 3.64 times."""
    found = told("busiest-hour", hours(41.0))
    assert found is not None
    assert found.values == {
        "hour": 23, "next_hour": 24, "quiet_hour": 5, "times": pytest.approx(41 / 11.25),
    }  # fmt: skip
    assert "from 23:00 to 00:00, with 3.6 times" in found.text
    assert "05:00" in found.text


def test_an_even_day_is_not_told() -> None:
    """15.5 beside the mean of (22 × 10 + 9 + 15.5) / 24 = 10.1875 is 1.52 times; 15 is less than 1.5."""
    assert told("busiest-hour", hours(15.5)) is not None
    assert told("busiest-hour", hours(15.0)) is None


def test_hours_whose_mean_is_unknown_count_for_nothing() -> None:
    table = {"hour": [0, 1, 2, 3], "mean": [None, 1.0, 2.0, 6.0]}
    assert values("busiest-hour", table) == {
        "hour": 3, "next_hour": 4, "quiet_hour": 1, "times": 2.0,
    }  # fmt: skip
    assert told("busiest-hour", {"hour": [0, 1], "mean": [None, None]}) is None
    assert told("busiest-hour", {"hour": [0, 1], "mean": [0.0, 0.0]}) is None


def week(*means: float | None) -> dict[str, list[Any]]:
    return {"weekday": list(range(7)), "mean": list(means)}


def test_the_busiest_day_is_a_multiple_of_the_quietest() -> None:
    found = told("busiest-day", week(5.0, 6.0, 12.0, 7.0, 6.0, 8.0, 4.0))
    assert found is not None
    assert found.values == {"weekday": 2, "quiet_weekday": 6, "times": 3.0}
    assert (
        found.text.startswith("Wednesday") and "3.0 times" in found.text and "Sunday" in found.text
    )
    assert told("busiest-day", week(6.0, 6.0, 5.9, 4.0, 4.0, 4.0, 4.0))
    assert told("busiest-day", week(5.9, 5.9, 5.9, 4.0, 4.0, 4.0, 4.0)) is None
    assert told("busiest-day", week(5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 0.0)) is None


def test_six_days_are_no_week() -> None:
    assert told("busiest-day", week(9.0, 1.0, 1.0, 1.0, 1.0, None, None)) is None
    assert told("busiest-day", {"weekday": list(range(6)), "mean": [9.0, 1, 1, 1, 1, 1]}) is None


def gaps(median: float, mean: float, num: int = 100) -> dict[str, list[Any]]:
    return {
        "submissions": ["same user", "all"],
        "num_gaps": [5, num],
        "median_s": [1.0, median],
        "mean_s": [999.0, mean],
    }


def test_bursts_are_told_where_the_mean_gap_is_ten_times_the_median() -> None:
    found = told("bursts", gaps(6.0, 60.0))
    assert found is not None and found.values == {"median": 6.0, "mean": 60.0}
    assert "within 6 s" in found.text and "60 s" in found.text
    at_once = told("bursts", gaps(0.0, 60.0))
    assert at_once is not None and at_once.values == {"median": 0.0, "mean": 60.0}
    assert at_once.text == (
        "Submissions come in bursts: half come in the same second as the previous one, "
        "while the mean gap is 60 s."
    )
    assert told("bursts", gaps(6.0, 59.0)) is None
    assert told("bursts", gaps(6.0, 60.0, 99)) is None


def waits(p90: float) -> dict[str, list[Any]]:
    """The row of submit to start is not the first; all its percentiles are different."""
    return {
        "part": ["submit to eligible", "submit to start"],
        "num_jobs": [100, 100],
        "mean_s": [1.0, 900.0],
        "median_s": [2.0, 30.0],
        "p90_s": [3.0, p90],
        "p95_s": [4.0, 7000.0],
        "p99_s": [5.0, 90000.0],
        "max_s": [6.0, 180000.0],
    }


def changed(rows: dict[str, list[Any]], **start: float) -> dict[str, list[Any]]:
    """The rows with other numbers from submit to start."""
    return rows | {name: [rows[name][0], value] for name, value in start.items()}


def test_nine_of_ten_is_the_ninetieth_percentile() -> None:
    found = told("waits", waits(599.0))
    assert found is not None and found.values == {"p90": 599.0}
    assert "nine of ten start within 10.0 min" in found.text


def test_one_in_ten_and_one_in_a_hundred_wait_longer() -> None:
    found = told("waits", waits(600.0))
    assert found is not None
    assert found.values == {"median": 30.0, "p90": 600.0, "p99": 90000.0}
    text = found.text
    half, tenth, hundredth = (text.index(each) for each in ("30 s", "10.0 min", "25.0 h"))
    assert text.index("Half") < half < text.index("one in ten") < tenth
    assert tenth < text.index("one in a hundred") < hundredth


@pytest.mark.parametrize("other", [{"num_jobs": 99}, {"p99_s": 180000.0}])
def test_a_hundredth_that_is_one_job_is_the_longest_wait(other: dict[str, float]) -> None:
    found = told("waits", changed(waits(600.0), **other))
    assert found is not None and found.values == {"median": 30.0, "p90": 600.0, "max": 180000.0}
    assert found.text.endswith("longer than 10.0 min; the longest wait is 2.1 days.")


def test_waits_whose_longest_are_withheld_are_no_finding() -> None:
    hidden: dict[str, Any] = {"num_jobs": None, "p99_s": None, "max_s": None}
    assert told("waits", changed(waits(600.0), **hidden)) is None
    soon = told("waits", changed(waits(599.0), **hidden))
    assert soon is not None and soon.values == {"p90": 599.0}


def test_no_wait_is_at_once() -> None:
    half = told("waits", changed(waits(600.0), median_s=0.0))
    assert half is not None and half.text.startswith(
        "Half of the jobs start at once, but one in ten"
    )
    nine = told("waits", waits(0.0))
    assert nine is not None and nine.text == "Jobs hardly wait: nine of ten start at once."


def test_waits_are_of_the_jobs_that_started() -> None:
    """A share is told where it is known, which is not so for every user of the web app."""
    half = told("waits", waits(600.0), started=0.4)
    assert half is not None and half.values["share_started"] == 0.4
    assert half.text.startswith(
        "Of the jobs that started (40.0 %), half start within 30 s, but one"
    )
    longest = told("waits", changed(waits(600.0), num_jobs=99), started=0.4)
    assert longest is not None and longest.text.startswith(
        "Of the jobs that started (40.0 %), half"
    )
    nine = told("waits", waits(599.0), started=0.4)
    assert nine is not None and "of the jobs that started (40.0 %), nine of ten start" in nine.text
    unknown = told("waits", waits(600.0), started=None)
    assert unknown is not None and "share_started" not in unknown.values
    assert unknown.text.startswith("Of the jobs that started, half start within 30 s")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_language_says_which_jobs_waits_are_of(lang: str) -> None:
    found = told("waits", waits(600.0), started=0.4, lang=lang)
    assert found is not None and "40.0" in found.text


def test_waits_that_are_given_up() -> None:
    def fates(share: float) -> dict[str, list[Any]]:
        return {"fate": ["started", "abandoned"], "num_jobs": [9, 1], "share": [1 - share, share]}

    assert values("abandoned", fates(0.05)) == {"share": 0.05}
    assert told("abandoned", fates(0.049)) is None


STATES = (
    "completed",
    "failed",
    "timeout",
    "cancelled",
    "out_of_memory",
    "node_failed",
    "preempted",
)


def states(*jobs: int, hours: tuple[float, ...] = ()) -> dict[str, list[Any]]:
    """Numbers of jobs, and hours as many where nothing else is said, in the order of STATES."""
    listed = list(hours) or [float(each) for each in jobs]
    return {"state": list(STATES), "num_jobs": list(jobs), "pe_hours": listed}


def test_failed_are_jobs_that_ended_by_a_fault_of_program_memory_or_node() -> None:
    """3 + 1 + 2 of 100 jobs; their hours are 30 + 10 + 20 of 200."""
    table = states(70, 3, 4, 15, 1, 2, 5, hours=(100.0, 30.0, 20.0, 15.0, 10.0, 20.0, 5.0))
    assert values("failed", table) == {"share": 0.06, "share_hours": 0.3}
    assert values("failed", states(95, 5, 0, 0, 0, 0, 0)) == {"share": 0.05, "share_hours": 0.05}
    assert told("failed", states(96, 4, 0, 0, 0, 0, 0)) is None
    assert told("failed", states(70, 0, 15, 10, 0, 0, 5)) is None, "those who ran out of time, …"


def test_time_outs_are_told_where_they_take_much() -> None:
    table = states(96, 0, 4, 0, 0, 0, 0, hours=(90.0, 0, 10.0, 0, 0, 0, 0))
    assert values("timeout", table) == {"share": 0.04, "share_hours": 0.1}
    few = states(98, 0, 2, 0, 0, 0, 0, hours=(96.0, 0, 4.0, 0, 0, 0, 0))
    assert told("timeout", few) is None, "less than a twentieth of the hours"
    even = states(90, 0, 10, 0, 0, 0, 0, hours=(85.0, 0, 15.0, 0, 0, 0, 0))
    assert told("timeout", even) is None, "less than twice their share of the jobs"


def test_shares_are_of_the_jobs_that_ended() -> None:
    """Of 13 jobs and 100 hours; the 900 that still run do not count, nor do jobs of unknown state."""
    table = {
        "state": ["completed", "failed", "cancelled", "timeout", "running", "pending", None],
        "num_jobs": [10, 1, 1, 1, 10, 10, 10],
        "pe_hours": [65.0, 5.0, 10.0, 20.0, 900.0, None, 50.0],
    }
    assert values("not-completed", table) == {"share_hours": 0.35}
    assert values("failed", table) == {"share": 1 / 13, "share_hours": 0.05}
    assert values("timeout", table) == {"share": 1 / 13, "share_hours": 0.2}


def test_hours_of_jobs_that_did_not_complete() -> None:
    assert told("not-completed", states(91, 9, 0, 0, 0, 0, 0)) is None
    assert told("not-completed", states(90, 9, 0, 1, 0, 0, 0)) is not None
    long = states(99, 1, 0, 0, 0, 0, 0, hours=(50.0, 50.0, 0, 0, 0, 0, 0))
    assert values("not-completed", long) == {"share_hours": 0.5}, "one job of a hundred"
    short = states(80, 20, 0, 0, 0, 0, 0, hours=(95.0, 5.0, 0, 0, 0, 0, 0))
    assert told("not-completed", short) is None, "a fifth of the jobs, a twentieth of the hours"


def holders(num: int, tenth: float) -> dict[str, list[Any]]:
    return {
        "holder": ["account", "user"],
        "num_holders": [99, num],
        "share_top1": [0.9, 0.125],
        "share_top3": [0.9, 0.2],
        "share_top10": [0.9, 0.4],
        "share_top_tenth": [0.9, tenth],
    }


def test_few_users_take_most_of_the_hours() -> None:
    found = told("few-users", holders(1500, 0.625))
    assert found is not None
    assert found.values == {"num_users": 1500, "share_hours": 0.625, "share_top1": 0.125}
    assert [each in found.text for each in ("1,500", "62.5 %", "12.5 %", "GPU-hours")] == [True] * 4
    assert told("few-users", holders(20, 0.5)) is not None
    assert told("few-users", holders(19, 0.5)) is None
    assert told("few-users", holders(20, 0.49)) is None
    assert told("few-users", holders(20, 0.5), counts_people=False) is None


def test_utilisation_is_that_of_the_whole_period() -> None:
    def used(share: float | None) -> dict[str, list[Any]]:
        return {"quarter": ["2018Q1", "all"], "utilisation": [0.9, share]}

    found = told("utilisation", used(0.25))
    assert found is not None and found.values == {"share": 0.25}
    assert "25.0 %" in found.text and "hakaru.toml" not in found.text
    full = told("utilisation", used(1.0))
    assert full is not None and "hakaru.toml" not in full.text
    over = told("utilisation", used(1.25))
    assert over is not None and "125.0 %" in over.text and "hakaru.toml" in over.text
    assert told("utilisation", used(None)) is None


def test_processors_are_not_called_gpus() -> None:
    found = told("single-pe", sizes(3, 1, 1.0, 3.0), unit="cpu")
    assert found is not None
    assert "one processor" in found.text and "processor-hours" in found.text
    assert "75.0 %" in found.text and "25.0 %" in found.text


def test_a_number_that_is_unknown_is_not_told() -> None:
    table = {"parallelism": ["single-pe"], "num_jobs": [5], "pe_hours": [None]}
    assert told("single-pe", table) is None
    nothing: dict[str, list[Any]] = {"parallelism": [], "num_jobs": [], "pe_hours": []}
    assert told("single-pe", nothing) is None
    infinite = {"median": [0.1], "mean": [float("nan")], "share_at_max": [0.0]}
    assert told("over-request", infinite) is None


def test_a_result_that_rests_on_no_job_is_not_told() -> None:
    table = sizes(50, 50, 20.0, 180.0)
    used, unused = (result("parallelism", table, {"that ran": num}) for num in (99, 100))
    assert [each.id for each in find({("parallelism", "jobs"): used})][:1] == ["single-pe"]
    assert find({("parallelism", "jobs"): unused}) == []


def by_clock_and_not(caveats: Caveats) -> list[Finding]:
    """What is told of a busiest hour, a busiest day and a utilisation."""
    tables = {
        "utilisation": {"quarter": ["all"], "utilisation": [0.5]},
        "arrivals-by-hour": hours(41.0),
        "arrivals-by-weekday": week(5.0, 6.0, 12.0, 7.0, 6.0, 8.0, 4.0),
    }
    made = {(id, "jobs"): replace(result(id, t), caveats=caveats) for id, t in tables.items()}
    return find(made)


def test_relative_dates_keep_back_hours_and_days_only() -> None:
    ids = [each.id for each in by_clock_and_not(Caveats())]
    assert ids == ["busiest-hour", "busiest-day", "utilisation"]
    assert [each.id for each in by_clock_and_not(Caveats(relative=("c",)))] == ["utilisation"]


def test_an_unknown_zone_is_told_with_hours_and_days_only() -> None:
    found = by_clock_and_not(Caveats(unzoned=("c",)))
    end = "(In UTC: the site's time zone is not known.)"
    assert [each.text.endswith(end) for each in found] == [True, True, False]


def test_a_machine_that_jobs_exceed_at_times_is_told_with_its_use() -> None:
    """Three quarters of the hours are held, though in an eighth of the time 12 GPUs of 10 are busy."""
    made = result("utilisation", {"quarter": ["all"], "utilisation": [0.75]})
    over = {"c": Over(share=0.125, most=12, size=10)}
    (found,) = find({("utilisation", "jobs"): replace(made, over=over)})
    assert found.text == (
        "Jobs hold 75.0 % of the machine's GPU-hours. "
        "(In 12.5 % of this time more GPUs are busy than there are.)"
    )


def test_findings_come_in_the_order_of_the_paper() -> None:
    ids = [rule.id for rule in FINDINGS]
    assert ids == [
        "single-pe", "multi-node", "over-request", "at-max", "run-time", "scaling", "busiest-hour",
        "busiest-day", "bursts", "waits", "abandoned", "failed", "timeout", "not-completed",
        "few-users", "utilisation",
    ]  # fmt: skip
