"""Scaling: a training on more and more ranks, what each part of a step takes, and what is to blame."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from hakaru.errors import HakaruError
from hakaru.measure._base import (
    AUTO,
    NotApplicable,
    Parameter,
    Part,
    Procedure,
    Quantity,
    benchmark,
)
from hakaru.measure.collective._blame import Blame
from hakaru.measure.collective._fit import Fit
from hakaru.measure.context import Context
from hakaru.measure.networks import check_name
from hakaru.measure.protocol import correlation_of
from hakaru.measure.statistics import Interval, median_interval
from hakaru.measure.training._critical import (
    Communication,
    Culprit,
    breakdown_of,
    communication_of,
    culprit_of,
    network_sentence,
)
from hakaru.measure.training._fit_law import fit_law
from hakaru.measure.training._law import Law, Point, Profile
from hakaru.measure.training._network import blame_hosts, fit_all_reduce
from hakaru.measure.training._results import (
    EXPOSED,
    MODEL_HELP,
    STEP,
    THROUGHPUT,
    not_measured,
    parameters_of,
    samples_of,
)
from hakaru.measure.training._study import SINGLE, Member, Study, Variant, sizes_to_try
from hakaru.measure.training._table import StepTable
from hakaru.measure.training._trainer import Compression
from hakaru.measure.training._words import Measured, compression_sentence, scaling_verdict
from hakaru.measure.verdict import Verdict

MOST_GROWN = 4  # a batch of strong scaling is made divisible, and no larger than this many times
PROBE_S = 4.0
LEAST_COST = 0.05  # of a step: a rank that costs less is named, and nothing is slow
FITTED_ON = 2  # the fewest ranks that a law is fitted on, if it then predicts the larger ones
EFFICIENCY = Quantity("efficiency", "of linear", "higher", "Efficiency")
Scaling = Literal["weak", "strong"]


@benchmark(
    "scaling",
    title="Scaling of training",
    answers="Does training scale over ranks and hosts, where does it stop, and what is to blame?",
    family="training",
    scope="ranks",
    reproduces="Flow/RaNNC Fig. 1–2, MN-1 Fig. 4",
    parameters=[
        Parameter(
            "model",
            ("mlp", "resnet50@image=64"),
            MODEL_HELP,
            check=check_name,
            quick=("mlp",),
            on_gpu=("mlp", "resnet50", "transformer"),
        ),
        Parameter(
            "scaling",
            ("weak", "strong"),
            "weak: as many samples for each rank; strong: as many for all ranks together.",
            choices=("weak", "strong"),
        ),
        Parameter(
            "strategy",
            ("ddp",),
            "How it is spread over several ranks.",
            choices=("ddp", "fsdp"),
        ),
        Parameter(
            "compression",
            ("fp16",),
            "Gradients on the wire: fp16 or bf16, measured beside none on all ranks; or none.",
            choices=("none", "fp16", "bf16"),
        ),
        Parameter("batch", (0,), "Samples a step, of a rank if weak, of all if strong; 0: the model's own."),
        Parameter("sizes", (AUTO,), "Numbers of ranks, as 1+2+4; auto: all up to 4, then powers of two.",
            is_word=True),
    ],
    quantities=[THROUGHPUT, STEP, EXPOSED, EFFICIENCY],
    check="All losses of the first steps are numbers.",
    judged="A rank that is late and costs the others time, or a slow host or link, is named and slow.",
)  # fmt: skip
def scaling(
    context: Context, model: str, scaling: Scaling, strategy: str, compression: str, batch: int, sizes: str,
) -> Procedure:  # fmt: skip
    """Takes steps on each number of ranks in turn, on all of them also with compressed gradients."""
    if context.ranks.size < 2:
        raise NotApplicable("scaling takes two ranks or more")
    study = Study(context.ranks, model)  # type: ignore[arg-type]
    counts = _counts(sizes, study)
    variants = _variants(study, counts, scaling, strategy, compression, batch)

    def run(budget_s: float) -> list[Part]:
        try:
            return _run(study, variants, scaling, budget_s)
        finally:
            study.close()

    return Procedure(run)


def _run(
    study: Study, variants: Sequence[Variant], scaling: Scaling, budget_s: float
) -> list[Part]:
    members, left_out = [], []
    for each in variants:
        try:
            members.append(study.begin(each))
        except NotApplicable as reason:
            left_out.append(not_measured(each, str(reason)))
    alone = []
    for each in _alone(variants, scaling):
        with suppress(NotApplicable):  # without it the law knows less
            alone.append(study.begin(each))
    inside, between = _fits(study)
    blame = blame_hosts(study, min(PROBE_S, budget_s / 4))
    study.time_in_turn([*members, *alone], budget_s)
    tables = study.tables([*members, *alone])
    if tables is None:  # rank 0 has them
        return []
    found = [
        _measured(study, each, table, blame)
        for each, table in zip([*members, *alone], tables, strict=True)
    ]
    shares = tuple(each.point for each in found[len(members) :])
    known = Known(scaling, inside, between, study.cores, shares)
    return [*_parts(found[: len(members)], known), *left_out]


def _counts(sizes: str, study: Study) -> list[int]:
    if sizes == AUTO:
        return sizes_to_try(study.hosts)
    words = sizes.split("+")
    if not all(word.isdecimal() and 0 < int(word) <= len(study.hosts) for word in words):
        raise HakaruError(
            f"sizes={sizes!r}: expected numbers of ranks such as 1+2, of {len(study.hosts)} at most"
        )
    return sorted({int(word) for word in words})


def _variants(
    study: Study,
    counts: Sequence[int],
    scaling: Scaling,
    strategy: str,
    compression: str,
    batch: int,
) -> list[Variant]:
    own = batch or study.workload.batch
    whole = own if scaling == "weak" else _divisible(own, counts)
    found = [
        Variant(strategy if num > 1 else SINGLE, num, whole * num if scaling == "weak" else whole)
        for num in counts
    ]
    kind: Compression = "fp16" if compression == "fp16" else "bf16"
    if compression != "none" and counts[-1] > 1:
        found.append(replace(found[-1], compression=kind))
    return found


def _divisible(batch: int, counts: Sequence[int]) -> int:
    """The least batch from this one on that all of these ranks can share equally."""
    common = math.lcm(*counts)
    found = -(-batch // common) * common
    return found if found <= MOST_GROWN * batch else batch


def _alone(variants: Sequence[Variant], scaling: Scaling) -> list[Variant]:
    """One rank with the share that a rank of many has: computing is no straight line in the samples."""
    last = variants[-1]
    share = last.batch // last.num_ranks
    return [Variant(SINGLE, 1, share)] if scaling == "strong" and share < last.batch else []


def _fits(study: Study) -> tuple[Fit | None, Fit | None]:
    """α and β between two ranks of a host, and between two hosts."""
    order, hosts = study.order, study.hosts
    inside = [rank for rank in order if hosts[rank] == hosts[order[0]]][:2]
    other = next((rank for rank in order if hosts[rank] != hosts[order[0]]), None)
    return (
        fit_all_reduce(study, inside) if len(inside) == 2 else None,
        None if other is None else fit_all_reduce(study, [order[0], other]),
    )


@dataclass(frozen=True)
class Known:
    """What the law rests on beside the sizes: all-reduce, the cores of a machine, and single ranks."""

    scaling: Scaling
    inside: Fit | None
    between: Fit | None
    cores: int | None
    alone: tuple[Point, ...]

    def law(self, points: Sequence[Found]) -> Law | None:
        if not points:
            return None
        found = fit_law(
            [each.point for each in points], self.scaling, inside=self.inside, between=self.between,
            cores=self.cores, alone=self.alone,
        )  # fmt: skip
        return found if isinstance(found, Law) else None


@dataclass(frozen=True)
class Found:
    """A variant with what its ranks did."""

    member: Member
    table: StepTable
    breakdown: list[dict[str, Any]]
    culprit: Culprit | None
    communication: Communication
    network: str
    blame: Blame | None
    num_hosts: int
    num_machines: int
    cores: int | None

    @property
    def variant(self) -> Variant:
        return self.member.variant

    @property
    def step_s(self) -> Interval:
        seconds = self.member.seconds
        return median_interval(seconds, correlation=correlation_of(seconds))

    @property
    def throughput(self) -> Interval:
        rates = [self.variant.batch / seconds for seconds in self.member.seconds]
        return median_interval(rates, correlation=correlation_of(rates))

    @property
    def point(self) -> Point:
        return Point(
            self.variant.num_ranks, self.num_hosts, self.variant.batch, self.step_s,
            Profile.of(self.table), self.num_machines,
        )  # fmt: skip

    @property
    def to_blame(self) -> str:
        """What says that the network is; ranks that wait for a core look as if they waited for data."""
        return "" if self.measured.is_crowded else self.network

    @property
    def measured(self) -> Measured:
        return Measured(
            self.variant.num_ranks, self.num_hosts, self.step_s, self.throughput,
            self.communication.exposed_s, self.breakdown, self.culprit, self.cores, self.num_machines,
            self.network,
        )  # fmt: skip


def _measured(study: Study, member: Member, table: StepTable, blame: Blame | None) -> Found:
    hosts, ranks = study.hosts_of(member), member.ranks
    culprit = culprit_of(table, hosts, ranks)
    is_whole = member.variant.num_ranks == study.ranks.size  # whom the pair probe looked at
    network = network_sentence(table, culprit, blame if is_whole else None)
    machines = {study.machines[rank] for rank in ranks}
    return Found(
        member, table, breakdown_of(table, hosts, ranks), culprit, communication_of(table),
        network or "", blame if is_whole and network else None, len(set(hosts)), len(machines),
        study.cores,
    )  # fmt: skip


def _parts(found: Sequence[Found], known: Known) -> list[Part]:
    plain = [each for each in found if each.variant.compression == "none"]
    following = _next(plain, known)
    verdict = _verdict(found, plain, known.scaling, following)
    base = next((each for each in plain if each.variant.num_ranks == 1), None)
    parts = []
    for each in found:
        facts = {
            "breakdown": each.breakdown,
            "culprit": each.culprit.to_json() if each.culprit else None,
            "communication": each.communication.to_json(),
            "law": _law_before(each, plain, known),
            "next": following if each is plain[-1] else None,
            "verdict": verdict,
        }
        samples = samples_of(each.member, each.table)
        if base is not None and each is not base:
            samples["efficiency"] = _efficiency(each.member, base.member)
        bad = _judged(each)
        parameters = parameters_of(each.variant) | {"hosts": each.num_hosts}
        worse, reason = bad or (None, verdict)
        parts.append(Part(samples, parameters, facts=facts, verdict=worse, reason=reason))
    return parts


def _verdict(
    found: Sequence[Found],
    plain: Sequence[Found],
    scaling: Scaling,
    following: Mapping[str, Any] | None,
) -> str:
    """Where it stops and why; the network and late ranks; what compression is worth, and what comes next."""
    said = [scaling_verdict([each.measured for each in plain], scaling)] if plain else []
    last = plain[-1] if plain else None
    more = [] if last is None else [last.culprit.sentence if last.culprit else "", last.to_blame]
    said += [_sentence(each) for each in more if each and each not in said[0]]
    for each in found:
        if each.variant.compression != "none" and last is not None:
            said.append(
                _sentence(
                    compression_sentence(each.variant.compression, last.throughput, each.throughput)
                )
            )
    if following is not None:
        said.append(str(following["sentence"]))
    return " ".join(dict.fromkeys(said))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def _efficiency(member: Member, base: Member) -> list[float]:
    """Of linear, a value a round: both took their turns in it, so that drift meets both alike."""
    own, one = member.variant, base.variant
    return [
        (own.batch / seconds) / (own.num_ranks * one.batch / alone)
        for seconds, alone in zip(member.seconds, base.seconds, strict=True)
    ]


def _law_before(each: Found, plain: Sequence[Found], known: Known) -> dict[str, Any] | None:
    """What the law says of this size when it is fitted on one and two ranks, or fewer than this size has."""
    if each.variant.compression != "none":
        return None
    num = each.variant.num_ranks
    law = known.law(
        [e for e in plain if e.variant.num_ranks < num and e.variant.num_ranks <= FITTED_ON]
    )
    return law.document(num, each.num_hosts, each.num_machines) if law else None


def _next(plain: Sequence[Found], known: Known) -> dict[str, Any] | None:
    """Twice the most ranks that were measured, by the law of all of them, on as many hosts a rank."""
    law = known.law(plain)
    if law is None or (known.cores is None and plain[-1].num_hosts == 1):
        return None  # no host takes twice as many cards
    last, times = plain[-1], 2
    ranks = last.variant.num_ranks * times
    found = law.document(
        ranks,
        last.num_hosts * times if last.num_hosts > 1 else 1,
        last.num_machines * times if last.num_machines > 1 else 1,
    )
    return found and found | {"ranks": ranks}


def _judged(each: Found) -> tuple[Verdict, str] | None:
    """What is wrong: a loss that is no number, a late rank that costs time, or a slow host or link."""
    if not all(map(math.isfinite, each.member.losses)):
        return Verdict.FAILED, f"a loss is no number: {each.member.losses}"
    if each.culprit is not None and each.culprit.cost_s > LEAST_COST * each.culprit.step_s:
        return Verdict.SLOW, each.culprit.sentence
    if each.to_blame and each.blame is not None and (each.blame.hosts or each.blame.links):
        return Verdict.SLOW, each.network
    return None
