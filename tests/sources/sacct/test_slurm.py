"""`sacct` text of a real Slurm: 200 jobs of every kind, written in several forms, give the same table."""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hakaru.engine.duckdb import connect
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine
from hakaru.sources._slurm import COMMAND
from hakaru.sources.ingest import Summary, ingest
from tests._slurm import Slurm, running_slurm

PARTITIONS = ("normal", "short", "middle", "long")
COMMON = "State,ExitCode,NNodes,AllocTRES,ReqTRES,NCPUS,ReqMem"
PEOPLE = "User,Account,Partition,QOS"
LOCAL = "Submit,Eligible,Start,End,Elapsed,Timelimit,NodeList"
# what Slurm calls it, and what we do
STATES = {
    "PENDING": "pending",
    "RUNNING": "running",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "TIMEOUT": "timeout",
    "CANCELLED": "cancelled",
    "NODE_FAIL": "node_failed",
    "REQUEUED": "preempted",
}


@dataclass(frozen=True)
class Form:
    """One way to write the same accounting."""

    command: str
    options: Mapping[str, str]


TOKYO = {"zone": "Asia/Tokyo"}
FORMS = {
    "recommended": Form(COMMAND, {}),
    "epoch, |, name last": Form(COMMAND.replace("--delimiter=$'\\x1f'", ""), {}),
    "local, name second": Form(
        f"TZ=Asia/Tokyo sacct -a -D -P -S 2024-01-01 -o JobID,JobName,{PEOPLE},{COMMON},{LOCAL}",
        TOKYO,
    ),
    "local, name first, trailing": Form(
        f"TZ=Asia/Tokyo sacct -a -D -p -S 2024-01-01 -o JobName,JobID,{LOCAL},{COMMON},{PEOPLE}",
        TOKYO,
    ),
    "local, unit separator, name in the middle": Form(
        "TZ=Asia/Tokyo sacct -a -D -P --noconvert --delimiter=$'\\x1f' -S 2024-01-01 "
        f"-o {COMMON},{LOCAL},JobName,JobIDRaw,JobID,{PEOPLE}",
        TOKYO,
    ),
    "jobs only": Form(COMMAND.replace("-a -D", "-a -D -X"), {}),
}


@dataclass(frozen=True)
class Texts:
    """The accounting of one cluster: half-way, and at rest in every form."""

    slurm: Slurm
    early: Path
    late: Mapping[str, Path]


@pytest.fixture(scope="module")
def texts(shared: Path) -> Iterator[Texts]:
    with running_slurm(shared) as slurm:
        late = {name: slurm.folder / f"{i}.txt" for i, name in enumerate(FORMS)}
        texts = Texts(slurm, slurm.folder / "early.txt", late)
        _work(texts)
        _write_forms(texts)
        yield texts


