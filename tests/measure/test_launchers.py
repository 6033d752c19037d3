"""The launchers, each for real: torchrun, mpirun, and Slurm through submitit on a sandbox of two nodes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.job import Job, Plan
from hakaru.measure.launch import LAUNCHERS, Layout, load_all
from hakaru.measure.launch._base import Start, last_words, run_all
from hakaru.measure.launch.mpirun import mpirun_words
from hakaru.measure.launch.slurm import _wait as wait_for
from hakaru.measure.record import Run
from hakaru.measure.run import measure
from hakaru.measure.task import Place, find_place
from tests._slurm import Slurm, running_slurm

PLAN = Plan(
    ("all-reduce",), {"all-reduce": {"dtype": ["fp32"], "bytes": [4096]}}, True, 2.0,
    ranks_per_host=2,
)  # fmt: skip


def is_complete(run: Run, num_ranks: int) -> None:
    """All ranks were there; whether somebody else used the machine meanwhile does not matter here."""
    for each in run.measurements:
        assert each.verdict in ("good", "contaminated"), each.reason
        assert each.parameters["ranks"] == num_ranks
        assert each.samples
    assert {each.quantity for each in run.measurements} == {"busbw", "algbw", "time"}


@pytest.mark.parametrize("launcher", ["local", "torchrun", "mpirun"])
def test_two_ranks_meet(tmp_path: Path, launcher: str) -> None:
    plan = replace(PLAN, launcher=launcher)
    is_complete(measure(Job.begin(tmp_path, "c", plan)), 2)


@pytest.fixture(scope="module")
def slurm(shared: Path) -> Iterator[Slurm]:
    with running_slurm(shared, num_nodes=2) as cluster:
        yield cluster


def test_ranks_on_two_nodes_of_slurm_meet(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    # the sandbox's GPUs exist for Slurm only
    plan = replace(PLAN, launcher="slurm", num_hosts=2, ranks_per_host=1, devices=("cpu",))
    is_complete(measure(Job.begin(slurm.folder / "ws", "c", plan)), 2)


def test_a_job_that_slurm_kills_has_failed(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "none-such")
    plan = replace(PLAN, launcher="slurm", num_hosts=2, ranks_per_host=1)
    run = measure(Job.begin(slurm.folder / "ws", "c", plan))
    assert run.verdict == "failed"
    assert "Slurm job" in run.measurements[0].reason


@dataclass
class SlurmJob:
    """A job that Slurm says these states of, one at each look."""

    states: list[str]
    job_id: str = "7"

    @property
    def state(self) -> str:
        return self.states[0]

    def done(self) -> bool:  # without force, which would ask sacct each time
        del self.states[0]
        return self.state == "COMPLETED"


def test_a_job_in_the_queue_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that its time there does not count against the budget."""
    monkeypatch.setattr("hakaru.measure.launch.slurm.LOOK_EVERY_S", 0.0)
    job = SlurmJob(["", "PENDING", "CONFIGURING", "RUNNING", "RUNNING", "COMPLETED"])
    seen: list[str] = []
    assert wait_for(job, 0, 60.0, lambda: seen.append(job.state)) == []
    assert seen == ["RUNNING", "RUNNING", "COMPLETED"]


def test_each_launcher_names_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    load_all()
    assert set(LAUNCHERS.ids()) == {"local", "torchrun", "mpirun", "slurm"}
    with pytest.raises(HakaruError, match="this machine only"):
        LAUNCHERS.get("local").check(Layout(("a", "b")))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(HakaruError, match="apt-get install openmpi-bin"):
        LAUNCHERS.get("mpirun").check(Layout())
    with pytest.raises(HakaruError, match="there is no sbatch here"):
        LAUNCHERS.get("slurm").check(Layout())


def test_mpirun_gets_hosts_and_slots() -> None:
    words = " ".join(mpirun_words(Layout(("n1", "n2"), 4)))
    assert "-np 8" in words
    assert "--host n1:4,n2:4" in words


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, Place()),
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}, Place(3, 8, 1, 2)),
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
          "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, Place(3, 8, 1, 2)),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1"}, Place(3, 8, 1, 1)),
        ({"RANK": "x", "WORLD_SIZE": ""}, Place()),
    ],
)  # fmt: skip
def test_a_rank_knows_its_place_from_any_launcher(variables: dict[str, str], place: Place) -> None:
    assert find_place(variables) == place


def test_when_one_process_dies_the_others_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hakaru.measure.launch._base.GRACE_S", 0.2)
    pid_file = tmp_path / "pid"
    starts = [
        Start("a", ["sh", "-c", "echo broken; exit 3"], {}, tmp_path / "a.log"),
        Start("b", ["sh", "-c", f"echo $$ > {pid_file}; sleep 600"], {}, tmp_path / "b.log"),
    ]
    assert run_all(starts, 60, lambda: None) == ["a ended with exit code 3: broken"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def kept(tmp_path: Path, handler: str) -> tuple[list[Start], Path]:
    """A process that fails, and one that made a file and does this when it is told to end."""
    made = tmp_path / "made"
    script = f"trap '{handler}' TERM; echo $$ > {made}; while :; do sleep 0.05; done"
    return [
        Start("a", ["sh", "-c", "exit 3"], {}, tmp_path / "a.log"),
        Start("b", ["sh", "-c", script], {}, tmp_path / "b.log"),
    ], made


def test_a_process_may_tidy_up_before_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hakaru.measure.launch._base.GRACE_S", 0.5)
    starts, made = kept(tmp_path, f"rm {tmp_path}/made; exit 0")
    run_all(starts, 60, lambda: None)
    assert not made.exists()


def test_a_process_that_does_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hakaru.measure.launch._base.GRACE_S", 0.5)
    monkeypatch.setattr("hakaru.measure.launch._base.TIDY_S", 0.3)
    starts, made = kept(tmp_path, f"echo told >> {tmp_path}/made")
    run_all(starts, 60, lambda: None)
    pid, told = made.read_text().split()
    assert told == "told"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_who_does_not_want_to_wait_leaves_no_process_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second interrupt while processes are asked to end."""
    monkeypatch.setattr("hakaru.measure.launch._base.GRACE_S", 0.5)
    starts, made = kept(tmp_path, "true")

    def impatient(process: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("hakaru.measure.launch._base._is_running", impatient)
    with pytest.raises(KeyboardInterrupt):
        run_all(starts, 60, lambda: None)
    with pytest.raises(ProcessLookupError):
        os.kill(int(made.read_text()), 0)


BOX = f"""{"-" * 74}
Conflicting directives for mapping policy are causing the policy
to be redefined:

Please revise the conflict and try again.
{"-" * 74}
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one\ntwo\n", "two"),
        (BOX, "Conflicting directives for mapping policy are causing the policy to be redefined:"),
        (f"ssh: Could not resolve hostname n9\n{BOX}", "ssh: Could not resolve hostname n9"),
        ("", ""),
        ("-" * 30, ""),
    ],
)
def test_the_last_words_say_what_went_wrong(text: str, words: str) -> None:
    assert last_words(text) == words
