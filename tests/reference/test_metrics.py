"""Where each metric stands in its analysis: tables written by hand, in which no two numbers are equal."""

from __future__ import annotations

from typing import Any

import pytest

from hakaru.reference.metrics import Cell, load_metrics, read, wanted_states

Rows = list[dict[str, Any]]


def table(key: str, *names: str, **columns: list[Any]) -> Rows:
    return [
        {key: name} | {column: values[at] for column, values in columns.items()}
        for at, name in enumerate(names)
    ]


STATES = table(
    "state",
    "completed", "failed", "out_of_memory", "node_failed", "cancelled", "timeout", "running", "pending",
    num_jobs=[500, 20, 8, 4, 60, 8, 300, 100],
    pe_hours=[700.0, 100.0, 30.0, 10.0, 90.0, 70.0, 9000.0, None],
)  # fmt: skip
SIZES = [
    {"num_gpus": size, "num_jobs": jobs, "pe_hours": hours}
    for size, jobs, hours in [
        (0, 40, 0.0), (1, 50, 100.0), (2, 20, 60.0), (3, 7, 20.0), (8, 11, 70.0), (9, 5, 40.0),
        (256, 6, 200.0), (512, 1, 10.0),
    ]
]  # fmt: skip
CLASSES = table(
    "parallelism", "single-pe", "single-node", "multi-node",
    num_jobs=[70, 20, 10], pe_hours=[100.0, 300.0, 1600.0],
)  # fmt: skip
QUEUES = table("queue", "a", "b", max_nodes=[3, 17], max_pes=[24, 136], max_requested_h=[5.0, 99.0])
RUNS = table(
    "class", "single-pe", "all",
    mean_h=[9.0, 3.0], median_h=[8.0, 0.5], min_h=[7.0, 0.1], max_h=[6.0, 48.0], sd_h=[5.0, 4.0],
)  # fmt: skip
WAITS = table(
    "part", "submit to eligible", "submit to start",
    mean_s=[1.0, 900.0], median_s=[2.0, 30.0], p90_s=[3.0, 600.0], p95_s=[4.0, 7000.0], p99_s=[5.0, 9e4],
    max_s=[6.0, 1e6],
)  # fmt: skip
GAPS = table(
    "submissions", "all", "same user",
    mean_s=[50.0, 60.0], p25_s=[2.0, 3.0], median_s=[5.0, 7.0], p75_s=[11.0, 13.0], p90_s=[17.0, 19.0],
)  # fmt: skip
HOLDERS = table(
    "holder", "user", "account",
    num_holders=[40, 9], total_weight=[1000.0, 1000.0], share_top1=[0.1, 0.2], share_top3=[0.3, 0.4],
    share_top10=[0.5, 0.6], share_top_tenth=[0.35, 0.7],
)  # fmt: skip
SCALING = table(
    "coefficient", "spearman", "pearson of logs", mean=[0.25, -0.5], low=[0.2, -0.6], high=[0.3, -0.4],
)  # fmt: skip
ACCURACY = [{"mean": 0.4, "median": 0.1, "p75": 0.6, "share_at_max": 0.3}]
HOURS = [
    {"hour": h, "mean": 5.0 + (h == 17), "num_jobs": 99 - h, "num_days": 31} for h in range(24)
]
DAYS = [
    {"weekday": day, "mean": mean, "num_jobs": 100 - day, "num_days": 5}
    for day, mean in enumerate((6.0, 9.0, 6.0, 6.0, 5.0, 4.0, 3.0))
]
USE = table("quarter", "all", "2018Q1", utilisation=[0.6, 0.9])


