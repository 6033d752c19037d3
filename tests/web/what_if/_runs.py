"""A log that two GPUs are too few for, a scenario about it, and how to wait for its run."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import httpx

from tests.conftest import job, utc

API = "/api/v1/what-if"
ONE_NODE = '[machine]\nnodes = 1\nsize = 2\n[[variant]]\nname = "two nodes"\nnodes = 1\n'


def queue_jobs() -> list[dict[str, Any]]:
    """Eighty days at nine: three one-hour jobs of one GPU and one of two, so that two GPUs are too few."""
    rows: list[dict[str, Any]] = []
    for day in range(80):
        at = utc("2018-01-01T09:00:00") + timedelta(days=day)
        for i, gpus in enumerate((1, 1, 1, 2)):
            times = {"submitted_at": at + timedelta(seconds=i), "started_at": at, "ended_at": at}
            rows.append(job(len(rows), user=f"u{i}", num_gpus=gpus, requested_s=3600.0, **times))
    return rows


def ended(client: httpx.Client, id: str) -> dict[str, Any]:
    deadline = time.monotonic() + 500  # a run gives way to everything else on the machine
    while time.monotonic() < deadline:
        found = client.get(f"{API}/{id}").json()
        if found["state"] not in ("queued", "running"):
            return dict(found)
        time.sleep(0.1)
    raise AssertionError("the run does not end")
