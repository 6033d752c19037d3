"""Which columns of an unknown log make up a job's id: where one id stands for several jobs, a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hakaru.engine.duckdb import one_row
from hakaru.sources.table._looks import MOST, Look
from hakaru.sources.table._proposal import Proposal, quoted
from hakaru.sources.table._synonyms import TASK_WORDS, TASKS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MANY = 1e7  # an index is a small number


def place_id(con: DuckDBPyConnection, proposal: Proposal, looks: Sequence[Look]) -> None:
    """The id alone, or with the column that sets apart the rows that share it."""
    look = proposal.looks.get("job_id") or _unique_name(con, proposal)
    if look is None:
        proposal.entries["job_id"] = {"line": True}
        proposal.remarks["job_id"] = "no column of ids was found: the line's number is used"
        proposal.doubt(
            "job_id", "ids are line numbers, so they change if the file is split differently"
        )
        return
    num_rows = _distinct(con, [each for each in looks if each.num_known])
    key = [look, *(proposal.looks[n] for n in ("submitted_at",) if n in proposal.looks)]
    num_keys = _distinct(con, key)
    if num_keys == num_rows:
        return
    found = _find_second(con, proposal, looks, key, num_keys, num_rows)
    if found is None:
        proposal.doubt(
            "job_id",
            f"{num_rows - num_keys:,} rows have the id and submit time of another row, and no column "
            "sets them apart; as it is they become one job",
        )
        return
    proposal.entries["job_id"] = {"column": [look.name, found.name]}
    proposal.remarks["job_id"] = f"{quoted(look.name)} repeats with other contents"
    proposal.doubt("job_id", f"is {quoted(found.name)} what sets apart the jobs of one id?")


def _unique_name(con: DuckDBPyConnection, proposal: Proposal) -> Look | None:
    """The jobs' names, where each has its own."""
    look = proposal.looks.get("name")
    (num_rows,) = one_row(con, "SELECT count(*) FROM sample")
    if look is None or look.num_distinct < num_rows or num_rows == 1:
        return None
    proposal.place("job_id", look, "no column of ids was found, and every name is unique")
    proposal.doubt("job_id", f"is {quoted(look.name)} unique in the whole log?")
    return look


def _find_second(
    con: DuckDBPyConnection,
    proposal: Proposal,
    looks: Sequence[Look],
    key: Sequence[Look],
    num_keys: int,
    num_rows: int,
) -> Look | None:
    """The likeliest column with which (nearly) every row has a key of its own."""
    for look in sorted(filter(_may_index, proposal.free(looks)), key=_likelihood):
        gained = _distinct(con, [*key, look]) - num_keys
        if gained >= MOST * (num_rows - num_keys):
            return look
    return None


def _may_index(look: Look) -> bool:
    return look.num_known > 0 and look.time is None and _likelihood(look) < 3


def _likelihood(look: Look) -> int:
    if "".join(look.words) in TASKS:
        return 0
    if set(look.words) & set(TASK_WORDS):
        return 1
    is_index = look.whole and look.lowest in (0, 1) and look.highest < MANY
    return 2 if is_index else 3


def _distinct(con: DuckDBPyConnection, looks: Sequence[Look]) -> int:
    columns = ", ".join(look.raw.sql for look in looks)
    (count,) = one_row(con, f"SELECT count(*) FROM (SELECT DISTINCT {columns} FROM sample)")
    return int(count)
