"""The scaling law: fitted on few simulated ranks it predicts more of them, and knows when it cannot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from hakaru.measure.collective._fit import Fit
from hakaru.measure.statistics import median_interval
from hakaru.measure.training._fit_law import fit_law
from hakaru.measure.training._law import (
    Law,
    Point,
    Prediction,
    Profile,
    Refusal,
    Scaling,
    busy_part,
    latest_of,
)
from tests.measure.training._simulated import Job

BUCKET = 4 << 20
SIZES = (1, 2, 3, 4, 8, 16)


@dataclass(frozen=True)
class Machine:
    """A simulated cluster or, with cores, one machine whose namespaces play hosts."""

    alpha_s: float
    beta_s: float
    cores: int | None = None
    slowdown: float = 0.0
    fixed_s: float = 0.02
    sample_s: float = 0.002
    noise: float = 0.02

    def sent_s(self, ranks: int) -> float:
        return 2 * (ranks - 1) * (self.alpha_s + self.beta_s * BUCKET / ranks)

    def point(self, ranks: int, scaling: Scaling, hosts: int | None = None) -> Point:
        batch = 240 if scaling == "strong" else 60 * ranks
        shared = ranks if self.cores else 1
        longer = max(1.0, shared / self.cores) if self.cores else 1.0
        longer *= 1 + self.slowdown * busy_part(shared, self.cores)
        work = (self.fixed_s + self.sample_s * math.ceil(batch / ranks)) * longer
        job = Job(
            ranks=ranks, steps=20, noise=self.noise, seed=ranks, data_s=0.02 * work,
            forward_s=0.3 * work, backward_s=0.68 * work, optimiser_s=0.01 * longer,
            bucket_s=self.sent_s(ranks),
        )  # fmt: skip
        table = replace(job.table(), bucket_bytes=(BUCKET,) * job.buckets)
        step = median_interval(job.steps_s)
        return Point(
            ranks, hosts or ranks, batch, step, Profile.of(table), 1 if self.cores else None
        )

    def points(self, scaling: Scaling, sizes: Sequence[int] = SIZES) -> dict[int, Point]:
        return {ranks: self.point(ranks, scaling) for ranks in sizes}

    @property
    def fit(self) -> Fit:
        """What the benchmark of all-reduce says of two ranks."""
        return Fit("all-reduce", 2, 2 * self.alpha_s, self.beta_s, 0.02)


COMPUTE_BOUND = Machine(1e-5, 1e-11)
OVERLAPPING = Machine(1e-3, 4e-9)
COMMUNICATION_BOUND = Machine(1e-3, 2e-8)
START_UP_BOUND = Machine(5e-3, 1e-9)
ALL = (COMPUTE_BOUND, OVERLAPPING, COMMUNICATION_BOUND, START_UP_BOUND)


def law_of(points: dict[int, Point], on: Sequence[int], scaling: Scaling, **options: object) -> Law:
    law = fit_law([points[each] for each in on], scaling, **options)  # type: ignore[arg-type]
    assert isinstance(law, Law), law
    return law


def predicted(law: Law, point: Point) -> Prediction:
    found = law.predict(point.ranks, point.hosts, point.machines)
    assert isinstance(found, Prediction), found
    return found


@pytest.mark.parametrize("scaling", ["weak", "strong"])
@pytest.mark.parametrize("machine", ALL)
def test_one_and_two_ranks_predict_more(machine: Machine, scaling: Scaling) -> None:
    points = machine.points(scaling)
    law = law_of(points, (1, 2), scaling, between=machine.fit)
    assert law.fitted_on == (1, 2)
    for ranks in (3, 4, 8, 16):
        true = points[ranks].step_s.median
        found = predicted(law, points[ranks])
        assert found.step_s == pytest.approx(true, rel=0.03)
        assert found.low_s < true < found.high_s


@pytest.mark.parametrize("machine", [replace(each, cores=2) for each in ALL])
def test_ranks_that_share_cores_compute_longer(machine: Machine) -> None:
    """Namespaces play hosts: links between them, and one machine's cores for all of them."""
    for slowdown in (0.0, 0.2):
        points = replace(machine, slowdown=slowdown).points("weak")
        law = law_of(points, (1, 2), "weak", between=machine.fit, cores=2)
        assert law.work.slowdown == pytest.approx(slowdown, abs=0.03)
        for ranks in (3, 4, 8):
            assert predicted(law, points[ranks]).step_s == pytest.approx(
                points[ranks].step_s.median, rel=0.03
            )


