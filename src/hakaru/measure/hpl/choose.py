"""Which configuration is the best so far, when every rate is noisy."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from hakaru.measure.hpl.dat import SETTINGS, Config, default_for
from hakaru.measure.hpl.history import Trial

# a changed setting must earn this much, or it stays as it is
WORTH = 0.02
FAR_BETTER = 1.1


def choose_best(trials: Sequence[Trial], ranks: int) -> Config | None:
    """The best with all the ranks on the last scale; that of a smaller N only where it is far better."""
    scales = {t.scale for t in trials if t.passed and t.ranks == ranks and t.scale is not None}
    chosen: tuple[Config, float] | None = None
    for scale in sorted(scales, reverse=True):
        config, rate = ranking([trial for trial in trials if trial.scale == scale])[0]
        if chosen is None or rate > FAR_BETTER * chosen[1]:
            chosen = (config, rate)
    return chosen[0] if chosen else None


def ranking(trials: Sequence[Trial]) -> list[tuple[Config, float]]:
    """The configurations of a scale with their rates, the worthiest first.

    Where some were run more often, as in the run-off, those that were run once are left out: the luckiest
    of many looks best.
    """
    rates: dict[Config, list[float]] = {}
    for trial in trials:
        if trial.passed and trial.gflops:
            rates.setdefault(trial.config, []).append(trial.gflops)
    most = max(map(len, rates.values()), default=0)
    known = {
        config: _typical(listed) for config, listed in rates.items() if 2 * len(listed) >= most
    }
    return sorted(known.items(), key=lambda item: -worth(*item))


def worth(config: Config, rate: float) -> float:
    """The rate, less what each changed setting must earn."""
    return rate * (1 - WORTH * len(changes(config)))


def changes(config: Config) -> list[str]:
    """The settings in which it differs from the default for as many ranks."""
    default = default_for(config.ranks)
    return [name for name in SETTINGS if getattr(config, name) != getattr(default, name)]


def _typical(rates: Sequence[float]) -> float:
    """The median of the faster half: others on the machine make runs slow, never fast."""
    return median(sorted(rates, reverse=True)[: (len(rates) + 1) // 2])
