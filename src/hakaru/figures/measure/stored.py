"""Runs of the lake as views: only the columns that are shown are read, in one query each."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from hakaru.figures.measure.view import (
    WITH_DOCUMENTS,
    Reading,
    RunView,
    meters_of,
    parse_object,
)
from hakaru.measure._base import Better
from hakaru.measure.compare import Cards, Seen
from hakaru.measure.documents import read_object
from hakaru.measure.record import COUNTS, JUDGED, OWN, PLAIN, Run, from_rows, texts_of, verdict_of
from hakaru.measure.series import Series, Value, build_series, value_of
from hakaru.measure.store import SELFTEST, count_verdicts, is_aside
from hakaru.measure.verdict import ORDER, Verdict, worst
from hakaru.schema import RUNS

if TYPE_CHECKING:
    from hakaru.analyses import Session
    from hakaru.figures.measure.choice import Subject

BETTER = get_args(Better)
COLUMNS = (
    "benchmark", "parameters", "quantity", "unit", "better", "host", "device", "verdict", "reason",
    "num_repetitions", "median", "low", "high", "reference", "compared_with", "place", "raw", "validity",
)  # fmt: skip


@dataclass(frozen=True)
class Listed:
    """A run in a list: when, what, and how many measurements of each verdict."""

    id: str
    cluster: str
    label: str | None
    source: str
    started_at: datetime
    benchmarks: tuple[str, ...]
    counts: dict[Verdict, int]

    @classmethod
    def of(cls, run: Run) -> Listed:
        judged = [each for each in run.measurements if not each.is_trial]
        return cls(
            run.id, run.cluster, run.label, run.source, run.started_at,
            tuple(sorted({each.benchmark for each in run.measurements})),
            dict(Counter(each.verdict for each in judged)),
        )  # fmt: skip

    @property
    def verdict(self) -> Verdict:
        """As that of the run: the steps of a search do not count."""
        return worst(self.counts)

    @property
    def is_selftest(self) -> bool:
        """Whether the meter measured only itself."""
        return self.benchmarks == (SELFTEST,) and self.source == OWN

    @property
    def is_aside(self) -> bool:
        """Whether it is a self-test or a gate's, which are shown only where they are asked for."""
        return is_aside(self.benchmarks, self.label)

    @property
    def num_measurements(self) -> int:
        return sum(self.counts.values())


def list_runs(session: Session) -> list[Listed]:
    """The runs of all clusters, the newest first."""
    _scan(session)
    rows = session.engine.query(
        "SELECT cluster, run_id, benchmark, max(label) AS label, max(source) AS source, "
        "min(started_at) AS started_at FROM runs_stored GROUP BY cluster, run_id, benchmark"
    ).to_pylist()
    judged = "FROM runs_stored WHERE position('\"trial\": ' IN coalesce(parameters, '')) = 0"
    plain = session.engine.query(
        f"SELECT cluster, run_id, verdict, count(*) AS num {judged} AND {PLAIN} "
        "GROUP BY cluster, run_id, verdict"
    ).to_pylist()
    odd = session.engine.query(
        f"SELECT cluster, run_id, {', '.join(JUDGED)} {judged} AND NOT {PLAIN}"
    ).to_pylist()
    counts = count_verdicts(plain, odd)
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        runs.setdefault((row["cluster"], row["run_id"]), []).append(row)
    found = [_listed(*key, listed, counts.get(key, {})) for key, listed in runs.items()]
    return sorted(found, key=lambda run: (run.started_at, run.id), reverse=True)


def newest(runs: Sequence[Listed]) -> Listed:
    """The run to look at, of a list with the newest first: a self-test or gate only if there is no other."""
    return next((each for each in runs if not each.is_aside), runs[0])


def before(runs: Sequence[Listed], run: Listed) -> Listed | None:
    """The newest earlier run that has a benchmark in common with this one, self-tests and gates left out."""
    earlier = [
        each
        for each in runs
        if (each.started_at, each.id) < (run.started_at, run.id)
        and not each.is_aside
        and set(each.benchmarks) & set(run.benchmarks)
    ]
    return max(earlier, key=lambda each: (each.started_at, each.id), default=None)


def load_view(session: Session, cluster: str, run: str) -> RunView:
    """One run; it must be there."""
    _scan(session)
    table = _ask(
        session,
        f"SELECT {', '.join(COLUMNS)}, started_at, label, source FROM runs_stored "
        "WHERE cluster = {0} AND run_id = {1}",
        (cluster, run),
        "started_at, host, device, quantity",
    )
    first = {name: table[name][0].as_py() for name in ("label", "source", "started_at")}
    place = parse_object(table["place"][0].as_py() or "")
    rows = table.select(COLUMNS).to_pylist()
    validities = {row["host"]: row["validity"] for row in reversed(rows) if row["num_repetitions"]}
    meters = meters_of({host: read_object(text or "") for host, text in validities.items()})
    shared: dict[str, str] = {}
    return RunView(
        run, cluster, first["started_at"], tuple(_reading(row, shared) for row in rows),
        first["source"] or OWN, first["label"], texts_of(place, "left_out"),
        meters, texts_of(place, "notes"),
    )  # fmt: skip


def load_run(session: Session, cluster: str, run: str) -> Run:
    """One run with every repetition, to compare it; it must be there."""
    _scan(session)
    table = _ask(
        session,
        "SELECT * FROM runs_stored WHERE cluster = {0} AND run_id = {1}",
        (cluster, run),
        "started_at, host, device, quantity",
    )
    (found,) = from_rows(table.to_pylist())
    return found


