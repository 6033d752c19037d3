"""Filters: what they select, what they refuse, and that no text can become anything but a condition."""

from __future__ import annotations

import fnmatch
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hakaru.engine.duckdb import DuckDBEngine
from hakaru.engine.where import (
    EVERYTHING,
    MAX_LENGTH,
    Condition,
    end_of,
    parse_moment,
    parse_where,
)
from hakaru.errors import FilterError
from hakaru.schema import Type
from hakaru.settings import Engine
from tests.conftest import utc

COLUMNS: dict[str, Type] = {
    "id": "bigint",
    "name": "string",
    "size": "bigint",
    "run_s": "double",
    "good": "boolean",
    "at": "timestamp",
    "nodes": "list<string>",
}
NAMES = [None, "", "a", "b", "it's", "{0}", "{}", "計る", "a_b", "a%b", '"q"', "x;--", "\\"]
ROWS = [
    {
        "id": i,
        "name": NAMES[i % len(NAMES)],
        "size": [None, 0, 1, 8, -3][i % 5],
        "run_s": [0.0, None, 1.5, 1e9][i % 4],
        "good": [True, False, None][i % 3],
        "at": utc("2018-01-01T00:00:00") + timedelta(hours=i) if i % 7 else None,
        "nodes": ["n"] if i % 2 else None,
    }
    for i in range(60)
]


@pytest.fixture(scope="module")
def engine() -> Any:
    schema = pa.schema(
        {
            "id": pa.int64(), "name": pa.string(), "size": pa.int64(), "run_s": pa.float64(),
            "good": pa.bool_(), "at": pa.timestamp("us", tz="UTC"), "nodes": pa.list_(pa.string()),
        }
    )  # fmt: skip
    engine = DuckDBEngine(Engine(threads=1))
    engine.constants("t", pa.Table.from_pylist(ROWS, schema=schema))
    yield engine
    engine.close()


def select(engine: DuckDBEngine, condition: Condition) -> set[int]:
    engine.define("chosen", f"SELECT id FROM t WHERE {condition.sql}", condition.values)
    return set(engine.query("SELECT id FROM chosen")["id"].to_pylist())


def where(engine: DuckDBEngine, text: str, zone: str = "UTC") -> set[int]:
    return select(engine, parse_where(text, "t", COLUMNS, zone))


def ids(test: Any) -> set[int]:
    return {row["id"] for row in ROWS if test(row)}


# ---- what is selected


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("size >= 1", lambda r: r["size"] is not None and r["size"] >= 1),
        ("size = -3", lambda r: r["size"] == -3),
        ("size <> 1", lambda r: r["size"] not in (None, 1)),
        ("size != 1", lambda r: r["size"] not in (None, 1)),
        ("run_s > 1.25", lambda r: (r["run_s"] or 0) > 1.25),
        ("run_s < 1e3", lambda r: r["run_s"] is not None and r["run_s"] < 1000),
        ("good = true", lambda r: r["good"] is True),
        ("name = 'it''s'", lambda r: r["name"] == "it's"),
        ("name = '{0}'", lambda r: r["name"] == "{0}"),
        ("name IN ('{}', '計る')", lambda r: r["name"] in ("{}", "計る")),
        ("name NOT IN ('a')", lambda r: r["name"] not in (None, "a")),
        ("name LIKE 'a%'", lambda r: (r["name"] or "").startswith("a")),
        ("name LIKE 'a_b'", lambda r: r["name"] in ("a_b", "a%b")),
        ("NOT name LIKE 'a%'", lambda r: r["name"] is not None and r["name"][:1] != "a"),
        ("name IS NULL", lambda r: r["name"] is None),
        ("nodes IS NOT NULL", lambda r: r["nodes"] is not None),
        ("size BETWEEN 0 AND 1", lambda r: r["size"] in (0, 1)),
        ("size = 1 OR size = 8 AND good = true",
         lambda r: r["size"] == 1 or (r["size"] == 8 and r["good"])),
        ("(size = 1 OR size = 8) AND good = true",
         lambda r: r["size"] in (1, 8) and r["good"]),
        ("name = 'x;--'", lambda r: r["name"] == "x;--"),
        ("name = '\\'", lambda r: r["name"] == "\\"),
        ('"size" = 1', lambda r: r["size"] == 1),
        ("size = 1 -- a remark", lambda r: r["size"] == 1),
        ("size /* a remark */ = 1", lambda r: r["size"] == 1),
    ],
)  # fmt: skip
def test_selects(engine: DuckDBEngine, text: str, test: Any) -> None:
    assert where(engine, text) == ids(test)


