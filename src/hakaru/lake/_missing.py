"""How much of a cluster's logs could not be read, as the last ingest of each file left it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any


def missing_shares(ingests: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Rejected rows among those read, a cluster; `ingests` are in the order of their start.

    A file that was ingested again counts as it was read last. An ingest of several files keeps one count
    for all of them: where some were read again, the others count with their part of it.
    """
    read: dict[str, float] = defaultdict(float)
    rejected: dict[str, float] = defaultdict(float)
    seen: set[tuple[str, str]] = set()
    for row in reversed(ingests):
        files = {(row["cluster"], name) for name in row["inputs"] or []}
        part = len(files - seen) / len(files) if files else 1.0
        read[row["cluster"]] += part * (row["num_read"] or 0)
        rejected[row["cluster"]] += part * (row["num_rejected"] or 0)
        seen |= files
    return {name: rejected[name] / num_read for name, num_read in read.items() if num_read}
