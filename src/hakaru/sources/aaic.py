"""AAIC's published CSV files (Takizawa et al.; github.com/aistairc/aaic-workload).

Thirteen whole numbers a line. Job, user and group ids are unique within one file only, so the file's
name becomes part of them. `gpus` counts GPUs per node. 5,045 jobs record a `walltime` that is not
`time_end - time_start`; the recorded one is kept, as the paper's tables use it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.errors import SourceError
from hakaru.formats.aaic import COLUMNS, QUEUES, STATES
from hakaru.formats.logs import SEPARATOR
from hakaru.sources._base import Records, first_reason, lines, source, stem

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Table 1 and section 3 of the paper. The number of nodes is left unknown: the scheduler managed 32 to
# 38 of them (40, says the log's README), and nobody says when. The table gives short one GPU a job,
# but the log holds 1,206 jobs there with more, up to the node's eight.
FACTS: dict[str, Any] = {
    "zone": "Asia/Tokyo",
    "unit": "gpu",
    "gpus_per_node": 8,
    "queues": {
        "normal": {"max_walltime_h": 72, "max_nodes": 38},
        "short": {"max_walltime_h": 3, "max_nodes": 1, "max_gpus": 8},
        "middle": {"max_walltime_h": 168, "max_nodes": 1, "max_gpus": 8},
        "long": {"max_walltime_h": 336, "max_nodes": 1, "max_gpus": 8},
    },
}


@source("aaic", title="AAIC's quarterly CSV files (.csv, .csv.gz)")
class Aaic:
    @staticmethod
    def recognises(path: Path, head: str) -> bool:
        first = head.split("\n", 1)[0]
        return [name.strip() for name in first.split(",")] == list(COLUMNS)

    @staticmethod
    def check(paths: Sequence[Path]) -> None:
        """Two files of one name would share their ids."""
        twice = [name for name, n in Counter(log_name(p) for p in set(paths)).items() if n > 1]
        if twice:
            raise SourceError(
                f"several files are called {twice[0]!r}; AAIC's ids are unique within a file, which is "
                "known by its name. Rename one of them."
            )

    @staticmethod
    def read(
        con: DuckDBPyConnection, path: Path, cluster: str, options: Mapping[str, Any]
    ) -> Records:
        return Records(sql=_query(path), facts=FACTS)


def log_name(path: Path) -> str:
    return stem(path).removeprefix("aaicwl-")


def _query(path: Path) -> str:
    numbers = ", ".join(
        f'TRY_CAST(cells[{i}] AS {_type(name)}) AS "{name}"' for i, name in enumerate(COLUMNS, 1)
    )
    log = quote(log_name(path) + SEPARATOR)
    queue = f"list_extract({list(QUEUES)}, queue::BIGINT + 1)"
    state = f"list_extract({list(STATES)}, termcode::BIGINT + 1)"
    return f"""
        SELECT _line, _text, {_reason()} AS _reason,
               {log} || id AS job_id, {log} || "user" AS "user", {log} || "group" AS account,
               {queue} AS queue, {state} AS state, nodes AS num_nodes, nodes::BIGINT * gpus AS num_gpus,
               'P100' AS gpu_model, CAST(walltime_req AS DOUBLE) AS requested_s,
               to_timestamp(time_submit) AS submitted_at, to_timestamp(time_start) AS started_at,
               to_timestamp(time_end) AS ended_at,
               CAST(waittime AS DOUBLE) AS wait_s, CAST(walltime AS DOUBLE) AS run_s
        FROM (SELECT _line, _text, len(cells) AS num_cells, {numbers}
              FROM (SELECT *, string_split(_text, ',') AS cells FROM ({lines(path)})
                    WHERE _line > 1 AND _text <> ''))
    """


def _type(name: str) -> str:
    """Narrow types, so that a number far out of range is the fault of its line alone."""
    return "UINTEGER" if name.startswith("time_") else "INTEGER"


def _reason() -> str:
    number = [(f'"{name}" IS NULL', f"'{name} is not a whole number in range'") for name in COLUMNS]
    return first_reason(
        [
            ("num_cells <> 13", "'expected 13 columns, found ' || num_cells"),
            *number,
            # DuckDB casts 1.5 to 2 without a word
            ("contains(_text, '.')", "'a number has a fraction'"),
            ("queue NOT BETWEEN 0 AND 3", "'queue ' || queue || ' is not 0 to 3'"),
            ("termcode NOT BETWEEN 0 AND 4", "'termcode ' || termcode || ' is not 0 to 4'"),
            ("nodes < 1 OR gpus < 0", "'nodes or gpus is negative or zero'"),
            ("time_submit = 0", "'time_submit is not a time'"),
        ]
    )
