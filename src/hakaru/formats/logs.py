"""Ids that hold within one log file only: the file's name stands before them, as in `2018Q1/17`."""

SEPARATOR = "/"


def log_of(column: str) -> str:
    """SQL for the log before an id, in the words that all engines share."""
    return f"split_part({column}, '{SEPARATOR}', 1)"


def is_of_log(column: str, job_id: str) -> str:
    """SQL for whether a name has its job's log before it; a name may hold a slash of its own."""
    both = f"{column} LIKE '%{SEPARATOR}%' AND {job_id} LIKE '%{SEPARATOR}%'"
    return f"({both} AND {log_of(column)} = {log_of(job_id)})"


def count_logs(user: str, job_id: str) -> str:
    """SQL for the number of logs in which users are numbered anew; 0 where their ids hold everywhere."""
    return f"count(DISTINCT CASE WHEN {is_of_log(user, job_id)} THEN {log_of(user)} END)"


def told(num_logs: int, per_file: bool = False) -> str:
    """What must be said beside a count of users; nothing where a person has one id."""
    if num_logs > 1:
        return (
            f"user ids hold within one log file only, and there are {num_logs}: "
            "somebody in two files has two ids"
        )
    if per_file and num_logs == 0:
        return (
            "user ids held within one of several log files only (users_per_file): "
            "somebody in two files has two ids"
        )
    return ""
