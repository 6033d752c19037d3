"""Where something was measured: hardware, topology, software versions, the command and chosen variables.

Of the environment only what changes speed is kept, by an allow-list: the rest may hold secrets.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import hakaru
from hakaru.measure import gpu
from hakaru.measure.devices import SYS_NODE
from hakaru.measure.node.machine import HERE
from hakaru.measure.node.memory import memory
from hakaru.measure.node.versions import PACKAGES, driver, kernel, package, python
from hakaru.measure.topology import read_topology
from hakaru.measure.validity import machine_id

VARIABLES = re.compile(
    r"(OMP|MKL|OPENBLAS|ONEDNN|NCCL|GLOO|UCX|OMPI_MCA|CUDA|HIP|ROCR|TORCH_NCCL)_[A-Z0-9_]+|"
    r"SLURM_(JOB_ID|JOB_NODELIST|NTASKS|NNODES|LOCALID|PROCID)"
)
SECRET = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL", re.IGNORECASE)
MOST_VALUE = 200
MOST_WORDS = 40
# the controller passes on what the user typed: a worker's own command only names its task
COMMAND = "HAKARU_COMMAND"
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def host_name() -> str:
    """This host's name, in a Slurm job the one that `sbatch --nodelist` takes.

    HAKARU_HOST overrides it where several hosts share one kernel.
    """
    given = (os.environ.get(name) for name in ("HAKARU_HOST", "SLURMD_NODENAME"))
    return next((name for name in given if name), "") or socket.gethostname()


def gather() -> dict[str, Any]:
    """All that is recorded of this node and process."""
    return {
        "host": host_name(),
        "machine": machine_id()[:8],
        "versions": versions(),
        "hardware": hardware(),
        "topology": read_topology(),
        "command": [word[:MOST_VALUE] for word in user_command()[:MOST_WORDS]],
        "commit": source_commit(),
        "environment": environment(),
    }


def user_command() -> list[str]:
    """The words that the user typed, as far as this process knows them."""
    text = os.environ.get(COMMAND)
    if not text:
        return [str(word) for word in sys.argv]
    try:
        return shlex.split(text)
    except ValueError:  # an open quote: not made by shlex.join
        return [text]


def source_commit(package: Path = Path(hakaru.__file__).parent) -> str | None:
    """The commit of the checkout that this package runs from; null for an installed package."""
    if package.parent.name != "src":
        return None
    git = package.parent.parent / ".git"
    if git.is_file():  # a worktree's names its folder: `gitdir: …`
        git = git.parent / _read(git).removeprefix("gitdir:").strip()
    head = _read(git / "HEAD")
    commit = _commit_of(git, head.removeprefix("ref:").strip()) if head[:4] == "ref:" else head
    return commit if COMMIT.fullmatch(commit) else None


def _commit_of(git: Path, ref: str) -> str:
    """Where a branch is: in a file of its own or among the packed ones; worktrees share their branches."""
    for folder in (git, git / _read(git / "commondir")):
        if found := _read(folder / ref):
            return found
        for line in _read(folder / "packed-refs").splitlines():
            if line.endswith(f" {ref}"):
                return line.split()[0]
    return ""


def versions() -> dict[str, str | None]:
    """Software that must agree between nodes; torch's own are those that are loaded."""
    found = {name: HERE.known(partial(package, name)) for name in PACKAGES}
    found |= {read.__name__: HERE.known(read) for read in (python, kernel, driver)}
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch"] = str(torch.__version__)
        found["cuda"] = torch.version.cuda
        found["rocm"] = getattr(torch.version, "hip", None)
        if torch.cuda.is_available():
            found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return found


def hardware() -> dict[str, Any]:
    model = re.search(r"^model name\s*: (.+)$", _read(Path("/proc/cpuinfo")), re.MULTILINE)
    installed = HERE.known(memory)
    return {
        "cpu": model and model[1].strip(),
        "num_cores": os.cpu_count(),
        "num_usable": len(os.sched_getaffinity(0)),
        "num_numa_nodes": len(list(SYS_NODE.glob("node[0-9]*"))) or None,
        "memory_mib": installed and installed["MemTotal"] >> 20,
        "gpus": [card["name"] for card in gpu.read_cards()],
        "blas": _blas(),
    }


def environment() -> dict[str, str]:
    return {
        name: value[:MOST_VALUE]
        for name, value in sorted(os.environ.items())
        if VARIABLES.fullmatch(name) and not SECRET.search(name)
    }


def differences(
    places: Mapping[int, Mapping[str, Any]], between: str = "nodes"
) -> list[tuple[list[int], str]]:
    """Versions that are not the same on all ranks: who is in the minority, and the difference in words."""
    found = []
    names = sorted({name for place in places.values() for name in place.get("versions", {})})
    for name in names:
        ranks: dict[str, list[int]] = {}
        for rank, place in places.items():
            ranks.setdefault(str(place.get("versions", {}).get(name)), []).append(rank)
        if len(ranks) > 1:
            usual = max(ranks, key=lambda value: len(ranks[value]))
            odd = sorted(rank for value, those in ranks.items() if value != usual for rank in those)
            listed = "; ".join(f"{value} on {_hosts(places, on)}" for value, on in ranks.items())
            found.append((odd, f"{name} differs between {between}: {listed}"))
    return found


def _hosts(places: Mapping[int, Mapping[str, Any]], ranks: list[int]) -> str:
    names = list(dict.fromkeys(str(places[rank].get("host")) for rank in ranks))
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _blas() -> str | None:
    """The linear algebra library that this process has loaded."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return None
    paths = {line.split()[-1] for line in lines if "/" in line}
    named = sorted(path for path in paths if re.search(r"(openblas|mkl_core|blis|libblas)", path))
    if named:
        return named[0].rpartition("/")[2]
    return "in torch" if any("libtorch_cpu" in path for path in paths) else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
