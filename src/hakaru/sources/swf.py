"""Standard Workload Format 2.2 (Feitelson et al.; cs.huji.ac.il/labs/parallel/workload/swf.html).

Eighteen numbers a line, `;` lines as header, -1 for unknown. Times count from `--start`, else from the
header's `UnixStartTime`; without either they count from 1970-01-01: waits and run times hold, and dates are
relative, as the ingest and every figure by date say. A file whose columns are others, or in another order,
is refused with what was seen; a single bad line is rejected.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.engine.where import parse_moment
from hakaru.formats.metadata import FACTS
from hakaru.settings import is_zone
from hakaru.sources._base import (
    FIRST_DATE_S,
    Records,
    first_reason,
    head,
    lines,
    source,
    with_dates,
)
from hakaru.sources._swf_layout import refuse_other_layouts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# column, and the standard's name for it
FIELDS: tuple[tuple[str, str], ...] = (
    ("job", "job number"),
    ("submit", "submit time"),
    ("wait", "wait time"),
    ("run", "run time"),
    ("procs", "allocated processors"),
    ("cpu", "average CPU time"),
    ("used_kb", "used memory"),
    ("asked_procs", "requested processors"),
    ("asked", "requested time"),
    ("asked_kb", "requested memory"),
    ("status", "status"),
    ("uid", "user"),
    ("gid", "group"),
    ("executable", "executable"),
    ("queue", "queue"),
    ("partition", "partition"),
    ("preceding", "preceding job"),
    ("think", "think time"),
)
NUM_FIELDS, TITLES = len(FIELDS), [title for _, title in FIELDS]
# names and no quantities: some logs have hashes of 64 bits or words there, which a float would blur
IDS = ("uid", "gid")
WHOLE = ("job", "procs", "asked_procs", "status", "queue")
USED = (*WHOLE, "submit", "wait", "run", "asked", "asked_kb")
# Far above any count or duration, far below what overflows a timestamp: some 300 years of seconds.
LARGEST = 1e10
LONGEST_HEADER = 4 << 20  # bytes

HEADER = re.compile(r";\s*([A-Za-z]+)\s*:\s*(.*?)\s*$")
FACTS_NOTE = f"{FACTS} "
KNOWN_KEYS = {"unixstarttime", "maxprocs", "maxnodes", "maxjobs", "maxrecords", "timezonestring"}
# "Queue: 0  interactive  interactive jobs", and as Gaia's log has it "Queue: 1 - Normal jobs queue - ..."
QUEUE = re.compile(r"(\d+)(?:\s+-\s+(?P<phrase>.+?)(?:\s+-\s.*)?|\s+(?P<word>\S+).*)?")


@dataclass(frozen=True)
class Header:
    """What the `;` lines say, as far as it is used."""

    start_s: float = 0.0
    zone: str | None = None
    no_zone: str = ""  # what it has for a zone, where that is none
    max_procs: int | None = None
    max_nodes: int | None = None
    queues: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def synthetic(self) -> bool:
        return any(note.lower().startswith("synthetic") for note in self.notes)

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"unit": "cpu"}
        if self.zone:
            facts["zone"] = self.zone
        if self.max_nodes:
            facts["nodes"] = self.max_nodes
        if self.max_procs and self.max_nodes and self.max_procs % self.max_nodes == 0:
            facts["cpus_per_node"] = self.max_procs // self.max_nodes
        elif self.max_procs:
            # Gaia's 2004 processors on 151 nodes are nodes of several kinds: no one number is true
            facts["cpus"] = self.max_procs
        return facts | self._noted_facts()

    def _noted_facts(self) -> dict[str, Any]:
        """What Hakaru's own export notes beyond the standard's fields, such as the queues' limits."""
        for note in self.notes:
            if note.startswith(FACTS_NOTE):
                try:
                    noted = json.loads(note.removeprefix(FACTS_NOTE))
                except ValueError:
                    continue
                return noted if isinstance(noted, dict) else {}
        return {}


@source("swf", title="Standard Workload Format (.swf, .swf.gz)")
class Swf:
    takes = ("start",)
    ending = ".swf"

    @staticmethod
    def recognises(path: Path, head: str) -> bool:
        rows = head.splitlines()
        keys = {m[1].lower() for row in rows if (m := HEADER.match(row))}
        first = next((row.split() for row in rows if row.strip() and not row.startswith(";")), [])
        return bool(keys & KNOWN_KEYS) or (
            len(first) == NUM_FIELDS and all(_number(cell) is not None for cell in first)
        )

    @staticmethod
    def read(
        con: DuckDBPyConnection, path: Path, cluster: str, options: Mapping[str, Any]
    ) -> Records:
        read = parse_header(_header_text(path))
        header = _begun(read, options)
        first_s = refuse_other_layouts(con, path, _parsed(path), TITLES, header.start_s) or 0.0
        return Records(
            sql=_query(path, header),
            facts=with_dates(header.facts(), header.start_s + first_s),
            synthetic=header.synthetic,
            warnings=tuple(_warnings(read, options)),
        )


