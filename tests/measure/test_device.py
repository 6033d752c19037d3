"""The device benchmarks' own checks: wrong products, types that cards cannot do, arrays beyond the caches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hakaru.measure import devices
from hakaru.measure._base import WrongResult, load_all
from hakaru.measure.context import Alone, Context
from hakaru.measure.device import _arrays, _probe, _reference, _shared
from hakaru.measure.device import memory as memory_module
from hakaru.measure.device._arrays import Room, last_level_cache_bytes
from hakaru.measure.device._probe import Unusable, probe_types
from hakaru.measure.device._reference import Reference, reference
from hakaru.measure.device.gemm import EVERY, MOST_PLACES, Checksums, Matrices, auto_size
from hakaru.measure.device.memory import num_wrong, settled_link
from hakaru.measure.devices import Device, local_cores, torch_names
from hakaru.measure.task import Item

KINDS = ("fp64", "fp32", "fp16")  # bf16's product may be an illegal instruction here
CORE = Context(Device("cpu:0", "core", (0,)), Alone())


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile that repeats in a small matrix as the real one does in a card's."""
    monkeypatch.setattr(_reference, "TILE", 24)
    reference.cache_clear()


def product(dtype: str, size: int) -> tuple[Reference, torch.Tensor]:
    known = reference(dtype, size)
    return known, torch.mm(*known.matrices("cpu"))


