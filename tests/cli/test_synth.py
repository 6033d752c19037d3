"""`hakaru synth` and `hakaru demo`: what they make and what they say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hakaru.lake import Lake
from tests._cli import hakaru


class Stopped(Exception):
    """What a test puts in place of the work itself."""


def test_synth_and_demo_make_what_is_asked(tmp_path: Path, monkeypatch: Any) -> None:
    specs: list[Any] = []

    def generate(lake: Lake, spec: Any) -> None:
        specs.append(spec)
        raise Stopped

    monkeypatch.setattr("hakaru.cli.synth.generate_with_progress", generate)
    options = (
        "--jobs",
        5,
        "--seed",
        9,
        "--days",
        3,
        "--nodes",
        4,
        "--users",
        2,
        "--samples-days",
        0,
    )
    assert isinstance(
        hakaru("synth", *options, "--cluster", "x", "-w", tmp_path).exception, Stopped
    )
    found = specs[0]
    assert (found.num_jobs, found.seed, found.cluster, found.days) == (5, 9, "x", 3.0)
    assert (found.num_nodes, found.num_users, found.samples_days) == (4, 2, 0.0)
    hakaru("demo", "--jobs", 7, "--folder", tmp_path / "demo")
    assert (specs[1].num_jobs, specs[1].cluster) == (7, "demo")
