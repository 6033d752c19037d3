"""Ids that hold within one log file: which names are of a log, how many logs there are, what is said."""

from __future__ import annotations

import pytest

from hakaru.engine.duckdb import connect, one_row
from hakaru.formats import logs
from hakaru.settings import Engine


@pytest.mark.parametrize(
    ("user", "job_id", "of_log"),
    [
        ("a/5", "a/17", True),
        ("a/5", "b/17", False),  # a slash of the name's own
        ("ann", "a/17", False),
        ("a/5", "17", False),
        ("a", "a/17", False),
    ],
)
def test_a_name_is_of_a_log_if_its_job_is(user: str, job_id: str, of_log: bool) -> None:
    con = connect(Engine())
    found = one_row(
        con, f"SELECT {logs.is_of_log('u', 'j')} FROM (SELECT '{user}' u, '{job_id}' j)"
    )
    con.close()
    assert found == (of_log,)


def test_logs_are_counted_once_each_and_plain_names_not_at_all() -> None:
    con = connect(Engine())
    rows = "('a/1', 'a/1'), ('a/2', 'a/2'), ('b/1', 'b/9'), ('x/y', 'c/1'), ('ann', 'd/1')"
    found = one_row(con, f"SELECT {logs.count_logs('u', 'j')} FROM (VALUES {rows}) AS t(u, j)")
    con.close()
    assert found == (2,)


def test_what_is_said_beside_a_count_of_users() -> None:
    assert logs.told(0) == logs.told(1) == logs.told(1, per_file=True) == ""
    assert "and there are 2: somebody in two files has two ids" in logs.told(2)
    assert "and there are 2" in logs.told(2, per_file=True)
    assert "(users_per_file): somebody in two files has two ids" in logs.told(0, per_file=True)
