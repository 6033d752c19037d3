"""`--on slurm` on a real Slurm: the same schedules as here, and a job that fails says where its output is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hakaru.cli import main
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.sim.whatif import read
from hakaru.sim.whatif.runners import play_all
from hakaru.sim.whatif.variants import prepare
from tests._slurm import running_slurm
from tests.conftest import job, put_jobs, utc
from tests.sim._jobs import workload

TEXT = """
[machine]
nodes = 2
size = 2
[[variant]]
name = "three"
nodes = +1
"""
JOBS = [(at * 10, 100 + at % 7, 1 + at % 4) for at in range(60)]


@pytest.fixture(scope="module")
def folder(shared: Path) -> Iterator[Path]:
    """A Slurm of one node that this process talks to, and a folder that its node sees too."""
    with running_slurm(shared, num_nodes=1) as slurm, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(slurm.conf))
        yield slurm.folder


def test_slurm_gives_the_schedules_that_are_played_here(folder: Path) -> None:
    runs = prepare(read(TEXT), workload(*JOBS))
    told: list[str] = []
    there = play_all(
        runs,
        "slurm",
        folder=folder / "runs",
        progress=lambda done, total, name: told.append(f"{done}/{total}"),
        slurm={"partition": "short", "time": 10},
    )
    for one, other in zip(play_all(runs, num_processes=1), there, strict=True):
        assert one.start.tolist() == other.start.tolist()
        assert one.node.tolist() == other.node.tolist()
    assert told == ["1/2", "2/2"]
    assert not list((folder / "runs").iterdir())  # nothing is left behind


def test_the_command_on_slurm_writes_what_it_writes_here(
    folder: Path, lake: Lake, tmp_path: Path
) -> None:
    put_jobs(lake, [job(number, submitted_at=utc("2018-01-01T00:00:00")) for number in range(40)])
    scenario = tmp_path / "s.toml"
    scenario.write_text(TEXT)
    where = {
        "here": ("--jobs", "1"),
        "there": ("--on", "slurm", "--folder", folder, "--slurm", "partition=short"),
    }
    for name, options in where.items():
        given = (
            "whatif",
            scenario,
            "-w",
            lake.workspace,
            "-o",
            tmp_path / f"{name}.json",
            *options,
        )
        done = CliRunner().invoke(main, [str(each) for each in given])
        assert done.exit_code == 0, done.output
    assert (tmp_path / "here.json").read_text() == (tmp_path / "there.json").read_text()


def test_a_slurm_job_that_fails_says_where_its_output_is(folder: Path) -> None:
    runs = prepare(read(TEXT), workload(*JOBS))
    broken = replace(runs[1], recipe=replace(runs[1].recipe, policy="gone"))
    with pytest.raises(
        HakaruError, match=r"three: Slurm job \d+ failed(?s:.*)gone(?s:.*)_log\.err"
    ):
        play_all([broken], "slurm", folder=folder / "kept", slurm={"partition": "short"})
    assert list((folder / "kept").glob("whatif-*/submitit/*_log.err"))
