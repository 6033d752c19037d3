"""Where jobs go on nodes, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hakaru import sim
from tests.sim._jobs import play


def placed(schedule: sim.Schedule) -> list[tuple[int, list[int]]]:
    return [(int(start), schedule.nodes_of(j)) for j, start in enumerate(schedule.start)]


def nodes(count: int, size: int, switch_size: int | None = None, **placement: Any) -> sim.Machine:
    where = sim.Placement(**placement)
    return sim.Machine.of_nodes(count, size, switch_size=switch_size, placement=where)


def test_best_fit_keeps_a_node_free_and_spread_does_not() -> None:
    # The second goes beside the first, or to the empty node. A job of four then finds a node, or five free
    # PEs of which no node has four: it waits until 10.
    jobs = [(0, 10, 2), (0, 10, 1), (1, 10, 4)]
    tight = play(jobs, nodes(2, 4, packing="best-fit"), "easy")
    loose = play(jobs, nodes(2, 4, packing="spread"), "easy")
    assert placed(tight) == [(0, [0]), (0, [0]), (1, [1])]
    assert placed(loose) == [(0, [0]), (0, [1]), (10, [0])]
    assert loose.table()["why_waited"].to_pylist() == ["none", "none", "fragmentation"]
    assert (tight.totals["fragmented_s"], loose.totals["fragmented_s"]) == (0, 9 * 5)


def test_a_job_of_several_nodes_wants_them_whole() -> None:
    # Two PEs on each of two nodes, while one PE of the first is taken until 10.
    jobs = [(0, 10, 1), (1, 5, 4, {"span_nodes": 2})]
    assert placed(play(jobs, nodes(2, 4), "easy")) == [(0, [0]), (10, [0, 1])]
    assert placed(play(jobs, nodes(2, 4, whole_nodes=False), "easy")) == [(0, [0]), (1, [0, 1])]


def test_nobody_moves_in_beside_a_head_that_wants_whole_nodes() -> None:
    # The head begins on both nodes at 10 and uses half of each. A job that runs past 10 would fit beside it,
    # but the nodes would not be whole at 10 then, and the head has them to itself until 15.
    jobs = [(0, 10, 1), (1, 5, 4, {"span_nodes": 2}), (2, 100, 2)]
    assert placed(play(jobs, nodes(2, 4), "easy")) == [(0, [0]), (10, [0, 1]), (15, [0])]


def test_the_head_has_its_reservation_on_certain_nodes() -> None:
    # Node 0 is taken until 10, node 1 until 20 with one PE free: the head has node 0 from 10 on. A long job
    # of one PE goes to node 1, which the head does not need; one of two fits nowhere until the head began.
    jobs = [(0, 10, 3), (0, 20, 3), (1, 5, 4), (2, 100, 1), (3, 100, 1)]
    got = placed(play(jobs, nodes(2, 4), "easy"))
    assert got[:4] == [(0, [0]), (0, [1]), (10, [0]), (2, [1])]
    assert got[4] == (15, [0])


def test_a_job_larger_than_a_node_takes_several() -> None:
    # Eight PEs on nodes of four; five are three on each of two, which are taken whole.
    got = play([(0, 10, 8), (0, 10, 5)], nodes(2, 4), "easy")
    assert placed(got) == [(0, [0, 1]), (10, [0, 1])]
    assert got.totals["busy_s"] == 80 + 80
    shared = play([(0, 10, 8), (0, 10, 5)], nodes(2, 4, whole_nodes=False), "easy")
    assert shared.totals["busy_s"] == 80 + 60


def test_one_node_and_a_flat_pool() -> None:
    assert placed(play([(0, 10, 2)], nodes(1, 4), "easy")) == [(0, [0])]
    assert placed(play([(0, 10, 2)], sim.Machine.flat(4), "easy")) == [(0, [])]


WIDE = (0, 10, 4, {"span_nodes": 2})


@pytest.mark.parametrize(
    ("locality", "expected"),
    [("anywhere", [1, 2]), ("preferred", [2, 3]), ("required", [2, 3])],
)
def test_a_job_of_several_nodes_stays_under_a_switch(locality: str, expected: list[int]) -> None:
    # Node 0 is taken: under the first switch only one node is left.
    machine = nodes(4, 2, switch_size=2, locality=locality)
    assert placed(play([(0, 100, 2), WIDE], machine, "easy")) == [(0, [0]), (0, expected)]


def test_the_switch_with_the_fewest_nodes_that_are_enough() -> None:
    machine = nodes(5, 2, switch_size=3, locality="preferred")
    assert placed(play([WIDE], machine, "easy")) == [(0, [3, 4])]


def test_locality_is_a_wish_or_a_must() -> None:
    # One node is there under each of two switches; at 50 a second comes under the first.
    where = {"switch_size": 2, "closed": (0, 2), "changes": (sim.Change(50, 0, "up"),)}
    got = {}
    for locality in ("preferred", "required"):
        placement = sim.Placement(locality=locality)
        machine = sim.Machine.of_nodes(4, 2, placement=placement, **where)
        got[locality] = placed(play([WIDE], machine, "easy"))
    assert got == {"preferred": [(0, [1, 3])], "required": [(50, [0, 1])]}


def test_what_no_switch_can_hold_is_left_out() -> None:
    machine = nodes(4, 2, switch_size=2, locality="required")
    got = play([(0, 10, 6, {"span_nodes": 3}), WIDE], machine, "fcfs")
    assert placed(got) == [(0, [0, 1])]
    assert got.workload.left_out == {"more nodes than lie under one switch": 1}


def test_what_no_switch_can_hold_of_a_model_is_left_out() -> None:
    # Of the two b nodes one lies under each switch.
    groups = (sim.Group(2, 2, "a"), sim.Group(2, 2, "b"))
    machine = sim.Machine(groups, switch_size=3, placement=sim.Placement(locality="required"))
    wide = [(0, 10, 4, {"span_nodes": 2, "gpu_model": model}) for model in ("a", "b")]
    got = play(wide, machine, "fcfs")
    assert placed(got) == [(0, [0, 1])]
    assert got.workload.left_out == {"more nodes than lie under one switch": 1}


def test_models() -> None:
    # The second b waits for the only b; who asks for none takes the a, which the head has no use for.
    machine = sim.Machine((sim.Group(1, 4, "a"), sim.Group(1, 4, "b")))
    b, c = {"gpu_model": "b"}, {"gpu_model": "c"}
    got = play([(0, 10, 4, b), (0, 10, 4, b), (0, 10, 4), (0, 10, 1, c)], machine, "easy")
    assert placed(got) == [(0, [1]), (10, [1]), (0, [0])]
    assert got.workload.left_out == {"ask for a model that no node has (c)": 1}


def test_what_is_free_of_another_model_is_not_fragmented() -> None:
    # While both nodes of model a are taken, the free one of model b is no piece of what the third wants.
    groups = (sim.Group(2, 4, "a"), sim.Group(1, 4, "b"))
    machine = sim.Machine(groups, placement=sim.Placement(packing="spread"))
    a = {"gpu_model": "a"}
    got = play([(0, 10, 4, a), (0, 10, 4, a), (1, 5, 4, a)], machine, "easy")
    assert got.table()["why_waited"].to_pylist() == ["none", "none", "resources"]
    assert got.totals["fragmented_s"] == 0
    # Two and three are free on its nodes: five, but no four on one. The four of model b do not count.
    got = play([(0, 10, 2, a), (0, 10, 1, a), (1, 5, 4, a)], machine, "easy")
    assert got.start.tolist() == [0, 0, 10]
    assert got.table()["why_waited"].to_pylist() == ["none", "none", "fragmentation"]
    assert got.totals["fragmented_s"] == 9 * 5
    for policy in ("conservative", "conservative-depth"):
        got = play([(0, 10, 4, a), (0, 10, 4, a), (1, 5, 4, a)], machine, policy)
        assert got.totals["fragmented_s"] == 0
        got = play([(0, 10, 2, a), (0, 10, 1, a), (1, 5, 4, a)], machine, policy)
        assert got.totals["fragmented_s"] == 9 * 5


def test_what_others_took_since_is_not_fragmented() -> None:
    # From 1 to 2 five are free, scattered; from 2 on, when a short job took two of them, too few.
    jobs = [(0, 10, 2), (0, 10, 1), (1, 10, 4), (2, 8, 2)]
    got = play(jobs, nodes(2, 4, packing="spread"), "easy")
    assert got.start.tolist() == [0, 0, 10, 2]
    assert got.totals["fragmented_s"] == 5


def test_models_do_not_matter_to_a_machine_without_any() -> None:
    got = play([(0, 10, 4, {"gpu_model": "b"})], nodes(1, 4), "easy")
    assert placed(got) == [(0, [0])]


def test_a_job_is_spread_over_nodes_of_its_own_model() -> None:
    # Four PEs are one node of a, and two of b.
    machine = sim.Machine((sim.Group(1, 4, "a"), sim.Group(2, 2, "b")))
    got = play([(0, 10, 4, {"gpu_model": model}) for model in ("a", "b", None)], machine, "easy")
    assert placed(got) == [(0, [0]), (0, [1, 2]), (10, [0])]


def test_a_job_is_spread_over_smaller_nodes_where_the_large_are_too_few() -> None:
    machine = sim.Machine((sim.Group(3, 8), sim.Group(1, 16)))
    got = play([(0, 10, 32), (0, 10, 16), (0, 10, 33)], machine, "easy")
    # 32 are four times 8; 16 lie on the one node; 33 would be seven on each of five nodes.
    assert got.workload.left_out == {"larger than the machine": 1}
    assert got.num_nodes.tolist() == [4, 1]
    assert got.nodes_of(1) == [3]


def test_jobs_of_a_model_that_no_node_has_are_told_apart() -> None:
    machine = sim.Machine((sim.Group(1, 8, "a100"), sim.Group(1, 4)))
    jobs = [(0, 10, 8, {"gpu_model": model}) for model in ("a100", "v100", "p100", None)]
    got = play([*jobs, (0, 10, 99)], machine, "easy")
    assert got.workload.left_out == {
        "ask for a model that no node has (v100, p100)": 2,
        "larger than the machine": 1,
    }
    assert got.start.tolist() == [0, 10]


def test_a_log_that_counts_processors_as_nodes_is_placed_by_size() -> None:
    # Each job has as many nodes as PEs: eight processors are two nodes of four, not eight nodes.
    jobs = [(0, 10, 8, {"span_nodes": 8}), (0, 10, 1, {"span_nodes": 1})]
    got = play(jobs, nodes(2, 4), "fcfs")
    assert placed(got) == [(0, [0, 1]), (10, [0])]
    assert list(got.workload.notes.values()) == [1]
    # One job with several PEs on a node, and nodes are nodes: eight of them are more than there are.
    mixed = play([*jobs, (0, 10, 2, {"span_nodes": 1})], nodes(2, 4), "fcfs")
    assert mixed.workload.left_out == {"larger than the machine": 1}
