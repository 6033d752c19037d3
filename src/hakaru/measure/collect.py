"""From the ranks' journals to measurements.

What is missing, half-written or different between nodes has failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hakaru.measure import journal, place
from hakaru.measure._base import AUTO, BENCHMARKS, Benchmark, Quantity
from hakaru.measure.collective.pairs import ARROW, NUMBER
from hakaru.measure.judge import ALONE, checked
from hakaru.measure.protocol import correlation_of
from hakaru.measure.record import ITEM, Measurement
from hakaru.measure.task import Item, Task, journal_of
from hakaru.measure.verdict import Verdict

UNKNOWN_HOST = "unknown"
NEEDED: dict[str, dict[str, type]] = {
    "begin": {"place": dict, "devices": list},
    "result": dict.fromkeys(("item", "benchmark", "host", "device", "model", "started_at", "ended_at"), str)
    | dict.fromkeys(("parameters", "samples", "validity"), dict),
    "left-out": dict.fromkeys(("item", "benchmark", "device", "reason"), str),
    "died": {"device": str, "reason": str},
}  # fmt: skip


@dataclass
class Gathered:
    """All that the ranks of one launch left behind, and what went wrong, by rank; None is all of them."""

    results: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[dict[str, Any]] = field(default_factory=list)
    begun: dict[int, dict[str, Any]] = field(default_factory=dict)
    problems: dict[int | None, list[str]] = field(default_factory=dict)
    num_ranks: int = 0
    is_broken: bool = False  # a process died, a device is missing, or versions differ

    def add_problem(self, rank: int | None, text: str) -> None:
        self.problems.setdefault(rank, []).append(text)

    def problem_of(self, rank: int | None) -> str | None:
        """Why this rank's results do not count; for a group of ranks (None), anybody's problem."""
        keys = list(self.problems) if rank is None else [rank, None]
        texts = [text for key in keys for text in self.problems.get(key, [])]
        return "; ".join(dict.fromkeys(texts)) or None

    @property
    def done(self) -> set[str]:
        """Items that need not be measured again: all ranks were there and have them, right or wrong.

        What was contaminated is measured again; what has failed stays failed.
        """
        if len(self.begun) < self.num_ranks or self.is_broken:
            return set()
        seen: dict[str, set[tuple[int, str]]] = {}
        for each in (*self.results, *self.left_out):
            whole = set(self._devices) if "hosts" in each else {(each["rank"], each["device"])}
            seen.setdefault(each["item"], set()).update(whole)
        bad = {each["item"] for each in self.results if _is_contaminated(each)}
        return {item for item, places in seen.items() if places >= set(self._devices)} - bad

    @property
    def _devices(self) -> list[tuple[int, str]]:
        return [
            (rank, device["id"]) for rank, each in self.begun.items() for device in each["devices"]
        ]


def gather(folder: Path, num_ranks: int, problems: Sequence[str] = ()) -> Gathered:
    """Read the journals of a launch; a rank whose journal does not end has died, whatever `problems` say."""
    found = Gathered(num_ranks=num_ranks)
    for rank in range(num_ranks):
        entries, num_broken = journal.read(journal_of(folder, rank))
        kinds = [entry["kind"] for entry in entries]
        if num_broken:
            found.add_problem(rank, f"rank {rank} left a half-written record")
        if entries and "begin" not in kinds:  # so that nobody knows its versions
            found.is_broken = True
            found.add_problem(rank, f"rank {rank} did not say what it runs on")
        if "end" not in kinds:
            text = f"rank {rank} {'ended before it was done' if entries else 'left no result'}"
            found.add_problem(rank, "; ".join([*_errors(entries)[-1:], *problems[:3]]) or text)
        for entry in entries:
            if _is_whole(entry):
                _take(found, rank, entry)
            else:
                found.add_problem(rank, f"rank {rank} left a damaged record")
    if problems and not found.problems:
        found.add_problem(None, "; ".join(problems[:3]))
    places = {rank: each["place"] for rank, each in found.begun.items()}
    for ranks, text in place.differences(places):
        found.is_broken = True
        for rank in ranks:
            found.add_problem(rank, text)
    return found


def _errors(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """What went wrong on a rank by its own word, before it waited for the others in vain."""
    return [str(each.get("reason")) for each in entries if each["kind"] == "error"]


def measurements(task: Task, found: Gathered) -> list[Measurement]:
    """A measurement for each result, and one that has failed for each that should be there and is not."""
    listed = []
    for entry in found.results:
        problem = found.problem_of(entry["rank"] if task.scope == "device" else None)
        for each in _of_result(entry, found):
            failed = problem is not None and each.verdict is not Verdict.FAILED
            listed.append(each.judged(Verdict.FAILED, str(problem)) if failed else each)
    return [*listed, *_missing(task, found)]


def _is_contaminated(entry: Mapping[str, Any]) -> bool:
    problem = entry["problem"]
    return bool(problem) and problem["verdict"] == Verdict.CONTAMINATED


def has_failed(entry: Mapping[str, Any]) -> bool:
    """Whether a result is known to be wrong, or a process died of it."""
    problem = entry["problem"]
    return bool(problem) and problem["verdict"] == Verdict.FAILED


def _is_whole(entry: Mapping[str, Any]) -> bool:
    """Whether a line of a journal has what is read of it, of the right types."""
    needed = NEEDED.get(str(entry["kind"]), {})
    if not all(isinstance(entry.get(name), kind) for name, kind in needed.items()):
        return False
    try:
        for name in ("started_at", "ended_at"):
            datetime.fromisoformat(entry.get(name, "2026-01-01"))
        Verdict((entry.get("problem") or {"verdict": Verdict.GOOD})["verdict"])
    except (KeyError, TypeError, ValueError):
        return False
    devices = entry.get("devices") or ()
    return all(isinstance(each, dict) and {"id", "model"} <= each.keys() for each in devices)


def _take(found: Gathered, rank: int, entry: dict[str, Any]) -> None:
    if entry["kind"] == "begin":
        found.begun[rank] = entry
    elif entry["kind"] == "result":
        found.results.append(entry | {"rank": rank})
    elif entry["kind"] == "left-out":
        found.left_out.append(entry | {"rank": rank})
    elif entry["kind"] == "died":
        found.is_broken = True
        found.add_problem(rank, entry["reason"])


def _of_result(entry: Mapping[str, Any], found: Gathered) -> Iterator[Measurement]:
    benchmark = BENCHMARKS.get(entry["benchmark"])
    begun = found.begun.get(entry["rank"], {})
    problem = entry["problem"]
    verdict = Verdict(problem["verdict"]) if problem else Verdict.GOOD
    whole = Measurement(
        benchmark=benchmark.id,
        quantity="",
        unit="",
        better="higher",
        host=entry["host"],
        device=entry["device"],
        started_at=datetime.fromisoformat(entry["started_at"]),
        ended_at=datetime.fromisoformat(entry["ended_at"]),
        parameters=entry["parameters"],
        verdict=verdict,
        reason=str(problem["reason"]) if problem else ALONE,
        device_uuid=entry["device_uuid"],
        validity={**entry["validity"], **entry.get("facts", {})},
        place=_place(begun.get("place", {}), entry, ""),
    )
    if parts := entry.get("parts"):
        for part in parts:
            yield from _of_part(part, whole, benchmark)
        return
    for subject, samples in _subjects(entry).items():
        each = whole
        if subject:
            place = _place(begun.get("place", {}), entry, subject)
            each = replace(each, device=link_name(subject, entry["hosts"]), place=place)
        yield from _quantities(each, benchmark, samples)


def _quantities(
    whole: Measurement, benchmark: Benchmark, samples: Mapping[str, Sequence[float]]
) -> Iterator[Measurement]:
    for quantity in benchmark.quantities:
        values = tuple(samples.get(quantity.name, ()))
        each = replace(
            whole, quantity=quantity.name, unit=quantity.unit, better=quantity.better,
            samples=values, correlation=correlation_of(values),
        )  # fmt: skip
        yield checked(each)


def _of_part(
    part: Mapping[str, Any], whole: Measurement, benchmark: Benchmark
) -> Iterator[Measurement]:
    """The quantities that it has; its own verdict counts where nothing worse is wrong with the whole."""
    own_names = {each.name for each in benchmark.parameters}
    asked = {name: value for name, value in whole.parameters.items() if name in own_names}
    chosen = {name: value for name, value in whole.parameters.items() if value not in (0, AUTO)}
    parameters = {**chosen, **part["parameters"]}
    num = parameters["ranks"]
    device = part["device"] or (f"{num} ranks" if num != 1 else "1 rank")
    each = replace(
        whole,
        parameters=parameters,
        device=device,
        validity={**whole.validity, **part["facts"], ITEM: asked},
        place={**whole.place, "model": device if part["device"] else whole.place["model"]},
    )
    own = Verdict(part["verdict"]) if part["verdict"] else Verdict.GOOD
    # what has no number or a wrong one is not contaminated
    counts = own in (Verdict.FAILED, Verdict.NOT_MEASURED) and whole.verdict is not Verdict.FAILED
    if own is not Verdict.GOOD and (counts or whole.verdict is Verdict.GOOD):
        each = each.judged(own, part["reason"])
    elif part["reason"] and whole.verdict is Verdict.GOOD:
        each = replace(each, reason=part["reason"])
    samples = part["samples"]
    known = tuple(quantity for quantity in benchmark.quantities if quantity.name in samples)
    yield from _quantities(each, replace(benchmark, quantities=known), samples)


def _subjects(entry: Mapping[str, Any]) -> dict[str, Mapping[str, Sequence[float]]]:
    """The whole device or group under the empty name, or its parts, such as links, by name."""
    parts: dict[str, Mapping[str, Sequence[float]]] = entry.get("subjects") or {}
    if not parts or "" in parts:
        return {"": entry["samples"]}
    return parts


def link_name(name: str, hosts: Sequence[str]) -> str:
    """`0>8` as `n1#0>n2#8`: the hosts' names, and the ranks, by which the ring is known."""
    return ARROW.join(f"{hosts[rank]}{NUMBER}{rank}" for rank in _ends(name))