def test_times_without_an_offset_are_the_sites(engine: DuckDBEngine) -> None:
    local = where(engine, "at >= '2018-01-02'", "Asia/Tokyo")
    assert local == ids(lambda r: r["at"] and r["at"] >= utc("2018-01-01T15:00:00"))
    assert local == where(engine, "at >= '2018-01-02T00:00+09:00'", "Europe/Berlin")
    assert local == where(engine, "at >= '2018-01-01T15:00Z'")


def test_large_whole_numbers_are_compared_exactly() -> None:
    assert parse_where("size = 9007199254740993", "t", COLUMNS).values == (9007199254740993,)
    assert type(parse_where("size = 8", "t", COLUMNS).values[0]) is int
    largest = 9223372036854775807  # of a bigint
    for text in (f"size = {largest}", f"size = {largest}.0", f"size > -{largest}"):
        assert parse_where(text, "t", COLUMNS).values == (-largest if "-" in text else largest,)
    with pytest.raises(FilterError, match="the number 9223372036854775808 is out of range"):
        parse_where("size = 9223372036854775808", "t", COLUMNS)


def test_conditions_join_and_renumber(engine: DuckDBEngine) -> None:
    one = parse_where("size = 1 OR name = '{0}'", "t", COLUMNS)
    two = parse_where("id < 30 AND name IN ('a', '{1}', '{0}')", "t", COLUMNS)
    joined = EVERYTHING & one & two
    assert joined.values == (1, "{0}", 30, "a", "{1}", "{0}")
    assert select(engine, joined) == select(engine, one) & select(engine, two)
    assert select(engine, EVERYTHING) == ids(lambda r: True)


# ---- what is refused


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "size",
        "true",
        "1 = 1",
        "size = size",
        "size = 1; DROP TABLE t",
        "size = 1); DROP TABLE t; --",
        "size = 1 UNION SELECT 1",
        "size = 1 GROUP BY 1",
        "size = 1 ORDER BY 1",
        "size = 1 LIMIT 1",
        "size = 1 QUALIFY true",
        "size IN (SELECT 1)",
        "size = (SELECT max(size) FROM t)",
        "EXISTS (SELECT 1)",
        "size = ANY (SELECT 1)",
        "name = version()",
        "lower(name) = 'a'",
        "name = getvariable('x')",
        "name || 'x' = 'ax'",
        "size + 1 = 2",
        "name = read_text('/etc/passwd')",
        "name = current_user",
        "size = CAST('1' AS INTEGER)",
        "size::VARCHAR = '1'",
        "CASE WHEN true THEN size ELSE 1 END = 1",
        "t.size = 1",
        "other.size = 1",
        "nothing = 1",
        "rowid = 1",
        "name = $1",
        "name = ?",
        "name = :x",
        "name = 'open",
        "name = 'a' AND",
        "name SIMILAR TO 'a'",
        "name ILIKE 'a'",
        "name ~ 'a'",
        "name LIKE 'a' ESCAPE '!'",
        "name LIKE 'a\\_b'",
        "size LIKE 'a'",
        "nodes = 'n'",
        "nodes IN ('n')",
        "size IN ()",
        "size = NULL",
        "good IS TRUE",
        "size = 'a'",
        "size = true",
        "name = 1",
        "at = 5",
        "at = 'yesterday'",
        "at = '0001-01-01'",
        "at = '1899-12-31'",
        "at = 20180101",
        "at = '9999-12-31'",
        "good = 1",
        "size = -'1'",
        "size = - -1",
        "size = 1e999",
        "size = 99999999999999999999999",
        "5 < size",
        "size BETWEEN 1 AND name",
        "size IN (1, name)",
        "size IN (1, (SELECT 1))",
        "name = {0}",
        "{0}",
        "name = 'a' {1}",
        "struct_pack(a := 1) = 1",
        "[1][1] = 1",
        "name = E'\\x41' || 'b'",
        "name COLLATE nocase = 'A'",
        "ATTACH 'x'",
        "PRAGMA version",
        "size = 1 INTO OUTFILE 'x'",
    ],
)
def test_refuses(text: str) -> None:
    with pytest.raises(FilterError):
        parse_where(text, "t", COLUMNS)


