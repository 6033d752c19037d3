"""A stored file that is cut, gone or damaged inside: every verb says so in a line, and ends with 1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hakaru.lake import Lake
from hakaru.schema import JOBS
from tests._cli import hakaru
from tests.conftest import job, put_jobs
from tests.sources._log import line, write

VERBS = [
    ("lake", "status"),
    ("lake", "compact"),
    ("ingest", "LOG", "--cluster", "c"),
    ("show", "states"),
    ("token", "create", "--name", "a", "--role", "user", "--user", "ann"),
]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def scramble(path: Path) -> None:
    """The same length, with nothing in it that DuckDB could read."""
    path.write_bytes(b"x" * path.stat().st_size)


@pytest.mark.parametrize("harm", [cut, Path.unlink, scramble])
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: " ".join(verb[:2]))
def test_no_verb_prints_a_traceback(
    lake: Lake, tmp_path: Path, verb: tuple[str, ...], harm: Callable[[Path], None]
) -> None:
    put_jobs(lake, [job(1), job(2)])
    put_jobs(lake, [job(3)])
    path = Path(lake.files(JOBS)[0])
    harm(path)
    log = write(tmp_path / "log.csv", line(1), line(5))
    done = hakaru(*(log if word == "LOG" else word for word in verb), "-w", lake.workspace)
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.output
    assert path.name in done.stderr and "Traceback" not in done.stderr
    if harm is not scramble:
        reason = "is missing" if harm is Path.unlink else "is damaged: it has "
        assert f"{path}, a file of the table 'jobs', {reason}" in done.stderr
        assert f"hakaru lake forget --cluster c --workspace {lake.workspace}" in done.stderr


@pytest.mark.parametrize("harm", [cut, Path.unlink])
def test_the_advice_helps(lake: Lake, harm: Callable[[Path], None]) -> None:
    put_jobs(lake, [job(1)])
    put_jobs(lake, [job(2, cluster="other")])
    harm(next(Path(file) for file in lake.files(JOBS, ["c"])))
    assert hakaru("lake", "forget", "--cluster", "c", "--yes", "-w", lake.workspace).exit_code == 0
    assert hakaru("lake", "compact", "-w", lake.workspace).exit_code == 0
    assert hakaru("show", "states", "-w", lake.workspace).exit_code == 0
    assert Lake.open(lake.workspace).clusters() == ["other"]
