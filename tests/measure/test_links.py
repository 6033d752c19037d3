"""Pairs, blame and the α–β fit, without a network."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Queue

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hakaru.measure._base import load_all
from hakaru.measure.collective._blame import blame
from hakaru.measure.collective._fit import fit
from hakaru.measure.collective._judge import Probe, blame_links, judge_links
from hakaru.measure.collective._ranks import chosen_interfaces
from hakaru.measure.collective.operations import factor, pattern, summed
from hakaru.measure.collective.pairs import REPETITIONS, _exchange, all_rounds, rounds
from hakaru.measure.job import slurm_gpus, uses_gpus
from hakaru.measure.record import Measurement
from hakaru.measure.verdict import Verdict
from tests.measure._runs import measured


def probes(rates: dict[str, float]) -> list[Probe]:
    return [Probe(name, "", rate, rate) for name, rate in rates.items()]


def link(device: str, *rates: float) -> Measurement:
    return measured(
        *rates, benchmark="pairs", quantity="bandwidth", device=device, parameters={"bytes": 8}
    )


def rails(num_hosts: int, num_ranks: int, rate: Callable[[str, int], float]) -> list[Measurement]:
    """All links between hosts of so many ranks each, as fast as the slower of their ends."""
    hosts = [f"h{at}" for at in range(num_hosts) for _ in range(num_ranks)]
    ends = [(hosts[rank], rank) for rank in range(len(hosts))]
    return [
        link(f"{hosts[a]}#{a}>{hosts[b]}#{b}", *[min(rate(*ends[a]), rate(*ends[b]))] * 5)
        for listed in all_rounds(hosts) for pair in listed for a, b in (pair, pair[::-1])
        if hosts[a] != hosts[b]
    ]  # fmt: skip


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


def test_each_rank_of_a_host_is_paired_with_the_same_one_of_others_in_its_turn() -> None:
    listed = all_rounds(["a"] * 4 + ["b"] * 4 + ["c"] * 4)
    crossing = [[pair for pair in pairs if pair[0] // 4 != pair[1] // 4] for pairs in listed]
    assert {rank for pairs in crossing for pair in pairs for rank in pair} == set(range(12))
    for pairs in crossing:  # an adapter that ranks share carries one transfer at once
        assert len({rank % 4 for pair in pairs for rank in pair}) <= 1
    for pairs in listed:
        ranks = [rank for pair in pairs for rank in pair]
        assert len(ranks) == len(set(ranks))


@pytest.mark.parametrize("num_hosts", [3, 4, 9])
def test_one_bad_adapter_of_a_host_is_named_by_its_rank(num_hosts: int) -> None:
    found = rails(num_hosts, 8, lambda host, rank: 5.0 if rank == 13 else 25.0)
    slow = [each for each in judge_links(found) if each.verdict is Verdict.SLOW]
    assert slow and all("h1#13" in each.device.split(">") for each in slow)
    assert slow[0].reason.startswith("h1#13 is slow to all its partners; 20% of")
    blamed = blame_links(probes({each.device: each.median or 0.0 for each in found}))
    assert blamed is not None and (blamed.hosts, blamed.links) == (("h1#13",), ())
    assert blamed.bottleneck is not None and "h1" in blamed.bottleneck
    assert blamed.bottleneck_rate == 5.0


def test_a_host_whose_adapters_are_all_slow_is_named_itself() -> None:
    found = rails(4, 2, lambda host, rank: 5.0 if host == "h2" else 25.0)
    slow = [each for each in judge_links(found) if each.verdict is Verdict.SLOW]
    assert {each.device for each in slow} == {e.device for e in found if "h2" in e.device}
    assert {each.reason.partition(";")[0] for each in slow} == {"h2 is slow to all its partners"}


def test_of_two_hosts_a_slow_adapter_shows_as_a_slow_link() -> None:
    found = rails(2, 8, lambda host, rank: 5.0 if rank == 5 else 25.0)
    slow = [each for each in judge_links(found) if each.verdict is Verdict.SLOW]
    assert [each.device for each in slow] == ["h0#5>h1#13", "h1#13>h0#5"]
    assert slow[0].reason.startswith("this link is slow, its ends are not")


def test_a_link_is_slow_only_if_each_of_its_repetitions_is() -> None:
    names = [f"{a}#0>{b}#0" for a in "abcd" for b in "abcd" if a != b]
    others = [link(name, *[20.0] * 5) for name in names[1:]]
    for rates, verdict in (
        ((9, 10, 11, 10, 9), Verdict.SLOW),
        ((9, 10, 20, 10, 9), Verdict.NOT_MEASURED),
        ((20, 19, 3, 20, 3), Verdict.GOOD),
        ((9,), Verdict.SLOW),
    ):
        first, *rest = judge_links([link(names[0], *map(float, rates)), *others])
        assert first.verdict is verdict, first.reason
        assert {each.verdict for each in rest} == {Verdict.GOOD}
    inside = [link(f"h{at}#0>h{at}#1", *[200.0] * 5) for at in range(3)]
    spoilt = link("h3#0>h3#1", 50.0, 190.0, 50.0, 50.0, 50.0)
    assert judge_links([*inside, spoilt])[-1].verdict is Verdict.NOT_MEASURED


@dataclass
class Pipe:
    """One end of a link on which a transfer takes so many seconds; it keeps the marks that arrive."""

    out: Queue[int]
    inwards: Queue[int]
    seconds: float
    marks: list[int] = field(default_factory=list)

    def send(self, peer: int, mark: int) -> float:
        self.out.put(mark)
        return self.seconds

    def receive(self, peer: int, mark: int) -> None:
        self.marks.append(self.inwards.get(timeout=5))
        assert self.marks[-1] == mark

    def send_number(self, peer: int, number: int) -> None:
        self.out.put(number)

    def receive_number(self, peer: int) -> int:
        return self.inwards.get(timeout=5)


@pytest.mark.parametrize(("seconds", "num"), [(0.01, REPETITIONS), (0.8, 2), (2.0, 1), (9.0, 1)])
def test_a_slow_link_takes_few_repetitions_and_both_ends_know_it(seconds: float, num: int) -> None:
    there: Queue[int] = Queue()
    back: Queue[int] = Queue()
    ends = [Pipe(there, back, seconds), Pipe(back, there, seconds)]
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(_exchange, rank, (0, 1), ends[rank], 2.0) for rank in range(2)]
        taken = [each.result(timeout=20) for each in found]
    assert taken == [{"0>1": [seconds] * num}, {"1>0": [seconds] * num}]
    sent = 1 if seconds > 2.0 else num + 1  # the first counts only where it took the whole turn
    assert [len(set(end.marks)) for end in ends] == [sent, sent]


def test_fast_links_inside_hosts_do_not_make_those_between_them_slow() -> None:
    between = [link(f"h{a}#0>h{b}#0", *[20.0] * 5) for a in range(4) for b in range(4) if a != b]
    inside = [link(f"h{a}#{b}>h{a}#{1 - b}", *[200.0] * 5) for a in range(4) for b in range(2)]
    judged = judge_links([*between, *inside])
    assert {each.verdict for each in judged} == {Verdict.GOOD}
    one_slow = [link(e.device, 100.0 if e.device == "h2#0>h2#1" else 200.0) for e in inside]
    slow = [each for each in judge_links(one_slow) if each.verdict is Verdict.SLOW]
    assert [each.device for each in slow] == ["h2#0>h2#1"]
    assert "50% of the same link of the other hosts" in slow[0].reason
    slow = [link(each.device, 4.0 if "h2" in each.device else 20.0) for each in between]
    found = blame_links(probes({each.device: each.median or 0.0 for each in [*slow, *inside]}))
    assert found is not None
    assert found.hosts == ("h2",)


def test_the_ring_is_that_of_the_ranks_and_its_slowest_link_bounds_it() -> None:
    rates = {}
    for pairs in rounds(8):
        for a, b in pairs:
            rates[f"h{a}#{a}>h{b}#{b}"] = rates[f"h{b}#{b}>h{a}#{a}"] = 1.0
    rates["h2#2>h3#3"] = 0.85
    rates["h0#0>h4#4"] = 0.81  # not a part of the ring
    found = blame_links(probes(rates))
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
    found = blame_links(probes(rates), inside=True)
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
     ({"gres": "gpu:a100:8"}, 8), ({"gres": "lustre:1"}, 0), ({"partition": "gpu"}, 0),
     ({"gres": "lustre:1,gpu:2"}, 2), ({"gres": "gpu:2,lustre:1"}, 2), ({"gres": "gpu"}, 1),
     ({"gres": "gpu:a100"}, 1), ({"gpus_per_node": "a100:2,h100:2"}, 4), ({"num_gpus": 8}, 8),
     ({"gpus_per_task": 1}, 1), ({"gpus_per_task": "a100:4"}, 1), ({"gpus_per_task": 0}, 0)],
)  # fmt: skip
def test_slurm_gives_so_many_gpus(options: dict[str, object], num: int) -> None:
    assert slurm_gpus(options) == num


@pytest.mark.parametrize(
    ("launcher", "devices", "options", "wanted"),
    [("slurm", (), {"gpus_per_task": 1}, True), ("slurm", (), {"partition": "gpu"}, False),
     ("mpirun", ("cuda",), {}, True), ("mpirun", ("n1/cuda:3",), {}, True), ("slurm", ("gpu",), {}, True),
     ("mpirun", ("cpu",), {}, False)],
)  # fmt: skip
def test_gpus_are_used_where_slurm_or_a_name_says_so(
    launcher: str, devices: tuple[str, ...], options: dict[str, object], wanted: bool
) -> None:
    assert uses_gpus(launcher, devices, options) is wanted


def test_interfaces_are_chosen_in_nccls_notation(monkeypatch: pytest.MonkeyPatch) -> None:
    names = enumerate(["lo", "docker0", "eth0", "ib0", "ib1"])
    monkeypatch.setattr("socket.if_nameindex", lambda: list(names_list))
    names_list = list(names)
    assert chosen_interfaces("ib") == ["ib0", "ib1"]
    assert chosen_interfaces("=ib1") == ["ib1"]
    assert chosen_interfaces("^lo,docker0") == ["eth0", "ib0", "ib1"]
    assert chosen_interfaces("") == []
