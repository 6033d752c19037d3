"""The best settings of a workspace's earlier searches: those of a small one start a larger one.

MN-1 went from 1 GPU over 8 to 1,024 in this way (section 4.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure import journal
from hakaru.measure.hpl.dat import Config
from hakaru.measure.hpl.outcome import Outcome
from hakaru.measure.hpl.program import Program
from hakaru.measure.verdict import Verdict

FILE = "hpl-seeds.jsonl"
KIND = "hpl-seed"


def read_seed(path: Path, ranks: int, program: Program) -> Config | None:
    """The best settings of the largest search that this program ran on no more ranks."""
    try:
        entries, _ = journal.read(path)
    except HakaruError:
        return None
    known = [found for each in entries if (found := _seed(each, program)) is not None]
    fitting = [(config.ranks, gflops, config) for config, gflops in known if config.ranks <= ranks]
    return max(fitting, key=lambda each: each[:2])[2] if fitting else None


def write_seed(path: Path, found: Outcome) -> None:
    """Keep the best settings of a search whose results were right; a full disk must not spoil it."""
    if found.best is None or found.verdict not in (Verdict.GOOD, Verdict.CONTAMINATED):
        return
    config = found.best.config
    with suppress(OSError):
        journal.append(
            path,
            {
                "kind": KIND,
                "program": found.program.kind,
                "config": config.to_json(),
                "gflops": found.best.gflops,
                "finished_at": datetime.now(UTC).isoformat(),
            },
        )


def _seed(entry: Mapping[str, Any], program: Program) -> tuple[Config, float] | None:
    """An entry as settings with their rate; None where it is of something else."""
    if entry.get("kind") != KIND or entry.get("program") != program.kind:
        return None
    try:
        config, gflops = Config(**entry["config"]), float(entry["gflops"])
    except (HakaruError, KeyError, TypeError, ValueError):
        return None
    return (config, gflops) if isfinite(gflops) and gflops > 0 else None
