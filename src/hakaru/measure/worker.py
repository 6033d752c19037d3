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
from hakaru.measure.launch.local import MODULE, PARENT
from hakaru.measure.node.cgroups import quota_period_s
from hakaru.measure.node.machine import HERE
from hakaru.measure.protocol import Errors, On, Rule, Timed, noted, prepare, repeat, take_turns
from hakaru.measure.statistics import Ints
from hakaru.measure.task import Item, Task, find_place, journal_of
from hakaru.measure.verdict import Verdict
from hakaru.safety.processes import module_command, tidy_end

PR_SET_PDEATHSIG = 1
MOST_AT_ONCE = 16
QUOTA_PERIODS = 10
MORE = 4  # repetitions at a time, of devices that are decided and whose intervals are not narrow
# by torch's name of the device and the number type
AllUnusable = Mapping[tuple[str, str], Unusable]


def main(path: Path) -> None:
    """Do what the task says; its journal begins with this node and ends with a line that says so."""
    raise_file_limit()
    task, folder, here = Task.read(path), path.parent, find_place()
    load_all()
    if task.scope == "ranks":
        from hakaru.measure.collective._worker import measure_ranks

        with tidy_end():  # what a rank makes, such as data sets, goes with it
            measure_ranks(task, folder, here)
        return
    log = journal_of(folder, here.rank)
    task = _over_quotas(task)
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
        items = _usable(task, device, unusable, log)
        if items:
            _in_child(replace(task, items=items), device, path.parent, here.rank)
    own = [each for each in devices if each.kind != "numa"]
    if own:
        _measure_all(task, own, log, unusable)
    journal.append(log, {"kind": "end", "rank": here.rank})


def _over_quotas(task: Task) -> Task:
    """A block spans ten periods of a CPU quota: the device is at full speed for a part of the first."""
    period_s = HERE.known(quota_period_s) or 0.0
    block_s = max(task.rule.block_s, QUOTA_PERIODS * period_s)
    return replace(task, rule=replace(task.rule, block_s=block_s))


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
    variables = {"RANK": str(rank), PARENT: str(os.getpid())}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, env=os.environ | variables)
    log = journal_of(folder, rank)
    entries, _ = journal.read(journal_of(child, rank))
    for entry in entries:
        if entry["kind"] in ("result", "left-out"):
            journal.append(log, entry)
    if done.returncode != 0:
        reason = f"the process for {device.id} {ended(done.returncode)}"
        journal.append(log, {"kind": "died", "device": device.id, "reason": reason})


def _measure_numa(task: Task, path: Path) -> None:
    """The child of `_in_child`: pinned before anything is computed. Its parent has probed the types."""
    (device,) = find_devices(task.devices)
    log = journal_of(path.parent, find_place().rank)
    with placed(device):
        torch().set_num_threads(len(device.cores))
        _measure_all(task, [device], log, {})


def _measure_all(task: Task, devices: list[Device], log: Path, unusable: AllUnusable) -> None:
    """Every item on every device; many cores take turns in groups, so that their arrays fit the memory."""
    groups, warm = list(batched(devices, MOST_AT_ONCE)), set[str]()
    shared = replace(task, rule=replace(task.rule, budget_s=task.rule.budget_s / len(groups)))
    usable = {device.id: _usable(task, device, unusable, log) for device in devices}
    for item in task.items:
        held: dict[str, Timed] = {}  # the first group's cases, with the data that all groups share
        for group in groups:
            if todo := [each for each in group if item in usable[each.id]]:
                cases = measure_item(shared, item, todo, log, warm)
                held = held or cases


def _usable(task: Task, device: Device, unusable: AllUnusable, log: Path) -> tuple[Item, ...]:
    """The items for this device whose number type it has; the journal says why not the others."""
    here, items = place.host_name(), []
    for item in task.items:
        if not item.wants(here, device.id):
            continue
        why = unusable.get((device.torch_name, str(item.parameters.get("dtype"))))
        if why is None:
            items.append(item)
        else:
            (_fail if why.is_broken else _leave_out)(log, item, device, why.reason)
    return tuple(items)


def batched(devices: list[Device], most: int) -> Iterator[list[Device]]:
    for at in range(0, len(devices), most):
        yield devices[at : at + most]


def measure_item(
    task: Task, item: Item, devices: list[Device], log: Path, warm: set[str]
) -> dict[str, Timed]:
    """One item on some devices, a repetition of each in turn; one that fails does not stop the others."""
    by_id = {device.id: device for device in devices}
    failed: Errors = {}
    cases = _prepared(task, item, devices, log, failed)
    started = datetime.now(UTC)
    spans: dict[str, validity.Reading] = {}
    before = validity.read_now()

    @contextmanager
    def on(name: str) -> Iterator[None]:
        cores = by_id[name].cores
        with placed(by_id[name]):
            begin = validity.read_now(cores)
            _load_other_cards(name, cases, failed)
            yield
            span = validity.read_now(cores).since(begin)
        spans[name] = spans[name].plus(span) if name in spans else span

    _soak(cases, by_id, task.rule, failed, warm)
    for peers in _by_model(cases, by_id):
        try:
            _repeat(peers, item, task, on, failed)
        except Exception as error:
            for name in peers:
                failed.setdefault(name, error)
    machine = validity.read_now().since(before)
    for name in [name for name in cases if name not in failed]:
        with noted(name, failed):
            entry = _result(item, by_id[name], started)
            outcome = _outcome(item, by_id[name], cases[name], machine, spans[name])
            journal.append(log, entry | outcome)
    for name, why in failed.items():
        _fail(log, item, by_id[name], describe(why))
    return cases


