"""Exact statistics of values that are counted first: one row a distinct value, not one row a job.

Millions of jobs share few distinct waits or gaps, and counting spills to disk where a quantile over all
rows holds them in memory. A row whose value is null counts nothing and keeps its group alive.
"""

from __future__ import annotations

from collections.abc import Sequence


def ranked(counts: str, by: str, value: str) -> str:
    """SQL that adds to `counts` (the columns `by`, the value and `num`) what the rest here needs."""
    whole = f"OVER (PARTITION BY {by})"
    number = "CAST(num AS DOUBLE)"  # DuckDB sums whole numbers over a window in 128 bits, slowly
    return f"""
        SELECT {counts}.*, sum({number}) {whole} AS num_all,
               sum({number}) OVER (PARTITION BY {by} ORDER BY {value} NULLS FIRST
                   ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS num_up_to,
               sum({number} * {value}) {whole} / nullif(sum({number}) {whole}, 0) AS mean_value
        FROM {counts}
    """


def step(value: str, times: str = "1") -> str:
    """A whole number that never falls as the value grows, and grows ever slower: for `narrowed`."""
    known = f"CASE WHEN {value} < 0 THEN 0e0 ELSE {value} END"  # greatest() would make a 0 of null
    return f"CAST(floor(sqrt({known} * {times})) AS BIGINT)"


def narrowed(table: str, by: Sequence[str], points: Sequence[float]) -> str:
    """Common tables up to `narrowed`: what `ranked` has, but of no values that are far from the quantiles.

    `table` has the columns `by`, `value` and its `step`. Steps are counted, and only the values in those
    that hold one of the quantiles `points` are counted and put in order.
    """
    keys = ", ".join(by)
    same = " AND ".join(f"{table}.{key} = near.{key}" for key in (*by, "step"))
    places = [f"{p:e} * (num_all - 1)" for p in points]
    holds = " OR ".join(
        f"(num_up_to > floor({place}) AND num_up_to - num <= ceil({place}))" for place in places
    )
    rows = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    return f"""
        steps AS (
            SELECT {keys}, step, CAST(count(value) AS DOUBLE) AS num FROM {table} GROUP BY {keys}, step
        ), steps_up_to AS (
            SELECT steps.*, sum(num) OVER (PARTITION BY {keys}) AS num_all,
                   sum(num) OVER (PARTITION BY {keys} ORDER BY step {rows}) AS num_up_to
            FROM steps
        ), near AS (
            SELECT {keys}, step, num_all, num_up_to - num AS num_before FROM steps_up_to WHERE {holds}
        ), near_values AS (
            SELECT {", ".join(f"{table}.{key}" for key in by)}, {table}.step, value,
                   CAST(count(*) AS DOUBLE) AS num, max(num_all) AS num_all, max(num_before) AS num_before
            FROM {table} JOIN near ON {same}
            GROUP BY {", ".join(f"{table}.{key}" for key in by)}, {table}.step, value
        ), narrowed AS (
            SELECT {keys}, value, num, num_all, num_before
                   + sum(num) OVER (PARTITION BY {keys}, step ORDER BY value {rows}) AS num_up_to
            FROM near_values
        )"""


def deviation(value: str) -> str:
    """The sample standard deviation, over rows of `ranked`."""
    squares = f"sum(num * ({value} - mean_value) * ({value} - mean_value))"
    return f"sqrt({squares} / nullif(sum(num) - 1, 0))"


def quantile(value: str, p: float) -> str:
    """The quantile `p`, linear between neighbours as `percentile` is, over rows of `ranked` or `narrowed`."""
    place = f"{p:e} * (num_all - 1)"
    below = f"min(CASE WHEN num > 0 AND num_up_to > floor({place}) THEN {value} END)"
    above = f"min(CASE WHEN num > 0 AND num_up_to > ceil({place}) THEN {value} END)"
    return f"{below} + ({above} - {below}) * max({place} - floor({place}))"
