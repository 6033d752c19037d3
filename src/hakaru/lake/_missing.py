"""How much of a cluster's logs is not in the lake, as the last ingest of each file left it.

Each stored job belongs to one reading: the one that brought it, or a later one that read its file again.
Rows that were lost beside jobs of another reading were lost there too, and count once. An ingest of several
files keeps one count for all of them: where some were read again, the others count with their part of it. A
row that contradicts a stored one is not missing: the lake has that job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Ingest = Mapping[str, Any]


@dataclass
class _Reading:
    """What an ingest still accounts for: jobs of its own, rows it lost, files not read again since."""

    num_files: int
    jobs: float
    rejected: float
    dropped: float

    def give(self, num_files: int, most: float) -> float:
        """Hand the jobs of some files to a later reading, which has at most so many of them."""
        of_files = num_files / self.num_files
        jobs = self.jobs * of_files
        share = min(1.0, most / jobs) if jobs else 1.0
        kept = 1 - of_files * share
        self.num_files -= num_files
        self.jobs, self.rejected, self.dropped = (
            kept * each for each in (self.jobs, self.rejected, self.dropped)
        )
        return jobs * share


def missing_shares(ingests: Sequence[Ingest]) -> dict[str, float]:
    """Rejected and dropped rows among all rows, a cluster; `ingests` are in the order of their start."""
    lost: dict[str, float] = defaultdict(float)
    whole: dict[str, float] = defaultdict(float)
    for cluster, reading in _readings(ingests):
        lost[cluster] += reading.rejected + reading.dropped
        whole[cluster] += reading.jobs + reading.rejected + reading.dropped
    return {cluster: lost[cluster] / num for cluster, num in whole.items() if num}


def num_dropped(ingests: Sequence[Ingest], cluster: str) -> int:
    """Rows of a cluster's logs that another row of the same input contradicts, and that are not kept."""
    return round(sum(each.dropped for name, each in _readings(ingests) if name == cluster))


def _readings(ingests: Sequence[Ingest]) -> list[tuple[str, _Reading]]:
    last: dict[tuple[str, str], _Reading] = {}
    found = []
    for row in ingests:
        files = {(row["cluster"], name) for name in row["inputs"] or []}
        reading = _read(row, len(files), [last[file] for file in files if file in last])
        last |= dict.fromkeys(files, reading)
        found.append((row["cluster"], reading))
    return found


def _read(row: Ingest, num_files: int, before: Sequence[_Reading]) -> _Reading:
    """The reading of an ingest that takes over files of readings `before`, each named once a file."""
    known = (row["num_updated"] or 0) + (row["num_unchanged"] or 0)
    jobs = row["num_new"] or 0
    num_jobs = jobs + known
    for older in {id(each): each for each in before}.values():
        taken = older.give(sum(each is older for each in before), known)
        jobs, known = jobs + taken, known - taken
    own = min(1.0, jobs / num_jobs) if num_jobs else 1.0
    lost = (own * (row[name] or 0) for name in ("num_rejected", "num_dropped"))
    return _Reading(num_files, jobs, *lost)
