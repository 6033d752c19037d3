"""How long jobs run, and whether larger ones run longer (AAIC sections 5.3 and 5.4)."""

from __future__ import annotations

from hakaru.analyses._base import HAS_RUN, HAS_SIZE, Param, analysis
from hakaru.analyses._counted import deviation, quantile, ranked
from hakaru.analyses._lots import highest, lot
from hakaru.analyses._site import class_name

SECTION = "AAIC Table 3 and section 5.3"
STEPS_PER_DECADE = 20
PRIME = 2_147_483_647  # places are drawn by a random quadratic modulo this prime


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
        WITH counts AS (
            SELECT grp, class_number, run_s, count(*) AS num FROM jobs
            GROUP BY GROUPING SETS ((grp, run_s), (grp, class_number, run_s))
        )
        SELECT grp, {class_name("class_number")} AS class, sum(num) AS num_jobs,
               max(mean_value) / 3600 AS mean_h, {deviation("run_s")} / 3600 AS sd_h,
               ({quantile("run_s", 0.5)}) / 3600 AS median_h,
               min(run_s) / 3600 AS min_h, max(run_s) / 3600 AS max_h,
               sum(CASE WHEN run_s <= {short_h * 3600:.17e} THEN num ELSE 0 END) / sum(num) AS share_short,
               sum(CASE WHEN run_s >= {long_h * 3600:.17e} THEN num ELSE 0 END) / sum(num) AS share_long
        FROM ({ranked("counts", "grp, class_number", "run_s")}) AS ranked
        GROUP BY grp, class_number ORDER BY grp, coalesce(class_number, 0)
    """


@analysis(
    "walltime-cdf",
    title="Distribution of run time",
    answers="Which share of the jobs is over after a given time?",
    reproduces="AAIC Fig. 8",
    figure="cdf",
    weighted=True,
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
                   / nullif(sum(weight) OVER (PARTITION BY grp, class_number), 0) AS share
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

    As many jobs with one GPU as with more are drawn, since the former outnumber the rest: `sample` of
    each or, where a side has fewer, as many as it has. Spearman's is of ranks, Pearson's of logarithms.
    `low` and `high` hold 95 % of the draws, which are made with replacement. A positive value reads as
    weak scaling, a negative one as strong scaling, an interval that holds 0 as neither, and fewer than
    30 jobs on a side as too few. A side of more than 10 × `sample` jobs is first thinned to those.
    """
    return f"""
        WITH {_draws(sample, draws, seed)}, sizes AS (
            SELECT draw, num_pes, count(*) AS num FROM drawn GROUP BY draw, num_pes
        ), size_ranks AS (
            SELECT draw, num_pes, sum(num) OVER (PARTITION BY draw ORDER BY num_pes)
                   - (num - 1) / 2e0 AS size_rank
            FROM sizes
        ), run_ranks AS (
            SELECT draw, num_pes, run_s, {_mid_rank("run_s")} AS run_rank FROM drawn
        ), measured AS (
            SELECT run_ranks.draw, {_correlation("size_rank", "run_rank")} AS spearman,
                   {_correlation("ln(run_ranks.num_pes)", "ln(run_s)")} AS pearson
            FROM run_ranks JOIN size_ranks
                 ON run_ranks.draw = size_ranks.draw AND run_ranks.num_pes = size_ranks.num_pes
            GROUP BY run_ranks.draw
        ), listed AS (
            SELECT draw, 1 AS kind, spearman AS value FROM measured
            UNION ALL
            SELECT draw, 2 AS kind, pearson AS value FROM measured
        ), summed AS (
            SELECT balance.grp, kinds.kind, 2 * max(num_drawn) AS num_jobs, count(value) AS num_draws,
                   avg(value) AS mean, percentile(value, 0.025) AS low,
                   percentile(value, 0.975) AS high
            FROM balance CROSS JOIN (SELECT explode(sequence(1, 2)) AS kind) AS kinds
            LEFT JOIN listed ON balance.team = CAST(floor(listed.draw / {draws}) AS BIGINT)
                 AND kinds.kind = listed.kind
            GROUP BY balance.grp, kinds.kind
        )
        SELECT grp, CASE kind WHEN 1 THEN 'spearman' ELSE 'pearson of logs' END AS coefficient,
               num_jobs, num_draws, mean, low, high,
               CASE WHEN num_jobs < 60 OR mean IS NULL THEN 'too few jobs'
                    WHEN low > 0 THEN 'weak scaling' WHEN high < 0 THEN 'strong scaling'
                    ELSE 'neither' END AS reading
        FROM summed ORDER BY grp, kind
    """


