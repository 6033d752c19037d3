"""Software versions that must be the same on all nodes.

`hakaru bench run` fails where one of `place.versions` differs, so preflight checks them all and fails too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hakaru.measure.node.machine import Absent, Machine
from hakaru.measure.node.versions import (
    PACKAGES,
    driver,
    kernel,
    mpi,
    nccl,
    package,
    python,
    torch_value,
)
from hakaru.measure.preflight.check import Ask, Finding, failed, fleet_check
from hakaru.measure.preflight.compare import compare
from hakaru.measure.preflight.facts import Node, fact
from hakaru.measure.preflight.gpu import refuse_amd


@dataclass(frozen=True)
class Software:
    title: str
    read: Callable[[Machine], str]
    fix: str
    nvidia_only: bool = False  # its AMD counterpart is not read
    optional: bool = True  # a node may do without it


SAME_TORCH = (
    "python -c 'import torch; print(torch.__version__)'  # install the same torch on all nodes"
)
SOFTWARE: dict[str, Software] = {
    "kernel": Software(
        "Linux kernel",
        kernel,
        "uname -r  # install kernel {wanted}, then restart the node",
        optional=False,
    ),
    "python": Software(
        "Python",
        python,
        "python3 --version  # use one virtual environment on a shared disk",
        optional=False,
    ),
    **{
        name: Software(
            name,
            partial(package, name),
            f"pip install '{name}=={{wanted}}'",
            optional=name == "torch",
        )  # hakaru answers, and needs numpy
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
    fact(f"version-{name}", optional=software.optional)(software.read)

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
