"""Every card a mark, in its worst verdict."""

from __future__ import annotations

import json

from hakaru.figures.measure import _look as look
from hakaru.figures.measure.fleet import fleet
from hakaru.measure.verdict import Verdict
from tests.figures.measure._runs import card, slow, view_of


def test_a_mark_stands_at_its_host_and_device_in_its_worst_verdict() -> None:
    option = fleet(
        view_of(
            card("n10", "cuda:0", 100.0),
            card("n2", "cuda:1", 100.0),
            slow(card("n2", "cuda:0", 90.0)),
            card("n2", "cuda:0", 5.0, benchmark="memory"),
        )
    ).option
    assert option["yAxis"][0]["data"] == ["n2", "n10"], "as people count"
    assert option["xAxis"][0]["data"] == ["0", "1"]
    good, bad = option["series"]
    assert [each["value"] for each in good["data"]] == [[1, 0], [0, 1]]
    assert [each["value"] for each in bad["data"]] == [[0, 0]]
    assert (good["name"], bad["name"]) == ("good (2)", "slow (1)")
    assert "gemm fp64 size 1024: 90 GFLOP/s\n10.0 % slower than 3 other" in bad["data"][0]["name"]


def test_no_two_verdicts_look_alike_without_colour_or_shape() -> None:
    for looks in (look.COLOURS, look.SYMBOLS):
        assert set(looks) == set(Verdict) and len(set(looks.values())) == len(Verdict)


def test_a_thousand_cards_are_few_bytes_in_blocks_beside_one_another() -> None:
    cards = [card(f"n{at // 8:03d}", f"cuda:{at % 8}", 100.0) for at in range(1024)]
    drawn = fleet(view_of(*cards[:-1], slow(cards[-1])))
    assert len(drawn.option["grid"]) == 4 and drawn.height < 700
    assert sum(len(each["data"]) for each in drawn.option["series"]) == 1024
    assert len(json.dumps(drawn.option)) < 120_000
    assert drawn.notes == ("Slow: n127 cuda:7.",)


def test_a_device_alone_has_its_whole_name() -> None:
    alone = fleet(view_of(card("n1", "cpu:0", 100.0), card("n2", "cpu:0", 100.0))).option
    assert alone["xAxis"][0]["data"] == ["cpu:0"]
    many = fleet(view_of(*(card(f"n{at}", "cpu:0", 100.0) for at in range(40)))).option
    assert [each["data"] for each in many["xAxis"]] == [["0"], ["0"]], (
        "beside one another it is too long"
    )
