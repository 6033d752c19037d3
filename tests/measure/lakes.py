"""Made-up runs of a large cluster: three slow cards, ranks with a slow host, a search, and a history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from hakaru.lake import Lake
from hakaru.measure.collective._judge import judge_links
from hakaru.measure.collective.operations import factor
from hakaru.measure.judge import Limits, judge_devices
from hakaru.measure.record import Measurement, Run
from hakaru.measure.store import save
from hakaru.measure.verdict import Verdict

CLUSTER = "made-up"
BEGIN = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
MODEL = "Made-up 80 GB"
STEP_AT = 0.6  # of the runs; from there on every card is slower
STEP = 0.05
NOISE = 0.004
FIRST, AGAIN = 5, 25  # repetitions everywhere, and on suspects
PEAK_GFLOPS = 1e4
# benchmark, parameters, quantity, unit, rate, and what each slow card lacks of it
CARD_BENCHMARKS = (
    ("gemm", {"dtype": "fp64", "size": 1024}, "rate", "GFLOP/s", 19_100.0, (0.06, 0.09, 0.0)),
    ("gemm", {"dtype": "bf16", "size": 1024}, "rate", "GFLOP/s", 281_000.0, (0.06, 0.10, 0.0)),
    ("memory", {"mib": 256, "operation": "triad"}, "bandwidth", "GB/s", 1_760.0, (0.0, 0.0, 0.0)),
    ("host-copy", {"direction": "to-device", "mib": 64}, "bandwidth", "GB/s", 24.6, (0.0, 0.0, 0.49)),
)  # fmt: skip
COLLECTIVES = ("all-reduce", "all-gather", "broadcast")
SIZES = (4096, 65536, 1 << 20, 4 << 20, 16 << 20)
NUM_RANKS = 4
ALPHA_S, BETA_S = 9e-6, 1 / 21e9  # of one message in the ring
NUM_TRIALS = 30


def synthetic_runs(
    num_nodes: int = 128, cards_per_node: int = 8, num_runs: int = 20, seed: int = 0
) -> list[Run]:
    """Runs a day apart, the oldest first; the last has links, a search and all benchmarks too."""
    random = np.random.default_rng(seed)
    own = random.normal(1.0, 0.003, num_nodes * cards_per_node)
    fleet = (num_nodes, cards_per_node, own)
    runs = [_earlier(at, num_runs, fleet, random) for at in range(num_runs - 1)]
    return [*runs, _latest(num_runs - 1, num_runs, fleet, random)]


def put_runs(lake: Lake, runs: Iterable[Run]) -> Lake:
    for run in runs:
        save(lake, run)
    return lake


def slow_cards(num_nodes: int, cards_per_node: int) -> list[int]:
    """The numbers of the cards that are slow in the last run."""
    num = num_nodes * cards_per_node
    return [num // 5, num // 2, num - 2]


def measured(**columns: Any) -> Measurement:
    """A good measurement of one card, with what a test changes."""
    usual: dict[str, Any] = {
        "benchmark": "gemm", "quantity": "rate", "unit": "GFLOP/s", "better": "higher", "host": "n1",
        "device": "cuda:0", "started_at": BEGIN, "ended_at": BEGIN + timedelta(seconds=2),
        "parameters": {"dtype": "fp64", "size": 1024}, "samples": (100.0, 101.0, 99.0),
        "verdict": Verdict.GOOD, "reason": "at most 1.0% slower than its peers",
        "place": {"model": MODEL},
    }  # fmt: skip
    return Measurement(**(usual | columns))


Fleet = tuple[int, int, np.ndarray]


def _earlier(at: int, num_runs: int, fleet: Fleet, random: np.random.Generator) -> Run:
    when = BEGIN + timedelta(days=at)
    found = [_card(0, when, at >= STEP_AT * num_runs, fleet, random, with_slow=False)]
    good = [each.judged(Verdict.GOOD, "at most 1.9% slower than its peers")
            for cards in found for each in cards]  # fmt: skip
    ranks = _ranks("all-reduce", "fp32", SIZES[-1], when, random)
    return Run(_id(when, at), CLUSTER, when, (*good, *ranks), label="nightly")


def _latest(at: int, num_runs: int, fleet: Fleet, random: np.random.Generator) -> Run:
    when = BEGIN + timedelta(days=at)
    cards = [each for number in range(len(CARD_BENCHMARKS))
             for each in _card(number, when, at >= STEP_AT * num_runs, fleet, random)]  # fmt: skip
    ranks = [each for name in COLLECTIVES for dtype in ("fp32", "fp16") for size in SIZES
             for each in _ranks(name, dtype, size, when, random)]  # fmt: skip
    found = [
        *judge_devices(cards, Limits()),
        *ranks,
        *judge_links(list(_pairs(when, random))),
        *_search(when, random),
    ]
    meter = {"meter": {"error": 0.006, "tested_at": (when - timedelta(days=3)).isoformat()}}
    carried = [each.judged(each.verdict, each.reason, validity=dict(each.validity) | meter)
               for each in found]  # fmt: skip
    left_out = ("Matrix multiplication: cuda:0 has no tf32 of its own",)
    return Run(
        _id(when, at), CLUSTER, when, tuple(carried), label="into service", left_out=left_out
    )


def _card(
    number: int,
    when: datetime,
    is_late: bool,
    fleet: Fleet,
    random: np.random.Generator,
    with_slow: bool = True,
) -> Iterator[Measurement]:
    """One benchmark on every card; suspects have more repetitions."""
    benchmark, parameters, quantity, unit, rate, lacks = CARD_BENCHMARKS[number]
    num_nodes, cards_per_node, own = fleet
    when += timedelta(minutes=5 * number)
    slow = dict(zip(slow_cards(num_nodes, cards_per_node), lacks, strict=True)) if with_slow else {}
    drop = STEP if is_late and benchmark == "gemm" else 0.0
    for card, factor_of_card in enumerate(own):
        lack = slow.get(card, 0.0)
        true = rate * factor_of_card * (1 - lack) * (1 - drop)
        samples = true * random.normal(1.0, NOISE, AGAIN if lack else FIRST)
        link = {
            "width": 8 if lack > 0.4 else 16,
            "max_width": 16,
            "generation": 4,
            "max_generation": 4,
        }
        yield measured(
            benchmark=benchmark, parameters=parameters, quantity=quantity, unit=unit,
            host=_host(card // cards_per_node), device=f"cuda:{card % cards_per_node}",
            started_at=when, ended_at=when + timedelta(seconds=4),
            samples=tuple(float(f"{each:.7g}") for each in samples), place=_place(),
            validity={"link": link} if benchmark == "host-copy" else {},
        )  # fmt: skip


def _ranks(
    name: str, dtype: str, size: int, when: datetime, random: np.random.Generator
) -> Iterator[Measurement]:
    """A ring of four ranks that follows α–β, with a little noise."""
    messages = {"all-reduce": 2.0, "all-gather": 1.0}.get(name, 1.0) * (NUM_RANKS - 1)
    seconds = messages * (ALPHA_S + BETA_S * size / NUM_RANKS) * random.normal(1.0, 0.01, 9)
    algbw = size / seconds / 1e9
    values = {
        "busbw": ("GB/s", "higher", algbw * factor(name, NUM_RANKS)),
        "algbw": ("GB/s", "higher", algbw),
        "time": ("µs", "lower", seconds * 1e6),
    }
    for quantity, (unit, better, samples) in values.items():
        yield measured(
            benchmark=name, quantity=quantity, unit=unit, better=better, samples=tuple(samples),
            parameters={"bytes": size, "dtype": dtype, "ranks": NUM_RANKS},
            host=",".join(_host(at) for at in range(NUM_RANKS)), device=f"{NUM_RANKS} ranks",
            started_at=when, ended_at=when + timedelta(seconds=1), place=_place(f"{MODEL} ranks"),
            reason="correct and valid; there is nothing to compare it with yet",
        )  # fmt: skip


def _pairs(when: datetime, random: np.random.Generator) -> Iterator[Measurement]:
    """Every link between the four hosts; the third host's are slow."""
    for source in range(NUM_RANKS):
        for target in range(NUM_RANKS):
            if source == target:
                continue
            rate = 4.9 if 2 in (source, target) else 23.4
            yield measured(
                benchmark="pairs", quantity="bandwidth", unit="GB/s", parameters={"bytes": 8 << 20},
                host=",".join(_host(at) for at in range(NUM_RANKS)),
                device=f"{_host(source)}>{_host(target)}", started_at=when, ended_at=when,
                samples=tuple(rate * random.normal(1.0, 0.01, 3)), place=_place("link"),
            )  # fmt: skip


