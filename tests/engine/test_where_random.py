"""Thousands of random filters: our writer selects the rows that DuckDB selects by the same text."""

from __future__ import annotations

import random
from datetime import timedelta

import duckdb
import pytest

from hakaru.engine.where import parse_where
from hakaru.errors import FilterError
from hakaru.schema import Type
from tests.conftest import utc

COLUMNS: dict[str, Type] = {
    "id": "bigint",
    "name": "string",
    "size": "bigint",
    "run_s": "double",
    "good": "boolean",
    "began": "timestamp",
}
NAMES = [None, "", "n", "night", "Night", "long", "a_b", "a%b", "it's", "計る"]
SIZES = [None, 0, 1, 8, -3, 2**53 + 1]
RUNS = [None, 0.0, 1.5, -0.5, 1e9]
NUM_ROWS = 120
NUM_FILTERS = 4000
SIGNS = ["=", "<>", "!=", "<", "<=", ">", ">=", "=="]
VALUES = {
    "name": ["''", "'n'", "'night'", "'Night'", "'a_b'", "'it''s'", "'計る'", "'zz'"],
    "size": ["0", "1", "8", "-3", "- 3", "1.5", "-0.5", "9007199254740993", "9007199254740993.0"],
    "run_s": ["0", "1.5", "-.5", "1e9", "1E-3", "-1", "1_000_000_000", "1."],
    "good": ["true", "FALSE"],
    "began": ["'2018-01-01'", "'2018-01-03T12:00'", "'2018-01-02T00:00+09:00'"],
}
PATTERNS = ["'n%'", "'%'", "'_'", "'%b'", "'a_b'", "''", "'N%'", "'計_'", "'%t''%'"]


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'; SET threads = 1")
    con.execute(
        "CREATE TABLE t (id BIGINT, name VARCHAR, size BIGINT, run_s DOUBLE, good BOOLEAN,"
        " began TIMESTAMPTZ)"
    )
    pick = random.Random(1)
    for i in range(NUM_ROWS):
        at = utc("2018-01-01T00:00:00") + timedelta(hours=pick.randrange(72))
        con.execute(
            "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)",
            [
                i, pick.choice(NAMES), pick.choice(SIZES), pick.choice(RUNS),
                pick.choice([True, False, None]), pick.choice([at, at, None]),
            ],
        )  # fmt: skip
    return con


def leaf(pick: random.Random) -> str:
    column = pick.choice(list(VALUES))
    values = VALUES[column]
    shown = pick.choice([column, column, f'"{column}"'])
    maybe = pick.choice(["", "NOT "])
    match pick.randrange(6):
        case 0:
            return f"{shown} {maybe}IN ({', '.join(pick.choices(values, k=pick.randint(1, 4)))})"
        case 1:
            return f"{shown} {maybe}BETWEEN {pick.choice(values)} AND {pick.choice(values)}"
        case 2:
            return f"{shown} IS {maybe}NULL"
        case 3:
            return f"name {pick.choice(['LIKE', 'NOT LIKE', '~~', '!~~'])} {pick.choice(PATTERNS)}"
        case _:
            return f"{shown} {pick.choice(SIGNS)} {pick.choice(values)}"


def grown(pick: random.Random, depth: int) -> str:
    if depth == 0 or pick.random() < 0.2:
        return leaf(pick)
    one = grown(pick, depth - 1)
    match pick.randrange(6):
        case 0:
            return f"NOT {one}"
        case 1:
            return f"({one})"
        case 2:
            return f"NOT ({one})"
        case _:  # without parentheses, so that the precedence is the parser's to know
            return f"{one} {pick.choice(['AND', 'OR', 'and'])} {grown(pick, depth - 1)}"


def ours(con: duckdb.DuckDBPyConnection, text: str) -> list[tuple[int]]:
    condition = parse_where(text, "t", COLUMNS)
    places = condition.sql.format(*(f"${i + 1}" for i in range(len(condition.values))))
    return con.execute(f"SELECT id FROM t WHERE {places} ORDER BY id", condition.values).fetchall()


def duckdbs(con: duckdb.DuckDBPyConnection, text: str) -> list[tuple[int]]:
    return con.execute(f"SELECT id FROM t WHERE {text} ORDER BY id").fetchall()


@pytest.mark.parametrize("seed", range(4))
def test_random_filters_select_what_duckdb_selects(
    con: duckdb.DuckDBPyConnection, seed: int
) -> None:
    pick = random.Random(seed)
    some = 0
    for _ in range(NUM_FILTERS // 4):
        text = grown(pick, pick.randint(0, 4))
        expected = duckdbs(con, text)
        assert ours(con, text) == expected, text
        some += 0 < len(expected) < NUM_ROWS
    assert some > NUM_FILTERS // 4 // 2  # most filters tell the rows apart


def test_not_like_selects_what_is_not_like(con: duckdb.DuckDBPyConnection) -> None:
    names = dict(con.execute("SELECT id, name FROM t").fetchall())
    expected = [(i,) for i, name in names.items() if name is not None and name[:1] != "n"]
    assert ours(con, "name NOT LIKE 'n%'") == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name = -'a'", "name is a string and cannot be compared with"),
        ("good = -true", "good is a boolean and cannot be compared with"),
        ("began = -'2018-01-01'", "began is a timestamp and cannot be compared with"),
        ("name NOT ILIKE 'n%'", "is not allowed in a filter"),
        ("name LIKE ANY ('a', 'b')", "name is a string and cannot be compared with"),
        ("name NOT LIKE 'a' ESCAPE '!'", "is not allowed in a filter"),
        ("name GLOB 'n*'", "is not allowed in a filter"),
        ("size IN id", "IN needs a list"),
        ("size IN UNNEST([1])", "IN needs a list"),
        ("size IS NOT DISTINCT FROM 1", "is not allowed in a filter"),
        ("size NOT BETWEEN SYMMETRIC 1 AND 2", "SYMMETRIC"),
        ("name = 'a' COLLATE nocase", "cannot be compared with"),
        ("good IS NOT TRUE", "only IS NULL"),
        ("size = 1::BIGINT", "cannot be compared with"),
        ("began = DATE '2018-01-01'", "cannot be compared with"),
    ],
)
def test_what_the_writer_does_not_handle_is_refused(text: str, reason: str) -> None:
    with pytest.raises(FilterError, match=reason):
        parse_where(text, "t", COLUMNS)


def test_an_argument_that_no_writer_handles_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a later parser may put on a node: on any node of a filter it is refused."""
    import sqlglot
    from sqlglot import exp

    text = (
        "NOT (name LIKE 'a' AND size IN (1, -2) OR run_s BETWEEN 0 AND 1 AND good = true)"
        " AND began IS NULL"
    )
    parse = sqlglot.parse
    nodes = [*parse(f"SELECT 1 WHERE {text}", read="duckdb")[0].args["where"].this.walk()]
    kinds = {type(node) for node in nodes}
    assert {exp.Not, exp.Paren, exp.And, exp.Or, exp.Like, exp.In, exp.Neg, exp.Between} < kinds
    for place in range(len(nodes)):

        def spoiled(sql: str, read: str, place: int = place) -> list[exp.Expr | None]:
            tree = parse(sql, read=read)
            [*tree[0].args["where"].this.walk()][place].set("unheard_of", True)
            return tree

        monkeypatch.setattr(sqlglot, "parse", spoiled)
        with pytest.raises(FilterError, match="unheard_of is not supported"):
            parse_where(text, "t", COLUMNS)
