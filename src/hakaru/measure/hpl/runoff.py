"""The run-off: the best few of the last scale and the default, several times each, to choose the finalist."""

from __future__ import annotations

from hakaru.measure.hpl.choose import ranking
from hakaru.measure.hpl.dat import Batch, default_for
from hakaru.measure.hpl.history import Planned
from hakaru.measure.hpl.session import Session
from hakaru.measure.hpl.space import together

NUM_FINALISTS = 4
# combinations and repetitions, the best choice first
SIZES = ((8, 4), (8, 3), (4, 4), (4, 3), (8, 2), (2, 4), (4, 2), (2, 2))


def run_off(session: Session, slot_s: float) -> None:
    """Measure the finalists again, once, where it fits the time."""
    history = session.history
    index = len(history.scales) - 1
    trials = history.of("search", index)
    if not trials or any(trial.origin == "finalist" for trial in trials):
        return
    scale = history.scales[index]
    ranked = [config for config, _ in ranking(trials)][:NUM_FINALISTS]
    wanted = list(dict.fromkeys([*ranked[:1], default_for(scale.ranks, scale.n), *ranked[1:]]))
    for most, repeats in SIZES:
        batch = together(wanted, most).repeated([scale.n] * repeats)
        if session.predicted_s(batch, scale.ranks) <= slot_s:
            _run(session, batch, index)
            return


def _run(session: Session, batch: Batch, index: int) -> None:
    tests = [Planned(config, "finalist") for config in batch.configs()]
    session.show(f"Run-off: {len(tests)} runs with N {tests[0].config.n:,}")
    session.run(batch, tests, "search", index)
