"""The lines of an advice for Slurm, to the letter: what is set, what is left, and what is said beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakaru.sim import POLICIES, Limit, Policy, Weights
from hakaru.sim.advise import Rule, SlurmLines, slurm_lines
from hakaru.sim.advise.slurm_conf import duration

EASY = Rule(POLICIES.get("easy"))
ONE_PARTITION = "The replay knows one partition: a job's size is its share of the whole machine."
NAME_SETTINGS = (
    "Name the settings that you have in AccountingStorageEnforce and AccountingStorageTRES too."
)


def weighted(**weights: Any) -> Rule:
    return Rule(_policy(Weights(**weights)))


def _policy(weights: Weights) -> Policy:
    return replace(POLICIES.get("multifactor"), weights=weights)


def lines_of(unit: str = "gpu", **weights: Any) -> dict[str, str]:
    return dict(line.split("=", 1) for line in slurm_lines(weighted(**weights), EASY, unit).conf)


def test_one_text_to_read_and_to_paste_from() -> None:
    lines = SlurmLines(("A=1", "B=2"), ("sacctmgr x", "sacctmgr y"), ("first", "second"))
    assert lines.text() == (
        "# slurm.conf, then restart slurmctld\nA=1\nB=2\n\n"
        "# in a shell, as an administrator of Slurm's accounting\nsacctmgr x\nsacctmgr y\n\n"
        "# first\n# second\n"
    )
    assert SlurmLines(("A=1",)).text() == "# slurm.conf, then restart slurmctld\nA=1\n"
    assert SlurmLines(commands=("c",), remarks=("r",)).text() == (
        "# in a shell, as an administrator of Slurm's accounting\nc\n\n# r\n"
    )


def test_points_are_rounded_and_a_size_of_zero_or_more_needs_no_partition() -> None:
    lines = lines_of(age=10.6, size=2000.6, fair_share=0.4, max_age_s=86400, period_s=90)
    assert lines["PriorityWeightAge"] == "11"
    assert lines["PriorityWeightTRES"] == "gres/gpu=2001"
    assert lines["PriorityWeightFairshare"] == "0"
    assert (lines["PriorityMaxAge"], lines["PriorityCalcPeriod"]) == ("1-00", "2")
    assert "PriorityWeightPartition" not in lines
    assert "PriorityWeightPartition" not in lines_of(size=0)
    assert lines_of(size=-0.6)["PriorityWeightPartition"] == "1"
    assert lines_of("cpu", size=5)["PriorityWeightTRES"] == "cpu=5"
    assert lines_of(period_s=20)["PriorityCalcPeriod"] == "1"  # Slurm counts in minutes


def test_without_fair_share_nothing_decays() -> None:
    lines = lines_of(age=10, fair_share=0)
    assert not {"PriorityDecayHalfLife", "PriorityFlags"} & set(lines)
    lines = lines_of(fair_share=1, half_life_s=86400 + 5400)
    assert lines["PriorityDecayHalfLife"] == "1-01:30:00"


def test_priorities_of_qos_are_rounded_and_the_highest_is_the_weight() -> None:
    got = slurm_lines(weighted(qos={"low": 1.4, "high": 6.6}), EASY)
    assert "PriorityWeightQOS=7" in got.conf
    assert got.commands == (
        "sacctmgr -i modify qos where name=low set Priority=1",
        "sacctmgr -i modify qos where name=high set Priority=7",
    )


@pytest.mark.parametrize(
    ("weights", "unit", "remarks"),
    [
        ({"age": 1}, "gpu", []),
        (
            {"size": -1},
            "gpu",
            [
                "PriorityWeightPartition keeps priorities above 0; it adds the same to every job while all "
                "partitions have the same PriorityJobFactor."
            ],
        ),
        (
            {"qos": {"high": 1}},
            "gpu",
            [
                "A QOS counts for its priority while no other has a higher one, of all that Slurm knows."
            ],
        ),
        (
            {"fair_share": 1},
            "gpu",
            [
                "Fair share is replayed as Slurm's classic one (NO_FAIR_TREE) with an equal share for every "
                "user; add the flag to those you have.",
                "Usage is counted in GPUs: set TRESBillingWeights=CPU=0,GRES/gpu=1 on the partitions.",
            ],
        ),
        (
            {"fair_share": 1},
            "cpu",
            [
                "Fair share is replayed as Slurm's classic one (NO_FAIR_TREE) with an equal share for every "
                "user; add the flag to those you have."
            ],
        ),
    ],
)
def test_what_lines_cannot_say(weights: Any, unit: str, remarks: list[str]) -> None:
    plain = {"age": 0, "size": 0, "fair_share": 0}
    got = slurm_lines(weighted(**(plain | weights)), EASY, unit).remarks
    assert got == (ONE_PARTITION, *remarks)


def test_weights_that_stay_are_not_written_and_nor_are_limits() -> None:
    kept = Limit("user", "running-jobs", 9)
    now = Rule(_policy(Weights(age=1, qos={"high": 5})), (kept,))
    new = replace(now, limits=(kept, Limit("user", "running-gpus", 4)))
    got = slurm_lines(new, now)
    assert got.conf == (
        "AccountingStorageEnforce=associations,limits,qos",
        "AccountingStorageTRES=gres/gpu",
    )
    assert got.commands == (
        "sacctmgr -i modify qos where name=normal set MaxTRESPerUser=gres/gpu=4",
    )
    assert got.remarks == (
        "The limit holds for the jobs of QOS normal; to lift it again, set MaxTRESPerUser=gres/gpu=-1.",
        NAME_SETTINGS,
    )


def test_a_limit_of_jobs_counts_no_gpus() -> None:
    got = slurm_lines(Rule(EASY.policy, (Limit("user", "running-jobs", 120),)), EASY, qos="long")
    assert got.conf == ("AccountingStorageEnforce=associations,limits,qos",)
    assert got.commands == ("sacctmgr -i modify qos where name=long set MaxJobsPerUser=120",)
    assert got.remarks[0] == (
        "The limit holds for the jobs of QOS long; to lift it again, set MaxJobsPerUser=-1."
    )


PREDICTED = "Predicted run times: Slurm plans with the time limit that users ask for."
SHORTEST = "Backfilling shortest-first: Slurm tries jobs by priority and cannot be told."


@pytest.mark.parametrize(
    ("policy", "now", "remarks"),
    [
        ("easy", "easy", ()),
        ("easy-sjbf", "easy", (SHORTEST,)),
        ("easy++", "easy", (SHORTEST, PREDICTED)),
        ("easy++", "easy-sjbf", (PREDICTED,)),
        ("easy++", "easy++", ()),
    ],
)
def test_backfilling_that_slurm_cannot_do(policy: str, now: str, remarks: tuple[str, ...]) -> None:
    rules = (Rule(POLICIES.get(name)) for name in (policy, now))
    assert slurm_lines(*rules).remarks == remarks


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0-00"), (59 * 60, "0-00:59:00"), (86400 - 60, "0-23:59:00"), (86400, "1-00"),
        (14 * 86400 + 25 * 60, "14-00:25:00"), (86400 - 20, "1-00"), (3600 + 40, "0-01:01:00"),
    ],
)  # fmt: skip
def test_durations_of_slurm(seconds: float, text: str) -> None:
    assert duration(seconds) == text
