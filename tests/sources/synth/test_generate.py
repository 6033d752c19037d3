"""What the synthetic cluster promises of its rows, and the parameters that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from duckdb import DuckDBPyConnection

from hakaru.cli import main
from hakaru.engine.duckdb import connect, one_row
from hakaru.errors import HakaruError, SettingsError, SourceError
from hakaru.lake import Lake
from hakaru.schema import JOBS, NODES, SAMPLES
from hakaru.settings import Engine, load
from hakaru.sources.synth import Generated, Synth, generate, jobs_table, samples_table
from hakaru.sources.synth._jobs import BLOCK
from tests.sources.synth._made import as_one

SMALL = Synth(num_jobs=6_000, seed=3, cluster="made", num_nodes=6, samples_days=1.5)


def test_same_seed_same_rows_in_any_chunks() -> None:
    spec = Synth(num_jobs=2 * BLOCK + 5, seed=9, samples_days=0.5)
    whole = as_one(jobs_table(spec))
    assert whole.schema == JOBS.arrow()
    assert whole.num_rows == spec.num_jobs
    chunks = list(jobs_table(spec, chunk_rows=1))
    assert [chunk.num_rows for chunk in chunks] == [BLOCK, BLOCK, 5]
    assert pa.concat_tables(chunks).equals(whole)
    assert not as_one(jobs_table(replace(spec, seed=10))).equals(whole)


def test_chunks_rise_in_time_and_ids_are_unique() -> None:
    spec = Synth(num_jobs=2 * BLOCK + 5, seed=9, samples_days=0)
    con = connect(Engine())
    for i, chunk in enumerate(jobs_table(spec, chunk_rows=1)):
        con.register(f"chunk{i}", chunk)
    ends = [
        one_row(con, f"SELECT min(submitted_at), max(submitted_at) FROM chunk{i}") for i in range(3)
    ]
    assert ends[0][1] < ends[1][0] and ends[1][1] < ends[2][0]
    ids = "SELECT count(DISTINCT job_id) FROM (FROM chunk0 UNION ALL FROM chunk1 UNION ALL FROM chunk2)"
    assert one_row(con, ids) == (spec.num_jobs,)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lake, Generated]]:
    lake = Lake.create(tmp_path_factory.mktemp("synth"))
    yield lake, generate(lake, SMALL)


@pytest.fixture
def stored(small: tuple[Lake, Generated]) -> Iterator[DuckDBPyConnection]:
    """The stored tables; `held` has a row a job and GPU."""
    con = connect(Engine())
    for table in (JOBS, NODES, SAMPLES):
        con.register(table.name, small[0].read(con, table))
    con.execute(
        """
        CREATE TEMP TABLE held AS
        SELECT job_id, num_gpus, num_nodes, nodes, len(gpu_ids) AS num_ids, started_at, ended_at,
               unnest(gpu_ids) AS gpu_id
        FROM jobs
        """
    )
    yield con
    con.close()


CLASHES = """
    SELECT count(*), count(*) FILTER (started_at < busy_until)
    FROM (SELECT *, max(ended_at) OVER (PARTITION BY gpu_id ORDER BY started_at, ended_at
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until FROM held)
"""


def test_no_gpu_has_two_jobs_at_once(stored: DuckDBPyConnection) -> None:
    num, clashes = one_row(stored, CLASHES)
    assert num > 200
    assert clashes == 0


def test_no_gpu_has_two_jobs_at_once_where_they_must_queue() -> None:
    """Far more work than the machine can do, with jobs of whole nodes: many begin later than drawn."""
    spec = Synth(num_jobs=6_000, seed=3, num_nodes=6, days=5, samples_days=4)
    con = connect(Engine())
    con.register("jobs", as_one(jobs_table(spec)))
    con.register("drawn", as_one(jobs_table(replace(spec, samples_days=0))))
    later = "SELECT count(*) FROM jobs JOIN drawn USING (job_id) WHERE jobs.started_at > drawn.started_at"
    assert one_row(con, later)[0] > 1000
    longer = "SELECT count_if(ended_at - started_at <> to_seconds(run_s)) FROM jobs"
    assert one_row(con, longer) == (0,), "who begins later ends later"
    assert (
        one_row(con, "SELECT count(*) FROM jobs WHERE num_nodes > 1 AND gpu_ids IS NOT NULL")[0] > 5
    )
    con.execute(
        "CREATE TABLE held AS SELECT started_at, ended_at, unnest(gpu_ids) AS gpu_id FROM jobs"
    )
    num, clashes = one_row(con, CLASHES)
    assert num > 3000
    assert clashes == 0


def test_allocations_fit_the_request(stored: DuckDBPyConnection) -> None:
    wrong = """
        SELECT count(*) FROM held
        WHERE num_ids <> num_gpus OR len(nodes) <> num_nodes
           OR NOT list_contains(nodes, split_part(gpu_id, ':', 1))
    """
    assert one_row(stored, wrong) == (0,)
    # the wait is counted again where a job had to begin later
    late = "SELECT count(*) FROM jobs WHERE wait_s <> epoch(started_at) - epoch(submitted_at) OR wait_s < 0"
    assert one_row(stored, late) == (0,)


def test_every_job_of_the_window_has_gpus(stored: DuckDBPyConnection) -> None:
    missing = """
        SELECT count(*) FROM jobs, (SELECT min(sampled_at) AS low, max(sampled_at) AS high FROM samples)
        WHERE started_at < high AND ended_at > low AND gpu_ids IS NULL
    """
    assert one_row(stored, missing) == (0,)


def test_samples_are_of_the_machine_and_on_the_minute(stored: DuckDBPyConnection) -> None:
    num, strangers, off = one_row(
        stored,
        """
        SELECT count(*), count(*) FILTER (nodes.node IS NULL OR gpu NOT BETWEEN 0 AND num_gpus - 1),
               count(*) FILTER (epoch_us(sampled_at) % 60000000 <> 0)
        FROM samples LEFT JOIN nodes USING (cluster, node)
        """,
    )
    assert (strangers, off) == (0, 0)
    expected = 6 * 8 * 1.5 * 1440
    assert 0.95 * expected < num < expected  # some are missing


def test_samples_are_in_range(stored: DuckDBPyConnection) -> None:
    low_u, high_u, low_w, high_w, memory = one_row(
        stored,
        "SELECT min(utilization), max(utilization), min(power_w), max(power_w), "
        "max(memory_used_mib / memory_total_mib) FROM samples",
    )
    assert (low_u, high_u) == (0, 1)
    assert low_w >= 30 and 150 < high_w <= 250
    assert 0.9 < memory <= 1


def test_only_held_gpus_are_used(stored: DuckDBPyConnection) -> None:
    """And a tenth of the jobs hold theirs without using them."""
    free = """
        SELECT count(*), max(utilization) FROM samples ANTI JOIN held
        ON held.gpu_id = samples.node || ':' || samples.gpu
           AND sampled_at >= started_at AND sampled_at < ended_at
    """
    num, highest = one_row(stored, free)
    assert num > 1000
    assert highest == 0
    idle = """
        SELECT avg(CAST(best = 0 AS INTEGER)) FROM (
            SELECT max(utilization) AS best FROM samples JOIN held
            ON held.gpu_id = samples.node || ':' || samples.gpu
               AND sampled_at >= started_at AND sampled_at < ended_at
            GROUP BY held.job_id HAVING count(*) > 5)
    """
    assert one_row(stored, idle)[0] == pytest.approx(0.1, abs=0.05)


def test_generating_again_changes_nothing(small: tuple[Lake, Generated]) -> None:
    lake, first = small
    again = generate(lake, SMALL)
    assert (first.jobs.num_new, first.jobs.num_unchanged) == (6000, 0)
    assert (again.jobs.num_new, again.jobs.num_updated, again.jobs.num_unchanged) == (0, 0, 6000)
    assert again.samples.num_unchanged == first.samples.num_new == first.num_samples
    assert as_one(samples_table(SMALL)).num_rows == first.num_samples


def test_it_is_marked_synthetic_and_says_what_it_is(small: tuple[Lake, Generated]) -> None:
    lake, _ = small
    assert lake.synthetic_clusters() == {"made"}
    ingest = lake.ingests()[0]
    assert (ingest["source"], ingest["num_read"], ingest["num_new"]) == ("synth", 6000, 6000)
    cluster = load(lake.workspace, lake.facts()).cluster("made")
    assert (cluster.zone, cluster.gpus_per_node, cluster.nodes[0].count) == ("Asia/Tokyo", 8, 6)
    assert cluster.queues["long"].max_walltime_h == 336


def test_no_samples_no_allocations(lake: Lake) -> None:
    made = generate(lake, Synth(num_jobs=50, samples_days=0))
    assert (made.num_jobs, made.num_samples) == (50, 0)
    assert as_one(jobs_table(Synth(num_jobs=50, samples_days=0)))["gpu_ids"].null_count == 50


@pytest.mark.parametrize(
    "spec",
    [
        Synth(num_jobs=1),
        Synth(num_jobs=300, num_nodes=1, gpus_per_node=1, samples_days=1),
        Synth(num_jobs=300, days=0.1, num_nodes=2, num_users=1, zone="America/New_York"),
        Synth(num_jobs=300, days=400, start=datetime(2020, 2, 29, 13), samples_days=0.01),
    ],
)
def test_odd_sizes(spec: Synth) -> None:
    jobs = as_one(jobs_table(spec))
    assert jobs.num_rows == spec.num_jobs
    if spec.gpus_per_node == 1:
        assert jobs["num_gpus"].unique().to_pylist() == [1]
    if spec.num_users == 1:
        assert jobs["user"].unique().to_pylist() == ["user001"]


# ---- what is refused


def test_bad_parameters_are_named_together() -> None:
    with pytest.raises(SettingsError) as caught:
        jobs_table(Synth(num_jobs=0, days=-1, zone="Tokyo", load=1.5, idle_share=2, num_users=0))
    message = str(caught.value)
    for name in (
        "num_jobs is 0; expected 1 to",
        "days is -1",
        "'Tokyo'",
        "load",
        "idle_share",
        "num_users",
    ):
        assert name in message


@pytest.mark.parametrize(
    "change",
    [
        {"seed": -1},
        {"num_nodes": 0},
        {"gpus_per_node": 0},
        {"samples_days": -1},
        {"cluster": "a b"},
    ],
)
def test_each_bad_parameter_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(HakaruError, match=next(iter(change)).replace("_", ".")):
        jobs_table(replace(SMALL, **change))


def test_other_parameters_do_not_mix(small: tuple[Lake, Generated]) -> None:
    lake, _ = small
    with pytest.raises(SourceError, match=r"'made' already holds .* seed=3; .*--cluster"):
        generate(lake, replace(SMALL, seed=4))


def test_a_real_log_is_not_mixed_with_a_made_one(lake_of: Callable[..., Lake]) -> None:
    from tests.conftest import job

    lake = lake_of([job(1)])
    with pytest.raises(SourceError, match="'c' already holds jobs of another source"):
        generate(lake, replace(SMALL, cluster="c"))


def test_command(tmp_path: Any) -> None:
    words = ["synth", "--jobs", "500", "--samples-days", "0.1", "--nodes", "2", "-w", str(tmp_path)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "synth (synthetic): made 500 jobs" in result.output
    assert "2 nodes with 16 GPUs" in result.output
    refused = CliRunner().invoke(main, ["synth", "--jobs", "0", "-w", str(tmp_path)])
    assert refused.exit_code == 1
    assert "num_jobs is 0" in refused.output
