"""Baselines: the medians of a run under a name, kept in the workspace, that later runs are compared with."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Literal

from hakaru.errors import HakaruError
from hakaru.measure._base import Better, load_all
from hakaru.measure.fleet import QUICK
from hakaru.measure.folders import baselines_folder, own_baselines_folder
from hakaru.measure.record import CHECK_UNIT, ITEM, Measurement, Run, Subject, parameters_text
from hakaru.measure.statistics import LEAST_LEVEL
from hakaru.measure.store import SELFTEST
from hakaru.measure.verdict import Verdict
from hakaru.registry import hint
from hakaru.safety.files import replace_file

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
EVERYWHERE = "any"
LEAST, MOST = 1e-12, 1e18  # a median outside is no measurement
# what of it was asked for: everything, kinds of devices such as cuda, single devices, or what was measured
Part = Literal["", "kinds", "devices", "measured"]
CORRELATED_FROM = 6  # repetitions: fewer are a short series, such as an imported one


@dataclass(frozen=True)
class Entry:
    """What one quantity of one benchmark was: the median over the devices of the run."""

    benchmark: str
    parameters: dict[str, Any]
    model: str
    quantity: str
    unit: str
    better: Better
    median: float
    num_devices: int  # of one host, at most
    is_noisy: bool = False  # its repetitions tell too little for a gate, which leaves it out
    item: dict[str, Any] | None = (
        None  # what was asked for, where a row is a part of what that gave
    )

    @property
    def subject(self) -> Subject:
        return (self.benchmark, parameters_text(self.parameters), self.model, self.quantity)

    def fits(self, each: Measurement) -> bool:
        """Whether a measurement is of this quantity, in the same unit and direction."""
        return (self.subject, self.unit, self.better) == (each.subject, each.unit, each.better)

    def missing(self, host: str = EVERYWHERE, reason: str = "") -> Measurement:
        """The entry as a measurement of a run that has none of it, or too few."""
        now = datetime.now(UTC)
        lacking = f"the baseline has it of {self.model or 'a device'}, and this run does not"
        return Measurement(
            benchmark=self.benchmark,
            quantity=self.quantity,
            unit=self.unit,
            better=self.better,
            host=host,
            device=EVERYWHERE,
            started_at=now,
            ended_at=now,
            parameters=self.parameters,
            place={"model": self.model},
            verdict=Verdict.NOT_MEASURED,
            reason=reason or lacking,
            reference=self.median,
        )


@dataclass(frozen=True)
class Baseline:
    name: str
    run_id: str
    made_at: str
    entries: tuple[Entry, ...]
    cluster: str = ""  # empty in those of before it was kept

    @property
    def gated(self) -> tuple[Entry, ...]:
        """What a gate measures and judges."""
        return tuple(each for each in self.entries if not each.is_noisy)

    def find(self, subject: Subject) -> Entry | None:
        """By the subject alone; `match` compares the unit and the direction too."""
        return next((each for each in self.entries if each.subject == subject), None)


def make_baseline(name: str, *runs: Run) -> Baseline:
    """The medians of what is good in a run; a run in which something is not good makes none.

    Later runs replace what they measured again, such as the node whose slow card was replaced.
    """
    check_name(name)
    run, ids = runs[0], ", ".join(run.id for run in runs)
    if len(clusters := sorted({each.cluster for each in runs})) > 1:
        raise HakaruError(
            f"runs {ids} are of several clusters, {', '.join(clusters)}: choose those of one"
        )
    in_order = sorted(runs, key=lambda each: each.started_at)
    judged = [each for each in _newest(in_order) if can_be_repeated(each)]
    bad = [why for each in judged if (why := _why_not(each))]
    kept = [each for each in judged if each.unit != CHECK_UNIT]
    if bad or not kept:
        reason = (
            f"{len(bad)} of its {len(judged)} measurements are not good: {bad[0]}. Measure again until "
            "all are good."
            if bad
            else "it has no measurement that another run could be compared with"
        )
        raise HakaruError(f"run {ids} cannot be a baseline: {reason}")
    groups: dict[Subject, list[Measurement]] = {}
    for each in kept:
        groups.setdefault(each.subject, []).append(each)
    try:
        entries = tuple(_entry(group) for group in groups.values())
    except ValueError as error:
        raise HakaruError(f"run {ids} cannot be a baseline: {error}") from None
    if all(each.is_noisy for each in entries):
        raise HakaruError(
            f"run {ids} cannot be a baseline: the repetitions of all its numbers differ too much or are too "
            "alike from one to the next. Measure again with a larger --budget on a quieter machine"
        )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Baseline(name, ids, now, entries, run.cluster)


def _newest(runs: Sequence[Run]) -> list[Measurement]:
    """Of each device of each host what the last run that has it says."""
    found: dict[tuple[Any, ...], list[Measurement]] = {}
    for run in runs:
        own: dict[tuple[Any, ...], list[Measurement]] = {}
        for each in run.measurements:
            own.setdefault((each.subject, each.host, each.device), []).append(each)
        found |= own
    return [each for listed in found.values() for each in listed]


def _why_not(each: Measurement) -> str:
    """Why a measurement is not good enough; nothing where it is. A check may be 0."""
    where = f"{each.benchmark} {each.quantity} on {each.host}/{each.device}"
    if each.verdict is not Verdict.GOOD:
        return f"{where} is {each.verdict}"
    if each.unit != CHECK_UNIT and (each.median or 0.0) <= 0:
        return f"{where} has no number above 0"
    return ""


def can_be_repeated(each: Measurement) -> bool:
    """LINPACK's rate depends on how long its search may take, so that no gate can repeat it."""
    known = load_all()
    is_search = each.benchmark in known and known.get(each.benchmark).scope == "machine"
    return not is_search and not each.is_trial and each.benchmark != SELFTEST