def _prepared(
    task: Task, item: Item, devices: list[Device], log: Path, failed: Errors
) -> dict[str, Timed]:
    """The item's case on each device that can do it."""
    benchmark, cases = BENCHMARKS.get(item.benchmark), {}
    for device in devices:
        with noted(device.id, failed), placed(device):
            try:
                case = benchmark.prepare(Context(device, Alone()), **item.parameters)
                assert isinstance(case, Case)
                cases[device.id] = prepare(case, task.rule, Alone())
            except NotApplicable as reason:
                _leave_out(log, item, device, str(reason))
    return cases


def _by_model(cases: Mapping[str, Timed], devices: Mapping[str, Device]) -> list[dict[str, Timed]]:
    """The cases in groups of devices that should be equally fast."""
    groups: dict[str, dict[str, Timed]] = {}
    for name, timed in cases.items():
        groups.setdefault(devices[name].model, {})[name] = timed
    return list(groups.values())


def _repeat(peers: dict[str, Timed], item: Item, task: Task, on: On, failed: Errors) -> None:
    """As often as the controller says; else until each is decided or, without peers, known well."""
    names, began = list(peers), time.perf_counter()

    def is_over() -> bool:
        return time.perf_counter() - began >= task.rule.budget_s

    def measure(more: Ints) -> list[list[float]]:
        counts = dict(zip(names, map(int, more), strict=True))
        is_first = not any(each.seconds for each in peers.values())  # always completed
        over = (lambda: False) if is_first else is_over
        take_turns(peers, counts, on=on, is_over=over, failed=failed)
        working = [name for name in names if name not in failed]
        if not working:
            raise failed[names[0]]
        # one that failed is nobody's peer
        return [[1 / s for s in peers[name].seconds] if name in working else [] for name in names]

    if item.repetitions:
        take_turns(peers, dict.fromkeys(names, item.repetitions), on=on, failed=failed)
    elif len(names) > 1:
        inspect(len(names), measure, task.limits, task.rule.most, is_over)
        while _is_wide(peers, task, failed) and not is_over():
            take_turns(peers, dict.fromkeys(names, MORE), on=on, is_over=is_over, failed=failed)
    else:
        repeat(peers, task.rule, on=on, failed=failed)


def _is_wide(peers: Mapping[str, Timed], task: Task, failed: Errors) -> bool:
    """Whether an interval is wider than what must be found, or missing.

    A few repetitions may resemble one another by chance, which more of them show.
    """
    working = [timed for name, timed in peers.items() if name not in failed]
    few = min((len(timed.seconds) for timed in working), default=task.rule.most) < task.rule.most
    return few and not all(timed.is_narrow(task.limits.must_find) for timed in working)


def _soak(
    cases: Mapping[str, Timed],
    devices: Mapping[str, Device],
    rule: Rule,
    failed: Errors,
    warm: set[str],
) -> None:
    """Load all cards at once until they are warm: heat and power show only then. Later items keep them so."""
    cards = {name: timed for name, timed in cases.items() if devices[name].kind == "gpu"}
    if cards.keys() <= warm:
        return
    warm.update(cards)
    until = time.perf_counter() + rule.soak_s
    while time.perf_counter() < until and (working := cards.keys() - failed.keys()):
        _queue(cards, 1, failed)
        for name in sorted(working):
            with noted(name, failed):
                cards[name].case.sync()


def _load_other_cards(name: str, cases: Mapping[str, Timed], failed: Errors) -> None:
    """Keep the other cards at work while one is timed, as a synchronous job does; its own queue is empty.

    They get two blocks, so that they still work when the timed one ends.
    """
    if not cases[name].case.together:
        return
    _queue({other: timed for other, timed in cases.items() if other != name}, 2, failed)
    cases[name].case.sync()


def _queue(cases: Mapping[str, Timed], num_blocks: int, failed: Errors) -> None:
    """Ask for blocks of each case, and do not wait for them."""
    for name in [name for name in cases if name not in failed]:
        with noted(name, failed):
            for _ in range(num_blocks * cases[name].num_steps):
                cases[name].case.step()


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
            "taken": validity.taken(span, len(device.cores)) if device.kind != "gpu" else None,
            "quota": validity.stopped(span, len(device.cores) if device.kind == "numa" else 1),
            "throttled": validity.heated(span) or slowed(state),
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
    parent = os.environ.get(PARENT)
    if parent and os.getppid() != int(parent):  # it died before this process could ask
        sys.exit("the process that started this worker is gone")


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
