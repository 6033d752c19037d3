"""A synthetic log of some weeks, and the same ten times over, for all tests that only draw."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hakaru.analyses import Session, open_session
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.sources.synth import Synth, generate
from tests.conftest import job, put, utc

APPLICATIONS = ("pytorch", "tensorflow", "caffe", "python", "gromacs", "namd", "lammps", "q-e", "r")


def make(lake: Lake, num_jobs: int) -> Lake:
    """A synthetic year and, since such jobs name no application, a few that do."""
    generate(
        lake, Synth(num_jobs=num_jobs, cluster="sample", days=400, num_nodes=16, samples_days=0.1)
    )
    named = [
        job(
            i,
            cluster="sample",
            application=APPLICATIONS[int(i**0.5) % len(APPLICATIONS)],
            user=f"ann{i % 20}",
            num_gpus=8 * (1 + i % 2),
            num_nodes=1 + i % 2,
            run_s=60.0 * (i + 1),
            submitted_at=utc("2024-05-01T00:00:00"),
        )
        for i in range(120)
    ]
    put(lake, JOBS.name, named)
    return lake


@pytest.fixture(scope="session")
def sample_lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make(Lake.create(tmp_path_factory.mktemp("figures")), 3_000)


@pytest.fixture(scope="session")
def large_lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make(Lake.create(tmp_path_factory.mktemp("large")), 30_000)


@pytest.fixture(scope="session")
def sample(sample_lake: Lake) -> Iterator[Session]:
    with open_session(sample_lake) as session:
        yield session