def _draws(sample: int, draws: int, seed: int) -> str:
    """Common tables up to `drawn`: as many jobs of either side, for each draw, with replacement.

    A draw's number tells its group too: all that is drawn is then put in order by numbers alone.
    """
    steps = ", ".join(
        f"CAST(conv(substr(md5(concat('{seed} {name} ', CAST(half AS STRING))), 1, 7), 16, 10) AS BIGINT)"
        f" + 1 AS {name}"
        for name in ("first_step", "second_step", "start")
    )
    return f"""
        counted AS (
            SELECT grp, CASE WHEN num_pes = 1 THEN 1 ELSE 0 END AS single, count(*) AS num_side
            FROM jobs WHERE run_s > 0 GROUP BY grp, CASE WHEN num_pes = 1 THEN 1 ELSE 0 END
        ), sides AS (
            SELECT counted.*, CAST(dense_rank() OVER (ORDER BY grp) AS BIGINT) AS team FROM counted
        ), balance AS (
            SELECT grp, team,
                   CASE WHEN count(*) = 2 THEN least({sample}, min(num_side)) ELSE 0 END AS num_drawn
            FROM sides GROUP BY grp, team
        ), lots AS (
            SELECT grp, CASE WHEN num_pes = 1 THEN 1 ELSE 0 END AS single, num_pes, run_s, job_id,
                   {lot(seed)} AS lot
            FROM jobs WHERE run_s > 0
        ), pool AS (
            SELECT team * 2 + lots.single AS side, num_pes, run_s, row_number() OVER (
                       PARTITION BY team * 2 + lots.single ORDER BY lot, job_id, run_s, num_pes) AS place
            FROM lots JOIN sides ON lots.grp = sides.grp AND lots.single = sides.single
            WHERE lot <= {highest(f"{sample * 12} / num_side")}
        ), turns AS (
            SELECT CAST(number AS BIGINT) AS turn
            FROM (SELECT explode(sequence(1, {sample})) AS number) AS numbers
        ), steps AS (
            SELECT half, {steps}
            FROM (SELECT explode(sequence(0, {2 * draws - 1})) AS half) AS halves
        ), places AS (
            SELECT sides.team * 2 + single AS side,
                   sides.team * {draws} + CAST(floor(half / 2) AS BIGINT) AS draw, (
                       (first_step * turn % {PRIME} * turn + second_step * turn + start) % {PRIME}
                   ) % least(num_side, {sample * 10}) + 1 AS place
            FROM sides JOIN balance ON sides.team = balance.team
            JOIN steps ON sides.single = half % 2
            JOIN turns ON turn <= num_drawn
        ), drawn AS (
            SELECT draw, num_pes, run_s
            FROM places JOIN pool ON places.side = pool.side AND places.place = pool.place
        )
    """


def _mid_rank(column: str) -> str:
    """The rank among a draw's jobs; equal values share the middle of the first and the last rank."""
    window = f"OVER (PARTITION BY draw ORDER BY {column})"
    return f"(rank() {window} + count(*) {window}) / 2e0"


def _correlation(left: str, right: str) -> str:
    """The correlation, unknown where one side does not vary (the engines differ on that)."""
    return f"CASE WHEN stddev_samp({left}) > 0 AND stddev_samp({right}) > 0 THEN corr({left}, {right}) END"
