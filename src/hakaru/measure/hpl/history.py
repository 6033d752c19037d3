"""What a search has measured so far: launches and trials, kept in a journal and read back from it.

All that a search decides follows from this and from its seed, so that a killed one goes on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hakaru.errors import HakaruError
from hakaru.measure import journal
from hakaru.measure.hpl.dat import Config
from hakaru.measure.hpl.result import Result, Status

Phase = Literal["calibrate", "search", "confirm"]
# where a configuration came from: it is the default, the best of an earlier scale or search, the sampler's,
# or it fills the product of a batch; a finalist is any of them, run again
Origin = Literal["default", "seed", "sampler", "combined", "finalist"]
SKIPPED = "skipped"


@dataclass(frozen=True)
class Scale:
    """A step of the search: so many ranks, and a matrix of this order."""

    ranks: int
    n: int


@dataclass(frozen=True)
class Planned:
    """What a launch is to run; `seeded_by` is the trial of an earlier scale whose settings it repeats.

    A seed without one comes from an earlier search.
    """

    config: Config
    origin: Origin = "default"
    seeded_by: int | None = None


@dataclass(frozen=True)
class Trial:
    """One run of one configuration.

    `best_so_far` is the highest rate that passed on this scale up to now, for the curve of the search.
    """

    number: int
    launch: int
    phase: Phase
    scale: int | None
    ranks: int
    config: Config
    origin: Origin
    seeded_by: int | None
    status: str
    gflops: float | None
    seconds: float | None
    residual: float | None
    best_so_far: float | None

    @property
    def passed(self) -> bool:
        return self.status == Status.PASSED and self.gflops is not None

    @property
    def is_wrong(self) -> bool:
        """Whether the machine computed something false, or reported numbers that cannot be true."""
        return self.status in (Status.FAILED, Status.INCONSISTENT)


@dataclass(frozen=True)
class Launch:
    """One start of the program; `failure` says why none of its results count."""

    number: int
    phase: Phase
    scale: int | None
    ranks: int
    command: tuple[str, ...]
    environment: Mapping[str, str]
    wall_s: float
    num_transposed: int
    tests: tuple[Planned, ...] = ()
    kernels: tuple[str, ...] = ()
    star_gflops: float | None = None
    dgemm_n: int | None = None
    disturbances: tuple[str, ...] = ()
    failure: str | None = None
    timed_out: bool = False

    @property
    def num_results(self) -> int:
        """How many trials it has, once all of them are written."""
        return 0 if self.failure else len(self.tests)


@dataclass
class History:
    """The journal of a folder, and what is in it."""

    path: Path
    launches: list[Launch] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    scales: tuple[Scale, ...] = ()
    first_settings: Config | None = (
        None  # an earlier search's best, which the first scale begins with
    )
    notes: list[str] = field(default_factory=list)
    _written: set[tuple[int, int]] = field(default_factory=set)  # launch and index of each trial

    @classmethod
    def open(cls, path: Path, settings: Mapping[str, Any]) -> History:
        """Go on with a journal, or begin one; raises where it is of a search with other settings."""
        entries, _ = journal.read(path)  # a half-written last line is that of a killed search
        history = cls(path)
        if not entries:
            history._append("settings", dict(settings))
            return history
        _require_same(path, entries[0], settings)
        for entry in entries[1:]:
            history._take(entry)
        return history

    def add_launch(self, launch: Launch) -> None:
        """Write a launch; its trials follow, each by itself."""
        self._append("launch", _launch_json(launch))

    def add_result(self, launch: Launch, index: int, result: Result | None) -> None:
        """Write the result of a launch's test; one that HPL skipped has none, and that is written as well."""
        self._append(
            "trial",
            {
                "launch": launch.number,
                "index": index,
                "variant": launch.tests[index].config.variant,
                "status": result.status.value if result else SKIPPED,
                "gflops": result.gflops if result else None,
                "seconds": result.seconds if result else None,
                "residual": result.residual if result else None,
            },
        )

    def set_scales(self, scales: Sequence[Scale], note: str) -> None:
        rows = [[each.ranks, each.n] for each in scales]
        self._append("scales", {"scales": rows, "note": note})

    def set_first_settings(self, config: Config, note: str) -> None:
        self._append("first-settings", {"config": config.to_json(), "note": note})

    def add_note(self, note: str) -> None:
        if note not in self.notes:
            self._append("note", {"note": note})

    @property
    def spent_s(self) -> float:
        return sum(launch.wall_s for launch in self.launches)

    @property
    def next_launch(self) -> int:
        return len(self.launches) + 1

    def of(self, phase: Phase, scale: int | None = None) -> list[Trial]:
        """The trials of a phase, or of one scale of the search."""
        return [t for t in self.trials if t.phase == phase and (scale is None or t.scale == scale)]

    def unwritten(self) -> list[tuple[Launch, int]]:
        """Launches, and which of their trials a killed search did not write."""
        every = ((launch, index) for launch in self.launches for index in range(launch.num_results))
        return [(each, index) for each, index in every if (each.number, index) not in self._written]

    def _append(self, kind: str, entry: dict[str, Any]) -> None:
        journal.append(self.path, {"kind": kind} | entry)
        self._take({"kind": kind} | entry)

    def _take(self, entry: Mapping[str, Any]) -> None:
        kind = entry.get("kind")
        if kind == "launch":
            self.launches.append(_launch(entry))
        elif kind == "trial":
            self.trials.append(self._trial(entry))
        elif kind == "scales":
            self.scales = tuple(Scale(ranks, n) for ranks, n in entry["scales"])
            self.notes.append(entry["note"])
        elif kind == "first-settings":
            self.first_settings = Config(**entry["config"])
            self.notes.append(entry["note"])
        elif kind == "note":
            self.notes.append(entry["note"])

    def _trial(self, entry: Mapping[str, Any]) -> Trial:
        launch = next((each for each in self.launches if each.number == entry["launch"]), None)
        if launch is None:
            raise HakaruError(
                f"{self.path}: the line of launch {entry['launch']} is damaged. Remove the folder "
                f"{self.path.parent}, and measure again"
            )
        self._written.add((launch.number, entry["index"]))
        test = launch.tests[entry["index"]]
        earlier = self.of(launch.phase, launch.scale)
        rates = [each.gflops for each in earlier if each.passed and each.gflops]
        if entry["status"] == Status.PASSED:
            rates.append(entry["gflops"])
        return Trial(
            number=len(self.trials) + 1,
            launch=launch.number,
            phase=launch.phase,
            scale=launch.scale,
            ranks=launch.ranks,
            config=test.config,
            origin=test.origin,
            seeded_by=test.seeded_by,
            status=entry["status"],
            gflops=entry["gflops"],
            seconds=entry["seconds"],
            residual=entry["residual"],
            best_so_far=max(rates, default=None),
        )


def _launch_json(launch: Launch) -> dict[str, Any]:
    shown = {name: getattr(launch, name) for name in Launch.__dataclass_fields__}
    tests = [[each.config.to_json(), each.origin, each.seeded_by] for each in launch.tests]
    return shown | {"environment": dict(launch.environment), "tests": tests}


def _launch(entry: Mapping[str, Any]) -> Launch:
    known = {name: entry[name] for name in Launch.__dataclass_fields__}
    lists = {name: tuple(known[name]) for name in ("command", "kernels", "disturbances")}
    tests = tuple(Planned(Config(**config), origin, by) for config, origin, by in known["tests"])
    return Launch(**known | lists | {"tests": tests})


def _require_same(path: Path, entry: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    differing = [
        f"{name} {entry.get(name)!r}, now {value!r}"
        for name, value in settings.items()
        if entry.get(name) != value
    ]
    if entry.get("kind") != "settings" or differing:
        raise HakaruError(
            f"{path}: a search with other settings ({'; '.join(differing) or 'not readable'})."
            " Give another folder, or the same settings to continue it"
        )
