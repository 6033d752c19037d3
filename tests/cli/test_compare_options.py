"""`hakaru compare`: names given twice, citations, and files."""

from __future__ import annotations

import json

from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put_jobs


def test_a_cluster_that_is_named_twice_is_compared_once(lake: Lake) -> None:
    put_jobs(lake, [job(1), job(2, cluster="d")])
    result = hakaru("compare", "d", "c", "d", "-w", lake.workspace, "--format", "json")
    assert [each["name"] for each in json.loads(result.stdout)["clusters"]] == ["d", "c"]