def test_threads_share_cores_too() -> None:
    points = replace(COMPUTE_BOUND, cores=2).points("weak", (1, 2, 4))
    law = law_of(points, (1, 2), "weak", between=COMPUTE_BOUND.fit, cores=8, threads=4)
    assert predicted(law, points[4]).step_s == pytest.approx(points[4].step_s.median, rel=0.03)


def test_strong_scaling_on_shared_cores_keeps_what_two_sizes_cannot_tell() -> None:
    """A fixed part of the work or slower neighbours: the interval has both, more sizes decide."""
    machine = replace(OVERLAPPING, cores=2, slowdown=0.2)
    points = machine.points("strong")
    unsure = law_of(points, (1, 2), "strong", between=machine.fit, cores=2)
    sure = law_of(points, (1, 2, 3), "strong", between=machine.fit, cores=2)
    alone = [replace(machine, cores=None).point(1, "strong")]
    halves = replace(alone[0], batch=120, profile=_profile(machine, 120))
    told = law_of(points, (1, 2), "strong", between=machine.fit, cores=2, alone=[halves])
    for ranks in (4, 8):
        true, wide = points[ranks].step_s.median, predicted(unsure, points[ranks])
        assert wide.low_s < true < wide.high_s
        for law in (sure, told):
            found = predicted(law, points[ranks])
            assert found.step_s == pytest.approx(true, rel=0.03)
            assert found.high_s - found.low_s < 0.7 * (wide.high_s - wide.low_s)


def _profile(machine: Machine, batch: int) -> Profile:
    """Of one rank alone."""
    work = machine.fixed_s + machine.sample_s * batch
    return Profile(work, 0.01, (), (), (), 0.0)


@pytest.mark.parametrize("machine", ALL)
def test_without_a_fit_of_all_reduce_the_buckets_tell(machine: Machine) -> None:
    points = machine.points("weak")
    law = law_of(points, (1, 2, 3), "weak")
    for ranks in (4, 8, 16):
        found = predicted(law, points[ranks])
        assert found.step_s == pytest.approx(points[ranks].step_s.median, rel=0.04)
    # one size cannot tell start-up from bytes: the interval has both
    law = law_of(points, (1, 2), "weak")
    for ranks in (4, 8, 16):
        found = predicted(law, points[ranks])
        assert found.low_s < points[ranks].step_s.median < found.high_s


def test_measured_buckets_correct_the_fit_of_all_reduce() -> None:
    """Communication beside compute takes longer than by itself."""
    points = COMMUNICATION_BOUND.points("weak")
    fit = Fit("all-reduce", 2, COMMUNICATION_BOUND.alpha_s, COMMUNICATION_BOUND.beta_s / 2, 0.02)
    law = law_of(points, (1, 2), "weak", between=fit)
    for ranks in (4, 8):
        assert predicted(law, points[ranks]).step_s == pytest.approx(
            points[ranks].step_s.median, rel=0.03
        )


def test_several_sizes_correct_what_the_parts_miss() -> None:
    """Steps of several ranks are longer than their parts: a tenth, always."""
    points = {
        ranks: point if ranks == 1 else replace(point, step_s=_longer(point, 1.1))
        for ranks, point in OVERLAPPING.points("weak").items()
    }
    law = law_of(points, (1, 2, 3), "weak", between=OVERLAPPING.fit)
    assert law.residual == pytest.approx(1.1, rel=0.01)
    assert predicted(law, points[8]).step_s == pytest.approx(points[8].step_s.median, rel=0.03)
    assert law_of(points, (1, 2), "weak", between=OVERLAPPING.fit).residual == 1.0


def _longer(point: Point, times: float):  # type: ignore[no-untyped-def]
    return median_interval([point.step_s.median * times] * 6)


def test_the_slowest_link_rules() -> None:
    """Inside a host and between hosts each have their α and β."""
    points = OVERLAPPING.points("weak", (1, 2))
    inside = replace(points[2], hosts=1, machines=None)
    slow = Fit("all-reduce", 2, 0.02, 1e-7, 0.02)
    law = law_of({1: points[1], 2: inside}, (1, 2), "weak", inside=OVERLAPPING.fit, between=slow)
    near, far = law.predict(4, 1), law.predict(4, 2)
    assert isinstance(near, Prediction) and isinstance(far, Prediction)
    assert far.step_s > 1.5 * near.step_s
    assert far.exposed_s > near.exposed_s


