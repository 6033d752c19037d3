"""Killed writers, two writers at once, and readers in between: real processes on a log of AAIC's shape."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import random
import shutil
import time
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
from hakaru.schema import JOBS, REJECTS
from hakaru.settings import Engine
from hakaru.sources import ingest

NUM_KILLS = 25
NUM_JOBS = 40_000
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


def run_ingest(workspace: Path, log: Path, staged: Any = None) -> None:
    def progress(done: int, total: int, read: int, rejected: int) -> None:
        if staged is not None and done == total:
            staged.set()

    ingest(Lake.create(workspace), [log], "c", progress=progress)


def run_compact(workspace: Path) -> None:
    Lake.open(workspace).compact(retain_hours=0)


def kill_after(seconds: float, work: Callable[..., None], *arguments: Any, staged: Any) -> bool:
    """Whether the process was still at work when it was killed."""
    process = context.Process(target=work, args=arguments)
    process.start()
    if staged is not None:
        staged.wait(60)
    process.join(seconds)
    process.kill()
    process.join()
    return process.exitcode != 0


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


def run_forget(workspace: Path) -> None:
    Lake.open(workspace).forget("c")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two logs of one name, so that their ids are the same: the second overlaps and changes the first."""
    folder = tmp_path_factory.mktemp("logs")
    for name in ("old", "new"):
        (folder / name).mkdir()
    old = write_log(folder / "old" / "log.csv", 0, NUM_JOBS)
    return old, write_log(folder / "new" / "log.csv", NUM_JOBS // 2, NUM_JOBS * 2, wait_s=61)


def test_a_kill_at_any_moment_leaves_the_old_or_the_new_state(
    tmp_path: Path, logs: tuple[Path, Path]
) -> None:
    old, new = logs
    saved, work = tmp_path / "saved", tmp_path / "work"
    run_ingest(saved, old)
    before = state_of(saved)
    shutil.copytree(saved, work)
    begin = time.perf_counter()
    run_ingest(work, new)
    whole_s = time.perf_counter() - begin
    after = state_of(work)
    num_bad = sum(i % 1000 == 7 for i in range(NUM_JOBS * 2))
    assert after[:2] == (NUM_JOBS * 2 - num_bad,) * 2
    assert before != after

    seen, killed = [], 0
    rng = random.Random(time.time_ns())
    for i in range(NUM_KILLS):
        shutil.rmtree(work)
        shutil.copytree(saved, work)
        # every other kill aims at the commits, which come after the reading
        staged = context.Event() if i % 2 else None
        moment = rng.uniform(0, whole_s * (0.4 if staged else 1))
        killed += kill_after(moment, run_ingest, work, new, staged, staged=staged)
        found = state_of(work)
        assert found[:3] in (before[:3], after[:3]), f"half a commit after {moment:.3f} s"
        check_status(work)
        seen.append(found)
        run_ingest(work, new)
        assert state_of(work) == after, f"the rerun after {moment:.3f} s"
    assert killed > NUM_KILLS // 3
    assert before[:3] in [state[:3] for state in seen]
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


def test_a_kill_while_forgetting_is_ended_by_a_rerun(
    tmp_path: Path, logs: tuple[Path, Path]
) -> None:
    saved, work = tmp_path / "saved", tmp_path / "work"
    run_ingest(saved, logs[0])
    rng = random.Random(time.time_ns())
    for _ in range(8):
        shutil.copytree(saved, work)
        kill_after(rng.uniform(0, 0.3), run_forget, work, staged=None)
        check_status(work)
        if Lake.open(work).clusters():
            run_forget(work)
        assert state_of(work) == (0, 0, 0, 0)
        assert all(table.num_rows == 0 for table in Lake.open(work).status())
        shutil.rmtree(work)


def test_a_kill_while_compacting_loses_nothing(tmp_path: Path, logs: tuple[Path, Path]) -> None:
    saved, work = tmp_path / "saved", tmp_path / "work"
    for log in logs:
        run_ingest(saved, log)
    expected = state_of(saved)
    rng = random.Random(time.time_ns())
    for _ in range(8):
        shutil.copytree(saved, work)
        kill_after(rng.uniform(0, 0.8), run_compact, work, staged=None)
        assert state_of(work) == expected
        run_compact(work)
        assert state_of(work) == expected
        shutil.rmtree(work)


def test_two_ingests_at_once_give_what_one_after_the_other_gives(
    tmp_path: Path, logs: tuple[Path, Path]
) -> None:
    for log in logs:
        run_ingest(tmp_path / "one", log)
    expected = state_of(tmp_path / "one")
    for i in range(4):
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
