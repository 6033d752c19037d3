"""Each check: a node with one defect is found and named, with the fix."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hakaru.measure.node.versions import PACKAGES, _assigned
from hakaru.measure.place import versions
from hakaru.measure.preflight import CHECKS, Ask, gather, judge, stamp
from hakaru.measure.preflight.network import chosen
from hakaru.measure.verdict import Verdict
from tests.measure.preflight._fake import (
    BUSES,
    CARD,
    NOW_S,
    TCP,
    Fake,
    finding,
    gpu,
    interface,
    limits,
    pci,
)  # fmt: skip

ASK = Ask(num_ranks=16, ranks_per_node=8, gpus_per_node=8)


Change = Callable[[Fake], object]
OLD_DRIVER = ("clocks_event_reasons.active", "mig.mode.current")


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """gpu02, which has nothing."""
    return Fake("gpu02", peers=("gpu01", "gpu02")).facts(tmp_path_factory.mktemp("well"))


def hang() -> None:
    raise subprocess.TimeoutExpired("nvidia-smi", 20)


def missing() -> None:
    raise FileNotFoundError


def drop(folder: str) -> Change:
    def change(node: Fake) -> None:
        node.files = {
            path: text for path, text in node.files.items() if not path.startswith(folder)
        }

    return change


def write(files: dict[str, str]) -> Change:
    return lambda node: node.files.update(files)


def card(**values: str) -> Change:
    """Fields of the fourth GPU; `__` is a dot."""
    return lambda node: node.gpus[3].update({k.replace("__", "."): v for k, v in values.items()})


def set_to(**values: Any) -> Change:
    def change(node: Fake) -> None:
        for name, value in values.items():
            setattr(node, name, value)

    return change


def both(*changes: Change) -> Change:
    return lambda node: [change(node) for change in changes]


V1 = {"proc/self/cgroup": "8:pids:/slurm/job7\n0::/\n", "sys/fs/cgroup/pids/slurm/job7/pids.max": "512",
      "sys/fs/cgroup/pids/slurm/job7/pids.current": "3"}  # fmt: skip
V2 = {
    "sys/fs/cgroup/system.slice/pids.max": "600",
    "sys/fs/cgroup/system.slice/pids.current": "200",
}
FULL = {"sys/fs/cgroup/system.slice/job.scope/memory.max": str(9 << 30),
        "sys/fs/cgroup/system.slice/job.scope/memory.current": str(5 << 30),
        "sys/fs/cgroup/system.slice/job.scope/memory.stat": f"inactive_file {1 << 30}\n"}  # fmt: skip
NO_CARDS = both(drop("sys/bus/pci/devices/0000:0"), drop("sys/bus/pci/devices/0000:4"),
                drop("sys/bus/pci/devices/0000:8"), drop("sys/bus/pci/devices/0000:c"),
                write(pci("0000:01:00.0", "0200", "15b3")))  # fmt: skip

ILL: list[tuple[Change, str, str, str]] = [
    # limits
    (write({"proc/self/limits": limits(soft="many")}), "open-files", "not measured", "many"),
    (write({"proc/self/limits": limits(stack=2 << 20)}), "stack", "fail", "ulimit -s 8192"),
    (write({"proc/self/limits": limits(stack="unlimited")}), "stack", "warn", "ulimit -s 8192"),
    (write({"proc/self/limits": limits(memlock=65536)}), "locked-memory", "fail", "* - memlock unlimited"),
    (write({"proc/sys/fs/file-nr": "9000 0 9100"}), "open-files-system", "fail", "sysctl -w fs.file-max="),
    (write({"proc/sys/kernel/pid_max": "2000"}), "kernel-processes", "fail", "sysctl -w kernel.pid_max=4096"),
    (write(V1), "cgroup-processes", "fail", "/sys/fs/cgroup/pids/slurm/job7/pids.max"),
    (write(V2), "cgroup-processes", "fail", "/sys/fs/cgroup/system.slice/pids.max"),
    (write({"sys/class/infiniband/mlx5_0/ports/1/state": "1: DOWN"}), "rdma-ports", "fail", "mlx5_0:1"),
    (drop("sys/class/infiniband"), "locked-memory", "n/a", "no InfiniBand or RoCE device"),
    # memory, processors, clocks
    (write(FULL), "free-memory", "fail", "5.0 GiB left in the control group"),
    (set_to(shm_kib=65536), "shared-memory", "fail", "--shm-size=1024m"),
    (write({"proc/meminfo": "MemTotal: 9 kB\n"}), "free-memory", "not measured", "MemAvailable"),
    (write({"sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave"}),
     "governor", "warn", "cpupower frequency-set -g performance"),
    (both(drop("sys/devices/system/cpu"), write({"sys/devices/system/cpu/online": "0-63"})),
     "governor", "n/a", "no cpufreq policy"),
    (write({"proc/sys/kernel/numa_balancing": "1"}), "numa-balancing", "warn", "kernel.numa_balancing=0"),
    # links
    (write(pci(BUSES[3], "0302", "10de", width=8)), "pcie-width", "fail", f"GPU {BUSES[3]} runs x8 of x16"),
    (write(pci(CARD, "0207", "15b3", width=8)), "pcie-width", "fail", f"InfiniBand card {CARD} runs x8"),
    (write(pci(CARD, "0207", "15b3", speed="8.0 GT/s PCIe")), "pcie-speed", "warn", f"lspci -vvs {CARD}"),
    (write(pci(BUSES[3], "0302", "10de", width=255)), "pcie-width", "not measured", BUSES[3]),
    (write(pci(BUSES[3], "0302", "10de", width=8) | pci(CARD, "0207", "15b3", width=255)),
     "pcie-width", "fail", f"GPU {BUSES[3]} runs x8 of x16"),
    (card(pcie__link__width__current="8"), "gpu-pcie-width", "fail", f"GPU 3 ({BUSES[3]}) runs x8 of x16"),
    (card(pcie__link__width__current="[N/A]"), "gpu-pcie-width", "not measured", BUSES[3]),
    # GPUs
    (card(ecc__errors__uncorrected__volatile__total="2"), "gpu-ecc-errors", "fail", f"-i {BUSES[3]} -r"),
    (card(ecc__errors__uncorrected__volatile__total="[Unknown Error]"), "gpu-visible", "fail", BUSES[3]),
    (card(ecc__errors__uncorrected__volatile__total="[N/A]"), "gpu-ecc-errors", "not measured", BUSES[3]),
    (card(ecc__mode__current="[N/A]"), "gpu-ecc-mode", "not measured", BUSES[3]),
    (card(mig__mode__current="[N/A]"), "gpu-mig", "not measured", BUSES[3]),
    (card(clocks_event_reasons__active="[N/A]"), "gpu-throttling", "not measured", BUSES[3]),
    (set_to(remapped={3: ("1", "0")}), "gpu-memory-repair", "fail", "GPU 3 (0000:4c:00.0): row remapping is"),
    (set_to(remapped={3: ("No", "Yes")}), "gpu-memory-repair", "fail", f"-i {BUSES[3]} -r"),
    (set_to(remapped={3: ("[N/A]", "0")}), "gpu-memory-repair", "not measured", BUSES[3]),
    (set_to(remapped={3: ("soon", "0")}), "gpu-memory-repair", "not measured", "soon"),
    (set_to(remapped=dict.fromkeys(range(8), ("[N/A]", "[N/A]"))), "gpu-memory-repair", "n/a", "neither"),
    (card(retired_pages__pending="Yes"), "gpu-memory-repair", "fail", "page retirement is pending"),
    (card(ecc__mode__current="Disabled"), "gpu-ecc-mode", "warn", "-e 1"),
    (card(persistence_mode="Disabled"), "gpu-persistence", "warn", "nvidia-smi -pm 1"),
    (card(mig__mode__current="Enabled"), "gpu-mig", "fail", "-mig 0"),
    (card(clocks_event_reasons__active="0x48"), "gpu-throttling", "fail", "hardware thermal slowdown"),
    (card(clocks_event_reasons__active="0x4"), "gpu-throttling", "warn", "power cap"),
    (card(clocks_event_reasons__active="soon"), "gpu-throttling", "not measured", "soon"),
    (set_to(broken={"nvidia-smi": hang}), "nccl-interface", "pass", "ib0"),
    (set_to(apps=f"0000{BUSES[0]}, 4242, python, train.py\n"), "gpu-processes", "fail", "kill 4242"),
    (lambda node: node.gpus.pop(), "gpu-visible", "fail", "7 GPUs"),
    (set_to(broken={"nvidia-smi": hang}), "gpu-visible", "fail", "did not answer within 20 s"),
    (set_to(broken={"nvidia-smi": missing}), "gpu-visible", "fail", "not installed, but an NVIDIA GPU"),
    (both(NO_CARDS, set_to(broken={"nvidia-smi": missing})), "gpu-visible", "fail", "no NVIDIA GPU"),
    (both(NO_CARDS, set_to(broken={"nvidia-smi": missing})), "gpu-ecc-errors", "n/a", "no NVIDIA GPU"),
    (set_to(unknown_fields=OLD_DRIVER), "gpu-throttling", "pass", ""),
    (set_to(unknown_fields=OLD_DRIVER), "gpu-mig", "n/a", "older"),
    # network
    (write(interface("eth1")), "nccl-interface", "warn", "export NCCL_SOCKET_IFNAME="),
    (set_to(environ={"NCCL_SOCKET_IFNAME": "=eth9"}), "nccl-interface", "fail", "matches no interface"),
    (set_to(environ={"NCCL_SOCKET_IFNAME": "lo"}), "nccl-interface", "fail", "reaches no other node"),
    (both(write(interface("docker0")), set_to(environ={"GLOO_SOCKET_IFNAME": "docker0"})),
     "gloo-interface", "fail", "reaches no other node"),
    (both(write(interface("eth1", up=False)), set_to(environ={"GLOO_SOCKET_IFNAME": "eth1"})),
     "gloo-interface", "fail", "eth1 is down"),
    (both(write(interface("eth1")), set_to(environ={"NCCL_SOCKET_IFNAME": "^eth,docker"})),
     "nccl-interface", "pass", "ib0"),
    (write({"etc/nccl.conf": "NCCL_SOCKET_IFNAME=eth9\n"}), "nccl-interface", "fail", "eth9"),
    (set_to(known={"gpu01": "127.0.1.1"}), "own-name", "fail", "in /etc/hosts: 10.0.0.1 gpu01"),
    (set_to(known={"gpu01": "10.0.0.9"}), "own-name", "fail", "not on this node: 10.0.0.9"),
    (set_to(broken={"ip": missing}), "own-name", "not measured", "addresses of this node are not known"),
    (set_to(known={"gpu01": ""}), "own-name", "fail", "does not resolve"),
    (set_to(known={"gpu02": ""}), "peer-names", "fail", "not resolved: gpu02"),
    (set_to(known={"gpu02": "127.0.0.1"}), "peer-names", "fail", "this node itself: gpu02 is 127.0.0.1"),
    (set_to(known={"gpu02": "10.0.0.1"}), "peer-names", "fail", "this node itself: gpu02 is 10.0.0.1"),
    (set_to(known={"gpu02": "127.0.0.1"}, broken={"ip": missing}), "peer-names", "fail", "127.0.0.1"),
    (set_to(broken={"ip": missing}), "peer-names", "not measured", "addresses of this node are not known"),
    (set_to(peers=("gpu01",)), "peer-names", "not measured", "not looked up: gpu02"),
    (write({"proc/net/tcp": TCP.format(port=29500, state="0A")}), "master-port", "fail", "ss -ltnp"),
    (write({"proc/net/tcp": TCP.format(port=29500, state="06")}), "master-port", "pass", "free"),
    # differences
    (write({"sys/module/nvidia/version": "535.1"}), "same-driver", "fail", "535.1 on gpu01"),
    (write({"proc/sys/kernel/osrelease": "5.4"}), "same-kernel", "fail", "5.4 on gpu01"),
    (set_to(broken={"mpirun": missing}), "same-mpi", "fail", "mpirun is not installed on gpu01"),
    (lambda node: node.gpus.pop(), "same-gpus", "fail", "7 x NVIDIA A100"),
    (write({"proc/cpuinfo": "processor: 0\nmodel name: Old\n"}), "same-cpu", "warn", "1 x Old on gpu01"),
    (write({"proc/meminfo": "MemTotal: 131000000 kB\nMemAvailable: 130000000 kB\nSwapTotal: 0 kB\n"
            "SwapFree: 0 kB\n"}), "same-memory", "warn", "gpu01"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "id", "status", "text"), ILL, ids=[f"{e[1]}-{e[3]}" for e in ILL]
)
def test_an_ill_node_is_found_and_the_other_is_not_blamed(
    tmp_path: Path, well: dict[str, Any], change: Change, id: str, status: str, text: str
) -> None:
    ill = Fake("gpu01", peers=("gpu01", "gpu02"))
    change(ill)
    preflight = judge([ill.facts(tmp_path), well], ASK)
    found = finding(preflight, id, "gpu01")

    assert found.status == status
    assert text in f"{found.found} {found.fix}"
    assert (preflight.verdict is Verdict.FAILED) == bool(preflight.failures)
    if status in ("fail", "not measured"):
        assert preflight.verdict is not Verdict.GOOD
    other = [row for row in preflight.rows if row.node == "gpu02" and row.finding.status != "pass"]
    assert other == []


@pytest.mark.parametrize(
    ("gpus_per_node", "status", "verdict"),
    [(None, "fail", Verdict.FAILED), (8, "fail", Verdict.FAILED), (7, "warn", Verdict.GOOD)],
)
def test_a_gpu_that_the_driver_does_not_see_fails_unless_it_is_not_needed(
    tmp_path: Path, gpus_per_node: int | None, status: str, verdict: Verdict
) -> None:
    node = Fake("gpu01", gpus=[gpu(index) for index in range(7)])
    preflight = judge([node.facts(tmp_path)], Ask(8, 8, gpus_per_node=gpus_per_node))
    found = finding(preflight, "gpu-visible", "gpu01")

    assert (found.status, preflight.verdict) == (status, verdict)
    if gpus_per_node != 8:
        assert f"not seen by the driver: {BUSES[7]}" in found.found


def test_a_card_of_another_model_may_lack_what_the_others_report(tmp_path: Path) -> None:
    node = Fake("gpu01")
    node.gpus[3] |= {"name": "T1000", "ecc.errors.uncorrected.volatile.total": "[N/A]"}
    found = finding(judge([node.facts(tmp_path)], Ask(8, 8)), "gpu-ecc-errors", "gpu01")

    assert (found.status, found.found) == ("pass", "none on 7 of 8 GPUs")


@pytest.mark.parametrize(
    ("address", "status"),
    [("127.0.1.1", "pass"), ("10.0.0.1", "pass"), ("10.0.0.9", "fail"), ("fe80::1%ib0", "fail")],
)
def test_on_one_node_the_own_name_may_be_loopback_but_not_elsewhere(
    tmp_path: Path, address: str, status: str
) -> None:
    node = Fake("gpu01", known={"gpu01": address})

    assert finding(judge([node.facts(tmp_path)], Ask(8, 8)), "own-name", "gpu01").status == status


@pytest.mark.parametrize(
    ("gpus_per_node", "mib", "status"),
    [(None, 1024, "fail"), (0, 1024, "pass"), (0, 64, "warn")],
)
def test_ranks_without_gpus_need_no_shared_memory_of_nccl(
    tmp_path: Path, gpus_per_node: int | None, mib: int, status: str
) -> None:
    node = Fake("gpu01", shm_kib=mib << 10).facts(tmp_path)
    preflight = judge([node], Ask(64, 64, gpus_per_node=gpus_per_node))

    assert finding(preflight, "shared-memory", "gpu01").status == status


def amd_node(name: str, pci_class: str = "0380", width: int = 16) -> Fake:
    """A node of eight AMD GPUs: no nvidia-smi, no driver and no library of NVIDIA's."""
    node = Fake(name, peers=("gpu01", "gpu02"), broken={"nvidia-smi": missing})
    for bus in BUSES:
        node.files |= pci(bus, pci_class, "1002", width)
    both(drop("sys/module/nvidia"), drop("usr/lib"))(node)
    node.files |= {"sys/module/amdgpu/refcnt": "1", "usr/lib/libc.so": ""}
    return node


