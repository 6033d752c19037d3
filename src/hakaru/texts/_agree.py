"""English nouns that agree with their number: texts are written for many, and one of them loses its s."""

from __future__ import annotations

import re

NOUNS = ("job", "user", "account", "row", "file", "node")
ONE = re.compile(rf"(?<![\w.,-])1 ((?:selected )?(?:{'|'.join(NOUNS)}))s\b")


def agreeing(text: str) -> str:
    """`1 job` in place of `1 jobs`, also in `1 of 1 jobs`; `0.1 jobs` and `21 jobs` stay as they are."""
    return ONE.sub(r"1 \1", text)
