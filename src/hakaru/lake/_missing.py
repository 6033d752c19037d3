"""How much of a cluster's logs is not in the lake, as the last ingest of each file left it.

A file that was ingested again counts as it was read last. An ingest of several files keeps one count for all
of them: where some were read again, the others count with their part of it. A row that contradicts a stored
one is not missing: the lake has that job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Ingest = Mapping[str, Any]


def missing_shares(ingests: Sequence[Ingest]) -> dict[str, float]:
    """Rejected and dropped rows among those read, a cluster; `ingests` are in the order of their start."""
    read: dict[str, float] = defaultdict(float)
    lost: dict[str, float] = defaultdict(float)
    for row, part in _that_hold(ingests):
        read[row["cluster"]] += part * (row["num_read"] or 0)
        lost[row["cluster"]] += part * ((row["num_rejected"] or 0) + (row["num_dropped"] or 0))
    return {name: lost[name] / num_read for name, num_read in read.items() if num_read}


def num_dropped(ingests: Sequence[Ingest], cluster: str) -> int:
    """Rows of a cluster's logs that another row of the same input contradicts, and that are not kept."""
    rows = [row for row in ingests if row["cluster"] == cluster]
    return round(sum(part * (row["num_dropped"] or 0) for row, part in _that_hold(rows)))


def _that_hold(ingests: Sequence[Ingest]) -> Iterator[tuple[Ingest, float]]:
    """Each ingest, newest first, with the part of its files that no later one read again."""
    seen: set[tuple[str, str]] = set()
    for row in reversed(ingests):
        files = {(row["cluster"], name) for name in row["inputs"] or []}
        yield row, len(files - seen) / len(files) if files else 1.0
        seen |= files
