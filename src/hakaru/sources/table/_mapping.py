"""The mapping of a home-made log: a small TOML, read and checked; every problem is told at once.

`docs/table-mapping.md` is its guide. A canonical column names a source column, or an inline table that
says more; what kind of values the column holds decides which keys that table may have.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

from hakaru import settings
from hakaru.errors import SettingsError, list_problems
from hakaru.schema import JOBS, STATES

Kind = Literal["text", "state", "list", "count", "duration", "memory", "time"]

DURATION_UNITS = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0,
}  # fmt: skip
MEMORY_UNITS = {  # in MiB; GB is 1000³ bytes and GiB 1024³
    "B": 2.0**-20,
    **{f"{letter}iB": 2.0 ** (10 * power - 20) for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}B": 1e3**power / 2**20 for power, letter in enumerate("KMGT", 1)},
}
UNITS: dict[Kind, tuple[str, ...]] = {
    "duration": (*DURATION_UNITS, "duration"),
    "memory": (*MEMORY_UNITS, "size"),
    "time": tuple(DURATION_UNITS),
}
KEYS: dict[Kind, tuple[str, ...]] = {
    "text": ("column", "join", "words", "value", "missing"),
    "state": ("column", "value", "missing"),
    "list": ("column", "separator", "missing"),
    "count": ("column", "times", "value", "missing"),
    "duration": ("column", "unit", "times", "value", "missing"),
    "memory": ("column", "unit", "times", "value", "missing"),
    "time": ("column", "join", "unit", "format", "missing"),
}
SECTIONS = ("columns", "time", "states", "values", "csv", "cluster")
SHAPE_KEYS = ("delimiter", "quote", "skip", "comment", "names")
DIRECTIVE = re.compile(r"%(-?[a-zA-Z%])")
DIRECTIVES = set("aAbBcdfgHIjmMnpSuUVwWxXyYzZ%") | {f"-{c}" for c in "dHIjmMSyU"}


@dataclass(frozen=True)
class Shape:
    """How a text file is laid out; an unknown delimiter is found from the header."""

    delimiter: str | None = None
    quote: str = '"'
    skip: int = 0
    comment: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """Where the values of one canonical column come from, and how they are written."""

    kind: Kind
    columns: tuple[str, ...] = ()
    join: str = " "
    times: str | float | None = None
    unit: str | None = None
    format: str | None = None
    start: str | None = None
    separator: str = ","
    words: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    value: str | float | None = None
    line: bool = False

    @property
    def sources(self) -> list[str]:
        return [*self.columns, *([self.times] if isinstance(self.times, str) else [])]


@dataclass(frozen=True)
class TableMapping:
    """A checked mapping; `identity` says that the file already has canonical columns."""

    cells: Mapping[str, Cell]
    zone: str = "UTC"
    facts: Mapping[str, Any] = field(default_factory=dict)
    identity: bool = False
    start: str | None = None

    def begun(self, start: str | None) -> TableMapping:
        """With numbers in times that count from `start`."""
        times = {name: cell for name, cell in self.cells.items() if cell.kind == "time"}
        moved = {name: replace(cell, start=start) for name, cell in times.items()}
        return replace(self, cells={**self.cells, **moved}, start=start)


def kind_of(name: str) -> Kind:
    """What kind of values a canonical column holds."""
    column = JOBS.column(name)
    if name == "state":
        return "state"
    if column.type == "double":
        return "memory" if column.unit == "MiB" else "duration"
    kinds: dict[str, Kind] = {"bigint": "count", "timestamp": "time", "list<string>": "list"}
    return kinds.get(column.type, "text")


def identity(columns: Collection[str]) -> TableMapping | None:
    """The mapping of a file whose columns are canonical by name; None if it lacks the key's."""
    if not {"job_id", "submitted_at"} <= set(columns):
        return None
    names = [name for name in JOBS.names if name in columns and name != "cluster"]
    cells = {name: Cell(kind_of(name), (name,)) for name in names}
    return TableMapping(cells, identity=True)


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{path}: the mapping cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: the mapping is not valid TOML: {error}") from None


def parse_shape(raw: Mapping[str, Any], problems: list[str]) -> Shape:
    """The `[csv]` section; what is wrong in it is noted and its default taken."""
    check = _Checker(problems)
    section = check.section(raw, "csv", SHAPE_KEYS)

    def pick(key: str, accepts: Callable[[Any], bool], expected: str, default: Any) -> Any:
        value = section.get(key, default)
        if key in section and not accepts(value):
            problems.append(f"[csv] {key}: expected {expected}, found {value!r}")
            return default
        return value

    return Shape(
        delimiter=pick("delimiter", lambda v: _text(v) and len(v) == 1, "one character", None),
        quote=pick("quote", lambda v: isinstance(v, str) and len(v) < 2, "a character or ''", '"'),
        skip=pick("skip", lambda v: type(v) is int and v >= 0, "a number of lines", 0),
        comment=pick("comment", _text, "the beginning of a comment line", ""),
        names=tuple(pick("names", _texts, "a list of column names", ())),
    )


