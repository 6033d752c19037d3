"""The machine over time: a bin is shown if those whose jobs ran in it are many, and those who waited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from hakaru.analyses import Result, Selection, Session, passing, rules_of
from hakaru.engine.where import parse_moment
from hakaru.web.privacy._people import FEWEST, people_among, per_file
from hakaru.web.readers import Readers

if TYPE_CHECKING:
    import pyarrow as pa

FOREVER = (
    "timestamp_seconds(32503680000)"  # what still waits or runs does so at the end of every bin
)
ENDS = f"""coalesce(ended_at, CASE WHEN state IN ('pending', 'running') THEN {FOREVER} END, started_at,
                    submitted_at)"""
STAYS = f"""
    SELECT cluster, jobs_all.user, submitted_at AS from_at, coalesce(started_at, {ENDS}) AS to_at,
           false AS runs
    FROM jobs AS jobs_all WHERE {{rules}}
    UNION ALL
    SELECT cluster, jobs_all.user, started_at AS from_at, {ENDS} AS to_at, true AS runs
    FROM jobs AS jobs_all WHERE started_at IS NOT NULL AND {{rules}}
"""
PRESENT = f"""
    SELECT DISTINCT place, stays.user AS holder, runs
    FROM ({STAYS}) AS stays JOIN shown_times ON from_at < until_at AND to_at > since_at
    WHERE stays.cluster = shown_times.cluster
"""
COLUMNS = "cluster, jobs.user, submitted_at, started_at, ended_at, state, num_pes"
Times = Sequence[tuple[str, datetime, datetime]]


def shown_times(readers: Readers, selection: Selection, result: Result) -> list[bool]:
    """Which rows may be shown: in each, and in the others together, nobody or many run, and so wait."""
    times = [_times(result, row) for row in result.rows]
    present = _present(readers, selection, result, times)
    by_file = per_file(readers, selection.clusters)
    rows = [_Present(present.get(i, {}), by_file) for i in range(len(times))]
    hidden = [row for row in rows if row.is_few()]
    order = sorted((row for row in rows if not row.is_few()), key=lambda row: row.num_people)
    while order and hidden and _together(hidden, by_file).is_few():
        hidden.append(order.pop(0))
    gone = {id(row) for row in hidden}
    return [id(row) not in gone for row in rows]


def whole_days(table: pa.Table) -> pa.Table:
    """The first and the last bin begin and end with their days: the log begins with one person's job."""
    import pyarrow as pa

    if "since_at" not in table.column_names or not table.num_rows:
        return table
    since, until = table["since_at"].to_pylist(), table["until_at"].to_pylist()
    since[0] = _midnight(since[0])
    last = until[-1].astimezone(UTC)
    until[-1] = last if last == _midnight(last) else _midnight(last) + timedelta(days=1)
    for name, values in (("since_at", since), ("until_at", until)):
        place = table.column_names.index(name)
        field = table.schema.field(name)
        table = table.set_column(place, field, pa.array(values, field.type))
    return table


@dataclass(frozen=True)
class _Present:
    """Who has jobs that run (True) and that wait (False) in a row."""

    users: dict[bool, set[str | None]]
    by_file: bool

    def is_few(self) -> bool:
        return any(users and self._people(users) < FEWEST for users in self.users.values())

    @property
    def num_people(self) -> int:
        return self._people(set[str | None]().union(*self.users.values()))

    def _people(self, users: set[str | None]) -> int:
        return people_among((user for user in users if user is not None), self.by_file)


def _together(rows: list[_Present], by_file: bool) -> _Present:
    users: dict[bool, set[str | None]] = {}
    for row in rows:
        for runs, held in row.users.items():
            users.setdefault(runs, set()).update(held)
    return _Present(users, by_file)


def _present(
    readers: Readers, selection: Selection, result: Result, times: Times
) -> dict[int, dict[bool, set[str | None]]]:
    rules = passing(rules_of(result.analysis, selection))

    def answer(session: Session) -> list[dict[str, Any]]:
        sql = PRESENT.format(rules=rules)
        session.ask(f"SELECT {COLUMNS} FROM jobs LIMIT 0", selection)
        session.engine.constants("shown_times", _table(times))
        return list(session.engine.query(sql).to_pylist())

    found: dict[int, dict[bool, set[str | None]]] = {}
    question = ("present", result.analysis.id, selection)
    for row in readers.ask(question, answer):
        held = found.setdefault(row["place"], {})
        held.setdefault(row["runs"], set()).add(row["holder"])
    return found


def _table(times: Times) -> pa.Table:
    import pyarrow as pa

    moment = pa.timestamp("us", tz="UTC")
    names, since, until = zip(*times, strict=True) if times else ((), (), ())
    return pa.table(
        {
            "place": pa.array(range(len(times)), pa.int64()),
            "cluster": pa.array(names, pa.string()),
            "since_at": pa.array(since, moment),
            "until_at": pa.array(until, moment),
        }
    )


def _times(result: Result, row: dict[str, Any]) -> tuple[str, datetime, datetime]:
    """The cluster and the time of a row: a bin's, a quarter's, or all there is."""
    cluster = row.get("cluster") or result.selection.clusters[0]
    if "since_at" in row:
        return cluster, row["since_at"], row["until_at"]
    if row["quarter"] == "all":
        return cluster, datetime(1900, 1, 1, tzinfo=UTC), datetime(2900, 1, 1, tzinfo=UTC)
    year, quarter = (int(part) for part in row["quarter"].split("Q"))
    ends = [year * 12 + (quarter - 1) * 3, year * 12 + quarter * 3]
    since, until = (parse_moment(f"{m // 12}-{m % 12 + 1:02}-01", result.zone) for m in ends)
    return cluster, since, until


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)
