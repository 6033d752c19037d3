"""Every strategy learns what a single process learns: losses over five steps, on four real ranks."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from hakaru.measure.place import host_name
from tests.measure.training._world import Case, train

USERS = "tests.measure.networks._users"
MLP = {"hidden": 64, "layers": 4, "batch": 16}
CNN = {"image": 32, "width": 8, "blocks": 1, "classes": 10, "groups": 4, "batch": 8}
BATCH_NORM = {"image": 64, "width": 8, "blocks": 1, "classes": 10, "batch": 32}
WORDS = {"hidden": 32, "layers": 4, "length": 8, "words": 64, "batch": 8}
ALEXNET = {"image": 64, "width": 4, "hidden": 16, "classes": 10, "batch": 8}
NETWORKS = {"mlp": MLP, "resnet50": CNN, "transformer": WORDS}
ALONE = ("ddp", "fsdp", "tensor", "gpipe", "1f1b")
COMBINED = ("ddp2+1f1b2", "ddp2+fsdp2", "ddp2+tensor2")

EQUAL = [
    *(Case(name, each, NETWORKS[name]) for name in NETWORKS for each in ALONE + COMBINED),
    *(Case("mlp", each, {}) for each in ALONE),  # the tutorial's sizes
    Case("mlp", "fsdp2+tensor2", MLP),
    Case("resnet50", "ddp2+gpipe2", CNN, {"microbatches": 2}),
    # batch norm sees only its own rank's samples, or those of a micro-batch
    Case("resnet50", "ddp", BATCH_NORM, parts=4),
    Case("resnet50", "fsdp", BATCH_NORM, parts=4),
    Case("resnet50", "tensor", BATCH_NORM),
    Case("resnet50", "gpipe", BATCH_NORM, {"microbatches": 4}, parts=4),
    Case("resnet50", "ddp2+1f1b2", BATCH_NORM, {"microbatches": 2}, parts=4),
    Case("mlp", "ddp", MLP, {"accumulate": 2}),
    Case("resnet50", "ddp", CNN, {"accumulate": 2}),
    Case("transformer", "fsdp", WORDS, {"accumulate": 2}),
    Case("transformer", "single", WORDS, {"accumulate": 4}, ranks=(2,)),
    Case("mlp", "ddp", MLP, ranks=(1, 3)),
    Case("mlp", "1f1b", MLP, ranks=(3, 0)),
    Case("mlp", "ddp", MLP, ranks=(2,)),
    *(Case(f"{USERS}:odd", each, {}) for each in ("ddp", "fsdp", "tensor")),
    Case(f"{USERS}:odd", "fsdp2+tensor2", {}),
    Case(f"{USERS}:two_arguments", "ddp", {"batch": 8}),
    Case(f"{USERS}:classes", "ddp2+fsdp2", {"batch": 8}),
    Case(f"{USERS}:summed", "fsdp", {"batch": 8}),
    *(Case("alexnet", each, ALEXNET, steady=True) for each in ("ddp", "gpipe", "ddp2+tensor2")),
]
COMPRESSED = [
    *(Case("mlp", "ddp", MLP, {"compression": each}) for each in ("fp16", "bf16")),
    *(Case("resnet50", each, CNN, {"compression": "fp16"}) for each in ("ddp", "ddp2+1f1b2")),
    Case("mlp", "fsdp", MLP, {"compression": "fp16"}),
]
REFUSED = [
    (Case("mlp", "ddp2+fsdp2", MLP, {"compression": "fp16"}), "not under both"),
    (Case("mlp", "tensor", MLP, {"compression": "fp16"}), "exchanges no gradients"),
    (Case("mlp", "ddp", {"batch": 6}), "6 samples does not divide into 4 equal parts"),
    (Case("mlp", "ddp3", MLP), "ddp3 takes 3 ranks, not 4"),
    (Case("mlp", "tensor", {"hidden": 7, "batch": 4}, ranks=(0, 2)), "channels divide by 2 ranks"),
    (Case("mlp", "gpipe", MLP, {"microbatches": 3}), "do not divide into 3 micro-batches"),
    (Case("mlp", "1f1b", MLP, {"microbatches": 2}), "4 stages need 4 micro-batches or more"),
    (Case("mlp", "gpipe", {"batch": 3}), "3 samples do not divide into 4 to 32 micro-batches"),
    (Case("mlp", "gpipe", MLP, {"accumulate": 2}), "accumulates over its micro-batches"),
]  # fmt: skip
BREAKING = [
    *(Case("mlp", each, MLP, broken="to RuntimeError") for each in (*ALONE, *COMBINED)),
    Case("mlp", "ddp", MLP, broken="make RuntimeError"),
    Case("mlp", "fsdp", MLP, broken="to OutOfMemoryError"),
    Case("mlp", "gpipe", MLP, broken="make OutOfMemoryError"),
    Case("mlp", "ddp", MLP, ranks=(1, 3), broken="to RuntimeError"),
    Case("mlp", "ddp", MLP, broken="make NotApplicable"),
]
BROKEN = Case(f"{USERS}:fails_on_rank_2", "ddp", {"batch": 8})
DROPPING = Case("alexnet", "ddp", ALEXNET)
EVERY = [*BREAKING, *EQUAL, *COMPRESSED, DROPPING, *(case for case, _ in REFUSED), BROKEN]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    assert len({each.name for each in EVERY}) == len(EVERY)
    return train(EVERY, 4, tmp_path_factory.mktemp("world"))


def apart(losses: list[float], expected: list[float]) -> float:
    """Of the largest: a sum over samples may come near zero, and its terms' rounding does not."""
    size = max(map(abs, expected))
    return max(abs(a - b) / size for a, b in zip(losses, expected, strict=True))