@pytest.mark.parametrize("pci_class", ["0300", "0380", "1200"])
@pytest.mark.parametrize("gpus_per_node", [None, 8])
def test_amd_gpus_are_not_measured_rather_than_absent(
    tmp_path: Path, pci_class: str, gpus_per_node: int | None
) -> None:
    answers = [amd_node(name, pci_class).facts(tmp_path) for name in ("gpu01", "gpu02")]
    preflight = judge(answers, Ask(16, 8, gpus_per_node=gpus_per_node))
    of_gpus = [id for id in CHECKS.ids() if id.startswith("gpu-")]

    for id in (*of_gpus, "same-gpus", "same-driver", "same-nccl"):
        found = finding(preflight, id, "gpu01")
        assert found.status == "not measured", id
        assert "not measured: AMD GPU" in found.found
        assert "reads NVIDIA's driver only" in found.found
    assert preflight.verdict is Verdict.NOT_MEASURED
    assert finding(preflight, "pcie-width", "gpu01").status == "pass"
    assert finding(preflight, "nccl-interface", "gpu01").status == "pass"


def test_a_narrow_link_of_an_amd_gpu_fails_and_a_run_without_gpus_ignores_them(
    tmp_path: Path,
) -> None:
    narrow = amd_node("gpu01", width=8).facts(tmp_path)
    assert finding(judge([narrow], Ask(8, 8)), "pcie-width", "gpu01").status == "fail"

    answers = [amd_node(name).facts(tmp_path / "whole") for name in ("gpu01", "gpu02")]
    preflight = judge(answers, Ask(16, 8, gpus_per_node=0))
    assert finding(preflight, "gpu-visible", "gpu01").status == "n/a"
    assert preflight.verdict is Verdict.GOOD


