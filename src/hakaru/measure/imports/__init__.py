"""Results of other programs as measurements of our record: nccl-tests, HPL, SuperBench and DCGM."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from hakaru.errors import HakaruError
from hakaru.measure.imports import dcgm, hpl, nccl_tests, superbench
from hakaru.measure.imports._base import (
    IMPORTERS,
    UNKNOWN_HOST,
    Content,
    Found,
    Importer,
    ResultFile,
    clip,
    is_plausible,
    where,
)
from hakaru.measure.record import Measurement, Run

__all__ = ["IMPORTERS", "Imported", "read_file", "read_run"]

MOST_MB = 200

# what is plain to recognise first: SuperBench's files are any flat object with slashes in its keys
for importer in (nccl_tests.IMPORTER, hpl.IMPORTER, dcgm.IMPORTER, superbench.IMPORTER):
    IMPORTERS.add(importer)


class Imported(NamedTuple):
    """A file's formats, what it holds, what was left out of it and why, and what else one should know."""

    format: str
    measurements: list[Measurement]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def read_run(
    path: Path,
    cluster: str,
    format: str | None = None,
    label: str | None = None,
    host: str | None = None,
) -> Run:
    """A file as a run. Its id follows from the file's content, format and time, so that it is stored once."""
    found = read_file(path, format, host)
    started_at = min(each.started_at for each in found.measurements)
    mark = f"{cluster}\n{host}\n{found.format}\n".encode() + path.read_bytes()
    digest = hashlib.sha256(mark).hexdigest()
    return Run(
        id=f"{started_at:%Y%m%d-%H%M%S}-{digest[:10]}",
        cluster=cluster,
        started_at=started_at,
        measurements=tuple(found.measurements),
        source=found.format,
        label=label,
        left_out=found.left_out,
        notes=found.notes,
    )


def read_file(path: Path, format: str | None = None, host: str | None = None) -> Imported:
    """All that a file of other programs holds; `host` is for formats that do not name the host."""
    _check_host(host)
    content = Content(_text(path))
    importers = [IMPORTERS.get(format)] if format else _recognised(path, content)
    file = ResultFile(path, _modified_at(path), clip(host) if host else UNKNOWN_HOST)
    parts = [_read(each, file, content) for each in importers]
    found = [each for part in parts for each in part.measurements]
    others = _others(content, importers) if format else ()
    return Imported(
        " and ".join(each.id for each in importers),
        [_dated(each, file.modified_at) for each in found],
        (*(each for part in parts for each in part.left_out), *others),
        (*(each for part in parts for each in part.notes), *_date_notes(found, file.modified_at)),
    )


def _read(importer: Importer, file: ResultFile, content: Content) -> Found:
    found = importer.read(file, content)
    if not found.measurements:
        raise HakaruError(
            f"{where(file.path)} holds no result of {importer.title} that can be imported"
            + "".join(f"\n  {note}" for note in (*found.left_out, *found.notes))
        )
    return found


def _others(content: Content, chosen: Sequence[Importer]) -> tuple[str, ...]:
    """Results of programs that were not asked for; they may have failed."""
    titles = [each.title for each in _recognising(content) if each not in chosen]
    return tuple(f"output of {title}, which --format leaves out" for title in titles)


def _check_host(host: str | None) -> None:
    """Bytes of a command line that are no text arrive as halves of surrogate pairs."""
    try:
        (host or "").encode()
    except UnicodeEncodeError as error:
        raise HakaruError(f"the host {clip(host)!r} is not text in UTF-8") from error


def _modified_at(path: Path) -> datetime:
    try:
        found = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except (ValueError, OverflowError, OSError):
        found = None
    if found is None or not is_plausible(found):
        shown = f" ({found:%Y-%m-%d})" if found else ""
        raise HakaruError(
            f"the date of {where(path)}{shown} cannot be that of a result;"
            f" set it with: touch -d DATE {shlex.quote(where(path))}"
        )
    return found


def _dated(each: Measurement, modified_at: datetime) -> Measurement:
    """With the file's date where its own cannot be."""
    if not is_plausible(each.started_at):
        return replace(each, started_at=modified_at, ended_at=modified_at)
    is_ended = is_plausible(each.ended_at) and each.ended_at >= each.started_at
    return each if is_ended else replace(each, ended_at=each.started_at)


def _date_notes(found: Sequence[Measurement], modified_at: datetime) -> tuple[str, ...]:
    """Where the date comes from, unless it is what the program wrote."""
    date = f"the date is that of the file, {modified_at:%Y-%m-%d %H:%M} UTC"
    if any(not is_plausible(each.started_at) for each in found):
        return (f"the time in the file cannot be that of a result; {date}",)
    if any(not is_plausible(each.ended_at) for each in found):
        return ("the time of the end in the file cannot be that of a result",)
    if any(each.started_at == modified_at for each in found):
        return (f"the file does not say when it was measured; {date}",)
    return ()


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            raise HakaruError(f"{where(path)}: no such file")
        size = path.stat().st_size
        if size > MOST_MB * 1_000_000:
            raise HakaruError(
                f"{where(path)} has {size / 1e6:,.0f} MB and at most {MOST_MB} MB are read;"
                " split it, or cut its debug lines away"
            )
        text = path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise HakaruError(f"{where(path)} cannot be read: {error.strerror}") from error
    if not text.strip():
        raise HakaruError(f"{where(path)} is empty: the program wrote no result")
    return text


def _recognised(path: Path, content: Content) -> list[Importer]:
    """One, or those of all programs that printed into the log of one job."""
    found = _recognising(content)
    if not found:
        known = "".join(f"\n  {each.id}: {each.looks}" for each in IMPORTERS)
        raise HakaruError(
            f"{where(path)} is not recognised; choose its format with --format:{known}"
        )
    if len(found) > 1 and not all(each.is_printed for each in found):
        titles = " and of ".join(each.title for each in found)
        raise HakaruError(
            f"{where(path)} holds output of {titles}, which cannot be read from one file: put each"
            " into a file of its own, or choose one with --format"
        )
    return found


def _recognising(content: Content) -> list[Importer]:
    """A document is of one program; a log may be of several, also where its first line is JSON."""
    found = (each for each in IMPORTERS if each.recognises(content))
    return list(islice(found, 1)) if content.is_json else list(found)
