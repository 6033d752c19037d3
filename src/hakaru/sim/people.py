"""What must be said of fair shares where a log numbers its users anew in every file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hakaru.formats.logs import SEPARATOR

if TYPE_CHECKING:
    from hakaru.sim.policies import Policy
    from hakaru.sim.workload import Workload


def fair_share_note(workload: Workload, policy: Policy) -> str:
    """Nothing where a person has one id throughout, or the policy does not ask who used how much."""
    if policy.weights is None or not policy.weights.fair_share:
        return ""
    num_logs = len(_logs(workload))
    if num_logs < 2:
        return ""
    return (
        f"user ids hold within one of {num_logs} log files: fair share forgets at each file's end what "
        f"everybody used, and shares are equal among all {len(workload.names['user']):,} ids"
    )


def _logs(workload: Workload) -> set[str]:
    """The logs that stand before users' ids and before their jobs' (a name may hold a slash of its own)."""
    import pyarrow.compute as pc

    users = {name.partition(SEPARATOR)[0] for name in workload.names["user"] if SEPARATOR in name}
    if not users or "job_id" not in workload.table.column_names:
        return set()
    parts = pc.split_pattern(workload.table["job_id"], SEPARATOR, max_splits=1)
    return users & set(pc.unique(pc.list_element(parts, 0)).to_pylist())
