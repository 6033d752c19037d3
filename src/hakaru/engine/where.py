"""Filters are data: `--where` and the URL's filters become a checked expression with bound values.

The text is parsed to a tree; only columns of the list, comparisons, AND, OR, NOT, IN, BETWEEN, LIKE and
IS NULL pass. What comes out is SQL with `{0}`, `{1}` … where the values were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hakaru.engine._base import Value
from hakaru.errors import FilterError
from hakaru.registry import hint
from hakaru.schema import Type

if TYPE_CHECKING:
    from sqlglot import exp

EXAMPLE = "e.g. \"num_gpus >= 8 AND queue IN ('normal', 'long') AND run_s > 3600\""
BEFORE = "SELECT 1 WHERE "  # what is parsed is a whole query
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
        statements = sqlglot.parse(BEFORE + text, read="duckdb")
    except SqlglotError as error:
        raise FilterError(
            f"cannot read the filter {text!r}: {_problem(error)}; {EXAMPLE}"
        ) from None
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


def compared_texts(text: str) -> list[tuple[str, str]]:
    """The columns and texts that a filter, which `parse_where` has passed, compares by =, <> or IN."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(BEFORE + text, read="duckdb")
    found: dict[tuple[str, str], None] = {}
    for node in tree.find_all(exp.EQ, exp.NEQ, exp.In):
        listed = node.expressions if isinstance(node, exp.In) else [node.expression]
        texts = [item.name for item in listed if isinstance(item, exp.Literal) and item.is_string]
        found |= dict.fromkeys((node.this.name, each) for each in texts)
    return list(found)


