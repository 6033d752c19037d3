"""The lines of an advice, given to a real Slurm: it takes them, and ranks jobs as the replay does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hakaru.sim import POLICIES, Limit, Weights
from hakaru.sim.advise import Rule, SlurmLines, slurm_lines
from tests._slurm import Slurm, running_slurm

NUM_GPUS = 4 * 8  # of the sandbox
SIZE, AGE, FAIR_SHARE = -64_000, 5000, 9000


@pytest.fixture(scope="module")
def lines() -> SlurmLines:
    weights = Weights(age=AGE, size=SIZE, fair_share=FAIR_SHARE, half_life_s=37.5 * 3600)
    policy = replace(POLICIES.get("multifactor"), weights=weights)
    limits = (Limit("user", "running-gpus", 24), Limit("user", "running-jobs", 2))
    return slurm_lines(Rule(policy, limits), Rule(POLICIES.get("easy")))


@pytest.fixture(scope="module")
def slurm(shared: Path, lines: SlurmLines) -> Iterator[Slurm]:
    """A sandbox with the lines in its slurm.conf, in place of those that it has."""
    with running_slurm(shared) as box:
        _configure(box, lines.conf)
        for command in lines.commands:
            box.run(command)
        yield box


def _configure(box: Slurm, lines: tuple[str, ...]) -> None:
    new = {line.partition("=")[0] for line in lines}
    kept = [
        _alike(line)
        for line in box.conf.read_text().splitlines()
        if line.partition("=")[0] not in new
    ]
    box.conf.write_text("\n".join([*kept, *lines]) + "\n")
    box.run("scontrol reconfigure")


def _alike(line: str) -> str:
    """A partition without a factor of its own, as the remark beside the lines asks for."""
    words = [word for word in line.split(" ") if not word.startswith("PriorityJobFactor=")]
    return " ".join(words)


def test_slurm_has_what_the_lines_say(slurm: Slurm) -> None:
    rows = (
        row.split("=", 1) for row in slurm.run("scontrol show config").splitlines() if "=" in row
    )
    got = {name.strip(): value.strip() for name, value in rows}
    assert got["PriorityType"] == "priority/multifactor"
    assert got["PriorityWeightAge"] == "5000"
    assert got["PriorityWeightFairShare"] == "9000"
    assert got["PriorityWeightTRES"] == "gres/gpu=-64000"
    assert got["PriorityWeightPartition"] == "64000"
    assert got["PriorityFlags"] == "NO_FAIR_TREE"
    assert got["PriorityDecayHalfLife"] == "1-13:30:00"
    assert got["PriorityMaxAge"] == "7-00:00:00"
    assert got["PriorityCalcPeriod"] == "00:05:00"
    assert got["AccountingStorageEnforce"] == "associations,limits,qos"
    limits = slurm.run("sacctmgr -n -P show qos normal format=maxtrespu,maxjobspu").strip()
    assert limits == "gres/gpu=24|2"


def test_jobs_are_held_and_ranked_as_in_the_replay(slurm: Slurm) -> None:
    """Two may run; of those that wait, one more GPU costs 64,000 / 32 points, and none sinks below 1."""
    for gpus in (1, 1, 8, 1, 4):
        submit = f"sbatch -Q --gres=gpu:{gpus} -n1 --mem=10 -t 5 -o /dev/null --wrap 'sleep 60'"
        slurm.run(f"cd /tmp && runuser -u alice -- {submit}")
    deadline, waiting = time.monotonic() + 30, {}
    while len(waiting) < 3 and time.monotonic() < deadline:
        time.sleep(1)
        rows = [row.split() for row in slurm.run("squeue -h -t PD -o '%b %Q %r'").splitlines()]
        waiting = {row[0]: row for row in rows if row[2] == "QOSMaxJobsPerUserLimit"}
    got = {int(gpus.rpartition(":")[2]): int(row[1]) for gpus, row in waiting.items()}
    assert sorted(got, key=lambda gpus: -got[gpus]) == [1, 4, 8]
    assert got[1] - got[4] == pytest.approx(-SIZE * 3 / NUM_GPUS, abs=2)
    assert got[4] - got[8] == pytest.approx(-SIZE * 4 / NUM_GPUS, abs=2)
    assert got[8] > 1
