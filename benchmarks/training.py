"""What the harness costs a training step and a loader, each against a bare script in the same process.

    python -m benchmarks.training [--rounds 60]

**Step**: two ranks of RaNNC's network under DDP: `Trainer.step`, which notes the phases, when each bucket is
ready and when its all-reduce is done, against a bare loop of forward, backward and optimiser. **Loader**: the
loader of the storage benchmarks against a bare DataLoader over the same reader. Both sides take turns, each
first in every second round; the median over the rounds counts, with its 95 % interval. Each must reach 97 %
of the bare rate.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import interleaved
from hakaru.measure.statistics import Interval, median_interval

LIMIT = 0.97
STEPS = 20
WORKLOAD = {"hidden": 512, "layers": 10}


def main() -> int:
    parser = argparse.ArgumentParser(description="The harness against bare scripts.")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        _step(options.rank, options.store, options.rounds)
        return 0
    reached = {"training step": _ranks(options.rounds), "loader": _loader(options.rounds)}
    for name, share in reached.items():
        print(
            f"{name}: {share.median:.1%} of the bare script ({share.low:.1%} to {share.high:.1%},"
            f" limit {LIMIT:.0%})"
        )
    return 1 if any(each.median < LIMIT for each in reached.values()) else 0


def _ranks(rounds: int) -> Interval:
    """Two ranks of this program; rank 0 prints the ratio of each round."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "benchmarks.training", "--rounds", str(rounds)]
        words += ["--store", str(Path(folder) / "store")]
        environ = os.environ | {"OMP_NUM_THREADS": "1"}
        ranks = [
            subprocess.Popen([*words, "--rank", str(rank)], env=environ, stdout=-1, text=True)
            for rank in range(2)
        ]
        outputs = [each.communicate(timeout=600)[0] for each in ranks]
    return median_interval([float(word) for word in outputs[0].split()])


def _step(rank: int, store: Path, rounds: int) -> None:
    import torch
    import torch.distributed as dist

    from hakaru.measure.networks import load
    from hakaru.measure.training._strategy import Strategy
    from hakaru.measure.training._trainer import build

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    workload = load("mlp", **WORKLOAD)
    batch = 2 * workload.batch
    trainer = build(workload, Strategy.parse("ddp"), [0, 1], rank, "cpu", batch=batch, seed=1)
    bare_step = _bare(workload, rank)

    def timed(step: Any) -> float:
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(STEPS):
            step()
        dist.barrier()
        return time.perf_counter() - begin

    timed(bare_step), timed(trainer.step)
    ratios = interleaved(rounds, lambda: timed(bare_step), lambda: timed(trainer.step))
    if rank == 0:
        print(*ratios, flush=True)
    trainer.close()
    dist.destroy_process_group()


def _bare(workload: Any, rank: int) -> Any:
    """A step as a person writes it: the batch is there, DDP does the rest."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(1)
    model = DistributedDataParallel(workload.make())
    optimiser = torch.optim.SGD(model.parameters(), lr=workload.learning_rate)
    inputs, target = workload.batch_of(workload.batch, rank * workload.batch)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        workload.loss(model(inputs), target).backward()
        optimiser.step()

    return step


def _loader(rounds: int) -> Interval:
    from benchmarks.loader import ratios

    return median_interval(ratios(rounds))


if __name__ == "__main__":
    sys.exit(main())
