"""Scaling in words: nothing is claimed that is not sure, and the part that is to blame is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakaru.measure.statistics import Interval
from hakaru.measure.training._critical import Culprit
from hakaru.measure.training._words import (
    Measured,
    compression_sentence,
    join_words,
    milliseconds,
    scaling_verdict,
    share,
    surely_less,
)


def interval(value: float, width: float = 0.02, level: float = 0.95) -> Interval:
    return Interval(value, value * (1 - width / 2), value * (1 + width / 2), level)


def measured(
    ranks: int,
    rate: float,
    *,
    per_rank: int = 64,
    hosts: int = 1,
    exposed_s: float = 0.0,
    **parts: Any,
) -> Measured:
    """Weak scaling of 64 samples a rank; parts in ms."""
    step_s = per_rank * ranks / rate
    row = {"data": 0.0, "forward": 30.0, "backward": 60.0, "exposed": 0.0, "optimiser": 5.0}
    more = {name: parts.pop(name) for name in list(parts) if name in row}
    breakdown = [row | more | {"rank": rank, "host": "n1"} for rank in range(ranks)]
    return Measured(ranks, hosts, interval(step_s), interval(rate), exposed_s, breakdown, **parts)


ONE = measured(1, 64 / 0.095)


def test_scaling_that_does_not_stop() -> None:
    points = [ONE, measured(2, 128 / 0.0951), measured(4, 256 / 0.0952)]
    assert scaling_verdict(points, "weak") == (
        "4 ranks reach 99.8 % of linear scaling (97.8 % to 101.8 %). "
        "Throughput grows up to 4 ranks, the most that were measured."
    )


def test_three_ranks_are_slower_than_two_because_of_communication() -> None:
    two = measured(2, 128 / 0.1, exposed_s=0.005)
    three = measured(3, 192 / 0.3, exposed_s=0.205)
    said = scaling_verdict([ONE, two, three], "weak")
    assert said.endswith(
        "Scaling stops at 2 ranks: 3 ranks are slower than 2 (640 against 1,280 samples/s), because "
        "exposed communication grew from 5.0 ms to 205 ms."
    )
    assert said.startswith("3 ranks reach 31.7 % of linear scaling (")


def test_a_network_that_is_to_blame_is_named() -> None:
    three = measured(3, 192 / 0.3, exposed_s=0.205, network="n3 is slow to all its partners")
    said = scaling_verdict([ONE, three], "weak")
    assert "grew from 0 ms to 205 ms, and n3 is slow to all its partners." in said


def test_ranks_that_wait_for_a_core_do_not_blame_the_network() -> None:
    crowd = {"cores": 2, "machines": 1, "network": "the network is to blame"}
    computing = measured(3, 192 / 0.3, exposed_s=0.205, **crowd)
    said = scaling_verdict([ONE, computing], "weak")
    assert "3 ranks share 2 cores, and exposed communication grew from 0 ms to 205 ms" in said
    assert "to blame" not in said
    idle = measured(
        3, 192 / 0.3, exposed_s=0.205, forward=1.0, backward=2.0, optimiser=0.5, **crowd
    )
    assert "and the network is to blame" in scaling_verdict([ONE, idle], "weak")


def test_ranks_that_share_cores_are_told() -> None:
    four = measured(
        4, 256 / 0.19, forward=60.0, backward=120.0, optimiser=10.0, cores=2, machines=1, hosts=4
    )
    said = scaling_verdict([ONE, measured(2, 128 / 0.0952, hosts=2), four], "weak")
    assert "Scaling stops at 2 ranks: 4 ranks make no sure difference to 2 (" in said
    assert "because 4 ranks share 2 cores: compute takes 180 ms, 90.0 ms would be linear." in said


def test_compute_that_does_not_shrink_is_to_blame_in_strong_scaling() -> None:
    one = measured(1, 64 / 0.095)
    two = replace(one, ranks=2, breakdown=one.breakdown * 2)
    said = scaling_verdict([one, two], "strong")
    assert "2 ranks make no sure difference to 1 (674 against 674 samples/s)" in said
    assert "because compute takes 90.0 ms, 45.0 ms would be linear." in said


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("data", "because loading data takes 100 ms, 0 ms would be linear"),
        ("optimiser", "because the optimiser takes 100 ms, 5.0 ms would be linear"),
    ],
)
def test_data_and_the_optimiser_can_be_to_blame(part: str, words: str) -> None:
    slow = measured(2, 128 / 0.19, **{part: 100.0})
    assert words in scaling_verdict([ONE, slow], "weak")


def test_a_late_rank_is_to_blame_by_name() -> None:
    culprit = Culprit(2, "n3", 0.25, 0.24, 0.01, ("backward",), 0.345)
    late = measured(4, 256 / 0.345, culprit=culprit)
    said = scaling_verdict([ONE, late], "weak")
    assert (
        "it is below linear, because rank 2 on n3 is ready 250 ms later than the others "
        "(its backward pass), which costs 240 ms a step."
    ) in said
    hidden = replace(late, culprit=replace(culprit, cost_s=0.0))
    assert "ranks wait 250 ms a step for whoever happens to be the last" in scaling_verdict(
        [ONE, hidden], "weak"
    )


def test_hosts_that_are_slower_than_one() -> None:
    """As in the paper: a full host is faster than four of them."""
    full = measured(4, 256 / 0.1, exposed_s=0.005)
    four = measured(16, 1024 / 0.6, hosts=4, exposed_s=0.505)
    said = scaling_verdict([ONE, full, four], "weak")
    assert said.endswith(
        "Scaling stops at 4 ranks: 4 hosts are slower than 1 (1,707 against 2,560 samples/s), because "
        "exposed communication grew from 5.0 ms to 505 ms."
    )
    # also where scaling stopped before
    two = measured(2, 128 / 0.25)
    said = scaling_verdict([ONE, two, full, four], "weak")
    assert "Scaling stops at 1 rank: 2 ranks are slower than 1 (" in said
    assert " 4 hosts are slower than 1 (1,707 against 2,560 samples/s), because" in said
    faster = measured(16, 1024 / 0.15, hosts=4, exposed_s=0.055)
    assert "hosts are slower" not in scaling_verdict([ONE, full, faster], "weak")


def test_intervals_that_overlap_make_no_difference() -> None:
    wide = Interval(100.0, 80.0, 120.0, 0.95)
    assert not surely_less(wide, Interval(115.0, 110.0, 130.0, 0.95))
    assert surely_less(wide, Interval(130.0, 125.0, 140.0, 0.95))
    # too few repetitions make nothing sure
    assert not surely_less(wide, Interval(130.0, 125.0, 140.0, 0.75))


def test_one_size_scales_nothing() -> None:
    assert scaling_verdict([ONE], "weak") == "One size alone was measured: nothing scales."


def test_what_compression_is_worth() -> None:
    plain = interval(100.0)
    assert compression_sentence("fp16", plain, interval(120.0)) == (
        "fp16 gradients are worth 20.0 % (17.6 % to 22.4 %)."
    )
    assert compression_sentence("bf16", plain, interval(80.0)) == (
        "bf16 gradients cost 20.0 % (18.4 % to 21.6 %)."
    )
    assert compression_sentence("fp16", plain, interval(101.0)) == (
        "fp16 gradients make no sure difference (−1.0 % to 3.0 %)."
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.00012, "0.12 ms"),
        (0.0123, "12.3 ms"),
        (0.25, "250 ms"),
        (12.345, "12,345 ms"),
    ],
)
def test_milliseconds(seconds: float, text: str) -> None:
    assert milliseconds(seconds) == text


def test_words_and_shares() -> None:
    assert share(0.058) == "5.8 %"
    assert join_words(["a"]) == "a"
    assert join_words(["a", "b", "c"]) == "a, b and c"
