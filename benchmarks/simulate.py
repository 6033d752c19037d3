"""The simulator: jobs a second of processor time, against a plain Python loop, with growth and memory.

    python -m benchmarks.simulate [--most 10000000]

Every figure is of processor time, since others may use the machine, and is the best of a few runs; compiling
is not counted. A rate is of the whole of `simulate`, from the workload's arrays to the schedule. The peer,
EASY as a plain Python loop, plays the same jobs in the same process, and its starts are compared: neither is
fast by being wrong. Memory is what a process of its own needs at its peak beyond the workload.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.easy_peer import Peer
from hakaru import sim
from hakaru.analyses import Selection, open_session
from hakaru.lake import Lake
from hakaru.sources import ingest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FLAT, PACKED = sim.Machine.flat(304), sim.Machine.of_nodes(38, 8)
FLAT_LIMIT, PACKED_LIMIT = 1_000_000, 300_000  # jobs a second
BYTES_LIMIT = 200  # a job
SIXTEEN = (sim.Limit("user", "running-jobs", 16),)
CROWDED: tuple[tuple[str, tuple[sim.Limit, ...]], ...] = (
    *(
        (policy, ())
        for policy in ("fcfs", "easy", "easy-sjbf", "easy++", "sjf-easy", "multifactor")
    ),
    *((policy, SIXTEEN) for policy in ("easy", "easy-sjbf", "multifactor")),
    ("conservative-depth", ()),
)
CROWDED_LIMIT_S = 60  # pyss did not end within 25 minutes
LIMITED_LIMIT_S = 10  # under a limit, with which it took as long as without any
GROWTH_LIMIT = 2.0  # times the processor time a job, from 100,000 jobs to the most
MOST_PLANNED = 1_000_000  # synthetic jobs with a place each


def main() -> int:
    parser = argparse.ArgumentParser(description="The simulator.")
    parser.add_argument("--most", type=int, default=10_000_000, help="synthetic jobs")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(json.dumps(_bytes_a_job(options.memory)))
        return 0
    aaic = _workload(sorted((DATA / "aaic").glob("*.csv.gz")))
    for policy, _ in CROWDED:  # compiles, or loads what was compiled
        sim.simulate(_first(aaic, 100), FLAT, sim.POLICIES.get(policy))
    met = [_rates(aaic), _peers(aaic), _crowded(aaic), _limited(), _planned(aaic)]
    met += [_growth("easy", options.most), _growth("conservative", min(options.most, MOST_PLANNED))]
    met.append(_memory())
    return 0 if all(met) else 1


def _workload(files: list[Path]) -> sim.Workload:
    if not files:
        sys.exit(f"no files: put AAIC's CSV files into {DATA / 'aaic'}")
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.create(Path(folder))
        ingest(lake, files, "log")
        query = f"SELECT {', '.join(sim.COLUMNS)} FROM jobs ORDER BY {sim.ORDER}"
        with open_session(lake) as session:
            return sim.Workload.of(session.ask(query, Selection(clusters=("log",))))


def _first(workload: sim.Workload, num: int) -> sim.Workload:
    return workload.take(np.arange(min(num, len(workload))))


def _seconds(
    workload: sim.Workload,
    machine: sim.Machine,
    policy: str,
    times: int = 3,
    limits: Sequence[sim.Limit] = (),
) -> tuple[float, sim.Schedule]:
    """Of processor time, the best of some runs; and the schedule."""
    best, options = float("inf"), sim.Options(limits=limits)
    for _ in range(times):
        begin = time.process_time()
        schedule = sim.simulate(workload, machine, sim.POLICIES.get(policy), options)
        best = min(best, time.process_time() - begin)
    return best, schedule


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def _rates(aaic: sim.Workload) -> bool:
    met = True
    print(f"AAIC, {len(aaic):,} jobs, jobs a second of processor time:")
    for name, machine, policy, limit in (
        ("flat, 304 processors", FLAT, "fcfs", None),
        ("flat, 304 processors", FLAT, "easy", FLAT_LIMIT),
        ("packed, 38 nodes of 8", PACKED, "easy", PACKED_LIMIT),
    ):
        seconds, schedule = _seconds(aaic, machine, policy, times=5)
        rate = len(schedule.workload) / seconds
        told = f" (at least {limit:,}: {_verdict(rate >= limit)})" if limit else ""
        print(f"  {name:22} {policy:6} {rate:12,.0f}{told}", flush=True)
        met &= limit is None or rate >= limit
    return met


def _peers(aaic: sim.Workload) -> bool:
    """The same jobs in the kernel and in the plain loop."""
    print("EASY beside the plain Python loop, jobs a second:")
    kth = _workload([DATA / "schedules" / "kth-100.swf.gz"])
    for name, workload, processors in (
        ("KTH, 100 processors", kth, 100),
        ("AAIC's first 20,000", _first(aaic, 20_000), 304),
    ):
        seconds, schedule = _seconds(workload, sim.Machine.flat(processors), "easy")
        jobs = schedule.workload
        submit, run, request, pes = (
            column.tolist() for column in (jobs.submit, jobs.run, jobs.request, jobs.pes)
        )
        begin = time.process_time()
        starts = Peer(submit, run, request, pes, processors).play()
        slow = time.process_time() - begin
        if starts != schedule.start.tolist():
            sys.exit(f"{name}: the kernel and the plain loop do not agree")
        rates = len(jobs) / seconds, len(jobs) / slow
        print(f"  {name:22} {rates[0]:12,.0f} against {rates[1]:8,.0f}: {slow / seconds:.0f} times")
    return True


def _crowded(aaic: sim.Workload) -> bool:
    """The quarter in which up to 28 thousand jobs were queued."""
    crowd, met = _quarter(aaic), True
    print(f"AAIC 2018Q2 alone, {len(crowd):,} jobs, on 304 processors:")
    for policy, limits in CROWDED:
        seconds, schedule = _seconds(crowd, FLAT, policy, times=1, limits=limits)
        most = LIMITED_LIMIT_S if limits and policy != "multifactor" else CROWDED_LIMIT_S
        is_met, rate = seconds <= most, len(schedule.workload) / seconds
        name = f"{policy}, 16 jobs a user" if limits else policy
        print(
            f"  {name:28} {seconds:8.2f} s, {rate:10,.0f} jobs a second, at most "
            f"{_longest_queue(schedule):,} queued (at most {most} s: {_verdict(is_met)})",
            flush=True,
        )
        met &= is_met
    return met


def _quarter(aaic: sim.Workload) -> sim.Workload:
    edges = [
        int(np.datetime64(day, "s").astype(int)) - 9 * 3600 for day in ("2018-04-01", "2018-07-01")
    ]
    return aaic.take((aaic.submit >= edges[0]) & (aaic.submit < edges[1]))


def _planned(aaic: sim.Workload) -> bool:
    """A place for each who waits: an early end may move all of them, so that a long queue is dear."""
    met = True
    print("conservative backfilling, without a depth but on nodes (packed), where it is 100:")
    kth, crowd = _workload([DATA / "schedules" / "kth-100.swf.gz"]), _quarter(aaic)
    for name, workload, machine, policy, most in (
        ("KTH, 100 processors", kth, sim.Machine.flat(100), "conservative", 5),
        ("AAIC's first 124,000", _first(aaic, 124_000), FLAT, "conservative", 30),
        ("2018Q2's first 15,000", _first(crowd, 15_000), FLAT, "conservative", 20),
        ("2018Q2's first 30,000", _first(crowd, 30_000), FLAT, "conservative", 150),
        ("AAIC's first 20,000, packed", _first(aaic, 20_000), PACKED, "conservative-depth", 20),
    ):
        seconds, schedule = _seconds(workload, machine, policy, times=1)
        print(
            f"  {name:28} {seconds:8.2f} s, {len(workload) / seconds:10,.0f} jobs a second, at most "
            f"{_longest_queue(schedule):,} queued (at most {most} s: {_verdict(seconds <= most)})",
            flush=True,
        )
        met &= seconds <= most
    return met


def _limited() -> bool:
    """Two users who may run one job at a time submit faster than jobs end: nearly all are held at once."""
    each = []
    one = [sim.Limit("user", "running-jobs", 1)]
    print("two users, one job at a time each:")
    for num in (5_000, 20_000, 80_000):
        second = np.arange(num)
        jobs = _jobs(second, np.full(num, 10), np.full(num, 20), np.ones(num, int), second % 2)
        seconds, schedule = _seconds(jobs, FLAT, "easy", limits=one)
        each.append(seconds / num)
        print(
            f"  {num:12,} jobs {seconds:7.3f} s, {1 / each[-1]:12,.0f} a second, "
            f"at most {_longest_queue(schedule):,} queued"
        )
    return _is_steady(each[-1] / each[0], f"{5000:,}")


def _is_steady(ratio: float, base: str) -> bool:
    is_met = ratio <= GROWTH_LIMIT
    print(
        f"  a job of the most takes {ratio:.2f} times as long as one of {base} "
        f"(at most {GROWTH_LIMIT:g}: {_verdict(is_met)})"
    )
    return is_met


def _longest_queue(schedule: sim.Schedule) -> int:
    times = np.concatenate([schedule.workload.submit, schedule.start])
    steps = np.repeat([1, -1], len(schedule.start))
    return int(np.cumsum(steps[np.lexsort((steps, times))]).max(initial=0))


def _growth(policy: str, most: int) -> bool:
    """By time in the program itself; what the system needs to hand out fresh memory is told beside it."""
    print(f"synthetic jobs, {policy} on 304 processors:")
    each = []
    num = 10_000
    while num <= most:
        workload = synthetic(num)
        begin = resource.getrusage(resource.RUSAGE_SELF)
        sim.simulate(workload, FLAT, sim.POLICIES.get(policy))
        end = resource.getrusage(resource.RUSAGE_SELF)
        user, system = end.ru_utime - begin.ru_utime, end.ru_stime - begin.ru_stime
        each.append(user / num)
        print(
            f"  {num:12,} jobs {user:7.2f} s, {1 / each[-1]:12,.0f} a second; system {system:.2f} s"
        )
        num *= 10
    return _is_steady(each[-1] / each[1], f"{100_000:,}")


def synthetic(num: int, seed: int = 1) -> sim.Workload:
    """Jobs of AAIC's shapes that keep 304 processors nine tenths busy, as arrays."""
    random = np.random.default_rng(seed)
    pes = random.choice([1, 2, 4, 8, 16], num, p=[0.9, 0.04, 0.02, 0.03, 0.01])
    run = np.minimum(random.lognormal(7.0, 1.5, num), 72 * 3600).astype(np.int64)
    request = np.maximum(run, random.choice([3600, 6 * 3600, 24 * 3600, 72 * 3600], num))
    gap = (pes * run).sum() / num / (304 * 0.9)
    submit = np.cumsum(random.exponential(gap, num)).astype(np.int64)
    return _jobs(submit, run, request, pes, random.integers(0, 100, num))


