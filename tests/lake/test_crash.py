"""Killed writers, two writers at once, and readers in between: real processes on a log of AAIC's shape.

A writer dies at a named point: before a commit, when its files are moved in but no commit names them, or
right after it. Each point of every writer is tried once, so that a failure can be repeated.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from hakaru.cli import main
from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import connect, one_row, select_files
from hakaru.lake import Lake
from hakaru.lake._log import Log
from hakaru.schema import JOBS, REJECTS
from hakaru.settings import Engine
from hakaru.sources import ingest

NUM_JOBS = 2_000
STEPS = ("before", "moved", "after")
State = tuple[int, int, int, int]

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["hakaru.sources.ingest", "deltalake", "pyarrow.parquet"])


def write_log(path: Path, first: int, last: int, wait_s: int = 60) -> Path:
    """Jobs `first` to `last` in AAIC's format; every thousandth line is damaged."""
    names = "id,user,group,queue,nodes,gpus,walltime_req,termcode,time_submit,time_start,time_end,"
    duckdb.connect().execute(
        f"""
        COPY (SELECT CASE WHEN i % 1000 = 7 THEN 'x' ELSE '' END || i AS id, i % 50 AS "user",
                     i % 9 AS "group", i % 4 AS queue, 1 AS nodes, i % 8 + 1 AS gpus,
                     3600 AS walltime_req, i % 5 AS termcode, 1500000000 + i * 60 AS time_submit,
                     time_submit + {wait_s} AS time_start, time_start + i % 7000 AS time_end,
                     {wait_s} AS waittime, i % 7000 AS walltime
              FROM range({first}, {last}) AS r(i) ORDER BY i)
        TO {quote(str(path))} (FORMAT csv)
        """
    )
    assert path.open().readline().startswith(names)
    return path


def state_of(workspace: Path) -> State:
    """Rows, distinct keys and a digest of the jobs, and rejects: what must be whole."""
    lake, con = Lake.open(workspace), connect(Engine())
    jobs = select_files(JOBS, lake.files(JOBS))
    num, digest, keys = one_row(
        con,
        "SELECT count(*), coalesce(bit_xor(hash(j)), 0), "
        f"count(DISTINCT (cluster, job_id, submitted_at)) FROM ({jobs}) AS j",
    )
    (rejects,) = one_row(
        con, f"SELECT count(*) FROM ({select_files(REJECTS, lake.files(REJECTS))})"
    )
    con.close()
    return num, keys, digest, rejects


def run_ingest(workspace: Path, log: Path) -> None:
    ingest(Lake.create(workspace), [log], "c")


def run_compact(workspace: Path) -> None:
    Lake.open(workspace).compact(retain_hours=0)


def run_forget(workspace: Path) -> None:
    Lake.open(workspace).forget("c")


def commits_of(
    monkeypatch: pytest.MonkeyPatch, work: Callable[..., None], *arguments: Any
) -> list[str]:
    """The tables that some work commits to, in their order."""
    names: list[str] = []
    commit = Log.commit

    def noted(log: Log, *rest: Any, **options: Any) -> None:
        names.append(log.table.name)
        commit(log, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Log, "commit", noted)
        work(*arguments)
    return names


def stop_at(
    table: str, step: str, stop: Callable[[], None], work: Callable[..., None], *arguments: Any
) -> None:
    """In a process of its own: work until the commit to a table, and stop there."""
    commit, move_in = Log.commit, Log._move_in

    def stopping(log: Log, *rest: Any, **options: Any) -> None:
        if log.table.name == table and step == "before":
            stop()
        commit(log, *rest, **options)
        if log.table.name == table and step == "after":
            stop()

    def moving(log: Log, *rest: Any) -> list[Any]:
        actions = move_in(log, *rest)
        if log.table.name == table and step == "moved":
            stop()
        return actions

    Log.commit, Log._move_in = stopping, moving  # type: ignore[method-assign]
    work(*arguments)


def die() -> None:
    os._exit(9)


def die_at(table: str, step: str, work: Callable[..., None], *arguments: Any) -> None:
    process = context.Process(target=stop_at, args=(table, step, die, work, *arguments))
    process.start()
    process.join()
    assert process.exitcode == 9, f"it never came to {step} the commit to {table}"


class Halt:
    """Says that the point is reached, and waits there to be killed."""

    def __init__(self) -> None:
        self.reached, self.never = context.Event(), context.Event()

    def __call__(self) -> None:
        self.reached.set()
        self.never.wait()


def check_status(workspace: Path) -> str:
    """What `hakaru lake status` says; it must have something to say in every state."""
    told = CliRunner().invoke(main, ["lake", "status", "--workspace", str(workspace)])
    assert told.exit_code == 0, told.output + repr(told.exception)
    return told.output


