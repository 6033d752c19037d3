"""The synthetic cluster: its figures against AAIC's published ones, and what it promises of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
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
from hakaru.sources.synth._tables import run_quantiles

MANY = Synth(num_jobs=200_000, seed=20, samples_days=0)
SMALL = Synth(num_jobs=6_000, seed=3, cluster="made", num_nodes=6, samples_days=1.5)
Ask = Callable[[str], tuple[Any, ...]]


def as_one(chunks: Iterator[pa.Table]) -> pa.Table:
    return pa.concat_tables(list(chunks))


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Questions to 200,000 jobs, with the paper's classes and the queues' maxima."""
    con = connect(Engine())
    con.register("made", as_one(jobs_table(MANY)))
    con.execute(
        """
        CREATE TABLE jobs AS
        SELECT *, CASE WHEN num_nodes > 1 THEN 'multi' WHEN num_gpus > 1 THEN 'node' ELSE 'single' END
                  AS class,
               CASE queue WHEN 'normal' THEN 72 WHEN 'short' THEN 3 WHEN 'middle' THEN 168
                    ELSE 336 END * 3600 AS max_s,
               timezone('Asia/Tokyo', submitted_at) AS local
        FROM made
        """
    )
    con.execute(
        "CREATE VIEW good AS SELECT *, run_s / 3600 AS run_h, run_s / requested_s AS wra FROM jobs "
        "WHERE run_s >= 60 AND state = 'completed'"
    )
    yield lambda sql: one_row(con, sql)
    con.close()


def share(ask: Ask, condition: str, table: str = "jobs") -> float:
    return float(ask(f"SELECT avg(CAST({condition} AS INTEGER)) FROM {table}")[0])


# ---- the published figures


# Tolerances are some three standard deviations over 30 seeds.
@pytest.mark.parametrize(
    ("condition", "table", "published", "tolerance"),
    [
        ("queue = 'normal'", "jobs", 0.852, 0.02),  # Fig. 2
        ("queue = 'short'", "jobs", 0.139, 0.02),
        ("queue = 'middle'", "jobs", 0.006, 0.005),
        ("queue = 'long'", "jobs", 0.003, 0.002),
        ("state = 'completed'", "jobs", 0.832, 0.004),  # Fig. 3
        ("state = 'failed'", "jobs", 0.054, 0.004),
        ("state = 'cancelled'", "jobs", 0.103, 0.005),
        ("state = 'timeout'", "jobs", 0.011, 0.004),
        ("run_s < 60", "jobs", 0.215, 0.01),  # section 5.1: 98,789 of 459,545
        ("run_h <= 3", "good WHERE class = 'single'", 0.84, 0.015),  # section 5.3
        ("run_h <= 3", "good WHERE class = 'node'", 0.35, 0.04),
        ("run_h >= 24", "good WHERE class = 'single'", 0.02, 0.009),
        ("run_h >= 24", "good WHERE class = 'node'", 0.22, 0.04),
        ("run_h >= 24", "good WHERE class = 'multi'", 0.04, 0.035),
        ("class = 'single'", "jobs WHERE run_s >= 60", 0.962, 0.003),  # Fig. 6a
        ("class = 'node'", "jobs WHERE run_s >= 60", 0.033, 0.003),
        ("class = 'multi'", "jobs WHERE run_s >= 60", 0.005, 0.001),
        (
            "num_gpus IN (2, 4, 8)",
            "jobs WHERE class = 'node' AND run_s >= 60",
            0.97,
            0.02,
        ),  # Fig. 6b
        ("requested_s = max_s", "good", 0.3654, 0.04),  # section 5.2
        ("wra < 0.2", "good", 0.813, 0.03),  # the log; Fig. 7a says three quarters and more
        ("wait_s <= 10", "jobs", 0.783, 0.04),  # the log
        ("wait_s > 3600", "jobs", 0.108, 0.05),
    ],
)
def test_shares(ask: Ask, condition: str, table: str, published: float, tolerance: float) -> None:
    assert share(ask, condition, table) == pytest.approx(published, abs=tolerance)


TABLE_3 = {"single": (2.461, 0.460), "node": (14.062, 5.576), "multi": (4.642, 0.187)}


