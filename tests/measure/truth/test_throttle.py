"""Limits hold for real, under v2 the right texts reach the right files, and nothing stays behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.truth import Unavailable
from hakaru.measure.truth.throttle import Throttle, cpu_quota, memory_limit, read_limit

MIB = 1 << 20
BUSY = """
import time
wall, cpu = time.perf_counter(), time.process_time()
while (spent := time.perf_counter() - wall) < 1:
    pass
print((time.process_time() - cpu) / spent)
"""
Limit = Callable[..., AbstractContextManager[Throttle]]


@contextmanager
def skipping() -> Iterator[None]:
    """A skip where limits are unavailable; not where root can write to a v1 controller."""
    try:
        yield
    except Unavailable as error:
        if os.geteuid() == 0 and os.access("/sys/fs/cgroup/cpu", os.W_OK):
            raise
        pytest.skip(str(error))


@pytest.mark.alone
def test_a_busy_loop_gets_its_quota() -> None:
    """Other load can only lower the share, so the best of some tries counts."""
    shares: list[float] = []
    with skipping(), cpu_quota(0.5) as quota:
        while len(shares) < 5 and max(shares, default=0) < 0.45:
            done = quota.start([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
            shares.append(float(done.communicate()[0]))
        assert quota.throttled_s() > 0
    assert max(shares) == pytest.approx(0.5, rel=0.1)


def test_processes_return_and_the_cgroup_goes_after_an_error() -> None:
    home, sleeper = _cgroups("self"), subprocess.Popen(["sleep", "60"])
    try:
        with (
            pytest.raises(ZeroDivisionError),
            skipping(),
            cpu_quota(0.5, pids=[sleeper.pid, os.getpid()]) as quota,
        ):
            inside = (quota.folder / "cgroup.procs").read_text().split()
            assert {str(sleeper.pid), str(os.getpid())} <= set(inside)
            1 / 0  # noqa: B018
        assert not quota.folder.exists()
        assert sleeper.poll() is None
        assert _cgroups("self") == _cgroups(str(sleeper.pid)) == home
    finally:
        sleeper.kill()
        sleeper.wait()


def _cgroups(process: str) -> str:
    return Path(f"/proc/{process}/cgroup").read_text()


def test_memory_stays_under_its_limit(tmp_path: Path) -> None:
    with skipping(), memory_limit(16 * MIB) as limit:
        copy = ["dd", "if=/dev/zero", f"of={tmp_path}/file", f"bs={MIB}", "count=48"]
        assert limit.start(copy, stderr=subprocess.DEVNULL).wait() == 0
        peaks = ("memory.max_usage_in_bytes", "memory.peak")
        peak = next(path for name in peaks if (path := limit.folder / name).exists())
        assert 8 * MIB < int(peak.read_text()) <= 16 * MIB


def test_the_kernel_takes_a_read_limit() -> None:
    disks = sorted(Path("/sys/block").glob("*/dev"))
    if not disks:
        pytest.skip("this machine has no disk")
    device = disks[0].read_text().strip()
    with skipping(), read_limit(device, 5 * MIB) as limit:
        text = limit.file.read_text()
    assert text.startswith(device)
    assert str(5 * MIB) in text


@pytest.fixture
def v2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with cgroup v2 as systemd leaves it: our session is in a slice that may hand on memory."""
    slice_ = tmp_path / "sys/fs/cgroup/user.slice"
    for folder in (
        slice_ / "session.scope",
        tmp_path / "proc/self",
        tmp_path / "sys/dev/block/8:0",
    ):
        folder.mkdir(parents=True)
    files = {
        "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n",
        "proc/self/cgroup": "0::/user.slice/session.scope\n",
    }
    for text in (slice_.parent, slice_, slice_ / "session.scope"):
        given = "memory" if text.name == "user.slice" else ""
        files |= {
            f"{text}/cgroup.controllers": "cpu io memory",
            f"{text}/cgroup.subtree_control": given,
            f"{text}/cgroup.type": "domain",
            f"{text}/cgroup.procs": "7" if text.name == "session.scope" else "",
        }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    _play_kernel(monkeypatch)
    return tmp_path


