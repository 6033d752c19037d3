"""What the last lines of an ingest say of rows that contradict one another or were there at another time."""

from __future__ import annotations

import duckdb
import pytest

from hakaru.lake import Conflicts, Upsert
from hakaru.sources._stage import _said
from hakaru.sources.ingest import _zone_warnings, describe_conflicts

NONE = Conflicts()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Conflicts(1, ("5",), ("num_gpus",)), "1 row contradicts", ),
        (Conflicts(1, ("5",), ("num_gpus",)), "(job 5: num_gpus differs)"),
        (Conflicts(2, ("5",), ("num_gpus", "user")), "2 rows contradict"),
        (Conflicts(2, ("5",), ("num_gpus", "user")), "(job 5: num_gpus, user differ)"),
        (Conflicts(3, ("1", "2", "3"), ("user",)), "(jobs 1, 2, 3: user differs)"),
        (Conflicts(4, ("1", "2", "3"), ("user",)), "(jobs 1, 2, 3, …: user differs)"),
        (Conflicts(1200, ("1", "2", "3"), ("user",)), "1,200 rows contradict"),
    ],
)  # fmt: skip
def test_conflicts_in_words(found: Conflicts, words: str) -> None:
    (inside,) = describe_conflicts("forget c", found, NONE, ["table"])
    (stored,) = describe_conflicts("forget c", NONE, found, ["table"])
    assert words in inside and words in stored
    assert "another row of the same job id" in inside and "add the column" in inside
    assert "what an earlier ingest stored" in stored and stored.endswith(": forget c")
    assert describe_conflicts("forget c", found, found, ["table"]) == [inside, stored]
    assert describe_conflicts("forget c", NONE, NONE, ["table"]) == []


@pytest.mark.parametrize("source", ["sacct", "swf", "aaic"])
def test_only_a_table_has_a_mapping(source: str) -> None:
    (told,) = describe_conflicts("forget c", Conflicts(1, ("5",), ("user",)), NONE, [source])
    assert "--guess" not in told and "mapping" not in told
    assert told.endswith("write one file for each and read it with a --cluster of its own")


@pytest.mark.parametrize(
    ("done", "is_warned"),
    [
        (Upsert(num_new=3, num_moved=2), True),
        (Upsert(num_new=4, num_moved=2), False),  # half of them may be chance
        (Upsert(num_new=3, num_moved=2, num_unchanged=1), False),  # others are where they were
        (Upsert(num_new=3, num_moved=2, num_updated=1), False),
        (Upsert(num_new=100, num_moved=100, num_unchanged=1), False),
        (Upsert(num_new=101, num_moved=101, num_unchanged=1), True),  # too many for chance
        (Upsert(num_new=5), False),
    ],
)
def test_jobs_at_another_time_in_words(done: Upsert, is_warned: bool) -> None:
    assert bool(_zone_warnings("c", done)) == is_warned


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["CSV Error on Line: 5", "Original Line: secret", "Line too long", "more"],
         "CSV Error on Line: 5; Line too long"),
        (["CSV Error on Line: 5", "Original Line: secret"], "CSV Error on Line: 5"),
        (["Conversion Error: x", "LINE 1: SELECT", "^"], "Conversion Error: x"),
    ],
)  # fmt: skip
def test_of_duckdbs_message_the_place_and_the_fault_are_said(lines: list[str], said: str) -> None:
    assert _said(duckdb.Error("\n".join(lines))) == said
