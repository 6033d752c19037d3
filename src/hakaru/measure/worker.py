"""What runs on a node: `python -m hakaru.measure.worker TASK` measures its devices, or is one of the ranks.

Everything that it finds goes to a journal beside the task, a line each, as soon as it is known.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hakaru.measure import journal, place, validity
from hakaru.measure._base import BENCHMARKS, Case, NotApplicable, WrongResult, load_all
from hakaru.measure.condition import contamination, slowed, state_under_load
from hakaru.measure.context import Alone, Context, torch
from hakaru.measure.device._probe import Unusable, probe_types
from hakaru.measure.devices import Device, find_devices, missing_gpus, placed, torch_names
from hakaru.measure.fleet import inspect
from hakaru.measure.launch._base import ended
from hakaru.measure.protocol import On, Rule, Timed, prepare, repeat, take_turns
from hakaru.measure.statistics import Ints
from hakaru.measure.task import Item, Task, find_place, journal_of
from hakaru.measure.verdict import Verdict
from hakaru.safety.processes import module_command

MODULE = "hakaru.measure.worker"
PR_SET_PDEATHSIG = 1
MOST_AT_ONCE = 16


def main(path: Path) -> None:
    """Do what the task says; its journal begins with this node and ends with a line that says so."""
    raise_file_limit()
    task, folder, here = Task.read(path), path.parent, find_place()
    load_all()
    if task.scope == "ranks":
        from hakaru.measure.collective._worker import measure_ranks

        measure_ranks(task, folder, here)
        return
    log = journal_of(folder, here.rank)
    named = _named_devices(task)
    wanted = _own_names(named)
    if named and not wanted:  # all of them are other nodes'
        write_begin(log, here.rank, [])
        journal.append(log, {"kind": "end", "rank": here.rank})
        return
    unusable = probe_types(torch_names(wanted), task.items)
    torch().set_num_threads(1)
    devices = find_devices(wanted)
    write_begin(log, here.rank, devices)
    if problem := missing_gpus(devices, wanted):
        journal.append(log, {"kind": "died", "device": "any", "reason": problem})
    for device in [each for each in devices if each.kind == "numa"]:
        _in_child(task, device, path.parent, here.rank)
    own = [each for each in devices if each.kind != "numa"]
    if own:
        _measure_all(task, own, log, unusable)
    journal.append(log, {"kind": "end", "rank": here.rank})


def _own_names(wanted: Sequence[str]) -> tuple[str, ...]:
    """The names that are for this node, as `n1/cuda:3` is for one."""
    here = place.host_name()
    split = [name.rpartition("/") for name in wanted]
    return tuple(name for host, _, name in split if host in ("", here))


def write_begin(log: Path, rank: int, devices: list[Device]) -> None:
    listed = [asdict(each) for each in devices]
    entry = {"kind": "begin", "rank": rank, "place": place.gather(), "devices": listed}
    journal.append(log, entry)


def _in_child(task: Task, device: Device, folder: Path, rank: int) -> None:
    """A NUMA node in a process of its own, whose threads are all born on its cores."""
    child = folder / f"rank-{rank}-{device.id.replace(':', '')}"
    alone = replace(task, devices=(device.id,), scope="numa")
    path = alone.write(child)
    command = module_command(MODULE, str(path))
    done = subprocess.run(command, stdin=subprocess.DEVNULL, env=os.environ | {"RANK": str(rank)})
    log = journal_of(folder, rank)
    entries, _ = journal.read(journal_of(child, rank))
    for entry in entries:
        if entry["kind"] in ("result", "left-out"):
            journal.append(log, entry)
    if done.returncode != 0:
        reason = f"the process for {device.id} {ended(done.returncode)}"
        journal.append(log, {"kind": "died", "device": device.id, "reason": reason})


def _measure_numa(task: Task, path: Path) -> None:
    """The child of `_in_child`: pinned before anything is computed."""
    (device,) = find_devices(task.devices)
    log = journal_of(path.parent, find_place().rank)
    with placed(device):
        unusable = probe_types(["cpu"], task.items)
        torch().set_num_threads(len(device.cores))
        _measure_all(task, [device], log, unusable)


def _measure_all(
    task: Task, devices: list[Device], log: Path, unusable: Mapping[tuple[str, str], Unusable]
) -> None:
    """Every item on every device; many cores take turns in groups, so that their arrays fit the memory."""
    groups = list(batched(devices, MOST_AT_ONCE))
    shared = replace(task, rule=replace(task.rule, budget_s=task.rule.budget_s / len(groups)))
    here = place.host_name()
    for item in task.items:
        for group in groups:
            todo = []
            for device in [each for each in group if item.wants(here, each.id)]:
                why = unusable.get((device.torch_name, str(item.parameters.get("dtype"))))
                if why is None:
                    todo.append(device)
                elif why.is_broken:
                    _fail(log, item, device, why.reason)
                else:
                    _leave_out(log, item, device, why.reason)
            if todo:
                measure_item(shared, item, todo, log)


def batched(devices: list[Device], most: int) -> Iterator[list[Device]]:
    for at in range(0, len(devices), most):
        yield devices[at : at + most]


def measure_item(task: Task, item: Item, devices: list[Device], log: Path) -> None:
    """One item on some devices, a repetition of each in turn."""
    benchmark = BENCHMARKS.get(item.benchmark)
    cases: dict[str, Timed] = {}
    by_id = {device.id: device for device in devices}
    failed: dict[str, str] = {}
    for device in devices:
        try:
            with placed(device):
                case = benchmark.prepare(Context(device, Alone()), **item.parameters)
                assert isinstance(case, Case)
                cases[device.id] = prepare(case, task.rule, Alone())
        except NotApplicable as reason:
            _leave_out(log, item, device, str(reason))
        except Exception as error:
            failed[device.id] = describe(error)
    started = datetime.now(UTC)
    spans: dict[str, validity.Reading] = {}
    before = validity.read_now()

    @contextmanager
    def on(name: str) -> Iterator[None]:
        cores = by_id[name].cores
        with placed(by_id[name]):
            _busy_others(name, cases)
            begin = validity.read_now(cores)
            yield
            span = validity.read_now(cores).since(begin)
        spans[name] = spans[name].plus(span) if name in spans else span

    try:
        _soak(cases, by_id, task.rule)
        for peers in _by_model(cases, by_id):
            _repeat(peers, item, task, on)
    except Exception as error:
        failed |= {name: describe(error) for name in cases}
    machine = validity.read_now().since(before)
    for name in [*cases, *(name for name in failed if name not in cases)]:
        entry = _result(item, by_id[name], started)
        if name in failed:
            _fail(log, item, by_id[name], failed[name])
            continue
        outcome = _outcome(item, by_id[name], cases[name], machine, spans[name])
        journal.append(log, entry | outcome)


def _by_model(cases: Mapping[str, Timed], devices: Mapping[str, Device]) -> list[dict[str, Timed]]:
    """The cases in groups of devices that should be equally fast."""
    groups: dict[str, dict[str, Timed]] = {}
    for name, timed in cases.items():
        groups.setdefault(devices[name].model, {})[name] = timed
    return list(groups.values())


def _repeat(peers: dict[str, Timed], item: Item, task: Task, on: On) -> None:
    """As often as the controller says; else until each is decided or, without peers, known well."""
    names, began = list(peers), time.perf_counter()

    def is_over() -> bool:
        return time.perf_counter() - began >= task.rule.budget_s

    def measure(more: Ints) -> list[list[float]]:
        counts = dict(zip(names, map(int, more), strict=True))
        is_first = not peers[names[0]].seconds  # which nobody can do without
        take_turns(peers, counts, on=on, is_over=(lambda: False) if is_first else is_over)
        return [[1 / seconds for seconds in peers[name].seconds] for name in names]

    if item.repetitions:
        take_turns(peers, dict.fromkeys(names, item.repetitions), on=on)
    elif len(names) > 1:
        inspect(len(names), measure, task.limits, task.rule.most, is_over)
    else:
        repeat(peers, task.rule, on=on)


def _soak(cases: Mapping[str, Timed], devices: Mapping[str, Device], rule: Rule) -> None:
    """Load all cards at once until they are warm: heat and power show only then."""
    cards = [timed for name, timed in cases.items() if devices[name].kind == "gpu"]
    until = time.perf_counter() + rule.soak_s
    while cards and time.perf_counter() < until:
        for timed in cards:
            for _ in range(timed.num_steps):
                timed.case.step()
        for timed in cards:
            timed.case.sync()


def _busy_others(name: str, cases: Mapping[str, Timed]) -> None:
    """Keep the other cards at work while one is timed, as a synchronous job does; its own queue is empty."""
    if not cases[name].case.together:
        return
    for other, timed in cases.items():
        if other != name:
            for _ in range(timed.num_steps):
                timed.case.step()
    cases[name].case.sync()


def _named_devices(task: Task) -> tuple[str, ...]:
    """The task's devices or, where each item names its own, all of those."""
    named = tuple(dict.fromkeys(name for item in task.items for name in item.devices))
    return named if named and all(item.devices for item in task.items) else task.devices


