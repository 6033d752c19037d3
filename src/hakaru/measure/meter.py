"""What is known of the meter itself: its error in the last self-test, which every measurement carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from hakaru.measure.record import Measurement
from hakaru.measure.verdict import Verdict


@dataclass(frozen=True)
class Meter:
    """`error` is null where it was never tested, or where it was wrong, which `problem` then says."""

    error: float | None = None
    tested_at: str | None = None
    problem: str | None = None
    untested: tuple[str, ...] = ()  # truths that could not be made, or were disturbed

    def applied(self, each: Measurement) -> Measurement:
        """The measurement with the meter's error; what a wrong meter reads is not measured."""
        carried = replace(each, validity=dict(each.validity) | {"meter": asdict(self)})
        if self.problem is None or each.verdict not in (Verdict.GOOD, Verdict.SLOW):
            return carried
        return carried.judged(Verdict.NOT_MEASURED, self.problem)


UNTESTED = Meter()


def meter_at(host: str, tested: Mapping[str, Meter]) -> Meter:
    """The meter of a host by its own self-test; of `n1,n2`, as ranks have it, the worst of them."""
    meters = [tested.get(name, UNTESTED) for name in host.split(",")]
    return max(meters, key=lambda each: (bool(each.problem), each.error is None, each.error or 0.0))