def _link_model(name: str, hosts: Sequence[str]) -> str:
    """Where a link is: NVLink, the way between sockets and the network differ by design.

    Links inside a host are known by the places of their ends among its ranks.
    """
    source, target = _ends(name)
    if hosts[source] != hosts[target]:
        return "link between hosts"
    first, second = (hosts[:rank].count(hosts[rank]) for rank in (source, target))
    return f"link inside a host {first}-{second}"


def _ends(name: str) -> tuple[int, int]:
    source, _, target = name.partition(ARROW)
    return int(source), int(target)


def _place(gathered: Mapping[str, Any], entry: Mapping[str, Any], subject: str) -> dict[str, Any]:
    model = f"{entry['model']} ranks" if "hosts" in entry else entry["model"]
    return dict(gathered) | {"model": _link_model(subject, entry["hosts"]) if subject else model}


def _missing(task: Task, found: Gathered) -> Iterator[Measurement]:
    """What was asked for and is neither there nor said to be left out."""
    there = {(e["item"], e["rank"], e.get("device")) for e in (*found.results, *found.left_out)}
    for item in task.items:
        benchmark = BENCHMARKS.get(item.benchmark)
        for rank, host, device, model in _expected(task, item, found):
            wanted = (item.id, rank, device) if task.scope == "device" else None
            if wanted in there or (wanted is None and any(e[0] == item.id for e in there)):
                continue
            problem = found.problem_of(rank if task.scope == "device" else None)
            reason = problem or "there is no result, and nothing says why"
            yield _failed(benchmark, item, host, device, reason, model)