def parse(
    raw: Mapping[str, Any], columns: Sequence[str], where: str, problems: list[str]
) -> TableMapping:
    """The mapping for a file with these columns, or one error that lists all its problems."""
    check = _Checker(problems, columns)
    for name in raw:
        if name not in SECTIONS:
            problems.append(f"[{name}]: unknown section; known: {', '.join(SECTIONS)}")
    given = check.section(raw, "columns", JOBS.names, near="canonical column")
    missing = check.texts(check.section(raw, "values", ("missing",)), "missing", "[values]")
    cells = {n: check.cell(n, v, missing) for n, v in given.items() if n in JOBS.names}
    if "state" in cells:
        states = {**{word: word for word in STATES}, **check.states(raw)}
        cells["state"] = Cell(**{**vars(cells["state"]), "words": states})
    elif "states" in raw:
        problems.append('[states]: no column holds the state; add state = "…" under [columns]')
    start, (facts, zone) = check.start(raw), check.cluster(raw)
    check.required(cells)
    if problems:
        raise SettingsError(
            f"{list_problems(where, problems)}\n"
            "docs/table-mapping.md explains the mapping; --guess proposes one."
        )
    return TableMapping(cells, zone, facts).begun(start)


class _Checker:
    """Reads the sections and collects every problem, so that a mapping is mended in one go."""

    def __init__(self, problems: list[str], columns: Sequence[str] = ()) -> None:
        self.problems = problems
        self.columns = columns

    def section(
        self, raw: Mapping[str, Any], name: str, keys: Sequence[str], near: str = "key"
    ) -> Mapping[str, Any]:
        section = raw.get(name, {})
        if not isinstance(section, Mapping):
            self.problems.append(f"[{name}]: expected a table, found {section!r}")
            return {}
        for key in section:
            if key not in keys:
                self.problems.append(f"[{name}] {key}: {_unknown(near, key, keys)}")
        return section

    def cell(self, name: str, value: Any, missing: tuple[str, ...]) -> Cell:
        where, kind = f"[columns] {name}", kind_of(name)
        table = {"column": value} if isinstance(value, str | list) else value
        if name == "cluster":
            self.problems.append(f"{where}: the cluster's name is given by --cluster")
            return Cell(kind)
        if not isinstance(table, Mapping):
            self.problems.append(f'{where}: expected "column" or {{ column = … }}, found {value!r}')
            return Cell(kind)
        if name == "job_id" and dict(table) == {"line": True}:
            return Cell(kind, line=True)
        extra = ("line",) if name == "job_id" else ()
        for key in table:
            if key not in (*KEYS[kind], *extra):
                self.problems.append(f"{where}: {_unknown('key', key, (*KEYS[kind], *extra))}")
        if "line" in table and name == "job_id":
            self.problems.append(f"{where}: write {{ line = true }} and nothing beside it")
        return Cell(
            kind,
            columns=self.sources(where, table),
            join=self.text(table, "join", where, " " if kind == "time" else "."),
            times=self.times(where, table),
            unit=self.unit(where, kind, table),
            format=self.format(where, table),
            separator=self.text(table, "separator", where, ","),
            words=self.words(where, table.get("words", {})),
            missing=(*missing, *self.texts(table, "missing", where)),
            value=self.value(where, kind, table),
        )

    def sources(self, where: str, table: Mapping[str, Any]) -> tuple[str, ...]:
        value = table.get("column", ())
        if ("column" in table) == ("value" in table) and "line" not in table:
            self.problems.append(f"{where}: give either `column` or a constant `value`")
        names = (value,) if isinstance(value, str) else value
        if not _texts(names) or (len(names) > 1 and "join" not in KEYS[kind_of(where.split()[1])]):
            self.problems.append(f"{where}: expected the name of one column, found {value!r}")
            return ()
        for name in names:
            self.source(where, name)
        return tuple(names)

    def source(self, where: str, name: str) -> None:
        count = self.columns.count(name)
        if count == 0:
            self.problems.append(f"{where}: {_unknown('source column', name, self.columns)}")
        if count > 1:
            self.problems.append(
                f"{where}: {count} columns of the file are called {name!r}; give them names of "
                "their own with [csv] names = […] and skip = 1"
            )

    def times(self, where: str, table: Mapping[str, Any]) -> str | float | None:
        value = table.get("times")
        if isinstance(value, str):
            self.source(f"{where}: times", value)
        elif value is not None and (not _number(value) or value <= 0):
            self.problems.append(f"{where}: times: expected a column or a number, found {value!r}")
            return None
        return value

    def unit(self, where: str, kind: Kind, table: Mapping[str, Any]) -> str | None:
        value = table.get("unit")
        if value is None or kind not in UNITS or value in UNITS[kind]:
            return value
        self.problems.append(f"{where}: unknown unit {value!r}; known: {', '.join(UNITS[kind])}")
        return None

    def format(self, where: str, table: Mapping[str, Any]) -> str | None:
        value = table.get("format")
        if value is None:
            return None
        if "unit" in table:
            self.problems.append(f"{where}: give `format` (text) or `unit` (epoch), not both")
        found = DIRECTIVE.findall(value) if isinstance(value, str) else []
        bad = [f"%{directive}" for directive in found if directive not in DIRECTIVES]
        if bad or not found:
            what = f"{', '.join(bad)} in {value!r}" if bad else f"{value!r}"
            self.problems.append(
                f"{where}: format {what} is not known; write e.g. %Y/%m/%d %H:%M:%S"
            )
            return None
        return str(value)

    def value(self, where: str, kind: Kind, table: Mapping[str, Any]) -> str | float | None:
        value = table.get("value")
        if value is None or kind not in ("text", "state", "count", "duration", "memory"):
            return None
        if kind == "state" and value not in STATES:
            self.problems.append(f"{where}: {_unknown('state', value, STATES)}")
        elif kind == "text" and not _text(value):
            self.problems.append(f"{where}: value: expected a text, found {value!r}")
        elif kind == "count" and type(value) is not int:
            self.problems.append(f"{where}: value: expected a whole number, found {value!r}")
        elif kind in ("duration", "memory") and not _number(value):
            self.problems.append(f"{where}: value: expected a number, found {value!r}")
        return value  # type: ignore[no-any-return]

    def words(self, where: str, value: Any) -> dict[str, str]:
        if isinstance(value, Mapping) and all(isinstance(word, str) for word in value.values()):
            return dict(value)
        self.problems.append(f'{where}: words: expected {{ their = "ours" }}, found {value!r}')
        return {}

    def states(self, raw: Mapping[str, Any]) -> dict[str, str]:
        """The log's words in lower case, since logs mix cases: each to one of ours."""
        section = raw.get("states", {})
        if not isinstance(section, Mapping):
            self.problems.append(f"[states]: expected a table, found {section!r}")
            return {}
        states: dict[str, str] = {}
        for word, state in section.items():
            if state not in STATES:
                self.problems.append(f"[states] {word}: {_unknown('state', state, STATES)}")
            elif states.setdefault(word.lower(), state) != state:
                self.problems.append(f"[states] {word}: given twice (case does not count)")
        return states

    def cluster(self, raw: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """The facts of `[cluster]`, and the zone; one of the two zones stands for both."""
        zone = self.section(raw, "time", ("zone", "start")).get("zone")
        try:
            zone = None if zone is None else settings.check_zone(str(zone))
        except SettingsError as error:
            self.problems.append(f"[time] zone: {error}")
            zone = None
        facts = _plain(raw.get("cluster", {}))
        if not isinstance(facts, dict):
            self.problems.append(f"[cluster]: expected a table, found {facts!r}")
            facts = {}
        try:
            settings.parse({}, {"cluster": facts}, "")
        except SettingsError as error:
            found = [line.strip() for line in str(error).splitlines()[1:-1]]
            self.problems += [
                f"[cluster] {line.removeprefix('clusters.cluster.')}" for line in found
            ]
            facts = {}
        if zone:
            facts.setdefault("zone", zone)
        return facts, str(zone or facts.get("zone", "UTC"))

    def start(self, raw: Mapping[str, Any]) -> str | None:
        """The moment from which times that are numbers count; 1970 in UTC if nothing is said."""
        section = raw.get("time", {})
        value = _plain(section.get("start")) if isinstance(section, Mapping) else None
        try:
            return None if value is None else datetime.fromisoformat(value).isoformat(" ")
        except (TypeError, ValueError):
            self.problems.append(f'[time] start: expected e.g. "2018-04-01", found {value!r}')
            return None

    def required(self, cells: Mapping[str, Cell]) -> None:
        if "job_id" not in cells:
            self.problems.append(
                "[columns] job_id: missing; name its column, or number the jobs by their line with "
                "job_id = { line = true }"
            )
        if not {"submitted_at", "started_at"} & set(cells):
            self.problems.append("[columns] submitted_at: missing; map it, or at least started_at")

    def text(self, table: Mapping[str, Any], key: str, where: str, default: str) -> str:
        value = table.get(key, default)
        if not isinstance(value, str) or (key == "separator" and not value):
            self.problems.append(f"{where}: {key}: expected a text, found {value!r}")
            return default
        return value

    def texts(self, table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            self.problems.append(f'{where}: {key}: expected words like ["-1"], found {value!r}')
            return ()
        return tuple(value)


def _unknown(what: str, name: Any, known: Sequence[str]) -> str:
    by_case = {word.lower(): word for word in known}
    near = difflib.get_close_matches(str(name).lower(), by_case, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(by_case[word]) for word in near)}? " if near else ""
    return f"there is no {what} {name!r}; {hint}known: {', '.join(known)}"


def _plain(value: Any) -> Any:
    """TOML's dates as text, since facts are stored as JSON."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_text(item) for item in value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
