"""From files to the lake: read, check, tell the bad rows from the good ones, and upsert.

Everything is staged first; the lake changes in one commit a table at the end, or not at all.
"""

from __future__ import annotations

import json
import shlex
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import connect, one_row
from hakaru.errors import SourceError
from hakaru.formats import logs
from hakaru.lake import Conflicts, Lake, Upsert
from hakaru.schema import CLUSTERS, INGESTS, JOBS, REJECTS
from hakaru.settings import Engine as EngineSettings
from hakaru.settings import Ingest, check_cluster_name, load
from hakaru.sources._base import Source, detect, load_all
from hakaru.sources._dates import num_dated_anew, without_relative
from hakaru.sources._inputs import named, receive
from hakaru.sources._options import (
    check_facts,
    checked,
    refuse_other_zone,
    refuse_unused,
    said_by,
    warnings_on_zone,
)
from hakaru.sources._overwritten import tell_apart
from hakaru.sources._shifted import refuse_shifted
from hakaru.sources._stage import CHECKS, Batch, Progress, read_all
from hakaru.sources._strangers import refuse_stranger

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["CHECKS", "Progress", "Summary", "ingest", "log_ingest", "put_facts"]

MAX_REASONS = 20
FORMAT_OF = {"fields": "sacct", "mapping": "table"}  # options that only one format takes
MANY_MOVED = 100
TO_THE_ID = (
    "If they are different jobs (an array's tasks, attempts), add the column that sets them apart to the id, "
    'in a mapping: job_id = ["ID", "TASK"] (--format table --guess looks for it)'
)
ONE_BY_ONE = (
    "If the log is of several machines, whose ids are not unique together, write one file for each and read "
    "it with a --cluster of its own"
)


@dataclass(frozen=True)
class Summary:
    """What an ingest did, for the last lines on the terminal."""

    cluster: str
    sources: list[str]
    num_files: int
    num_read: int
    upsert: Upsert
    num_rejected: int
    rejected_by_reason: dict[str, int]
    first_rejects: list[tuple[str, int, str]]
    since: datetime | None
    until: datetime | None
    zone: ZoneInfo  # the site's, for dates
    num_users: int
    users_note: str
    num_gpus: int | None
    seconds: float
    max_missing: float = 0.01
    has_run_times: bool = True  # some job is in the table of run times by size
    has_states: bool = True
    warnings: list[str] = field(default_factory=list)

    @property
    def missing(self) -> float | None:
        """The share of the rows that could not be read or kept, where it is above the limit."""
        share = (self.num_rejected + self.upsert.num_dropped) / self.num_read
        return share if share > self.max_missing else None


def ingest(
    lake: Lake,
    paths: Sequence[Path],
    cluster: str,
    *,
    format: str | None = None,
    options: Mapping[str, Any] | None = None,
    strict: bool = False,
    engine: EngineSettings | None = None,
    progress: Progress | None = None,
    names: Mapping[Path, str] | None = None,
    max_missing: float | None = None,
) -> Summary:
    """Read log files into the lake as one cluster's jobs.

    `names` says what to call a path that is not the log's own place, such as a copy of standard input.
    """
    check_cluster_name(cluster)
    options = checked(options)
    format = format or next((FORMAT_OF[name] for name in options if name in FORMAT_OF), None)
    if not paths:
        raise SourceError("no file to read")
    settings = load(lake.workspace, lake.facts())
    limits = settings.ingest
    if max_missing is not None:
        limits = replace(limits, max_missing=max_missing)
    started_at = datetime.now(UTC)
    with lake.staging() as folder:
        inputs = receive(paths, folder, limits, names or {})
        with named(inputs):
            chosen = [(each.path, _source_of(each.path, format)) for each in inputs]
            for source in {source.id: source for _, source in chosen}.values():
                source.check([path for path, s in chosen if s is source])
            refuse_unused(options, [source for _, source in chosen])
            refuse_other_zone(lake, cluster, options)
            site = settings.cluster(cluster)
            options["site_zone"] = site.zone if site.has_zone else None
            with closing(connect(engine or EngineSettings(), spill_to=str(folder))) as con:
                by_path = {each.path: each for each in inputs}
                batch = Batch(con, cluster, strict, folder, limits, by_path)
                read_all(batch, chosen, options, progress)
                batch.facts |= said_by(options)
                check_facts(cluster, batch.facts)
                return _store(lake, batch, chosen, started_at)


def _source_of(path: Path, format: str | None) -> Source:
    if format is None:
        return detect(path)
    source = load_all().get(format)
    refuse_stranger(path, format)
    return source


def guess_mapping(path: Path) -> str:
    """A mapping for `--format table`, proposed from a file, packed or not, or from a pipe."""
    from hakaru.sources.table import guess

    with tempfile.TemporaryDirectory(prefix="hakaru-") as folder:
        (log,) = receive([path], Path(folder), Ingest(), {})
        with named([log]):
            refuse_stranger(log.path, "table")
            copied, shown = shlex.quote(str(log.path)), shlex.quote(log.shown)
            return guess(log.path).replace(copied, shown)


