"""Small sweeps and comparisons for real: what their parts hold, and that nothing stays behind."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.measure._base import BENCHMARKS, Part, WrongResult, load_all
from hakaru.measure.datasets import Sample, synthetic
from hakaru.measure.datasets.synthetic import ensure
from hakaru.measure.place import host_name
from hakaru.measure.storage import _layouts, _limits
from hakaru.measure.storage._consumer import Nothing
from hakaru.measure.storage._epoch import run_epoch
from hakaru.measure.storage._loader import Loader, Plan
from hakaru.measure.storage._memory import Room
from hakaru.measure.storage._outcome import Memory, Settings
from hakaru.measure.storage._samples import Batch, Null
from hakaru.measure.storage._sizes import Speed
from hakaru.measure.storage._store import Store, null_store
from hakaru.measure.storage._sweep import Sweep
from hakaru.measure.truth import Unavailable
from hakaru.measure.verdict import Verdict
from tests.measure.storage._ranks import alone, group

torch = pytest.importorskip("torch")
SMALL = {"image": 64, "batch": 8, "workers": 1}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As in a rank."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary data sets go in these tests."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("hakaru.measure.storage._folder._on_a_disk", lambda: folder)
    return folder


def sweep(**given: object) -> list[Part]:
    parts = Sweep(alone(), Settings(**(SMALL | given))).run(120.0)  # type: ignore[arg-type]
    json.dumps([part.facts for part in parts])
    return parts


def test_a_sweep_of_training_has_all_parts_of_the_contract(temporary: Path) -> None:
    parts = sweep(model="alexnet", sizes="1MiB+2MiB+3MiB", batch=2)
    assert [part.parameters["mib"] for part in parts] == [1, 2, 3]
    assert {part.parameters["memory"] for part in parts} == {0}
    for part in parts:
        assert set(part.samples) == {"epoch", "stall", "au"}
        assert len(part.samples["epoch"]) >= 2
        epochs = part.facts["epochs"]
        assert [each["state"] for each in epochs][:2] == ["cold", "steady"]
        assert all(each["delivered_bytes"] == part.parameters["mib"] << 20 for each in epochs)
    assert "fit" not in parts[0].facts
    last = parts[-1].facts
    assert last["fit"]["state"] == "below"
    assert last["needed"]["mb_per_s_now"] > 0
    assert last["timeline"]["lanes"] == ["loading", "copy", "compute", "waiting"]
    assert {lane for lane, _, _ in last["timeline"]["events"]} >= {0, 2, 3}
    assert last["timeline"]["hidden"]["copy"] is None
    assert last["verdict"].startswith(last["fit"]["sentence"])
    assert list(temporary.iterdir()) == []


def test_a_loader_alone_has_no_utilisation(temporary: Path) -> None:
    parts = sweep(model="none", sizes="1MiB+2MiB", layout="files")
    assert set(parts[-1].samples) == {"epoch"}
    assert parts[-1].facts["needed"] is None
    assert parts[-1].facts["timeline"] is None


def test_without_a_limit_sizes_stay_below_memory_and_the_answer_says_so(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(mib: int) -> object:
        raise Unavailable("no cgroup controller 'memory' is mounted.")

    monkeypatch.setattr(_limits, "files_room", refuse)
    parts = sweep(model="none", sizes="1/4+1/2", memory=4)
    assert [part.parameters["mib"] for part in parts] == [1, 2]
    assert parts[-1].parameters["memory"] == 0
    assert parts[-1].facts["is_limited"] is False
    assert "no cgroup controller 'memory' is mounted)" in parts[-1].facts["verdict"]
    assert "run this as root" in parts[-1].facts["verdict"]


def test_the_machine_s_memory_is_what_sizes_are_shares_of(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_limits, "available_bytes", lambda: 8 << 20)
    parts = sweep(model="none", sizes="1/4+1/2", memory="machine")
    assert [part.parameters["mib"] for part in parts] == [2, 4]
    assert {part.parameters["memory"] for part in parts} == {0}
    assert {part.facts["memory_mib"] for part in parts} == {8}
    with pytest.raises(HakaruError, match="expected MiB, auto or machine"):
        sweep(model="none", sizes="1", memory="much")


def test_a_store_that_reads_nothing_is_told_as_such() -> None:
    last = sweep(model="alexnet", layout="null", sizes="2MiB")[-1].facts
    assert last["fit"]["sentence"].startswith("The null layout reads nothing")
    assert "keeps up" not in last["verdict"]
    assert "fit into memory" not in last["verdict"]


def test_the_memory_limit_is_that_of_the_files(temporary: Path) -> None:
    parts = sweep(model="none", sizes="1/2+8", memory=4)
    if not parts[0].facts["is_limited"]:
        pytest.skip(parts[-1].facts["verdict"])
    small, large = (part.facts["epochs"][-1]["label"] for part in parts)
    assert parts[0].parameters["memory"] == 4
    assert small == "cached"
    assert large == "from the device"


def test_a_memory_that_nobody_named_is_halved_rather_than_the_largest_size_left_out(
    tmp_path: Path,
) -> None:
    sweep = Sweep(alone(), Settings(model="none"))
    room: Any = object()
    memory = Memory(32, 32, Room(room, 32 << 20))
    speed = Speed(compute_s_per_mib=0.1, cold_s_per_mib=0.01, memory_mib=32)
    large, plan = sweep._fitting(memory, speed, 60.0, tmp_path)
    assert (large.mib, plan.sizes[-1]) == (32, 64)
    small, plan = sweep._fitting(memory, speed, 20.0, tmp_path)
    assert (small.mib, small.room, plan.sizes[-1]) == (16, Room(room, 16 << 20), 32)
    none, plan = sweep._fitting(memory, speed, 1.0, tmp_path)
    assert (none.mib, plan.left_out[-1]) == (32, 64)
    named = Sweep(alone(), Settings(model="none", memory=32))
    assert named._fitting(memory, speed, 20.0, tmp_path)[0].mib == 32


def test_what_a_killed_process_left_is_removed_and_nothing_else(temporary: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = temporary / f"hakaru-data-{host_name()}-{dead.pid}-abc"
    kept = [
        temporary / f"hakaru-data-{host_name()}-{os.getpid()}-abc",
        temporary / f"hakaru-data-other.host-{dead.pid}-abc",
        temporary / "hakaru-data-mine",
    ]
    for folder in (left, *kept):
        folder.mkdir()
    sweep(model="none", sizes="1MiB")
    assert sorted(temporary.iterdir()) == sorted(kept)


def test_data_sets_on_a_path_stay_and_are_used_again(tmp_path: Path) -> None:
    sweep(model="none", sizes="1MiB", path=str(tmp_path))
    (folder,) = tmp_path.iterdir()
    made = (folder / "manifest.json").stat().st_mtime_ns
    sweep(model="none", sizes="1MiB", path=str(tmp_path))
    assert (folder / "manifest.json").stat().st_mtime_ns == made


def test_no_trial_removes_a_data_set_of_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hakaru.measure.storage._sweep.MOST_TRIAL_MIB", 1)
    sweep(model="none", sizes="1MiB", path=str(tmp_path))
    sweep(model="none", sizes="2MiB", path=str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "hakaru-packed-1MiB-seed0", "hakaru-packed-2MiB-seed0"
    ]  # fmt: skip


def test_the_budget_leaves_sizes_out_and_says_so(temporary: Path) -> None:
    settings = Settings(model="none", sizes="1MiB+2MiB+64MiB", most_bytes_s=4e6, **SMALL)  # type: ignore[arg-type]
    parts = Sweep(alone(), settings).run(5.0)
    assert 64 not in [part.parameters["mib"] for part in parts]
    assert "64 MiB did not fit the time" in parts[-1].facts["verdict"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"layout": "tarr"}, "tar"),
        ({"model": "alexnett"}, "alexnet"),
        ({"sizes": "64MB"}, "is no size"),
        ({"path": "/no/such/folder"}, "mkdir -p"),
    ],
)
def test_wrong_settings_are_refused(temporary: Path, given: dict[str, str], words: str) -> None:
    with pytest.raises(HakaruError, match=words):
        sweep(**({"sizes": "1MiB", "workers": 1} | given))
    assert list(temporary.iterdir()) == []


class Faulty(Loader):
    """Delivers other batches than those of the order."""

    def __init__(self, store: Store, fault: Callable[[list[Batch]], list[Batch]]) -> None:
        super().__init__(store.source, Plan("null", 8, 2, 0))
        self.fault = fault

    def epoch(self, number: int) -> Iterator[Batch]:
        return iter(self.fault(list(super().epoch(number))))


@pytest.mark.parametrize("layout", ["packed", "files"])
def test_nothing_is_made_twice(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """The smallest is there from the trial on, and each size goes when it was measured."""
    made: list[int] = []
    there: list[set[str]] = []
    write = synthetic.samples

    def counted(seed: int, total_bytes: int) -> Iterator[Sample]:
        made.append(total_bytes >> 20)
        there.append({path.name for path in temporary.glob("*/hakaru-*")})
        return write(seed, total_bytes)

    monkeypatch.setattr(synthetic, "samples", counted)
    sweep(model="none", sizes="1MiB+2MiB+3MiB", layout=layout)
    assert made == [1, 2, 3]
    assert there[2] == {f"hakaru-{layout}-1MiB-seed0"}


def test_a_trial_is_no_larger_than_it_needs(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hakaru.measure.storage._sweep.MOST_TRIAL_MIB", 1)
    seen: list[float] = []
    fitting = Sweep._fitting

    def noted(self: Sweep, memory: Memory, speed: Speed, *others: Any) -> Any:
        seen.append(speed.write_s_per_mib)
        assert [path.name for path in temporary.glob("*/hakaru-*")] == []
        return fitting(self, memory, speed, *others)

    monkeypatch.setattr(Sweep, "_fitting", noted)
    assert [part.parameters["mib"] for part in sweep(model="none", sizes="3MiB")] == [3]
    assert seen[0] > 0


def test_missing_samples_are_a_wrong_result() -> None:
    store = null_store(1 << 20)
    with pytest.raises(WrongResult, match="8 samples that are not the 9 asked for"):
        run_epoch(group(), Faulty(store, lambda batches: batches[:-1]), store, Nothing(), 0)


def test_doubled_samples_are_a_wrong_result() -> None:
    store = null_store(1 << 20)
    with pytest.raises(WrongResult, match="11 samples that are not the 9 asked for"):
        run_epoch(
            group(), Faulty(store, lambda batches: [*batches, batches[0]]), store, Nothing(), 0
        )


def test_short_samples_are_a_wrong_result() -> None:
    full, short = Null(6, 1000), Null(6, 999)
    store = Store("null", short, full.lengths)
    with pytest.raises(WrongResult, match="5,994 bytes, and its samples have 6,000"):
        run_epoch(group(), Loader(short, Plan("null", 8, 2, 0)), store, Nothing(), 0)


def loading(**given: object) -> list[Part]:
    settings = _layouts.Settings(**({"mib": 1, "workers": 1, "batch": 4} | given))  # type: ignore[arg-type]
    parts = _layouts.Comparison(alone(), settings).run(2.0)
    json.dumps([part.facts for part in parts])
    return parts


def test_layouts_are_measured_cold_and_warm(temporary: Path) -> None:
    parts = loading(layouts=("packed", "files"))
    assert [(p.parameters["layout"], p.parameters["state"]) for p in parts] == [
        ("packed", "cold"), ("files", "cold"), ("packed", "warm"), ("files", "warm"),
    ]  # fmt: skip
    for part in parts:
        assert part.facts["delivered_bytes"] == 1 << 20
        assert len(part.samples["rate"]) == len(part.samples["bandwidth"]) >= 2
    assert parts[1].facts["num_files"] > 1
    assert list(temporary.iterdir()) == []


def test_cold_comes_from_the_device_and_warm_does_not(temporary: Path) -> None:
    cold, warm = loading(layouts=("packed",), mib=4)
    if cold.facts["unknown"]:
        pytest.skip(cold.facts["unknown"])
    assert cold.facts["label"] == "from the device"
    assert warm.facts["label"] == "cached"
    assert min(cold.samples["from_device"]) >= 0.95
    assert max(warm.samples["from_device"]) <= 0.05


def test_files_in_memory_are_never_sold_as_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("/dev/shm")
    if not folder.is_dir():
        pytest.skip("no file system in memory here")
    with tempfile.TemporaryDirectory(dir=folder) as path:
        cold, _ = loading(layouts=("packed",), path=path)
    assert cold.facts["label"] == "unknown"
    assert "tmpfs is memory" in cold.facts["unknown"]
    assert "from_device" not in cold.samples
    assert cold.verdict is Verdict.NOT_MEASURED


def test_a_cold_epoch_that_was_cached_is_not_measured(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "evict", lambda store, group: None)
    cold, warm = loading(layouts=("packed",))
    if cold.facts["unknown"]:
        pytest.skip(cold.facts["unknown"])
    assert cold.facts["label"] == "cached"
    assert cold.verdict is Verdict.NOT_MEASURED
    assert "not the speed of storage" in cold.reason
    assert warm.verdict is None


@pytest.mark.parametrize(
    ("read", "label"), [(0.5, "partly cached"), (None, "unknown"), (1.0, "from the device")]
)
def test_only_what_came_from_storage_is_a_cold_rate_and_is_compared(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, read: float | None, label: str
) -> None:
    def counted(store: Store, found: int | None, delivered: int) -> int | None:
        of_files = store.layout == "files"
        return delivered if of_files else None if read is None else round(read * delivered)

    monkeypatch.setattr(Store, "counted", counted)
    cold, files, *_ = loading(layouts=("packed", "files"))
    assert (cold.facts["label"], files.facts["label"]) == (label, "from the device")
    counts = label == "from the device"
    assert (cold.verdict is None) == counts
    assert ("not the speed of storage" in cold.reason) != counts
    assert files.verdict is None
    assert ("Cold: " in files.facts["verdict"]) == counts


def test_null_is_no_layout_to_compare(temporary: Path) -> None:
    with pytest.raises(HakaruError, match="data-size --param layout=null"):
        loading(layouts=("packed", "null"))
    assert list(temporary.iterdir()) == []


def test_a_packed_data_set_of_the_user_is_measured_as_it_is(tmp_path: Path) -> None:
    ensure(tmp_path / "mine", "zip", 1, 1 << 20).close()
    parts = loading(layouts=("packed", "files"), path=str(tmp_path / "mine"))
    assert {part.parameters["layout"] for part in parts} == {"zip"}
    assert (tmp_path / "mine/manifest.json").exists()


@pytest.mark.parametrize("name", ["loading", "data-size"])
def test_the_registry_prepares_them_with_their_defaults(name: str) -> None:
    load_all()
    benchmark = BENCHMARKS.get(name)
    for quick in (True, False):
        for point in benchmark.grid(quick):
            benchmark.prepare(alone(), **point)
