"""nccl-tests and rccl-tests: the printed tables and the file of `-J`, as measurements of collectives.

`time`, `algbw` and `busbw` mean what they mean in our own collectives, and parameters and model are those of
our own runs, so that both meet in a comparison, a baseline and a history. Out of place has the plain
parameters; in place is a parameter of its own.
"""

from __future__ import annotations

import math
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure._base import Quantity
from hakaru.measure.collective.operations import QUANTITIES as OWN_QUANTITIES
from hakaru.measure.hpl._lines import LABEL
from hakaru.measure.imports._base import (
    UNKNOWN_HOST,
    UNKNOWN_RANKS,
    Collected,
    Content,
    Found,
    Importer,
    Key,
    ResultFile,
    clip,
    noted,
    parse_json,
    where,
)
from hakaru.measure.imports._nccl_json import read_table
from hakaru.measure.imports._nccl_tables import (
    CHECKED_IN_PLACE,
    DTYPES,
    IN_PLACE,
    OUT_OF_PLACE,
    Half,
    Row,
    Table,
    benchmark_of,
    contradiction,
    gap,
)
from hakaru.measure.imports._nccl_text import HEADING, PARAMETERS, STARTING, VERSION, Reader
from hakaru.measure.verdict import Verdict

TITLE = "nccl-tests"
STARTS = (VERSION, STARTING, PARAMETERS, HEADING)
UNCHECKED = "nccl-tests did not check the values (#wrong is N/A); run it with -c 1"
JSON_MARKS = ('"nccl_version"', '"minimum_bytes"')
MOST_HOSTS = 4000  # characters of their names
MOST_LABEL = 300  # characters of what a launcher puts before a line
ITERATION = Quantity("iteration-time", "µs", "lower")
QUANTITIES = {each.name: (each.unit, each.better) for each in (*OWN_QUANTITIES, ITERATION)}


def recognises(content: Content) -> bool:
    return _is_file(content) or _is_text(content)


def _is_file(content: Content) -> bool:
    """Whether it is the file of -J, perhaps with other text before or after it, or cut off."""
    marks = [mark in content.looks for mark in JSON_MARKS]
    return all(marks) or (any(marks) and content.begins_as_json and not _is_text(content))


def _is_text(content: Content) -> bool:
    lines = content.looks.splitlines()
    found = (LABEL.sub("", line) for line in lines if "#" in line[:MOST_LABEL])
    return any(mark.match(line) for line in found for mark in STARTS)


def read(file: ResultFile, content: Content) -> Found:
    left_out: list[str] = []
    if content.document is not None:
        tables = [read_table(file.path, content.document)]
    elif _is_file(content):
        raise _mixed(file, content)
    else:
        reader = Reader()
        tables, left_out = reader.read(content.text), reader.left_out
    collected = Collected(TITLE)
    for table in tables:
        _add_table(collected, table, file, left_out)
    notes = [note for table in tables for note in _notes(_benchmark(table, file), table)]
    starts = [table.started_at for table in tables if table.started_at]
    ends = [table.ended_at for table in tables if table.ended_at]
    started_at = min(starts, default=file.modified_at)
    ended_at = max([started_at, *ends] if starts else [file.modified_at])
    place = _place(file, tables)
    found = collected.measurements(started_at, ended_at, place)
    return Found(found, noted(left_out), noted(notes))


def _mixed(file: ResultFile, content: Content) -> HakaruError:
    if content.begins_as_json:
        parse_json(file.path, content.text)  # says where the JSON is broken
    return HakaruError(
        f"{where(file.path)} holds the JSON of nccl-tests -J among other text:"
        " put it into a file of its own"
    )


IMPORTER = Importer(
    id="nccl-tests",
    title=TITLE,
    looks="text with `# nThread … minBytes …` and a table with algbw and busbw, or the file of -J",
    recognises=recognises,
    read=read,
    is_printed=True,
)


def _add_table(collected: Collected, table: Table, file: ResultFile, left_out: list[str]) -> None:
    benchmark = _benchmark(table, file)
    host = clip(",".join(table.hosts), MOST_HOSTS) or file.host or UNKNOWN_HOST
    device = f"{table.num_ranks} ranks" if table.num_ranks else UNKNOWN_RANKS
    group = Key(benchmark, "time", "µs", "lower", host, device, model=_model(table))
    problem = _problem(table, benchmark)
    moves_nothing = not any(row.num_bytes for row in table.rows)
    if moves_nothing and (problem or not table.rows):
        collected.add(group, None, Verdict.FAILED, problem or "the table has no rows")
    for row in table.rows:
        _add_row(collected, table, problem, row, group, left_out)


def _benchmark(table: Table, file: ResultFile) -> str:
    """The collective; the program itself where a run was cut off before it named one."""
    found = benchmark_of(table, file.path) or ("" if table.rows else TITLE)
    if not found:
        raise HakaruError(
            f"{where(file.path)}: a table does not name its collective;"
            " name the file after it, such as all_reduce.txt"
        )
    return found