def load_series(
    session: Session,
    cluster: str,
    subject: Subject,
    host: str | None = None,
    device: str | None = None,
) -> Series:
    """One quantity over the runs of a cluster: of one device, or the median over all of a model."""
    _scan(session)
    wanted = {
        "cluster": cluster, "benchmark": subject.benchmark, "parameters": subject.parameters,
        "quantity": subject.quantity,
        # a model is part of the place, which is JSON with sorted keys
        "model": f'"model": {json.dumps(subject.model)}',
        "host": host, "device": device,
    }  # fmt: skip
    used = {name: value for name, value in wanted.items() if value is not None}
    at = {name: f"{{{number}}}" for number, name in enumerate(used)}
    tests = [f"{name} = {at[name]}" for name in ("cluster", "benchmark", "parameters", "quantity")]
    tests.append(f"(position({at['model']} IN place) > 0 OR position('\"model\": ' IN place) = 0)")
    table = _ask(
        session,
        f"SELECT run_id, started_at, label, host, device, device_uuid, low, high, {', '.join(JUDGED)}, "
        f"{PLAIN} AS is_plain FROM runs_stored WHERE verdict IN ('good', 'slow') AND median IS NOT NULL AND "
        f"{' AND '.join([*tests, *_of_card(at)])}",
        tuple(used.values()),
        "started_at, run_id",
    )
    table = _that_count(table)
    where = " ".join(filter(None, (host, device)))
    if host and device:
        table, note = _of_one_card(table, f"{host}/{device}")
        where += note
    return build_series(_values(table), subject.better, where)


def _scan(session: Session) -> None:
    session.engine.scan("runs_stored", RUNS, session.lake.files(RUNS))


def _ask(session: Session, sql: str, values: Iterable[str], order: str) -> pa.Table:
    session.engine.define("runs_found", sql, tuple(values))
    return session.engine.query(f"SELECT * FROM runs_found ORDER BY {order}")


def _listed(
    cluster: str, id: str, rows: list[dict[str, Any]], counts: Mapping[Verdict, int]
) -> Listed:
    return Listed(
        id,
        cluster,
        next((row["label"] for row in rows if row["label"]), None),
        next((row["source"] for row in rows if row["source"]), OWN),
        min(row["started_at"] for row in rows),
        tuple(sorted({row["benchmark"] for row in rows})),
        {verdict: counts[verdict] for verdict in ORDER if counts.get(verdict)},
    )


def _reading(row: dict[str, Any], shared: dict[str, str]) -> Reading:
    """As `record` reads a row back; the rows of one document share its text."""
    place = parse_object(row.pop("place") or "")
    verdict, reason = verdict_of(row)
    numbers = {name: _finite(row[name]) for name in ("median", "low", "high", "reference")}
    kind = row["device"].partition(":")[0]
    kept = {name: value for name, value in row.items() if name not in ("raw", "validity")}
    text = row["validity"] if row["benchmark"] in WITH_DOCUMENTS else None
    return Reading(**(kept | numbers | {
        "verdict": verdict, "reason": reason, "model": str(place.get("model") or kind),
        "unit": row["unit"] or "", "parameters": row["parameters"] or "{}",
        "compared_with": row["compared_with"] or "",
        "better": row["better"] if row["better"] in BETTER else "higher",
        "num_repetitions": row["num_repetitions"] or 0,
        "validity": shared.setdefault(text, text) if text else "",
    }))  # fmt: skip


def _that_count(table: pa.Table) -> pa.Table:
    """The rows whose numbers count; those that surely do are not looked at one by one."""
    plain, odd = table.filter(table["is_plain"]), table.filter(pc.invert(table["is_plain"]))
    rows = odd.select(JUDGED).to_pylist()
    if not rows:
        return plain
    kept = odd.filter([verdict_of(row)[0] in COUNTS for row in rows])
    return pa.concat_tables([plain, kept]).sort_by(
        [("started_at", "ascending"), ("run_id", "ascending")]
    )


def _of_card(at: dict[str, str]) -> list[str]:
    """Rows of a device, and of the cards that were ever there, as a card's number changes."""
    own = [f"{name} = {at[name]}" for name in ("host", "device") if name in at]
    if len(own) < 2:
        return own
    there = f"SELECT device_uuid FROM runs_stored WHERE {' AND '.join(own)}"
    return [f"(({' AND '.join(own)}) OR device_uuid IN ({there} AND device_uuid IS NOT NULL))"]


def _of_one_card(table: pa.Table, place: str) -> tuple[pa.Table, str]:
    """The rows of the card that was last seen in a place, and what its place does not tell."""
    names = ("run_id", "host", "device", "device_uuid")
    seen = [Seen(*row) for row in zip(*(table[name].to_pylist() for name in names), strict=True)]
    cards = Cards(seen)
    keys = [cards.key(each) for each in seen]
    there = [key for key, each in zip(keys, seen, strict=True) if each.place == place]
    if not there:
        return table, ""
    kept = [at for at, key in enumerate(keys) if key == there[-1]]
    return table.take(kept), cards.note(there[-1])


def _values(table: pa.Table) -> list[Value]:
    """The rows of each run together; a moment takes long to convert, so that only the first's is."""
    medians = table["median"].to_pylist()
    places: dict[str, list[int]] = {}
    for at, run in enumerate(table["run_id"].to_pylist()):
        places.setdefault(run, []).append(at)
    found = []
    for run, own in places.items():
        first = {
            name: table[name][own[0]].as_py() for name in ("started_at", "label", "low", "high")
        }
        numbers = [medians[at] for at in own]
        ends = (first["low"], first["high"])
        found.append(value_of(run, first["started_at"], first["label"], numbers, ends))
    return found


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
