"""The devices of a node: its GPUs or, where there are none, each core and each NUMA node.

The name is all that differs between a core and a card: the same benchmark runs on both.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from hakaru.errors import HakaruError
from hakaru.measure.context import torch
from hakaru.registry import hint

Kind = Literal["core", "numa", "gpu"]
SYS_CPU = Path("/sys/devices/system/cpu")
SYS_NODE = Path("/sys/devices/system/node")
SYS_PCI = Path("/sys/bus/pci/devices")
KINDS = {"cpu": "core", "numa": "numa", "cuda": "gpu"}
VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD"}
TOOLS = {"NVIDIA": "nvidia-smi", "AMD": "rocm-smi"}
# display controllers; AMD's since MI300 are processing accelerators, and its VGA controllers are mostly the
# graphics of a laptop, of which torch makes no use
GPU_CLASSES = {"NVIDIA": ("0x03",), "AMD": ("0x0380", "0x1200")}
# each of them hides cards from torch; CUDA ignores those of AMD, and Slurm sets them alike
VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


@dataclass(frozen=True)
class Device:
    """A card, a core or a NUMA node; `model` sorts those that should be equally fast."""

    id: str
    model: str
    cores: tuple[int, ...] = ()
    uuid: str | None = None
    bus_id: str | None = None

    @property
    def kind(self) -> str:
        return KINDS[self.id.partition(":")[0]]

    @property
    def torch_name(self) -> str:
        return self.id if self.kind == "gpu" else "cpu"


def find_devices(wanted: Sequence[str] = ()) -> list[Device]:
    """The devices of this node; `wanted` names some of them, or a kind such as `cpu`."""
    gpus = _gpus()
    every = [*gpus, *cores(), *numa_nodes()]
    if not wanted:
        return gpus or [*cores(), *numa_nodes()]
    chosen: dict[str, Device] = {}
    for name in wanted:
        found = [each for each in every if name in (each.id, each.id.partition(":")[0], each.kind)]
        if not found:
            known = [each.id for each in every]
            raise HakaruError(f"this node has no device {name!r}; {hint(name, known)}")
        chosen |= {each.id: each for each in found}
    return list(chosen.values())


def torch_names(wanted: Sequence[str]) -> list[str]:
    """The wanted devices as torch calls them, without waking the GPUs."""
    names = {name.rpartition("/")[2] for name in wanted}
    gpus = [f"cuda:{at}" for at in range(_cuda().device_count())]
    chosen = [each for each in gpus if not names or names & {each, "cuda", "gpu"}]
    kinds = {name.partition(":")[0] for name in names}
    return [*chosen, *(["cpu"] if not chosen or kinds & {"cpu", "core", "numa"} else [])]


def missing_gpus(
    found: Sequence[Device],
    wanted: Sequence[str],
    sys_pci: Path = SYS_PCI,
    environ: Mapping[str, str] = os.environ,
) -> str | None:
    """Cards that should be here and that torch does not see: a dead driver must not make cores the devices.

    Inside Slurm the job's own cards are expected, since control groups may hide the others; else all that the
    PCI bus has, less what the environment hides.
    """
    if wanted and not {name.rpartition("/")[2] for name in wanted} & {"cuda", "gpu"}:
        return None
    num_seen = sum(each.kind == "gpu" for each in found)
    on_bus = _cards_on_bus(sys_pci)
    if num_seen:  # a processor's own graphics of another make is no card that torch could see
        on_bus = {name: num for name, num in on_bus.items() if name == _torch_vendor()}
    in_slurm = "SLURM_JOB_ID" in environ
    expected, text = (_expected_in_slurm if in_slurm else _expected_on_bus)(environ, on_bus)
    if num_seen >= expected:
        return None
    tools = " and ".join(TOOLS[name] for name in on_bus) or "the driver"
    ask = "ask Slurm for the GPUs (--slurm gpus_per_node=8), " if in_slurm else ""
    return (
        f"{text} and torch sees {num_seen}: check {tools}, {ask}or name what to measure with --device, such "
        "as --device cpu for the processor"
    )


def _expected_in_slurm(environ: Mapping[str, str], on_bus: Mapping[str, int]) -> tuple[int, str]:
    held = _num_held(environ)
    if held:
        return held, f"this Slurm job holds {held} GPUs on this node"
    # unknown, or none: one card is enough, but cores are measured only where they are asked for
    text = f"the PCI bus has {_listed(on_bus)}, no variable of Slurm says that this job holds any"
    return min(1, sum(on_bus.values())), text


def _expected_on_bus(environ: Mapping[str, str], on_bus: Mapping[str, int]) -> tuple[int, str]:
    num_there, visible = sum(on_bus.values()), _num_visible(environ)
    if visible is None or visible >= num_there:
        return num_there, f"the PCI bus has {_listed(on_bus)}"
    names = " and ".join(name for name in VISIBLE if name in environ)
    return visible, f"the PCI bus has {_listed(on_bus)}, {names} leaves {visible} of them visible"


def _num_held(environ: Mapping[str, str]) -> int | None:
    """GPUs of the Slurm job on this node; None where Slurm does not say."""
    count = environ.get("SLURM_GPUS_ON_NODE", "")
    if count.isdecimal():
        return int(count)
    for name in ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS"):
        if listed := parse_list(environ.get(name, "")):
            return len(listed)
    return _num_visible(environ)


def _num_visible(environ: Mapping[str, str]) -> int | None:
    """Cards that the environment leaves visible; None where it hides none."""
    return min((_num_named(environ[name]) for name in VISIBLE if name in environ), default=None)


def _num_named(text: str) -> int:
    """Cards in `0,1` or `GPU-1b,GPU-2c`; CUDA stops at an entry that names none, such as -1 or NoDevFiles."""
    entries = (part.strip() for part in text.split(","))
    return len(list(takewhile(lambda each: re.match(r"\d|GPU-|MIG-", each), entries)))


def _cards_on_bus(sys_pci: Path) -> dict[str, int]:
    """The number of GPUs on the PCI bus by vendor."""
    vendors = (_vendor(folder) for folder in sorted(sys_pci.glob("*")))
    return dict(Counter(name for name in vendors if name))


def _vendor(folder: Path) -> str | None:
    """Who made this GPU; None for any other device."""
    name = VENDORS.get(_text(folder / "vendor").strip())
    is_gpu = name is not None and _text(folder / "class").startswith(GPU_CLASSES[name])
    return name if is_gpu else None


def _torch_vendor() -> str:
    return "AMD" if torch().version.hip else "NVIDIA"


def _listed(on_bus: Mapping[str, int]) -> str:
    return " and ".join(f"{num} {name} GPUs" for name, num in on_bus.items()) or "no GPUs"


def cores(sys_cpu: Path = SYS_CPU) -> list[Device]:
    """One device for each physical core that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))
    first = [core for core in allowed if core == min(_siblings(core, sys_cpu), default=core)]
    return [Device(f"cpu:{core}", _core_model(core, sys_cpu), (core,)) for core in first or allowed]


