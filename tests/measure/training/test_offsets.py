"""Clock offsets on simulated clocks and links, whose truth is known, and between real processes."""

from __future__ import annotations

import queue
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hakaru.measure.training._offsets import Offset, answer, ask, offsets_by

REAL = """
import sys
import torch.distributed as dist
from hakaru.measure.training._offsets import TorchMessages, offsets_by

rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", store=dist.FileStore(folder + "/meeting", 2), rank=rank, world_size=2)
found = offsets_by(TorchMessages(dist.group.WORLD), rank, ["one machine", "another"])
if rank == 0:
    print(*(value for each in found for value in (each.offset_s, each.uncertainty_s)))
dist.barrier()
dist.destroy_process_group()
"""


class Network:
    """One time for all: a message takes a moment each way, and now and then much longer."""

    def __init__(self, offsets: dict[int, float], busy: float = 0.0) -> None:
        self.now, self.offsets, self.busy = 100.0, offsets, busy
        self.random = random.Random(3)
        self.asked = 0

    def clock(self) -> float:
        return self.now

    def _travel(self) -> None:
        self.now += 0.001 * (1 + 0.1 * self.random.random())
        if self.random.random() < self.busy:
            self.now += 0.2 * self.random.random()

    def send(self, value: float, to: int) -> None:
        self.asked = to
        self._travel()

    def receive(self, source: int) -> float:
        assert source == self.asked
        read = self.now + self.offsets[source]
        self._travel()
        return read


@pytest.mark.parametrize("busy", [0.0, 0.8])
@pytest.mark.parametrize("offset_s", [0.0, 1234.5, -3e6])
def test_a_clock_is_read_within_half_a_round_trip(offset_s: float, busy: float) -> None:
    network = Network({1: offset_s}, busy)
    found = ask(network, 1, network.clock, num=24)
    assert abs(found.offset_s - offset_s) <= found.uncertainty_s + 1e-9
    assert found.uncertainty_s < 0.0012  # the exchanges that were held up do not count


def test_processes_of_a_machine_share_its_clock() -> None:
    network = Network({2: 50.0, 4: -7.0})
    machines = ["a", "a", "b", "b", "c", "a", "b"]
    found = offsets_by(network, 0, machines, network.clock)
    assert [round(each.offset_s) for each in found] == [0, 0, 50, 50, -7, 0, 50]
    assert found[5] == Offset(0.0, 0.0)
    assert found[3] == found[2]


def test_only_the_first_rank_of_another_machine_answers() -> None:
    silent = Network({})
    for rank, machines in ((1, ["a", "a"]), (2, ["a", "b", "b"])):
        assert offsets_by(silent, rank, machines) == []
    assert silent.now == 100.0


class Pipe:
    """Messages between two threads."""

    def __init__(self, out: queue.Queue[float], into: queue.Queue[float]) -> None:
        self.out, self.into = out, into

    def send(self, value: float, to: int) -> None:
        self.out.put(value)

    def receive(self, source: int) -> float:
        return self.into.get(timeout=10)


def test_asking_and_answering_fit_together() -> None:
    there: queue.Queue[float] = queue.Queue()
    back: queue.Queue[float] = queue.Queue()
    other = threading.Thread(target=answer, args=(Pipe(back, there),), kwargs={"num": 5})
    other.start()
    found = ask(Pipe(there, back), 1, num=5)
    other.join(10)
    assert not other.is_alive()
    assert there.empty() and back.empty()
    assert abs(found.offset_s) <= found.uncertainty_s


def test_real_processes_find_that_their_clock_is_the_same(tmp_path: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", REAL, str(rank), str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    said = [each.communicate(timeout=60)[0] for each in started]
    assert [each.returncode for each in started] == [0, 0], said
    offset, uncertainty = map(float, said[0].split()[-2:])
    assert abs(offset) <= uncertainty