def test_the_error_on_sizes_held_out_is_stated() -> None:
    points = OVERLAPPING.points("weak")
    options = {"between": OVERLAPPING.fit}
    assert law_of(points, (1, 2), "weak", **options).held_out_error is None
    law = law_of(points, (1, 2, 3, 4), "weak", **options)
    assert law.held_out_error is not None and 0 < law.held_out_error < 0.02
    assert law.error_on([points[8], points[16]]) == pytest.approx(0.0, abs=0.02)
    # what does not follow the law is missed, and the interval is as wide
    odd = points | {3: replace(points[3], step_s=_longer(points[3], 2.0))}
    law = law_of(odd, (1, 2, 3), "weak", **options)
    assert law.held_out_error is not None and law.held_out_error > 0.2
    found = predicted(law, points[4])
    assert found.high_s - found.low_s > 0.4 * found.step_s


def test_far_predictions_are_less_sure() -> None:
    points = OVERLAPPING.points("weak", (1, 2))
    law = law_of(points, (1, 2), "weak", between=OVERLAPPING.fit)
    near, far = law.predict(2, 2), law.predict(64, 64)
    assert isinstance(near, Prediction) and isinstance(far, Prediction)
    assert (far.high_s - far.low_s) / far.step_s > 2 * (near.high_s - near.low_s) / near.step_s


def test_what_cannot_be_predicted_is_refused_with_a_reason() -> None:
    points = OVERLAPPING.points("strong", (1, 2))
    apart = [points[1], points[2]]

    def reason(found: object) -> str:
        assert isinstance(found, Refusal), found
        return found.reason

    assert "one rank alone was not measured" in reason(fit_law([points[2]], "strong"))
    bare = [
        replace(each, profile=replace(each.profile, bucket_bytes=(), ready=(), sent_s=()))
        for each in apart
    ]
    assert "no gradient buckets" in reason(fit_law(bare, "strong"))
    law = law_of(points, (1, 2), "strong", between=OVERLAPPING.fit)
    assert "the link inside a host is unknown" in reason(law.predict(2, 1))
    assert "cannot be spread over 4 hosts" in reason(law.predict(2, 4))
    assert "too small for 300 ranks" in reason(law.predict(300, 300))
    assert law.document(300, 300) is None
    one = fit_law([points[1]], "strong")
    assert isinstance(one, Law)
    assert "the link between hosts is unknown" in reason(one.predict(2, 2))
    # a fit that misses its own sizes tells nothing
    poor = replace(OVERLAPPING.fit, error=0.4)
    one = fit_law([points[1]], "strong", between=poor)
    assert isinstance(one, Law)
    assert "the link between hosts is unknown" in reason(one.predict(2, 2))


def test_the_document_that_is_stored_with_a_row() -> None:
    points = OVERLAPPING.points("weak")
    law = law_of(points, (1, 2), "weak", between=OVERLAPPING.fit)
    found = law.document(4, 4)
    assert found is not None
    assert found["fitted_on"] == [1, 2] and found["held_out_error"] is None
    assert found["low_ms"] < found["predicted_step_ms"] < found["high_ms"]
    assert found["sentence"].startswith("Fitted on 1 and 2 ranks, the model predicts ")
    assert " a step on 4 ranks (" in found["sentence"]
    assert found["sentence"].endswith("; no size was held out to test it.")


def test_the_last_of_many_ranks_is_later() -> None:
    """Expected greatest of n normal numbers: 0.56, 1.03 and 1.77 for 2, 4 and 16."""
    assert latest_of(1) == 0.0
    for ranks, deviations in ((2, 0.564), (4, 1.029), (16, 1.766)):
        assert latest_of(ranks) == pytest.approx(deviations, rel=0.05)


def test_the_jitter_of_ranks_is_read_from_their_steps() -> None:
    work = Job(ranks=8, steps=200, noise=0.05)
    # data, forward and four buckets draw their noise apart
    parts = (0.01, 0.1, *([0.25 / 4] * 4))
    expected = 0.05 * math.sqrt(sum(each**2 for each in parts)) / sum(parts)
    assert Profile.of(work.table()).jitter == pytest.approx(expected, rel=0.15)
    assert Profile.of(Job(ranks=1).table()).jitter == 0.0
