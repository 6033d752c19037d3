"""What the harness itself costs, how long a run takes, and how fast a page of a thousand cards is.

    python -m benchmarks.measure [--rounds 400] [--cards 1024] [--runs]

**GEMM**: a repetition by the wall clock, with the readings of the machine around it, against a bare loop over
the same product. **All-reduce**: a repetition with its barrier, the maximum over ranks and the decision
whether to go on, against a bare loop of torch.distributed. Both sides take turns, each first in every second
round, so that drift and order meet both alike; the median over the rounds counts, with its 95 % interval.
The harness must reach 97 % and 95 % of the bare rate. **Page**: a synthetic set of 1,024 cards
is served, and Chromium opens /measure. From the request to the drawn fleet it may take 2 s, also when the
browser has none of the scripts yet, and as the first page of a server that has just been started.
**Runs** (`--runs`): `hakaru bench run --quick` may take two minutes, and `hakaru bench run` ten.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from hakaru.measure.statistics import Interval, median_interval
from hakaru.measure.verdict import EXIT_CODES, Verdict

LIMITS = {"gemm": 0.97, "all-reduce": 0.95}
PAGE_S = 2.0
SIZE = 1024
BYTES = 4 << 20
BLOCK_S = 0.05
# a run on a noisy machine has measured too
MEASURED = [EXIT_CODES[each] for each in Verdict if each is not Verdict.FAILED]


def main() -> int:
    parser = argparse.ArgumentParser(description="The harness against bare loops.")
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--cards", type=int, default=1024)
    parser.add_argument("--runs", action="store_true", help="time whole runs too")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        _all_reduce(options.rank, options.port, options.rounds)
        return 0
    reached = {"gemm": _gemm(options.rounds), "all-reduce": _ranks(options.rounds)}
    for name, share in reached.items():
        print(
            f"{name}: {share.median:.1%} of the bare loop ({share.low:.1%} to {share.high:.1%},"
            f" limit {LIMITS[name]:.0%})",
            flush=True,
        )
    first_s, seconds = _page(options.cards)
    print(
        f"page of {options.cards:,} cards: {seconds:.2f} s to the drawn fleet (limit {PAGE_S:g} s);"
        f" {first_s:.2f} s as the first page of a server"
    )
    bad = _whole_runs() if options.runs else False
    slow = any(reached[name].median < LIMITS[name] for name in LIMITS)
    return 1 if slow or max(first_s, seconds) > PAGE_S or bad else 0


def interleaved(rounds: int, bare: Callable[[], float], ours: Callable[[], float]) -> list[float]:
    """Our rate over the bare one in each round, from the seconds of both."""
    ratios = []
    for number in range(rounds):
        first, second = (bare, ours) if number % 2 == 0 else (ours, bare)
        seconds = {first: first()}
        seconds[second] = second()
        ratios.append(seconds[bare] / seconds[ours])
    return ratios


def _gemm(rounds: int) -> Interval:
    """The protocol's rate over the bare rate."""
    import torch

    from hakaru.measure import validity
    from hakaru.measure._base import load_all
    from hakaru.measure.context import Alone, Context
    from hakaru.measure.device._reference import reference
    from hakaru.measure.device.gemm import Matrices
    from hakaru.measure.devices import cores, placed
    from hakaru.measure.protocol import Rule, prepare, take_turns

    torch.set_num_threads(1)
    device = cores()[0]

    @contextmanager
    def on(name: str) -> Iterator[None]:
        """What the worker does around a repetition."""
        with placed(device):
            begin = validity.read_now(device.cores)
            yield
            validity.read_now(device.cores).since(begin)

    with placed(device):
        case = load_all().get("gemm").prepare(Context(device, Alone()), dtype="fp32", size=SIZE)
        timed = prepare(case, Rule(block_s=BLOCK_S), Alone())
        own = cycle(Matrices(reference("fp32", SIZE), "cpu").places)  # as many as the case has

        def bare() -> float:
            a, b, c = next(own)
            begin = time.perf_counter()
            for _ in range(timed.num_steps):
                torch.mm(a, b, out=c)
            return time.perf_counter() - begin

        def ours() -> float:
            begin = time.perf_counter()
            take_turns({"gemm": timed}, {"gemm": 1}, on=on)
            return time.perf_counter() - begin

        return median_interval(interleaved(rounds, bare, ours))