def _store(
    lake: Lake, batch: Batch, chosen: Sequence[tuple[Path, Source]], started_at: datetime
) -> Summary:
    con = batch.con
    num_read, num_rejected = batch.counts()
    sources = sorted({source.id for _, source in chosen})
    if num_read == 0:
        raise SourceError(
            f"no job in {', '.join(batch.shown(path) for path, _ in chosen)}; nothing was stored"
        )
    if num_rejected == num_read:
        file, line, reason = con.execute(
            "SELECT file, line, reason FROM staged_rejects ORDER BY file, line LIMIT 1"
        ).fetchall()[0]
        none = "The only row could not" if num_read == 1 else f"None of the {num_read:,} rows could"
        raise SourceError(
            f"{file}, line {line}: {reason}. {none} be read as "
            f"{', '.join(sources)}, so nothing was stored: is it another format?"
        )
    num_dated = num_dated_anew(lake, batch)
    if not num_dated:
        refuse_shifted(lake, batch)
        tell_apart(lake, batch)
    if batch.strict:
        _refuse_conflicts(lake, con, batch.cluster, sources)
    if num_dated:
        # before the facts: where a kill leaves them, the next ingest does the same again
        cluster = f"(SELECT {quote(batch.cluster)} AS cluster)"
        lake.replace(con, JOBS, "staged", cluster, ("cluster",))
        batch.facts = without_relative(lake, batch.cluster) | batch.facts
    # Facts and rejects first: a kill in between must not leave jobs whose faults nobody was told of.
    # The ingest log comes last, when there is an end to tell of.
    zone_before = lake.facts().get(batch.cluster, {}).get("zone")
    put_facts(lake, con, batch.cluster, batch.facts, started_at)
    batch.warnings += warnings_on_zone(lake, batch.cluster, batch.facts, zone_before)
    lake.replace(con, REJECTS, "staged_rejects", _files_of(batch, chosen), ("cluster", "file"))
    upsert = lake.upsert(con, JOBS, "staged", id_column="job_id")
    if num_dated:
        num_new = upsert.num_unchanged - num_dated
        upsert = replace(upsert, num_new=num_new, num_updated=num_dated, num_unchanged=0)
        batch.warnings.append(
            f"{_jobs(num_dated)} of {batch.cluster} that had relative dates "
            f"{'was' if num_dated == 1 else 'were'} replaced by these"
        )
    log_ingest(
        lake,
        con,
        cluster=batch.cluster,
        sources=sources,
        inputs=[batch.name(path) for path, _ in chosen],
        started_at=started_at,
        num_read=num_read,
        num_rejected=num_rejected,
        upsert=upsert,
        synthetic=batch.synthetic,
    )
    zone = load(lake.workspace, lake.facts()).cluster(batch.cluster).zone
    batch.warnings += [
        *_folded(batch),
        *_warnings(lake.forget_command(batch.cluster), upsert, sources),
    ]
    return _summary(batch, sources, len(chosen), num_read, num_rejected, upsert, started_at, zone)


def log_ingest(
    lake: Lake,
    con: DuckDBPyConnection,
    *,
    cluster: str,
    sources: Sequence[str],
    inputs: Sequence[str],
    started_at: datetime,
    num_read: int,
    num_rejected: int,
    upsert: Upsert,
    synthetic: bool = False,
    ingest_id: str | None = None,
) -> None:
    """Note in the lake that an ingest has ended, and what became of its records."""
    row = {
        "ingest_id": ingest_id or uuid.uuid4().hex,
        "cluster": cluster,
        "source": ", ".join(sources),
        "inputs": list(inputs),
        "synthetic": synthetic,
        "started_at": started_at,
        "ended_at": datetime.now(UTC),
        "num_read": num_read,
        "num_rejected": num_rejected,
        **asdict(upsert),
        "num_dropped": upsert.num_dropped,
    }
    lake.put_rows(con, INGESTS, [row])


def put_facts(
    lake: Lake,
    con: DuckDBPyConnection,
    cluster: str,
    said: Mapping[tuple[str, str], Mapping[str, Any]],
    said_at: datetime,
) -> None:
    """Keep what headers say of a cluster, by source and file; a file's last word replaces the others."""
    before = lake.spoken(cluster)
    texts = {key: json.dumps(facts, sort_keys=True) for key, facts in said.items()}
    rows = [
        {"cluster": cluster, "source": key[0], "file": key[1], "said_at": said_at, "facts": text}
        for key, text in texts.items()
        if text != before.get(key, "{}")
    ]
    lake.put_rows(con, CLUSTERS, rows)


def _files_of(batch: Batch, chosen: Sequence[tuple[Path, Source]]) -> str:
    """A relation of the files that were read, by the names under which their rejects are kept."""
    listed = ", ".join(quote(batch.name(path)) for path, _ in chosen)
    return f"(SELECT {quote(batch.cluster)} AS cluster, unnest([{listed}]) AS file)"


