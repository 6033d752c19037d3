"""How a node is wired, and at which clock it runs, from files written in the kernel's form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hakaru.measure import condition, gpu, validity
from hakaru.measure._base import Case
from hakaru.measure.devices import Device
from hakaru.measure.protocol import Timed
from hakaru.measure.topology import read_topology
from tests.measure.test_gpu import ROW, answering

TOPO = """\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\x1b[0m
GPU0\t X \tNV12\tPIX\t0-15
GPU1\tNV12\t X \tSYS\t16-31

Legend:
"""


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(
        tmp_path / "sys",
        {
            "devices/system/node/node0/cpulist": "0-15",
            "devices/system/node/node10/cpulist": "32-47",
            "devices/system/node/node2/cpulist": "16-31",
            "bus/pci/devices/0000:07:00.0/numa_node": "1",
            "class/net/eth0/operstate": "up",
            "class/net/eth0/speed": "100000",
            "class/net/eth0/device/numa_node": "0",
            "class/net/eth1/operstate": "down",
            "class/net/eth1/speed": "-1",
            "class/net/eth1/device/numa_node": "-1",
            "class/net/docker0/operstate": "up",
            "class/infiniband/mlx5_0/ports/1/rate": "100 Gb/sec (4X EDR)",
        },
    )
    return tmp_path


def smi(command: Sequence[str]) -> str:
    second = ROW.replace("GPU-aa, 00000000:07", "GPU-bb, 00000000:99")
    return TOPO if command[1] == "topo" else f"{ROW}\n{second}\n"


def test_the_wiring_is_recorded(root: Path) -> None:
    found = read_topology(answering(smi, root))
    assert found["numa_nodes"] == {"0": "0-15", "2": "16-31", "10": "32-47"}
    assert found["cards"] == [
        {"uuid": "GPU-aa", "bus_id": "0000:07:00.0", "numa_node": 1},
        {"uuid": "GPU-bb", "bus_id": "0000:99:00.0", "numa_node": None},
    ]
    assert found["between_cards"][1:] == ["GPU0 X NV12 PIX 0-15", "GPU1 NV12 X SYS 16-31"]
    assert found["ports"] == {
        "eth0": {"state": "up", "mbit_s": 100000, "numa_node": 0},
        "eth1": {"state": "down", "mbit_s": None, "numa_node": None},
    }
    assert found["rdma_ports"] == {"mlx5_0:1": "100 Gb/sec (4X EDR)"}


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    found = read_topology(answering("", tmp_path))
    assert not any(found.values())


def test_clocks_come_from_the_governor_else_from_cpuinfo(tmp_path: Path) -> None:
    info = "".join(
        f"processor\t: {core}\nmodel name\t: A\ncpu MHz\t\t: {mhz}\n\n"
        for core, mhz in enumerate((2300.0, 2500.5))
    )
    write(tmp_path, {"cpuinfo": info})
    assert validity.core_clock_mhz((1,), tmp_path, tmp_path) == 2500.5
    assert validity.core_clock_mhz((0, 1), tmp_path, tmp_path) == pytest.approx(2400.2, abs=0.1)
    write(tmp_path, {"cpu1/cpufreq/scaling_cur_freq": "1800000"})
    assert validity.core_clock_mhz((1,), tmp_path, tmp_path) == 1800.0
    assert validity.core_clock_mhz((7,), tmp_path, tmp_path) is None
    assert validity.core_clock_mhz((0,), tmp_path / "none", tmp_path / "none") is None


def test_a_quota_and_heat_are_distinguished() -> None:
    quiet = replace(validity.read_now(), wall_s=10.0, own_s=10.0, throttled_s=0.0, thermal_s=None)
    assert validity.heated(quiet) is validity.stopped(quiet) is None
    assert validity.heated(replace(quiet, thermal_s=2.0)) == "heat slowed its cores for 2.0 s"
    assert "quota stopped it 50%" in str(validity.stopped(replace(quiet, throttled_s=5.0)))
    # of four cores, each of which the kernel counts
    assert "quota stopped it 75%" in str(validity.stopped(replace(quiet, throttled_s=30.0), 4))
    # heat slows a core and does not take it away; a quota does
    away = replace(quiet, own_s=5.0, thermal_s=5.0)
    assert "taken from it 50%" in str(validity.off_cpu(away))
    assert validity.off_cpu(replace(away, throttled_s=5.0)) is None
    assert validity.taken(away, 1) == 0.5
    assert validity.taken(replace(away, throttled_s=5.0), 1) is None
    assert validity.taken(replace(quiet, busy_s=22.0, own_s=20.0), 4) == 0.05  # of 40 s
    assert validity.taken(replace(quiet, busy_s=None), 4) is None


def test_a_card_is_asked_while_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    answer = gpu.state_of("GPU-aa", answering(smi))

    def asked(uuid: str | None) -> dict[str, object]:
        steps.append(f"asked {uuid}")
        return answer

    monkeypatch.setattr(condition.gpu, "state_of", asked)
    case = Case(
        step=lambda: steps.append("step"),
        values=lambda seconds: {},
        check=lambda: None,
        sync=lambda: steps.append("sync"),
    )
    state = condition.state_under_load(
        Device("cuda:0", "A100", uuid="GPU-aa"), Timed(case, seconds=[0.4, 0.5, 9.0])
    )
    assert steps[:2] == ["step", "sync"]
    assert steps.count("asked GPU-aa") == 1
    assert (state["clocks.sm"], state["temperature.gpu"]) == (1410, 61)
    assert condition.slowed(state) == (
        "the driver slows it down: power cap, software thermal slowdown"
    )
    assert condition.slowed({}) is None
