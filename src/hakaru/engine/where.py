"""Filters are data: `--where` and the URL's filters become a checked expression with bound values.

The text is parsed to a tree; only columns of the list, comparisons, AND, OR, NOT, IN, BETWEEN, LIKE and
IS NULL pass. What comes out is SQL with `{0}`, `{1}` … where the values were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hakaru.engine._base import Value
from hakaru.errors import FilterError
from hakaru.schema import Type

if TYPE_CHECKING:
    from sqlglot import exp

EXAMPLE = "e.g. \"num_gpus >= 8 AND queue IN ('normal', 'long') AND run_s > 3600\""
MAX_LENGTH = 4000
MAX_NODES = 400
MAX_WHOLE = 2**63 - 1
FIRST_YEAR, LAST_YEAR = 1900, 9000


@dataclass(frozen=True)
class Condition:
    """SQL with numbered places, and the values for them."""

    sql: str
    values: tuple[Value, ...] = ()

    def __and__(self, other: Condition) -> Condition:
        return self._joined("AND", other)

    def __or__(self, other: Condition) -> Condition:
        return self._joined("OR", other)

    def _joined(self, word: str, other: Condition) -> Condition:
        shifted = [f"{{{i + len(self.values)}}}" for i in range(len(other.values))]
        sql = other.sql.format(*shifted) if shifted else other.sql
        return Condition(f"{self.sql} {word} {sql}", self.values + other.values)


EVERYTHING = Condition("true")


def parse_where(text: str, table: str, columns: Mapping[str, Type], zone: str = "UTC") -> Condition:
    """A filter's text as a condition on the table; times without an offset are in `zone`."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    if len(text) > MAX_LENGTH:
        raise FilterError(f"the filter has {len(text)} characters; {MAX_LENGTH} are allowed")
    try:
        statements = sqlglot.parse(f"SELECT 1 WHERE {text}", read="duckdb")
    except SqlglotError as error:
        problem = str(error).splitlines()[0].replace("\x1b[4m", "").replace("\x1b[0m", "")
        raise FilterError(f"cannot read the filter {text!r}: {problem}; {EXAMPLE}") from None
    except RecursionError:
        raise FilterError("the filter is nested too deeply") from None
    parts = statements[0].args if len(statements) == 1 and statements[0] else {}
    where = parts.get("where")
    if where is None or {name for name, part in parts.items() if part} - {"expressions", "where"}:
        raise FilterError(f"the filter {text!r} is not one condition; {EXAMPLE}")
    if sum(1 for _ in where.walk()) > MAX_NODES:
        raise FilterError(
            f"the filter has more than {MAX_NODES} parts (columns, values and words); make it shorter"
        )
    writer = _Writer(table, columns, ZoneInfo(zone))
    sql = writer.condition(where.this)
    return Condition(f"({sql})", tuple(writer.values))


def parse_moment(text: str, zone: str) -> datetime:
    """A date or time; without an offset it is in the site's zone."""
    return _bounded(text, _local(text, zone))


def end_of(text: str, zone: str) -> datetime:
    """A bare date means the whole day, so `--until 2018-12-31` includes the 31st."""
    moment = _local(text, zone)
    try:
        date.fromisoformat(text)
    except ValueError:
        return _bounded(text, moment)
    return _bounded(text, moment, timedelta(days=1))