@pytest.mark.parametrize("size", [64, 100, 512])
@pytest.mark.parametrize("dtype", KINDS)
def test_a_right_product_passes_and_wrong_ones_do_not(
    dtype: str, size: int, small_tiles: None
) -> None:
    known, c = product(dtype, size)
    known.check(c)
    quarter, swapped = c.clone(), c.clone()
    quarter[:, : size // 4] = 0
    swapped[:2] = c[:2].flip(0)
    not_a_number = c.clone()
    not_a_number[3, 5] = float("nan")
    for wrong in (
        torch.zeros_like(c),
        quarter,
        c * 1.05,
        c.t().contiguous(),
        swapped,
        not_a_number,
    ):
        with pytest.raises(WrongResult, match="rounding explains"):
            known.check(wrong)


def test_the_whole_product_follows_from_the_tiles(small_tiles: None) -> None:
    """The reference is what the full matrices give, though it never sees them."""
    known, c = product("fp64", 100)
    a, b = known.matrices("cpu")
    assert len(known.product) == 24
    assert torch.allclose(c, a @ b)
    assert a.unique().numel() > 24 * 24  # signs differ between repetitions
    assert float(a.abs().max()) <= 0.5


@pytest.mark.parametrize("dtype", KINDS)
def test_a_single_wrong_element_is_found(dtype: str) -> None:
    """C·x of a row does not see it in fp16; the comparison of elements does."""
    known, c = product(dtype, 512)
    c[17, 300] += 0.1
    with pytest.raises(WrongResult):
        known.check(c)


def test_corrupt_inputs_are_found_though_the_product_of_them_is_right() -> None:
    """Freivalds' check on the card alone would pass: A·(B·x) is made of the same corrupt numbers."""
    known = reference("fp32", 512)
    a, b = known.matrices("cpu")
    a[5, 7] += 0.25
    with pytest.raises(WrongResult, match=r"C·x is off"):
        known.check(a @ b)


def test_rounding_to_bf16_passes_and_one_wrong_element_does_not() -> None:
    known = reference("bf16", 512)
    a, b = known.matrices("cpu")
    c = (a.float() @ b.float()).bfloat16()
    known.check(c)
    c[100, 200] += 1
    with pytest.raises(WrongResult, match=r"1 of \d+ elements"):
        known.check(c)


def test_cards_get_the_same_matrices_and_the_host_makes_them_once() -> None:
    assert reference("fp32", 256) is reference("fp32", 256)
    first, second = (reference("fp32", 256).matrices("cpu") for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    case = load_all().get("gemm").prepare(CORE, dtype="fp32", size=256)
    other = load_all().get("gemm").prepare(CORE, dtype="fp32", size=256)
    for each in (case, other):
        each.step()
    facts = case.read()
    assert facts == other.read()  # so that cards of one model can be compared
    assert facts["size"] == 256
    case.check()


def test_a_wrong_result_in_the_middle_is_found_though_the_last_one_is_right() -> None:
    case = load_all().get("gemm").prepare(CORE, dtype="fp64", size=64)
    true, calls = torch.mm, []

    def flaky(a: Any, b: Any, *, out: Any) -> None:
        true(a, b, out=out)
        calls.append(1)
        if len(calls) == EVERY + 1:
            out[0, 0] += 1e-9

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "mm", flaky)
        for _ in range(3 * EVERY):
            case.step()
            case.sync()
    with pytest.raises(WrongResult, match="two results"):
        case.check()


@pytest.mark.parametrize("shape", [(3, 3), (4, 4)])
def test_a_checksum_sees_one_flipped_bit_and_counts_a_few_blocks(shape: tuple[int, int]) -> None:
    result = torch.rand(shape, dtype=torch.float16)
    sums = Checksums(result)
    for _ in range(EVERY + 1):
        sums.add(result)
    assert not sums.differ()
    assert len(sums._sums) == 3
    result.view(torch.int16)[1, 1] ^= 1
    for _ in range(EVERY):
        sums.add(result)
    assert sums.differ()


class Children:
    """Stands in for the probe's children: how each type ends on each device, and what was started."""

    def __init__(self, ends: Mapping[str, Mapping[str, str | int]], **models: str) -> None:
        self.ends, self.models = ends, models
        self.started: list[tuple[str, tuple[str, ...]]] = []

    def __call__(
        self, device: str, types: Sequence[str], variables: Mapping[str, str]
    ) -> tuple[int | None, list[dict[str, Any]]]:
        self.started.append((device, tuple(types)))
        lines: list[dict[str, Any]] = [{"model": self.models.get(device.replace(":", ""), "A100")}]
        for dtype in types:
            end = self.ends.get(device, {}).get(dtype, "works")
            if isinstance(end, int):  # the child dies here
                return end, lines
            lines.append({"dtype": dtype, "status": end})
        return 0, lines


def probed(
    monkeypatch: pytest.MonkeyPatch, children: Children, names: Sequence[str]
) -> dict[tuple[str, str], Unusable]:
    monkeypatch.setattr(_probe, "_run_child", children)
    items = [Item("gemm", {"dtype": each}) for each in ("fp64", "fp32", "fp16")]
    return probe_types(names, items)


def test_one_child_a_device_tries_all_types(monkeypatch: pytest.MonkeyPatch) -> None:
    children = Children({})
    assert probed(monkeypatch, children, ["cuda:0", "cuda:1"]) == {}
    every = ("fp16", "fp32", "fp64")
    assert sorted(children.started) == [("cuda:0", every), ("cuda:1", every)]


def test_a_child_that_dies_costs_one_type(monkeypatch: pytest.MonkeyPatch) -> None:
    children = Children({"cpu": {"fp32": -4}})
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")  # somebody has chosen: it is not tried again
    found = probed(monkeypatch, children, ["cpu"])
    assert found == {
        ("cpu", "fp32"): Unusable("a small fp32 product on cpu was killed by SIGILL", False)
    }
    assert children.started == [("cpu", ("fp16", "fp32", "fp64")), ("cpu", ("fp64",))]
    broken = Children({"cuda:0": {"fp32": -11}})
    found = probed(monkeypatch, broken, ["cuda:0"])
    assert found["cuda:0", "fp32"].is_broken
    assert "SIGSEGV" in found["cuda:0", "fp32"].reason


def test_a_card_that_cannot_be_opened_is_broken_and_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for end in (1, None):
        monkeypatch.setattr(_probe, "_run_child", lambda *_, end=end: (end, []))
        found = probe_types(["cuda:0"], [Item("gemm", {"dtype": each}) for each in KINDS])
        assert len(found) == 3
        assert all(each.is_broken for each in found.values())


def test_a_card_that_cannot_do_what_its_peers_do_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks = {"fp16": "unsupported"}
    one_of_two = Children({"cuda:1": lacks})
    found = probed(monkeypatch, one_of_two, ["cuda:0", "cuda:1"])
    assert found == {("cuda:1", "fp16"): Unusable(
        "fp16 is not supported on cuda:1, but works on cuda:0, of the same model", True)}  # fmt: skip
    other_model = Children({"cuda:1": lacks}, cuda1="T4")
    assert not probed(monkeypatch, other_model, ["cuda:0", "cuda:1"])["cuda:1", "fp16"].is_broken
    both = Children({"cuda:0": lacks, "cuda:1": lacks})
    assert not any(e.is_broken for e in probed(monkeypatch, both, ["cuda:0", "cuda:1"]).values())


def test_the_probe_leaves_out_only_what_a_processor_cannot_do() -> None:
    """With a real child, from a process whose torch is awake."""
    torch.ones(2) @ torch.ones(2)
    items = [Item("gemm", {"dtype": each}) for each in ("fp64", "fp32", "tf32")]
    found = probe_types(["cpu"], items)
    assert found == {("cpu", "tf32"): Unusable("tf32 is a mode of GPUs")}


@pytest.mark.parametrize(
    ("capability", "hip", "has"),
    [((7, 0), None, False), ((8, 0), None, True), ((9, 0), None, True), ((9, 4), "6.2", False)],
)
def test_only_cards_that_have_tf32_are_measured_in_it(
    capability: tuple[int, int], hip: str | None, has: bool
) -> None:
    """torch multiplies in fp32 on the others, and says nothing."""
    found = SimpleNamespace(
        version=SimpleNamespace(hip=hip),
        cuda=SimpleNamespace(get_device_capability=lambda device: capability),
    )
    assert _probe.has_tf32(found, "cuda:0") is has


def test_each_card_keeps_its_own_page_locked_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    memory_module.page_locked.cache_clear()
    first, second = memory_module.page_locked("cuda:0", 1), memory_module.page_locked("cuda:1", 1)
    assert memory_module.page_locked("cuda:0", 1) is first
    assert len({each.data_ptr() for each in (*first, *second)}) == 4
    memory_module.page_locked.cache_clear()


def test_a_card_is_not_kept_busy_for_minutes_in_fp64() -> None:
    assert [auto_size("cuda:0", dtype) for dtype in ("fp64", "fp32")] == [4096, 8192]
    assert auto_size("cpu", "fp64") == 512


def test_a_real_child_that_is_killed_leaves_what_it_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import os, signal, torch
true = torch.Tensor.to
def deadly(self, *given, **more):
    if torch.float32 in given:
        os.kill(os.getpid(), signal.SIGSEGV)
    return true(self, *given, **more)
torch.Tensor.to = deadly
"""
    (tmp_path / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = probe_types(["cpu"], [Item("gemm", {"dtype": each}) for each in ("fp32", "fp64")])
    assert list(found) == [("cpu", "fp32")]
    assert "SIGSEGV" in found["cpu", "fp32"].reason


def test_only_the_wanted_devices_are_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert torch_names([]) == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]
    assert torch_names(["cuda:3"]) == ["cuda:3"]
    assert torch_names(["n1/cuda:3", "n1/cpu:0"]) == ["cuda:3", "cpu"]
    assert torch_names(["gpu"]) == torch_names(["cuda"]) == torch_names([])
    assert torch_names(["numa"]) == ["cpu"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert torch_names([]) == torch_names(["cuda:3"]) == ["cpu"]


def test_cards_are_numbered_as_nvidia_smi_does() -> None:
    code = """
import os
from hakaru.measure import devices
devices.{}
print(os.environ["CUDA_DEVICE_ORDER"])
"""
    for call in ("torch_names([])", "find_devices([])"):
        command = [sys.executable, "-c", code.format(call)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.strip() == "PCI_BUS_ID"


def test_a_cards_own_socket_is_known_from_the_bus(tmp_path: Path) -> None:
    folder = tmp_path / "0000:07:00.0"
    folder.mkdir()
    (folder / "local_cpulist").write_text("0-1,4096\n")
    assert set(local_cores("0000:07:00.0", tmp_path)) <= {0, 1}
    assert local_cores("0000:07:00.0", tmp_path)
    assert local_cores(None, tmp_path) == ()


def caches(root: Path, *listed: tuple[int, int, str, str]) -> Path:
    """Files as the kernel has them: of a core, the level, size and sharers of each cache."""
    for core, level, size, shared in listed:
        folder = root / f"cpu{core}/cache/index{level}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in {"level": str(level), "size": size, "shared_cpu_list": shared}.items():
            (folder / name).write_text(f"{text}\n")
    return root


def test_the_last_level_caches_of_a_device_add_up(tmp_path: Path) -> None:
    sys_cpu = caches(
        tmp_path,
        (0, 2, "2048K", "0"), (0, 3, "32768K", "0-1"),
        (1, 2, "2048K", "1"), (1, 3, "32768K", "0-1"),
        (2, 2, "2048K", "2"), (2, 3, "32M", "2-3"),
    )  # fmt: skip
    assert last_level_cache_bytes((0,), sys_cpu) == 32 * 2**20
    assert last_level_cache_bytes((0, 1, 2), sys_cpu) == 64 * 2**20
    assert last_level_cache_bytes((7,), sys_cpu) is None


def test_arrays_exceed_the_cache_as_far_as_the_memory_allows() -> None:
    assert Room(260, 100_000).choose_mib() == 1040
    assert Room(8, 100_000).choose_mib() == 256
    assert Room(None, None).choose_mib() == 256
    assert Room(50, 40_000, _arrays.LEAST_ON_GPU).choose_mib() == 1024
    assert Room(512, 40_000, _arrays.LEAST_ON_GPU).choose_mib() == 2048
    small = Room(260, 800)
    assert small.choose_mib() == 100
    assert "cache_note" not in Room(260, 100_000).facts(1040)
    note = small.facts(100)["cache_note"]
    assert "100 MiB are less than 4 times the cache of 260 MiB" in note
    assert "unknown" in Room(None, None).facts(256)["cache_note"]


def test_this_machines_cache_is_exceeded_and_the_size_is_recorded() -> None:
    benchmark = load_all().get("memory")
    assert benchmark.grid(quick=True) == [{"operation": "triad", "mib": "auto"}]
    core = devices.cores()[0]
    room = _arrays.room_of(core)
    assert room.choose_mib() >= min(4 * (room.cache_mib or 0), (room.free_mib or 1e9) // 8)
    case = benchmark.prepare(Context(core, Alone()), operation="triad", mib=2)
    case.step()
    case.check()
    assert case.read()["array_mib"] == 2
    assert case.values(1.0)["bandwidth"] == pytest.approx(3 * 2 * 2**20 / 1e9)


def test_a_gpus_arrays_exceed_its_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(
        get_device_properties=lambda name: SimpleNamespace(L2_cache_size=50 * 2**20),
        mem_get_info=lambda name: (70 * 2**30, 80 * 2**30),
    )
    monkeypatch.setattr(_arrays, "torch", lambda: SimpleNamespace(cuda=cuda))
    room = _arrays.room_of(Device("cuda:0", "H100"))
    assert (room.cache_mib, room.choose_mib()) == (50.0, 1024)


@pytest.mark.parametrize("operation", ["copy", "triad"])
def test_memory_that_corrupts_what_is_read_is_found(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result matches its input, so that only the known numbers can tell."""
    monkeypatch.setattr(memory_module, "CHUNK", 2**16)
    case = load_all().get("memory").prepare(CORE, operation=operation, mib=1)
    case.step()
    case.check()
    (arrays,) = _shared.IN_USE.values()
    arrays.a[100_000] += 1
    case.step()
    with pytest.raises(WrongResult, match="1 of 131,072 elements"):
        case.check()


@pytest.mark.parametrize(
    ("name", "parameters", "written_by"),
    [
        ("memory", {"operation": "copy", "mib": 1}, (torch.Tensor, "copy_")),
        ("host-copy", {"direction": "to-device", "mib": 1}, (torch.Tensor, "copy_")),
        ("gemm", {"dtype": "fp32", "size": 64}, (torch, "mm")),
    ],
)
def test_cores_of_a_numa_node_share_their_data_and_are_checked_alone(
    name: str, parameters: dict[str, Any], written_by: tuple[Any, str]
) -> None:
    benchmark = load_all().get(name)
    one, other = (benchmark.prepare(CORE, **parameters) for _ in range(2))
    assert len(_shared.IN_USE) == 1
    one.step()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*written_by, lambda *_, **__: None)  # this core writes nothing
        with pytest.raises(WrongResult):
            other.check()
    one.check()
    del one, other
    assert not _shared.IN_USE  # freed before the next item


