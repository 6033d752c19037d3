"""What a variant makes of jobs and machines, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from hakaru.errors import HakaruError
from hakaru.settings import Capacity, Cluster, Queue
from hakaru.sim.queues import QueueRule, limit_queue
from hakaru.sim.site import Site
from hakaru.sim.whatif import ScenarioError, read
from hakaru.sim.whatif import changes as change
from hakaru.sim.whatif.intervals import WEEK_S
from hakaru.sim.whatif.scenario import AccurateRequests
from hakaru.sim.whatif.variants import ORIGIN, Prepared, prepare
from tests.sim._jobs import workload

HOUR = 3600
SITE = Cluster(
    gpus_per_node=8, nodes=(Capacity(4),), queues={"short": Queue(max_walltime_h=3, max_gpus=1)}
)


def prepared(text: str, *jobs: object, site: Cluster = SITE) -> list[Prepared]:
    return prepare(read(text), workload(*(jobs or [(0, 10, 1)])), Site("c", site))


def test_accurate_requests_are_little_more_than_the_run_and_never_more_than_asked() -> None:
    jobs = workload(
        (0, 1000, 1, {"requested_s": 5000.0}),  # 1100
        (1, 10, 1, {"requested_s": 5000.0}),  # 600: ten minutes at least
        (2, 1000, 1, {"requested_s": 1050.0}),  # as asked
        (3, 1000, 1, {"requested_s": 5000.0, "user": None}),  # nobody's
    )
    changed, note = change.make_accurate(jobs, AccurateRequests(100), seed=1)
    assert changed.request.tolist() == [1100, 600, 1050, 5000]
    assert "1 of 1 user (seed 1)" in note
    assert note.endswith("2 jobs")


def test_the_seed_chooses_the_users() -> None:
    jobs = workload(*((at, 10, 1, {"user": f"u{at}", "requested_s": 9e4}) for at in range(40)))
    chosen = [
        change.make_accurate(jobs, AccurateRequests(25), seed)[0].request < 90000
        for seed in (1, 1, 2)
    ]
    assert [each.sum() for each in chosen] == [10, 10, 10]
    assert (chosen[0] == chosen[1]).all()
    assert (chosen[0] != chosen[2]).any()


def test_scaled_requests_stay_at_the_run_time() -> None:
    jobs = workload((0, 80, 1, {"requested_s": 100.0}), (1, 10, 1, {"requested_s": 100.0}))
    changed, note = change.scale_requests(jobs, 0.5)
    assert changed.request.tolist() == [80, 50]
    assert note == "requests are scaled by 0.5; 1 that would fall below the run time stay at it"


def test_a_queue_cuts_or_refuses_what_asks_for_more() -> None:
    short = {"queue": "short"}
    jobs = workload(
        (0, 2 * HOUR, 1, short),
        (1, 5 * HOUR, 1, short),
        (2, 9 * HOUR, 1),
        (3, HOUR, 2, short),
    )
    cut, note = limit_queue(jobs, "short", QueueRule(max_walltime_h=3, max_gpus=1))
    assert cut.request.tolist() == [2 * HOUR, 3 * HOUR, 9 * HOUR]
    assert cut.run.tolist() == [2 * HOUR, 3 * HOUR, 9 * HOUR]
    assert cut.left_out == {"above the limits of queue short": 1}
    assert note == "queue short: 1 request cut to 3 h, 1 job ended there"
    refused, _ = limit_queue(jobs, "short", QueueRule(max_walltime_h=3, over="refuse"))
    assert refused.request.tolist() == [2 * HOUR, 9 * HOUR, HOUR]


def test_a_wider_queue_takes_what_its_old_limit_kept_out() -> None:
    jobs = workload(
        (0, 2 * HOUR, 1),  # was free to go there, and did not
        (1, 5 * HOUR, 1),  # comes over
        (2, 5 * HOUR, 2),  # too large
        (3, 7 * HOUR, 1),  # too long
        (4, 5 * HOUR, 1, {"queue": "long"}),  # not from there
        (5, HOUR, 1, {"queue": "short"}),
    )
    rule = QueueRule(max_walltime_h=6, takes_from=("normal",))
    widened, note = change.widen_queue(jobs, "short", rule, SITE.queues["short"])
    names = [widened.names["queue"][code] for code in widened.queue]
    assert names == ["normal", "short", "normal", "normal", "long", "short"]
    assert note.startswith("queue short takes over 1 job of other queues, which its limit of 3 h")


def test_jobs_move_only_to_a_queue_that_the_scheduler_knows() -> None:
    text = "[[variant]]\n[variant.queues.short]\nmax_walltime_h = 6\n"
    points = 'policy = "multifactor"\nweights = { queue = { short = 500 } }\n'
    jobs = [(0, 5 * HOUR, 1), (1, HOUR, 1, {"queue": "short"})]
    _, plain = prepared(text, *jobs)
    assert plain.workload.queue.tolist() == [0, 1]
    assert "so no job moves to it" in plain.notes[0]
    _, moved = prepared(text.replace("[variant.q", points + "[variant.q"), *jobs)
    assert moved.workload.queue.tolist() == [1, 1]


def test_more_load_keeps_hour_and_weekday_and_copies_whole_users() -> None:
    rng = np.random.default_rng(0)
    moments = np.sort(rng.integers(0, 10 * WEEK_S, 600))
    jobs = workload(*((int(at), 100, 1, {"user": f"u{i % 30}"}) for i, at in enumerate(moments)))
    grown, note = change.grow_load(jobs, 1.5, seed=3)
    assert "15 users drawn anew (seed 3)" in note
    assert note.endswith("the load is 1.500 times the log's")
    assert (np.diff(grown.submit) >= 0).all()
    assert len(grown.names["user"]) == 45
    own = np.asarray(jobs.submit)
    for code in range(30, 45):
        name = grown.names["user"][code]
        copied = jobs.names["user"].index(name.split(" (copy")[0])
        moved = np.sort(grown.submit[grown.user == code] % WEEK_S)
        assert moved.tolist() == np.sort(own[jobs.user == copied] % WEEK_S).tolist()
        assert grown.submit[grown.user == code].max() < 10 * WEEK_S + own.min()


def test_more_load_needs_two_weeks() -> None:
    """In less, every copy would stand at the very moments of its original."""
    jobs = workload(*((i * 86400, 100, 1, {"user": f"u{i % 5}"}) for i in range(14)))
    with pytest.raises(HakaruError, match=r"the log spans 13\.0 days: give a log of two weeks"):
        change.grow_load(jobs, 1.2, seed=1)
    assert len(change.grow_load(jobs, 1.0, seed=1)[0]) == 14


def test_less_load_leaves_users_out() -> None:
    jobs = workload(*((i, 100, 1, {"user": f"u{i % 20}"}) for i in range(200)))
    fewer, note = change.grow_load(jobs, 0.8, seed=3)
    assert len(fewer) == 160
    assert "4 users are left out" in note
    assert fewer.left_out == {"of users left out to lower the load": 40}


def test_nodes_are_added_to_those_over_time() -> None:
    later = Cluster(gpus_per_node=8, nodes=(Capacity(2), Capacity(3, None)))
    assert prepared("[[variant]]\nnodes = +4\n")[1].machine.num_nodes == 8
    assert prepared("[[variant]]\nnodes = -3\n")[1].machine.num_nodes == 1
    assert prepared("[[variant]]\nnodes = -1\n", site=later)[1].machine.num_nodes == 2
    assert prepared("[[variant]]\nmachine = { nodes = 42 }\n")[1].machine.num_pes == 336
    with pytest.raises(HakaruError, match="“variant 1”: nodes = -4 takes 4 of 4 nodes away"):
        prepared("[[variant]]\nnodes = -4\n")
    with pytest.raises(HakaruError, match="this one is a pool"):
        prepared("[machine]\nprocessors = 4\n[[variant]]\nnodes = +4\n")


def test_the_machine_is_the_clusters_unless_the_scenario_says() -> None:
    base, variant = prepared('[[variant]]\nmachine = { packing = "spread" }\n')
    assert (base.machine.num_pes, base.machine.placement.packing) == (32, "best-fit")
    assert variant.machine.placement.packing == "spread"
    pool = prepared("[machine]\nprocessors = 5\n[[variant]]\nmachine = { nodes = 2, size = 4 }\n")
    assert (pool[0].machine.is_flat, pool[1].machine.num_pes) == (True, 8)
    with pytest.raises(HakaruError, match=r"the size of c is not known.*to the scenario"):
        prepared("[[variant]]\nnodes = +1\n", site=Cluster())


def test_failing_nodes_come_back_on_the_sites_clock() -> None:
    site = Cluster(zone="Asia/Tokyo", gpus_per_node=8, nodes=(Capacity(4),))
    text = "[[variant]]\nfailures = [{ at = 1970-01-02T09:00:00, nodes = 2, hours = 1 }]\n"
    made = prepared(text, site=site)[1].machine.changes
    assert [(each.time, each.node, each.kind) for each in made] == [
        (86400, 0, "down"),
        (86400, 1, "down"),
        (90000, 0, "up"),
        (90000, 1, "up"),
    ]


def test_names_that_no_job_has_are_told_at_once() -> None:
    text = """
    [[variant]]
    name = "v"
    limits = [{ scope = "user", what = "running-jobs", value = 1, queue = "norml", only = "bob" }]
    [variant.queues.x]
    takes_from = ["y"]
    """
    with pytest.raises(ScenarioError) as raised:
        prepared(text)
    said = str(raised.value)
    assert "v.limits[1].queue: no job has 'norml'; did you mean normal?" in said
    assert "v.limits[1].only: no job has 'bob'; known: ann" in said
    assert "v.queues: no job has 'x'" in said
    assert "v.queues.x.takes_from: no job has 'y'" in said


def test_every_job_knows_which_of_the_log_it_is() -> None:
    users = [(i // 30 * WEEK_S + i, 100, 1, {"user": f"u{i % 10}"}) for i in range(100)]
    base, grown = prepared("[[variant]]\nload = 1.2\n", *users)
    assert base.workload.table[ORIGIN].to_pylist() == list(range(100))
    origin = grown.workload.table[ORIGIN].to_numpy()
    assert len(origin) == 120
    copies = np.asarray(grown.workload.user) >= 10
    assert sorted(origin[~copies].tolist()) == list(range(100))
    names = np.array(grown.workload.names["user"])[grown.workload.user[copies]]
    assert [f"u{i % 10}" for i in origin[copies]] == [name.split(" ")[0] for name in names]


def test_an_accurate_request_is_never_below_its_part_of_the_run() -> None:
    """1.1 times 1,005 s is 1,105.5 s: whole seconds above, as one below would not be 1.1 times."""
    jobs = workload((0, 1005, 1, {"requested_s": 9000.0}))
    got, _ = change.make_accurate(jobs, AccurateRequests(100, 1.1, 10), seed=1)
    assert got.request.tolist() == [1106]
