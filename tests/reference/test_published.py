"""The published figures: each cited, each of a known metric, none that the collected facts do not hold."""

from __future__ import annotations

import csv
import re
from datetime import date
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.reference.metrics import Cell, Metric, find_metrics, load_metrics, read
from hakaru.reference.published import (
    find_clusters,
    first_of_each,
    load_published,
    published_clusters,
    without_parts,
)

MINUTES = {("Kraken", "run_mean_completed_s"), ("Kraken", "wait_mean_s")}
WEEKDAYS = {"Monday": 0.0}


def test_every_figure_is_cited_and_of_a_known_metric() -> None:
    metrics = load_metrics()
    for figure in load_published():
        told = f"{figure.cluster} {figure.metric}"
        assert figure.metric in metrics, told
        assert figure.unit == metrics[figure.metric].unit, told
        assert len(figure.source) > 15 and figure.where, told
        assert figure.source != "same" and figure.where != "same", told
        assert figure.bound in ("", "<", ">", "~"), told
        if figure.unit == "share":
            assert 0 <= figure.value <= 1, told
        if figure.unit == "correlation":
            assert -1 <= figure.value <= 1, told


def test_no_figure_stands_twice() -> None:
    keys = [(figure.cluster, figure.metric, figure.note) for figure in load_published()]
    assert len(keys) == len(set(keys))


def test_many_clusters_are_there() -> None:
    wanted = {"Kraken", "Helios", "Helios-Venus", "Philly", "PAI", "Acme-Seren", "Acme-Kalos"}
    wanted |= {"MIT Supercloud", "Mira", "Tianhe-1A", "RICC", "AAIC", "KISTI Neuron"}
    assert wanted <= set(published_clusters())
    assert len(load_published()) == 222


def test_figures_as_the_sources_print_them() -> None:
    wra = first_of_each("wra_mean")["Kraken"]
    assert (wra.value, wra.bound, wra.unit) == (0.33, "~", "share")
    assert wra.where == "p.261 sec.3.4, eq.(1)-(2)" and "more than 30 s" in wra.note
    assert first_of_each("wait_mean_s")["Kraken"].value == 34.5 * 60
    assert first_of_each("spearman_size_run")["Kraken"].value == -0.2293
    users = first_of_each("num_users")["PAI"]
    assert (users.value, users.bound) == (1300, ">")
    assert first_of_each("num_gpus")["KISTI Neuron"].where == "section KISTI Neuron GPU Cluster"


def test_of_several_figures_the_first_counts() -> None:
    """Helios' GPU jobs come before all of its jobs."""
    both = [
        (f.value, f.note)
        for f in load_published()
        if (f.cluster, f.metric) == ("Helios", "share_failed")
    ]
    assert [value for value, _ in both] == [0.155, 0.105]
    assert first_of_each("share_failed")["Helios"].value == 0.155


def test_second_hand_facts_say_so() -> None:
    acme = first_of_each("share_gpu_time_single_pe")["Acme"]
    assert acme.note == "second-hand: quoted in public reading notes"


def test_each_value_is_in_the_collected_facts(shared: Path) -> None:
    """Of the same cluster, under a name with the same words, and with the bound that the fact has."""
    with open(shared / "reference" / "published_figures.csv", encoding="utf-8") as file:
        facts = list(csv.DictReader(file))
    for figure in load_published():
        if figure.source.startswith("Takizawa"):
            continue  # the paper itself, which test_reproduce checks against its log
        minutes = (figure.cluster, figure.metric) in MINUTES
        value = figure.value / 60 if minutes else figure.value
        words = [WORDS[word] for word in figure.metric.split("_") if word in WORDS]
        near = [
            fact
            for fact in facts
            if fact["cluster"] == figure.cluster
            and any(abs(n - value) < 1e-9 for n in _numbers(f"{fact['value']} {fact['unit']}"))
            and all(re.search(word, fact["metric"]) for word in words)
        ]
        assert near, f"{figure.cluster} {figure.metric} {figure.value}"
        bounds = {_bound(fact) for fact in near}
        assert figure.bound in bounds or (figure.bound == "~" and "" in bounds), figure


# what a fact calls the words of a metric; a mean of completed runs is that of those "called correct"
WORDS = {
    "users": "user", "accounts": "account", "jobs": "job", "wait": "wait", "mean": "mean",
    "median": "median|p50", "failed": "fail", "cancelled": "cancel", "max": "max", "p25": "p25",
    "p75": "p75", "run": "run", "nodes": "node|machine", "gpus": "gpu", "gpu": "gpu", "cpus": "cpu|core",
    "cpu": "cpu", "utilisation": "util", "hour": "hour", "spearman": "spearman", "wra": "wra",
    "weekday": "weekday", "logpearson": "pearson",
}  # fmt: skip


