"""LINPACK as a benchmark: one search, its best rate as the measurement, and a row for every trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.errors import HakaruError
from hakaru.measure._base import Parameter, Quantity, benchmark
from hakaru.measure.hpl.peak import MISSING, gemm_gflops
from hakaru.measure.hpl.program import num_cores
from hakaru.measure.hpl.seeds import FILE
from hakaru.measure.hpl.slurm import slurm_start
from hakaru.measure.hpl.start import HERE, Start, on_hosts
from hakaru.measure.launch import Layout
from hakaru.measure.place import gather, host_name
from hakaru.measure.record import Measurement
from hakaru.measure.verdict import Verdict

if TYPE_CHECKING:
    from hakaru.measure.hpl.history import Trial
    from hakaru.measure.hpl.outcome import Outcome
    from hakaru.measure.job import Plan

RATE = Quantity("rate", "GFLOP/s", "higher", "Rate")
EFFICIENCY = Quantity("efficiency", "of DGEMM", "higher", "Efficiency")
GAIN = Quantity("gain", "of the default", "higher", "Gain over the default HPL.dat")
Progress = Callable[[float, str], None]


@benchmark(
    "hpl",
    title="LINPACK",
    answers="What does the whole machine reach, with which settings, and how far is that from its peak?",
    family="hpl",
    scope="machine",
    reproduces="MN-1 §4.1",
    parameters=[
        Parameter("ranks", (0,), "Ranks; 0 is one for each core, or those of the layout."),
        Parameter(
            "peak",
            (0,),
            "Peak of all ranks together in GFLOP/s, for the efficiency; 0 is hpcc's DGEMM or, with xhpl, "
            "the gemm of the same run.",
        ),
        Parameter(
            "memory",
            (0,),
            "Memory of all ranks together in GiB, which bounds N; 0 is this machine's, and unknown for other "
            "hosts.",
        ),
    ],
    quantities=[RATE, EFFICIENCY, GAIN],
    check="HPL's own residual of every run.",
    judged="The best settings must not be slower than the default HPL.dat at that file's own N.",
    needs=("mpirun", "hpcc"),
)
def hpl(
    folder: Path, plan: Plan, budget_s: float, progress: Progress,
    ranks: int = 0, peak: int = 0, memory: int = 0,
) -> list[Measurement]:  # fmt: skip
    """Searches N, NB, P × Q, broadcast, look-ahead and more with Optuna, from small to large, as MN-1 did."""
    from hakaru.measure.hpl.search import search_hpl

    started = datetime.now(UTC)
    parameters = {"ranks": ranks}
    try:
        num, layout = _layout(plan, ranks)
        parameters = {"ranks": num}
        with _start(folder, plan, layout, budget_s, progress) as start:
            found = search_hpl(
                folder, num, budget_s, start=start,
                progress=lambda text, share: progress(share, text),
                peak_gflops=float(peak) or None, memory_bytes=memory << 30 or None,
                seeds=folder.parent.parent / FILE,
            )  # fmt: skip
    except HakaruError as error:
        row = _row(RATE, parameters, started, f"{parameters['ranks']} ranks")
        return [row.judged(Verdict.NOT_MEASURED, str(error))]
    return [*_final(found, started, folder.parent), *_trials(found, started)]


def _layout(plan: Plan, ranks: int) -> tuple[int, Layout]:
    """How many ranks, and how many of them on each host at most."""
    num_hosts = max(plan.num_hosts, len(plan.hosts))
    spread = -(-ranks // num_hosts) if ranks else 1 if num_hosts > 1 else num_cores()
    layout = Layout(plan.hosts, plan.ranks_per_host or spread, num_hosts)
    if ranks > layout.num_ranks:
        raise HakaruError(
            f"ranks={ranks} do not fit: --ranks-per-host {layout.per_host} on {num_hosts} hosts are"
            f" {layout.num_ranks}. Leave --ranks-per-host out, or give more hosts"
        )
    return ranks or layout.num_ranks, layout


def _start(
    folder: Path, plan: Plan, layout: Layout, budget_s: float, progress: Progress
) -> AbstractContextManager[Start]:
    """What starts the ranks; an allocation of Slurm is held for the whole search."""
    if plan.launcher == "slurm":
        options = plan.launcher_options
        return slurm_start(folder, layout, options, budget_s, lambda text: progress(0.0, text))
    return nullcontext(on_hosts(layout) if plan.hosts else HERE)


def _final(found: Outcome, started: datetime, run_folder: Path) -> Iterator[Measurement]:
    """What counts: the best configuration, measured again beside the default."""
    best, own = found.best, found.default_own
    parameters = {"ranks": found.ranks}
    device = f"{found.ranks} ranks"
    common = {"validity": _facts(found), "place": gather() | {"model": device}}
    row = _row(RATE, parameters, started, device, best.samples if best else (), **common)
    yield row.judged(
        found.verdict, found.reason, reference=own.gflops if own else None,
        compared_with="the default HPL.dat at its own N" if own else "",
    )  # fmt: skip
    if best is not None and best.gflops is not None:
        yield _efficiency(found, started, run_folder, **common)
    if found.margin_own is not None:
        gain = (1 + found.margin_own.share,)
        row = _row(GAIN, parameters, started, device, gain, **common)
        yield row.judged(found.verdict, _gain_text(found))


def _efficiency(found: Outcome, started: datetime, run_folder: Path, **common: Any) -> Measurement:
    """The share of the peak; without a peak it is not measured, and the reason says how it would be."""
    assert found.best is not None and found.best.gflops is not None
    parameters, device = {"ranks": found.ranks}, f"{found.ranks} ranks"
    known = found.efficiency
    peak = known.peak_gflops if known else gemm_gflops(run_folder, found.ranks)
    if peak is None:
        reason = MISSING.format(program=found.program.kind)
        row = _row(EFFICIENCY, parameters, started, device, **common)
        return row.judged(Verdict.NOT_MEASURED, reason)
    values = tuple(each / peak for each in found.best.samples)
    relative_to = known.relative_to if known else "this run's fp64 gemm on all devices"
    row = _row(EFFICIENCY, parameters, started, device, values, **common)
    text = f"relative to {relative_to}, {peak:.4g} GFLOP/s"
    if found.best.gflops > peak:
        reason = f"{found.best.gflops:.4g} GFLOP/s are above the peak, which is wrong then: {text}"
        return replace(row, samples=()).judged(Verdict.NOT_MEASURED, reason)
    return row.judged(found.verdict, text)


def _facts(found: Outcome) -> dict[str, Any]:
    best = found.best
    return {
        "config": asdict(best.config) if best else None,
        "variant": best.config.variant if best else None,
        "changed": list(found.changed),
        "notes": list(found.notes),
        "blas": str(found.blas),
        "commands": list(found.commands)[-3:],
        "spent_s": round(found.spent_s, 1),
        "other_nodes": found.nodes,
    }


def _gain_text(found: Outcome) -> str:
    """The gain over the default file as it is distributed, and what is left of it at the same N."""
    whole, same = found.margin_own, found.margin
    assert whole is not None
    text = (
        f"{whole.share:+.1%} over the default file at its own N ({whole.low:+.1%} to {whole.high:+.1%}, "
        f"{whole.num_pairs} pairs)"
    )
    if same is None:
        return f"{text}; the best settings are the default's, at a larger N"
    return f"{text}; {same.share:+.1%} at the same N ({same.low:+.1%} to {same.high:+.1%})"


def _trials(found: Outcome, started: datetime) -> Iterator[Measurement]:
    place = {"model": f"{found.ranks} ranks"}
    disturbed = {each.number: each.disturbances for each in found.launches if each.disturbances}
    for trial in found.trials:
        if trial.gflops is None and not trial.is_wrong:
            continue
        samples = (trial.gflops,) if trial.gflops is not None else ()
        row = _row(RATE, _settings(trial), started, f"{trial.ranks} ranks", samples, place=place)
        residual = "–" if trial.residual is None else f"{trial.residual:.3g}"
        reason = f"{trial.phase}, {trial.status}, residual {residual}"
        if not trial.passed:
            yield row.judged(Verdict.FAILED, reason)
        elif others := disturbed.get(trial.launch):
            yield row.judged(Verdict.CONTAMINATED, f"{reason}; {others[0]}")
        else:
            yield row.judged(Verdict.GOOD, reason)


def _settings(trial: Trial) -> dict[str, Any]:
    return asdict(trial.config) | {
        "trial": trial.number,
        "stage": trial.phase,
        "origin": trial.origin,
    }


def _row(
    quantity: Quantity, parameters: dict[str, Any], started: datetime, device: str,
    samples: tuple[float, ...] = (), **more: Any,
) -> Measurement:  # fmt: skip
    return Measurement(
        benchmark="hpl",
        quantity=quantity.name,
        unit=quantity.unit,
        better=quantity.better,
        host=host_name(),
        device=device,
        started_at=started,
        ended_at=datetime.now(UTC),
        parameters=parameters,
        samples=samples,
        **more,
    )
