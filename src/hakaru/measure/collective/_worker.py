"""One rank of a collective measurement: all ranks do every item together, and rank 0 writes the result."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hakaru.measure import gpu, journal, place, validity
from hakaru.measure._base import BENCHMARKS, Case, Links, NotApplicable, Part, Procedure
from hakaru.measure.collective._ranks import TorchRanks
from hakaru.measure.condition import clocks_now, others_on, slowed, state_under_load
from hakaru.measure.context import Context, torch
from hakaru.measure.devices import find_devices, missing_gpus
from hakaru.measure.protocol import Rule, prepare, repeat
from hakaru.measure.task import Item, Place, Task, journal_of
from hakaru.measure.verdict import Verdict


@dataclass(frozen=True)
class Found:
    """What an item gave: of the whole group under the empty name or of its links, or parts of other kinds."""

    links: Links = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    clocks: dict[str, Any] = field(default_factory=dict)
    fills_memory: bool = False


def measure_ranks(task: Task, folder: Path, here: Place) -> None:
    """Do the items in order, all ranks together."""
    from hakaru.measure.worker import write_begin

    torch().set_num_threads(1)
    log = journal_of(folder, here.rank)
    ranks = TorchRanks.connect(folder, here, task.devices)
    write_begin(log, here.rank, [ranks.device])
    names = ranks.share(place.host_name())
    if problem := _missing_gpus(task.devices, ranks, names):
        journal.append(log, {"kind": "died", "device": "any", "reason": problem})
    processes = ranks.share((validity.machine_id(), os.getpid()))
    own = {pid for machine, pid in processes if machine == validity.machine_id()} - {os.getpid()}
    for item in task.items:
        entry = _measure(item, task.rule, ranks, names, own, log)
        if ranks.rank == 0:
            journal.append(log, entry)
    journal.append(log, {"kind": "end", "rank": here.rank})
    ranks.close()


def _missing_gpus(wanted: Sequence[str], ranks: TorchRanks, hosts: list[str]) -> str | None:
    """Cards of this host that none of its ranks sees; Slurm may bind each rank to a card of its own."""
    every = find_devices([name.rpartition("/")[2] for name in wanted])
    seen = ranks.share([each for each in every if each.kind == "gpu"])
    here = [cards for host, cards in zip(hosts, seen, strict=True) if host == hosts[ranks.rank]]
    distinct = {each.uuid or each.bus_id or each.id: each for cards in here for each in cards}
    return missing_gpus(list(distinct.values()), wanted)


def _measure(
    item: Item,
    rule: Rule,
    ranks: TorchRanks,
    hosts: list[str],
    friends: Collection[int],
    log: Path | None = None,
) -> dict[str, Any]:
    from hakaru.measure.worker import describe

    started, before, before_s = datetime.now(UTC), validity.read_now(), validity.family_s()
    found = Found()
    problem, left_out = None, None
    try:
        found = _measured(item, rule, ranks)
    except NotApplicable as reason:
        left_out = str(reason)
    except Exception as error:
        problem = describe(error)
        if log is not None:  # the others may wait for this rank until they break off
            text = f"rank {ranks.rank}: {problem}"
            journal.append(log, {"kind": "error", "item": item.id, "reason": text})
    span = validity.read_now().since(before)
    span = replace(span, own_s=validity.family_s() - before_s)  # loaders are processes of their own
    if found.fills_memory:
        span = replace(span, pressure_memory_s=None)
    is_on_card = problem is None and left_out is None and ranks.device.kind == "gpu"
    others = others_on(ranks.device, friends) if is_on_card else None
    reports = ranks.share(
        {"problem": problem, "left_out": left_out, "machine": validity.machine_id(), "span": span,
         "cores": os.cpu_count() or 1, "where": f"{hosts[ranks.rank]}/{ranks.device.id}",
         "others": others, "clocks": found.clocks}
    )  # fmt: skip
    names = list(dict.fromkeys(hosts))
    entry = {
        "kind": "result",
        "item": item.id,
        "benchmark": item.benchmark,
        "parameters": item.parameters | {"ranks": ranks.size},
        "host": ",".join(names),
        "device": f"{ranks.size} ranks",
        "device_uuid": None,
        "model": ranks.device.model,
        "hosts": hosts,
        "started_at": started.isoformat(),
        "ended_at": datetime.now(UTC).isoformat(),
    }
    if all(each["left_out"] for each in reports):
        return entry | {"kind": "left-out", "reason": reports[0]["left_out"]}
    return entry | {
        "subjects": {name: dict(each) for name, each in found.links.items()},
        "parts": [asdict(each) for each in found.parts],
        "samples": dict(found.links.get("", {})),
        "problem": _problem(reports),
        "validity": {"machine": span.to_json(), "clocks": found.clocks, "slowed": _slowed(reports)},
        "facts": {},
    }


def _measured(item: Item, rule: Rule, ranks: TorchRanks) -> Found:
    benchmark = BENCHMARKS.get(item.benchmark)
    made = benchmark.prepare(Context(ranks.device, ranks), **item.parameters)
    if isinstance(made, Procedure):
        given = made.run(rule.budget_s)
        made.check()
        clocks = clocks_now(ranks.device)
        if isinstance(given, Mapping):
            return Found(given, clocks=clocks)
        return Found({}, tuple(given), clocks, made.fills_memory)
    assert isinstance(made, Case)
    timed = prepare(made, rule, ranks)
    repeat({item.id: timed}, rule, ranks)
    clocks = state_under_load(ranks.device, timed, ranks)
    made.check()
    return Found({"": timed.samples()}, clocks=clocks)


def _problem(reports: list[dict[str, Any]]) -> dict[str, str] | None:
    """What any rank says is wrong, else what made the numbers of a machine or a card somebody else's."""
    failed = [f"rank {at}: {each['problem']}" for at, each in enumerate(reports) if each["problem"]]
    if failed:
        return {"verdict": Verdict.FAILED, "reason": "; ".join(failed[:3])}
    reasons = []
    for machine in dict.fromkeys(each["machine"] for each in reports):
        here = [each for each in reports if each["machine"] == machine]
        own_s = sum(each["span"].own_s for each in here)
        reasons += validity.problems(here[0]["span"], here[0]["cores"], own_s)
        reasons += [quota for each in here if (quota := validity.stopped(each["span"], len(here)))]
    reasons += [f"{each['where']}: {each['others']}" for each in reports if each["others"]]
    if reasons:
        return {"verdict": Verdict.CONTAMINATED, "reason": "; ".join(dict.fromkeys(reasons))}
    if faults := _slowed(reports, faults_only=True):
        return {"verdict": Verdict.SLOW, "reason": "; ".join(faults)}
    return None


def _slowed(reports: list[dict[str, Any]], faults_only: bool = False) -> list[str]:
    """The cards that the driver slows down, each with its reasons; or those with a fault."""
    return [
        f"{each['where']}: {what}"
        for each in reports
        if (what := slowed(each["clocks"])) and (gpu.is_faulty(each["clocks"]) or not faults_only)
    ]
