"""A run's plan, and the folder in which it is kept until it is stored, so that an interrupted run resumes."""

from __future__ import annotations

import fcntl
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure import journal
from hakaru.measure._base import Benchmark, Value, find_benchmarks
from hakaru.measure.baseline import Part
from hakaru.measure.fleet import QUICK, Limits
from hakaru.measure.folders import bench_folder, own_bench_folder
from hakaru.measure.place import host_name
from hakaru.measure.record import new_run_id
from hakaru.measure.store import check_label
from hakaru.measure.task import Item
from hakaru.safety.files import open_lock
from hakaru.settings import check_cluster_name

PLAN_FILE = "plan.json"
STORED = "stored"
LOCK = "lock"
SLURM_GPUS = ("gpus_per_node", "num_gpus", "gres", "gpus_per_task")  # as submitit takes them
# of the fields of a plan whose type is not that of their usual value alone
TYPES: dict[str, tuple[type, ...]] = {
    "budget_s": (int, float),
    "timeout_s": (int, float, type(None)),
    "tolerance": (int, float, type(None)),
    "label": (str, type(None)),
    "baseline": (str, type(None)),
}
HERE_ONLY = ("local", "torchrun")
# what each family may take of the budget, relative to the others
SHARES = {"device": 0.35, "collective": 0.25, "hpl": 0.40, "training": 0.70, "storage": 0.40}
# with starting and judging, ten minutes and two; without the long families five and one
BUDGETS_S = {True: (570.0, 100.0), False: (270.0, 40.0)}
LONG = ("training", "storage")


@dataclass(frozen=True)
class Plan:
    """What a run measures, where and for how long; enough to resume it."""

    names: tuple[str, ...] = ()
    chosen: dict[str, dict[str, list[Value]]] = field(default_factory=dict)
    quick: bool = False
    budget_s: float = 300.0
    devices: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    num_hosts: int = 1
    ranks_per_host: int = 0
    launcher: str = "local"
    launcher_options: dict[str, Any] = field(default_factory=dict)
    points: dict[str, list[dict[str, Value]]] = field(default_factory=dict)
    label: str | None = None
    timeout_s: float | None = None
    baseline: str | None = None
    tolerance: float | None = None
    on_gpu: bool = False
    part: Part = ""  # of what the baseline has, as somebody chose it

    @property
    def limits(self) -> Limits:
        """How devices are judged: by a gate's tolerance, quickly, or in full."""
        if self.tolerance is not None:
            return Limits(self.tolerance, max(QUICK.must_find, 2 * self.tolerance))
        return QUICK if self.quick else Limits()

    @property
    def benchmarks(self) -> list[Benchmark]:
        return find_benchmarks(self.names)

    @property
    def families(self) -> list[str]:
        """Those that it measures, in their order."""
        return list(dict.fromkeys(each.family for each in self.benchmarks))

    def items(self, family: str) -> list[Item]:
        return [
            Item(each.id, point)
            for each in self.benchmarks
            if each.family == family
            for point in self.points.get(each.id)
            or each.grid(self.quick, self.chosen.get(each.id), self.on_gpu)
        ]

    def budget_of(self, family: str) -> float:
        """The share of the budget, when the families that have nothing to do give up theirs."""
        shares = {name: SHARES[name] for name in self.families}
        return self.budget_s * shares.get(family, 0.0) / sum(shares.values())


def usual_budget_s(names: Sequence[str], quick: bool) -> float:
    """What a run may take where nobody says."""
    is_long = any(each.family in LONG for each in find_benchmarks(names))
    return BUDGETS_S[is_long][quick]