def test_a_refusal_says_what_is_allowed() -> None:
    with pytest.raises(FilterError, match="there is no column 'gpus'; known: id, name, size"):
        parse_where("gpus > 1", "t", COLUMNS)
    with pytest.raises(FilterError, match=r"name ILIKE 'a'\" is not allowed.*LIKE IN BETWEEN"):
        parse_where("name ILIKE 'a'", "t", COLUMNS)
    with pytest.raises(FilterError, match="size is a bigint and cannot be compared with 'a'"):
        parse_where("size = 'a'", "t", COLUMNS)
    with pytest.raises(FilterError, match="write the column first"):
        parse_where("5 < size", "t", COLUMNS)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1900 + "size = 1" + ")" * 1900,
        "NOT " * 900 + "size = 1",
        " AND ".join(["size = 1"] * 300),
        f"size IN ({', '.join(['1'] * 1300)})",
        "size = 1" + " " * MAX_LENGTH,
        "(" * 3900,
        "- " * 1900,
    ],
    ids=["parentheses", "nots", "ands", "list", "length", "open", "minus"],
)
def test_refuses_what_is_too_large(text: str) -> None:
    with pytest.raises(FilterError):
        parse_where(text, "t", COLUMNS)


def test_a_filter_may_have_four_hundred_parts() -> None:
    """A comparison has four (itself, the column, its name, the value), and each OR and the whole one more."""
    assert len(parse_where(" OR ".join(["size = 1"] * 80), "t", COLUMNS).values) == 80
    with pytest.raises(FilterError, match="more than 400 parts"):
        parse_where(" OR ".join(["size = 1"] * 81), "t", COLUMNS)


@settings(max_examples=300, deadline=None)
@given(
    st.text(max_size=60)
    | st.text(alphabet="size nam'=()<>,-+*/;{}0159\"\\ANDORNTI%_.:[]|&", max_size=60)
)
def test_any_text_is_a_condition_or_a_filter_error(text: str) -> None:
    try:
        condition = parse_where(text, "t", COLUMNS)
    except FilterError:
        return
    bare = re.sub(r"\{\d+\}", "?", condition.sql)
    words = r"[()?, ]|t\.[a-z_]+|AND|OR|NOT|IN|IS NULL|BETWEEN|LIKE|<>|<=|>=|=|<|>"
    assert re.fullmatch(f"({words})+", bare)


# ---- the same rows as the condition in Python

STRINGS = st.sampled_from([name for name in NAMES if name is not None] + ["zz", "a'b", "{9}"])
NUMBERS = st.sampled_from([0, 1, 8, -3, 1.5, 1e9, -0.5, 7])
SIGNS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


def text_of(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def compare(sign: str, left: Any, right: Any) -> bool | None:
    if left is None:
        return None
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return {
        "=": left == right, "<>": left != right, "<": left < right, "<=": left <= right,
        ">": left > right, ">=": left >= right,
    }[sign]  # fmt: skip


def like(value: str | None, pattern: str) -> bool | None:
    if value is None:
        return None
    shaped = "".join({"%": "*", "_": "?"}.get(c, f"[{c}]" if c in "*?[" else c) for c in pattern)
    return re.fullmatch(fnmatch.translate(shaped), value) is not None


def negate(value: bool | None) -> bool | None:
    return None if value is None else not value


def both(one: bool | None, two: bool | None) -> bool | None:
    if one is False or two is False:
        return False
    return None if one is None or two is None else True


@st.composite
def leaves(draw: Any) -> tuple[str, Any]:
    column = draw(st.sampled_from(["size", "run_s", "name"]))
    values = STRINGS if column == "name" else NUMBERS
    kind = draw(st.sampled_from(["compare", "in", "between", "null", "like"]))
    if kind == "in":
        listed = draw(st.lists(values, min_size=1, max_size=3))
        text = f"{column} IN ({', '.join(map(text_of, listed))})"
        return text, lambda r: None if r[column] is None else r[column] in listed
    if kind == "between":
        low, high = draw(values), draw(values)
        text = f"{column} BETWEEN {text_of(low)} AND {text_of(high)}"
        return text, lambda r: both(compare(">=", r[column], low), compare("<=", r[column], high))
    if kind == "null":
        return f"{column} IS NULL", lambda r: r[column] is None
    if kind == "like":
        pattern = draw(st.sampled_from(["a%", "%", "_", "%b", "a_b", "", "{%", "計_"]))
        return f"name LIKE '{pattern}'", lambda r: like(r["name"], pattern)
    sign, value = draw(SIGNS), draw(values)
    return f"{column} {sign} {text_of(value)}", lambda r: compare(sign, r[column], value)


def grow(children: Any) -> Any:
    def pair(word: str) -> Any:
        def join(one: tuple[str, Any], two: tuple[str, Any]) -> tuple[str, Any]:
            if word == "AND":
                return f"({one[0]} AND {two[0]})", lambda r: both(one[1](r), two[1](r))
            # a OR b is NOT (NOT a AND NOT b), also where one is unknown
            return f"({one[0]} OR {two[0]})", lambda r: negate(
                both(negate(one[1](r)), negate(two[1](r)))
            )

        return st.builds(join, children, children)

    def turn(one: tuple[str, Any]) -> tuple[str, Any]:
        return f"NOT ({one[0]})", lambda r: negate(one[1](r))

    return st.one_of(pair("AND"), pair("OR"), st.builds(turn, children))


@settings(max_examples=150, deadline=None)
@given(filter=st.recursive(leaves(), grow, max_leaves=6))
def test_gives_the_rows_that_the_condition_holds_for(
    engine: DuckDBEngine, filter: tuple[str, Any]
) -> None:
    text, test = filter
    assert where(engine, text) == ids(lambda row: test(row) is True), text


# ---- moments


def test_moments() -> None:
    assert parse_moment("2018-04-01", "Asia/Tokyo") == utc("2018-03-31T15:00:00")
    assert parse_moment("2018-04-01T09:00+09:00", "UTC") == utc("2018-04-01T00:00:00")
    assert parse_moment("2018-04-01T09:00", "UTC").tzinfo is UTC


@pytest.mark.parametrize("text", ["2018-12-31", "20181231", "2019-W01-1"])
def test_a_bare_date_ends_with_its_day(text: str) -> None:
    assert end_of(text, "UTC") == utc("2019-01-01T00:00:00")


def test_a_day_ends_by_the_sites_clock() -> None:
    # 25 March 2018 had 23 hours in Berlin
    length = end_of("2018-03-25", "Europe/Berlin") - parse_moment("2018-03-25", "Europe/Berlin")
    assert length == timedelta(hours=23)
    assert end_of("2018-12-31T12:00", "UTC") == datetime(2018, 12, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "soon", "2018-13-01", "0001-01-01", "9999-12-31", "1e9"])