def _bound(fact: dict[str, str]) -> str:
    """`<` or `>` before the value, or in brackets after it."""
    found = re.match(r"[<>]", fact["value"]) or re.search(r"(?<=\()[<>](?=\))", fact["unit"])
    return found[0] if found else ""


def _numbers(text: str) -> set[float]:
    """Every number of a fact; dates as the days between them, weekdays as their number."""
    days = [date.fromisoformat(found) for found in re.findall(r"\d{4}-\d\d-\d\d", text)]
    spans = {float((days[1] - days[0]).days + 1)} if len(days) == 2 else set()
    named = {number for name, number in WEEKDAYS.items() if name in text}
    return spans | named | {float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", text)}


def test_clusters_are_found_however_they_are_written() -> None:
    assert find_clusters(["KRAKEN", "mit-supercloud", "neuron", "kraken"]) == [
        "Kraken",
        "MIT Supercloud",
        "KISTI Neuron",
    ]
    assert find_clusters(["helios"]) == ["Helios"]  # not its parts
    assert find_clusters(["acme"]) == ["Acme"]
    assert find_clusters(["philly", "Kraken"]) == ["Philly", "Kraken"]  # as they were named
    assert find_clusters([]) == []


def test_a_name_that_fits_several_clusters_lists_those() -> None:
    with pytest.raises(HakaruError) as refused:
        find_clusters(["Kraken", "venu", "RSC"])
    assert str(refused.value) == (
        "there is no published cluster 'RSC'; known: Meta RSC-1, Meta RSC-2, Meta RSC-1+2 "
        "(or none, all)"
    )


@pytest.mark.parametrize("name", ["nowhere", "rsc", ""])
def test_an_unknown_or_ambiguous_cluster_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(HakaruError, match="Meta RSC-1"):
        find_clusters([name])


def test_the_parts_of_a_whole_are_left_out_of_the_short_form() -> None:
    assert "Helios-Venus" in first_of_each("num_jobs")
    assert set(without_parts(first_of_each("run_median_s"))) == {
        *("Acme-Seren", "Acme-Kalos", "Philly", "Helios", "PAI"),
    }


def test_metrics_come_in_the_order_of_the_list() -> None:
    found = find_metrics(["wra_median", "num_jobs", "wra_mean"])
    assert [metric.id for metric in found] == ["num_jobs", "wra_mean", "wra_median"]
    assert find_metrics(()) == list(load_metrics().values())


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(HakaruError, match="no metric 'speed'; known: num_jobs"):
        find_metrics(["speed"])


# ---- how a number is read from an analysis


def metric(**fields: object) -> Metric:
    return Metric(**{"id": "m", "label": "M", "unit": "jobs", "subject": "S", **fields})  # type: ignore[arg-type]


SIZES = [
    {"num_gpus": "1", "num_jobs": 6, "pe_hours": 6.0},
    {"num_gpus": "2", "num_jobs": 1, "pe_hours": 10.0},
    {"num_gpus": "8", "num_jobs": 2, "pe_hours": None},
    {"num_gpus": "16", "num_jobs": 1, "pe_hours": 4.0},
    {"num_gpus": "0", "num_jobs": 10, "pe_hours": 0.0},
]
WITH_GPUS = {"num_gpus": {"low": 1}}


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"column": "num_jobs", "reduce": "sum"}, 20),
        ({"column": "num_jobs", "reduce": "sum", "row": WITH_GPUS}, 10),
        ({"column": "num_jobs", "reduce": "sum", "row": {"num_gpus": "3"}}, 0),
        ({"column": "num_gpus", "reduce": "max"}, 16),
        # (6·1 + 1·2 + 2·8 + 1·16) / 10
        ({"column": "num_gpus", "reduce": "mean", "weight": "num_jobs", "row": WITH_GPUS}, 4.0),
        ({"column": "num_gpus", "reduce": "median", "weight": "num_jobs", "row": WITH_GPUS}, 1),
        # the tenth and eleventh of twenty: 0 and 1
        ({"column": "num_gpus", "reduce": "median", "weight": "num_jobs"}, 0.5),
        ({"column": "num_jobs", "reduce": "share", "row": {"num_gpus": ["2", "8"]}}, 3 / 20),
        (
            {
                "column": "num_jobs",
                "reduce": "share",
                "row": {"num_gpus": {"low": 3, "high": 8}},
                "of": WITH_GPUS,
            },
            2 / 10,
        ),
        ({"column": "pe_hours", "reduce": "share", "row": {"num_gpus": "2"}}, 10 / 20),
        ({"column": "num_jobs", "reduce": "peak", "key": "num_gpus"}, 0),
        ({"column": "num_jobs", "reduce": "ratio"}, 10),
        ({"column": "num_jobs", "row": {"num_gpus": "8"}, "scale": 3600}, 7200),
        ({"column": "pe_hours", "per": "num_jobs", "row": {"num_gpus": "2"}}, 10),
    ],
)
def test_a_number_read_from_rows(fields: dict[str, object], value: float) -> None:
    assert read(metric(**fields), SIZES) == Cell(pytest.approx(value))


