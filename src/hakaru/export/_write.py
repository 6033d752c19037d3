"""One export from the selected jobs to files in their place: disguise, write, describe, move."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from hakaru.errors import HakaruError
from hakaru.export import manifest
from hakaru.export._base import Format, Outcome, Site, Target, load_all
from hakaru.export.anonymise import Disguise

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Export:
    """What was written where; the manifest holds the same for later."""

    files: list[Path]
    manifest_path: Path
    manifest: dict[str, Any]
    outcome: Outcome


@dataclass(frozen=True)
class _Place:
    folder: Path
    file: str | None
    manifest_name: str

    @property
    def manifest(self) -> Path:
        return self.folder / self.manifest_name


def export(
    con: DuckDBPyConnection,
    jobs: str,
    site: Site,
    format: str,
    output: Path,
    *,
    disguise: Disguise | None = None,
    filters: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Export:
    """Write the view `jobs` of one cluster to `output`: a file by its ending, else a folder."""
    chosen = load_all().get(format)
    folder, file = _place(output, chosen)
    place = _Place(folder, file, _manifest_name(file, chosen))
    _refuse_existing([place.manifest, *([folder / file] if file else [])], overwrite)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".hakaru-export-", dir=folder) as partial:
            target = Target(Path(partial), file)
            view, moved = jobs, site
            if disguise:
                view, moved = disguise.apply(con, jobs, site, target.folder)
            outcome = _written(chosen, con, view, moved, target)
            told = manifest.describe(
                con, jobs, moved, chosen.id, outcome, target.folder, disguise, filters or {}
            )
            return _publish(place, target, outcome, told, overwrite)
    except duckdb.OutOfMemoryException as error:
        raise HakaruError(
            f"the export needs more memory than it may use: {error}\n"
            "Give it more with engine.memory in hakaru.toml, or narrow it with --since/--until."
        ) from None
    except (OSError, duckdb.IOException) as error:
        raise HakaruError(f"cannot write to {output}: {error}") from None


def _place(output: Path, format: Format) -> tuple[Path, str | None]:
    """The folder, and the file's name if the output names one."""
    if output.is_dir():
        return output, None
    if output.name.endswith(format.endings):
        return output.parent, output.name
    if output.exists() or output.name.endswith((".gz", ".csv", ".swf", ".parquet", ".zip")):
        raise HakaruError(
            f"{output} cannot hold {format.title}: name a folder, or a file that ends in "
            f"{' or '.join(format.endings)}"
        )
    return output, None


def _written(
    format: Format, con: DuckDBPyConnection, jobs: str, site: Site, target: Target
) -> Outcome:
    outcome = format.write(con, jobs, site, target)
    if outcome.num_jobs == 0:
        reasons = "".join(f"\n  {n:,} × {why}" for why, n in outcome.left_out.items())
        raise HakaruError(f"no job can be written as {format.id}{':' if reasons else ''}{reasons}")
    return outcome


def _publish(
    place: _Place, target: Target, outcome: Outcome, told: dict[str, Any], overwrite: bool
) -> Export:
    """Move the whole files to their place, the manifest last: with it the export is complete."""
    files = [place.folder / name for name in outcome.files]
    _refuse_existing(files, overwrite)
    text = json.dumps(told, indent=2, ensure_ascii=False) + "\n"
    (target.folder / place.manifest_name).write_text(text, encoding="utf-8")
    for path in [*files, place.manifest]:
        (target.folder / path.name).replace(path)
    return Export(files=files, manifest_path=place.manifest, manifest=told, outcome=outcome)


def _manifest_name(file: str | None, format: Format) -> str:
    ending = next((ending for ending in format.endings if file and file.endswith(ending)), "")
    return f"{file.removesuffix(ending)}.manifest.json" if file else "manifest.json"


def _refuse_existing(paths: list[Path], overwrite: bool) -> None:
    there = [path for path in paths if path.exists()]
    if there and not overwrite:
        raise HakaruError(f"{there[0]} is there already; choose another place, or add --overwrite")
