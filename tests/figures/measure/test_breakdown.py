"""A step by rank, and who keeps the others waiting."""

from __future__ import annotations

from typing import Any

from hakaru.figures.measure.breakdown import (
    CULPRIT,
    MOST_BARS,
    NOBODY,
    breakdown,
    culprit_sentences,
    steps_of,
)
from hakaru.measure.verdict import Verdict
from tests.figures.measure._runs import view_of
from tests.measure.lakes_training import scaling_rows, split, strategy_rows, timed


def bars(figure: Any) -> dict[str, list[float]]:
    return {each["name"]: [item["value"] for item in each["data"]]
            for each in figure.option["series"] if each["type"] == "bar"}  # fmt: skip


def test_the_parts_of_each_rank_are_stacked_and_the_culprit_is_marked() -> None:
    """Rank 2 is ready 25 ms later; the others expose these 25 ms as communication."""
    steps = steps_of(view_of(*scaling_rows()), "scaling")
    assert [each.ranks for each in steps] == [4, 3, 2, 1], "the most ranks first"
    figure = breakdown(steps[0])
    assert bars(figure) == {
        "data": [2.0] * 4, "forward": [12.0] * 4, "backward until ready": [24.0, 24.0, 49.0, 24.0],
        "exposed communication": [35.0, 35.0, 10.0, 35.0], "optimiser": [2.0] * 4,
    }  # fmt: skip
    mark = figure.option["series"][-1]
    assert (mark["name"], mark["data"][0]["value"]) == (CULPRIT, [2, 75.0])
    assert mark["label"]["formatter"] == CULPRIT, "a word beside the colour"
    assert figure.notes[0] == "Rank 2 on n3 is ready 25 ms late, which costs 25 ms a step."
    assert figure.notes[1] == (
        "Communication of 4.2 MB: 35 ms exposed and 5 ms hidden behind compute, which is 12.5 %."
    )
    assert "rank 2 on n3" in figure.option["series"][0]["data"][2]["name"]


def test_without_a_culprit_nobody_is_marked() -> None:
    steps = steps_of(view_of(*scaling_rows(ranks=(1, 2))), "scaling")
    figure = breakdown(steps[0])
    assert figure.notes[0] == NOBODY and figure.option["series"][-1]["type"] == "bar"
    assert breakdown(steps[1]).notes == (
        "Communication of 4.2 MB: 1 ms exposed and 5 ms hidden behind compute, which is 83.3 %.",
    )
    assert CULPRIT not in figure.option["legend"]["data"]


def test_of_many_ranks_quantiles_the_slowest_and_the_culprit_are_drawn() -> None:
    """Ranks are ready in their order; the culprit is said to be rank 100, which is none of the slowest."""
    ranks = MOST_BARS * 10
    parts = [split(rank, 2, 0.0) | {"forward": 10.0 + rank} for rank in range(ranks)]
    facts = {"breakdown": parts, "culprit": {"rank": 100, "sentence": "Rank 100 is late."}}
    rows = timed("scaling", {"model": "mlp", "ranks": ranks}, {"throughput": 1.0}, facts, ranks)
    figure = breakdown(steps_of(view_of(*rows), "scaling")[0])
    labels = figure.option["xAxis"]["data"]
    assert labels == [
        "0 %\n0", "25 %\n160", "50 %\n320", "75 %\n479", "95 %\n607", "slow\n100",
        *(f"slow\n{rank}" for rank in range(632, 640)),
    ]  # fmt: skip
    assert figure.option["series"][-1]["data"][0]["value"][0] == 5
    assert figure.notes[-1].startswith("Of 640 ranks, ordered by when they are ready, 14 are drawn")
    all = breakdown(steps_of(view_of(*timed(
        "scaling", {"model": "mlp", "ranks": MOST_BARS}, {"throughput": 1.0},
        {"breakdown": parts[:MOST_BARS]}, MOST_BARS,
    )), "scaling")[0])  # fmt: skip
    assert len(all.option["xAxis"]["data"]) == MOST_BARS


def test_the_largest_of_those_with_the_same_culprit_speaks_and_what_does_not_count_is_silent() -> (
    None
):
    rows = list(scaling_rows())
    assert culprit_sentences(steps_of(view_of(*rows), "scaling")) == [
        "mlp, ddp, weak, 4 ranks: Rank 2 on n3 is ready 25 ms late, which costs 25 ms a step."
    ]
    dirty = [each.judged(Verdict.CONTAMINATED, "another program ran") for each in rows]
    steps = steps_of(view_of(*dirty), "scaling")
    assert culprit_sentences(steps) == []
    assert (
        "This measurement does not count, as it is contaminated: another program ran."
        in breakdown(steps[0]).notes
    )


def test_steps_of_strategies_have_names_of_their_own() -> None:
    names = [each.name for each in steps_of(view_of(*strategy_rows()), "strategies")]
    assert names == [
        "transformer, ddp, 4 ranks", "transformer, fsdp, 4 ranks",
        "transformer, gpipe, 8 micro-batches, 4 ranks",
    ]  # fmt: skip


def test_plain_gradients_stand_before_compressed_ones() -> None:
    rows = [row for compression in ("fp16", "none") for row in timed(
        "scaling", {"model": "mlp", "strategy": "ddp", "compression": compression, "ranks": 2},
        {"throughput": 1.0}, {"breakdown": [split(0, 2, 0.0)]}, 2)]  # fmt: skip
    names = [each.name for each in steps_of(view_of(*rows), "scaling")]
    assert names == ["mlp, ddp, 2 ranks", "mlp, ddp, fp16 gradients, 2 ranks"]
