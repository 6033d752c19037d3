"""What to generate: the parameters of a synthetic cluster, their checks, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from hakaru.errors import SettingsError
from hakaru.settings import check_cluster_name
from hakaru.sources.synth import _figures as figures

MAX_JOBS = 10**9


@dataclass(frozen=True)
class Synth:
    """A synthetic cluster; the same values give the same rows.

    `start` without an offset is in `zone`. With neither `days` nor `num_nodes` it is AAIC's machine for as
    long as it takes at `load`, and past AAIC's period a larger machine; with one of them the other
    follows from `load`. The last `samples_days` of the period have samples. `idle_share` of the jobs hold
    their GPUs without using them.
    """

    num_jobs: int = 100_000
    seed: int = 1
    cluster: str = "synth"
    zone: str = "Asia/Tokyo"
    start: datetime = datetime(2024, 4, 1)
    days: float | None = None
    num_nodes: int | None = None
    gpus_per_node: int = figures.GPUS_PER_NODE
    num_users: int = 106
    samples_days: float = 2.0
    load: float = 0.5  # AAIC's own is 0.53
    idle_share: float = 0.1


@dataclass(frozen=True)
class Plan:
    """A checked `Synth` with its period (whole hours, UTC seconds) and machine."""

    spec: Synth
    start_s: int
    num_hours: int
    num_nodes: int

    @property
    def num_jobs(self) -> int:
        return self.spec.num_jobs

    @property
    def end_s(self) -> int:
        return self.start_s + 3600 * self.num_hours

    @property
    def num_gpus(self) -> int:
        return self.num_nodes * self.spec.gpus_per_node

    @property
    def window_s(self) -> tuple[int, int]:
        """The span that has samples: the last days, from a whole minute on."""
        span = int(self.spec.samples_days * 1440) * 60
        return max(self.end_s - span, self.start_s), self.end_s

    def node_names(self) -> list[str]:
        width = max(2, len(str(self.num_nodes)))
        return [f"node{i:0{width}}" for i in range(1, self.num_nodes + 1)]

    def facts(self) -> dict[str, Any]:
        """What `clusters` says of it, with the names that `hakaru.toml` uses."""
        one_node = {"max_nodes": 1, "max_gpus": self.spec.gpus_per_node}
        queues: dict[str, dict[str, int]] = {}
        for name, hours in figures.MAX_WALLTIME_H.items():
            limits = one_node if name in figures.ONE_NODE_QUEUES else {"max_nodes": self.num_nodes}
            queues[name] = {"max_walltime_h": hours, **limits}
        queues["short"]["max_gpus"] = 1
        return {
            "zone": self.spec.zone,
            "unit": "gpu",
            "gpus_per_node": self.spec.gpus_per_node,
            "nodes": self.num_nodes,
            "queues": queues,
        }

    def label(self) -> str:
        """Everything that determines the rows, for the log of ingests."""
        local = datetime.fromtimestamp(self.start_s, ZoneInfo(self.spec.zone)).isoformat()
        known = {"start": local, "days": self.num_hours / 24, "num_nodes": self.num_nodes}
        return " ".join(f"{name}={value}" for name, value in (asdict(self.spec) | known).items())


def plan(spec: Synth) -> Plan:
    """Check the parameters, all at once, and work out the period and the machine."""
    problems = list(_problems(spec))
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise SettingsError(f"the synthetic cluster cannot be made as asked:\n{listed}")
    check_cluster_name(spec.cluster)
    days, num_nodes = _size(spec)
    start = spec.start if spec.start.tzinfo else spec.start.replace(tzinfo=ZoneInfo(spec.zone))
    return Plan(spec, int(start.timestamp()), max(1, round(days * 24)), num_nodes)


def _problems(spec: Synth) -> list[str]:
    """Each parameter that is out of range, what it is and what it may be."""
    checks: list[tuple[bool, str, Any, str]] = [
        (1 <= spec.num_jobs <= MAX_JOBS, "num_jobs", spec.num_jobs, f"1 to {MAX_JOBS:,}"),
        (spec.seed >= 0, "seed", spec.seed, "0 or more"),
        (spec.zone in available_timezones(), "zone", spec.zone, "an IANA name as Asia/Tokyo"),
        (_positive(spec.days), "days", spec.days, "above 0"),
        (spec.num_nodes is None or spec.num_nodes >= 1, "num_nodes", spec.num_nodes, "1 or more"),
        (1 <= spec.gpus_per_node <= 64, "gpus_per_node", spec.gpus_per_node, "1 to 64"),
        (spec.num_users >= 1, "num_users", spec.num_users, "1 or more"),
        (spec.samples_days >= 0, "samples_days", spec.samples_days, "0 (no samples) or more"),
        (0 < spec.load <= 1, "load", spec.load, "above 0, at most 1"),
        (0 <= spec.idle_share <= 1, "idle_share", spec.idle_share, "0 to 1"),
    ]
    return [
        f"{name} is {value!r}; expected {wanted}" for ok, name, value, wanted in checks if not ok
    ]


def _positive(value: float | None) -> bool:
    return value is None or (value > 0 and math.isfinite(value))


def _size(spec: Synth) -> tuple[float, int]:
    """Days and nodes, so that the jobs' GPU-hours fill `load` of the machine."""
    from hakaru.sources.synth._tables import mean_gpu_hours

    def needed(num_nodes: int) -> float:
        """Node-days that the jobs take at this load."""
        hours = spec.num_jobs * mean_gpu_hours(spec.gpus_per_node, num_nodes)
        return hours / (spec.load * spec.gpus_per_node * 24)

    if spec.days is not None and spec.num_nodes is not None:
        return spec.days, spec.num_nodes
    if spec.num_nodes is not None:
        return max(1.0, needed(spec.num_nodes) / spec.num_nodes), spec.num_nodes
    node_days = needed(figures.NUM_NODES)
    if spec.days is not None:
        return spec.days, max(1, math.ceil(node_days / spec.days))
    days = min(max(1.0, node_days / figures.NUM_NODES), figures.PERIOD_DAYS)
    return days, max(figures.NUM_NODES, math.ceil(node_days / days))
