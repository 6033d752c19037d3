"""What `hakaru ingest` says of rows that contradict one another, and what `--strict` makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.lake import Lake
from hakaru.schema import CLUSTERS, JOBS, REJECTS
from tests._cli import hakaru

LOG = """job,task,at,end,gpus,status
5,1,1500000000,1500000600,1,done
5,2,1500000000,1500000700,2,done
5,2,1500000000,1500000700,2,done
6,1,1500000000,,1,running
6,1,1500000000,1500000900,1,done
"""
MAPPING = """[columns]
job_id = "job"
num_gpus = "gpus"
submitted_at = { column = "at", unit = "s" }
ended_at = { column = "end", unit = "s" }
state = "status"

[states]
done = "completed"

[cluster]
gpus_per_node = 8
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    log, mapping = tmp_path / "log.csv", tmp_path / "m.toml"
    log.write_text(LOG)
    mapping.write_text(MAPPING)
    return log, mapping


def read(files: tuple[Path, Path], *options: object) -> tuple[int, str]:
    log, mapping = files
    workspace = log.parent / "w"
    told = hakaru(
        *("ingest", log, "--format", "table", "--mapping", mapping, "--cluster", "c"),
        *("--workspace", workspace, *options),
    )
    return told.exit_code, told.output


def test_a_conflict_is_counted_apart_and_the_warning_says_what_to_do(
    files: tuple[Path, Path],
) -> None:
    code, text = read(files)
    assert code == 3  # the second task is lost, and that is a fifth of the rows
    assert text.startswith(
        "20.0% of the rows are missing: 1 of 5 contradicts another row of its job;"
    )
    assert "new 2, updated 0, unchanged 0, repeated 2, in conflict 1, rejected 0" in text
    assert "1 rows contradict" not in text
    assert "1 row contradicts another row of the same job id and submit time" in text
    assert "(job 5: ended_at, num_gpus differ)" in text and 'job_id = ["ID", "TASK"]' in text
    (logged,) = Lake.open(files[0].parent / "w").ingests()
    names = ("read", "new", "repeated", "conflicts", "dropped", "rejected")
    assert [logged[f"num_{name}"] for name in names] == [5, 2, 2, 1, 1, 0]


def test_the_task_joins_the_id(files: tuple[Path, Path]) -> None:
    files[1].write_text(MAPPING.replace('job_id = "job"', 'job_id = ["job", "task"]'))
    code, text = read(files, "--strict")
    assert code == 0
    assert "new 3, updated 0, unchanged 0, repeated 2, rejected 0" in text
    assert "contradict" not in text


def test_strict_refuses_a_conflict_and_stores_nothing(files: tuple[Path, Path]) -> None:
    code, text = read(files, "--strict")
    assert code != 0
    assert "1 row contradicts another row" in text and "nothing was stored (--strict)" in text
    assert "is kept" not in text
    lake = Lake.open(files[0].parent / "w")
    assert [lake.files(table) for table in (JOBS, CLUSTERS, REJECTS)] == [[], [], []]
    assert lake.ingests() == []


def test_strict_refuses_what_contradicts_an_earlier_ingest(files: tuple[Path, Path]) -> None:
    files[1].write_text(MAPPING.replace('job_id = "job"', 'job_id = ["job", "task"]'))
    assert read(files)[0] == 0
    lake = Lake.open(files[0].parent / "w")
    before = lake.version()
    files[0].write_text(LOG.replace("5,1,1500000000,1500000600,1", "5,1,1500000000,1500000600,8"))
    code, text = read(files, "--strict")
    assert code != 0 and lake.version() == before
    assert "1 row contradicts what an earlier ingest stored (job 5.1: num_gpus differs)" in text
    assert "hakaru lake forget --cluster c" in text and "is kept" not in text
    code, text = read(files)
    assert "One row of each job is kept" in text
    assert code == 0 and "in conflict 1" in text and "(job 5.1: num_gpus differs)" in text