def _search(when: datetime, random: np.random.Generator) -> Iterator[Measurement]:
    """The default HPL.dat, trials of a search that gets better, both again, and what came of it."""
    default, best, n = 0.42 * PEAK_GFLOPS, 0.0, {"n": 20_000, "p": 2, "q": 4}
    for trial in range(NUM_TRIALS):
        reached = 0.35 + 0.37 * (1 - np.exp(-trial / 9)) * random.uniform(0.8, 1.0)
        stage = "confirm" if trial >= NUM_TRIALS - 4 else "search"
        is_default = trial == 0 or (stage == "confirm" and trial % 2 == 0)
        again = default if is_default else best * random.normal(1.0, 0.005)
        rate = again if is_default or stage == "confirm" else PEAK_GFLOPS * reached
        best, wrong = max(best, rate), trial == 13
        settings = {"nb": int(random.choice([128, 192, 256])), "bcast": int(random.integers(0, 6)),
                    "depth": int(random.integers(0, 2)), "trial": trial, "stage": stage,
                    "origin": "default" if is_default else "sampler"}  # fmt: skip
        yield measured(
            **_hpl(when), parameters=n | settings, samples=(float(rate),),
            verdict=Verdict.FAILED if wrong else Verdict.GOOD,
            reason=f"{stage}, {'failed, residual 71.3' if wrong else 'passed, residual 0.004'}",
        )  # fmt: skip
    gained = f"{best / default - 1:+.1%} over the default at the same N"
    final = {
        "rate": (best, "GFLOP/s", "", default),
        "efficiency": (best / PEAK_GFLOPS, "of DGEMM", "relative to DGEMM on all ranks", None),
        "gain": (best / default, "of the default", gained, None),
    }
    for quantity, (value, unit, reason, reference) in final.items():
        yield measured(**_hpl(when) | {
            "quantity": quantity, "unit": unit, "parameters": {"ranks": 8},
            "samples": (float(value),), "reason": reason, "reference": reference,
        })  # fmt: skip


def _hpl(when: datetime) -> dict[str, Any]:
    return {"benchmark": "hpl", "host": _host(0), "device": "8 ranks", "place": _place("8 ranks"),
            "started_at": when, "ended_at": when + timedelta(minutes=30)}  # fmt: skip


def _host(number: int) -> str:
    return f"gpu{number + 1:03d}"


def _id(when: datetime, at: int) -> str:
    return f"{when:%Y%m%d-%H%M%S}-{at:06x}"


def _place(model: str = MODEL) -> dict[str, Any]:
    """As long as a real one, which every row carries."""
    return {
        "model": model,
        "versions": dict.fromkeys(("hakaru", "torch", "numpy", "python", "cuda", "nccl"), "1.2.3"),
        "hardware": {"cpu": "Made-up CPU @ 2.40GHz", "num_cores": 96, "gpus": [MODEL] * 8},
        "command": ["hakaru", "bench", "run", "--launcher", "slurm"],
        "environment": {"NCCL_SOCKET_IFNAME": "ib0", "OMP_NUM_THREADS": "1"},
    }
