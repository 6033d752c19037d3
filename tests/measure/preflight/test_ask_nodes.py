"""Nodes asked through Slurm: their clocks are judged by other clocks, and no job is waited for forever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hakaru.measure.launch import Layout
from hakaru.measure.launch.slurm import Slurm as Launcher
from hakaru.measure.preflight import Ask, Preflight, ask_nodes, judge
from hakaru.measure.preflight.clock import START_SPREAD_S
from hakaru.measure.verdict import Verdict
from tests._slurm import Slurm, running_slurm
from tests.measure.preflight._fake import NOW_S, Fake

HOUR_S = 3600.0


class Task:
    """A task of a job as submitit gives it; without an answer it never ends."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def done(self) -> bool:
        return self.answer is not None

    def result(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Job:
    job_id, state, cancelled = "7", "PENDING", False

    def __init__(self, answers: Sequence[Any]) -> None:
        self.tasks = [Task(answer) for answer in answers]

    def task(self, at: int) -> Task:
        return self.tasks[at]

    def done(self) -> bool:
        return all(task.done() for task in self.tasks)

    def cancel(self, check: bool) -> None:
        self.cancelled = True


class Clock:
    """The controller's clock: the first look at the job is at `NOW_S` plus 2 s."""

    def __init__(self) -> None:
        self.now_s = NOW_S + 2

    def time(self) -> float:
        return self.now_s

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "slurm" not in request.fixturenames:
        monkeypatch.setattr(ask_nodes, "time", Clock())


def judged(
    root: Path, monkeypatch: pytest.MonkeyPatch, off: Sequence[float], started_s: float | None,
    waited_s: float = 2 * HOUR_S, synchronised: bool = True,
) -> Preflight:  # fmt: skip
    """A job of nodes whose clocks are off by these seconds, which waited in the queue."""
    names = tuple(f"gpu{at:02}" for at in range(1, len(off) + 1))
    answers = []
    for name, seconds in zip(names, off, strict=True):
        answer = Fake(name, peers=names, now_s=NOW_S + seconds).facts(root)
        answer["facts"]["clock-sync"]["value"]["synchronised"] = synchronised
        del answer["controller"]  # a node stamps nothing: only the controller does
        answers.append(answer)
    monkeypatch.setattr(ask_nodes, "_started", lambda job_id: started_s)
    found = ask_nodes.collect(Job(answers), len(off), NOW_S - waited_s, 60)
    return judge(found, Ask(8 * len(off), 8, gpus_per_node=8))


def statuses(preflight: Preflight, id: str) -> list[str]:
    return [row.finding.status for row in preflight.rows if row.check.id == id]


@pytest.mark.parametrize("off_s", [-HOUR_S, HOUR_S])
def test_a_clock_that_is_an_hour_off_fails_by_the_times_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off_s: float
) -> None:
    preflight = judged(tmp_path, monkeypatch, [off_s, 0.0], NOW_S - 3)

    assert statuses(preflight, "clock-skew") == ["fail", "pass"]
    assert preflight.verdict is Verdict.FAILED


@pytest.mark.parametrize("off_s", [-HOUR_S, HOUR_S])
def test_a_clock_that_is_an_hour_off_fails_by_the_other_nodes_after_a_long_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off_s: float
) -> None:
    preflight = judged(tmp_path, monkeypatch, [0.0, off_s, 0.1], None)
    found = next(row.finding for row in preflight.rows if row.check.id == "same-clock")

    assert (found.status, preflight.verdict) == ("fail", Verdict.FAILED)
    assert "3,600.1 s apart" in found.found or "3,600.0 s apart" in found.found
    assert found.found.endswith("furthest from the middle: gpu02")


def test_a_spread_of_start_times_is_no_skew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = judged(tmp_path, monkeypatch, [0.0, -START_SPREAD_S], None)
    far = judged(tmp_path, monkeypatch, [0.0, -START_SPREAD_S - 2], None)

    assert (statuses(near, "same-clock"), statuses(far, "same-clock")) == (["pass"], ["fail"])


