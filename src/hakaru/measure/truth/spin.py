"""A process that computes for a while and says how fast: `python -m hakaru.measure.truth.spin SECONDS`."""

from __future__ import annotations

import json
import os
import sys

from hakaru.measure._base import Case
from hakaru.measure.context import Alone
from hakaru.measure.protocol import Rule, prepare, repeat

SIZE = 128
BLOCK_S = 0.1  # many periods of a quota


def spin(seconds: float) -> float:
    """Steps a second of a small product of matrices: the median over blocks."""
    import numpy as np

    matrix = np.ones((SIZE, SIZE))
    case = Case(lambda: matrix @ matrix, lambda s: {"rate": 1 / s}, lambda: None)
    rule = Rule(least=3, most=1000, width=0.0, budget_s=seconds, block_s=BLOCK_S)
    timed = prepare(case, rule, Alone())
    repeat({"spin": timed}, rule, Alone())
    rates = timed.samples()["rate"]
    return sorted(rates)[len(rates) // 2]


if __name__ == "__main__":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(json.dumps({"rate": spin(float(sys.argv[1]))}))