def die_before_the_log(workspace: Path, log: Path) -> None:
    """As a kill between the jobs' commit and the ingest log would have it."""
    module = importlib.import_module("hakaru.sources.ingest")
    module.log_ingest = lambda *_, **__: os._exit(9)  # type: ignore[attr-defined]
    run_ingest(workspace, log)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two logs of one name, so that their ids are the same: the second overlaps and changes the first."""
    folder = tmp_path_factory.mktemp("logs")
    for name in ("old", "new"):
        (folder / name).mkdir()
    old = write_log(folder / "old" / "log.csv", 0, NUM_JOBS)
    return old, write_log(folder / "new" / "log.csv", NUM_JOBS // 2, NUM_JOBS * 2, wait_s=61)


INGEST = ["clusters", "rejects", "jobs", "ingests"]


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory, logs: tuple[Path, Path]) -> Path:
    """A workspace with the old log."""
    workspace = tmp_path_factory.mktemp("half") / "workspace"
    run_ingest(workspace, logs[0])
    return workspace


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory, half: Path, logs: tuple[Path, Path]) -> Path:
    """A workspace with both logs."""
    workspace = tmp_path_factory.mktemp("full") / "workspace"
    shutil.copytree(half, workspace)
    run_ingest(workspace, logs[1])
    return workspace


def test_an_ingest_commits_jobs_after_their_faults_and_its_own_line_last(
    tmp_path: Path, logs: tuple[Path, Path], full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commits_of(monkeypatch, run_ingest, tmp_path / "w", logs[0]) == INGEST
    num_bad = sum(i % 1000 == 7 for i in range(NUM_JOBS * 2))
    num_twice = sum(i % 1000 == 7 for i in range(NUM_JOBS // 2, NUM_JOBS))
    num_good = NUM_JOBS * 2 - num_bad
    num, keys, _, rejects = state_of(full)
    assert (num, keys, rejects) == (num_good, num_good, num_bad + num_twice)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("table", INGEST)
def test_an_ingest_that_dies_at_a_commit_is_ended_by_a_rerun(
    tmp_path: Path, logs: tuple[Path, Path], half: Path, full: Path, table: str, step: str
) -> None:
    work = shutil.copytree(half, tmp_path / "work")
    if table == "clusters":  # facts are committed where they are new
        work = tmp_path / "empty"
        Lake.create(work)
    before, log = state_of(work), logs[1] if table != "clusters" else logs[0]
    after = state_of(full) if table != "clusters" else state_of(half)
    die_at(table, step, run_ingest, work, log)
    found = state_of(work)
    done = INGEST[: INGEST.index(table) + (step == "after")]
    assert found[:3] == (after if "jobs" in done else before)[:3]
    assert found[3] == (after if "rejects" in done else before)[3]
    check_status(work)
    run_ingest(work, log)
    assert state_of(work) == after
    assert not list((work / "lake" / "_staging").iterdir())


def test_a_kill_from_outside_leaves_the_old_state_and_no_lock(
    tmp_path: Path, logs: tuple[Path, Path], half: Path, full: Path
) -> None:
    work = shutil.copytree(half, tmp_path / "work")
    halt = Halt()
    process = context.Process(
        target=stop_at, args=("jobs", "moved", halt, run_ingest, work, logs[1])
    )
    process.start()
    assert halt.reached.wait(60)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert state_of(work)[:3] == state_of(half)[:3]
    assert list((work / "lake" / "_staging").iterdir())
    run_ingest(work, logs[1])
    assert state_of(work) == state_of(full)
    assert not list((work / "lake" / "_staging").iterdir())


def test_jobs_whose_ingest_was_not_logged_are_shown(
    tmp_path: Path, logs: tuple[Path, Path]
) -> None:
    process = context.Process(target=die_before_the_log, args=(tmp_path / "w", logs[0]))
    process.start()
    process.join()
    lake = Lake.open(tmp_path / "w")
    assert process.exitcode == 9 and lake.ingests() == []
    assert state_of(tmp_path / "w")[0] == NUM_JOBS - NUM_JOBS // 1000
    assert lake.clusters() == ["c"]
    assert "interrupted" in check_status(tmp_path / "w")
    asked = CliRunner().invoke(main, ["show", "states", "--workspace", str(tmp_path / "w")])
    assert asked.exit_code == 0, asked.output
    run_ingest(tmp_path / "w", logs[0])
    assert "interrupted" not in check_status(tmp_path / "w")


FORGET = ["jobs", "rejects", "clusters", "ingests"]


def test_what_is_forgotten_in_which_order(
    tmp_path: Path, full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = shutil.copytree(full, tmp_path / "work")
    assert commits_of(monkeypatch, run_forget, work) == FORGET


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("table", FORGET)
def test_a_removal_that_dies_is_ended_by_a_rerun(
    tmp_path: Path, full: Path, table: str, step: str
) -> None:
    work = shutil.copytree(full, tmp_path / "work")
    die_at(table, step, run_forget, work)
    check_status(work)
    num_left = state_of(work)[0]
    assert num_left == (state_of(full)[0] if (table, step) in JOBS_STAY else 0)
    ended = (table, step) == ("ingests", "after")
    assert Lake.open(work).clusters() == ([] if ended else ["c"])
    if not ended:
        run_forget(work)
    assert all(status.num_rows == 0 for status in Lake.open(work).status())


JOBS_STAY = [("jobs", "before"), ("jobs", "moved")]


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory, full: Path) -> Path:
    """A workspace with two files of jobs, the second of a later period."""
    folder = tmp_path_factory.mktemp("loose")
    workspace = shutil.copytree(full, folder / "workspace")
    run_ingest(workspace, write_log(folder / "log.csv", NUM_JOBS * 3, NUM_JOBS * 4))
    assert len(Lake.open(workspace).files(JOBS)) == 2
    return workspace


COMPACT = ["jobs", "clusters", "ingests", "rejects"]


def test_what_is_compacted(tmp_path: Path, loose: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = shutil.copytree(loose, tmp_path / "work")
    assert commits_of(monkeypatch, run_compact, work) == COMPACT


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("table", COMPACT)
def test_a_compaction_that_dies_loses_nothing(
    tmp_path: Path, loose: Path, table: str, step: str
) -> None:
    work = shutil.copytree(loose, tmp_path / "work")
    die_at(table, step, run_compact, work)
    assert state_of(work) == state_of(loose)
    run_compact(work)
    assert state_of(work) == state_of(loose)
    assert len(Lake.open(work).files(JOBS)) == 1


def test_two_ingests_at_once_give_what_one_after_the_other_gives(
    tmp_path: Path, logs: tuple[Path, Path]
) -> None:
    for log in logs:
        run_ingest(tmp_path / "one", log)
    expected = state_of(tmp_path / "one")
    for i in range(2):
        both = tmp_path / str(i)
        order = logs if i % 2 else logs[::-1]
        processes = [context.Process(target=run_ingest, args=(both, log)) for log in order]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0, 0]
        assert state_of(both) == expected
        assert len(Lake.open(both).ingests()) == 2


def write_generations(workspace: Path, done: Any) -> None:
    """Every commit changes all rows at once: `exit_code` says which generation they are of."""
    lake, con = Lake.open(workspace), connect(Engine(threads=1))
    for generation in range(1, 16):
        nulls = ", ".join(
            f'NULL AS "{name}"' for name in JOBS.names if name not in (*JOBS.key, "exit_code")
        )
        con.execute(
            f"CREATE OR REPLACE TABLE rows AS SELECT 'c' AS cluster, i::VARCHAR AS job_id, "
            f"to_timestamp(i) AS submitted_at, {generation} AS exit_code, {nulls} FROM range(20000) r(i)"
        )
        lake.upsert(con, JOBS, "rows")
        if generation % 5 == 0:
            lake.compact()
    done.set()


def test_readers_are_never_blocked_and_see_whole_commits(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "workspace")
    done = context.Event()
    writer = context.Process(target=write_generations, args=(lake.workspace, done))
    writer.start()
    con, seen = connect(Engine(threads=1)), []
    while not done.is_set() and writer.is_alive():
        files = select_files(JOBS, lake.files(JOBS))
        seen.append(one_row(con, f"SELECT count(*), min(exit_code), max(exit_code) FROM ({files})"))
    writer.join()
    assert writer.exitcode == 0
    assert all(row == (0, None, None) or row[0] == 20000 for row in seen)
    assert all(low == high for _, low, high in seen)
    generations = [low or 0 for _, low, _ in seen]
    assert generations == sorted(generations) and len(set(generations)) > 3


def test_a_reader_is_not_blocked_by_a_writer_that_holds_the_lock(tmp_path: Path) -> None:
    run_ingest(tmp_path / "w", write_log(tmp_path / "log.csv", 0, 100))
    lake = Lake.open(tmp_path / "w")
    with lake._writing():
        assert state_of(tmp_path / "w")[0] == 100 - 1
        assert lake.clusters() == ["c"] and lake.status()[0].num_rows == 99