def test_clocks_that_nothing_can_judge_are_not_a_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All nodes agree, but the job waited for two hours and no time service runs."""
    preflight = judged(tmp_path, monkeypatch, [-HOUR_S, -HOUR_S], None, synchronised=False)

    assert statuses(preflight, "clock-skew") == ["not measured", "not measured"]
    assert preflight.verdict is Verdict.NOT_MEASURED


@pytest.mark.parametrize(("synchronised", "status"), [(True, "pass"), (False, "not measured")])
def test_a_job_of_five_seconds_needs_a_time_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synchronised: bool, status: str
) -> None:
    preflight = judged(tmp_path, monkeypatch, [0.0, 0.2], NOW_S - 3, synchronised=synchronised)

    assert statuses(preflight, "clock-skew") == [status, status]
    assert statuses(preflight, "same-clock") == ["pass"]


@pytest.mark.parametrize(
    ("started_s", "asked_s"),
    [
        (None, NOW_S - HOUR_S),
        (NOW_S - 5, NOW_S - 5),
        (NOW_S - 2 * HOUR_S, NOW_S - HOUR_S),  # Slurm's controller is behind
        (NOW_S + HOUR_S, NOW_S - HOUR_S),  # or ahead
    ],
)
def test_the_window_is_the_controllers(
    monkeypatch: pytest.MonkeyPatch, started_s: float | None, asked_s: float
) -> None:
    monkeypatch.setattr(ask_nodes, "_started", lambda job_id: started_s)
    answer = {"node": "gpu01", "controller": {"asked_s": 1.0, "answered_s": 2.0}}
    found = ask_nodes.collect(Job([answer]), 1, NOW_S - HOUR_S, 60)

    assert found == [{"node": "gpu01", "controller": {"asked_s": asked_s, "answered_s": NOW_S + 2}}]


def test_a_job_that_does_not_start_is_cancelled_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job([None, None])
    monkeypatch.setattr(Launcher, "check", lambda self, layout: None)
    monkeypatch.setattr(Launcher, "submit", lambda *_: job)
    answers = ask_nodes.ask_slurm(Layout((), 1, 2), tmp_path, {}, 600)
    preflight = judge(answers, Ask(16, 8))

    assert job.cancelled
    assert (len(answers), answers[0]["node"]) == (1, "Slurm job 7")
    for words in ("2 of 2 tasks", "within 10 min", "PENDING", "cancelled", "--timeout"):
        assert words in answers[0]["error"]
    assert preflight.verdict is Verdict.NOT_MEASURED


def test_tasks_that_fail_are_named_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_nodes, "_started", lambda job_id: None)
    job = Job([RuntimeError("trace\nKilled"), ValueError(), 3])
    found = ask_nodes.collect(job, 3, NOW_S, 60)

    assert [each["node"] for each in found] == [f"Slurm job 7, task {at}" for at in range(3)]
    assert [each["error"] for each in found] == [
        "Killed", "ValueError()", "the task returned no facts",
    ]  # fmt: skip


BOX = (
    "-" * 74
    + """
ORTE was unable to reliably start one or more daemons.
This usually is caused by:

* an inability to create a connection back to mpirun due to a
  lack of common network interfaces (including firewalls
  and network routing requirements).
"""
    + "-" * 74
    + "\n"
)


@pytest.mark.parametrize(
    ("stderr", "why"),
    [
        (f"ssh: Could not resolve hostname nosuch1: Name or service not known\n{BOX}",
         "ssh: Could not resolve hostname nosuch1: Name or service not known"),
        (f"Traceback:\n  File\nModuleNotFoundError: No module named 'hakaru'\n{BOX}{BOX}",
         "ModuleNotFoundError: No module named 'hakaru'"),
        (BOX, "ORTE was unable to reliably start one or more daemons. This usually is caused by:"),
        ("", "no message"),
    ],
)  # fmt: skip
def test_a_host_that_mpirun_cannot_reach_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, why: str
) -> None:
    program = tmp_path / "mpirun"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{stderr}END\nexit 255\n")
    program.chmod(0o755)
    monkeypatch.setattr(ask_nodes.Mpirun, "check", lambda self, layout: None)
    monkeypatch.setattr(ask_nodes, "mpirun_words", lambda layout: [str(program)])
    answers = ask_nodes.ask_hosts(["nosuch1"])

    assert answers == [
        {"node": "nosuch1", "error": f"asking nosuch1 failed with exit code 255: {why}"}
    ]
    row = judge(answers, Ask(8, 8, node_names=("nosuch1",))).rows[0]
    assert row.finding.fix.startswith("ssh nosuch1 true")


@pytest.fixture(scope="module")
def slurm(shared: Path) -> Iterator[Slurm]:
    with running_slurm(shared, num_nodes=2) as cluster:
        yield cluster


def test_two_nodes_of_a_real_slurm_answer(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    answers = ask_nodes.ask_slurm(Layout((), 1, 2), slurm.folder / "ws", {}, 300)
    preflight = judge(answers, Ask(2, 1, gpus_per_node=0))

    assert preflight.nodes == ("gpu01", "gpu02")
    assert statuses(preflight, "same-clock") == ["pass"]
    assert "fail" not in statuses(preflight, "clock-skew")
    for answer in answers:
        times = answer["controller"]
        assert times["asked_s"] <= answer["facts"]["wall-clock"]["value"] <= times["answered_s"]
