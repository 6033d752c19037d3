"""A launch: a real one of hpcc, and everything that a launch must not call a result."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.measure import validity
from hakaru.measure.hpl import (
    Batch,
    Config,
    LaunchError,
    Program,
    default_for,
    find_program,
    launch,
    missing_tools,
)
from hakaru.measure.hpl.blas import better_kernel, find_blas, kernels_in
from hakaru.measure.hpl.run import _disturbances
from hakaru.measure.hpl.start import thread_variables
from tests.measure.hpl.conftest import ALONE

TWO = Batch.of([default_for(2), Config(1000, 128, 1, 2, depth=0)])


def test_hpcc_measures_a_batch_and_its_dgemm(tmp_path: Path) -> None:
    if problem := missing_tools():
        pytest.skip(problem)
    program = find_program()
    configs = [default_for(2, 300), Config(300, 32, 2, 1)]
    batch = Batch.of(configs)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "hpccoutf.txt").write_text("an old result")
    found = launch(
        program, batch, 2, tmp_path / "run", environment=thread_variables(1), timeout_s=300
    )
    assert [config for config, _ in found.results] == batch.configs() and len(batch) == 4
    for config, result in found.results:
        assert result is not None and result.passed and result.config == config
    assert found.command[0] == "mpirun" and found.output.is_complete
    if program.kind == "hpcc":
        assert found.output.dgemm is not None and found.output.dgemm.num_ranks == 2


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("crash", "ended with exit code 3 after .*\n.*\n.*I am out of luck"),
        ("half", "without a complete result"),
        ("other", "not asked for .*NB 7"),
    ],
)
def test_what_is_no_result_is_an_error_with_the_command(
    fake_xhpl: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, message: str
) -> None:
    monkeypatch.setenv("FAKE_XHPL", mode)
    with pytest.raises(LaunchError, match=f"(?s){message}") as caught:
        launch(fake_xhpl, TWO, 2, tmp_path / "run", start=ALONE)
    assert caught.value.command == (fake_xhpl.path,) and not caught.value.timed_out


def test_a_launch_that_hangs_is_ended(
    fake_xhpl: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_XHPL", "hang")
    pids: list[int] = []
    with pytest.raises(LaunchError) as caught:
        launch(fake_xhpl, TWO, 2, tmp_path / "run", start=ALONE, timeout_s=0.5, started=pids.append)
    assert caught.value.timed_out
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_ending_a_launch_that_is_stopped_is_nobody_elses_work(
    fake_xhpl: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While hundreds of ranks are ended, all cores are busy, and nobody counts whose time that is."""
    monkeypatch.setenv("FAKE_XHPL", "hang")
    zero = validity.Reading(*[0.0] * len(fields(validity.Reading)))
    cores = os.cpu_count() or 1
    times = {"before": (0.0, 0.0), "running": (8.0, 0.5), "ended": (12.0, 4.5 * cores)}
    pids: list[int] = []

    def read_now() -> validity.Reading:
        state = (
            "before" if not pids else "running" if Path(f"/proc/{pids[0]}").exists() else "ended"
        )
        return replace(zero, wall_s=times[state][0], busy_s=times[state][1])

    monkeypatch.setattr(validity, "read_now", read_now)
    with pytest.raises(LaunchError, match=r"within 1 s after 12\.0 s") as caught:
        launch(fake_xhpl, TWO, 2, tmp_path / "run", start=ALONE, timeout_s=0.6, started=pids.append)
    assert caught.value.disturbances == ()


def test_missing_tools_come_with_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = missing_tools()
    assert (
        reason is not None
        and reason.count("apt-get install hpcc openmpi-bin libopenblas0-pthread") == 2
    )
    with pytest.raises(HakaruError, match="neither xhpl nor hpcc"):
        find_program()
    with pytest.raises(HakaruError, match="not a program"):
        find_program(tmp_path / "xhpl")


def test_the_blas_and_its_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "blas" / "libblas.so.3.11.0"
    library.parent.mkdir()
    library.touch()
    (tmp_path / "libblas.so.3").symlink_to(library)
    ldd = tmp_path / "ldd"
    ldd.write_text(f"#!/bin/sh\necho '  libblas.so.3 => {tmp_path}/libblas.so.3 (0x0007)'\n")
    ldd.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = find_blas("/bin/anything")
    assert (found.path, found.kind) == (str(library), "reference BLAS")
    assert "12 times slower" in (found.warning or "")
    assert kernels_in("Core: Prescott\nCore: Prescott\nsomething else") == ("Prescott",)
    many = ["avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"]
    assert better_kernel(["Prescott"], many) == "SkylakeX"
    assert better_kernel(["Prescott"], many[:2]) == "Haswell"
    assert better_kernel(["Zen"], many) is None and better_kernel([], many) is None


def test_a_cpu_quota_disturbs_a_launch() -> None:
    counters = dict.fromkeys((field.name for field in fields(validity.Reading)), 0.0)
    span = validity.Reading(**(counters | {"wall_s": 10.0}))
    assert _disturbances(span, 0.0) == []
    stopped = replace(span, throttled_s=5.0 * (os.cpu_count() or 1))
    assert _disturbances(stopped, 0.0) == ["a CPU quota stopped it 50% of the time"]