def save(workspace: Path, baseline: Baseline) -> Path:
    path = _path(workspace, baseline.name)
    try:
        own_baselines_folder(workspace)
        replace_file(path, json.dumps(asdict(baseline), indent=1))
    except OSError as error:
        raise HakaruError(f"{path} cannot be written: {error.strerror}") from None
    return path


def load(workspace: Path, name: str) -> Baseline:
    path = _path(workspace, name)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        entries = _without_doubles([_checked(Entry(**each)) for each in raw["entries"]])
        cluster = str(raw.get("cluster", ""))
        return Baseline(name, str(raw["run_id"]), str(raw["made_at"]), entries, cluster)
    except FileNotFoundError:
        known = names(workspace)
        raise HakaruError(
            f"there is no baseline {name!r} in {workspace}; {hint(name, known)}\nMake one from a good run: "
            f"hakaru bench baseline {name} --run latest -w {shlex.quote(str(workspace))}"
        ) from None
    except (OSError, ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise HakaruError(
            f"{path}: the baseline cannot be read: {error}. Make it anew: hakaru bench baseline {name}"
        ) from None


def names(workspace: Path) -> list[str]:
    """The baselines that there are; a folder that cannot be read is an error, never empty."""
    folder = baselines_folder(workspace)
    try:
        return sorted(path.stem for path in folder.iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HakaruError(f"{folder} cannot be read: {error.strerror}") from None


def check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise HakaruError(
            f"a baseline cannot be called {name!r}: use letters, digits, '.', '_' and '-', 64 at most"
        )
    return name


def _entry(group: list[Measurement]) -> Entry:
    first = group[0]
    value = median(each.median for each in group if each.median is not None)
    hosts = Counter(host for host, _ in {(each.host, each.device) for each in group})
    if len({(each.unit, each.better) for each in group}) > 1:
        raise ValueError(f"{first.benchmark} {first.quantity} is in several units or directions")
    return _checked(Entry(
        first.benchmark, dict(first.parameters), first.model, first.quantity, first.unit, first.better,
        value, max(hosts.values()), _is_noisy(group), item_of(first),
    ))  # fmt: skip


def item_of(each: Measurement) -> dict[str, Any] | None:
    """The parameters that were asked for, where the row is one of several parts that these gave."""
    found = each.validity.get(ITEM)
    return dict(found) if isinstance(found, dict) else None


def _is_noisy(group: Sequence[Measurement]) -> bool:
    """Whether the usual device would not pass its own median.

    Its interval reaches too far down, or its repetitions resemble one another too much to give one.
    """
    intervals = [each.interval for each in group if each.interval]
    num_samples = median(len(each.samples) for each in group)
    if num_samples >= CORRELATED_FROM and median(each.level for each in intervals) < LEAST_LEVEL:
        return True
    if group[0].better == "higher":
        shares = [each.low / each.median for each in intervals]
    else:
        shares = [each.median / each.high for each in intervals]
    return median(shares) < 1 - QUICK.must_find


def _checked(entry: Entry) -> Entry:
    texts = (entry.benchmark, entry.model, entry.quantity, entry.unit)
    number = isinstance(entry.median, int | float) and not isinstance(entry.median, bool)
    if not all(isinstance(text, str) for text in texts) or not isinstance(entry.parameters, dict):
        raise ValueError("an entry is not of the right form")
    what = f"{entry.benchmark} {entry.quantity}"
    if not number or not LEAST <= entry.median <= MOST:
        raise ValueError(f"{what} is {entry.median!r}, not a number from {LEAST:g} to {MOST:g}")
    if entry.item is not None and not isinstance(entry.item, dict):
        raise ValueError(f"{what} has a wrong item, {entry.item!r}")
    if entry.better not in ("higher", "lower"):
        raise ValueError(f"{what} has a wrong direction, {entry.better!r}")
    if not isinstance(entry.is_noisy, bool):
        raise ValueError(f"{what} has is_noisy {entry.is_noisy!r}, not true or false")
    if type(entry.num_devices) is not int or entry.num_devices < 1:
        raise ValueError(f"{what} has {entry.num_devices!r} devices, not 1 or more")
    return entry


def _without_doubles(entries: list[Entry]) -> tuple[Entry, ...]:
    for subject, count in Counter(each.subject for each in entries).items():
        if count > 1:
            raise ValueError(f"{count} entries are of {' '.join(subject)}")
    return tuple(entries)


def _path(workspace: Path, name: str) -> Path:
    return baselines_folder(workspace) / f"{check_name(name)}.json"