def _problem(table: Table, benchmark: str) -> str:
    """What is wrong with the run, and so with each of its rows."""
    if table.error:
        return f"nccl-tests stopped with an error: {table.error}"
    if table.is_complete and table.num_out_of_bounds:
        return f"{table.num_out_of_bounds:,} values out of bounds in this run (FAILED)"
    return gap(table, benchmark)


def _model(table: Table) -> str:
    """As our own runs are called: by the GPU of rank 0."""
    return f"{table.models[0]} ranks" if table.models else ""


def _notes(benchmark: str, table: Table) -> list[str]:
    """What keeps the numbers from meeting those of our own runs."""
    lacks = [("number of ranks", table.num_ranks), ("GPU model", table.models)]
    notes = [
        f"the file does not name the {name}: {benchmark} is not compared with own runs"
        for name, found in lacks
        if not found
    ]
    if table.is_reduced:
        notes.append(
            f"{benchmark} has no sizes above {max(row.num_bytes for row in table.rows):,} bytes:"
            " nccl-tests leaves out those that do not fit into the GPU's memory"
        )
    if len(table.models) > 1:
        others = ", ".join(table.models[1:4])
        notes.append(
            f"{benchmark} is listed under the GPU of rank 0, {table.models[0]}, not {others}"
        )
    return notes


def _add_row(
    collected: Collected, table: Table, problem: str, row: Row, group: Key, left_out: list[str]
) -> None:
    if row.num_bytes == 0 and not any(half.num_wrong for half in row.halves.values()):
        left_out.append(f"{group.benchmark}: rows of 0 bytes, which move nothing")
        return
    is_out_checked = OUT_OF_PLACE in row.halves and row.halves[OUT_OF_PLACE].is_checked
    for name, half in row.halves.items():
        is_unchecked = name == IN_PLACE and not (half.is_checked or half.num_wrong)
        is_usual = is_out_checked and group.benchmark not in CHECKED_IN_PLACE
        if is_unchecked and is_usual and _is_timed(half):
            left_out.append(f"{group.benchmark} in place, which nccl-tests does not check")
            continue
        verdict, reason = _judged(table, problem, row.num_bytes, half)
        parameters = _parameters(table, row, name)
        for quantity, samples in _quantities(half):
            unit, better = QUANTITIES[quantity]
            key = group._replace(quantity=quantity, unit=unit, better=better, parameters=parameters)
            for sample in samples:
                collected.add(key, sample, verdict, reason)


def _quantities(half: Half) -> list[tuple[str, tuple[float | None, ...]]]:
    """A bandwidth of 0 was rounded away in print; the time still holds it."""
    time_us = half.time_us if _is_timed(half) else None
    return [
        ("time", (time_us,)),
        ("algbw", () if half.algbw == 0 else (half.algbw,)),
        ("busbw", () if half.busbw == 0 else (half.busbw,)),
        ("iteration-time", half.iterations_us),
    ]


def _parameters(table: Table, row: Row, half: str) -> tuple[tuple[str, int | str], ...]:
    """Those of our own collectives, and what differs from them."""
    found: dict[str, int | str] = {
        "bytes": row.num_bytes,
        "dtype": DTYPES.get(row.dtype, row.dtype),
    }
    if table.num_ranks:
        found["ranks"] = table.num_ranks
    if len(table.ranks) > 1:
        found["groups"] = len(table.ranks)
    if row.redop not in ("", "none", "sum"):
        found["redop"] = row.redop
    if row.root > 0:
        found["root"] = row.root
    if half == IN_PLACE:
        found["buffer"] = IN_PLACE
    if table.is_cpu_time:
        found["timed"] = "cpu"
    return tuple(found.items())


def _is_timed(half: Half) -> bool:
    return (half.time_us or 0) > 0


def _judged(table: Table, problem: str, num_bytes: int, half: Half) -> tuple[Verdict, str]:
    if half.num_wrong == math.inf:
        return Verdict.FAILED, "the number of wrong values cannot be read"
    if half.num_wrong:
        return Verdict.FAILED, f"{half.num_wrong:,.0f} wrong values"
    if problem:
        return Verdict.FAILED, problem
    if not _is_timed(half):
        return Verdict.FAILED, "the time is not a number above 0"
    if contradicted := contradiction(table, num_bytes, half):
        return Verdict.FAILED, contradicted
    if not table.is_average_ok:
        average = f"{table.average_busbw or 0:g} GB/s"
        return (
            Verdict.SLOW,
            f"nccl-tests reports FAILED: the average of {average} is below its own limit",
        )
    if not half.is_checked:
        return Verdict.NOT_MEASURED, UNCHECKED
    return Verdict.GOOD, ""


def _place(file: ResultFile, tables: list[Table]) -> dict[str, Any]:
    models = dict.fromkeys(model for table in tables for model in table.models)
    versions = {name: it for table in tables for name, it in table.versions.items()}
    return {
        "imported_from": file.name,
        "versions": versions,
        "hardware": {"gpus": list(models)[:20]},
    }
