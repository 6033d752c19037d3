"""The numbers of AAIC's files, as the description of the log has them."""

from __future__ import annotations

from hakaru.formats import aaic


def test_the_words_behind_the_numbers() -> None:
    assert dict(enumerate(aaic.QUEUES)) == {0: "normal", 1: "short", 2: "middle", 3: "long"}
    assert dict(enumerate(aaic.STATES)) == {
        0: "completed",
        1: "failed",
        2: "timeout",  # walltime exceeded
        3: "cancelled",  # by the user
        4: "killed",  # by the system
    }


def test_the_columns_in_the_order_of_the_files() -> None:
    assert " ".join(aaic.COLUMNS) == (
        "id user group queue nodes gpus walltime_req termcode time_submit time_start time_end "
        "waittime walltime"
    )