@pytest.mark.parametrize(
    ("id", "rows", "value"),
    [
        ("num_jobs", STATES, 1000),
        ("num_failed_jobs", STATES, 32),
        # of the 600 that ended, and of their 1,000 hours
        ("share_completed", STATES, 500 / 600),
        ("share_failed", STATES, 32 / 600),
        ("share_cancelled", STATES, 60 / 600),
        ("share_gpu_time_completed", STATES, 0.7),
        ("share_gpu_time_failed", STATES, 0.14),
        ("share_gpu_time_cancelled", STATES, 0.09),
        ("num_gpu_jobs", SIZES, 100),
        ("num_cpu_jobs", SIZES, 40),
        ("gpus_per_job_max", SIZES, 512),
        # (50·1 + 20·2 + 7·3 + 11·8 + 5·9 + 6·256 + 512) / 100
        ("gpus_per_job_mean", SIZES, 22.92),
        ("gpus_per_job_median", SIZES, 1.5),
        ("share_2_gpus", SIZES, 0.20),
        ("share_3_to_8_gpus", SIZES, 0.18),
        ("share_over_8_gpus", SIZES, 0.12),
        ("share_gpu_time_256_gpus", SIZES, 210 / 500),
        ("share_single_pe", CLASSES, 0.7),
        ("share_gpu_time_single_pe", CLASSES, 0.05),
        ("share_one_node", CLASSES, 0.9),
        ("share_multi_node", CLASSES, 0.1),
        ("max_nodes_per_job", QUEUES, 17),
        ("run_mean_s", RUNS, 10_800),
        ("run_median_s", RUNS, 1800),
        ("run_max_s", RUNS, 172_800),
        ("run_mean_completed_s", RUNS, 10_800),
        ("run_median_completed_s", RUNS, 1800),
        ("wait_mean_s", WAITS, 900),
        ("wait_median_s", WAITS, 30),
        ("wait_p90_s", WAITS, 600),
        ("interarrival_p25_s", GAPS, 2),
        ("interarrival_median_s", GAPS, 5),
        ("interarrival_p75_s", GAPS, 11),
        ("interarrival_same_user_p25_s", GAPS, 3),
        ("interarrival_same_user_median_s", GAPS, 7),
        ("num_users", HOLDERS, 40),
        ("num_accounts", HOLDERS, 9),
        ("jobs_per_user_mean", HOLDERS, 25),
        ("top10pct_user_job_share", HOLDERS, 0.35),
        ("wra_mean", ACCURACY, 0.4),
        ("wra_median", ACCURACY, 0.1),
        ("share_at_max", ACCURACY, 0.3),
        ("num_days", HOURS, 31),
        ("peak_hour", HOURS, 17),
        ("peak_weekday", DAYS, 1),
        ("weekday_peak_ratio", DAYS, 3),
        ("utilisation_mean", USE, 0.6),
    ],
)
def test_a_metric_is_its_own_number(id: str, rows: Rows, value: float) -> None:
    assert read(load_metrics()[id], rows).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("id", "expected"),
    [("spearman_size_run", (0.25, 0.2, 0.3)), ("logpearson_size_run", (-0.5, -0.6, -0.4))],
)
def test_a_correlation_has_the_interval_of_its_own_row(
    id: str, expected: tuple[float, float, float]
) -> None:
    cell = read(load_metrics()[id], SCALING)
    assert (cell.value, cell.low, cell.high) == expected


def test_which_jobs_count() -> None:
    metrics = load_metrics()
    every = ("run_mean_s", "run_median_s", "run_max_s")
    assert {(metrics[id].min_run_s, *metrics[id].states) for id in every} == {(0, "any")}
    own = ("run_mean_completed_s", "run_median_completed_s", "wra_mean", "share_single_pe")
    assert {(metrics[id].min_run_s, *metrics[id].states) for id in own} == {(None,)}
    counted = {id for id, metric in metrics.items() if metric.users}
    assert counted == {"num_users", "num_accounts", "jobs_per_user_mean", "top10pct_user_job_share"}


def test_a_job_of_unknown_size_is_neither_with_gpus_nor_without() -> None:
    """One of 141 jobs, which is less than a hundredth."""
    rows = [*SIZES, {"num_gpus": None, "num_jobs": 1, "pe_hours": None}]
    assert read(load_metrics()["num_gpu_jobs"], rows).value == 100
    assert read(load_metrics()["num_cpu_jobs"], rows).value == 40


WORDS = {
    "mean": ", mean", "median": ", median", "p25": "25th percentile", "p75": "75th percentile",
    "p90": "90th percentile", "failed": "failed", "cancelled": "cancelled", "completed": "completed",
    "spearman": "Spearman", "logpearson": "Pearson of logarithms", "users": "Users", "wait": "Wait",
    "hour": "hour", "weekday": "day", "wra": "Walltime request accuracy", "gpus": "GPU", "cpus": "Processors",
}  # fmt: skip


def test_a_label_says_what_its_id_says() -> None:
    """Run time is labelled alike for all jobs and for completed ones: the line says which are counted."""
    for id, metric in load_metrics().items():
        own = id.removesuffix("_completed_s").split("_")
        if id in ("utilisation_mean", "jobs_per_user_mean"):
            own = own[:-1]
        for word in own:
            assert WORDS.get(word, "") in metric.label, id
        assert ("same_user" in id) == ("a user's" in metric.label), id
        assert ("gpu_time" in id) == ("-time" in metric.label), id


def test_a_unit_is_that_of_the_id() -> None:
    for id, metric in load_metrics().items():
        assert (metric.unit == "s") == id.endswith("_s"), id
        is_share = id.startswith(("share_", "wra_", "utilisation", "top10pct"))
        assert (metric.unit == "share") == is_share, id
        assert (metric.unit == "correlation") == id.endswith("_size_run"), id
        assert metric.subject and bool(metric.analysis) != bool(metric.setting), id


def test_states_that_a_metric_counts() -> None:
    metrics = load_metrics()
    failed = ("failed", "out_of_memory", "node_failed")
    assert wanted_states(metrics["share_failed"]) == failed
    assert wanted_states(metrics["num_failed_jobs"]) == failed
    assert wanted_states(metrics["share_completed"]) == ("completed",)
    assert wanted_states(metrics["num_jobs"]) == wanted_states(metrics["share_single_pe"]) == ()


