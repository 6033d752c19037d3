"""Several hosts on one machine, each in a network namespace: for the self-test and for tests of links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hakaru.measure.launch._base import (
    Layout,
    Start,
    Watch,
    rank_variables,
    run_all,
    worker_variables,
)
from hakaru.measure.launch.local import MODULE
from hakaru.safety.processes import module_command


class Host(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def interface(self) -> str: ...
    @property
    def prefix(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class Namespaces:
    """One rank on each host; `environ` adds variables for some hosts, by name."""

    hosts: Sequence[Host]
    environ: dict[str, dict[str, str]]
    id: str = "namespaces"
    title: str = "Network namespaces on this machine."

    def check(self, layout: Layout) -> None:
        return

    def run(self, task: Path, layout: Layout, timeout_s: float, watch: Watch) -> list[str]:
        size = len(self.hosts)
        starts = [
            Start(
                f"rank {rank} on {host.name}",
                [*host.prefix, *module_command(MODULE, str(task))],
                worker_variables()
                | rank_variables(rank, size, 0, 1)
                | {"GLOO_SOCKET_IFNAME": host.interface, "HAKARU_HOST": host.name}
                | self.environ.get(host.name, {}),
                task.parent / f"rank-{rank}.log",
            )
            for rank, host in enumerate(self.hosts)
        ]
        return run_all(starts, timeout_s, watch)
