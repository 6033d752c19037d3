"""`hakaru simulate`: the published schedules, files, what is said, and what is refused."""

from __future__ import annotations

import csv
import gzip
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from hakaru.cli import main
from hakaru.lake import Lake
from tests.conftest import job, put_jobs, utc

AT = utc("2018-01-01T00:00:00")
SWF = "; UnixStartTime: 1000000000\n; MaxProcs: {procs}\n"


def hakaru(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(main, [str(argument) for argument in arguments])


def simulate(*arguments: object) -> str:
    result = hakaru("simulate", *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments: object) -> str:
    result = hakaru("simulate", *arguments)
    assert result.exit_code != 0, result.output
    assert "Traceback" not in result.output
    return result.output


def swf_file(folder: Path, jobs: list[tuple[int, int, int, int]], procs: int = 4) -> Path:
    """Jobs as (submit, run, processors, request), numbered from 1."""
    lines = [
        f"{number} {submit} -1 {run} {pes} -1 -1 {pes} {asked} -1 1 1 1 -1 1 -1 -1 -1"
        for number, (submit, run, pes, asked) in enumerate(jobs, 1)
    ]
    path = folder / "small.swf"
    path.write_text(SWF.format(procs=procs) + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return swf_file(tmp_path, [(0, 100, 3, 100), (10, 100, 4, 100), (20, 500, 1, 500)])


@pytest.fixture
def workspace(lake: Lake) -> Path:
    """Two nodes of two GPUs: the second job needs both, and was said to begin at once."""
    rows = [
        job(1, num_gpus=2, run_s=100.0, requested_s=100.0),
        job(2, num_gpus=4, num_nodes=2, run_s=50.0, requested_s=60.0, queue="long", user="bob"),
        job(3, num_gpus=1, run_s=3600.0, submitted_at=AT + timedelta(seconds=10)),
        job(4, run_s=None, started_at=None, ended_at=None, wait_s=None, state="pending"),
    ]
    put_jobs(lake, rows, '{"gpus_per_node": 2, "nodes": 2}')
    return lake.workspace


@pytest.mark.parametrize("verb", ["simulate", "advise"])
def test_a_filter_that_looks_for_what_no_job_has_is_warned_of(workspace: Path, verb: str) -> None:
    result = hakaru(verb, "-w", workspace, "--where", "queue <> 'Long'")
    assert "warning: no job has queue = 'Long'; it is one of: long, normal\n" in result.stderr
    right = hakaru(verb, "-w", workspace, "--where", "queue <> 'long'")
    assert "no job has" not in right.stderr


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_the_published_schedules_byte_for_byte(shared: Path, tmp_path: Path, policy: str):
    log = shared / "data" / "schedules" / "kth-100.swf.gz"
    output = tmp_path / "schedule.csv"
    simulate("--from", log, "--processors", 100, "--policy", policy, "-o", output)
    published = shared / "data" / "schedules" / f"kth-100-{policy}.csv.gz"
    assert output.read_bytes() == gzip.decompress(published.read_bytes())


def test_an_swf_counts_from_its_start_on_its_own_processors(small: Path, tmp_path: Path):
    output = tmp_path / "s.csv"
    said = simulate("--from", small, "-o", output)
    assert "3 jobs on 4 processors in one pool" in said
    assert output.read_text() == "job_id,start\n1,0\n2,100\n3,200\n"


def test_batched_or_perfect_and_other_files(small: Path, tmp_path: Path):
    parquet, document = tmp_path / "s.parquet", tmp_path / "s.json"
    simulate("--from", small, "--events", "batched", "--estimates", "perfect", "-o", parquet)
    assert pq.read_table(parquet).to_pylist()[1] == {"job_id": 2, "start": 100}
    simulate("--from", small, "-o", document)
    told = json.loads(document.read_text())
    assert (told["policy"], told["schedule"][2]) == ("easy", {"job_id": 3, "start": 200})
    assert told["metrics"]["num_jobs"] == 3 and told["machine"] == "4 processors in one pool"


def test_from_standard_input(small: Path, tmp_path: Path):
    output = tmp_path / "s.csv"
    arguments = ["simulate", "--from", "-", "--processors", "4", "-o", str(output)]
    result = CliRunner().invoke(main, arguments, input=small.read_bytes())
    assert result.exit_code == 0, result.output
    assert output.read_text().splitlines()[2] == "2,100"


def test_a_cluster_on_its_own_machine(workspace: Path, tmp_path: Path):
    output = tmp_path / "s.csv"
    said = simulate("-w", workspace, "--policy", "fcfs", "-o", output, "--by", "queue")
    assert "3 jobs on 2 nodes x 2 = 4 GPUs" in said
    assert "left out 1: no run time" in said
    reasons = [line for line in said.splitlines() if line.startswith("resources")]
    assert [re.split("  +", line) for line in reasons] == [["resources", "2", "66.7 %", "100.0 %"]]
    assert [",".join(row) for row in csv.reader(output.read_text().splitlines())] == [
        "job_id,start,end,nodes,why",
        "1,2018-01-01T00:00:00Z,2018-01-01T00:01:40Z,node-0,none",
        "2,2018-01-01T00:01:40Z,2018-01-01T00:02:30Z,node-0 node-1,resources",
        "3,2018-01-01T00:02:30Z,2018-01-01T01:02:30Z,node-0,resources",
    ]


def test_limits_hold(workspace: Path, tmp_path: Path):
    output = tmp_path / "s.json"
    limit = ("--limit", "user:running-gpus=2")
    said = simulate("-w", workspace, "--nodes", "8x2", *limit, "-o", output)
    assert "limit user:running-gpus=2" in said
    rows = json.loads(output.read_text())["schedule"]
    # ann's second job waits for her first; bob's needs more than he may have
    assert [row["start"] for row in rows] == ["2018-01-01T00:00:00Z", None, "2018-01-01T00:01:40Z"]
    assert said.splitlines()[2] == (
        "1 job never starts under these rules: every wait below is of the others"
    )
    first = next(n for n, line in enumerate(said.splitlines()) if "wait, mean" in line)
    assert said.splitlines()[first - 1].split() == ["jobs", "that", "never", "start", "1"]


def test_stored_as_a_cluster_it_is_compared_and_shown(workspace: Path):
    said = simulate("-w", workspace, "--policy", "fcfs", "--into", "c-fcfs")
    assert "stored 3 simulated jobs as c-fcfs" in said
    compared = hakaru("compare", "c", "c-fcfs", "-w", workspace, "--published", "none")
    assert compared.exit_code == 0 and "c-fcfs (SYNTHETIC)" in compared.output
    shown = hakaru("show", "waits", "--cluster", "c-fcfs", "-w", workspace, "--format", "json")
    row = json.loads(shown.output)["rows"][-1]
    assert (row["num_jobs"], row["mean_s"]) == (3, pytest.approx((0 + 100 + 140) / 3))


def test_replay_says_how_far_it_is_and_what_to_trust(workspace: Path):
    said = simulate("-w", workspace, "--replay")
    assert "The replay beside the record" in said
    assert "recorded_mean" in said and "rank_correlation" in said
    assert "months the log can reproduce: 2018-01" in said
    assert "The log does not say by which rules" in said
    assert not re.search(r"\d%", said), "every share is written in one way"
    limits = {"within 25 %", "within 50 %"}
    assert set(re.findall(r"\w+ \d+ %", said)) <= limits and re.search(r"\d\.\d %", said)


def test_a_job_of_no_length_takes_a_second_as_in_the_reference_simulators(tmp_path: Path):
    """Both need the whole machine: the second begins when the first has ended."""
    log = swf_file(tmp_path, [(0, 0, 4, 0), (0, 10, 4, 10), (1, 0, 4, 60)])

    def starts(*more: object) -> list[str]:
        said = simulate("--from", log, "-o", tmp_path / "s.csv", *more)
        assert ("2 jobs run for less than 1 s: taken as 1 s" in said) == (not more)
        return (tmp_path / "s.csv").read_text().splitlines()[1:]

    assert starts() == ["1,0", "2,1", "3,11"]
    assert starts("--least-run", 0) == ["1,0", "2,0", "3,10"]
    assert "2,3" in starts("--least-run", 3)


def test_a_replay_of_no_job_says_so(tmp_path: Path):
    said = simulate("--from", swf_file(tmp_path, [(0, 9, 2, 9)]), "--processors", 1, "--replay")
    assert "left out 1: larger than the machine" in said
    assert "no job can be compared with the log" in said


def test_aaic_replay(aaic_lake: Lake):
    said = simulate("-w", aaic_lake.workspace, "--nodes", "38x8", "--replay")
    assert "459,545 jobs on 38 nodes x 8 = 304 GPUs" in said
    assert "months the log cannot reproduce: 2018-04 to 2018-06" in said
    told = " ".join(said.split())
    # off by 19.6 h in none of the months that count, but by a quarter of an hour: the waits of two
    # months are too long and too short by as much, which the mean of all would hide
    assert (
        "within 25 % none; within 50 % 2018-10; further off 2017-07, 2018-07 to 2018-09, 2018-12"
        in told
    )
    assert "the mean of a month is off by 17.3 min on average" in told
    assert "off most in 2017-07 (1,990 jobs): recorded 102.2 min, replayed 2.3 s" in told
    assert (
        "2018-04: the recorded jobs need more than 1.25 times the machine 35.4 % of the time"
        in said
    )


def test_a_class_is_the_same_in_a_simulation_and_in_an_analysis(small: Path):
    """A log that counts a node a processor: a job on one, and two on several nodes."""
    small.write_text("; MaxNodes: 4\n" + small.read_text())
    said = simulate("--from", small, "--by", "class").splitlines()
    counts = [line.split()[:2] for line in said if line.startswith(("single-", "multi-"))]
    assert counts == [["single-pe", "1"], ["multi-node", "2"]]
    shown = hakaru("show", "parallelism", "--min-run", 0, "--from", small).output.splitlines()
    rows = [line.split()[:2] for line in shown if line.startswith(("single-", "multi-"))]
    assert rows == counts


def test_months_of_a_log_with_relative_dates_are_said_to_be_relative(small: Path):
    dated = small.read_text()
    said = "the dates of small are relative"
    assert said not in simulate("--from", small, "--replay", "--by", "month")
    small.write_text(dated.replace("; UnixStartTime: 1000000000\n", ""))
    for option in (("--replay",), ("--by", "month")):
        result = hakaru("simulate", "--from", small, *option)
        assert "1970-01" in result.stdout and said in " ".join(result.stdout.split()), option
    assert said not in hakaru("simulate", "--from", small).stdout


def test_policies_are_listed():
    said = simulate("--policy", "list")
    assert "EASY backfilling" in said and "easy-sjbf" in said


def test_jobs_larger_than_the_machine_are_told_of(small: Path):
    said = simulate("--from", small, "--processors", 3)
    assert "left out 1: larger than the machine" in said


def test_points_of_the_command_line_decide_who_is_next(lake_of: Any, tmp_path: Path):
    later = {"submitted_at": AT + timedelta(seconds=10), "run_s": 50.0, "num_gpus": 1}
    rows = [
        job(1, num_gpus=1, run_s=100.0),
        job(2, queue="long", **later),
        job(3, queue="short", **later),
    ]
    asked = ("-w", lake_of(rows).workspace, "--nodes", "1x1", "--policy", "multifactor")
    output = tmp_path / "s.json"
    simulate(*asked, "--weight", "queue.short=5000", "--weight", "age=1", "-o", output)
    told = json.loads(output.read_text())
    # Without points for their queue the second would go first, at 1:40.
    assert [row["start"][11:19] for row in told["schedule"]] == ["00:00:00", "00:02:30", "00:01:40"]
    assert any("weights: age=1 " in note and "queue.short=5000" in note for note in told["notes"])


def test_one_reservation_and_shared_nodes(workspace: Path):
    asked = ("-w", workspace, "--policy", "conservative", "--depth", 1, "--share-nodes")
    said = " ".join(simulate(*asked).split())
    assert "depth: 1" in said and "shared nodes" in said


def test_what_a_job_without_a_request_is_taken_to_ask_for(lake_of: Any):
    rows = [job(1, queue="q", requested_s=None), job(2, queue="q", requested_s=99999.0)]
    asked = ("-w", lake_of(rows).workspace, "--processors", 4)
    said = " ".join(simulate(*asked).split())
    assert "in one pool assumed: 1 job asks for no time" in said
    assert said.count("the most that is asked for in its queue") == 1
    assert "taken to know its run time" in simulate(*asked, "--no-request", "run")


def test_one_job_is_a_job(tmp_path: Path):
    assert "1 job on 4 processors" in simulate("--from", swf_file(tmp_path, [(0, 9, 1, 9)]))


def test_rows_that_could_not_be_read_are_left_out_and_told_of(tmp_path: Path):
    jobs = [(-9, 100, 4, 100), (-5, 500, 1, 500), (0, 100, 3, 100), (20, 500, 1, 500)]
    said = " ".join(simulate("--from", swf_file(tmp_path, jobs)).split())
    assert "2 jobs on 4 processors" in said
    assert "left out 2: rejected when the log was read: field 2 (submit time) is" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policy", "eazy"], "did you mean easy"),
        (["--estimates", "wild"], "use request, perfect, or scaled:FACTOR"),
        (["--limit", "user=16"], "write SCOPE"),
        (["--limit", "queue=nowhere:running-jobs=1"], "queue 'nowhere', which no job has"),
        (["--nodes", "many"], "COUNTxSIZE"),
        (["--processors", "4", "--nodes", "2x2"], "nodes or one pool: keep one of them"),
        (["--processors", "4", "--packing", "spread"], "--packing is for a machine of nodes"),
        (["--processors", "0"], "0 is not in the range"),
        (
            ["--fail", "9@2018-01-01..2018-01-02"],
            "names node 9, but the machine has 2 nodes",
        ),
        (["--low-queue", "long"], "with --policy preempting only"),
        (["--policy", "preempting"], "needs a --low-queue"),
        (["--nodes", "2x2", "--locality", "required"], "say --switch-size N"),
        (["--nodes", "2x2:v100"], "no job asks for the model 'v100'"),
        (["--weight", "age=1"], "with --policy multifactor only"),
        (["--policy", "multifactor", "--weight", "aeg=1"], "did you mean age"),
        (["--policy", "multifactor", "--weight", "age=much"], "write NAME=POINTS"),
        (["--policy", "multifactor", "--weight", "period_s=0"], "a time above 0"),
        (["--policy", "multifactor", "--weight", "queue.lnog=1"], "did you mean long"),
        (["--policy", "multifactor", "--weight", "qos.high=1"], "no job has the qos 'high'"),
        (["--depth", "5"], "with --policy conservative or conservative-depth only"),
        (["--processors", "4", "--share-nodes"], "is for a machine of nodes"),
        (["--cluster", "d"], "there is no cluster 'd'"),
        (["-o", "schedule.xls"], "end it in .csv, .parquet, .json"),
        (["--into", "c"], "holds jobs of another source"),
        (["--into", "bad name"], "is not allowed"),
        (["--where", "num_gpus > 99"], "none is selected"),
        (["--nodes", "0x8"], "how many nodes is from 1 to 2,147,483,647, found 0"),
        (["--nodes", "99999999x8"], "more than can be simulated: 1,000,000 nodes"),
        (["--policy", "conservative", "--limit", "user:running-jobs=1"], "knows no limits"),
        (["--limit", "user=nobody:running-jobs=1"], "which no job has; known: "),
    ],
)
def test_what_is_refused_and_how(workspace: Path, arguments: list[str], said: str):
    assert said in refused("-w", workspace, *arguments)


def test_into_needs_a_workspace(small: Path):
    assert "hakaru ingest it first" in refused("--from", small, "--into", "x")


def test_a_machine_of_unknown_size_is_asked_for(lake_of: Any):
    lake = lake_of([job(1)])
    told = refused("-w", lake.workspace)
    assert "Add --nodes COUNTxSIZE, e.g. --nodes 38x8, or --processors N for one pool" in told


def test_one_cluster_at_a_time(lake_of: Any):
    lake = lake_of([job(1), job(2, cluster="d")])
    assert "choose with --cluster NAME" in refused("-w", lake.workspace)