@dataclass(frozen=True)
class Job:
    """A run under way: its id, its plan, and the folder that it resumes from."""

    id: str
    cluster: str
    started_at: datetime
    plan: Plan
    folder: Path

    @classmethod
    def begin(cls, workspace: Path, cluster: str, plan: Plan) -> Job:
        now = datetime.now(UTC)
        id = new_run_id(now)
        folder = own_bench_folder(workspace, id)
        job = cls(id, cluster, now, plan, folder)
        entry = {
            "id": id,
            "cluster": cluster,
            "started_at": now.isoformat(),
            "host": host_name(),
            "plan": asdict(plan),
        }
        journal.append(folder / PLAN_FILE, entry)
        return job

    @classmethod
    def resume(cls, workspace: Path, id: str | None = None) -> Job:
        """The run of this id, label or beginning of an id; without one, the last that was interrupted."""
        known = interrupted(workspace)
        if id is None and not known:
            raise HakaruError(f"{workspace} has no interrupted run to resume")
        found = known[-1] if id is None else _named(known, id)
        if found.job is None:
            raise HakaruError(
                f"{found.folder / PLAN_FILE} is damaged, so the run cannot be resumed; "
                f"delete {found.folder}"
            )
        if found.is_elsewhere:
            raise HakaruError(
                f"run {found.id} was begun on {found.host}: resume it there, or measure anew"
            )
        return found.job

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process may measure a run; another one that resumes it is refused."""
        with open_lock(self.folder / LOCK) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise HakaruError(
                    f"run {self.id} is still being measured by another process"
                ) from None
            yield

    def finish(self, keep: bool = False) -> None:
        """It is stored and is not resumed; its logs are kept only where something failed."""
        (self.folder / STORED).touch()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class Interrupted:
    """A run that was begun, is not stored and is not under way; a damaged plan gives no job."""

    id: str
    folder: Path
    job: Job | None = None
    host: str = ""  # on which it was begun

    @property
    def label(self) -> str | None:
        return self.job.plan.label if self.job else None

    @property
    def is_elsewhere(self) -> bool:
        """Whether only another host can go on with it."""
        return (
            self.job is not None
            and self.job.plan.launcher in HERE_ONLY
            and self.host != host_name()
        )


def interrupted(workspace: Path) -> list[Interrupted]:
    """The oldest first."""
    return [_interrupted(bench_folder(workspace) / name) for name in unfinished(workspace)]


def _interrupted(folder: Path) -> Interrupted:
    """What its plan says, which is of a tampered or damaged one not to be trusted."""
    try:
        entry = journal.read(folder / PLAN_FILE)[0][0]
        raw = entry["plan"]
        tuples = {key: tuple(raw[key]) for key in ("names", "devices", "hosts")}
        started = datetime.fromisoformat(entry["started_at"])
        plan = Plan(**(raw | tuples))
        whole = entry["id"] == folder.name and _is_whole(plan) and 0 < plan.budget_s < math.inf
        check_label(plan.label, of_gate=True)
        cluster, host = check_cluster_name(str(entry["cluster"])), str(entry["host"])
    except (IndexError, KeyError, TypeError, ValueError, HakaruError):
        return Interrupted(folder.name, folder)
    job = Job(folder.name, cluster, started, plan, folder) if whole else None
    return Interrupted(folder.name, folder, job, host if whole else "")


def _named(known: Sequence[Interrupted], name: str) -> Interrupted:
    """By its id, else by its label, else by the beginning of its id."""
    by_id = [each for each in known if each.id == name]
    labelled = [each for each in known if each.label == name]
    begins = [each for each in known if name and each.id.startswith(name)]
    matches = by_id or labelled or begins
    if not matches:
        ids = ", ".join(each.id for each in known) or "none"
        raise HakaruError(f"run {name!r} cannot be resumed; interrupted runs: {ids}")
    if len(matches) > 1:
        ids = ", ".join(each.id for each in matches)
        raise HakaruError(f"{name!r} names several interrupted runs: {ids}; choose one by its id")
    return matches[0]


def _is_whole(plan: Plan) -> bool:
    """Whether each field is of the type that it is written with."""
    usual = Plan()
    texts = (*plan.names, *plan.devices, *plan.hosts)
    return all(isinstance(each, str) for each in texts) and all(
        isinstance(getattr(plan, each.name), TYPES.get(each.name, type(getattr(usual, each.name))))
        for each in fields(Plan)
    )


def unfinished(workspace: Path) -> list[str]:
    """Runs that were begun, are not stored and are not under way, the oldest first."""
    folders = [path.parent for path in sorted(bench_folder(workspace).glob(f"*/{PLAN_FILE}"))]
    return [each.name for each in folders if not (each / STORED).exists() and not _is_locked(each)]


def _is_locked(folder: Path) -> bool:
    """Whether it is under way; a lock that cannot be read says nothing, and who resumes is told why."""
    if not (folder / LOCK).exists():
        return False
    try:
        with open_lock(folder / LOCK) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, HakaruError):
        return False
    return False


def uses_gpus(launcher: str, devices: Sequence[str], options: Mapping[str, Any]) -> bool:
    """Whether GPUs will be measured: those named or asked of Slurm, else those of this machine."""
    if any(name.rpartition("/")[2].partition(":")[0] in ("cuda", "gpu") for name in devices):
        return True
    if launcher == "slurm":
        return slurm_gpus(options) > 0
    from hakaru.measure.devices import torch_names

    return find_spec("torch") is not None and torch_names(devices) != ["cpu"]


def slurm_gpus(options: Mapping[str, Any]) -> int:
    """The GPUs of a node that a job asks for, as `gpus_per_node=8` or `gres=gpu:a100:8`.

    With `gpus_per_task` each rank is given its own; how many ranks a node has is not said, so it is one.
    """
    asked = {name: str(options.get(name, "")).split(",") for name in SLURM_GPUS}
    gres = [each for each in asked.pop("gres") if each.split(":")[0] == "gpu"]
    of_task = _num_gpus(asked.pop("gpus_per_task"))
    return sum(map(_num_gpus, asked.values())) or _num_gpus(gres) or min(of_task, 1)


def _num_gpus(words: Sequence[str]) -> int:
    """As `8`, `a100:8`, `gpu:a100:8`; one where a kind has no number."""
    numbers = [word.rpartition(":")[2] for word in words if word]
    return sum(int(number) if number.isdecimal() else 1 for number in numbers)