def test_an_amd_gpu_beside_those_of_nvidia_is_mentioned(tmp_path: Path) -> None:
    node = Fake("gpu01", files=pci("0000:e1:00.0", "0300", "1002"))
    found = finding(judge([node.facts(tmp_path)], Ask(8, 8)), "gpu-visible", "gpu01")

    assert (found.status, "not checked: AMD GPU 0000:e1:00.0" in found.found) == ("warn", True)


@pytest.mark.parametrize("name", [*PACKAGES, "python", "kernel", "cuda", "rocm", "nccl", "driver"])
def test_a_version_that_stops_bench_run_fails_here_too(
    tmp_path: Path, well: dict[str, Any], name: str
) -> None:
    """`place.differences` fails a run for each of these."""
    ill = Fake("gpu01", peers=("gpu01", "gpu02")).facts(tmp_path)
    ill["facts"][f"version-{name}"] = {"value": "0.0.1"}
    preflight = judge([ill, well], ASK)

    assert finding(preflight, f"same-{name}", "gpu01").status == "fail"
    assert preflight.verdict is Verdict.FAILED


def test_versions_are_those_that_bench_run_records() -> None:
    facts = gather()["facts"]

    for name, value in versions().items():
        if name != "driver" or value:
            assert facts[f"version-{name}"]["value"] == value, name
    assert _assigned("from typing import Optional\nhip: Optional[str] = '6.2'\ncuda = None\n") == {
        "hip": "6.2"
    }


