"""A rule as lines of Slurm's configuration: slurm.conf, and the sacctmgr commands of limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hakaru.sim.advise.space import Rule
    from hakaru.sim.limits import Limit
    from hakaru.sim.policies import Policy, Weights

TRES = {"gpu": "gres/gpu", "cpu": "cpu"}


@dataclass(frozen=True)
class SlurmLines:
    """`conf` goes into slurm.conf, `commands` into a shell; `remarks` say what lines cannot."""

    conf: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def text(self) -> str:
        """One text to read and to paste from; remarks are comments."""
        parts = []
        if self.conf:
            parts += ["# slurm.conf, then restart slurmctld", *self.conf, ""]
        if self.commands:
            parts += ["# in a shell, as an administrator of Slurm's accounting", *self.commands, ""]
        return "\n".join([*parts, *(f"# {remark}" for remark in self.remarks)]).rstrip() + "\n"


def slurm_lines(rule: Rule, baseline: Rule, unit: str = "gpu", qos: str = "normal") -> SlurmLines:
    """What to set so that Slurm follows the rule where it differs from the baseline."""
    conf: list[str] = []
    remarks: list[str] = []
    if rule.policy.weights is not None and rule.policy.weights != baseline.policy.weights:
        conf += _priority(rule.policy.weights, unit)
        remarks += _about_priority(rule.policy.weights, unit)
    limits = [limit for limit in rule.limits if limit not in baseline.limits]
    settings = [_limit(limit, unit) for limit in limits]
    commands = _qos_priorities(rule.policy.weights, baseline.policy.weights)
    if settings:
        commands.append(f"sacctmgr -i modify qos where name={qos} set {' '.join(settings)}")
    if limits:
        conf.append("AccountingStorageEnforce=associations,limits,qos")
        remarks += _about_limits(limits, unit, qos)
    if unit == "gpu" and any("gres/gpu" in line for line in (*conf, *commands)):
        conf.append("AccountingStorageTRES=gres/gpu")
    remarks += _about_backfill(rule.policy, baseline.policy)
    return SlurmLines(tuple(conf), tuple(commands), tuple(remarks))


def duration(seconds: float) -> str:
    """A time as slurm.conf reads it: days-hours, with minutes where there are any."""
    minutes = round(seconds / 60)
    days, minutes = divmod(minutes, 24 * 60)
    hours, minutes = divmod(minutes, 60)
    return f"{days}-{hours:02}:{minutes:02}:00" if minutes else f"{days}-{hours:02}"


def _priority(weights: Weights, unit: str) -> list[str]:
    # The share of the machine that a job asks for is Slurm's factor of a TRES; PriorityWeightJobSize
    # would mix nodes and processors, and cannot be negative.
    lines = [
        "PriorityType=priority/multifactor",
        f"PriorityWeightAge={round(weights.age)}",
        f"PriorityMaxAge={duration(weights.max_age_s)}",
        f"PriorityWeightFairshare={round(weights.fair_share)}",
        "PriorityWeightJobSize=0",
        f"PriorityWeightTRES={TRES[unit]}={round(weights.size)}",
        f"PriorityCalcPeriod={max(1, round(weights.period_s / 60))}",
    ]
    if weights.size < 0:  # the same for every job: Slurm cuts a priority below 1 off
        lines.append(f"PriorityWeightPartition={-round(weights.size)}")
    if weights.qos:
        lines.append(f"PriorityWeightQOS={round(max(weights.qos.values()))}")
    if weights.fair_share:
        lines += [
            f"PriorityDecayHalfLife={duration(weights.half_life_s)}",
            "PriorityFlags=NO_FAIR_TREE",
        ]
    return lines


def _qos_priorities(weights: Weights | None, now: Weights | None) -> list[str]:
    """Slurm divides by the highest priority: with that as the weight, a priority is points."""
    if weights is None or weights == now:
        return []
    return [
        f"sacctmgr -i modify qos where name={name} set Priority={max(0, round(points))}"
        for name, points in weights.qos.items()
    ]


def _about_priority(weights: Weights, unit: str) -> list[str]:
    remarks = ["The replay knows one partition: a job's size is its share of the whole machine."]
    if weights.size < 0:
        remarks.append(
            "PriorityWeightPartition keeps priorities above 0; it adds the same to every job while "
            "all partitions have the same PriorityJobFactor."
        )
    if weights.qos:
        remarks.append(
            "A QOS counts for its priority while no other has a higher one, of all that Slurm knows."
        )
    if weights.fair_share:
        remarks.append(
            "Fair share is replayed as Slurm's classic one (NO_FAIR_TREE) with an equal share for "
            "every user; add the flag to those you have."
        )
        if unit == "gpu":
            remarks.append(
                "Usage is counted in GPUs: set TRESBillingWeights=CPU=0,GRES/gpu=1 on the partitions."
            )
    return remarks


def _limit(limit: Limit, unit: str) -> str:
    if limit.what == "running-jobs":
        return f"MaxJobsPerUser={limit.value}"
    return f"MaxTRESPerUser={TRES[unit]}={limit.value}"


def _about_limits(limits: Sequence[Limit], unit: str, qos: str) -> list[str]:
    none = " ".join(_limit(replace(limit, value=0), unit)[:-1] + "-1" for limit in limits)
    return [
        f"The limit holds for the jobs of QOS {qos}; to lift it again, set {none}.",
        "Name the settings that you have in AccountingStorageEnforce and AccountingStorageTRES too.",
    ]


def _about_backfill(policy: Policy, baseline: Policy) -> list[str]:
    if (policy.scan, policy.predictor) == (baseline.scan, baseline.predictor):
        return []
    remarks = []
    if policy.scan != baseline.scan:
        remarks.append(
            f"Backfilling {policy.scan}: Slurm tries jobs by priority and cannot be told."
        )
    if policy.predictor != baseline.predictor:
        remarks.append("Predicted run times: Slurm plans with the time limit that users ask for.")
    return remarks
