"""What to measure next: Optuna's TPE, fed with the trials of a scale and seeded with the best of the last.

The study is built anew for each launch, from the journal and the seed alone; a killed search therefore goes
on with all that it knew.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from hakaru.errors import MissingExtraError
from hakaru.measure.context import EXTRA
from hakaru.measure.hpl.dat import Config
from hakaru.measure.hpl.history import Trial
from hakaru.measure.hpl.space import ORDERED, Space

NUM_RANDOM = 8  # trials before the sampler trusts what it has seen


def propose(
    space: Space, trials: Sequence[Trial], seeds: Sequence[Config], number: int, seed: int
) -> list[Config]:
    """The next configurations to try, each once: first the seeds, then the sampler's."""
    optuna = _optuna()
    sampler = _sampler(optuna, seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = {
        name: _distribution(optuna, name, values) for name, values in space.values.items()
    }
    for trial in trials:
        point = space.point(trial.config)
        if trial.passed and point is not None:
            study.add_trial(
                optuna.trial.create_trial(
                    params=_encoded(space, point), distributions=distributions, value=trial.gflops
                )
            )
    for config in seeds:
        if (point := space.point(config)) is not None:
            study.enqueue_trial(_encoded(space, point))
    asked = [study.ask(distributions).params for _ in range(number)]
    return list(dict.fromkeys(space.config(_decoded(space, params)) for params in asked))


def _sampler(optuna: Any, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # multivariate sampling is experimental, and says so each time
        return optuna.samplers.TPESampler(
            seed=seed, multivariate=True, constant_liar=True, n_startup_trials=NUM_RANDOM
        )


def _distribution(optuna: Any, name: str, values: Sequence[Any]) -> Any:
    if name in ORDERED:
        return optuna.distributions.IntDistribution(0, len(values) - 1)
    return optuna.distributions.CategoricalDistribution(range(len(values)))


def _encoded(space: Space, point: dict[str, Any]) -> dict[str, int]:
    return {name: _ranked(space, name).index(value) for name, value in point.items()}


def _decoded(space: Space, params: dict[str, int]) -> dict[str, Any]:
    return {name: _ranked(space, name)[index] for name, index in params.items()}


def _ranked(space: Space, name: str) -> tuple[Any, ...]:
    values = space.values[name]
    return tuple(sorted(values)) if name in ORDERED else values


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", EXTRA) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
