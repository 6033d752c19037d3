"""Lots for samples: a number from a job's id that is as good as random, and the same in every engine.

A lot is an md5 and is compared as text: to cut it, or to read it as a number, takes longer than to
compare it.
"""

from __future__ import annotations


def lot(seed: int) -> str:
    """SQL for a job's lot, from its id and, as ids come again, its submission."""
    return f"md5(concat(job_id, ' {seed} ', CAST(unix_seconds(submitted_at) AS STRING)))"


def highest(share: str) -> str:
    """SQL for what no lot of a share of all exceeds, where the share is an expression; 1 and more is all."""
    number = f"CAST(floor(least(4294967295e0, 4294967296e0 * {share})) AS BIGINT)"
    return f"lpad(lower(hex({number})), 8, '0') || 'g'"  # no digit is above g: eight digits decide
