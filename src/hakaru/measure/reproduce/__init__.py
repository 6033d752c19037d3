"""Experiments of three papers, run at the size of this machine and compared with what the papers print.

Each paper is one file: its experiment as benchmarks with parameters, and its published numbers with where
they stand in its text. `compare` reads stored rows alone, so that a run of a cluster is judged anywhere.
"""

from __future__ import annotations

from hakaru.errors import HakaruError
from hakaru.measure.reproduce.finding import (
    Answer,
    Compared,
    Experiment,
    Finding,
    Paper,
    Size,
    Verdict,
    compare,
    exit_code,
)
from hakaru.measure.reproduce.flow import FLOW
from hakaru.measure.reproduce.mn1 import MN1
from hakaru.measure.reproduce.tsubame3 import TSUBAME3
from hakaru.registry import hint

__all__ = [
    "PAPERS",
    "Answer",
    "Compared",
    "Experiment",
    "Finding",
    "Paper",
    "Size",
    "Verdict",
    "compare",
    "exit_code",
    "find_paper",
]

PAPERS = {each.id: each for each in (FLOW, MN1, TSUBAME3)}


def find_paper(id: str) -> Paper:
    if id not in PAPERS:
        raise HakaruError(f"there is no experiment of a paper {id!r}; {hint(id, PAPERS)}")
    return PAPERS[id]
