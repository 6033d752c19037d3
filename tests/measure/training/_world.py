"""Real ranks: processes that meet over gloo, train case after case together, and write what came of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parents[3]
PATIENCE_S = 240
STEPS = 5
SEED = 3


@dataclass(frozen=True)
class Case:
    """A network under a strategy on some ranks of the world; all ranks where none are named."""

    network: str
    strategy: str
    sizes: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    ranks: Sequence[int] = ()
    parts: int = 1  # in which a single process takes the same batch
    broken: str = ""  # what raises on rank 1, and how: "to RuntimeError"
    steady: bool = False  # without dropout

    @property
    def name(self) -> str:
        """For people, and unlike that of any other case."""
        sizes = ",".join(f"{name}={value}" for name, value in (self.sizes | self.options).items())
        where = ",".join(map(str, self.ranks))
        network = self.network.rpartition(":")[2]
        steady = "steady" if self.steady else ""
        return "-".join(filter(None, [network, self.strategy, sizes, where, self.broken, steady]))


def train(cases: Sequence[Case], num_ranks: int, folder: Path) -> dict[str, dict[str, Any]]:
    """What each case gave, by its name."""
    (folder / "cases.json").write_text(json.dumps([asdict(each) for each in cases]))
    started = []
    for rank in range(num_ranks):
        with (folder / f"rank-{rank}.txt").open("w") as said:
            command = [sys.executable, "-m", __name__, str(folder), str(rank), str(num_ranks)]
            started.append(subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said))
    try:
        for each in started:
            each.wait(PATIENCE_S)
    finally:
        for each in started:
            each.kill()
    if any(each.returncode for each in started):
        raise RuntimeError(
            "\n".join(each.read_text()[-3000:] for each in folder.glob("rank-*.txt"))
        )
    found: dict[str, dict[str, Any]] = json.loads((folder / "found.json").read_text())
    return found


def main(folder: Path, rank: int, size: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "meeting"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    found: dict[str, Any] = {}
    singles: dict[str, Any] = {}
    for held in json.loads((folder / "cases.json").read_text()):
        case = Case(**held)
        every: list[Any] = [None] * size
        dist.all_gather_object(every, _train(case, rank, size))
        found[case.name] = {"ranks": every}
        if any("problem" in each for each in every):
            continue
        alone = replace(
            case, strategy="single", options={"accumulate": case.parts}, ranks=(0,), parts=1
        )
        if alone.name not in singles:
            singles[alone.name] = _train(alone, rank, size)["losses"]
        found[case.name]["single"] = singles[alone.name]
    if rank == 0:
        (folder / "found.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def _train(case: Case, rank: int, size: int) -> dict[str, Any]:
    """What this rank sees: losses and the times of the last step, or why it cannot be trained."""
    from hakaru.errors import HakaruError
    from hakaru.measure._base import NotApplicable
    from hakaru.measure.networks import load, without_dropout
    from hakaru.measure.training._strategy import Strategy
    from hakaru.measure.training._trainer import build

    work = load(case.network, **case.sizes)
    strategy = Strategy.parse(case.strategy)
    if case.steady:
        work = without_dropout(work)
    began = time.monotonic()
    try:
        with _broken(case.broken if rank == 1 else "", work) as work:
            trainer = build(
                work, strategy, case.ranks or range(size), rank, "cpu",
                batch=work.batch, seed=SEED, **case.options,
            )  # fmt: skip
    except (HakaruError, NotApplicable) as error:
        seconds = time.monotonic() - began
        return {"kind": type(error).__name__, "problem": str(error), "seconds": seconds}
    losses = _losses(trainer)
    times = trainer.times()
    trainer.reset()
    again = _losses(trainer)
    trainer.close()
    return {
        "losses": losses,
        "again": again,
        "times": [asdict(each) for each in times],
        "facts": trainer.facts,
    }


@contextmanager
def _broken(what: str, work: Any) -> Iterator[Any]:
    """The workload; until then moving it to the device, or making it, raises."""
    import torch

    from hakaru.measure._base import NotApplicable

    where, _, kind = what.partition(" ")
    kinds: dict[str, type[Exception]] = {
        "RuntimeError": RuntimeError,
        "OutOfMemoryError": torch.OutOfMemoryError,
        "NotApplicable": NotApplicable,
    }

    def fail(*_: Any, **__: Any) -> Any:
        raise kinds[kind]("no room on this rank")

    if where == "to":
        with patch.object(torch.nn.Module, "to", fail):
            yield work
    else:
        yield replace(work, make=fail) if where == "make" else work


def _losses(trainer: Any) -> list[float]:
    found = []
    for _ in range(STEPS):
        trainer.step()
        found.append(trainer.loss())
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
