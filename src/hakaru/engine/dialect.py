"""The words that DuckDB and Spark share, so that one query text runs verbatim on both.

DuckDB learns Spark's names through the macros below; nothing is ever translated. The rules: quantiles
are `percentile(CASE WHEN … END, p)`; no ASOF, no `//`, no approximate functions; the session's zone
is UTC, and hours, weekdays and quarters come from `submitted_local`, the site's own clock; a number
with a fraction is written `1e0` (to Spark `1.0` is a decimal of few digits); `jobs.user`, never bare
`user` (a function in both); `CAST(floor(x) AS BIGINT)`; no FILTER, no QUALIFY, no list literals;
text that may be null is joined by `||` (DuckDB's concat skips nulls); nulls sort as Spark sorts them.
"""

from __future__ import annotations

from hakaru.schema import Type

# Spark's name and arguments, and what it is in DuckDB
DUCKDB_MACROS: dict[str, str] = {
    "percentile(x, p)": "quantile_cont(x, p)",
    "timestamp_seconds(s)": "to_timestamp(s)",
    "unix_seconds(t)": "CAST(floor(epoch_us(t) / 1000000) AS BIGINT)",  # epoch(t) takes thrice as long
    # an offset such as +09:00 is added, which is four times as fast as to ask the zones' calendar
    "from_utc_timestamp(t, zone)": (
        "CASE WHEN zone[1] IN ('+', '-') THEN make_timestamp(epoch_us(t) + CAST(zone[1] || '60000000' "
        "AS BIGINT) * (CAST(zone[2:3] AS BIGINT) * 60 + CAST(zone[5:6] AS BIGINT))) "
        "ELSE t AT TIME ZONE zone END"
    ),
    "weekday(t)": "isodow(t) - 1",
    "sequence(first, last)": "generate_series(first, last)",
    "explode(list)": "unnest(list)",
    "conv(digits, old_base, new_base)": "CAST(CAST('0x' || digits AS BIGINT) AS VARCHAR)",  # 16 to 10
    "datediff(last, first)": "date_diff('day', first, last)",
}

DUCKDB_TYPES: dict[Type, str] = {
    "string": "VARCHAR",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMPTZ",
    "list<string>": "VARCHAR[]",
}


def quote(text: str) -> str:
    """A string literal for DuckDB; paths and fixed words only, never a user's filter."""
    return "'" + text.replace("'", "''") + "'"