def _header_text(path: Path) -> str:
    """The beginning of a file, with all of its header: some are longer than what formats are told by."""
    start = head(path)
    rows = start.splitlines()[:-1]  # the last may be cut off
    is_whole = any(row.strip() and not row.lstrip().startswith(";") for row in rows)
    return start if is_whole else head(path, LONGEST_HEADER)


def _begun(header: Header, options: Mapping[str, Any]) -> Header:
    """With the start that --start sets, in the zone that is known."""
    if "start" not in options:
        return header
    zone = options.get("zone") or header.zone or options.get("site_zone") or "UTC"
    return replace(header, start_s=parse_moment(options["start"], zone).timestamp())


def _warnings(header: Header, options: Mapping[str, Any]) -> Iterator[str]:
    if "start" in options and header.start_s > FIRST_DATE_S:
        told = datetime.fromtimestamp(header.start_s, UTC)
        yield f"--start replaces the header's UnixStartTime, which is {told:%Y-%m-%d %H:%M} UTC"
    if header.no_zone and not options.get("zone"):
        yield (
            f"TimeZoneString {header.no_zone!r} in the header is not a time zone and is left out; "
            "set it with --zone"
        )


def parse_header(text: str) -> Header:
    """The header fields of a file's beginning; one that cannot be read counts as absent."""
    found = [(m[1].lower(), m[2]) for line in text.splitlines() if (m := HEADER.match(line))]
    last = dict(found)
    start_s = _number(last.get("unixstarttime", ""))
    zone = last.get("timezonestring", "").strip('"')
    return Header(
        start_s=start_s if start_s and 0 < start_s < LARGEST else 0.0,
        zone=zone if is_zone(zone) else None,
        no_zone="" if is_zone(zone) else zone,
        max_procs=_count(last.get("maxprocs", "")),
        max_nodes=_count(last.get("maxnodes", "")),
        queues=_queue_names([value for key, value in found if key == "queue"]),
        notes=tuple(value for key, value in found if key == "note"),
    )


def _queue_names(entries: list[str]) -> dict[int, str]:
    """Names by number. Gaia's log names its queues twice; the later form is the standard's.

    RICC's log has an empty name, and a `0` as the name of queue 2: a number is no name. A name that
    two queues share would make them one, so they keep their numbers.
    """
    matches = [m for entry in entries if (m := QUEUE.fullmatch(entry))]
    names = {int(m[1]): (m["phrase"] or m["word"] or "").strip() for m in matches}
    uses = Counter(names.values())
    return {n: name for n, name in names.items() if not _is_number(name) and uses[name] == 1}


def _is_number(name: str) -> bool:
    return name == "" or _number(name) is not None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _count(text: str) -> int | None:
    """The first whole number: some logs add the sizes of partitions behind it."""
    match = re.match(r"\d+", text)
    return int(match[0]) or None if match else None


def _parsed(path: Path) -> str:
    """The data lines: their number of columns, and each column as a number or null, ids as text."""
    numbers = ", ".join(
        f"cells[{i}] AS {name}" if name in IDS else f"TRY_CAST(cells[{i}] AS DOUBLE) AS {name}"
        for i, (name, _) in enumerate(FIELDS, 1)
    )
    return f"""
        SELECT _line, _text, len(cells) AS num_cells, {numbers}
        FROM (SELECT _line, _text, list_filter(
                  string_split(replace(_text, chr(9), ' '), ' '), lambda cell: cell <> '') AS cells
              FROM ({lines(path)}))
        WHERE cells[1] NOT LIKE ';%'
    """


