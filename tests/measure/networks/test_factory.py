"""Networks of the user's: what a factory may return, and what is said of a wrong one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from hakaru.errors import HakaruError
from hakaru.measure.networks import load
from hakaru.measure.networks.workload import arguments

HERE = "tests.measure.networks._users"


def test_module_and_inputs_train_on_a_random_target() -> None:
    work = load(f"{HERE}:plain")
    inputs, target = work.batch_of(8, 0)
    assert (work.batch, work.reduction) == (6, "sum")
    assert target.shape == (8, 3)
    assert torch.equal(inputs[6:], inputs[:2])
    output = work.make()(inputs)
    assert torch.equal(work.loss(output, target), (output * target).sum())


def test_inputs_do_not_change_from_one_process_to_the_next() -> None:
    torch.manual_seed(1)
    first = load(f"{HERE}:plain").batch_of(3, 0)
    torch.manual_seed(2)
    second = load(f"{HERE}:plain").batch_of(3, 0)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_forward_of_two_arguments() -> None:
    work = load(f"{HERE}:two_arguments", batch=12)
    inputs, _ = work.batch_of(7, 3)
    assert [each.shape for each in inputs] == [(7, 4), (7, 1)]
    assert work.make()(*arguments(inputs)).shape == (7, 3)
    assert work.batch == 12


@pytest.mark.parametrize(("factory", "reduction"), [("classes", "mean"), ("summed", "sum")])
def test_the_reduction_of_a_loss_is_found_out(factory: str, reduction: str) -> None:
    work = load(f"{HERE}:{factory}")
    _, target = work.batch_of(7, 1)
    assert work.reduction == reduction
    assert target.tolist() == [1, 2, 0, 1, 2, 0, 1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nowhere.at_all:make", "there is no module 'nowhere'"),
        ("tests.measure.networks.nowhere:make", "no module 'tests.measure.networks.nowhere'"),
        (f"{HERE}:plane", "'plane' does not exist in .*did you mean plain"),
        (f"{HERE}:NUMBER", "'NUMBER' is no function"),
        (f"{HERE}:", "'the factory' does not exist"),
        (f"{HERE}:raises", r"failed: RuntimeError: no weights here \(_users.py, line \d+\)"),
        (f"{HERE}:only_module", r"returned Linear, expected \(module, inputs\) or"),
        (f"{HERE}:three", "returned a tuple of 3, expected"),
        (f"{HERE}:no_module", "returned str as its module"),
        (f"{HERE}:no_tensor", "hold list, expected tensors"),
        (f"{HERE}:uneven", r"\[5, 6\] samples"),
        (f"{HERE}:wrong_shape", "the module fails on its inputs: RuntimeError"),
        (f"{HERE}:two_outputs", "the module gives tuple, expected a tensor of 6 samples"),
        (f"{HERE}:no_loss", "returned str as its loss"),
        (f"{HERE}:squared_sum", "with every sample twice the loss goes from"),
    ],
)
def test_a_wrong_factory_says_what_is_wrong(name: str, expected: str) -> None:
    with pytest.raises(HakaruError, match=expected):
        load(name)


def test_a_factory_has_its_own_sizes() -> None:
    with pytest.raises(HakaruError, match="has no size 'hidden'; set the sizes"):
        load(f"{HERE}:plain", hidden=3)


def test_a_module_beside_the_user_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside.py").write_text(
        "import torch\ndef make():\n    return torch.nn.Linear(2, 2), torch.ones(3, 2)\n"
    )
    (tmp_path / "needs_more.py").write_text("import missing_thing\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    assert load("beside:make").batch == 3
    with pytest.raises(HakaruError, match="needs_more needs 'missing_thing', which is missing"):
        load("needs_more:make")
