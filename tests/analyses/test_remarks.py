"""What stands beside the machine's use where its size is unknown, or less than the log gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hakaru.analyses import remarks
from hakaru.lake import Lake
from hakaru.texts import language
from tests.analyses._ask import ask
from tests.analyses.test_load import stay

ENGLISH = language("en")
Make = Callable[..., Lake]


def said(lake: Lake, id: str, **selection: Any) -> list[str]:
    return remarks(ask(lake, id, **selection), ENGLISH)


@pytest.mark.parametrize("id", ["load", "utilisation"])
def test_an_unknown_size_comes_with_the_lines_that_tell_it(lake_of: Make, id: str) -> None:
    lake = lake_of([stay(1, 0, 0, 60)])
    told, *lines = said(lake, id)
    assert "the size of c is unknown" in told and "hakaru.toml under [clusters.c]" in told
    assert lines == ["nodes = 32", "gpus_per_node = 8"]
    assert remarks(ask(lake, id), language("ja", "cpu"))[2] == "cpus_per_node = 8"


def test_more_busy_than_there_are(lake_of: Make) -> None:
    """Four GPUs for an hour, of which for a quarter of an hour six are busy."""
    rows = [stay(1, 0, 0, 60, num_gpus=4), stay(2, 15, 15, 30, num_gpus=2)]
    lake = lake_of(rows, facts='{"nodes": 1, "gpus_per_node": 4}')
    (told,) = said(lake, "load")
    assert told.startswith("more GPUs are busy than c has in 25.0 % of this time, up to 6 of 4:")
    (told,) = said(lake, "utilisation")
    assert "up to 6 of 4" in told
    assert said(lake, "load", by="queue") == [], "what a queue may have is not known"
    assert len(said(lake, "load", by="cluster")) == 1


def test_the_most_that_is_told_is_a_mean_and_says_so(lake_of: Make) -> None:
    """Ten GPUs are busy for six of fifteen minutes, four else: a mean of 6.4, a peak of ten."""
    rows = [stay(1, 0, 0, 60, num_gpus=4), stay(2, 16, 16, 22, num_gpus=6)]
    (told,) = said(lake_of(rows, facts='{"nodes": 1, "gpus_per_node": 4}'), "load")
    assert "in 25.0 % of this time, up to 6 of 4: these are means of 15 minutes" in told


@pytest.mark.parametrize("id", ["load", "utilisation"])
def test_jobs_of_before_the_period_are_told(lake_of: Make, id: str) -> None:
    """Two were submitted on the first; the one that still runs on the second is selected for the use."""
    rows = [stay(1, 0, 0, 60), stay(2, 0, 0, 3000), stay(3, 1500, 1500, 1600)]
    lake = lake_of(rows, facts='{"nodes": 1, "gpus_per_node": 4}')
    chosen = ask(lake, id, since="2018-01-02")
    assert (chosen.num_selected, ask(lake, "states", since="2018-01-02").num_selected) == (2, 1)
    text = "jobs submitted before 2018-01-02 that still waited or ran then count too"
    assert remarks(chosen, ENGLISH) == [text]
    assert said(lake, id) == [] and said(lake, "states", since="2018-01-02") == []


def test_as_many_as_there_are(lake_of: Make) -> None:
    lake = lake_of([stay(1, 0, 0, 60, num_gpus=4)], facts='{"nodes": 1, "gpus_per_node": 4}')
    assert said(lake, "load") == said(lake, "utilisation") == []
    assert said(lake, "states") == []


def test_a_size_that_is_known_from_some_day_on(lake_of: Make) -> None:
    facts = '{"nodes": [{"since": "2018-01-01T00:30:00Z", "count": 1}], "gpus_per_node": 4}'
    (told,) = said(lake_of([stay(1, 0, 0, 60)], facts=facts), "load")
    assert "is not known for all of this time" in told


@pytest.mark.parametrize("id", ["load", "utilisation"])
def test_a_peak_is_not_hidden_by_the_mean_around_it(lake_of: Make, id: str) -> None:
    """Of 100 hours, six GPUs are busy for one, on a machine of four, and one for the rest."""
    rows = [stay(1, 0, 0, 6000), stay(2, 600, 600, 660, num_gpus=5)]
    lake = lake_of(rows, facts='{"nodes": 1, "gpus_per_node": 4}')
    params = {"bins": 2} if id == "load" else {}
    (told,) = remarks(ask(lake, id, params), ENGLISH)
    assert told.startswith("more GPUs are busy than c has in 1.0 % of this time, up to 6 of 4:")


def test_a_size_that_shrank_is_the_one_of_its_time(lake_of: Make) -> None:
    """Four busy GPUs: as many as the first hour has, twice as many as the second; before it, unknown."""
    facts = (
        '{"nodes": [{"since": "2018-01-01T01:00:00Z", "count": 2}, '
        '{"since": "2018-01-01T02:00:00Z", "count": 1}], "gpus_per_node": 2}'
    )
    lake = lake_of([stay(1, 0, 0, 180, num_gpus=4)], facts=facts)
    over, partly = said(lake, "load")
    assert over.startswith("more GPUs are busy than c has in 50.0 % of this time, up to 4 of 2:")
    assert "is not known for all of this time" in partly


def test_the_size_that_is_told_is_that_of_the_peak(lake_of: Make) -> None:
    """Seven GPUs are busy while there are two, and later five of four."""
    facts = (
        '{"nodes": [{"since": "2018-01-01T00:00:00Z", "count": 1}, '
        '{"since": "2018-01-01T01:00:00Z", "count": 2}], "gpus_per_node": 2}'
    )
    rows = [stay(1, 0, 0, 60, num_gpus=7), stay(2, 60, 60, 120, num_gpus=5)]
    (over,) = said(lake_of(rows, facts=facts), "load")
    assert over.startswith("more GPUs are busy than c has in 100.0 % of this time, up to 7 of 2:")


def test_named_nodes_show_how_large_the_machine_is_at_least(lake_of: Make) -> None:
    """Most seen on n1 are 4 GPUs, on n2 and n3 2 each: 8. Two are busy for 60 of 100 minutes, one for 40."""
    rows = [
        stay(1, 0, 0, 60, num_gpus=2, nodes=["n1"]),
        stay(2, 60, 60, 90, num_gpus=1, nodes=["n2"]),
        stay(3, 90, 90, 95, num_gpus=4, num_nodes=2, nodes=["n2", "n3"]),
        stay(4, 95, 95, 100, num_gpus=4, nodes=["n1"]),
    ]
    lake = lake_of(rows)
    for id in ("load", "utilisation"):
        told, *lines = said(lake, id)
        assert "of at least 8 seen in use on the 3 nodes that the log names" in told
        assert "1.9 GPUs are busy on average" in told  # (60 · 2 + 30 · 1 + 10 · 4) / 100
        assert lines == ["gpus = 8  # at least; put your number here"], "3 nodes of 4 would be 12"
        told, *lines = said(lake, id, by="queue")
        assert "1.9 GPUs are busy on average" in told, "of all groups together"


def test_nodes_that_were_all_seen_alike_are_the_lines(lake_of: Make) -> None:
    lake = lake_of([stay(1, 0, 0, 60, num_gpus=8, num_nodes=2, nodes=["n1", "n2"])])
    told, *lines = said(lake, "load")
    assert "of at least 8 seen in use on the 2 nodes" in told
    assert lines == ["nodes = 2", "gpus_per_node = 4"]


@pytest.mark.parametrize("lang", ["en", "ja", "ko"])
@pytest.mark.parametrize("gpus", [[4, 2, 2], [4, 4, 4], [1, 8]])
def test_the_lines_that_are_advised_never_make_up_a_size(
    lake_of: Make, lang: str, gpus: list[int]
) -> None:
    lake = lake_of(
        [stay(i, 0, 0, 60, num_gpus=n, nodes=[f"n{i}"]) for i, n in enumerate(gpus)],
    )
    _, *lines = remarks(ask(lake, "utilisation"), language(lang))
    (lake.workspace / "hakaru.toml").write_text("\n".join(["[clusters.c]", *lines]))
    rows = ask(lake, "load").rows
    assert {row["num_pes_installed"] for row in rows} == {float(sum(gpus))}


def test_named_nodes_say_nothing_beside_a_size_that_is_set(lake_of: Make) -> None:
    rows = [stay(1, 0, 0, 60, num_gpus=2, nodes=["n1"])]
    lake = lake_of(rows, facts='{"nodes": 4, "gpus_per_node": 4}')
    assert said(lake, "load") == said(lake, "utilisation") == []


# ---- what the log does not say


BY_CLOCK = (
    "arrivals-by-hour",
    "arrivals-by-weekday",
    "arrivals-by-week",
    "jobs-by-quarter",
    "load",
)


@pytest.mark.parametrize("id", BY_CLOCK)
def test_hours_in_utc_are_told_with_the_lines_that_set_the_zone(lake_of: Make, id: str) -> None:
    sized = '{"nodes": 1, "gpus_per_node": 8}'
    told, line = said(lake_of([stay(1, 0, 0, 60)], sized, zone=None), id)
    assert told.startswith("hours and days of c are in UTC: the site's time zone is not known")
    assert "hakaru.toml under [clusters.c]" in told and line == 'zone = "Asia/Tokyo"'
    assert (
        remarks(ask(lake_of([stay(1, 0, 0, 60)], sized, zone=None), id), language("ja"))[1] == line
    )


@pytest.mark.parametrize("id", BY_CLOCK)
def test_a_known_zone_needs_no_remark_be_it_utc(lake_of: Make, id: str) -> None:
    assert said(lake_of([stay(1, 0, 0, 60)], '{"nodes": 1, "gpus_per_node": 8}'), id) == []


def test_only_what_goes_by_the_clock_has_the_remark(lake_of: Make) -> None:
    lake = lake_of([stay(1, 0, 0, 60)], zone=None)
    assert said(lake, "walltime") == said(lake, "waits") == []
    assert len(said(lake, "walltime", by="quarter")) == 2


def test_the_zone_may_be_set_later_without_reading_again(lake_of: Make) -> None:
    lake = lake_of([stay(1, 0, 0, 60)], zone=None)
    (lake.workspace / "hakaru.toml").write_text('[clusters.c]\nzone = "Asia/Tokyo"\n')
    result = ask(lake, "arrivals-by-hour")
    assert remarks(result, ENGLISH) == []
    assert [row["hour"] for row in result.rows if row["num_jobs"]] == [9]  # midnight in UTC


@pytest.mark.parametrize("id", BY_CLOCK[:4])
def test_relative_dates_are_told_and_their_zone_is_not_asked_for(lake_of: Make, id: str) -> None:
    (told,) = said(lake_of([stay(1, 0, 0, 60)], '{"relative_dates": true}', zone=None), id)
    assert told.startswith("the dates of c are relative") and "--start" in told


def ended(*states: str | None) -> list[dict[str, Any]]:
    return [stay(i, 0, 0, 60, state=state) for i, state in enumerate(states)]


def test_states_that_are_all_failed(lake_of: Make) -> None:
    lake = lake_of([*ended(*["failed"] * 20), stay(99, 0, None, None, state="pending")])
    told = "all ended jobs of c are failed: the log's states carry no information"
    for id in ("states", "walltime", "request-accuracy", "users"):
        assert [line.startswith(told) for line in said(lake, id)] == [True], id
    assert said(lake, "waits") == said(lake, "walltime", states=("any",)) == []
    assert said(lake, "walltime", states=("failed",)) == []


def test_states_that_are_all_completed(lake_of: Make) -> None:
    lake = lake_of(ended(*["completed"] * 20))
    assert said(lake, "states")[0].startswith("all ended jobs of c are completed")
    assert said(lake, "walltime") == []


def test_states_that_are_not_there(lake_of: Make) -> None:
    lake = lake_of(ended(*[None] * 20))
    told = "the log of c does not say how its jobs ended: shares of states mean nothing"
    assert said(lake, "walltime") == [f"{told}. --state any counts all jobs"]
    # these count all jobs as it is, so that the option would change nothing
    assert said(lake, "states") == said(lake, "states", states=("any",)) == [told]


def test_another_state_is_only_advised_where_it_changes_something(lake_of: Make) -> None:
    """No job has a request, whatever its state."""
    lake = lake_of([row | {"requested_s": None} for row in ended(*[None] * 20)])
    told = "the log of c does not say how its jobs ended: shares of states mean nothing"
    assert said(lake, "request-accuracy") == [told]
    assert said(lake, "walltime") == [f"{told}. --state any counts all jobs"]


@pytest.mark.parametrize(
    "states", [["failed"] * 19, ["failed"] * 19 + ["completed"], ["failed"] * 19 + [None]]
)
def test_states_that_say_something_or_are_few(lake_of: Make, states: list[str | None]) -> None:
    lake = lake_of(ended(*states))
    assert said(lake, "states") == said(lake, "walltime") == []


def test_the_states_of_the_whole_log_count_not_those_chosen(lake_of: Make) -> None:
    lake = lake_of(ended(*["failed"] * 20, "completed"))
    assert said(lake, "states", where="state = 'failed'") == []


@pytest.mark.parametrize(
    ("facts", "sizes"),
    [
        ('{"cpus": 100, "unit": "cpu"}', {100.0}),
        ('{"cpus": 100, "nodes": 7, "cpus_per_node": 8, "unit": "cpu"}', {100.0}),
        ('{"gpus": 100, "nodes": 7, "cpus_per_node": 8, "unit": "cpu"}', {56.0}),
        ('{"gpus": 12}', {12.0}),
        ('{"cpus": 12}', {None}),
    ],
)
def test_a_machine_of_a_known_total(lake_of: Make, facts: str, sizes: set[float | None]) -> None:
    rows = ask(lake_of([stay(1, 0, 0, 60, num_cpus=4)], facts), "load").rows
    assert {row["num_pes_installed"] for row in rows} == sizes


def test_a_size_that_is_set_as_a_whole_is_known(lake_of: Make) -> None:
    """`gpus` is the size of a machine whose nodes differ: six busy for a quarter of an hour, of four."""
    rows = [
        stay(1, 0, 0, 60, num_gpus=4, nodes=["n1"]),
        stay(2, 15, 15, 30, num_gpus=2, nodes=["n1"]),
    ]
    lake = lake_of(rows, facts='{"nodes": 3, "gpus": 4}')
    for id in ("load", "utilisation"):
        (told,) = said(lake, id)
        assert told.startswith(
            "more GPUs are busy than c has in 25.0 % of this time, up to 6 of 4:"
        )
