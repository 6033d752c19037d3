"""A real Slurm with its accounting (MariaDB included), running for as long as a test file needs it."""

from __future__ import annotations

import fcntl
import os
import shlex
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LOCK = Path("/tmp/hakaru-slurm-test.lock")
NUM_PORTS = 20
_held: list[Path] = []


@dataclass(frozen=True)
class Slurm:
    """A cluster of the sandbox, in a folder and on ports of its own."""

    scripts: Path
    folder: Path
    env: dict[str, str]

    @property
    def conf(self) -> Path:
        return Path(self.env["SLURM_CONF"])

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], env=self.env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def manage(self, verb: str) -> None:
        """The script waits until every daemon answers, and ends only those whose ids it noted."""
        self.run(f"{shlex.quote(str(self.scripts / 'slurm-sandbox'))} {verb}")


@contextmanager
def running_slurm(shared: Path, num_nodes: int = 4) -> Iterator[Slurm]:
    """One sandbox at a time, of all the workers: they share the users that jobs run as."""
    # munged wants every folder above its socket to be root's and closed or sticky, as /tmp is; and a
    # socket's path is short
    with _alone(), tempfile.TemporaryDirectory(prefix="hk-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        cluster = Slurm(shared / "sandbox", folder, _environment(folder / "box", num_nodes))
        try:
            cluster.manage("up")
            _forget_jobs()
            yield cluster
        finally:
            cluster.manage("destroy")


def _forget_jobs() -> None:
    """submitit remembers the states of job 1, 2, 3… of the sandbox before this one."""
    from submitit.slurm.slurm import SlurmJob

    SlurmJob.watcher.clear()


@contextmanager
def _alone() -> Iterator[None]:
    """Wait for the other workers' sandbox to end; one of this process would be waited for in vain."""
    assert not _held, "a sandbox of this process still runs: end it with its test file"
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _held.append(LOCK)
        try:
            yield
        finally:
            _held.remove(LOCK)


def _environment(box: Path, num_nodes: int) -> dict[str, str]:
    return {
        **os.environ,
        "SLURMBOX_DIR": str(box),
        "SLURMBOX_PORT": str(_free_port()),
        "SLURMBOX_NODES": str(num_nodes),
        "SLURM_CONF": str(box / "etc" / "slurm.conf"),
    }


def _free_port() -> int:
    """The first of twenty ports that nobody listens on."""
    for first in range(17200, 18200, NUM_PORTS):
        if not any(_taken(port) for port in range(first, first + NUM_PORTS)):
            return first
    raise AssertionError(f"no {NUM_PORTS} free ports in a row")


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
