"""What the network between the ranks of a training can do: all-reduce over sizes, and who is slow to all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from hakaru.measure._base import Procedure, WrongResult
from hakaru.measure.collect import link_name
from hakaru.measure.collective._blame import Blame
from hakaru.measure.collective._fit import Fit, fit
from hakaru.measure.collective._judge import LEAST_HOSTS, Probe, blame_links
from hakaru.measure.collective.pairs import pairs
from hakaru.measure.context import Context, torch
from hakaru.measure.training._study import Study

BYTES = (1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
REPETITIONS = 5
SIZE_S = 1.5  # for one size
PROBE_BYTES = 1 << 20


def fit_all_reduce(study: Study, chosen: Sequence[int]) -> Fit | None:
    """α and β of the ring among these ranks; all ranks call it together."""
    import torch.distributed as dist

    group = dist.new_group(list(chosen))
    is_member = study.ranks.rank in chosen
    points = []
    if is_member:  # the first exchange of a group connects it
        dist.all_reduce(torch().zeros(1, device=study.device), group=group)
        study.sync()
    for size in BYTES:
        buffer = torch().zeros(size // 4, device=study.device) if is_member else None

        def step(buffer: object = buffer) -> float:
            begin = time.perf_counter()
            if buffer is not None:
                dist.all_reduce(buffer, group=group)
                study.sync()
            own_s = time.perf_counter() - begin if buffer is not None else 0.0
            return study.ranks.maximum(own_s)[0]

        first_s = step()
        points += [(float(size), step()) for _ in range(_times(first_s))] or [
            (float(size), first_s)
        ]
        if first_s > SIZE_S:  # larger ones would take longer still, and three sizes make a fit
            break
    if is_member:
        dist.destroy_process_group(group)
    medians = [(size, median(s for each, s in points if each == size)) for size in
               dict.fromkeys(size for size, _ in points)]  # fmt: skip
    return fit("all-reduce", len(chosen), medians)


def _times(first_s: float) -> int:
    return max(0, min(REPETITIONS, int(SIZE_S / max(first_s, 1e-6))))


def blame_hosts(study: Study, budget_s: float) -> Blame | None:
    """Whom the pair probe blames; None where there are too few hosts to tell one from the others."""
    if len(set(study.hosts)) < LEAST_HOSTS:
        return None
    probe = pairs(Context(study.ranks.device, study.ranks), bytes=PROBE_BYTES)
    assert isinstance(probe, Procedure)
    found = probe.run(budget_s)
    assert isinstance(found, dict)
    _check_together(study, probe)
    probes = [
        Probe(link_name(name, study.hosts), "", median(rates), max(rates))
        for name, of in found.items()
        if (rates := list(of["bandwidth"]))
    ]
    return blame_links(probes)


def _check_together(study: Study, probe: Procedure) -> None:
    """Wrong bytes on any rank stop all of them."""
    problem = None
    try:
        probe.check()
    except WrongResult as error:
        problem = str(error)
    if problems := list(filter(None, study.ranks.share(problem))):
        raise WrongResult(problems[0])
