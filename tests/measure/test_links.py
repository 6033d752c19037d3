"""Pairs, blame and the α–β fit, without a network."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hakaru.measure._base import load_all
from hakaru.measure.collective._blame import blame
from hakaru.measure.collective._fit import fit
from hakaru.measure.collective._judge import blame_links, judge_links
from hakaru.measure.collective._ranks import chosen_interfaces
from hakaru.measure.collective.operations import factor, pattern, summed
from hakaru.measure.collective.pairs import all_rounds, rounds
from hakaru.measure.job import slurm_gpus
from hakaru.measure.verdict import Verdict
from tests.measure._runs import measured


@given(st.integers(2, 200))
def test_rounds_are_few_disjoint_and_walk_the_ring(size: int) -> None:
    listed = rounds(size)
    for pairs in listed:
        ranks = [rank for pair in pairs for rank in pair]
        assert len(ranks) == len(set(ranks))
    seen = {pair for pairs in listed for pair in pairs}
    ring = {tuple(sorted((at, (at + 1) % size))) for at in range(size)} if size > 2 else {(0, 1)}
    assert ring <= seen
    assert len(listed) <= 3 * math.log2(size) + 3


@given(st.integers(3, 64), st.data())
def test_a_slow_host_is_blamed_and_nobody_else(size: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, size - 1))
    rates = {}
    for pairs in rounds(size):
        for a, b in pairs:
            rate = 0.02 if culprit in (a, b) else 0.11
            rates[f"h{a}", f"h{b}"] = rates[f"h{b}", f"h{a}"] = rate
    found = blame(rates, [f"h{at}" for at in range(size)])
    assert found.hosts == (f"h{culprit}",)
    assert found.links == ()
    assert found.bottleneck is not None
    assert f"h{culprit}" in found.bottleneck


def test_one_slow_link_is_blamed_and_not_its_hosts() -> None:
    names = "abcd"
    rates = {(a, b): 1.0 for a in names for b in names if a != b}
    rates["a", "b"] = 0.3
    found = blame(rates)
    assert (found.hosts, found.links) == ((), (("a", "b"),))
    assert found.sentence.startswith("the link from a to b is slow")


def test_of_two_hosts_nobody_is_blamed_alone() -> None:
    assert blame({("a", "b"): 1.0, ("b", "a"): 0.2}).hosts == ()


def test_a_host_that_only_sends_slowly_is_blamed() -> None:
    names = "abcd"
    rates = {(a, b): 0.2 if a == "c" else 1.0 for a in names for b in names if a != b}
    assert blame(rates).hosts == ("c",)


def test_the_fit_finds_alpha_and_beta_and_predicts_more_ranks() -> None:
    alpha, beta, num = 20e-6, 1 / 10e9, 4
    messages = 2 * (num - 1)
    sizes = [4096, 65536, 1 << 20, 1 << 24]
    found = fit("all-reduce", num, [(s, messages * (alpha + beta * s / num)) for s in sizes])
    assert found is not None
    assert found.alpha_s == pytest.approx(alpha)
    assert found.beta_s == pytest.approx(beta)
    assert found.error == pytest.approx(0, abs=1e-6)
    wanted = 2 * 31 * (alpha + beta * (1 << 24) / 32)
    assert found.seconds(1 << 24, 32) == pytest.approx(wanted)


def test_a_broadcast_is_no_ring_and_predicts_nothing_for_more_ranks() -> None:
    found = fit("broadcast", 4, [(1, 1.0), (2, 2.0), (4, 4.0)])
    assert found is not None
    assert found.seconds(8) == pytest.approx(8.0)
    assert found.seconds(8, 16) is None


def test_two_sizes_are_too_few_to_fit() -> None:
    assert fit("all-reduce", 2, [(1, 1.0), (1, 1.1), (2, 2.0)]) is None


def test_busbw_is_as_nccl_tests_define_it() -> None:
    assert [factor(id, 4) for id in ("all-reduce", "all-gather", "broadcast")] == [1.5, 0.75, 1.0]


def test_hosts_are_paired_by_their_first_ranks_and_ranks_inside_them() -> None:
    listed = all_rounds(["a"] * 4 + ["b"] * 4 + ["c"] * 4)
    crossing = [pair for pairs in listed for pair in pairs if pair[0] // 4 != pair[1] // 4]
    assert {rank for pair in crossing for rank in pair} == {0, 4, 8}
    for pairs in listed:
        ranks = [rank for pair in pairs for rank in pair]
        assert len(ranks) == len(set(ranks))


def test_fast_links_inside_hosts_do_not_make_those_between_them_slow() -> None:
    def link(device: str, rate: float) -> object:
        return measured(*[rate] * 5, benchmark="pairs", quantity="bandwidth", device=device,
                        parameters={"bytes": 8})  # fmt: skip

    between = [link(f"h{a}#0>h{b}#0", 20.0) for a in range(4) for b in range(4) if a != b]
    inside = [link(f"h{a}#{b}>h{a}#{1 - b}", 200.0) for a in range(4) for b in range(2)]
    judged = judge_links([*between, *inside])
    assert {each.verdict for each in judged} == {Verdict.GOOD}
    one_slow = [link(e.device, 100.0 if e.device == "h2#0>h2#1" else 200.0) for e in inside]
    slow = [each for each in judge_links(one_slow) if each.verdict is Verdict.SLOW]
    assert [each.device for each in slow] == ["h2#0>h2#1"]
    assert "50% of the same link of the other hosts" in slow[0].reason
    slow = [link(each.device, 4.0 if "h2" in each.device else 20.0) for each in between]
    found = blame_links((each.device, "", each.median or 0.0) for each in [*slow, *inside])
    assert found is not None
    assert found.hosts == ("h2",)


def test_the_ring_is_that_of_the_ranks_and_its_slowest_link_bounds_it() -> None:
    rates = {}
    for pairs in rounds(8):
        for a, b in pairs:
            rates[f"h{a}#{a}>h{b}#{b}"] = rates[f"h{b}#{b}>h{a}#{a}"] = 1.0
    rates["h2#2>h3#3"] = 0.85
    rates["h0#0>h4#4"] = 0.81  # not a part of the ring
    found = blame_links((name, "", rate) for name, rate in rates.items())
    assert found is not None
    assert found.ring == tuple(f"h{at}" for at in range(8))
    assert (found.bottleneck, found.bottleneck_rate) == (("h2", "h3"), 0.85)


def test_links_inside_one_host_may_differ_by_design() -> None:
    rates = {"h#0>h#1": 400.0, "h#1>h#0": 400.0, "h#0>h#2": 20.0, "h#2>h#0": 20.0}
    rows = [
        measured(*[rate] * 5, benchmark="pairs", quantity="bandwidth", device=name, parameters={})
        for name, rate in rates.items()
    ]
    judged = judge_links(rows)
    assert {each.verdict for each in judged} == {Verdict.GOOD}
    assert "between three hosts or more" in judged[0].reason
    found = blame_links([(name, "", rate) for name, rate in rates.items()], inside=True)
    assert found is not None and found.links == () and found.ring == ("h#0", "h#1", "h#2")


@pytest.mark.parametrize("size", [2, 3, 5])
def test_patterns_and_their_sums_are_those_of_the_collectives(size: int) -> None:
    num = 30 * size
    parts = [pattern(num, rank, torch.float16, "cpu") for rank in range(size)]
    assert torch.equal(sum(parts), summed(num, size, torch.float16, "cpu"))
    assert len({tuple(part.tolist()) for part in parts}) == size


def test_gpus_are_swept_over_larger_sizes() -> None:
    each = load_all().get("all-reduce")
    cases = {(False, False): 16, (False, True): 1024, (True, False): 8, (True, True): 256}
    for (quick, on_gpu), mib in cases.items():
        assert max(int(p["bytes"]) for p in each.grid(quick, None, on_gpu)) == mib << 20
    assert {p["bytes"] for p in each.grid(True, {"bytes": [5]}, True)} == {5}


@pytest.mark.parametrize(
    ("options", "num"),
    [({"gpus_per_node": 8}, 8), ({"gpus_per_node": "a100:4"}, 4), ({"gres": "gpu:2"}, 2),
     ({"gres": "gpu:a100:8"}, 8), ({"gres": "lustre:1"}, 0), ({"partition": "gpu"}, 0)],
)  # fmt: skip
def test_slurm_gives_so_many_gpus(options: dict[str, object], num: int) -> None:
    assert slurm_gpus(options) == num


def test_interfaces_are_chosen_in_nccls_notation(monkeypatch: pytest.MonkeyPatch) -> None:
    names = enumerate(["lo", "docker0", "eth0", "ib0", "ib1"])
    monkeypatch.setattr("socket.if_nameindex", lambda: list(names_list))
    names_list = list(names)
    assert chosen_interfaces("ib") == ["ib0", "ib1"]
    assert chosen_interfaces("=ib1") == ["ib1"]
    assert chosen_interfaces("^lo,docker0") == ["eth0", "ib0", "ib1"]
    assert chosen_interfaces("") == []
