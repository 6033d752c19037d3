"""How many people stand behind jobs: the least that it can be, where a log does not tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from hakaru.analyses import Selection
from hakaru.formats.logs import count_logs
from hakaru.web.readers import Readers

FEWEST = 5


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


def people_sql(keys: Mapping[str, str], source: str, by_file: bool) -> str:
    """People for each combination of the keys; over files that number them anew, those of the fullest.

    Jobs without a known user count for nobody.
    """
    names = [f"key_{i}" for i in range(len(keys))]
    shown = [f"{sql} AS {name}" for name, sql in zip(names, keys.values(), strict=True)]
    log = "split_part(jobs.user, '/', 1)" if by_file else "''"
    inner = ", ".join([*shown, f"{log} AS log", "count(DISTINCT jobs.user) AS num"])
    listed = ", ".join([*keys.values(), log])
    group = f" GROUP BY {', '.join(names)}" if names else ""
    return (
        f"SELECT {', '.join([*names, 'coalesce(max(num), 0) AS num_people'])} "
        f"FROM (SELECT {inner} FROM {source} AS jobs GROUP BY {listed}) AS counted{group}"
    )


def holders_sql(keys: Mapping[str, str], source: str) -> str:
    """Who stands behind each combination of the keys; null is nobody known."""
    shown = [f"{sql} AS key_{i}" for i, sql in enumerate(keys.values())]
    return f"SELECT DISTINCT {', '.join([*shown, 'jobs.user AS holder'])} FROM {source} AS jobs"


def people_among(users: Iterable[str], by_file: bool) -> int:
    """How many people these users are; over files that number them anew, those of the fullest."""
    logs = Counter(user.split("/", 1)[0] if by_file else "" for user in users)
    return max(logs.values(), default=0)


def num_people(readers: Readers, selection: Selection, source: str = "jobs") -> int:
    sql = people_sql({}, source, per_file(readers, selection.clusters))
    return int(readers.rows(sql, selection)[0]["num_people"])
