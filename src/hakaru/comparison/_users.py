"""Whether people can be counted: some logs number their users anew in every file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hakaru.analyses import Analysis, Result, Selection
from hakaru.formats.logs import count_logs, told

if TYPE_CHECKING:
    from hakaru.analyses import Session

COUNT_USERS = ("concentration", "users-by-quarter", "users", "accounts")


def users_note(session: Session, cluster: str, selection: Selection) -> str:
    """What must be said beside a count of a cluster's users; nothing where it counts people."""
    every = replace(
        selection,
        clusters=(cluster,),
        min_run_s=0,
        states=("any",),
        by=None,
        weight="jobs",
    )
    rows = session.run(LOGS, every).rows
    num_logs = int(rows[0]["num_logs"]) if rows else 0
    return told(num_logs, session.settings.cluster(cluster).users_per_file)


def notes_on_users(session: Session, result: Result) -> list[str]:
    """The same for a result that counts users, a line a cluster."""
    if result.analysis.id not in COUNT_USERS or result.params.get("quarter") == "log":
        return []
    names = result.selection.clusters
    notes = {name: users_note(session, name, result.selection) for name in names}
    return [f"{name}: {note}" for name, note in notes.items() if note]


def _log_files() -> str:
    """How many log files gave the jobs their users, where ids hold within one file only (LOG/USER)."""
    return f"""
        SELECT grp, {count_logs("jobs.user", "jobs.job_id")} AS num_logs FROM jobs GROUP BY grp
    """


# Not registered: it answers no question of a user's, only whether users may be counted.
LOGS = Analysis(
    id="log-files",
    title="Log files with users of their own",
    answers="In how many files are users numbered anew?",
    figure="statistics",
    subject="overview",
    query=_log_files,
    description=_log_files.__doc__ or "",
)
