"""How many people stand behind jobs: at least so many, where a log does not tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hakaru.analyses import Selection
from hakaru.formats.logs import count_logs
from hakaru.web.readers import Readers

FEWEST = 6  # five, and the one who asks: their own jobs they know


def per_file(readers: Readers, clusters: Sequence[str]) -> bool:
    """Whether a log numbers its users anew in every file, so that one person has several names.

    It is so where the settings say it, and where the names come from several files (LOG/USER).
    """
    return any(
        readers.settings.cluster(name).users_per_file or _num_logs(readers, name) > 1
        for name in clusters
    )


def _num_logs(readers: Readers, cluster: str) -> int:
    sql = f"SELECT {count_logs('jobs.user', 'jobs.job_id')} AS num_logs FROM jobs"
    return int(readers.rows(sql, Selection(clusters=(cluster,)))[0]["num_logs"] or 0)


def people_among(users: Iterable[str], by_file: bool) -> int:
    """How many people these users are; over files that number them anew, those of the fullest."""
    logs = Counter(user.split("/", 1)[0] if by_file else "" for user in users)
    return max(logs.values(), default=0)


def num_people(readers: Readers, selection: Selection, source: str) -> int:
    """People who hold the source's rows; jobs without a known user count for nobody."""
    sql = f"SELECT DISTINCT jobs.user AS holder FROM {source} AS jobs WHERE jobs.user IS NOT NULL"
    holders = (row["holder"] for row in readers.rows(sql, selection))
    return people_among(holders, per_file(readers, selection.clusters))
