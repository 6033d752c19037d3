"""Trials of Optuna's TPE on the weeks that are searched.

Trials are asked for in batches of a fixed size and told in order, so that a seed finds the same with any
number of threads; the kernel lets go of the GIL.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hakaru.errors import MissingExtraError

if TYPE_CHECKING:
    from hakaru.sim.advise.case import Case, Measured
    from hakaru.sim.advise.space import Space, Value

BATCH = 4
# A setting that brings less than this part of the whole gain is left as it is.
LEAST_PART = 0.01

Tell = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Effort:
    num_trials: int = 100
    seconds: float = math.inf
    threads: int = 1
    seed: int = 0
    searched: float = 0.7  # the part of the weeks


class Search:
    """Trials in batches; what was measured once is not measured again."""

    def __init__(self, space: Space, case: Case, effort: Effort, tell: Tell | None) -> None:
        assert case.baseline is not None
        self.space, self.case, self.effort, self.tell = space, case, effort, tell
        self.baseline = case.baseline
        self.known: dict[tuple[Value, ...], tuple[dict[str, Value], Measured]] = {}
        # the baseline has its constraints measured against itself, and so keeps them all
        self.known[tuple(space.now.values())] = (space.now, case.baseline)
        self.num_trials = 0
        self.importance: dict[str, float] = {}

    def run(self) -> None:
        optuna = _optuna()
        study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=self.effort.seed, multivariate=True),
        )
        study.enqueue_trial(
            {name: v for name, v in self.space.now.items() if self._is_on_grid(name)}
        )
        with ThreadPoolExecutor(self.effort.threads) as pool:
            for size in self._batches():
                trials = [study.ask() for _ in range(size)]
                points = [{k.name: k.suggest(trial) for k in self.space.knobs} for trial in trials]
                for trial, measured in zip(trials, self.measured(points, pool), strict=True):
                    for name, value in measured.constraints.items():
                        trial.set_constraint(name, value)
                    study.tell(trial, measured.value)
                self.num_trials += size
                self._report()
        self.importance = _importance(optuna, study)

    def measured(self, points: Sequence[Mapping[str, Value]], pool: Executor) -> list[Measured]:
        new = {tuple(point.values()): dict(point) for point in points}
        new = {key: point for key, point in new.items() if key not in self.known}
        rules = [self.space.rule(point) for point in new.values()]
        for key, got in zip(new, pool.map(self.case.of, rules), strict=True):
            self.known[key] = (new[key], got)
        return [self.known[tuple(point.values())][1] for point in points]

    def allowed(self) -> list[tuple[dict[str, Value], Measured]]:
        """What keeps all that must be kept, the best first; the baseline is among them."""
        kept = [each for each in self.known.values() if not each[1].broken]
        return sorted(kept, key=lambda each: each[1].value)

    def forbidden(self) -> list[tuple[dict[str, Value], Measured]]:
        """What beats the baseline but breaks what must be kept, the best first."""
        found = [each for each in self.known.values() if each[1].broken]
        better = [each for each in found if each[1].value < self.baseline.value]
        return sorted(better, key=lambda each: each[1].value)

    def broken(self) -> dict[str, int]:
        """How many of the settings measured break each constraint, the most first."""
        names = Counter(name for _, got in self.known.values() for name in got.broken)
        return dict(names.most_common())

    def simplified(
        self, point: dict[str, Value], best: Measured, pool: Executor
    ) -> dict[str, Value]:
        """The point with every setting as it is now that brings next to nothing."""
        margin = LEAST_PART * (self.baseline.value - best.value)
        for name in point:
            without = point | {name: self.space.now[name]}
            (got,) = self.measured([without], pool)
            if not got.broken and got.value <= best.value + margin:
                point = without
        return point

    def without(self, point: Mapping[str, Value], pool: Executor) -> dict[str, Measured]:
        """What it would be if one setting stayed as it is, for each that changes."""
        changed = [name for name, value in point.items() if value != self.space.now[name]]
        points = [{**point, name: self.space.now[name]} for name in changed]
        got = self.measured(points, pool)
        return dict(zip(changed, got, strict=True))

    def _batches(self) -> Iterator[int]:
        ends = time.monotonic() + self.effort.seconds
        for done in itertools.count(0, BATCH):
            if done >= self.effort.num_trials or (done and time.monotonic() >= ends):
                return
            yield min(BATCH, self.effort.num_trials - done)

    def _is_on_grid(self, name: str) -> bool:
        knob = next(knob for knob in self.space.knobs if knob.name == name)
        now = knob.now
        if isinstance(now, str):
            return now in knob.choices
        return knob.low <= now <= knob.high and (now - knob.low) % knob.step == 0

    def _report(self) -> None:
        if self.tell:
            best = self.allowed()[0][1].value * self.case.objective.sign
            self.tell(self.num_trials, self.effort.num_trials, best)


def _importance(optuna: Any, study: Any) -> dict[str, float]:
    """How much of what trials differ by is due to each setting; nothing from too few trials."""
    with warnings.catch_warnings():
        # from too few trials Optuna gives every setting the same, and warns of it
        warnings.simplefilter("error", UserWarning)
        try:
            return dict(optuna.importance.get_param_importances(study))
        except (ValueError, RuntimeError, UserWarning):
            return {}


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", "sim") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
