"""A search at work: its clock, its launches, and their record in the journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hakaru.measure.hpl import orphan
from hakaru.measure.hpl.blas import KERNEL_VARIABLE
from hakaru.measure.hpl.dat import Batch
from hakaru.measure.hpl.history import History, Launch, Phase, Planned
from hakaru.measure.hpl.program import Program, num_cores
from hakaru.measure.hpl.run import Launched, LaunchError, launch, results_in
from hakaru.measure.hpl.start import Start, remote_threads, thread_variables
from hakaru.measure.hpl.timing import predict_s

CONFIRM_SHARE = 0.35  # of the budget, kept for the confirming runs
ENDING_S = 1.0
LEAST_S = 1.0  # a launch gets at least this long
HUNG = 3.0  # a launch that takes so many times its prediction hangs; it is not the budget's fault
MOST_FAILURE = 2000
Progress = Callable[[str, float], None]


@dataclass
class Session:
    """Launches within a budget; what was measured before the search was killed counts as spent."""

    folder: Path
    ranks: int
    budget_s: float
    program: Program
    start: Start
    seed: int
    history: History
    progress: Progress | None = None
    began_s: float = field(default_factory=time.monotonic)
    spent_before_s: float = 0.0

    @property
    def spent_s(self) -> float:
        return self.spent_before_s + time.monotonic() - self.began_s

    @property
    def remaining_s(self) -> float:
        """Less what it takes to end a launch that would go on too long."""
        return self.budget_s - self.spent_s - ENDING_S

    @property
    def is_over(self) -> bool:
        """Whether a launch failed, or the time is up."""
        broken = any(each.failure and not each.timed_out for each in self.history.launches)
        return broken or self.remaining_s < LEAST_S

    @property
    def environment(self) -> dict[str, str]:
        """What every launch gets: threads, and the kernel that calibration has settled on."""
        threads = (
            thread_variables(max(1, num_cores() // self.ranks))
            if self.start.is_local
            else remote_threads()
        )
        tried = [
            e.environment for e in self.history.launches if e.phase == "calibrate" and not e.failure
        ]
        kernel = tried[-1].get(KERNEL_VARIABLE) if tried else None
        return threads | ({KERNEL_VARIABLE: kernel} if kernel else {})

    def show(self, text: str) -> None:
        if self.progress:
            self.progress(text, min(1.0, self.spent_s / self.budget_s))

    def predicted_s(self, batch: Batch, ranks: int) -> float:
        return predict_s(self.history, self.program, batch, ranks)

    def run(
        self,
        batch: Batch,
        tests: Sequence[Planned],
        phase: Phase,
        scale: int | None = None,
        *,
        kernel: str | None = None,
        excuse: str | None = None,
    ) -> bool:
        """Launch a batch and record it; False where it failed, which ends the search unless it is excused."""
        ranks = tests[0].config.ranks
        environment = self.environment | ({KERNEL_VARIABLE: kernel} if kernel else {})
        predicted = self.predicted_s(batch, ranks) if self.history.trials else None
        number = self.history.next_launch
        record = _Record(number, phase, scale, ranks, batch.num_transposed, tuple(tests))
        try:
            found = self._launch(number, batch, ranks, environment, self._limit_s(phase))
        except LaunchError as error:
            late = predicted is not None and error.wall_s > HUNG * predicted
            hung = late and not error.disturbances
            if excuse:
                self.history.add_note(excuse)
            else:
                self.history.add_launch(record.failed(error, environment, hung))
            return False
        done = record.done(found)
        self.history.add_launch(done)
        for index, (_, result) in enumerate(found.results):
            self.history.add_result(done, index, result)
        return True

    def recover(self) -> None:
        """Write the results of a launch that had ended when the search was killed among their lines."""
        for done, index in self.history.unwritten():
            configs = [test.config for test in done.tests]
            results = results_in(self.program, self._folder(done.number), configs)
            self.history.add_result(done, index, results[index])

    def _launch(
        self, number: int, batch: Batch, ranks: int, environment: Mapping[str, str], limit_s: float
    ) -> Launched:
        return launch(
            self.program,
            batch,
            ranks,
            self._folder(number),
            start=self.start,
            environment=environment,
            timeout_s=limit_s,
            started=lambda pid: orphan.note(self.folder / "running.json", pid),
        )

    def _limit_s(self, phase: Phase) -> float:
        """How long a launch may take: one of the search leaves the confirming runs their time."""
        kept = CONFIRM_SHARE * self.budget_s if phase == "search" else 0.0
        return max(LEAST_S, self.remaining_s - kept)

    def _folder(self, number: int) -> Path:
        return self.folder / "launches" / f"{number:04d}"


@dataclass(frozen=True)
class _Record:
    """A launch before it is known how it ends."""

    number: int
    phase: Phase
    scale: int | None
    ranks: int
    num_transposed: int
    tests: tuple[Planned, ...]

    def done(self, found: Launched) -> Launch:
        dgemm = found.output.dgemm
        return Launch(
            self.number,
            self.phase,
            self.scale,
            self.ranks,
            found.command,
            found.environment,
            found.wall_s,
            self.num_transposed,
            self.tests,
            kernels=found.kernels,
            star_gflops=dgemm.star_gflops if dgemm else None,
            dgemm_n=dgemm.n if dgemm else None,
            disturbances=found.disturbances,
        )

    def failed(self, error: LaunchError, environment: Mapping[str, str], hung: bool) -> Launch:
        return Launch(
            self.number,
            self.phase,
            self.scale,
            self.ranks,
            error.command,
            environment,
            error.wall_s,
            self.num_transposed,
            self.tests,
            disturbances=error.disturbances,
            failure=str(error)[:MOST_FAILURE],
            timed_out=error.timed_out and not hung,
        )