def compared_columns(text: str) -> list[str]:
    """The columns that a filter, which `parse_where` has passed, compares with a text in any way."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(BEFORE + text, read="duckdb")
    texts = (node for node in tree.find_all(exp.Literal) if node.is_string)
    above = (node.find_ancestor(exp.Predicate) for node in texts)
    return list(dict.fromkeys(node.this.name for node in above if node is not None))


def _problem(error: Exception) -> str:
    """Where in the filter's own text it goes wrong. The parser counts columns to a word's last letter."""
    found = (getattr(error, "errors", None) or [{}])[0]
    word, line, last = (found.get(key) for key in ("highlight", "line", "col"))
    if not word or not line or last is None:
        return "a quote, a comment or a number in it is not complete"
    first = last - len(word) + 1 - (len(BEFORE) if line == 1 else 0)
    if first < 1:
        return "it has no condition"
    place = f"column {first}" if line == 1 else f"line {line}, column {first}"
    return f"it makes no sense at {word!r} ({place})"


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

        kind = type(node)
        if kind is exp.Paren:
            return f"({self.condition(*_parts(node, 'this'))})"
        if kind is exp.Not:
            return f"NOT ({self.condition(*_parts(node, 'this'))})"
        if kind is exp.And or kind is exp.Or:
            left, right = _parts(node, "this", "expression")
            word = "AND" if kind is exp.And else "OR"
            return f"({self.condition(left)} {word} {self.condition(right)})"
        if kind is exp.Is:
            return self._is_null(node)
        if kind is exp.In:
            return self._in(node)
        if kind is exp.Between:
            return self._between(node)
        if kind is exp.Like:
            return self._like(node)
        return self._comparison(node)

    def _comparison(self, node: exp.Expr) -> str:
        from sqlglot import exp

        signs: dict[type[exp.Expr], str] = {
            exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
        }  # fmt: skip
        sign = signs.get(type(node))
        if sign is None:
            raise FilterError(
                f"{node.sql()!r} is not allowed in a filter: compare a column with a value by "
                f"= <> < <= > >= LIKE IN BETWEEN IS NULL, joined by AND, OR, NOT; {EXAMPLE}"
            )
        left, right = _parts(node, "this", "expression")
        if not isinstance(left, exp.Column) and isinstance(right, exp.Column):
            raise FilterError(f"{node.sql()!r}: write the column first, then the value")
        column, kind = self._column(left)
        return f"{column} {sign} {self._value(right, kind, column)}"

    def _like(self, node: exp.Expr) -> str:
        left, right, negate = _parts(node, "this", "expression", "negate")
        column, kind = self._column(left)
        if kind != "string":
            raise FilterError(f"LIKE needs a text column, and {column} is a {kind}")
        pattern = self._value(right, kind, column)
        if "\\" in str(self.values[-1]):
            raise FilterError(f"{node.sql()!r}: a backslash cannot be part of a LIKE pattern")
        return f"{column} {'NOT LIKE' if negate else 'LIKE'} {pattern}"

    def _between(self, node: exp.Expr) -> str:
        tested, lower, upper, symmetric = _parts(node, "this", "low", "high", "symmetric")
        if symmetric:
            raise FilterError(f"{node.sql()!r}: write the lower end first, without SYMMETRIC")
        column, kind = self._column(tested)
        low, high = (self._value(end, kind, column) for end in (lower, upper))
        return f"{column} BETWEEN {low} AND {high}"

    def _is_null(self, node: exp.Expr) -> str:
        from sqlglot import exp

        tested, other = _parts(node, "this", "expression")
        if type(other) is not exp.Null:
            raise FilterError(f"{node.sql()!r}: only IS NULL and IS NOT NULL are allowed")
        _parts(other)
        return f"{self._column(tested, lists=True)[0]} IS NULL"

    def _in(self, node: exp.Expr) -> str:
        tested, listed, *others = _parts(node, "this", "expressions", "query", "field", "unnest")
        column, kind = self._column(tested)
        if any(others) or not listed:
            raise FilterError(f"{node.sql()!r}: IN needs a list of values in parentheses")
        return f"{column} IN ({', '.join(self._value(item, kind, column) for item in listed)})"

    def _column(self, node: exp.Expr, lists: bool = False) -> tuple[str, Type]:
        from sqlglot import exp

        if type(node) is not exp.Column or node.table:
            raise FilterError(f"expected a column, found {node.sql()!r}; {EXAMPLE}")
        (identifier,) = _parts(node, "this")
        name, _ = _parts(identifier, "this", "quoted")
        if name not in self.columns:
            raise FilterError(f"there is no column {name!r}; {hint(name, self.columns)}")
        kind = self.columns[name]
        if kind == "list<string>" and not lists:
            raise FilterError(f"{name} is a list; only IS NULL and IS NOT NULL work on it")
        return f"{self.table}.{name}", kind

    def _value(self, node: exp.Expr, kind: Type, column: str) -> str:
        self.values.append(self._literal(node, kind, column.removeprefix(f"{self.table}.")))
        return f"{{{len(self.values) - 1}}}"

    def _literal(self, node: exp.Expr, kind: Type, column: str) -> Value:
        from sqlglot import exp

        if type(node) is exp.Neg and kind in ("bigint", "double"):
            (number,) = _parts(node, "this")
            if type(number) is exp.Literal and not number.is_string:
                return -_number(_parts(number, "this")[0], column)
        if type(node) is exp.Boolean and kind == "boolean":
            return bool(*_parts(node, "this"))
        if type(node) is exp.Literal:
            text, is_string = _parts(node, "this", "is_string")
            if kind == "timestamp" and is_string:
                return parse_moment(text, str(self.zone))
            if kind == "string" and is_string:
                return str(text)
            if kind in ("bigint", "double") and not is_string:
                return _number(text, column)
        raise FilterError(
            f"{column} is a {kind} and cannot be compared with {node.sql()}"
            + self._advice(node, kind, column)
        )

    def _advice(self, node: exp.Expr, kind: Type, column: str) -> str:
        """What somebody may have meant who compares with that."""
        from sqlglot import exp

        if type(node) is exp.Null:
            return f": write {column} IS NULL (or IS NOT NULL)"
        if type(node) is exp.Column and node.name in self.columns:
            return ": a filter compares a column with a value, not with another column"
        if kind == "timestamp":
            return ": write times in single quotes, '2018-04-01 09:00'"
        if kind == "string":
            text = node.name if type(node) in (exp.Column, exp.Literal) else "normal"
            return f": write text in single quotes, '{text}'"
        is_text = type(node) is exp.Literal and node.is_string
        return ": write numbers without quotes" if is_text and kind != "boolean" else ""


def _parts(node: exp.Expr, *names: str) -> list[Any]:
    """The arguments of a node that its writer handles; any other would change its meaning unseen."""
    others = sorted(name for name, part in node.args.items() if part and name not in names)
    if others:
        raise FilterError(
            f"{node.sql()!r} is not allowed in a filter: {', '.join(others)} is not supported; {EXAMPLE}"
        )
    return [node.args.get(name) for name in names]


def _number(text: str, column: str) -> float | int:
    """A whole number stays one, however it is written, so that large ones are compared exactly."""
    try:
        number = Decimal(text)
    except ArithmeticError:  # its exponent alone is beyond all numbers
        raise FilterError(f"{column}: the number {text[:40]} is out of range") from None
    if number.copy_abs() > MAX_WHOLE:
        raise FilterError(f"{column}: the number {text[:40]} is out of range: it is too large")
    return int(number) if number == number.to_integral_value() else float(number)
