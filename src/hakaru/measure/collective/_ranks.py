"""The ranks of a run: how they find one another, and the small group in which they agree on times.

Data goes over NCCL (or RCCL) on GPUs and gloo on processors; the harness' own messages always go over gloo,
so that they never wait in a card's queue.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from hakaru.measure.context import torch
from hakaru.measure.devices import Device, find_devices
from hakaru.measure.task import Place

MEETING = "rendezvous"
MEET_S = 120.0
VIRTUAL = ("lo", "docker", "br-", "virbr", "veth")
SIOCGIFADDR = 0x8915


@dataclass
class TorchRanks:
    """A process group; `maximum` and `share` are the harness' own messages."""

    rank: int
    size: int
    device: Device
    control: Any

    @classmethod
    def connect(cls, folder: Path, here: Place, wanted: Sequence[str] = ()) -> TorchRanks:
        """Join the others of this run, who find rank 0 by a file in the run's folder."""
        import torch.distributed as dist

        names = [name.rpartition("/")[2] for name in wanted]
        gpus = [each for each in find_devices(names) if each.kind == "gpu"]
        device = gpus[here.local_rank % len(gpus)] if gpus else Device("cpu:0", "processor")
        if gpus:
            torch().cuda.set_device(device.torch_name)
        store = _meet(folder, here)
        backend = "nccl" if gpus else "gloo"
        dist.init_process_group(
            backend, store=store, rank=here.rank, world_size=here.size, timeout=patience(here.size)
        )
        control = (
            dist.new_group(backend="gloo", timeout=patience(here.size))
            if gpus
            else dist.group.WORLD
        )
        return cls(here.rank, here.size, device, control)

    def barrier(self) -> None:
        import torch.distributed as dist

        dist.barrier(group=self.control)

    def maximum(self, *values: float) -> tuple[float, ...]:
        import torch.distributed as dist

        found = torch().tensor(values, dtype=torch().float64)
        dist.all_reduce(found, op=dist.ReduceOp.MAX, group=self.control)
        return tuple(found.tolist())

    def share(self, value: Any) -> list[Any]:
        """What every rank says, in the order of the ranks."""
        import torch.distributed as dist

        listed: list[Any] = [None] * self.size
        dist.all_gather_object(listed, value, group=self.control)
        return listed

    def collect(self, value: Any) -> list[Any] | None:
        """What every rank says, in the order of the ranks; on rank 0 alone."""
        import torch.distributed as dist

        listed: list[Any] | None = [None] * self.size if self.rank == 0 else None
        dist.gather_object(value, listed, group=self.control)
        return listed

    def close(self) -> None:
        import torch.distributed as dist

        dist.destroy_process_group()


def patience(size: int) -> timedelta:
    """How long ranks wait for one another: large groups take longer to meet."""
    return timedelta(seconds=90 + size / 4)


def own_address() -> str:
    """The address that the others reach this rank by: of the chosen interface, else the first real one."""
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        for interface in chosen_interfaces(os.environ.get(name, "")):
            if found := _interface_address(interface):
                return found
    try:
        named = socket.gethostbyname(socket.gethostname())
    except OSError:
        named = "127.0.0.1"
    if not named.startswith("127."):
        return named
    others = (_interface_address(each) for each in _interfaces() if not each.startswith(VIRTUAL))
    return next((each for each in others if each), named)


def chosen_interfaces(text: str) -> list[str]:
    """NCCL's notation: names begin with the word, `=` means exactly, and `^` means none of these."""
    words = [word for word in text.lstrip("=^").split(",") if word]
    if not words:
        return []
    if text.startswith("^"):
        return [each for each in _interfaces() if not each.startswith((*words, *VIRTUAL))]
    return [
        each for each in _interfaces() if each in words
        or (not text.startswith("=") and each.startswith(tuple(words)))
    ]  # fmt: skip


def _interfaces() -> list[str]:
    return [name for _, name in socket.if_nameindex()]


def _meet(folder: Path, here: Place) -> Any:
    tcp_store: Any = torch().distributed.TCPStore
    path = folder / MEETING
    if here.rank == 0:
        address = own_address() if here.size > here.local_size else "127.0.0.1"
        store = tcp_store(address, 0, here.size, True, patience(here.size), wait_for_workers=False)
        new = path.with_suffix(".new")
        new.write_text(f"{address} {store.port}")
        new.replace(path)
        return store
    deadline = time.monotonic() + MEET_S
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"rank 0 did not publish its address within {MEET_S:.0f} s")
        time.sleep(0.02)
    address, port = path.read_text().split()
    return tcp_store(address, int(port), here.size, False, patience(here.size))


def _interface_address(name: str) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            packed = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(packed[20:24])