def _local(text: str, zone: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise FilterError(
            f"{text!r} is not a date or time; write 2018-04-01 or 2018-04-01T09:00+09:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))


def _bounded(text: str, moment: datetime, more: timedelta = timedelta(0)) -> datetime:
    """In UTC, which both engines take alike; the calendar's own ends have no neighbours to compare."""
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise FilterError(f"{text!r} is not between the years {FIRST_YEAR} and {LAST_YEAR}")
    return (moment + more).astimezone(UTC)


@dataclass
class _Writer:
    table: str
    columns: Mapping[str, Type]
    zone: ZoneInfo
    values: list[Value] = field(default_factory=list)

    def condition(self, node: exp.Expr) -> str:
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return f"({self.condition(node.this)})"
        if isinstance(node, exp.And | exp.Or):
            word = "AND" if isinstance(node, exp.And) else "OR"
            return f"({self.condition(node.left)} {word} {self.condition(node.right)})"
        if isinstance(node, exp.Not):
            return f"NOT ({self.condition(node.this)})"
        if isinstance(node, exp.Is):
            return self._is_null(node)
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.Between):
            if node.args.get("symmetric"):
                raise FilterError(f"{node.sql()!r}: write the lower end first, without SYMMETRIC")
            column, kind = self._column(node.this)
            low, high = (self._value(node.args[end], kind, column) for end in ("low", "high"))
            return f"{column} BETWEEN {low} AND {high}"
        return self._comparison(node)

    def _comparison(self, node: exp.Expr) -> str:
        from sqlglot import exp

        signs: dict[type[exp.Expr], str] = {
            exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
            exp.Like: "LIKE",
        }  # fmt: skip
        sign = signs.get(type(node))
        if sign is None:
            raise FilterError(
                f"{node.sql()!r} is not allowed in a filter: compare a column with a value by "
                f"= <> < <= > >= LIKE IN BETWEEN IS NULL, joined by AND, OR, NOT; {EXAMPLE}"
            )
        assert isinstance(node, exp.Binary)
        if not isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column):
            raise FilterError(f"{node.sql()!r}: write the column first, then the value")
        column, kind = self._column(node.left)
        if sign == "LIKE" and kind != "string":
            raise FilterError(f"LIKE needs a text column, and {column} is a {kind}")
        if sign == "LIKE" and "\\" in node.right.name:
            raise FilterError(f"{node.sql()!r}: a backslash cannot be part of a LIKE pattern")
        return f"{column} {sign} {self._value(node.right, kind, column)}"

    def _is_null(self, node: exp.Is) -> str:
        from sqlglot import exp

        if not isinstance(node.expression, exp.Null):
            raise FilterError(f"{node.sql()!r}: only IS NULL and IS NOT NULL are allowed")
        return f"{self._column(node.this, lists=True)[0]} IS NULL"

    def _in(self, node: exp.In) -> str:
        column, kind = self._column(node.this)
        if node.args.get("query") or not node.expressions:
            raise FilterError(f"{node.sql()!r}: IN needs a list of values in parentheses")
        listed = ", ".join(self._value(item, kind, column) for item in node.expressions)
        return f"{column} IN ({listed})"

    def _column(self, node: exp.Expr, lists: bool = False) -> tuple[str, Type]:
        from sqlglot import exp

        if not isinstance(node, exp.Column) or node.table:
            raise FilterError(f"expected a column, found {node.sql()!r}; {EXAMPLE}")
        name = node.name
        if name not in self.columns:
            raise FilterError(f"there is no column {name!r}; known: {', '.join(self.columns)}")
        kind = self.columns[name]
        if kind == "list<string>" and not lists:
            raise FilterError(f"{name} is a list; only IS NULL and IS NOT NULL work on it")
        return f"{self.table}.{name}", kind

    def _value(self, node: exp.Expr, kind: Type, column: str) -> str:
        self.values.append(self._literal(node, kind, column.removeprefix(f"{self.table}.")))
        return f"{{{len(self.values) - 1}}}"

    def _literal(self, node: exp.Expr, kind: Type, column: str) -> Value:
        from sqlglot import exp

        negative = isinstance(node, exp.Neg)
        leaf: Any = node.this if negative else node
        if kind == "boolean" and isinstance(leaf, exp.Boolean):
            return bool(leaf.this)
        if isinstance(leaf, exp.Literal):
            if kind == "timestamp" and leaf.is_string:
                return parse_moment(leaf.this, str(self.zone))
            if kind == "string" and leaf.is_string:
                return str(leaf.this)
            if kind in ("bigint", "double") and not leaf.is_string:
                return _number(leaf.this, negative, column)
        raise FilterError(f"{column} is a {kind} and cannot be compared with {node.sql()}")


def _number(text: str, negative: bool, column: str) -> float | int:
    """A whole number stays one, so that large ones are compared exactly."""
    whole = text.isascii() and text.isdigit()
    number = int(text) if whole else float(text)
    if abs(number) > MAX_WHOLE:
        raise FilterError(f"{column}: the number {text[:40]} is too large")
    return -number if negative else number