@pytest.mark.parametrize(
    ("tracking", "synchronised"),
    [
        ("Leap status     : Normal\nSystem time     : 0.000012 seconds slow of NTP time\n", True),
        ("Leap status     : Normal\nSystem time     : 3600.5 seconds fast of NTP time\n", False),
        ("Leap status     : Not synchronised\n", False),
    ],
)
def test_chrony_keeps_a_clock_only_if_the_offset_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracking: str, synchronised: bool
) -> None:
    monkeypatch.setattr("tests.measure.preflight._fake.CHRONY", tracking)
    answer = Fake("gpu01").facts(tmp_path)

    assert answer["facts"]["clock-sync"]["value"]["synchronised"] is synchronised


def test_chrony_without_an_offset_is_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.measure.preflight._fake.CHRONY", "Leap status     : Normal\n")
    fact = Fake("gpu01").facts(tmp_path)["facts"]["clock-sync"]

    assert (fact["value"], fact["absent"]) == (None, False)
    assert "no offset" in fact["reason"]


@pytest.mark.parametrize(
    ("took_s", "sync", "status"),
    [
        (0.8, None, "pass"),
        (4.0, {"by": "chrony", "synchronised": True}, "pass"),
        (4.0, {"by": "chrony", "synchronised": False}, "not measured"),
        (4.0, None, "not measured"),
    ],
)
def test_a_slow_answer_does_not_hide_a_wrong_clock(
    tmp_path: Path, took_s: float, sync: dict[str, Any] | None, status: str
) -> None:
    answer = stamp(Fake("gpu01").facts(tmp_path), NOW_S - took_s, NOW_S)
    answer["facts"]["clock-sync"] = {"value": sync, "reason": "no time service answers"}
    found = finding(judge([answer], ASK), "clock-skew", "gpu01")

    assert found.status == status
    assert status == "pass" or "the answer took 4.0 s" in found.found