def active(found: dict[str, Any], case: Case) -> list[dict[str, Any]]:
    ranks: list[dict[str, Any]] = found[case.name]["ranks"]
    assert not any("problem" in each for each in ranks), ranks
    return [ranks[at] for at in case.ranks or range(4)]


@pytest.mark.parametrize("case", EQUAL, ids=lambda each: each.name)
def test_losses_are_those_of_a_single_process(found: dict[str, Any], case: Case) -> None:
    single = found[case.name]["single"]
    assert len(set(single)) == 5
    for each in active(found, case):
        assert apart(each["losses"], single) < 1e-5


@pytest.mark.parametrize("case", [*EQUAL, *COMPRESSED, DROPPING], ids=lambda each: each.name)
def test_after_a_reset_the_same_losses_come_again(found: dict[str, Any], case: Case) -> None:
    for each in active(found, case):
        # buckets change after the first step, and with them in which order gradients are summed
        limit = 1e-3 if "compression" in case.options else 1e-6
        assert apart(each["again"], each["losses"]) < limit


@pytest.mark.parametrize("case", EQUAL, ids=lambda each: each.name)
def test_phases_follow_one_another(found: dict[str, Any], case: Case) -> None:
    for each in active(found, case):
        assert len(each["times"]) == 5
        times = each["times"][-1]
        assert each["times"][-2]["optimiser"] <= times["begin"]
        assert times["begin"] < times["data"] < times["forward"] < times["optimiser"]
        assert times["data"] < times["backward"] < times["optimiser"]
        assert 0 <= times["waited"] <= times["backward"] - times["data"]
        assert len(times["ready"]) == len(times["finished"]) == len(times["bucket_bytes"])
        assert bool(times["ready"]) == ("ddp" in case.strategy and "fsdp" not in case.strategy
                                        and len(case.ranks) != 1)  # fmt: skip
        for ready, finished in zip(times["ready"], times["finished"], strict=True):
            assert times["data"] < ready < finished < times["backward"]


