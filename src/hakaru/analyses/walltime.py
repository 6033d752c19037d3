"""How long jobs run, and whether larger ones run longer (AAIC sections 5.3 and 5.4)."""

from __future__ import annotations

from hakaru.analyses._base import HAS_RUN, HAS_SIZE, Param, analysis
from hakaru.analyses._site import class_name

SECTION = "AAIC Table 3 and section 5.3"
STEPS_PER_DECADE = 20


@analysis(
    "walltime",
    title="Run time by parallelism",
    answers="How long do jobs run, and do larger ones run longer?",
    reproduces=SECTION,
    figure="statistics",
    rules=[HAS_SIZE, HAS_RUN],
    min_run_s=60,
    states=["completed"],
    params=[
        Param("short_h", 3.0, "Share of jobs that ran for at most this many hours."),
        Param("long_h", 24.0, "Share of jobs that ran for at least this many hours."),
    ],
)
def walltime(short_h: float, long_h: float) -> str:
    """Mean, spread, median and range of run time, for all jobs and each class of parallelism."""
    return f"""
        SELECT grp, {class_name("class_number")} AS class, count(*) AS num_jobs,
               avg(run_s) / 3600 AS mean_h, stddev_samp(run_s) / 3600 AS sd_h,
               percentile(run_s, 0.5) / 3600 AS median_h,
               min(run_s) / 3600 AS min_h, max(run_s) / 3600 AS max_h,
               avg(CASE WHEN run_s <= {short_h} * 3600 THEN 1e0 ELSE 0e0 END) AS share_short,
               avg(CASE WHEN run_s >= {long_h} * 3600 THEN 1e0 ELSE 0e0 END) AS share_long
        FROM jobs
        GROUP BY GROUPING SETS ((grp), (grp, class_number)) ORDER BY grp, coalesce(class_number, 0)
    """


@analysis(
    "walltime-cdf",
    title="Distribution of run time",
    answers="Which share of the jobs is over after a given time?",
    reproduces="AAIC Fig. 8",
    figure="cdf",
    rules=[HAS_SIZE, HAS_RUN],
    min_run_s=60,
    states=["completed"],
)
def walltime_cdf() -> str:
    """Share of jobs (or of GPU-hours) that ran for at most so long, at twenty steps a decade."""
    return f"""
        WITH stepped AS (
            SELECT grp, class_number, weight,
                   CAST(ceil(log10(greatest(run_s, 1e0)) * {STEPS_PER_DECADE}) AS BIGINT) AS step
            FROM jobs
        ), classed AS (
            SELECT grp, class_number, step, count(*) AS num_jobs, sum(weight) AS weight
            FROM stepped GROUP BY GROUPING SETS ((grp, step), (grp, class_number, step))
        )
        SELECT grp, {class_name("class_number")} AS class,
               power(1e1, step / {STEPS_PER_DECADE}e0) / 3600 AS run_h, num_jobs,
               sum(weight) OVER (PARTITION BY grp, class_number ORDER BY step)
                   / sum(weight) OVER (PARTITION BY grp, class_number) AS share
        FROM classed ORDER BY grp, coalesce(class_number, 0), step
    """


@analysis(
    "size-vs-walltime",
    title="Parallelism against run time",
    answers="Do people use more GPUs for larger problems (weak scaling) or for speed (strong)?",
    reproduces="AAIC section 5.4",
    figure="statistics",
    rules=[HAS_SIZE, HAS_RUN],
    min_run_s=60,
    states=["completed"],
    params=[
        Param("sample", 2000, "Jobs drawn from each side: one GPU, and more.", low=10, high=20000),
        Param("draws", 100, "Samples drawn for the interval.", low=1, high=1000),
        Param("seed", 1, "Seed of the samples.", high=1_000_000),
    ],
)
def size_vs_walltime(sample: int, draws: int, seed: int) -> str:
    """Correlation of the number of GPUs and run time on balanced samples, with the interval over them.

    As many jobs with one GPU as with more are drawn, since the former outnumber the rest. Spearman's
    is of ranks, Pearson's of logarithms. A positive value reads as weak scaling, a negative one as
    strong scaling, and an interval that holds 0 as neither. Each side is first thinned to
    10 × `sample` jobs at random; a draw takes `sample` of those. `low` and `high` hold 95 % of the draws.
    """
    steps = ", ".join(f"({draw}, {prime})" for draw, prime in enumerate(_primes(draws), 1))
    return f"""
        WITH sides AS (
            SELECT grp, num_pes = 1 AS single, count(*) AS num_side
            FROM jobs WHERE run_s > 0 GROUP BY grp, num_pes = 1
        ), lots AS (
            SELECT grp, num_pes = 1 AS single, num_pes, run_s, job_id,
                   CAST(conv(substr(md5(concat(
                       job_id, ' {seed} ', CAST(unix_seconds(submitted_at) AS STRING)
                   )), 1, 8), 16, 10) AS BIGINT) AS lot
            FROM jobs WHERE run_s > 0
        ), shuffled AS (
            SELECT lots.*, num_side,
                   row_number() OVER (PARTITION BY lots.grp, lots.single ORDER BY lot, job_id) AS place
            FROM lots JOIN sides ON lots.grp = sides.grp AND lots.single = sides.single
            WHERE lot < 4294967296e0 * {sample * 12} / num_side
        ), pool AS (
            SELECT grp, num_pes, run_s, CAST(place AS BIGINT) AS place,
                   least({sample * 10}, num_side) AS num_pool
            FROM shuffled WHERE place <= {sample * 10}
        ), drawn AS (
            SELECT grp, draw, num_pes, run_s
            FROM pool CROSS JOIN (VALUES {steps}) AS turns(draw, step)
            WHERE (place * step + draw) % num_pool < {sample}
        ), ranked AS (
            SELECT grp, draw, num_pes, run_s,
                   {_mid_rank("num_pes")} AS size_rank, {_mid_rank("run_s")} AS run_rank
            FROM drawn
        ), measured AS (
            SELECT grp, draw, count(*) AS num_jobs, corr(size_rank, run_rank) AS spearman,
                   corr(ln(num_pes), ln(run_s)) AS pearson
            FROM ranked GROUP BY grp, draw
        ), listed AS (
            SELECT grp, 'spearman' AS coefficient, num_jobs, spearman AS value FROM measured
            UNION ALL
            SELECT grp, 'pearson of logs' AS coefficient, num_jobs, pearson AS value FROM measured
        ), summed AS (
            SELECT grp, coefficient, max(num_jobs) AS num_jobs, count(value) AS num_draws,
                   avg(value) AS mean, percentile(value, 0.025) AS low,
                   percentile(value, 0.975) AS high
            FROM listed GROUP BY grp, coefficient
        )
        SELECT *, CASE WHEN low > 0 THEN 'weak scaling' WHEN high < 0 THEN 'strong scaling'
                       WHEN mean IS NOT NULL THEN 'neither' END AS reading
        FROM summed ORDER BY grp, coefficient DESC
    """


def _mid_rank(column: str) -> str:
    """The rank among a draw's jobs; equal values share the middle of the first and the last rank."""
    window = f"OVER (PARTITION BY grp, draw ORDER BY {column})"
    return f"(rank() {window} + count(*) {window}) / 2e0"


def _primes(count: int) -> list[int]:
    """Primes above any pool's size: i -> (i × prime + b) mod size then visits each place once."""
    return [_next_prime(1_000_003 + 104_729 * draw) for draw in range(count)]


def _next_prime(number: int) -> int:
    number |= 1
    while not all(number % divisor for divisor in range(3, int(number**0.5) + 1, 2)):
        number += 2
    return number