def test_an_interval_comes_with_its_number() -> None:
    rows = [{"mean": 0.25, "low": 0.2, "high": 0.3}]
    assert read(metric(column="mean", low="low", high="high"), rows) == Cell(0.25, "", 0.2, 0.3)


def test_unknown_stays_unknown() -> None:
    assert read(metric(column="mean", missing="why"), []) == Cell(None, "why")
    assert read(metric(column="mean", missing="why"), [{"mean": None}]) == Cell(None, "why")
    assert read(metric(column="n", per="k"), [{"n": 3, "k": 0}]).value is None
    empty_day = [{"mean_jobs": 4.0}, {"mean_jobs": 0.0}]
    assert read(metric(column="mean_jobs", reduce="ratio"), empty_day).value is None


def test_a_day_without_a_number_has_no_peak_and_no_ratio() -> None:
    days = [{"day": 0, "mean": 4.0}, {"day": 1, "mean": None}, {"day": 2, "mean": 9.0}]
    peak = metric(column="mean", reduce="peak", key="day", missing="why")
    assert read(peak, days) == Cell(None, "why")
    assert read(metric(column="mean", reduce="ratio", missing="why"), days) == Cell(None, "why")
    ties = [{"day": 3, "mean": 9.0}, {"day": 5, "mean": 9.0}]
    assert read(peak, ties) == Cell(3.0), "the first of the busiest"


def test_the_most_of_what_is_known() -> None:
    most = metric(column="n", reduce="max")
    assert read(most, [{"n": None}, {"n": 3}, {"n": 2}]) == Cell(3.0)
    assert read(most, [{"n": None}]) == Cell(None, "there are no such jobs")
    assert read(most, []) == Cell(None, "there are no such jobs")
    empty = metric(column="n", reduce="mean", weight="k", missing="why")
    assert read(empty, [{"n": 3, "k": 0}]) == Cell(None, "why")
    assert read(metric(column="n", reduce="median", weight="k"), [{"n": 3, "k": 0}]).value is None
    assert read(metric(column="n", reduce="share"), [{"n": 0}]).value is None


def test_the_middle_of_counted_values() -> None:
    """1 1 1 2 9: 2 is not the middle; of 1 1 2 9 it is half way between 1 and 2."""
    middle = metric(column="n", reduce="median", weight="k")
    for counts, value in [((3, 1, 1), 1.0), ((2, 1, 1), 1.5), ((1, 1, 1), 2.0), ((0, 0, 2), 9.0)]:
        rows = [{"n": n, "k": k} for n, k in zip((9, 2, 1), reversed(counts), strict=True)]
        assert read(middle, rows) == Cell(value), counts


@pytest.mark.parametrize(
    ("num_unknown", "value"), [(0, 0.5), (1, 99 / 199), (2, 99 / 200), (3, None)]
)
def test_many_unknown_jobs_leave_no_value(num_unknown: int, value: float | None) -> None:
    """Of about 200 jobs two without a state are borne, three (above 1 %) are not."""
    rows = [{"state": "completed", "num_jobs": 99}, {"state": "failed", "num_jobs": 99}]
    rows += [{"state": None, "num_jobs": num_unknown}] if num_unknown else []
    share = metric(
        column="num_jobs",
        reduce="share",
        row={"state": "completed"},
        unknown="state",
        missing="why",
    )
    cell = read(share, rows)
    assert cell.value == (None if value is None else pytest.approx(value))
    assert value is not None or cell.reason == "1 % of the jobs: why"


def test_a_class_without_jobs_is_zero_and_not_unknown() -> None:
    rows = [{"parallelism": "single-pe", "num_jobs": 5}]
    share = metric(column="num_jobs", reduce="share", row={"parallelism": "multi-node"})
    assert read(share, rows) == Cell(0.0)
