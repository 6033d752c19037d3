"""Options of `hakaru simulate` that change a schedule: each is seen in the times or on the nodes."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put_jobs, utc

AT = utc("2018-01-01T00:00:00")


def simulate(*arguments: object) -> str:
    done = hakaru("simulate", *arguments)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def swf(folder: Path, *jobs: tuple[int, int, int, int], procs: int = 4) -> Path:
    """Jobs as (submit, run, processors, request), numbered from 1."""
    lines = [
        f"{n} {submit} -1 {run} {pes} -1 -1 {pes} {asked} -1 1 1 1 -1 1 -1 -1 -1\n"
        for n, (submit, run, pes, asked) in enumerate(jobs, 1)
    ]
    path = folder / "log.swf"
    path.write_text(f"; UnixStartTime: 1000000000\n; MaxProcs: {procs}\n" + "".join(lines))
    return path


def starts(log: Path, *options: object) -> list[str]:
    output = log.with_suffix(".csv")
    simulate("--from", log, "-o", output, *options)
    return [line.split(",")[1] for line in output.read_text().splitlines()[1:]]


def rows_of(workspace: Path, *options: object) -> list[tuple[int, str]]:
    """When each job begins, in seconds, and where."""
    output = workspace / "s.csv"
    simulate("-w", workspace, "-o", output, *options)
    rows = csv.DictReader(output.read_text().splitlines())
    return [((utc(row["start"][:-1]) - AT) // timedelta(seconds=1), row["nodes"]) for row in rows]


def test_events_of_a_second_are_one_by_one_or_together(tmp_path: Path) -> None:
    """The shortest first: the long one begins before the other is known, unless both are seen at once."""
    log = swf(tmp_path, (0, 100, 4, 100), (0, 10, 4, 10))
    assert starts(log, "--policy", "sjf") == ["0", "100"]
    assert starts(log, "--policy", "sjf", "--events", "one-by-one") == ["0", "100"]
    assert starts(log, "--policy", "sjf", "--events", "batched") == ["10", "0"]
    said = simulate("--from", log, "--policy", "sjf", "--events", "batched")
    assert "events: batched" in said


def test_backfilling_goes_by_the_estimates_asked_for(tmp_path: Path) -> None:
    """The last job takes 150 s: it fits before the whole machine is free at 1,000 s, not at 100 s."""
    log = swf(tmp_path, (0, 100, 3, 1000), (10, 100, 4, 100), (20, 150, 1, 150))
    assert starts(log)[2] == starts(log, "--estimates", "request")[2] == "20"
    assert starts(log, "--estimates", "perfect")[2] == "200"
    scaled = simulate("--from", log, "--estimates", "scaled:2")
    assert "estimates: scaled:2" in scaled


def test_estimates_are_scaled_by_the_factor(tmp_path: Path) -> None:
    """Shortest first; a hundredth of 100 s and of 10 s is 1 s for both, so that the first come goes first."""
    log = swf(tmp_path, (0, 50, 4, 50), (1, 100, 4, 100), (2, 10, 4, 10))
    assert starts(log, "--policy", "sjf") == ["0", "60", "50"]
    assert starts(log, "--policy", "sjf", "--estimates", "scaled:0.01") == ["0", "50", "150"]


def test_the_policy_is_the_one_asked_for(tmp_path: Path) -> None:
    log = swf(tmp_path, (0, 100, 3, 100), (10, 100, 4, 100), (20, 50, 1, 50))
    assert starts(log) == starts(log, "--policy", "easy") == ["0", "100", "20"]
    assert starts(log, "--policy", "fcfs") == ["0", "100", "200"]


def test_jobs_of_low_queues_are_stopped_for_others(lake: Lake) -> None:
    rows = [
        job(1, queue="low", num_gpus=4, num_nodes=2, run_s=3600.0, submitted_at=AT),
        job(2, num_gpus=4, num_nodes=2, run_s=60.0, submitted_at=AT + timedelta(seconds=10)),
    ]
    put_jobs(lake, rows, '{"nodes": 2, "gpus_per_node": 2}')
    place = lake.workspace
    assert [start for start, _ in rows_of(place)] == [0, 3600]
    low = ("--policy", "preempting", "--low-queue", "low")
    assert rows_of(place, *low)[1][0] == 10
    assert "low queue low" in simulate("-w", place, *low)


def test_only_so_many_of_those_who_wait_have_a_reservation(tmp_path: Path) -> None:
    """The last fits beside the first at once; with one reservation nobody looks so far down the queue."""
    log = swf(tmp_path, (0, 100, 3, 100), (1, 100, 3, 100), (2, 100, 4, 100), (3, 50, 1, 50))
    whole = starts(log, "--policy", "conservative")
    one = starts(log, "--policy", "conservative", "--depth", 1)
    assert (whole, one) == (["0", "100", "200", "3"], ["0", "100", "200", "300"])


@pytest.fixture
def three(lake: Lake) -> Path:
    """One GPU, two nodes with one GPU of each, and one GPU, all at once."""
    rows = [
        job(1, run_s=100.0, submitted_at=AT),
        job(2, num_gpus=2, num_nodes=2, run_s=100.0, submitted_at=AT),
        job(3, run_s=100.0, submitted_at=AT),
    ]
    return put_jobs(lake, rows, '{"nodes": 4, "gpus_per_node": 2}').workspace


def test_nodes_are_filled_or_spread(three: Path) -> None:
    small = ("--where", "num_gpus = 1")
    assert rows_of(three, *small) == [(0, "node-0"), (0, "node-0")]
    assert rows_of(three, *small, "--packing", "best-fit") == [(0, "node-0"), (0, "node-0")]
    assert rows_of(three, *small, "--packing", "spread") == [(0, "node-0"), (0, "node-1")]


def test_whole_nodes_or_shared_ones(lake: Lake) -> None:
    """Beside a job of one GPU, one that spans both nodes waits for two whole ones, or has a GPU of each."""
    sizes = ((1, 1), (2, 2), (2, 1))
    rows = [job(n, num_gpus=gpus, num_nodes=nodes, run_s=100.0, submitted_at=AT + timedelta(seconds=n))
            for n, (gpus, nodes) in enumerate(sizes)]  # fmt: skip
    place = put_jobs(lake, rows, '{"nodes": 2, "gpus_per_node": 2}').workspace
    for whole in ((), ("--whole-nodes",)):
        assert rows_of(place, "--policy", "fcfs", *whole)[1] == (100, "node-0 node-1")
    assert rows_of(place, "--policy", "fcfs", "--share-nodes")[1] == (1, "node-0 node-1")


def test_a_job_stays_under_a_switch_if_it_must(three: Path) -> None:
    """Two nodes a switch, and the first job has the first node."""
    four = ("--nodes", "4x1", "--switch-size", 2)
    assert rows_of(three, *four)[1][1] == "node-1 node-2"
    for locality in ("preferred", "required"):
        assert rows_of(three, *four, "--locality", locality)[1][1] == "node-2 node-3"
    three_nodes = ("--nodes", "3x1", "--switch-size", 2, "--locality")
    assert rows_of(three, *three_nodes, "preferred")[1] == (0, "node-1 node-2")
    assert rows_of(three, *three_nodes, "required")[1] == (100, "node-0 node-1")


def test_the_machine_is_the_one_asked_for(three: Path) -> None:
    for options, machine in (
        ((), "4 nodes x 2 = 8 GPUs"),
        (("--nodes", "3x2"), "3 nodes x 2 = 6 GPUs"),
        (("--nodes", "3x2", "--nodes", "1x4"), "3 nodes x 2 + 1 node x 4 = 10 GPUs"),
        (("--processors", 5), "5 GPUs in one pool"),
    ):
        said = simulate("-w", three, *options)
        assert f"3 jobs on {machine} metric" in said
        whence = "as it was asked for" if options else "as hakaru.toml or the log says"
        assert f"the machine is {whence} " in said


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--packing", "spread"), "--packing"),
        (("--whole-nodes",), "--whole-nodes"),
        (("--switch-size", 2), "--switch-size"),
        (("--locality", "anywhere"), "--locality"),
        (("--fail", "0@2018-01-01..2018-01-02"), "--fail"),
        (("--drain", "0@2018-01-01..2018-01-02"), "--drain"),
    ],
)
def test_a_pool_has_no_nodes_to_speak_of(
    three: Path, options: tuple[object, ...], named: str
) -> None:
    refused = hakaru("simulate", "-w", three, "--processors", 4, *options)
    assert refused.exit_code == 1
    assert refused.stderr == (
        f"error: {named} is for a machine of nodes, and --processors is one pool: say --nodes COUNTxSIZE "
        "instead\n"
    )


def test_nodes_of_a_model_are_for_jobs_that_ask_for_it(lake: Lake) -> None:
    rows = [job(n, gpu_model=model, submitted_at=AT) for n, model in ((1, "a100"), (2, "v100"))]
    place = put_jobs(lake, rows).workspace
    nodes = ("--nodes", "1x1:v100", "--nodes", "1x1:a100")
    assert rows_of(place, *nodes) == [(0, "node-1"), (0, "node-0")]
    refused = hakaru("simulate", "-w", place, "--nodes", "1x1:a10")
    assert "COUNTxSIZE:a10: no job asks for the model 'a10'; did you mean a100?" in refused.stderr


def test_a_walltime_is_of_its_queue_and_may_refuse(lake: Lake, tmp_path: Path) -> None:
    rows = [job(n, queue=queue, run_s=7200.0, requested_s=7200.0, submitted_at=AT)
            for n, queue in ((1, "short"), (2, "long"))]  # fmt: skip
    place = put_jobs(lake, rows, '{"nodes": 1, "gpus_per_node": 8}').workspace
    said = simulate("-w", place, "--walltime", "short=1,refuse")
    assert "1 job on 1 node x 8" in said
    wrong = hakaru("simulate", "-w", place, "--walltime", "shrt=1")
    assert wrong.exit_code == 1 and "did you mean short?" in wrong.stderr


def test_a_stored_schedule_tells_how_it_was_made(three: Path) -> None:
    words = ("--into", "x", "--policy", "fcfs", "--nodes", "2x2", "--limit", "user:running-gpus=9")
    done = hakaru("simulate", "-w", three, *words)
    assert done.stderr == (
        f"stored 3 simulated jobs as x in {three}; next: hakaru show waits --cluster x -w {three}, or "
        "store another policy's and compare the two (from the record it also differs by the replay's "
        "error)\n"
    )
    (kept,) = [row for row in Lake.open(three).ingests() if row["cluster"] == "x"]
    assert kept["inputs"] == [
        "c under fcfs, 2 nodes x 2 = 4 GPUs, estimates: request, events: one-by-one, limit "
        "user:running-gpus=9"
    ]


@pytest.mark.parametrize(("option", "right", "wrong"), [
    ("--least-run", 60, 61), ("--least-run", 0, -1), ("--switch-size", 1, 0), ("--processors", 1, 0),
])  # fmt: skip
def test_the_bounds_of_numbers(three: Path, option: str, right: int, wrong: int) -> None:
    assert hakaru("simulate", "-w", three, option, right).exit_code == 0
    assert hakaru("simulate", "-w", three, option, wrong).exit_code == 2


def test_one_cluster_of_several_is_named(lake: Lake) -> None:
    put_jobs(
        lake, [job(1), job(2, cluster="d"), job(3, cluster="d")], '{"nodes": 1, "gpus_per_node": 2}'
    )
    refused = hakaru("simulate", "-w", lake.workspace)
    assert refused.stderr == (
        f"error: one cluster is simulated at a time, and {lake.workspace} holds c, d: choose with "
        "--cluster NAME\n"
    )
    assert "2 jobs on 1 node" in simulate("-w", lake.workspace, "--cluster", "d")
    assert (
        hakaru("simulate", "-w", lake.workspace, "--cluster", "c", "--cluster", "d").exit_code == 1
    )


def test_what_a_job_without_a_request_asks_for_in_numbers(lake: Lake, tmp_path: Path) -> None:
    """The head of the queue waits for the first job, which asks for no time but runs for 100 s."""
    rows = [
        job(1, num_gpus=3, requested_s=None, run_s=100.0, submitted_at=AT),
        job(2, num_gpus=4, requested_s=1000.0, run_s=100.0, submitted_at=AT + timedelta(seconds=1)),
        job(3, num_gpus=1, requested_s=500.0, run_s=500.0, submitted_at=AT + timedelta(seconds=2)),
    ]  # fmt: skip
    place = put_jobs(lake, rows).workspace
    pool = ("--processors", 4)

    def begins(*more: object) -> list[Any]:
        simulate("-w", place, *pool, "-o", tmp_path / "s.json", *more)
        rows = json.loads((tmp_path / "s.json").read_text())["schedule"]
        return [row["start"][14:19] for row in rows]

    assert begins()[2] == begins("--no-request", "queue-limit")[2] == "00:02"
    assert begins("--no-request", "run")[2] == "03:20"


def test_hours_of_a_limit_are_those_of_the_sites_clock(lake: Lake) -> None:
    """Nobody may begin from 9 to 10 in India; the job comes at nine, which is 3:30 in UTC."""
    rows = [job(1, submitted_at=AT + timedelta(hours=3, minutes=30))]
    facts = '{"zone": "Asia/Kolkata", "nodes": 1, "gpus_per_node": 8}'
    place = put_jobs(lake, rows, facts, zone=None).workspace
    ((start, _),) = rows_of(place, "--limit", "user:running-jobs=0,hours=9-10")
    assert start == 4.5 * 3600


def test_fair_share_says_where_ids_hold_within_one_log_only(lake: Lake) -> None:
    rows = [job(f"q{n}/1", user=f"q{n}/0") for n in (1, 2, 3)]
    place = put_jobs(lake, rows, '{"nodes": 1, "gpus_per_node": 8}').workspace
    note = "user ids hold within one of 3 log files"
    weights = ("--policy", "multifactor", "--weight", "fair_share=500")
    assert note in simulate("-w", place, *weights)
    assert note not in simulate("-w", place)


def test_a_stored_schedule_keeps_what_is_not_simulated(lake: Lake) -> None:
    rows = [job(1, name="train.py", num_cpus=7)]
    place = put_jobs(lake, rows, '{"nodes": 1, "gpus_per_node": 8}').workspace
    simulate("-w", place, "--into", "x")
    for where in ("name = 'train.py'", "num_cpus = 7"):
        shown = hakaru("show", "states", "-w", place, "--cluster", "x", "--where", where)
        assert "1 of 1 job" in shown.output, where