def _ranks(rounds: int) -> Interval:
    """Two ranks of this program; rank 0 prints the ratio of each round."""
    with tempfile.TemporaryDirectory() as folder:
        port = str(29500 + os.getpid() % 400)
        words = [
            sys.executable,
            "-m",
            "benchmarks.measure",
            "--rounds",
            str(rounds),
            "--port",
            port,
        ]
        variables = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": folder}
        ranks = [
            subprocess.Popen(
                [*words, "--rank", str(rank)], env=variables, stdout=subprocess.PIPE, text=True
            )
            for rank in range(2)
        ]
        outputs = [process.communicate(timeout=300)[0] for process in ranks]
    return median_interval([float(word) for word in outputs[0].split()])


def _all_reduce(rank: int, port: int, rounds: int) -> None:
    import torch
    import torch.distributed as dist

    from hakaru.measure._base import load_all
    from hakaru.measure.collective._ranks import TorchRanks
    from hakaru.measure.context import Context
    from hakaru.measure.devices import Device
    from hakaru.measure.protocol import Rule, prepare, repeat

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    device = Device("cpu:0", "core")
    ranks = TorchRanks(rank, 2, device, dist.group.WORLD)
    case = load_all().get("all-reduce").prepare(Context(device, ranks), dtype="fp32", bytes=BYTES)
    rule = Rule(least=1, most=1, block_s=2 * BLOCK_S)  # as a run's
    timed = prepare(case, rule, ranks)
    buffer = torch.zeros(BYTES // 4)

    def bare() -> float:
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(timed.num_steps):
            dist.all_reduce(buffer)
        return ranks.maximum(time.perf_counter() - begin)[0]

    def ours() -> float:
        dist.barrier()
        begin = time.perf_counter()
        timed.seconds.clear()
        repeat({"all-reduce": timed}, rule, ranks)
        return ranks.maximum(time.perf_counter() - begin)[0]

    ratios = interleaved(rounds, bare, ours)
    if rank == 0:
        print(*ratios, flush=True)
    dist.destroy_process_group()


def _page(num_cards: int) -> tuple[float, float]:
    """Seconds from the request to the drawn fleet: at first, and the longest of three later ones."""
    from playwright.sync_api import sync_playwright
    from tests.measure.lakes import synthetic_runs

    from hakaru.lake import Lake
    from hakaru.measure.store import save

    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.create(Path(folder))
        for run in synthetic_runs(num_nodes=num_cards // 8):
            save(lake, run)
        with _serving(folder) as url, sync_playwright() as play:
            browser = play.chromium.launch(
                executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
            )
            seconds = []
            for _ in range(4):
                context = browser.new_context()  # which has no scripts from before
                page = context.new_page()
                begin = time.perf_counter()
                page.goto(f"{url}measure")
                page.wait_for_selector('[data-id="fleet"] canvas, [data-id="fleet"] svg')
                seconds.append(time.perf_counter() - begin)
                context.close()
            browser.close()
    return seconds[0], max(seconds[1:])


@contextmanager
def _serving(workspace: str) -> Iterator[str]:
    """The address of `hakaru serve`, as a person starts it."""
    words = [sys.executable, "-m", "hakaru", "serve", "--port", "0", "-w", workspace]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[3]  # Hakaru is at URL
        finally:
            process.kill()


def _whole_runs() -> bool:
    """Time whole runs as a person starts them; whether one took too long or did not measure."""
    bad = False
    for options, limit_s in ((["--quick"], 120.0), ([], 600.0)):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            words = [sys.executable, "-m", "hakaru", "bench", "run", *options, "-w", folder]
            done = subprocess.run(words, capture_output=True, text=True)
            spent_s = time.perf_counter() - begin
        verdict = (done.stdout or done.stderr or "no output").splitlines()[0]
        print(f"bench run {' '.join(options)}: {spent_s:.0f} s (limit {limit_s:.0f} s), {verdict}")
        bad = bad or spent_s > limit_s or done.returncode not in MEASURED
    return bad


if __name__ == "__main__":
    sys.exit(main())
