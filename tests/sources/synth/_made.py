"""The chunks of a synthetic cluster as one table."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def as_one(chunks: Iterator[pa.Table]) -> pa.Table:
    return pa.concat_tables(list(chunks))
