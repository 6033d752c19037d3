"""Software versions that must be the same on all nodes, read without importing the software.

`hakaru bench run` fails where one of `place.versions` differs, so preflight checks them all and fails too.
"""

from __future__ import annotations

import ast
import platform
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from hakaru.measure.place import PACKAGES
from hakaru.measure.preflight.check import Ask, Finding, failed, fleet_check
from hakaru.measure.preflight.compare import compare
from hakaru.measure.preflight.facts import Node, fact
from hakaru.measure.preflight.gpu import refuse_amd
from hakaru.measure.preflight.machine import Absent, Machine, NotInstalled

LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/lib",
)
NCCL_PACKAGES = tuple(f"nvidia-nccl-cu{cuda}" for cuda in range(10, 16))
DRIVER = "/sys/module/nvidia/version"


@dataclass(frozen=True)
class Software:
    title: str
    read: Callable[[Machine], str]
    fix: str
    nvidia_only: bool = False  # its AMD counterpart is not read


def kernel(machine: Machine) -> str:
    return machine.text("/proc/sys/kernel/osrelease")


def python(_: Machine) -> str:
    return platform.python_version()


def package(name: str, _: Machine) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        raise Absent(f"{name} is not installed") from None


def torch_value(name: str, title: str, _: Machine) -> str:
    """A value of torch's version.py; the package's metadata may lack which CUDA or ROCm it is built for."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise Absent("torch is not installed")
    text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    value = _assigned(text).get(name)
    if value is None:
        raise Absent(f"torch is built without {title}")
    return value


def nccl(machine: Machine) -> str:
    """The library that came with torch, else the system's."""
    for name in NCCL_PACKAGES:
        with suppress(PackageNotFoundError):
            return version(name)
    for folder in LIBRARIES:
        names = machine.names(folder) if machine.exists(folder) else []
        for name in names:
            if found := re.fullmatch(r"libnccl\.so\.(\d+\.\d+.*)", name):
                return found.group(1)
    raise Absent("NCCL is not installed")


def driver(machine: Machine) -> str:
    if machine.missing("/sys/module/nvidia"):
        raise Absent("the NVIDIA driver is not loaded")
    return machine.text(DRIVER)


def mpi(machine: Machine) -> str:
    """The first line of mpirun --version."""
    try:
        return machine.output("mpirun", "--version").strip().splitlines()[0]
    except NotInstalled:
        raise Absent("mpirun is not installed") from None


SAME_TORCH = (
    "python -c 'import torch; print(torch.__version__)'  # install the same torch on all nodes"
)
SOFTWARE: dict[str, Software] = {
    "kernel": Software(
        "Linux kernel", kernel, "uname -r  # install kernel {wanted}, then restart the node"
    ),
    "python": Software(
        "Python", python, "python3 --version  # use one virtual environment on a shared disk"
    ),
    **{
        name: Software(name, partial(package, name), f"pip install '{name}=={{wanted}}'")
        for name in PACKAGES
    },
    "torch": Software("torch", partial(torch_value, "__version__", "a version"), SAME_TORCH),
    "cuda": Software("CUDA build of torch", partial(torch_value, "cuda", "CUDA"), SAME_TORCH),
    "rocm": Software("ROCm build of torch", partial(torch_value, "hip", "ROCm"), SAME_TORCH),
    "nccl": Software("NCCL", nccl, "pip list | grep -i nccl  # install {wanted}", True),
    "driver": Software(
        "NVIDIA driver",
        driver,
        "nvidia-smi  # install driver {wanted}, then restart the node",
        True,
    ),
    "mpi": Software("MPI", mpi, "mpirun --version  # load the same module on all nodes"),
}


def _declare(name: str, software: Software) -> None:
    fact(f"version-{name}")(software.read)

    def read(node: Node, ask: Ask) -> str:
        try:
            return str(node[f"version-{name}"])
        except Absent:
            if software.nvidia_only:
                refuse_amd(node, ask)
            raise

    @fleet_check(
        f"same-{name}",
        title=f"Same {software.title} on all nodes",
        why="Nodes with different versions fail or hang when they connect, or differ in speed.",
    )
    def same(nodes: Sequence[Node], ask: Ask) -> Finding:
        return compare(nodes, ask, lambda node: read(node, ask), failed, software.fix)


for _name, _software in SOFTWARE.items():
    _declare(_name, _software)


def _assigned(text: str) -> dict[str, str]:
    """The texts that a Python file assigns to names."""
    found = {}
    for line in ast.parse(text).body:
        if isinstance(line, ast.Assign | ast.AnnAssign) and isinstance(line.value, ast.Constant):
            targets = line.targets if isinstance(line, ast.Assign) else [line.target]
            for target in targets:
                if isinstance(target, ast.Name) and isinstance(line.value.value, str):
                    found[target.id] = line.value.value
    return found
