"""What the benchmarks of training have in common: their quantities, and a variant's rows."""

from __future__ import annotations

from hakaru.measure._base import Part, Quantity
from hakaru.measure.training._parts import exposed_s
from hakaru.measure.training._study import Member, Variant
from hakaru.measure.training._table import StepTable
from hakaru.measure.verdict import Verdict

THROUGHPUT = Quantity("throughput", "samples/s", "higher", "Throughput")
STEP = Quantity("step", "ms", "lower", "Step")
EXPOSED = Quantity("exposed", "ms", "lower", "Exposed communication")
LEAST_MS = 1e-6  # what the clock can tell: less than this is no time at all
MODEL_HELP = (
    "mlp (RaNNC's tutorial), resnet50, inception-v3, vgg16, alexnet, transformer, or your own as "
    "package.module:factory; sizes follow an @, as in resnet50@image=64+classes=10."
)


def samples_of(member: Member, table: StepTable) -> dict[str, list[float]]:
    """The quantities that every variant has; what one rank alone has no use for is left out."""
    found = {
        "throughput": [member.variant.batch / seconds for seconds in member.seconds],
        "step": [seconds * 1e3 for seconds in member.seconds],
    }
    if member.variant.num_ranks > 1:
        found["exposed"] = [max(float(each) * 1e3, LEAST_MS) for each in exposed_s(table)]
    return found


def parameters_of(variant: Variant) -> dict[str, int | str]:
    """What tells it from the other variants of the study."""
    found: dict[str, int | str] = {
        "strategy": variant.strategy,
        "compression": variant.compression,
        "batch": variant.batch,
        "ranks": variant.num_ranks,
    }
    if variant.accumulate > 1:
        found["accumulate"] = variant.accumulate
    return found


def not_measured(variant: Variant, reason: str) -> Part:
    parameters = parameters_of(variant)
    return Part({"throughput": []}, parameters, verdict=Verdict.NOT_MEASURED, reason=reason)