def _result(item: Item, device: Device, started: datetime) -> dict[str, Any]:
    return {
        "kind": "result",
        "item": item.id,
        "benchmark": item.benchmark,
        "parameters": item.parameters,
        "host": place.host_name(),
        "device": device.id,
        "device_uuid": device.uuid,
        "model": device.model,
        "started_at": started.isoformat(),
        "ended_at": datetime.now(UTC).isoformat(),
    }


def _outcome(
    item: Item, device: Device, timed: Timed, machine: validity.Reading, span: validity.Reading
) -> dict[str, Any]:
    facts = dict(timed.case.read()) if timed.case.read else {}
    problem = None
    if reasons := contamination(device, machine, span, item.benchmark):
        problem = {"verdict": Verdict.CONTAMINATED, "reason": "; ".join(reasons)}
    try:
        with placed(device):
            timed.case.check()
    except Exception as error:
        problem = {"verdict": Verdict.FAILED, "reason": describe(error)}
    state = state_under_load(device, timed)
    return {
        "samples": timed.samples(),
        "problem": problem,
        "validity": {
            "machine": machine.to_json(),
            "device": span.to_json(),
            "clocks": state,
            "throttled": validity.throttled(span) or slowed(state),
        },
        "facts": facts,
    }


def describe(error: BaseException) -> str:
    if isinstance(error, WrongResult):
        return f"wrong result: {error}"
    first = str(error).strip().splitlines()[:1]
    return f"{type(error).__name__}: {first[0] if first else 'no message'}"[:500]


def _fail(log: Path, item: Item, device: Device, reason: str) -> None:
    problem = {"verdict": Verdict.FAILED, "reason": reason}
    entry = _result(item, device, datetime.now(UTC))
    journal.append(log, entry | {"samples": {}, "problem": problem, "validity": {}})


def _leave_out(log: Path, item: Item, device: Device, reason: str) -> None:
    entry = {"kind": "left-out", "item": item.id, "benchmark": item.benchmark}
    journal.append(log, entry | {"device": device.id, "reason": reason})


def end_with_parent() -> None:
    """Ask the kernel to kill this process when whoever started it dies, so that none is left behind."""
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def raise_file_limit() -> None:
    """As many open files as the hard limit allows: a large group needs one for each other rank."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    end_with_parent()
    given = Path(sys.argv[1])
    asked = Task.read(given)
    if asked.scope == "numa":
        load_all()
        _measure_numa(asked, given)
    else:
        main(given)
