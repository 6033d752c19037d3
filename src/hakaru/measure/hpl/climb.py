"""From scale to scale: the best of one seeds the next, and what was hopeless on a small one is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hakaru.measure.hpl.choose import ranking, worth
from hakaru.measure.hpl.dat import Batch, Config, default_for
from hakaru.measure.hpl.history import Planned, Scale, Trial
from hakaru.measure.hpl.propose import propose
from hakaru.measure.hpl.runoff import run_off
from hakaru.measure.hpl.scales import STEP_N, fitting_n
from hakaru.measure.hpl.session import CONFIRM_SHARE, Session
from hakaru.measure.hpl.space import HOPELESS, Space, cover, new_space, ruled_out

RUN_OFF_SHARE = 0.15  # of the budget, kept for the run-off
NUM_SEEDS = 3
NUM_ASKED = 8  # of the sampler, for a launch
MOST_LAUNCHES = 8  # on a scale
FIRST_PART = 0.8  # of a scale's time that its first launch may take
SIZES = (48, 40, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
# a later launch of less than this part of the first one's runs is not worth its start
SMALL_PART = 0.5


def climb(session: Session) -> None:
    """Search on every scale that is not done; later scales get more of the time."""
    for index in range(_current(session), len(session.history.scales)):
        if session.is_over or _has_confirmed(session):
            return
        _Step(session, index).search()
    if not (session.is_over or _has_confirmed(session)):
        run_off(session, session.remaining_s - CONFIRM_SHARE * session.budget_s)


@dataclass
class _Step:
    """The search on one scale."""

    session: Session
    index: int

    def __post_init__(self) -> None:
        history = self.session.history
        self.given_s = self._given_s()
        self.scale: Scale = self._fitted(history.scales[self.index])
        self.earlier: list[Trial] = history.of("search", self.index - 1) if self.index else []
        self.space: Space = self._pruned(new_space(self.scale))
        self.seeds = self._seeds()

    def search(self) -> None:
        session = self.session
        if any(
            trial.config.n >= self.scale.n and trial.ranks == self.scale.ranks
            for trial in self.earlier
        ):
            return  # no time for a larger matrix: the smaller one stands
        ends_at = session.remaining_s - self.given_s
        for turn in range(self._num_launches(), MOST_LAUNCHES):
            left = session.remaining_s - ends_at
            wanted = self._wanted(turn)
            batch = self._largest(wanted, left * (FIRST_PART if turn == 0 else 1.0))
            if batch is None or len(batch) < SMALL_PART * self._first_size():
                return
            if not self._run(batch, wanted, turn):
                return

    def _given_s(self) -> float:
        """This scale's part of the time before the confirming runs; later ones get more."""
        num_scales = len(self.session.history.scales) - self.index
        later = (CONFIRM_SHARE + RUN_OFF_SHARE) * self.session.budget_s
        free = self.session.remaining_s - later
        return free / (2.0**num_scales - 1)  # each scale has twice the time of the one before

    def _fitted(self, scale: Scale) -> Scale:
        """The scale, or a smaller one where launches turned out to take longer than was planned."""
        session, history = self.session, self.session.history
        n = fitting_n(history, session.program, scale.ranks, FIRST_PART * self.given_s, scale.n)
        if n >= scale.n // STEP_N * STEP_N or self._num_launches():
            return scale
        smaller = Scale(scale.ranks, n)
        change = f"N {scale.n:,} on {scale.ranks} ranks became {n:,}"
        before, after = history.scales[: self.index], history.scales[self.index + 1 :]
        history.set_scales(
            [*before, smaller, *after], f"launches take longer than planned: {change}"
        )
        return smaller

    def _wanted(self, turn: int) -> list[Config]:
        """The default and the seeds at first, the best so far later; then what the sampler asks for."""
        trials = self.session.history.of("search", self.index)
        known = {trial.config for trial in trials}
        seeds = [] if turn else [default_for(self.scale.ranks, self.scale.n), *self.seeds]
        # a seed of its own for every launch: the same one would ask for the same again
        seed = (self.session.seed * 1_000_003 + self.index * 1_009 + turn) % 2**31
        asked = propose(self.space, trials, seeds, len(seeds) + NUM_ASKED, seed)
        new = [
            each
            for each in asked
            if each not in known and (each in seeds or not self._is_hopeless(each))
        ]
        best = [config for config, _ in ranking(trials)[:1]] if turn else []
        return [*best, *new] if new else []

    def _largest(self, wanted: Sequence[Config], slot_s: float) -> Batch | None:
        """The largest batch of what is wanted that ends in time."""
        for most in SIZES if wanted else ():
            batch = cover(wanted, most)
            if self.session.predicted_s(batch, self.scale.ranks) <= slot_s:
                return batch
        return None

    def _run(self, batch: Batch, wanted: Sequence[Config], turn: int) -> bool:
        tests = [self._test(config, wanted) for config in batch.configs()]
        where = f"{self.scale.ranks} ranks, N {self.scale.n:,}"
        self.session.show(f"{where}: {len(tests)} runs, launch {turn + 1}")
        return self.session.run(batch, tests, "search", self.index)

    def _test(self, config: Config, wanted: Sequence[Config]) -> Planned:
        if config == default_for(self.scale.ranks, self.scale.n):
            return Planned(config)
        if config in self.seeds:
            return Planned(config, "seed", self.seeds[config])
        return Planned(config, "sampler" if config in wanted else "combined")

    def _seeds(self) -> dict[Config, int | None]:
        """The best few of the scale before, as they are on this one, and the trials that they were.

        The first scale has those of an earlier search, if there was one.
        """
        first = self.session.history.first_settings
        if self.index == 0 and first is not None:
            return {self.space.moved(first): None}
        passed = [trial for trial in self.earlier if trial.passed and trial.gflops]
        ranked = sorted(passed, key=lambda trial: -worth(trial.config, trial.gflops or 0.0))
        moved: dict[Config, int | None] = {}
        for trial in ranked:
            moved.setdefault(self.space.moved(trial.config), trial.number)
        return dict(list(moved.items())[:NUM_SEEDS])

    def _pruned(self, space: Space) -> Space:
        gone = ruled_out(self.earlier) if self.earlier else []
        for name, value, share in gone:
            self.session.history.add_note(
                f"{name} {value} is not tried from {self.scale.ranks} ranks, N {self.scale.n:,} on:"
                f" it had reached only {share:.0%} of the best"
            )
        return space.without((name, value) for name, value, _ in gone)

    def _is_hopeless(self, config: Config) -> bool:
        """Whether these settings were far behind on the scale before."""
        rates = [
            t.gflops for t in self.earlier if t.gflops and self.space.moved(t.config) == config
        ]
        best = max((t.gflops for t in self.earlier if t.gflops), default=0.0)
        return bool(rates) and max(rates) < HOPELESS * best

    def _first_size(self) -> int:
        launches = [each for each in self.session.history.launches if each.scale == self.index]
        return len(launches[0].tests) if launches else 0

    def _num_launches(self) -> int:
        return sum(each.scale == self.index for each in self.session.history.launches)


def _current(session: Session) -> int:
    """The scale of the last launch of the search; a killed search goes on there."""
    return max((each.scale or 0 for each in session.history.launches), default=0)


def _has_confirmed(session: Session) -> bool:
    return any(each.phase == "confirm" for each in session.history.launches)
