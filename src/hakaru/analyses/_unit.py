"""What the size of a cluster's jobs counts: GPUs, or processors where most hours are of jobs without GPUs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal

from hakaru.analyses._base import Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from hakaru.engine import Engine

Unit = Literal["gpu", "cpu"]
UNITS: tuple[Unit, ...] = ("gpu", "cpu")


def observed_unit(engine: Engine, stored: Callable[[Collection[str]], str], cluster: str) -> Unit:
    """GPUs where the jobs that hold some ran for at least half of the hours, else processors.

    The others are the jobs that hold processors and no GPU; a job of neither counts for nothing. Where the
    hours are equal, or none is known, the numbers of jobs decide.
    """
    holds = "num_gpus >= 1"
    without = f"NOT coalesce({holds}, false) AND num_cpus >= 1"
    (row,) = engine.query(
        f"""
        SELECT count(CASE WHEN {holds} THEN 1 END) AS gpu_jobs,
               coalesce(sum(CASE WHEN {holds} THEN run_s END), 0e0) AS gpu_s,
               count(CASE WHEN {without} THEN 1 END) AS cpu_jobs,
               coalesce(sum(CASE WHEN {without} THEN run_s END), 0e0) AS cpu_s
        FROM {stored(["cluster", "num_gpus", "num_cpus", "run_s"])} AS stored
        WHERE cluster = '{cluster}'
        """
    ).to_pylist()
    most = (row["gpu_s"], row["gpu_jobs"]) >= (row["cpu_s"], row["cpu_jobs"])
    return "gpu" if row["gpu_jobs"] and most else "cpu"


def other_unit(unit: str) -> Unit:
    return "cpu" if unit == "gpu" else "gpu"


def uncounted(rule: Rule) -> str:
    """How many jobs of each cluster a rule leaves out whose size the other unit would count."""
    return f"""
        SELECT cluster, count(*) AS num_jobs FROM jobs AS jobs_all
        WHERE NOT coalesce({rule.sql}, false) AND num_other_pes >= 1 GROUP BY cluster
    """
