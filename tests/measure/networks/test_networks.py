"""The networks against their published sizes, and what every workload keeps to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from hakaru.errors import HakaruError
from hakaru.measure.networks import NAMES, has_batch_norm, load, without_dropout
from hakaru.measure.networks.layers import can_split, dropout_of, shared_parts, splittable
from hakaru.measure.networks.workload import shaken

SMALL: dict[str, dict[str, int]] = {
    "mlp": {"hidden": 8, "layers": 2},
    "resnet50": {"image": 32, "width": 8, "blocks": 1, "classes": 10},
    "inception-v3": {"image": 75, "width": 4, "classes": 10},
    "vgg16": {"image": 32, "width": 4, "hidden": 16, "classes": 10},
    "alexnet": {"image": 64, "width": 4, "hidden": 16, "classes": 10},
    "transformer": {"hidden": 32, "layers": 2, "length": 8, "words": 50},
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mlp", 10 * (512 * 512 + 512)),
        ("resnet50", 25_557_032),
        ("vgg16", 138_357_544),
        ("alexnet", 61_100_840),
        ("inception-v3", 23_834_568),
    ],
)
def test_networks_have_as_many_parameters_as_published(name: str, expected: int) -> None:
    with torch.device("meta"):
        module = load(name).make()
    assert sum(each.numel() for each in module.parameters()) == expected


def test_the_transformer_has_gpt_2_s_parameters() -> None:
    words, length, hidden, layers = 8192, 128, 256, 4
    block = 12 * hidden * hidden + 13 * hidden
    expected = 2 * words * hidden + length * hidden + layers * block + 2 * hidden
    with torch.device("meta"):
        module = load("transformer").make()
    assert sum(each.numel() for each in module.parameters()) == expected


@pytest.mark.parametrize("name", NAMES)
def test_every_network_learns_from_its_batches(name: str) -> None:
    torch.manual_seed(0)
    work = load(name, **SMALL[name])
    module = work.make()
    inputs, target = work.batch_of(3, 0)
    assert len(inputs) == len(target) == 3
    output = module(inputs)
    assert len(output) == 3
    loss = work.loss(output, target)
    loss.backward()
    assert loss.dim() == 0
    assert all(each.grad is not None for each in module.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_depends_on_its_seed_only(name: str) -> None:
    work = load(name, **SMALL[name])
    whole, rest, other = work.batch_of(4, 10), work.batch_of(2, 12), work.batch_of(2, 20)
    for all_of_them, last in zip(whole, rest, strict=True):
        assert torch.equal(all_of_them[2:], last)
    assert not torch.equal(rest[0], other[0])


@pytest.mark.parametrize("name", NAMES)
def test_the_reduction_is_the_one_named(name: str) -> None:
    work = load(name, **SMALL[name])
    inputs, target = work.batch_of(4, 0)
    output = work.make().eval()(inputs).detach()
    halves = [work.loss(output[part], target[part]) for part in (slice(2), slice(2, 4))]
    joined = sum(halves) / (2 if work.reduction == "mean" else 1)
    assert torch.allclose(work.loss(output, target), joined, rtol=1e-5)


def test_attention_sees_no_later_word() -> None:
    torch.manual_seed(0)
    work = load("transformer", **SMALL["transformer"])
    module = work.make().eval()
    text, following = work.batch_of(1, 0)
    assert torch.equal(text[:, 1:], following[:, :-1])
    changed = text.clone()
    changed[0, 5] = (changed[0, 5] + 1) % 50
    before, after = module(text)[0], module(changed)[0]
    assert torch.allclose(before[:5], after[:5])
    assert not torch.allclose(before[5:], after[5:])


def test_sizes_may_come_as_text() -> None:
    work = load("vgg16", image="32", width="4", dropout="0.25", hidden="8", classes="3")
    inputs, _ = work.batch_of(1, 0)
    module = work.make()
    assert module(inputs).shape == (1, 3)
    assert {each.p for each in module.modules() if isinstance(each, torch.nn.Dropout)} == {0.25}


@pytest.mark.parametrize(
    ("name", "image"), [("vgg16", 32), ("alexnet", 63), ("inception-v3", 75), ("resnet50", 1)]
)
def test_the_smallest_images_pass_through(name: str, image: int) -> None:
    work = load(name, **SMALL[name] | {"image": image})
    assert work.make()(work.batch_of(2, 0)[0]).shape == (2, 10)


def test_a_shaken_network_is_off_by_a_rounding() -> None:
    work = load("mlp", hidden=8, layers=2)
    torch.manual_seed(0)
    plain = list(work.make().parameters())
    torch.manual_seed(0)
    moved = list(shaken(work).make().parameters())
    assert all(torch.allclose(a, b, rtol=3e-7, atol=0) for a, b in zip(plain, moved, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(plain, moved, strict=True))


class Dropping(torch.nn.Module):
    """All ways to drop: by a layer, by a function, within attention and between recurrent layers."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = 0.25
        self.drop = torch.nn.Dropout(0.5)
        self.attend = torch.nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)
        self.recur = torch.nn.GRU(8, 8, 2, dropout=0.5, batch_first=True)
        self.never = torch.nn.Dropout(0.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.dropout(x, self.dropout, self.training)
        x = self.attend(self.drop(x), x, x, need_weights=False)[0]
        return self.never(self.recur(x)[0])


def test_without_dropout_a_network_gives_the_same_twice() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    drawn = replace(load("mlp"), make=Dropping)
    for work, is_same in ((drawn, False), (without_dropout(drawn), True)):
        module = work.make()
        assert torch.equal(module(x), module(x)) == is_same
        assert dropout_of(module) == ([] if is_same else ["", "drop", "attend", "recur"])


def test_alexnet_without_dropout_is_that_with_a_share_of_zero() -> None:
    work = load("alexnet", **SMALL["alexnet"])
    bare = load("alexnet", **SMALL["alexnet"] | {"dropout": 0})
    inputs, _ = work.batch_of(2, 0)
    outputs = []
    for each in (without_dropout(work), bare, work):
        torch.manual_seed(0)
        outputs.append(each.make()(inputs))
    assert torch.equal(outputs[0], outputs[1]) and not torch.equal(outputs[0], outputs[2])


def test_batch_norm_is_found_by_its_kind() -> None:
    class BatchNormless(torch.nn.Linear):
        """Only called so."""

    assert has_batch_norm(load("resnet50", **SMALL["resnet50"]).make())
    assert has_batch_norm(torch.nn.Sequential(torch.nn.SyncBatchNorm(3)))
    assert not has_batch_norm(torch.nn.Sequential(BatchNormless(3, 3), torch.nn.InstanceNorm1d(3)))


def test_layers_are_split_where_nothing_is_attached_to_them() -> None:
    class Own(torch.nn.Linear):
        """Might do anything."""

    nn = torch.nn
    layers = [nn.Linear(3, 4), nn.Conv2d(3, 4, 1), nn.Linear(3, 6), Own(3, 4),
              nn.Conv2d(4, 4, 1, groups=2), nn.Conv2d(3, 4, 3, padding_mode="reflect")]  # fmt: skip
    hooked, tied, own = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(3, 4)
    hooked.register_full_backward_hook(lambda *_: None)
    tied.weight = nn.Linear(3, 4).weight
    own.forward = lambda x: x  # type: ignore[method-assign]
    other = nn.Linear(3, 4)
    other.weight = tied.weight
    module = nn.Sequential(*layers, hooked, tied, other, own)
    assert splittable(module, 4) == ["0", "1"]
    assert splittable(module, 2) == ["0", "1", "2"]
    assert not can_split(nn.ReLU(), 1, shared_parts(module))


def test_group_norm_replaces_batch_norm() -> None:
    sizes: dict[str, Any] = SMALL["resnet50"] | {"groups": 4}
    kinds = {type(each).__name__ for each in load("resnet50", **sizes).make().modules()}
    assert "GroupNorm" in kinds and "BatchNorm2d" not in kinds


@pytest.mark.parametrize(
    ("name", "sizes", "expected"),
    [
        ("resnet5", {}, "did you mean resnet50"),
        ("mlp", {"image": 3}, "mlp has no size 'image'; it has hidden, layers, batch"),
        ("transformer", {"hidden": 10, "heads": 4}, "not a multiple of heads"),
        ("mlp", {"hidden": "wide"}, "hidden='wide': expected a number"),
        ("mlp", {"hidden": 0}, "hidden=0: expected a whole number from 1 on"),
        ("mlp", {"hidden": 1.5}, "hidden=1.5: expected a whole number"),
        ("vgg16", {"dropout": 1}, "dropout=1: expected 0 to 1"),
        ("vgg16", {"image": 31}, "image=31: expected 32 pixels or more"),
        ("alexnet", {"image": 62}, "expected 63 pixels or more"),
        ("inception-v3", {"image": 74}, "expected 75 pixels or more"),
    ],
)
def test_unknown_names_and_sizes_say_what_there_is(
    name: str, sizes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(HakaruError, match=expected):
        load(name, **sizes)
