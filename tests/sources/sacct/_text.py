"""`sacct` text for the tests: a finished job, what a test changes of it, and the rows that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hakaru.engine.duckdb import connect
from hakaru.settings import Engine
from hakaru.sources.sacct import Sacct

CAPTURED = Path(__file__).resolve().parents[2] / "data" / "sacct" / "slurm-22.05.txt"
FIELDS = (
    *("JobID", "User", "Account", "Partition", "QOS", "State", "ExitCode", "NNodes", "AllocTRES"),
    *("ReqTRES", "NCPUS", "ReqMem", "TimelimitRaw", "Submit", "Eligible", "Start", "End"),
    *("ElapsedRaw", "NodeList", "JobName"),
)
# an hour on two GPUs, ten seconds after its submission at 2018-01-01T00:00:00 UTC
DONE = {
    "JobID": "7",
    "User": "ann",
    "Account": "lab",
    "Partition": "gpu",
    "QOS": "normal",
    "State": "COMPLETED",
    "ExitCode": "0:0",
    "NNodes": "1",
    "AllocTRES": "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=8192M,node=1",
    "ReqTRES": "billing=4,cpu=4,gres/gpu=2,mem=8192M,node=1",
    "NCPUS": "4",
    "ReqMem": "8192M",
    "TimelimitRaw": "120",
    "Submit": "1514764800",
    "Eligible": "1514764805",
    "Start": "1514764810",
    "End": "1514768410",
    "ElapsedRaw": "3600",
    "NodeList": "gpu01",
    "JobName": "train",
}
NEVER_STARTED = {"AllocTRES": "", "NodeList": "None assigned", "ElapsedRaw": "0"}
PENDING = {**NEVER_STARTED, "State": "PENDING", "Start": "Unknown", "End": "Unknown"}


def line(fields: Sequence[str] = FIELDS, delimiter: str = "|", **changed: str) -> str:
    return delimiter.join({**DONE, **changed}[name] for name in fields)


def read(tmp_path: Path, text: str, **options: Any) -> list[dict[str, Any]]:
    """The rows of the source's query, in the order of their lines."""
    path = tmp_path / "sacct.txt"
    path.write_text(text, encoding="utf-8")
    con = connect(Engine())
    rows = con.sql(Sacct.read(con, path, "c", options).sql).to_arrow_table().to_pylist()
    con.close()
    return sorted(rows, key=lambda row: row["_line"])


def read_lines(
    tmp_path: Path,
    *lines: str,
    fields: Sequence[str] = FIELDS,
    delimiter: str = "|",
    end: str = "",
    **options: Any,
) -> list[dict[str, Any]]:
    text = "\n".join(text + end for text in (delimiter.join(fields), *lines)) + "\n"
    return read(tmp_path, text, **options)


def one(tmp_path: Path, **changed: str) -> dict[str, Any]:
    (row,) = read_lines(tmp_path, line(**changed))
    return row
