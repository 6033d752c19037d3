"""What `hakaru simulate --replay` says of months, of the replay's error, and of a naive prediction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hakaru.cli import _replay
from hakaru.cli._schedule import as_times
from hakaru.sim.naive import Score
from hakaru.sim.replay import Month


def month(name: str, trusted: str = "yes") -> Any:
    return SimpleNamespace(name=name, trusted=trusted, why=f"why {name}")


def texts(lines: Any) -> list[str]:
    return [text for text, _ in lines]


@pytest.mark.parametrize(
    ("part", "text"),
    [(None, "–"), (0.5, "+50.0 %"), (-0.25, "−25.0 %"), (9.5, "+950.0 %"), (10.0, "11 times")],
)
def test_how_far_a_month_is_off(part: float | None, text: str) -> None:
    assert _replay._part(part) == text


def test_months_next_to_each_other_are_a_range() -> None:
    months = [month(name) for name in "abcdef"]
    found = [months[at] for at in (0, 1, 2, 4)]
    assert _replay._ranges(months, found) == "a to c, e"
    assert _replay._ranges(months, months[5:]) == "f"
    assert _replay._ranges(months, [months[0], months[5]]) == "a, f"


def test_months_by_what_the_log_can_reproduce_with_the_reasons() -> None:
    months = [month("a"), month("b", "no"), month("c", "partly"), month("d"), month("e")]
    assert texts(_replay.trust_lines(months, 500)) == [
        "months the log can reproduce: a, d to e",
        "months the log can nearly reproduce: c",
        "  c: why c",
        "months the log cannot reproduce: b",
        "  b: why b",
        _replay.NOT_PROOF,
    ]


def by_month(*pairs: tuple[float | None, float | None]) -> pa.Table:
    recorded, simulated = zip(*pairs, strict=True)
    floats = pa.float64()
    return pa.table(
        {
            "recorded_mean_s": pa.array(recorded, floats),
            "simulated_mean_s": pa.array(simulated, floats),
        }
    )


def test_months_by_how_far_the_replay_is_off() -> None:
    """Off by 25 %, 26 %, 50 % and more; the fifth cannot be reproduced, the sixth has no wait."""
    months = [month(name) for name in "abcd"] + [month("e", "no"), month("f")]
    table = by_month(
        (1000, 1250), (1000, 740), (1000, 1500), (1000, 1501), (1000, 1000), (None, None)
    )  # fmt: skip
    known: Any = SimpleNamespace(
        errors=lambda: {"mean_wait_s": 30.0, "p95_wait_s": 90.0},
        worst_month=lambda: ("d", 1234, 10.0, 20.0),
        keep=np.array([True, True, False]),
    )
    first, *rest = texts(_replay.fit_lines(table, months, known, 5000))
    assert first == (
        "Months the log can reproduce, by how far the replayed mean wait is from the recorded one: within "
        "25 % a; within 50 % b to c; further off d. Over the 2 jobs compared, the mean of a month is off by "
        "30 s on average, the 95th percentile by 90 s (each month counts by its number of jobs); the mean is "
        "off most in d (1,234 jobs): recorded 10 s, replayed 20 s."
    )
    assert rest == [_replay.WHY_OFF, _replay.UNKNOWN_POLICY]
    assert _replay._off(table).cells == ["+25.0 %", "−26.0 %", "+50.0 %", "+50.1 %", "0.0 %", "–"]
    known.worst_month = lambda: None
    assert texts(_replay.fit_lines(table, months, known, 500)) == []


REPLAY = Score("replay", 70.0, 90.0, 1, 4, 0.9, 0.8, 0.5)
NAIVE = Score("naive", 60.0, 95.0, 2, 4, 0.7, 0.6, float("nan"))


def test_both_predictions_by_each_measure() -> None:
    columns = {column.name: list(column.cells) for column in _replay._scores([REPLAY, NAIVE])}
    assert columns == {
        "predicted by": ["the replay", "naive: the user's recent median"],
        "mean of a month off by": ["70 s", "60 s"],
        "p95 of a month off by": ["90 s", "95 s"],
        "months within 25 %": ["1 of 4", "2 of 4"],
        "within 5 min": ["90.0 %", "70.0 %"],
        "within a factor of 2": ["80.0 %", "60.0 %"],
        "rank correlation": ["0.50", "–"],
    }


@pytest.mark.parametrize(
    ("better", "text"),
    [
        ((), "The naive prediction is in no measure nearer to the record than the replay."),
        (
            ("mean_off_s", "months_within"),
            "The naive prediction is better than the replay in 2 of 6 measures: mean of a month off by, "
            "months within 25 %.",
        ),
        (
            ("p95_off_s",),
            "The replay is better by the mean of a month, but the naive prediction is nearer to the record "
            "in 1 of 6 measures: p95 of a month off by.",
        ),
    ],
)
def test_which_prediction_is_nearer(better: tuple[str, ...], text: str) -> None:
    assert _replay._judged(REPLAY, better) == text


@pytest.fixture
def replayed(monkeypatch: Any) -> list[Any]:
    """Four months, of which the log can reproduce two, and 3 of 5 jobs; the tables asked for are kept."""
    asked: list[Any] = []
    months = [
        Month("2018-01", 1, 0.0, 0.0, 0), Month("2018-02", 1, 0.5, 0.0, 0),
        Month("2018-03", 1, 0.5, 0.5, 0), Month("2018-04", 2, 0.0, 0.0, 0),
    ]  # fmt: skip
    keep = np.array([True, False, False, True, True])

    def differences(
        schedule: Any, by: str | None = None, zone: str = "UTC", keep: Any = None
    ) -> Any:
        asked.append((by, zone, None if keep is None else int(keep.sum())))
        num = 4 if by == "month" else 1
        columns = {by or "jobs": ["x"] * num, "recorded_mean_s": [100.0] * num,
                   "simulated_mean_s": [150.0] * num}  # fmt: skip
        return pa.table(columns)

    replay = "hakaru.sim.replay"
    monkeypatch.setattr(f"{replay}.differences", differences)
    monkeypatch.setattr(f"{replay}.months_of", lambda schedule, zone: months)
    monkeypatch.setattr(f"{replay}.trusted_jobs", lambda schedule, months, zone: keep)
    known: Any = SimpleNamespace(of=lambda *given: SimpleNamespace(
        errors=dict, worst_month=lambda: None, keep=keep))  # fmt: skip
    monkeypatch.setattr(f"{replay}.Known", known)
    monkeypatch.setattr("hakaru.sim.naive.scores", lambda schedule, zone, keep: [])
    return asked


def test_groups_are_of_the_months_that_can_be_reproduced(replayed: list[Any]) -> None:
    lines = texts(_replay.replay_lines(None, "Asia/Tokyo", 500, ["dates are relative"]))  # type: ignore[arg-type]
    assert lines[0] == "The replay beside the record"
    assert "by queue, size and class: jobs of months the log can reproduce" in lines
    assert [by for by, _, _ in replayed] == [None, None, "queue", "size", "class", "month"]
    assert [number for _, _, number in replayed] == [None, 3, 3, 3, 3, None]
    assert {zone for by, zone, _ in replayed if by} == {"Asia/Tokyo"}
    assert sum(line.startswith("of months the log can reproduce") for line in lines) == 1
    at = lines.index("dates are relative")
    rows = [" ".join(line.split()) for line in lines[at - 5 : at - 1]]
    assert rows == [
        f"x 100 s 2.5 min +50.0 % {words}"
        for words in ("fits", "a little over", "does not fit", "fits")
    ]
    assert "months the log can reproduce: 2018-01, 2018-04" in lines


def test_a_negative_rank_correlation_has_the_sign_of_other_numbers() -> None:
    (column,) = as_times(pa.table({"rank_correlation": [-0.117, 0.5]}))
    assert column.cells == ["−0.117", "0.500"]
    found = Score("replay", 1.0, 1.0, 1, 1, 0.5, 0.5, -0.117)
    assert _replay._scores([found])[-1].cells == ["−0.12"]
