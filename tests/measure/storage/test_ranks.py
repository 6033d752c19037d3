"""Two ranks of one host: they share the data, agree on what to do, and give one answer."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from hakaru.measure.context import Context
from hakaru.measure.storage import _layouts
from hakaru.measure.storage._outcome import Settings
from hakaru.measure.storage._sweep import Sweep
from hakaru.measure.task import Place

pytest.importorskip("torch")
SIZE = 2


def test_ranks_share_one_data_set_and_agree(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    processes = [
        context.Process(target=_rank, args=(tmp_path, rank, answers)) for rank in range(SIZE)
    ]
    for process in processes:
        process.start()
    found = dict(answers.get(timeout=120) for _ in processes)
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == 0
    assert found[0] == found[1]
    sizes, states, problem = found[0]
    assert sizes == [(1, 1 << 20), (2, 2 << 20)]
    assert states == [("cold", 1 << 20), ("warm", 1 << 20)]
    assert "expected" in problem  # what one rank cannot do, none does
    assert sorted(path.name for path in tmp_path.glob("hakaru-*")) == [
        "hakaru-packed-1MiB-seed0", "hakaru-packed-2MiB-seed0"
    ]  # fmt: skip


def _rank(folder: Path, rank: int, answers: Any) -> None:
    import torch

    from hakaru.errors import HakaruError
    from hakaru.measure.collective._ranks import TorchRanks
    from hakaru.measure.storage._group import Group

    torch.set_num_threads(1)
    ranks = TorchRanks.connect(folder, Place(rank, SIZE, rank, SIZE))
    context = Context(ranks.device, ranks)
    given: dict[str, Any] = {"workers": 1, "batch": 4, "path": str(folder)}
    parts = Sweep(context, Settings(model="none", sizes="1MiB+2MiB", memory=4, **given)).run(60.0)
    sizes = [(part.parameters["mib"], part.facts["epochs"][0]["delivered_bytes"]) for part in parts]
    settings = _layouts.Settings(layouts=("packed",), mib=1, **given)
    listed = _layouts.Comparison(context, settings).run(2.0)
    states = [(part.parameters["state"], part.facts["delivered_bytes"]) for part in listed]
    problem = ""
    try:
        Group.of(ranks).agree("found this, expected that" if rank == 1 else None)
    except HakaruError as error:
        problem = str(error)
    answers.put((rank, (sizes, states, problem)))
    ranks.close()