def _jobs(submit: Any, run: Any, request: Any, pes: Any, user: Any) -> sim.Workload:
    """Jobs of which nothing else is known."""
    names = dict.fromkeys(("account", "queue", "qos", "gpu_model"), ())
    users = tuple(map(str, range(user.max() + 1)))
    nobody, ones = np.full(len(submit), -1, np.int64), np.ones(len(submit), np.int64)
    return sim.Workload(
        table=pa.table({"cluster": pa.nulls(len(submit))}),
        submit=submit,
        run=run,
        request=request,
        pes=pes,
        num_nodes=ones,
        user=user,
        account=nobody,
        queue=nobody,
        qos=nobody,
        model=nobody,
        names={"user": users, **names},
    )


def _memory(num: int = 1_000_000) -> bool:
    """In a process of its own, whose peak is this run's."""
    command = [sys.executable, "-m", "benchmarks.simulate", "--memory", str(num)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    met = True
    print(f"peak memory beyond the workload, {num:,} jobs:")
    for name, size in json.loads(output).items():
        print(
            f"  {name:22} {size:6.0f} bytes a job (at most {BYTES_LIMIT}: {_verdict(size <= BYTES_LIMIT)})"
        )
        met &= size <= BYTES_LIMIT
    return met


def _bytes_a_job(num: int) -> dict[str, float]:
    found = {}
    workload, small = synthetic(num), synthetic(1000)
    gate = sim.Limit("user", "queued-jobs", 1000)
    for name, machine, policy, limits in (
        ("flat, EASY", FLAT, "easy", ()),
        ("packed, EASY", PACKED, "easy", ()),
        ("flat, EASY++", FLAT, "easy++", ()),
        ("flat, EASY, limits", FLAT, "easy", (sim.Limit("user", "running-gpus", 16), gate)),
    ):
        options = sim.Options(limits=limits)
        sim.simulate(small, machine, sim.POLICIES.get(policy), options)
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what is used now
        before = _kilobytes("VmHWM")
        schedule: Any = sim.simulate(workload, machine, sim.POLICIES.get(policy), options)
        found[name] = (_kilobytes("VmHWM") - before) * 1024 / num
        del schedule
    return found


def _kilobytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    sys.exit(main())
