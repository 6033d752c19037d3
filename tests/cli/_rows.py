"""The rows that a command writes as CSV."""

from __future__ import annotations

import csv
import io

from tests._cli import hakaru


def rows_of(*arguments: object) -> list[dict[str, str]]:
    result = hakaru(*arguments, "--format", "csv")
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(io.StringIO(result.stdout)))
