"""What the benchmarks of training say and store: sizes, batches, gaps of losses, and the fastest strategy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.measure._base import Part, load_all
from hakaru.measure.training import scaling, strategies
from hakaru.measure.training._results import parameters_of
from hakaru.measure.training._study import Variant, _load_together, sizes_to_try
from hakaru.measure.training.strategies import Gap, Reference, largest_gap, verdict_of
from hakaru.measure.verdict import Verdict


@pytest.mark.parametrize(
    ("hosts", "sizes"),
    [
        (["a"], [1]),
        (["a"] * 4, [1, 2, 3, 4]),
        (["a"] * 8, [1, 2, 3, 4, 8]),
        (["a"] * 6, [1, 2, 3, 4, 6]),
        (["a", "b", "c", "d"], [1, 2, 3, 4]),
        (["a", "a", "b", "b"], [1, 2, 4]),
        ([f"n{at}" for at in range(16) for _ in range(8)],
         [1, 2, 3, 4, 8, 16, 24, 32, 64, 128]),
        (["a", "a", "b"], [1, 2, 3]),
    ],
)  # fmt: skip
def test_sizes_are_few_and_of_whole_hosts(hosts: list[str], sizes: list[int]) -> None:
    assert sizes_to_try(hosts) == sizes


def study(num_ranks: int = 4, batch: int = 64) -> Any:
    return SimpleNamespace(
        hosts=["a"] * num_ranks, workload=SimpleNamespace(batch=batch), ranks=SimpleNamespace(size=num_ranks)
    )  # fmt: skip


def test_a_batch_of_strong_scaling_is_one_that_all_sizes_share_equally() -> None:
    found = scaling._variants(study(), [1, 2, 3, 4], "strong", "ddp", "fp16", 0)
    assert {each.batch for each in found} == {72}
    assert [(each.num_ranks, each.compression) for each in found] == [
        (1, "none"), (2, "none"), (3, "none"), (4, "none"), (4, "fp16"),
    ]  # fmt: skip
    assert [each.strategy for each in found] == ["single", "ddp", "ddp", "ddp", "ddp"]
    assert scaling._alone(found, "strong") == [Variant("single", 1, 18)]
    assert scaling._alone(found, "weak") == []


def test_weak_scaling_gives_each_rank_as_many() -> None:
    found = scaling._variants(study(), [1, 2, 4], "weak", "ddp", "none", 8)
    assert [each.batch for each in found] == [8, 16, 32]


def test_a_batch_that_would_grow_too_much_stays() -> None:
    assert scaling._divisible(4, [1, 7, 11]) == 4


@pytest.mark.parametrize("sizes", ["3+x", "5", "0", "1,2", ""])
def test_wrong_sizes_are_refused_with_what_there_is(sizes: str) -> None:
    with pytest.raises(HakaruError, match="of 4 at most"):
        scaling._counts(sizes, study())


def test_efficiency_compares_what_took_turns_in_the_same_round() -> None:
    one = SimpleNamespace(variant=Variant("single", 1, 10), seconds=[1.0, 2.0])
    two = SimpleNamespace(variant=Variant("ddp", 2, 20), seconds=[2.0, 2.0])
    assert scaling._efficiency(two, one) == [0.5, 1.0]


def test_parameters_name_only_parts_that_a_batch_is_divided_into() -> None:
    assert "accumulate" not in parameters_of(Variant("ddp", 2, 8))
    assert parameters_of(Variant("ddp", 2, 8, accumulate=4))["accumulate"] == 4


@pytest.mark.parametrize(
    ("own", "wanted", "gap"),
    [([1.0, 2.0], [1.0, 2.0], 0.0), ([1.1, 2.0], [1e-9, 2.0], 0.55), ([math.nan], [1.0], math.inf)],
)
def test_the_largest_gap_counts_and_what_is_no_number_is_infinitely_far(
    own: list[float], wanted: list[float], gap: float
) -> None:
    assert largest_gap(own, wanted) == pytest.approx(gap)


@pytest.mark.parametrize(
    ("gap", "verdict", "words"),
    [
        (Gap(9e-6, 1e-5), None, "within 9e-06 of them"),
        (Gap(2e-5, 1e-5), Verdict.FAILED, "2e-05 of them; 1e-05 is allowed"),
        (Gap(4e-3, 1e-5, rounding=5e-4), None, "rounding alone moves them by 0.0005"),
        (Gap(6e-3, 1e-5, rounding=5e-4), Verdict.FAILED, "6e-03 of them; 5e-03 is allowed"),
        (Gap(5e-3, 1e-5, rounding=5e-3), Verdict.NOT_MEASURED, "rounding alone moves them by 0.005"),
        (Gap(0.9, 1e-5, rounding=math.inf), Verdict.FAILED, "1e-02 is allowed"),
        (Gap(math.inf, 1e-5), Verdict.FAILED, "inf of them"),
        (Gap(math.nan, 1e-5), Verdict.FAILED, "nan of them"),
        (Gap(math.nan, 1e-5, problem="no memory"), Verdict.NOT_MEASURED, "no memory"),
    ],
)  # fmt: skip
def test_losses_must_be_those_of_one_process_and_what_was_not_compared_is_never_good(
    gap: Gap, verdict: Verdict | None, words: str
) -> None:
    assert gap.verdict is verdict
    assert words.replace("6e-03", "0.006").replace("5e-03 is", "5e-03 is") in gap.sentence


@dataclass
class Members:
    """A study whose single processes have these losses, by the number of parts of a batch."""

    losses: dict[int, list[float]]
    shaken: list[float]
    device: str = "cpu"
    begun: list[tuple[int, bool]] = field(default_factory=list)
    workload: Any = field(default_factory=lambda: _workload())

    def begin(self, variant: Variant, workload: Any) -> Any:
        is_shaken = workload is not self.workload
        self.begun.append((variant.accumulate, is_shaken))
        return SimpleNamespace(losses=self.shaken if is_shaken else self.losses[variant.accumulate])

    def close(self, *members: Any) -> None:
        return


def _workload() -> Any:
    from hakaru.measure.networks import load

    return load("mlp@hidden=8+layers=1")


def member(losses: list[float], strategy: str = "ddp", **more: Any) -> Any:
    return SimpleNamespace(
        losses=losses, trainer=SimpleNamespace(facts={}), variant=Variant(strategy, 2, 8, **more)
    )


def test_one_process_is_asked_once_and_rounding_only_where_losses_differ() -> None:
    members = Members({1: [1.0, 2.0]}, [1.0, 2.0002])
    reference = Reference(members)  # type: ignore[arg-type]
    assert reference.gap(member([1.0, 2.0])).verdict is None
    assert reference.gap(member([1.0, 2.000001])).verdict is None
    assert members.begun == [(1, False)]
    near, far = reference.gap(member([1.0, 2.001])), reference.gap(member([1.0, 2.1]))
    assert near.verdict is None and far.verdict is Verdict.FAILED
    assert members.begun == [(1, False), (1, True)]


def test_with_batch_norm_the_reference_takes_the_same_parts_of_a_batch() -> None:
    members = Members({8: [1.0]}, [])
    reference = Reference(members)  # type: ignore[arg-type]
    reference.has_batch_norm = True
    variant = Variant("ddp2+1f1b2", 4, 32, microbatches=4)
    assert (
        reference.gap(
            SimpleNamespace(losses=[1.0], trainer=SimpleNamespace(facts={}), variant=variant)
        ).verdict
        is None
    )
    assert members.begun == [(8, False)]


def part(strategy: str, rates: list[float], verdict: Verdict | None = None) -> Part:
    return Part({"throughput": rates}, {"strategy": strategy, "ranks": 2}, verdict=verdict)


def test_the_fastest_strategy_is_named_only_as_surely_as_it_was_measured() -> None:
    fast, slow = part("ddp", [100.0, 101.0, 99.0] * 3), part("fsdp", [80.0, 81.0, 79.0] * 3)
    assert verdict_of([fast, slow]) == (
        "ddp is the fastest on 2 ranks with 100 samples/s, 25.0 % ahead of fsdp."
    )
    close = part("tensor", [95.0, 105.0, 100.0] * 3)
    assert "with no sure difference to tensor" in verdict_of([fast, close, slow])
    wrong = part("gpipe", [500.0] * 9, Verdict.FAILED)
    assert verdict_of([wrong, slow]).startswith("fsdp is the fastest")
    assert verdict_of([wrong]) == "No strategy was seen to learn what one process does."


def test_every_strategy_that_fits_is_compared() -> None:
    assert strategies.strategies_for(2) == ["ddp", "fsdp", "tensor", "gpipe", "1f1b"]
    assert {"ddp2+1f1b", "ddp2+fsdp", "ddp2+tensor"} < set(strategies.strategies_for(4))


def test_a_network_that_one_host_lacks_stops_all_with_its_name() -> None:
    @dataclass
    class Other:
        """Another rank, on whose host the module is missing."""

        def share(self, value: Any) -> list[Any]:
            return [value, "n2: nothing:make: there is no module 'nothing'"]

    with pytest.raises(HakaruError, match="n2: nothing:make"):
        _load_together(Other(), "mlp")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("model", "resnet5", "did you mean resnet50"),
        ("model", "mlp@hidden", "'hidden' is no size"),
        ("strategy", "dpp", "'dpp' is unknown"),
    ],
)
def test_wrong_words_are_refused_before_anything_runs(name: str, value: str, words: str) -> None:
    with pytest.raises(HakaruError, match=words):
        load_all().get("strategies").parse({name: value})
    assert load_all().get("strategies").parse({"strategy": "auto"}) == {"strategy": ["auto"]}
