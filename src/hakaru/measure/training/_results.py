"""What the benchmarks of training have in common: their quantities, and a variant's rows."""

from __future__ import annotations

from hakaru.measure._base import Quantity
from hakaru.measure.statistics import Floats
from hakaru.measure.training._study import Member, Variant
from hakaru.measure.training._table import StepTable

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


def exposed_s(table: StepTable) -> Floats:
    """Of each step: from when the last rank is ready until the gradients are there.

    Without buckets it is what the rank waits that waits least: the others wait for that one too.
    """
    if not table.has_buckets:
        least: Floats = table.waited.min(axis=1)
        return least
    tail: Floats = table.backward.max(axis=1) - table.ready[:, :, -1].max(axis=1)
    return tail


def parameters_of(variant: Variant) -> dict[str, int | str]:
    """What tells it from the other variants; parts that a batch is not divided into are not named."""
    found: dict[str, int | str] = {
        "strategy": variant.strategy,
        "compression": variant.compression,
        "batch": variant.batch,
        "ranks": variant.num_ranks,
    }
    if variant.accumulate > 1:
        found["accumulate"] = variant.accumulate
    if variant.microbatches:
        found["microbatches"] = variant.microbatches
    return found
