"""What one search found starts the next one of the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.measure import journal
from hakaru.measure.hpl import Config, Program
from hakaru.measure.hpl.seeds import read_seed
from hakaru.measure.record import Measurement
from tests.measure.hpl._launchers import Tools
from tests.measure.hpl._measure import BUDGET_S, measure_all

XHPL = Program("xhpl", "/usr/bin/xhpl")


def seed(config: Config, gflops: object = 50.0, /, **more: object) -> dict[str, object]:
    entry = {"kind": "hpl-seed", "program": "xhpl", "config": config.to_json(), "gflops": gflops}
    return entry | more


def searched(rows: list[Measurement]) -> list[Measurement]:
    return [each for each in rows if each.parameters.get("stage") == "search"]


@pytest.mark.usefixtures("quiet")
def test_a_search_begins_where_an_earlier_one_ended(tools: Tools, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    first = searched(measure_all(tmp_path, BUDGET_S, run="node", ranks=2))
    assert first[0].device == "1 ranks"
    assert not any(row.parameters["origin"] == "seed" for row in first if row.device == "1 ranks")
    rows = measure_all(tmp_path, BUDGET_S, run="group", ranks=4)
    second = searched(rows)
    assert {row.device for row in second} == {"4 ranks"}  # one rank was searched before
    smallest = min(row.parameters["n"] for row in second)
    seeds = [
        row.parameters for row in second
        if row.parameters["origin"] == "seed" and row.parameters["n"] == smallest
    ]  # fmt: skip
    assert {(each["nb"], each["depth"]) for each in seeds} == {(128, 0)}
    notes = rows[0].validity["notes"]
    assert any("settings of an earlier search on 2 ranks: NB 128" in note for note in notes)


def test_the_largest_search_that_is_not_larger_seeds(tmp_path: Path) -> None:
    path = tmp_path / "seeds.jsonl"
    assert read_seed(path, 8, XHPL) is None
    for entry in (
        seed(Config(1000, 64, 1, 1), 90.0),
        seed(Config(2000, 128, 2, 2), 150.0),
        seed(Config(2000, 192, 2, 2), 170.0),
        seed(Config(2000, 224, 2, 2), 160.0),
        seed(Config(9000, 256, 4, 4), 900.0),
    ):
        journal.append(path, entry)
    chosen = {ranks: read_seed(path, ranks, XHPL) for ranks in (1, 3, 8, 16)}
    assert {ranks: each.nb for ranks, each in chosen.items() if each} == {
        1: 64,
        3: 64,
        8: 192,
        16: 256,
    }


def test_bad_and_foreign_lines_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "seeds.jsonl"
    good = Config(1000, 96, 1, 2)
    for entry in (
        seed(good),
        seed(good, 99.0, kind="other"),
        seed(Config(1000, 64, 1, 2), 99.0, program="hpcc"),
        seed(good, 99.0, config={"n": 0}),
        seed(good, 99.0, config=None),
        seed(good, "fast"),
        seed(good, float("nan")),
    ):
        journal.append(path, entry)
    with path.open("a") as file:
        file.write("not a line of ours\n{}\n")
    assert read_seed(path, 2, XHPL) == good
    assert read_seed(tmp_path, 2, XHPL) is None  # a folder