def test_products_take_turns_in_several_places_and_each_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    true = torch.mm

    def noted(a: Any, b: Any, *, out: Any = None) -> Any:
        seen.append(a.data_ptr())
        return true(a, b, out=out)

    monkeypatch.setattr(torch, "mm", noted)
    benchmark = load_all().get("gemm")
    cases = [benchmark.prepare(CORE, dtype="fp64", size=64) for _ in range(2)]
    seen.clear()
    for _ in range(2 * MOST_PLACES):
        for case in cases:
            case.step()
            case.sync()
    assert len(set(seen)) == MOST_PLACES
    assert seen[::2] == seen[1::2]  # both cores meet the same places in the same order
    (matrices,) = _shared.IN_USE.values()
    matrices.places[5][0][0, 0] += 1
    for _ in range(EVERY * MOST_PLACES):
        cases[0].step()
        cases[0].sync()
    with pytest.raises(WrongResult, match="two results"):
        cases[0].check()


@pytest.mark.parametrize(("size", "num"), [(64, 7), (1024, 3), (2048, 1)])
def test_matrices_take_little_memory_in_all_places(size: int, num: int) -> None:
    matrices = Matrices(reference("fp64", size), "cpu")
    assert len(matrices.places) == num


def test_a_core_knows_its_numa_node(tmp_path: Path) -> None:
    (tmp_path / "cpu5/node1").mkdir(parents=True)
    assert _shared.numa_node(Device("cpu:5", "core", (5,)), tmp_path) == "node1"
    assert _shared.numa_node(Device("cpu:6", "core", (6,)), tmp_path) == ""
    assert _shared.numa_node(Device("cuda:0", "A100", (5,)), tmp_path) == ""


def test_a_last_chunk_may_be_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "CHUNK", 4096)
    pattern = torch.arange(1024, dtype=torch.float64)
    assert num_wrong(pattern.repeat(5), pattern) == 0
    assert num_wrong(pattern.repeat(5).flip(0), pattern) == 5 * 1024


def test_a_link_is_read_once_the_card_has_raised_it(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {"width": 16, "max_width": 16, "generation": 4, "max_generation": 4}
    seen = [whole | {"generation": 1}, whole | {"generation": 1}, whole]
    monkeypatch.setattr(memory_module.gpu, "declared_link", lambda bus: seen.pop(0))
    assert settled_link("0000:07:00.0", 60.0) == whole
    stuck = whole | {"generation": 1}
    monkeypatch.setattr(memory_module.gpu, "declared_link", lambda bus: stuck)
    assert settled_link("0000:07:00.0", 0.01) == stuck