@pytest.mark.parametrize(
    ("soft", "hard", "ask", "status", "fix"),
    [
        (1024, 1 << 20, Ask(2, 2), "pass", ""),
        (1024, 1 << 20, Ask(32, 8), "warn", "ulimit -n 4096"),
        (1024, 1 << 20, Ask(1024, 8), "fail", "ulimit -n 16384"),
        (1024, 4096, Ask(1024, 8), "fail", "echo '* - nofile 16384'"),
        (1024, 4096, Ask(800, 8), "fail", "nofile"),  # where MN-1 was stopped
        (1024, 4096, Ask(700, 8), "warn", "nofile"),
        (1024, 4096, Ask(700, 8, all_to_all=True), "fail", "nofile"),
        (16384, 16384, Ask(1024, 8, all_to_all=True), "pass", ""),
        ("unlimited", "unlimited", Ask(1024, 8), "pass", ""),
    ],
)
def test_open_files_are_judged_by_the_number_of_ranks(
    tmp_path: Path, soft: Any, hard: Any, ask: Ask, status: str, fix: str
) -> None:
    node = Fake("gpu01", files={"proc/self/limits": limits(soft, hard)})
    found = finding(judge([node.facts(tmp_path)], ask), "open-files", "gpu01")

    assert found.status == status
    assert fix in found.fix