def _query(path: Path, header: Header) -> str:
    """Canonical columns; numbers that are out of range are null by then, and their line is rejected."""
    known = ", ".join(
        n if n in IDS else f"CASE WHEN {n} BETWEEN 0 AND {LARGEST!r} THEN {n} END AS {n}"
        for n, _ in FIELDS
    )
    return f"""
        WITH parsed AS MATERIALIZED ({_parsed(path)}),
        whole AS (
            SELECT DISTINCT job AS whole_job FROM parsed WHERE status IN (-1, 0, 1, 5)
            AND job IN (SELECT job FROM parsed WHERE status IN (2, 3, 4))),
        judged AS (
            SELECT _line, _text, {_reason()} AS _reason, {known}
            FROM parsed LEFT JOIN whole ON job = whole_job AND status IN (2, 3, 4)),
        timed AS (
            SELECT *, coalesce(status = 5 AND coalesce(run, 0) = 0 AND coalesce(procs, 0) = 0, false)
                      AS never_started,
                   coalesce(nullif(procs, 0), nullif(asked_procs, 0)) AS num_procs
            FROM judged)
        SELECT _line, _text, _reason, CAST(CAST(job AS BIGINT) AS VARCHAR) AS job_id,
               {_id_of("uid")} AS "user", {_id_of("gid")} AS account,
               {_queue_of(header)} AS queue, {_state()} AS state, num_procs AS num_cpus,
               asked_kb * num_procs / 1024 AS memory_mib, nullif(asked, 0) AS requested_s,
               {_moment(header, "submit")} AS submitted_at,
               CASE WHEN NOT never_started THEN {_moment(header, "submit + wait")} END AS started_at,
               CASE WHEN never_started THEN {_moment(header, "submit + wait")}
                    ELSE {_moment(header, "submit + wait + run")} END AS ended_at,
               CASE WHEN NOT never_started THEN wait END AS wait_s,
               CASE WHEN NOT never_started THEN run END AS run_s
        FROM timed
    """


def _moment(header: Header, seconds: str) -> str:
    return f"to_timestamp({header.start_s!r} + {seconds})"


def _id_of(column: str) -> str:
    """An id as it stands, or null for -1; a whole number loses its leading zeros and `.0`."""
    whole = f"regexp_extract({column}, '^([0-9]+)([.]0*)?$', 1)"
    return (
        f"CASE WHEN TRY_CAST({column} AS DOUBLE) = -1 THEN NULL "
        f"ELSE coalesce(CAST(TRY_CAST({whole} AS HUGEINT) AS VARCHAR), {column}) END"
    )


def _text_of(column: str) -> str:
    return f"CAST(CAST({column} AS BIGINT) AS VARCHAR)"


def _queue_of(header: Header) -> str:
    named = " ".join(f"WHEN {n} THEN {quote(name)}" for n, name in header.queues.items())
    return f"CASE queue {named} ELSE {_text_of('queue')} END" if named else _text_of("queue")


def _state() -> str:
    """Null where the log does not say: -1, and parts (2 to 4) of a job that has no line of its own.

    NASA's log has -1 throughout; Gaia's has 127 jobs of status 2, each with one line and no run time.
    """
    return "CASE status WHEN 1 THEN 'completed' WHEN 0 THEN 'failed' WHEN 5 THEN 'cancelled' END"


def _reason() -> str:
    """Why a line cannot be read. Columns that are not used need only be numbers."""
    titles = {name: f"field {i} ({title})" for i, (name, title) in enumerate(FIELDS, 1)}
    # A checkpointed job has a line for the whole of it and one for each part (2 goes on, 3 and 4 are
    # the last, some without a submit time): the whole counts, its parts would count it twice.
    part = "'a part of a checkpointed job; the line of the whole job counts'"
    return first_reason(
        [
            (f"num_cells <> {NUM_FIELDS}", f"'expected {NUM_FIELDS} columns, found ' || num_cells"),
            *(
                (f"NOT coalesce(isfinite({name}), false)", f"'{title} is not a number'")
                for name, title in titles.items()
                if name not in IDS
            ),
            *(
                (f"NOT isfinite(TRY_CAST({n} AS DOUBLE))", f"'{titles[n]} is not a number'")
                for n in IDS
            ),
            *(
                (
                    f"TRY_CAST({n} AS DOUBLE) <> floor(TRY_CAST({n} AS DOUBLE))",
                    f"'{titles[n]} is not a whole number'",
                )
                for n in IDS
            ),
            ("whole_job IS NOT NULL", part),
            *((f"{n} < 0", f"'{titles[n]} is unknown or negative'") for n in ("job", "submit")),
            *(
                (f"({n} < 0 AND {n} <> -1)", f"'{titles[n]} is negative, and not -1 for unknown'")
                for n in USED
            ),
            *((f"{n} > {LARGEST!r}", f"'{titles[n]} is too large'") for n in USED),
            *((f"{n} <> floor({n})", f"'{titles[n]} is not a whole number'") for n in WHOLE),
            ("status > 5", "'status ' || CAST(status AS BIGINT) || ' is not -1 to 5'"),
        ]
    )