def _refuse_conflicts(
    lake: Lake, con: DuckDBPyConnection, cluster: str, sources: Sequence[str]
) -> None:
    found = lake.conflicts(con, JOBS, "staged")
    forget, outcome = lake.forget_command(cluster), "; nothing was stored (--strict)"
    for told in describe_conflicts(forget, *found, sources=sources, outcome=outcome):
        raise SourceError(told)


def describe_conflicts(
    forget: str,
    inside: Conflicts,
    stored: Conflicts,
    sources: Sequence[str],
    outcome: str = ". One row of each job is kept",
) -> list[str]:
    """Which jobs contradict one another, in what, and what to do; `forget` removes the cluster."""
    told = []
    if inside.num_rows:
        told.append(
            f"{_contradict(inside)} another row of the same job id and submit time "
            f"{_differing(inside)}{outcome}. " + (TO_THE_ID if "table" in sources else ONE_BY_ONE)
        )
    if stored.num_rows:
        told.append(
            f"{_contradict(stored)} what an earlier ingest stored {_differing(stored)}{outcome}. If the "
            f"mapping or --zone has changed, start again: {forget}"
        )
    return told


def _contradict(found: Conflicts) -> str:
    return "1 row contradicts" if found.num_rows == 1 else f"{found.num_rows:,} rows contradict"


def _differing(found: Conflicts) -> str:
    jobs = "job" if len(found.ids) == 1 else "jobs"
    more = ", …" if found.num_rows > len(found.ids) > 1 else ""
    verb = "differs" if len(found.columns) == 1 else "differ"
    return f"({jobs} {', '.join(found.ids)}{more}: {', '.join(found.columns)} {verb})"


def _warnings(forget: str, upsert: Upsert, sources: Sequence[str]) -> list[str]:
    told = describe_conflicts(forget, upsert.inside, upsert.stored, sources)
    return [*told, *_zone_warnings(forget, upsert)]


def _zone_warnings(forget: str, upsert: Upsert) -> list[str]:
    """A wrong zone shows as jobs that are there already, at another time, and none at the same."""
    moved, alone = upsert.num_moved, not (upsert.num_unchanged or upsert.num_updated)
    if moved <= upsert.num_new / 2 or not (moved > MANY_MOVED or alone):
        return []
    return [
        f"{moved:,} of the new jobs {'was' if moved == 1 else 'were'} there already with another submit "
        f"time: a wrong --zone or --start? To start again: {forget}"
    ]


def _jobs(number: int) -> str:
    return f"{number:,} job" if number == 1 else f"{number:,} jobs"


def _folded(batch: Batch) -> list[str]:
    num_lines, num_jobs = batch.folded()
    if not num_lines:
        return []
    lines, jobs = (
        ("line was" if num_lines == 1 else "lines were"),
        "job" if num_jobs == 1 else "jobs",
    )
    return [
        f"{num_lines:,} {lines} joined to the names or comments of {num_jobs:,} {jobs}, "
        "as text with line breaks in it"
    ]


def _summary(
    batch: Batch,
    sources: list[str],
    num_files: int,
    num_read: int,
    num_rejected: int,
    upsert: Upsert,
    started_at: datetime,
    zone: str,
) -> Summary:
    con = batch.con
    since, until, users, gpus, has_run_times, num_logs = one_row(
        con,
        'SELECT min(submitted_at), max(submitted_at), count(DISTINCT "user"), max(num_gpus), '
        "coalesce(bool_or(run_s >= 60 AND state = 'completed' AND greatest(num_gpus, num_cpus) > 0), false), "
        f"{logs.count_logs('staged.user', 'job_id')} FROM staged",
    )
    per_file = any(facts.get("users_per_file") for facts in batch.facts.values())
    first = con.execute(
        "SELECT file, line, reason FROM staged_rejects ORDER BY file, line LIMIT 5"
    ).fetchall()
    return Summary(
        cluster=batch.cluster,
        sources=sources,
        num_files=num_files,
        num_read=num_read,
        upsert=upsert,
        num_rejected=num_rejected,
        rejected_by_reason=_reasons(con),
        first_rejects=first,
        since=since,
        until=until,
        zone=ZoneInfo(zone),
        num_users=users,
        users_note=logs.told(num_logs, per_file),
        num_gpus=gpus,
        has_run_times=has_run_times,
        has_states=bool(one_row(con, "SELECT count(state) FROM staged")[0]),
        max_missing=batch.limits.max_missing,
        seconds=(datetime.now(UTC) - started_at).total_seconds(),
        warnings=batch.warnings,
    )


def _reasons(con: DuckDBPyConnection) -> dict[str, int]:
    """Rejects by reason; where each names a value of its own, the values are left out."""
    unquoted = """regexp_replace(reason, '''[^'']*''|"[^"]*"', '…', 'g')"""
    for reason in ("reason", unquoted):
        found = con.execute(
            f"SELECT {reason} AS why, count(*) FROM staged_rejects "
            "GROUP BY why ORDER BY count(*) DESC, why"
        ).fetchall()
        if len(found) <= MAX_REASONS:
            break
    return dict(found)