def numa_nodes(sys_node: Path = SYS_NODE) -> list[Device]:
    """One device for each NUMA node with cores that this process may use."""
    allowed = os.sched_getaffinity(0)
    found = []
    for folder in sorted(sys_node.glob("node[0-9]*"), key=lambda path: int(path.name[4:])):
        here = tuple(sorted(set(parse_list(_text(folder / "cpulist"))) & allowed))
        if here:
            found.append(Device(f"numa:{folder.name[4:]}", _numa_model(len(here)), here))
    return found or [Device("numa:0", _numa_model(len(allowed)), tuple(sorted(allowed)))]


def _numa_model(num_cores: int) -> str:
    return f"{num_cores} cores of {processor_name()}"


@contextmanager
def placed(device: Device) -> Iterator[None]:
    """Run on the device's cores: its own, or those of a GPU's socket where that is known."""
    if not device.cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, device.cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def parse_list(text: str) -> list[int]:
    """`0-3,8` as numbers."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        if low.strip().isdigit():
            numbers += range(int(low), int(high or low) + 1)
    return numbers


def _gpus() -> list[Device]:
    """What torch calls cuda, which is ROCm's name too; none where torch is missing or sees none."""
    try:
        cuda = _cuda()
    except HakaruError:
        return []
    if not cuda.is_available():
        return []
    return [_gpu(cuda.get_device_properties(at), at) for at in range(cuda.device_count())]


def _cuda() -> Any:
    """torch's GPUs, numbered as nvidia-smi does; asking for their number does not wake them.

    CUDA reads the order once, when it wakes. Its own default puts the fastest card first.
    """
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    return torch().cuda


def _gpu(properties: Any, index: int) -> Device:
    uuid = str(getattr(properties, "uuid", "") or "") or None
    parts = [getattr(properties, f"pci_{name}_id", None) for name in ("domain", "bus", "device")]
    known = [int(part) for part in parts if part is not None]
    bus = "{:04x}:{:02x}:{:02x}.0".format(*known) if len(known) == 3 else None
    near = local_cores(bus)
    return Device(f"cuda:{index}", str(properties.name), near, uuid and f"GPU-{uuid}", bus)


def local_cores(bus: str | None, sys_pci: Path = SYS_PCI) -> tuple[int, ...]:
    """The cores of the card's own socket, so that page-locked memory lies there too; none where unknown."""
    listed = parse_list(_text(sys_pci / (bus or "none") / "local_cpulist"))
    return tuple(sorted(set(listed) & os.sched_getaffinity(0)))


def _siblings(core: int, sys_cpu: Path) -> list[int]:
    return parse_list(_text(sys_cpu / f"cpu{core}/topology/thread_siblings_list"))


def _core_model(core: int, sys_cpu: Path) -> str:
    """Cores of one machine may differ: fast and frugal ones have other highest clocks."""
    khz = _text(sys_cpu / f"cpu{core}/cpufreq/cpuinfo_max_freq").strip()
    clock = f", {int(khz) / 1e6:.2f} GHz" if khz.isdigit() else ""
    return f"core of {processor_name()}{clock}"


def processor_name() -> str:
    lines = _text(Path("/proc/cpuinfo")).splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "an unknown processor")


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
