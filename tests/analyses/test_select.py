"""What a program may filter by: comparisons as data, with their values bound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hakaru.analyses import Check, Selection, open_session
from hakaru.errors import FilterError
from hakaru.lake import Lake
from tests.conftest import job, put_jobs

COUNT = "SELECT count(*) AS num FROM jobs"


def count(lake: Lake, *checks: Check, **selection: object) -> int:
    with open_session(lake) as session:
        chosen = Selection(clusters=("c",), checks=checks, **selection)  # type: ignore[arg-type]
        (row,) = session.ask(COUNT, chosen).to_pylist()
    return int(row["num"])


@pytest.fixture
def three(lake_of: Callable[..., Lake]) -> Lake:
    return lake_of(
        [
            job(1, queue="short", num_gpus=1, user="ann"),
            job(2, queue="it's; --", num_gpus=4, user="Bob"),
            job(3, queue=None, num_gpus=8, user="bo", state="failed"),
        ]
    )


def test_each_operator(three: Lake) -> None:
    assert count(three) == 3
    assert count(three, Check("queue", "short")) == 1
    assert count(three, Check("queue", "it's; --")) == 1
    assert count(three, Check("queue", None)) == 1
    assert count(three, Check("user", "BO", "contains")) == 2
    assert count(three, Check("num_gpus", 4, ">=")) == 2
    assert count(three, Check("num_gpus", 4, ">="), Check("num_gpus", 8, "<")) == 1
    assert count(three, states=("failed",)) == 1


@pytest.mark.parametrize(
    "check",
    [
        Check("secret", "x"),
        Check("queue = '' OR 1", "x"),
        Check("queue", "x", "LIKE"),
        Check("num_gpus", "4"),
        Check("num_gpus", 4, "contains"),
        Check("queue", 4),
        Check("submitted_at", "2018-01-01", ">="),
    ],
)
def test_what_is_not_a_comparison_is_refused(three: Lake, check: Check) -> None:
    with pytest.raises(FilterError):
        count(three, check)


def test_a_brace_in_the_workspace_s_path_is_no_place_of_a_value(tmp_path: Path) -> None:
    lake = put_jobs(Lake.create(tmp_path / "a{b}{0}c"), [job(1, num_gpus=2), job(2)])
    assert count(lake, Check("num_gpus", 2)) == 1