def test_more_sockets_need_more_files(tmp_path: Path) -> None:
    """NVIDIA/nccl issue 550: 8 threads of 8 sockets and 8 channels ran out with 16 ranks."""
    wide = {
        "NCCL_SOCKET_NTHREADS": "8",
        "NCCL_NSOCKS_PERTHREAD": "8",
        "NCCL_NCHANNELS_PER_NET_PEER": "8",
    }
    node = Fake("gpu01", environ=wide, files={"proc/self/limits": limits(8192, 8192)})
    found = finding(
        judge([node.facts(tmp_path)], Ask(16, 8, all_to_all=True)), "open-files", "gpu01"
    )

    assert (found.status, "15,856" in found.wanted) == ("fail", True)


@pytest.mark.parametrize(
    ("value", "exact", "names"),
    [
        ("eth", False, ["eth0", "eth1"]),
        ("=eth0", False, ["eth0"]),
        ("=eth0,ib0", False, ["eth0", "ib0"]),
        ("^eth", False, ["lo", "ib0"]),
        ("^=eth0", False, ["lo", "eth1", "ib0"]),
        ("eth", True, []),
        ("eth0,ib0", True, ["eth0", "ib0"]),
    ],
)
def test_interfaces_are_chosen_as_nccl_and_gloo_do(
    value: str, exact: bool, names: list[str]
) -> None:
    assert chosen(value, ["lo", "eth0", "eth1", "ib0"], exact) == names