@pytest.mark.parametrize(
    ("ids", "column", "rows", "reason"),
    [
        (
            ("num_failed_jobs", "share_completed", "share_failed", "share_gpu_time_cancelled"),
            "state",
            STATES,
            "50 % of the jobs: the log does not say how they ended",
        ),
        (
            ("num_gpu_jobs", "num_cpu_jobs", "gpus_per_job_mean", "share_2_gpus"),
            "num_gpus",
            SIZES,
            "50 % of the jobs: the log does not count their GPUs",
        ),
        (
            ("share_one_node", "share_multi_node"),
            "parallelism",
            CLASSES,
            "50 % of the jobs: the log does not say on how many nodes they ran",
        ),
    ],
)
def test_half_of_the_jobs_unknown(
    ids: tuple[str, ...], column: str, rows: Rows, reason: str
) -> None:
    many = sum(row["num_jobs"] for row in rows)
    word = "unknown-nodes" if column == "parallelism" else None
    rows = [*rows, {column: word, "num_jobs": many, "pe_hours": 1.0}]
    for id in ids:
        assert read(load_metrics()[id], rows) == Cell(None, reason), id


def test_numbers_that_need_no_state_and_no_nodes() -> None:
    """All jobs count, also those that do not say how they ended or on how many nodes they ran."""
    rows = [*STATES, {"state": None, "num_jobs": 1000, "pe_hours": 1.0}]
    assert read(load_metrics()["num_jobs"], rows).value == 2000
    rows = [*CLASSES, {"parallelism": "unknown-nodes", "num_jobs": 100, "pe_hours": 1.0}]
    assert read(load_metrics()["share_single_pe"], rows).value == pytest.approx(0.35)


@pytest.mark.parametrize(
    ("id", "rows", "reason"),
    [
        ("num_users", [], "the log does not name them"),
        ("num_accounts", HOLDERS[:1], "the log does not name them"),
        ("peak_weekday", [*DAYS[:6], {"weekday": 6, "mean": None}], "a day of the week has no job"),
        ("weekday_peak_ratio", [*DAYS[:6], {"weekday": 6, "mean": 0.0}], "a day of the week has no job"),
        ("interarrival_median_s", [], "there are no two jobs"),
        ("interarrival_same_user_p25_s", GAPS[:1], "no user is known to have two jobs"),
        ("spearman_size_run", SCALING[1:], "all jobs are of one size or one run time"),
        ("max_nodes_per_job", [{"max_nodes": None}], "the log does not say on how many nodes they ran"),
        ("wait_mean_s", [], "there are no such jobs"),
    ],
)  # fmt: skip
def test_why_a_number_is_missing(id: str, rows: Rows, reason: str) -> None:
    assert read(load_metrics()[id], rows) == Cell(None, reason)


def test_which_analysis_gives_a_number() -> None:
    of = {
        "states": "num_jobs num_failed_jobs num_gpu_jobs num_cpu_jobs gpus_per_job_mean gpus_per_job_median "
        "gpus_per_job_max share_2_gpus share_3_to_8_gpus share_over_8_gpus share_gpu_time_256_gpus "
        "share_completed share_failed share_cancelled share_gpu_time_completed share_gpu_time_failed "
        "share_gpu_time_cancelled",
        "arrivals-by-hour": "num_days peak_hour",
        "arrivals-by-weekday": "peak_weekday weekday_peak_ratio",
        "concentration": "num_users num_accounts jobs_per_user_mean top10pct_user_job_share",
        "utilisation": "utilisation_mean",
        "parallelism": "share_single_pe share_gpu_time_single_pe share_one_node share_multi_node",
        "queues": "max_nodes_per_job",
        "request-accuracy": "wra_mean wra_median share_at_max",
        "walltime": "run_mean_s run_median_s run_max_s run_mean_completed_s run_median_completed_s",
        "size-vs-walltime": "spearman_size_run logpearson_size_run",
        "waits": "wait_mean_s wait_median_s wait_p90_s",
        "interarrivals": "interarrival_p25_s interarrival_median_s interarrival_p75_s "
        "interarrival_same_user_p25_s interarrival_same_user_median_s",
    }
    metrics = load_metrics()
    named = {id: analysis for analysis, ids in of.items() for id in ids.split()}
    assert {id: metric.analysis for id, metric in metrics.items() if metric.analysis} == named
    sized = {id for id, metric in metrics.items() if metric.by == "num_gpus"}
    assert sized == {id for id in named if "gpus" in id or id in ("num_gpu_jobs", "num_cpu_jobs")}
    assert all(metric.by in (None, "num_gpus") for metric in metrics.values())
    settings = {id: metric.setting for id, metric in metrics.items() if metric.setting}
    assert settings == {
        "num_nodes": "nodes",
        "num_gpus": "gpus",
        "num_cpus": "cpus",
        "gpus_per_node": "gpus_per_node",
        "cpus_per_node": "cpus_per_node",
    }
