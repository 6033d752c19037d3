"""One job is no jobs: nouns agree with their number, in English."""

from __future__ import annotations

import pytest

from hakaru.texts import agreeing, language


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 jobs", "1 job"),
        ("c: 1 of 1 jobs", "c: 1 of 1 job"),
        ("All 1 selected jobs.", "All 1 selected job."),
        ("1 of 2 jobs", "1 of 2 jobs"),
        ("21 jobs, 0.1 jobs, 1,001 users", "21 jobs, 0.1 jobs, 1,001 users"),
        ("0 rows", "0 rows"),
        ("1 accounts and 1 users", "1 account and 1 user"),
    ],
)
def test_one_of_them_has_no_plural(text: str, said: str) -> None:
    assert agreeing(text) == said


def test_texts_agree_where_they_are_said() -> None:
    said = language("en").say("report", "subtitle", since="a", until="b", num_jobs="1")
    assert said == "a to b · 1 job"
    assert language("en").say("figure", "users", count="1") == "1 user"