def _play_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new cgroup has its files at once, and goes with them."""
    mkdir = Path.mkdir

    def make(folder: Path) -> None:
        mkdir(folder)
        for name in ("cgroup.procs", "cpu.max", "cpu.stat", "memory.max", "io.max"):
            (folder / name).touch()

    monkeypatch.setattr(Path, "mkdir", make)
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)


@pytest.mark.parametrize(
    ("limit", "arguments", "file", "text", "enabled"),
    [
        (cpu_quota, (1.5,), "cpu.max", "15000 10000", "+cpu"),
        (memory_limit, (32 * MIB,), "memory.max", "33554432", "memory"),
        (read_limit, ("8:0", 5 * MIB), "io.max", "8:0 rbps=5242880", "+io"),
    ],
)
def test_v2_gets_the_right_texts(
    v2: Path, limit: Limit, arguments: tuple[float | str], file: str, text: str, enabled: str
) -> None:
    """Beside our session and not in it: a cgroup with processes may not have children with limits."""
    slice_ = v2 / "sys/fs/cgroup/user.slice"
    with limit(*arguments, pids=[42], root=v2) as made:
        assert made.folder.parent == slice_
        assert (made.file.name, made.file.read_text()) == (file, text)
        assert (made.folder / "cgroup.procs").read_text() == "42"
        assert (slice_ / "cgroup.subtree_control").read_text() == enabled
    assert [folder.name for folder in slice_.iterdir() if folder.is_dir()] == ["session.scope"]
    assert (slice_ / "session.scope/cgroup.procs").read_text() == "42"


def test_v2_reports_throttled_time(v2: Path) -> None:
    with cpu_quota(0.5, root=v2) as quota:
        (quota.folder / "cpu.stat").write_text(
            "usage_usec 9\nnr_throttled 2\nthrottled_usec 250000\n"
        )
        assert quota.throttled_s() == 0.25


def test_what_a_dead_process_left_is_removed_and_nothing_else(v2: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    slice_ = v2 / "sys/fs/cgroup/user.slice"
    left, running, foreign = f"hakaru-{dead.pid}-0", f"hakaru-{os.getpid()}-999999", "hakaru-other"
    for name in (left, running, foreign):
        (slice_ / name).mkdir()
    (slice_ / left / "cgroup.procs").write_text("42\n0\n")
    with memory_limit(MIB, root=v2):
        assert not (slice_ / left).exists()
        assert (slice_ / running).exists()
        assert (slice_ / foreign).exists()
    assert (slice_ / "session.scope/cgroup.procs").read_text() == "42"


def test_a_kernel_without_the_limit_is_reported_and_nothing_stays(
    v2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "mkdir", lambda folder: os.mkdir(folder))  # noqa: PTH102
    with pytest.raises(Unavailable, match=r"memory\.max is missing"), memory_limit(MIB, root=v2):
        pass
    assert not list(v2.glob("sys/fs/cgroup/user.slice/hakaru-*"))


def test_missing_rights_and_controllers_are_reported(
    v2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    top = v2 / "sys/fs/cgroup"
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(Unavailable, match=r"Permission denied.*sudo"), memory_limit(MIB, root=v2):
        pass
    for folder in (top, top / "user.slice"):
        (folder / "cgroup.procs").write_text("1")
    with pytest.raises(Unavailable, match=r"'cpu'.*processes of its own"), cpu_quota(1, root=v2):
        pass
    (v2 / "proc/self/mountinfo").write_text("")
    with (
        pytest.raises(Unavailable, match="no cgroup controller 'cpu' is mounted"),
        cpu_quota(1, root=v2),
    ):
        pass


@pytest.mark.parametrize(
    ("limit", "arguments"),
    [
        (cpu_quota, (0.01,)),
        (cpu_quota, (float("nan"),)),
        (cpu_quota, (1, 10)),
        (memory_limit, (0,)),
        (read_limit, ("8:0", 0)),
        (read_limit, ("8:1", 1)),
        (read_limit, ("../block/8:0", 1)),
    ],
)
def test_wrong_limits_are_refused(v2: Path, limit: Limit, arguments: tuple[float | str]) -> None:
    with pytest.raises(HakaruError), limit(*arguments, root=v2):
        pass
