"""A real DataLoader over small data sets: every sample once and whole, from each layout."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from hakaru.errors import HakaruError
from hakaru.measure.datasets import Reader, Sample, layout_names
from hakaru.measure.datasets.synthetic import ensure
from hakaru.measure.storage._loader import Loader, Plan
from hakaru.measure.storage._memory import MIB, files_room
from hakaru.measure.storage._order import Share
from hakaru.measure.storage._samples import Null, raw_pixels
from hakaru.measure.truth import Unavailable, is_running
from hakaru.measure.truth.throttle import Throttle

pytest.importorskip("torch")
TOTAL = 2 * MIB


def plan(layout: str = "packed", workers: int = 1, **others: object) -> Plan:
    return Plan(layout, image=8, batch=4, workers=workers, **others)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return ensure(tmp_path_factory.mktemp("data") / "packed", "packed", 0, TOTAL)


@pytest.mark.parametrize("layout", layout_names())
def test_every_layout_gives_every_sample_with_its_pixels(tmp_path: Path, layout: str) -> None:
    reader = ensure(tmp_path / layout, layout, 0, TOTAL)
    with Loader(reader, plan(layout)) as loader:
        found = list(loader.epoch(0))
    assert sorted(i for batch in found for i in batch.indices) == list(range(len(reader)))
    assert sum(batch.num_bytes for batch in found) == TOTAL
    batch = found[0]
    sample = reader.read(batch.indices[1])
    assert int(batch.target[1]) == sample.label
    pixels = batch.inputs[1].numpy()
    again = raw_pixels(sample, 8).astype(np.float64)
    assert np.corrcoef(pixels[0].ravel(), again[0].ravel())[0, 1] > 0.999


@pytest.mark.parametrize("workers", [0, 2])
def test_epochs_follow_one_another_in_other_orders(packed: Reader, workers: int) -> None:
    with Loader(packed, plan(workers=workers)) as loader:
        orders = [[i for batch in loader.epoch(n) for i in batch.indices] for n in (0, 1, 0)]
        workers_then = loader.pids
        assert len(workers_then) == max(1, workers)
        assert (os.getpid() in workers_then) == (workers == 0)
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    if workers:
        assert not any(is_running(pid) for pid in workers_then)


def test_an_epoch_may_be_left_early(packed: Reader) -> None:
    with Loader(packed, plan(workers=2)) as loader:
        next(iter(loader.epoch(0)))
        assert sum(batch.num_bytes for batch in loader.epoch(1)) == TOTAL


def test_ranks_share_an_epoch(packed: Reader) -> None:
    seen: list[int] = []
    for rank in range(2):
        with Loader(packed, plan(share=Share(rank, 2))) as loader:
            seen += [i for batch in loader.epoch(3) for i in batch.indices]
    assert sorted(seen) == list(range(len(packed)))


def test_workers_come_from_their_own_processes_and_clock() -> None:
    with Loader(Null(40, 1000), plan("null", workers=2)) as loader:
        found = list(loader.epoch(0))
        assert {batch.pid for batch in found} == set(loader.pids)
    assert all(batch.begin <= batch.end for batch in found)


def test_a_damaged_data_set_ends_with_its_own_words() -> None:
    class Damaged(Null):
        def read(self, index: int) -> Sample:
            raise HakaruError("data.packed: the file is missing")

    with (
        Loader(Damaged(4), plan("null")) as loader,
        pytest.raises(HakaruError, match=r"^data.packed: the file is missing$"),
    ):
        list(loader.epoch(0))


@pytest.mark.parametrize("field", ["image", "batch", "prefetch"])
def test_plans_without_sense_are_refused(field: str) -> None:
    values = {"layout": "packed", "image": 8, "batch": 4, "workers": 1} | {field: 0}
    with pytest.raises(HakaruError, match=f"{field}=0"):
        Plan(**values)  # type: ignore[arg-type]


def test_a_memory_limit_needs_workers(tmp_path: Path) -> None:
    with pytest.raises(HakaruError, match="workers=1 or more"):
        Loader(Null(4), plan(workers=0), Throttle(tmp_path, tmp_path / "limit"))


def test_only_the_workers_join_the_group_and_it_goes_at_the_end() -> None:
    try:
        with (
            files_room(8) as room,
            Loader(Null(40, 1000), plan("null", workers=2), room.group) as loader,
        ):
            inside = (room.group.folder / "cgroup.procs").read_text().split()
            assert sorted(map(int, inside)) == sorted(loader.pids)
            own = room.own_bytes()
            limit = room.settle(2)
            assert own > 0
            assert limit >= 8 * MIB + own // 2
            assert abs(int(room.group.file.read_text()) - limit) < 8192
            assert sum(batch.num_bytes for batch in loader.epoch(0)) == 40_000
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert not room.group.folder.exists()
