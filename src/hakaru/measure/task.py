"""What a worker is asked to do, as a file that every node can read, and who it is among the others."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hakaru.measure.fleet import Limits
from hakaru.measure.protocol import Rule
from hakaru.measure.record import parameters_text
from hakaru.safety.files import refuse_link, replace_file

TASK_FILE = "task.json"


@dataclass(frozen=True)
class Item:
    """One point of one benchmark's grid.

    With `repetitions` just so many are taken, and somebody else decides; without, the worker does. `devices`
    names those that it is measured on, as `n1/cuda:3`; all where it is empty.
    """

    benchmark: str
    parameters: dict[str, Any] = field(default_factory=dict)
    repetitions: int = 0
    devices: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.benchmark} {parameters_text(self.parameters)}"

    def wants(self, host: str, device: str) -> bool:
        return not self.devices or f"{host}/{device}" in self.devices


@dataclass(frozen=True)
class Task:
    """Items to measure on some devices (all of them where none is named), by one rule."""

    scope: str
    items: tuple[Item, ...]
    devices: tuple[str, ...] = ()
    rule: Rule = field(default_factory=Rule)
    limits: Limits = field(default_factory=Limits)

    def write(self, folder: Path) -> Path:
        refuse_link(folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / TASK_FILE
        replace_file(path, json.dumps(asdict(self)))
        return path

    @classmethod
    def read(cls, path: Path) -> Task:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            scope=raw["scope"],
            items=tuple(
                Item(**(each | {"devices": tuple(each["devices"])})) for each in raw["items"]
            ),
            devices=tuple(raw["devices"]),
            rule=Rule(**raw["rule"]),
            limits=Limits(**raw["limits"]),
        )


@dataclass(frozen=True)
class Place:
    """Which of how many processes this is, on all nodes and on its own."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1


# torchrun and our own launcher, Open MPI, MPICH and its kin, Slurm: whoever started the process says
_VARIABLES = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    (
        *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        *("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
)


def find_place(environ: Mapping[str, str] = os.environ) -> Place:
    """Where this process stands, by the launcher's variables; alone where there are none."""
    for names in _VARIABLES:
        rank, size, local, local_size = (environ.get(name, "") for name in names)
        if rank.isdigit() and size.isdigit():
            return Place(
                int(rank),
                int(size),
                int(local) if local.isdigit() else int(rank),
                int(local_size) if local_size.isdigit() else 1,
            )
    return Place()


def journal_of(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.jsonl"