def test_what_is_no_moment(text: str) -> None:
    for read in (parse_moment, end_of):
        with pytest.raises(FilterError):
            read(text, "Asia/Tokyo")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ('name = "long"', "write text in single quotes, 'long'"),
        ("name = long", "write text in single quotes, 'long'"),
        ("name IN ('a', 3)", "write text in single quotes, '3'"),
        ("size = NULL", "write size IS NULL (or IS NOT NULL)"),
        ("name IN ('a', NULL)", "write name IS NULL (or IS NOT NULL)"),
        ("run_s > size", "a filter compares a column with a value, not with another column"),
        ("size = '8'", "write numbers without quotes"),
        ("at > 2018-01-01", "write times in single quotes, '2018-04-01 09:00'"),
        ("sice = 1", "there is no column 'sice'; did you mean size?"),
        ("xyz = 1", "there is no column 'xyz'; known: id, name, size"),
    ],
)
def test_a_mistake_is_met_with_what_was_meant(text: str, advice: str) -> None:
    with pytest.raises(FilterError, match=re.escape(advice)):
        parse_where(text, "t", COLUMNS)


@pytest.mark.parametrize("number", ["1e999999999", "-1e999999999", "1e99999999999999999999999"])
def test_a_number_with_an_exponent_beyond_all_numbers(number: str) -> None:
    with pytest.raises(FilterError, match=r"size: the number 1e9+ is out of range"):
        parse_where(f"size = {number}", "jobs", COLUMNS)


def test_a_number_that_is_too_small_to_hold() -> None:
    with pytest.raises(FilterError, match=r"run_s: the number 1e-9+ is out of range"):
        parse_where("run_s > 1e-99999999999999999999999", "jobs", COLUMNS)
    assert parse_where("run_s > 1e-999999999", "jobs", COLUMNS).values == (0.0,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("size > 1h", "it makes no sense at 'h' (column 9)"),
        ("size > 1 AND run_s >", "it makes no sense at '>' (column 20)"),
        ("size > 1 AND\n run_s > 1h", "it makes no sense at 'h' (line 2, column 11)"),
        ("size = 1 hello", "it makes no sense at 'hello' (column 10)"),
        ("name = 'a", "a quote, a comment or a number in it is not complete"),
        ("", "it has no condition"),
    ],
)
def test_a_filter_that_cannot_be_read_says_where(text: str, problem: str) -> None:
    with pytest.raises(FilterError) as found:
        parse_where(text, "jobs", COLUMNS)
    assert str(found.value).startswith(f"cannot read the filter {text!r}: {problem}; e.g. ")
