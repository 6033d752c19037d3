"""Predictions of the strategies worked by hand, what is chosen, and what is said where nothing fits."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
import torch
from torch import nn

from hakaru.errors import HakaruError
from hakaru.measure.networks import load
from hakaru.measure.networks.workload import Workload
from hakaru.measure.partition.cost import Machine
from hakaru.measure.partition.document import Asked, Candidate, document_of
from hakaru.measure.partition.graph import Graph, Node
from hakaru.measure.partition.plan import choose, plan
from hakaru.measure.partition.scaled import Scaled
from hakaru.measure.partition.strategies import Network, candidates
from tests.measure.partition._graphs import chain
from tests.measure.partition._networks import Gated, Row, SmallTransformer

MB = 10**6


def network(graph: Graph, samples: int = 1, splittable: Sequence[str] = ()) -> Network:
    return Network(Scaled(graph, samples, graph, samples), lambda ranks: splittable, [])


def asked(devices: int, memory: int | None, batch: int = 8, link: float = 1e9) -> Asked:
    return Asked("net", devices, batch, Machine(memory, link), {})


def by_name(found: Sequence[Candidate]) -> dict[str, Candidate]:
    return {each.strategy: each for each in found}


def test_all_strategies_of_four_devices() -> None:
    found = candidates(asked(4, None), network(chain(1, 1, 1, 1)))
    assert [each.strategy for each in found] == [
        "ddp", "fsdp", "tensor", "1f1b", "gpipe", "ddp2+fsdp2", "ddp2+tensor2", "ddp2+1f1b2", "ddp2+gpipe2",
    ]  # fmt: skip
    assert [each.strategy for each in candidates(asked(1, None), network(chain(1)))] == ["single"]


def test_every_strategy_is_one_that_trains() -> None:
    from hakaru.measure.training._strategy import Strategy

    for devices in (1, 2, 4, 6):
        for each in candidates(asked(devices, None, 24), network(chain(*[1.0] * 6))):
            strategy = Strategy.parse(each.strategy)
            assert strategy.fits(devices) is None
            assert each.data == (strategy.data_ranks(devices))


def test_memory_by_hand() -> None:
    """4 nodes of 10 MB of parameters and 1 MB of activations a sample; values have no size."""
    graph = chain(1, 1, 1, 1, num_bytes=0, parameters=10 * MB, saved=MB)
    found = by_name(candidates(asked(4, None, batch=8), network(graph, splittable=[""])))
    assert found["ddp"].memory_bytes == 3 * 40 * MB + 2 * 4 * MB  # with buckets; 2 samples each
    assert found["fsdp"].memory_bytes == 2 * 10 * MB + 2 * 40 * MB + 2 * 4 * MB  # one block
    assert found["tensor"].memory_bytes == 2 * 10 * MB + 8 * 4 * MB  # all layers split, all samples
    # as many micro-batches as stages or more: the first stage keeps 4 of them
    assert found["1f1b"].microbatches == 8
    assert found["1f1b"].memory_bytes == 2 * 10 * MB + 4 * MB
    assert found["gpipe"].memory_bytes == 2 * 10 * MB + 8 * MB


def test_time_by_hand() -> None:
    """A sample takes 1 s forward and 2 s backward; parameters of 50 MiB go over 10 MiB/s."""
    graph = Graph((Node("n", 1.0, 2.0, 0, 50 << 20),))
    slow = by_name(candidates(asked(2, None, batch=2, link=10 * 2**20), network(graph)))
    # the all-reduce takes 5 s: half of it is the last bucket, the rest hides behind the backward
    assert slow["ddp"].step_s == pytest.approx(1 + 2.5 + 2.5)
    assert slow["fsdp"].step_s == pytest.approx(3 + 3 * 2.5)


def test_tied_network_has_no_pipeline_but_other_plans() -> None:
    def make() -> nn.Module:
        return SmallTransformer(tied=True)

    def batch_of(num: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        text = torch.randint(50, (num, 8))
        return text, text

    workload = Workload("tied", make, batch_of, lambda output, target: output.sum(), "sum", 0.1, 4)
    found = plan(workload, 2, None)
    rows = {each["strategy"]: each for each in found["candidates"]}
    assert not rows["1f1b"]["fits"]
    assert "weight is used more than once" in rows["1f1b"]["why"]
    assert rows["1f1b"]["step_ms"] is None
    assert rows["ddp"]["fits"]
    assert found["chosen"]["strategy"] in {name for name, each in rows.items() if each["fits"]}


def candidate(strategy: str, step_s: float | None, memory: int = 1, fits: bool = True) -> Candidate:
    return Candidate(strategy, fits, "", step_s, memory)


def test_fastest_that_fits_is_chosen() -> None:
    tried = [candidate("ddp", 1.0, fits=False), candidate("fsdp", 3.0), candidate("1f1b", 2.0)]
    assert choose(asked(4, None), tried).strategy == "1f1b"


def test_simplest_of_nearly_equal_plans_is_chosen() -> None:
    tried = [candidate("ddp", 1.04), candidate("tensor", 1.0), candidate("1f1b", 1.2)]
    assert choose(asked(4, None), tried).strategy == "ddp"


def test_nothing_fits() -> None:
    tried = [candidate("ddp", 1.0, 40 << 30, False), candidate("1f1b", 2.0, 18 << 30, False)]
    with pytest.raises(HakaruError) as refused:
        choose(asked(4, 16 << 30), tried)
    assert str(refused.value) == (
        "net: no plan fits in 16.0 GiB on 4 devices with a batch of 8: the smallest, 1f1b, needs 18.0 GiB"
        " on the fullest device; use devices with 20.0 GiB, more devices, or a smaller batch (--batch)"
    )


def test_batch_that_does_not_divide() -> None:
    with pytest.raises(HakaruError) as refused:
        candidates_of = candidates(asked(4, None, batch=3), network(chain(1, 1, 1, 1)))
        choose(asked(4, None, batch=3), candidates_of)
    assert "a batch of 3 samples does not divide into 4 parts" in str(refused.value)


def test_between_two_measured_sizes() -> None:
    small, large = chain(1, 1, num_bytes=100, saved=10), chain(4, 4, num_bytes=400, saved=40)
    scaled = Scaled(small, 2, large, 8)
    assert scaled.of(2).nodes == small.nodes
    assert scaled.of(8).nodes == large.nodes
    assert scaled.of(4).seconds == pytest.approx(2 * 2.0)
    assert scaled.of(16).nodes[0].output_bytes == 800
    assert Scaled(large, 8, large, 8).of(2).seconds == pytest.approx(2.0)


def test_plan_of_a_network() -> None:
    found = plan(load("mlp", hidden=32, layers=6, batch=8), 4, 1 << 30, link=2e9)
    assert json.loads(json.dumps(found)) == found
    assert found["model"] == "mlp"
    assert found["batch"] == 32
    assert found["memory_bytes"] == 1 << 30
    assert len(found["candidates"]) == 9
    assert all(each["fits"] for each in found["candidates"])
    chosen = found["chosen"]
    assert chosen["why"].endswith("with links of 2 GB/s")
    assert len(found["stages"]) == chosen["stages"] == len(found["cuts"]) + 1
    assert sum(each["parameters"] for each in found["stages"]) == 6 * (32 * 32 + 32)
    assert found["sentence"].startswith(f"mlp on 4 devices: {chosen['strategy']}")
    assert plan(load("mlp", hidden=32, layers=6), 1, None)["chosen"]["strategy"] == "single"


def test_plan_that_needs_a_pipeline() -> None:
    """Weights, gradients and buckets do not fit one device; two stages do."""
    workload = load("mlp", hidden=64, layers=8, batch=8)
    parameters = 4 * 8 * (64 * 64 + 64)
    found = plan(workload, 2, int(1.9 * parameters))
    rows = {each["strategy"]: each for each in found["candidates"]}
    assert not rows["ddp"]["fits"]
    assert "over 90 % of" in rows["ddp"]["why"]
    assert rows["1f1b"]["fits"]
    for name, each in rows.items():
        assert each["fits"] == (each["memory_bytes"] <= 0.9 * found["memory_bytes"]), name
    with pytest.raises(HakaruError, match=r"no plan fits in 1\.0 KiB on 2 devices"):
        plan(workload, 2, 1024)


def test_network_that_cannot_be_traced() -> None:
    def batch_of(num: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(num, 4), torch.randn(num, 4)

    workload = Workload(
        "gated", Gated, batch_of, lambda output, target: output.sum(), "sum", 0.1, 4
    )
    with pytest.raises(HakaruError, match=r"Gated cannot be traced: gate \(.*torch.where"):
        plan(workload, 2, None)


def test_device_that_is_not_there() -> None:
    workload = Workload(
        "row", Row, lambda num, seed: (torch.randn(num, 16), None), sum, "sum", 0.1, 4
    )
    with pytest.raises(HakaruError, match="is no device; write cpu"):
        plan(workload, 2, None, device="gpu0")
    with pytest.raises(HakaruError, match="GPUs here; write cpu"):
        plan(workload, 2, None, device="cuda:99")


def test_document_of_a_plan_without_cuts() -> None:
    graph = chain(1, 1)
    whole = Candidate("ddp", True, "", 2.0, 1000, graph=graph)
    found = document_of(asked(2, None), whole, "it fits", [whole])
    assert found["cuts"] == []
    assert len(found["stages"]) == 1
    assert found["stages"][0]["memory_bytes"] == 1000