def test_waiting_is_counted_where_there_are_no_buckets(found: dict[str, Any]) -> None:
    for strategy in ("fsdp", "tensor", "gpipe", "1f1b", "ddp2+fsdp2"):
        for each in active(found, Case("mlp", strategy, MLP)):
            assert each["times"][-1]["waited"] > 0
    for each in active(found, Case("mlp", "ddp", MLP)):
        assert each["times"][-1]["waited"] == 0


def test_ranks_outside_stay_idle(found: dict[str, Any]) -> None:
    ranks = found[Case("mlp", "ddp", MLP, ranks=(1, 3)).name]["ranks"]
    for at in (0, 2):
        assert all(math.isnan(each) for each in ranks[at]["losses"])
        assert not ranks[at]["times"]


@pytest.mark.parametrize("case", COMPRESSED, ids=lambda each: each.name)
def test_compressed_gradients_are_half_as_many_bytes(found: dict[str, Any], case: Case) -> None:
    single = found[case.name]["single"]
    whole = Case(case.network, case.strategy, case.sizes)
    for each, plain in zip(active(found, case), active(found, whole), strict=True):
        gap = apart(each["losses"], single)
        assert 0 < gap < 0.02
        assert [2 * sent for sent in each["times"][-1]["bucket_bytes"]] == plain["times"][-1][
            "bucket_bytes"
        ]


def test_all_bytes_of_the_gradients_are_counted(found: dict[str, Any]) -> None:
    num_parameters = 10 * (512 * 512 + 512)
    for each in active(found, Case("mlp", "ddp", {})):
        assert sum(each["times"][-1]["bucket_bytes"]) == 4 * num_parameters


@pytest.mark.parametrize(("case", "expected"), REFUSED, ids=lambda each: getattr(each, "name", ""))
def test_what_does_not_fit_says_why_on_all_ranks(
    found: dict[str, Any], case: Case, expected: str
) -> None:
    for each in found[case.name]["ranks"]:
        assert each["kind"] == "NotApplicable"
        assert re.search(expected, each["problem"])


def test_layers_that_cannot_be_split_are_named(found: dict[str, Any]) -> None:
    case = Case(f"{USERS}:odd", "tensor", {})
    whole = [
        "image.1",
        "image.2",
        "image.3",
        "image.4",
        "twice",
        "tied.0",
        "tied.1",
        "attend.out_proj",
    ]
    for each in active(found, case):
        assert each["facts"]["whole"] == whole


def test_a_module_that_fails_on_one_rank_stops_all(found: dict[str, Any]) -> None:
    ranks = found[BROKEN.name]["ranks"]
    assert {each["kind"] for each in ranks} == {"HakaruError"}
    assert len({each["problem"] for each in ranks}) == 1
    assert re.match("rank 2 on .* cannot train: .*no weights on this disk", ranks[0]["problem"])


@pytest.mark.parametrize("case", BREAKING, ids=lambda each: each.name)
def test_what_one_rank_cannot_do_reaches_all_at_once(found: dict[str, Any], case: Case) -> None:
    """And the cases after it, on the same ranks, go on."""
    kind = case.broken.rpartition(" ")[2]
    shown = "" if kind == "NotApplicable" else f"{kind}: "
    for each in found[case.name]["ranks"]:
        assert each["kind"] == "HakaruError"
        assert (
            each["problem"] == f"rank 1 on {host_name()} cannot train: {shown}no room on this rank"
        )
        assert each["seconds"] < 20  # and not until a collective gives up


def test_a_pipeline_says_how_it_was_cut(found: dict[str, Any]) -> None:
    facts = [each["facts"] for each in active(found, Case("resnet50", "gpipe", CNN))]
    assert facts[0]["plan"]["chosen"]["microbatches"] == 8
    assert all(each["plan"] == facts[0]["plan"] for each in facts)
    assert len(facts[0]["plan"]["stages"]) == 4
