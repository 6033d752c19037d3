"""Exact statistics of values that are counted first: one row a distinct value, not one row a job.

Millions of jobs share few distinct waits or gaps, and counting spills to disk where a quantile over all
rows holds them in memory. A row whose value is null counts nothing and keeps its group alive.
"""

from __future__ import annotations


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


def deviation(value: str) -> str:
    """The sample standard deviation, over rows of `ranked`."""
    squares = f"sum(num * ({value} - mean_value) * ({value} - mean_value))"
    return f"sqrt({squares} / nullif(sum(num) - 1, 0))"


def quantile(value: str, p: float) -> str:
    """The quantile `p`, linear between neighbours as `percentile` is, over rows of `ranked`."""
    place = f"{p:e} * (num_all - 1)"
    below = f"min(CASE WHEN num > 0 AND num_up_to > floor({place}) THEN {value} END)"
    above = f"min(CASE WHEN num > 0 AND num_up_to > ceil({place}) THEN {value} END)"
    return f"{below} + ({above} - {below}) * max({place} - floor({place}))"
