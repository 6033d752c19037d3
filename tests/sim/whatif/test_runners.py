"""Where runs are played: how many processes, what is said when one fails, and what is left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.errors import HakaruError, MissingExtraError
from hakaru.sim.whatif import read, runners
from hakaru.sim.whatif.runners import play_all
from hakaru.sim.whatif.tasks import play
from hakaru.sim.whatif.variants import Prepared, prepare
from tests.sim._jobs import workload

TEXT = """
[machine]
processors = 1
[[variant]]
name = "two"
machine = { processors = 2 }
[[variant]]
name = "three"
machine = { processors = 3 }
"""


@pytest.fixture(scope="module")
def runs() -> list[Prepared]:
    return prepare(read(TEXT), workload(*[(0, 100, 1)] * 4))


STARTS = [[0, 100, 200, 300], [0, 0, 100, 100], [0, 0, 0, 100]]


class Told:
    """Remembers its progress."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int, str]] = []

    def __call__(self, done: int, total: int, name: str) -> None:
        self.lines.append((done, total, name))


def ended(code: int, stderr: str = "") -> Any:
    return lambda command, **more: subprocess.CompletedProcess(command, code, "", stderr)


@pytest.mark.parametrize("code", [1, 2, -9])
def test_a_process_that_ends_with_a_code_or_by_a_signal_has_failed(
    code: int, runs: list[Prepared], monkeypatch: pytest.MonkeyPatch
) -> None:
    """-9: killed by the kernel, for one, when memory is short."""
    monkeypatch.setattr(runners.subprocess, "run", ended(code, f"first {'.' * 2000} last\n"))
    told = rf"a run ended with {code}: \S+ -P -m hakaru\.sim\.whatif\._worker \S+ [012]\n\.+ last$"
    with pytest.raises(HakaruError, match=told):
        play_all(runs, num_processes=2)


@pytest.mark.parametrize(
    ("asked", "cpus", "many"), [(2, 8, 2), (5, 8, 3), (None, 2, 2), (None, 8, 3), (None, None, 0)]
)
def test_as_many_processes_as_are_asked_for_but_no_more_than_runs(
    asked: int | None,
    cpus: int | None,
    many: int,
    runs: list[Prepared],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By default one a processor; where only one would be played, it is played in this process."""
    used = [0]

    def in_processes(given: Any, folder: Path, number: int, tell: Any) -> list[Any]:
        used[0] = number
        return []

    monkeypatch.setattr(runners, "_in_processes", in_processes)
    monkeypatch.setattr(runners.os, "cpu_count", lambda: cpus)
    play_all(runs, num_processes=asked)
    assert used == [many]


def test_runs_are_played_here_one_after_the_other(runs: list[Prepared]) -> None:
    told = Told()
    got = play_all(runs, num_processes=1, progress=told)
    assert [each.start.tolist() for each in got] == STARTS
    assert told.lines == [(1, 3, "baseline"), (2, 3, "two"), (3, 3, "three")]


def test_an_unknown_place_is_refused(runs: list[Prepared]) -> None:
    with pytest.raises(HakaruError, match=r"--on 'moon' is not known: use local or slurm"):
        play_all(runs, "moon")


class Job:
    """A Slurm job that is done at the given look, and fails if it is told to."""

    job_id = "42"
    paths = SimpleNamespace(stdout="42.out", stderr="42.err")

    def __init__(self, looks: int, error: str | None) -> None:
        self.looks, self.error, self.is_cancelled = looks, error, False

    def done(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def exception(self) -> str | None:
        return self.error

    def cancel(self) -> None:
        self.is_cancelled = True


class Executor:
    """Plays at once what is submitted; the second run is done first, the first one last."""

    def __init__(self, error: str | None = None) -> None:
        self.error = error
        self.jobs: list[Job] = []

    def submit(self, what: Any, folder: Path, number: int) -> Job:
        assert what is play
        play(folder, number)
        self.jobs.append(Job((2, 0, 1)[number], self.error if number == 1 else None))
        return self.jobs[-1]


def on_slurm(monkeypatch: pytest.MonkeyPatch, error: str | None = None) -> Executor:
    executor = Executor(error)
    monkeypatch.setattr(runners, "_executor", lambda folder, parameters: executor)
    monkeypatch.setattr(runners, "SECONDS_BETWEEN_LOOKS", 0)
    return executor


def test_schedules_of_slurm_are_in_the_order_of_the_runs(
    runs: list[Prepared], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    executor, told = on_slurm(monkeypatch), Told()
    got = play_all(runs, "slurm", folder=tmp_path / "new" / "runs", progress=told)
    assert [each.start.tolist() for each in got] == STARTS
    assert told.lines == [(1, 3, "two"), (2, 3, "three"), (3, 3, "baseline")]
    assert not any(job.is_cancelled for job in executor.jobs)
    assert list((tmp_path / "new" / "runs").iterdir()) == []


def test_where_a_slurm_job_fails_the_others_are_cancelled_and_the_logs_kept(
    runs: list[Prepared], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    executor = on_slurm(monkeypatch, "out of memory")
    with pytest.raises(HakaruError) as caught:
        play_all(runs, "slurm", folder=tmp_path)
    assert str(caught.value) == (
        "two: Slurm job 42 failed: out of memory\nits output: 42.out, 42.err"
    )
    assert [job.is_cancelled for job in executor.jobs] == [True, True, True]
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("whatif-") and (kept / "run-0.in.npz").is_file()


def test_runs_on_slurm_are_written_where_the_command_is_run(
    runs: list[Prepared], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_slurm(monkeypatch, "no")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HakaruError):
        play_all(runs, "slurm")
    assert len(list(tmp_path.glob("whatif-*"))) == 1


def test_a_folder_that_cannot_be_written_is_named(runs: list[Prepared], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HakaruError, match=r"file/runs: no run can be written there: Not a dir"):
        play_all(runs, "slurm", folder=tmp_path / "file" / "runs")


@pytest.mark.parametrize(
    ("given", "time"), [({}, 60), ({"time": 10, "partition": "short"}, 10), (None, 60)]
)
def test_a_slurm_job_has_an_hour_and_a_processor_unless_it_is_told_otherwise(
    given: dict[str, Any] | None,
    time: int,
    runs: list[Prepared],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    submitit = pytest.importorskip("submitit")
    asked: dict[str, Any] = {}

    class Fake(Executor):
        def __init__(self, folder: Path, python: str) -> None:
            super().__init__()
            asked["folder"], asked["python"] = folder.name, python.rpartition(" ")[2]

        def update_parameters(self, **parameters: Any) -> None:
            asked.update(parameters)

    monkeypatch.setattr(submitit, "SlurmExecutor", Fake)
    monkeypatch.setattr(runners.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(runners, "SECONDS_BETWEEN_LOOKS", 0)
    play_all(runs, "slurm", folder=tmp_path, slurm=given)
    standard = {"folder": "submitit", "python": "-P", "cpus_per_task": 1}
    assert asked == {**standard, "job_name": "hakaru-whatif", **(given or {}), "time": time}


def test_without_slurm_or_submitit_it_is_said_what_to_do(
    runs: list[Prepared], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setattr(runners.shutil, "which", lambda name: None)
    with pytest.raises(HakaruError, match="no sbatch here; run it on a login node, or --on local"):
        play_all(runs, "slurm", folder=tmp_path)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(MissingExtraError, match=r"submitit, .* pip install 'hakaru\[sim\]'"):
        play_all(runs, "slurm", folder=tmp_path)
