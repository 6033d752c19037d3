"""Parquet with every canonical column; the settings stand in its metadata, and Hakaru reads it as it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hakaru.engine.dialect import quote
from hakaru.export._base import Outcome, Site, Target, export_format
from hakaru.formats.metadata import CLUSTER, FACTS, SYNTHETIC
from hakaru.schema import JOBS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@export_format("parquet", title="Parquet with Hakaru's own columns", endings=[".parquet"])
def write(con: DuckDBPyConnection, jobs: str, site: Site, target: Target) -> Outcome:
    """One file, in the order in which the jobs are stored: sorting texts would hold them in memory."""
    file = target.file or f"{site.name}.parquet"
    columns = ", ".join(f'"{name}"' for name in JOBS.names)
    metadata = {
        SYNTHETIC: str(site.synthetic).lower(),
        FACTS: json.dumps(site.facts(), sort_keys=True),
        CLUSTER: site.name,
    }
    listed = ", ".join(f'"{key}": {quote(value)}' for key, value in metadata.items())
    (count,) = con.execute(
        f"COPY (SELECT {columns} FROM {jobs}) "
        f"TO {quote(str(target.folder / file))} "
        f"(FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{listed}}})"
    ).fetchall()[0]
    return Outcome(files={file: int(count)})