@pytest.mark.parametrize("kind", TABLE_3)
def test_the_fitted_run_times_are_those_of_table_3(kind: str) -> None:
    """The fit itself, without sampling: mean and median of completed jobs of 60 s and more."""
    mean_h, median_h = TABLE_3[kind]
    chances, log_s = run_quantiles(kind, "completed")
    long = log_s >= np.log(60)
    share_below = (chances[long] - chances[long][0]) / (1 - chances[long][0])
    hours = np.exp(log_s[long]) / 3600
    mean = np.sum(np.diff(share_below) * (hours[1:] + hours[:-1]) / 2)
    assert mean == pytest.approx(mean_h, rel=0.04)
    assert np.interp(0.5, share_below, hours) == pytest.approx(median_h, rel=0.03)


# Tolerances are some three standard deviations over 30 seeds. There are but 200 multi-node jobs, from 60 s
# to 72 h with few around the median: the log's own median moves from 0.12 to 0.33 h in samples of 200,
# so what is compared is the share of jobs below the published median.
@pytest.mark.parametrize(
    ("kind", "mean_tolerance", "share_tolerance"),
    [("single", 0.1, 0.015), ("node", 0.15, 0.05), ("multi", 0.4, 0.09)],
)
def test_run_times(ask: Ask, kind: str, mean_tolerance: float, share_tolerance: float) -> None:
    mean_h, median_h = TABLE_3[kind]
    (mean,) = ask(f"SELECT avg(run_h) FROM good WHERE class = '{kind}'")
    assert mean == pytest.approx(mean_h, rel=mean_tolerance)
    below = share(ask, f"run_h <= {median_h}", f"good WHERE class = '{kind}'")
    assert below == pytest.approx(0.5, abs=share_tolerance)


def test_request_accuracy(ask: Ask) -> None:
    """Fig. 7a: mean 0.107, median 0.040."""
    mean, median = ask("SELECT avg(wra), median(wra) FROM good")
    assert mean == pytest.approx(0.107, abs=0.012)
    assert median == pytest.approx(0.040, abs=0.006)


def test_requests_are_round_and_kept(ask: Ask) -> None:
    assert share(ask, "requested_s % 60 = 0") == 1
    assert share(ask, "run_s <= requested_s AND requested_s <= max_s") == 1
    assert share(ask, "run_s = requested_s", "jobs WHERE state = 'timeout'") == 1


def test_queues_hold_what_they_allow(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM jobs WHERE num_nodes > 1 AND queue <> 'normal'") == (0,)
    assert ask("SELECT count(*) FROM jobs WHERE num_gpus > 1 AND queue = 'short'") == (0,)
    assert ask("SELECT count(*) FROM jobs WHERE num_nodes > 1 AND num_gpus <> 8 * num_nodes") == (
        0,
    )


def test_hours_and_weekdays(ask: Ask) -> None:
    """Fig. 9, in the site's zone: working hours and weekdays are busiest."""
    work = share(ask, "hour(local) BETWEEN 9 AND 20")
    assert work == pytest.approx(0.694, abs=0.05)
    assert share(ask, "isodow(local) > 5") == pytest.approx(0.137, abs=0.02)


def test_bursts_and_users(ask: Ask) -> None:
    """The log: half of a user's jobs follow the one before within a second, with a like run time."""
    (gap, alike) = ask(
        """
        SELECT median(gap), avg(CAST(abs(ln(run_s / last_run_s)) < ln(2) AS INTEGER))
        FROM (SELECT run_s, lag(run_s) OVER w AS last_run_s,
                     epoch(submitted_at) - lag(epoch(submitted_at)) OVER w AS gap
              FROM jobs WINDOW w AS (PARTITION BY "user" ORDER BY submitted_at, CAST(job_id AS INT)))
        """
    )
    assert gap <= 2
    assert alike > 0.6
    top, num_users = ask(
        'SELECT max(n) / sum(n), count(*) FROM (SELECT count(*) n FROM jobs GROUP BY "user")'
    )
    assert 0.28 <= top <= 0.74
    assert 90 <= num_users <= 106


def test_mean_load_is_as_asked(ask: Ask) -> None:
    """38 nodes of 8 GPUs; the period follows from the load of 0.6."""
    (load_,) = ask(
        """
        SELECT sum(num_gpus * run_s) / (304 * (max(epoch(submitted_at)) - min(epoch(submitted_at))))
        FROM jobs
        """
    )
    assert load_ == pytest.approx(0.6, abs=0.06)


# ---- what it promises of its rows


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
