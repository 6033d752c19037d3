"""The manifest beside an export: what it holds, and what was removed, replaced, moved or left out.

It never holds the salt, nor by how much times were moved, nor a filter that may name a person.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.duckdb import one_row
from hakaru.export import anonymise
from hakaru.export._base import Outcome, Site
from hakaru.export.anonymise import Disguise
from hakaru.schema import JOBS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def describe(
    con: DuckDBPyConnection,
    jobs: str,
    site: Site,
    format: str,
    outcome: Outcome,
    folder: Path,
    disguise: Disguise | None,
    filters: Mapping[str, Any],
) -> dict[str, Any]:
    """The manifest of what a format wrote to `folder` from the jobs as they were selected."""
    known = _known(con, jobs)
    # numbers come last: pseudonyms that the format numbers do not stand in the files
    replaced = {**(anonymise.PSEUDONYMS if disguise else {}), **outcome.replaced}
    removed = anonymise.REMOVED if disguise else {}
    return {
        "made_by": f"hakaru {version('hakaru')}",
        "format": format,
        "clusters": [site.name],
        "synthetic": site.synthetic,
        # whether a reader of the files alone can see that their jobs were generated
        "synthetic_in_files": site.synthetic and outcome.holds_synthetic,
        "filters": "not told, as they may name someone" if disguise and filters else dict(filters),
        "missing": site.missing,
        "num_jobs_selected": known["cluster"],
        "num_jobs_written": outcome.num_jobs,
        "left_out": outcome.left_out,
        "changed": outcome.changed,
        "anonymised": _anonymised(disguise),
        "times": _times(disguise),
        "columns": {
            "replaced": {
                name: how
                for name, how in replaced.items()
                if known[name] and name not in outcome.not_held
            },
            "removed": {name: why for name, why in removed.items() if known[name]},
            "not_in_format": {
                name: f"{known[name]:,} jobs have it"
                for name in outcome.not_held
                if known[name] and name not in removed
            },
        },
        "settings": site.facts(),
        "settings_in_files": outcome.holds_settings,
        "files": [_file(folder / name, count) for name, count in outcome.files.items()],
    }


def _known(con: DuckDBPyConnection, jobs: str) -> dict[str, int]:
    """How many of the selected jobs have a value, by column."""
    counts = one_row(
        con, "SELECT " + ", ".join(f'count("{n}")' for n in JOBS.names) + f" FROM {jobs}"
    )
    return dict(zip(JOBS.names, counts, strict=True))


def _anonymised(disguise: Disguise | None) -> dict[str, Any] | bool:
    if disguise is None:
        return False
    salt = (
        "random and not kept: no later export can have the same pseudonyms"
        if disguise.random_salt
        else "given and not written anywhere: the same salt gives the same pseudonyms"
    )
    return {"pseudonyms": "HMAC-SHA256 under a secret salt, 64 bits", "salt": salt}


def _times(disguise: Disguise | None) -> str:
    if disguise is None or not disguise.shift_days:
        return "as they are"
    return (
        "moved by a whole number of weeks on the site's clock (how many is not told): weekdays, hours, "
        "waits and run times stay, quarters change"
    )


def _file(path: Path, num_jobs: int) -> dict[str, Any]:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "name": path.name,
        "num_jobs": num_jobs,
        "num_bytes": path.stat().st_size,
        "sha256": digest,
    }
