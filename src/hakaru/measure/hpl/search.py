"""The search for the fastest HPL settings: calibrate, go from small to large, confirm, all within a budget.

MN-1 scaled LINPACK from 1 GPU to 1,024 with a Bayesian search at each step (section 4.1); this is its method
with a journal, a budget and a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure.hpl import confirm, orphan, outcome
from hakaru.measure.hpl.blas import UNKNOWN
from hakaru.measure.hpl.calibrate import calibrate, describe_blas, measure_sizes
from hakaru.measure.hpl.choose import choose_best
from hakaru.measure.hpl.climb import climb
from hakaru.measure.hpl.dat import Batch, Config, grids
from hakaru.measure.hpl.history import History, Scale
from hakaru.measure.hpl.outcome import Outcome
from hakaru.measure.hpl.program import Program, find_program, missing_tools
from hakaru.measure.hpl.scales import default_scales, largest_n, most_n
from hakaru.measure.hpl.seeds import read_seed, write_seed
from hakaru.measure.hpl.session import Progress, Session
from hakaru.measure.hpl.start import HERE, Start
from hakaru.measure.node.memory import available_bytes
from hakaru.measure.verdict import Verdict

JOURNAL = "journal.jsonl"
VERSION = 2


def search_hpl(
    folder: Path,
    ranks: int,
    budget_s: float,
    program: Program | None = None,
    start: Start = HERE,
    progress: Progress | None = None,
    seed: int = 0,
    *,
    scales: Sequence[Scale] | None = None,
    peak_gflops: float | None = None,
    memory_bytes: int | None = None,
    seeds: Path | None = None,
) -> Outcome:
    """Search, or go on with the search of this folder; the outcome says what was found and what it is worth.

    `peak_gflops` is the machine's peak where hpcc does not measure it, `memory_bytes` that of all nodes
    together. `seeds` is the file of earlier searches' best settings, to which this one's are added.
    """
    _check(ranks, budget_s, scales)
    if problem := missing_tools(program, next(iter(start.words(ranks)), "")):
        raise HakaruError(problem)
    program = program or find_program()
    folder.mkdir(parents=True, exist_ok=True)
    with orphan.only_search(folder):
        orphan.end_left_over(folder / "running.json")
        settings = _settings(ranks, program, start, seed, scales)
        history = History.open(folder / JOURNAL, settings)
        session = Session(
            folder.absolute(), ranks, budget_s, program, start, seed, history, progress,
            spent_before_s=history.spent_s,
        )  # fmt: skip
        session.recover()
        _measure(session, scales, memory_bytes, seeds)
        found = _outcome(session, peak_gflops)
        if seeds:
            write_seed(seeds, found)
        return found


def _measure(
    session: Session, scales: Sequence[Scale] | None, memory_bytes: int | None, seeds: Path | None
) -> None:
    calibrate(session)
    if session.is_over or not session.history.trials:
        return
    if not session.history.scales:
        _plan(session, scales, memory_bytes, seeds)
    climb(session)
    confirm_best(session)


def _plan(
    session: Session, scales: Sequence[Scale] | None, memory_bytes: int | None, seeds: Path | None
) -> None:
    first = read_seed(seeds, session.ranks, session.program) if seeds else None
    if first is not None:
        settings = f"NB {first.nb}, {first.variant}"
        note = f"begins with the settings of an earlier search on {first.ranks} ranks: {settings}"
        session.history.set_first_settings(first, note)
    if scales:
        session.history.set_scales(scales, "the scales were given")
        return
    memory = memory_bytes or (available_bytes() if session.start.is_local else None)
    measure_sizes(session, most_n(memory))
    n, note = largest_n(session.history, session.program, session.ranks, session.budget_s, memory)
    found = default_scales(session.ranks, n, first.ranks if first is not None else 1)
    session.history.set_scales(found, note)


def confirm_best(session: Session) -> None:
    """Measure the best and the default again, in rounds, until there are pairs enough or no time is left."""
    best = choose_best(session.history.of("search"), session.ranks)
    while best is not None and not session.is_over:
        done = session.history.of("confirm")
        if confirm.num_pairs(done, best) >= confirm.MOST_PAIRS:
            return
        batches = _fitting_round(session, best, is_first=not done)
        if not batches:
            return
        session.show(f"N {best.n:,}, NB {best.nb}, {best.variant} against the default")
        for batch in batches:
            if not session.run(batch, confirm.tests_of(batch, best), "confirm"):
                return


def _fitting_round(session: Session, best: Config, is_first: bool) -> list[Batch]:
    """As many repetitions as fit, both in one launch where that is not much dearer.

    The first round leaves time for a second one, unless both together would have too few pairs: every launch
    costs its start and, with hpcc, the whole suite.
    """
    num_launches = len([each for each in session.history.launches if each.phase == "confirm"])
    half = -(-confirm.LEAST_PAIRS // 2)
    for share, least in ((0.5, half), (1.0, 1)) if is_first else ((1.0, 1),):
        for repeats in range(confirm.MOST_REPEATS, least - 1, -1):
            ways = confirm.rounds(best, repeats, is_back=num_launches // 2 % 2 == 1)
            costs = [sum(session.predicted_s(b, session.ranks) for b in way) for way in ways]
            is_near = costs[-1] <= confirm.TOGETHER_WORTH * costs[0]
            chosen = -1 if is_near else 0
            if costs[chosen] <= share * session.remaining_s:
                return ways[chosen]
    return []


def _outcome(session: Session, peak_gflops: float | None) -> Outcome:
    history = session.history
    best = choose_best(history.of("search"), session.ranks)
    found = outcome.compare(history, best, session.ranks)
    verdict, reason = outcome.judge(history, found)
    if session.start.nodes and verdict not in (Verdict.FAILED, Verdict.NOT_MEASURED):
        reason = f"{reason}; {session.start.nodes}"
    blas = describe_blas(session)
    if blas.warning and blas.kind != UNKNOWN:  # a library that was not found may well be right
        reason = f"{reason}; {blas.warning}"
    return Outcome(
        verdict=verdict,
        reason=reason,
        ranks=session.ranks,
        program=session.program,
        blas=blas,
        best=found.best,
        default=found.default,
        default_own=found.default_own,
        margin=found.margin,
        margin_own=found.margin_own,
        rejected=found.rejected,
        efficiency=outcome.efficiency(history, session.ranks, found.best, peak_gflops),
        scales=history.scales,
        trials=tuple(history.trials),
        launches=tuple(history.launches),
        notes=tuple(history.notes),
        nodes=session.start.nodes,
        budget_s=session.budget_s,
        spent_s=session.spent_s,
    )


def _settings(
    ranks: int,
    program: Program,
    start: Start,
    seed: int,
    scales: Sequence[Scale] | None,
) -> dict[str, Any]:
    """What must be the same for a search to go on; a larger budget may be given."""
    return {
        "version": VERSION,
        "ranks": ranks,
        "program": [program.kind, program.path],
        "start": start.lasting_words(ranks),
        "seed": seed,
        "scales": None if scales is None else [[each.ranks, each.n] for each in scales],
    }


def _check(ranks: int, budget_s: float, scales: Sequence[Scale] | None) -> None:
    grids(ranks)  # raises for what is no number of ranks
    if not budget_s > 0:
        raise HakaruError(f"a budget of {budget_s} s; expected a number of seconds above 0")
    for scale in scales or ():
        grids(scale.ranks)
    if scales and scales[-1].ranks != ranks:
        raise HakaruError(
            f"the last scale has {scales[-1].ranks} ranks; expected all {ranks}, which are what is judged"
        )