def _expected(task: Task, item: Item, found: Gathered) -> Iterator[tuple[int, str, str, str]]:
    """Who should have a result of the item, and its model: each device of each node, or the ranks."""
    if task.scope != "device":
        names = [str(each["place"]["host"]) for each in found.begun.values()]
        yield 0, ",".join(dict.fromkeys(names)) or UNKNOWN_HOST, "ranks", ""
        return
    for rank in found.problems:
        if rank is not None and rank not in found.begun:  # it never said who it is
            yield rank, f"rank {rank}", UNKNOWN_HOST, ""
    for rank, begun in found.begun.items():
        host = str(begun["place"]["host"])
        for device in begun["devices"]:
            if item.wants(host, str(device["id"])):
                yield rank, host, str(device["id"]), str(device["model"])


def unmeasured(item: Item, reason: str) -> Measurement:
    """An item that could not even be begun."""
    benchmark = BENCHMARKS.get(item.benchmark)
    none = _failed(benchmark, item, place.host_name(), "any", reason)
    return none.judged(Verdict.NOT_MEASURED, reason)


def _failed(
    benchmark: Benchmark, item: Item, host: str, device: str, reason: str, model: str = ""
) -> Measurement:
    first: Quantity = benchmark.quantities[0]
    now = datetime.now(UTC)
    return Measurement(
        benchmark=benchmark.id,
        quantity=first.name,
        unit=first.unit,
        better=first.better,
        host=host,
        device=device,
        started_at=now,
        ended_at=now,
        parameters=item.parameters,
        place={"model": model} if model else {},
        verdict=Verdict.FAILED,
        reason=reason,
    )
