"""Software versions of a node, read without importing the software."""

from __future__ import annotations

import ast
import platform
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from hakaru.measure.node.machine import Absent, Machine, NotInstalled

# packages whose versions must agree between the nodes of a run
PACKAGES = ("hakaru", "torch", "numpy")
LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/lib",
)
NCCL_PACKAGES = tuple(f"nvidia-nccl-cu{cuda}" for cuda in range(10, 16))
DRIVER = "/sys/module/nvidia/version"


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