def _work(texts: Texts) -> None:
    """Submit the mix, write the accounting once half-way, then stop the queues and wait."""
    slurm = texts.slurm
    mix = subprocess.Popen(
        [slurm.scripts / "submit-mix", slurm.folder / "notes"],
        env=slurm.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _until(lambda: _is_half_way(slurm), seconds=120)
    texts.early.write_text(slurm.run(FORMS["recommended"].command))
    mix.wait(timeout=150)
    for name in PARTITIONS:
        slurm.run(f"scontrol update partitionname={name} state=down")
    _until(lambda: not _busy(slurm), seconds=120)


def _until(is_so: Callable[[], bool], seconds: float) -> None:
    """Ask again and again, since Slurm tells nobody; what was asked must come true."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"it did not come true within {seconds} s"
        time.sleep(0.5)


def _is_half_way(slurm: Slurm) -> bool:
    """Whether many jobs are known, of which some have ended, some run and some wait."""
    states = slurm.run("sacct -a -n -P -X -S 2024-01-01 -o State").split()
    return len(states) > 80 and {"COMPLETED", "RUNNING", "PENDING"} <= set(states)


def _write_forms(texts: Texts) -> None:
    """All forms of one moment: written again if a job ended meanwhile."""
    for _ in range(5):
        before = _states(texts.slurm)
        for name, form in FORMS.items():
            texts.late[name].write_text(texts.slurm.run(form.command))
        if _states(texts.slurm) == before:
            return
    raise AssertionError("the queue does not come to rest")


def _busy(slurm: Slurm) -> bool:
    return bool(slurm.run("squeue -h -t R,CG,S -o %j").replace("timeout", "").strip())


def _states(slurm: Slurm) -> str:
    return slurm.run("sleep 1; sacct -a -D -P -S 2024-01-01 -o JobID,State,Submit,Start,End")


def _ingest(path: Path, form: Form, workspace: Path) -> tuple[Summary, list[dict[str, Any]]]:
    lake = Lake.create(workspace)
    summary = ingest(lake, [path], "box", options=form.options)
    return summary, _jobs(lake)


def _jobs(lake: Lake) -> list[dict[str, Any]]:
    con = connect(Engine())
    rows: list[dict[str, Any]] = lake.read(con, JOBS).to_pylist()
    con.close()
    return sorted(rows, key=lambda row: (row["job_id"], row["submitted_at"]))


def _told(slurm: Slurm) -> list[tuple[str, str, int]]:
    """What sacct says of each task, without any name: id, state, GPUs."""
    text = slurm.run(
        "SLURM_BITSTR_LEN=0 sacct -a -D -X -n -P -S 2024-01-01 -o JobID,State,AllocTRES,ReqTRES"
    )
    told = []
    for line in text.splitlines():
        id, state, alloc, req = line.split("|")
        gpus = re.search(r"gres/gpu=(\d+)", alloc or req)
        for task in _tasks(id):
            told.append((task, STATES[state.split()[0]], int(gpus[1]) if gpus else 0))
    return told


def _tasks(id: str) -> list[str]:
    array = re.fullmatch(r"(\d+)_\[([^%]*)(%\d+)?\]", id)
    if array is None:
        return [id]
    tasks: list[int] = []
    for part in array[2].split(","):
        first, last, step = re.fullmatch(r"(\d+)(?:-(\d+))?(?::(\d+))?", part).groups()  # type: ignore[union-attr]
        tasks += range(int(first), int(last or first) + 1, int(step or 1))
    return [f"{array[1]}_{task}" for task in tasks]


def test_every_form_gives_the_same_jobs(texts: Texts, tmp_path: Path) -> None:
    tables = {}
    for i, (name, form) in enumerate(FORMS.items()):
        summary, tables[name] = _ingest(texts.late[name], form, tmp_path / str(i))
        assert summary.rejected_by_reason == {}, name
    first = tables["recommended"]
    assert len(first) > 190
    for name, table in tables.items():
        assert table == first, name


def test_jobs_states_and_gpus_are_what_sacct_says(texts: Texts, tmp_path: Path) -> None:
    _, jobs = _ingest(texts.late["recommended"], FORMS["recommended"], tmp_path / "w")
    told = _told(texts.slurm)
    assert Counter(id for id, _, _ in told) == Counter(job["job_id"] for job in jobs)
    found = Counter((job["job_id"], job["state"], job["num_gpus"]) for job in jobs)
    # the job that runs into its limit may do so between the two commands
    moving = {job["job_id"] for job in jobs if job["name"] == "timeout"}
    differ = {id for id, _, _ in (found - Counter(told)) | (Counter(told) - found)}
    assert differ <= moving


def test_the_queue_is_what_squeue_says(texts: Texts, tmp_path: Path) -> None:
    """Slurm lists a job when it is first eligible: not one held, requeued, or throttled in its array."""
    _, jobs = _ingest(texts.late["recommended"], FORMS["recommended"], tmp_path / "w")
    queued = texts.slurm.run("squeue -h -r -t PD -o '%i|%r'").splitlines()
    waiting = {row.split("|")[0] for row in queued if not re.search("JobHeld|BeginTime", row)}
    listed = {job["job_id"] for job in jobs}
    assert waiting & listed
    assert waiting & listed == {job["job_id"] for job in jobs if job["state"] == "pending"}


def test_what_was_done_to_the_jobs_is_seen(texts: Texts, tmp_path: Path) -> None:
    _, jobs = _ingest(texts.late["recommended"], FORMS["recommended"], tmp_path / "w")
    by_name: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        by_name.setdefault(job["name"], []).append(job)
    assert {"a|b c", "line1\nline2", "学習-é"} <= set(by_name)
    assert [job["exit_code"] for job in by_name["fail3"]] == [3]
    assert [job["exit_code"] for job in by_name["killself"]] == [137]
    assert [job["state"] for job in by_name["requeue"]][:1] == ["preempted"]
    assert [job["state"] for job in by_name["noderequeue"]][:1] == ["node_failed"]
    assert {job["job_id"].split("+")[1] for job in by_name["het"]} == {"0", "1"}
    (refused,) = by_name["toobig"]
    assert (refused["state"], refused["started_at"], refused["num_gpus"]) == ("failed", None, 9)
    (queued,) = by_name["cancel-queued"]
    assert (queued["state"], queued["started_at"], queued["wait_s"]) == ("cancelled", None, None)
    (suspended,) = by_name["suspend"]
    span = (suspended["ended_at"] - suspended["started_at"]).total_seconds()
    assert 3 <= span - suspended["run_s"] <= 8
    (ddp,) = by_name["ddp16"]
    assert (ddp["num_gpus"], ddp["num_nodes"], len(ddp["nodes"])) == (16, 2, 2)


def test_a_later_ingest_brings_the_earlier_rows_up_to_date(texts: Texts, tmp_path: Path) -> None:
    _, late = _ingest(texts.late["recommended"], FORMS["recommended"], tmp_path / "late")
    both = Lake.create(tmp_path / "both")
    first = ingest(both, [texts.early], "box")
    second = ingest(both, [texts.late["recommended"]], "box")
    assert first.upsert.num_new > 50 and second.upsert.num_updated > 5
    listed = {(job["job_id"], job["submitted_at"]) for job in late}
    stored = {(job["job_id"], job["submitted_at"]): job for job in _jobs(both)}
    assert _standing([stored[key] for key in sorted(listed)]) == _standing(late)
    # what the later text leaves out can only wait: an array's tasks that its limit holds back
    assert {job["state"] for key, job in stored.items() if key not in listed} <= {"pending"}
    again = ingest(both, [texts.early], "box")
    assert (again.upsert.num_new, again.upsert.num_updated) == (0, 0)


def _standing(jobs: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("job_id", "submitted_at", "state", "num_gpus", "started_at", "ended_at", "run_s")
    return [tuple(job[name] for name in names) for job in jobs]
