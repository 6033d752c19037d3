"""A small log in the form of AAIC, a line for each job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from hakaru.engine.duckdb import connect
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine

HEADER = (
    "id,user,group,queue,nodes,gpus,walltime_req,termcode,"
    "time_submit,time_start,time_end,waittime,walltime"
)


def line(number: int, **cells: Any) -> str:
    submit = 1514764800 + number  # 2018-01-01T00:00:00Z
    row = {
        "id": number, "user": number % 3, "group": 0, "queue": 0, "nodes": 1, "gpus": 2,
        "walltime_req": 7200, "termcode": 0, "time_submit": submit, "time_start": submit + 10,
        "time_end": submit + 3610, "waittime": 10, "walltime": 3600,
    }  # fmt: skip
    return ",".join(str(value) for value in (row | cells).values())


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


def table(lake: Lake) -> list[tuple[Any, ...]]:
    con = connect(Engine())
    found = sorted(tuple(map(repr, row.values())) for row in lake.read(con, JOBS).to_pylist())
    con.close()
    return found


def large(path: Path, num_jobs: int) -> Path:
    """A log of AAIC's shape, written by DuckDB."""
    duckdb.connect().execute(
        f"""
        COPY (SELECT i AS id, i % 99 AS "user", i % 9 AS "group", 0 AS queue, 1 AS nodes, 1 AS gpus,
                     3600 AS walltime_req, 0 AS termcode, 1500000000 + i AS time_submit,
                     time_submit + 5 AS time_start, time_start + 60 AS time_end, 5 AS waittime,
                     60 AS walltime FROM range({num_jobs}) AS r(i))
        TO '{path}' (FORMAT csv)
        """
    )
    return path
