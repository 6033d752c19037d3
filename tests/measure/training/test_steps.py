"""What needs no second rank: micro-batches, batches, the clock, a single process, imports without torch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from hakaru.measure.networks import load
from hakaru.measure.training import _fsdp
from hakaru.measure.training._batches import Batches
from hakaru.measure.training._clock import HostClock, Spans
from hakaru.measure.training._pipeline import micro_batch_choices
from hakaru.measure.training._strategy import Strategy
from hakaru.measure.training._trainer import build


@pytest.mark.parametrize(
    ("batch", "stages", "expected"),
    [
        (64, 2, [8, 4, 2, 16]),
        (64, 4, [16, 8, 4, 32]),
        (48, 4, [16, 12, 8, 6, 4, 24]),
        (8, 4, [8, 4]),
        (7, 2, [7]),
        (3, 4, []),
        (11, 4, [11]),
        (37, 4, []),
        (4, 1, [4, 2, 1]),
    ],
)
def test_micro_batches_divide_the_batch_and_fill_the_stages(
    batch: int, stages: int, expected: list[int]
) -> None:
    assert micro_batch_choices(batch, stages) == expected


def test_shares_of_any_number_of_ranks_make_one_global_batch() -> None:
    work = load("mlp", hidden=4)
    whole = Batches(work, 12, 12, 0, 5, "cpu")
    parts = [Batches(work, 12, 4, at, 5, "cpu") for at in range(3)]
    seen = []
    for _ in range(2):
        (inputs,), target = whole.take()
        shares = [each.take() for each in parts]
        assert torch.equal(inputs, torch.cat([each[0][0] for each in shares]))
        assert torch.equal(target, torch.cat([each[1] for each in shares]))
        seen.append(inputs)
    assert not torch.equal(*seen)


def test_spans_add_up_and_take_off() -> None:
    spans = Spans(HostClock())
    spans.add(1.0, 4.0)
    spans.add(3.0, 2.5)
    assert spans.take() == 2.5
    assert spans.take() == 0


def test_a_single_process_needs_no_process_group() -> None:
    work = load("mlp", hidden=8, layers=2, batch=4)
    losses = []
    for strategy in ("single", "ddp", "1f1b"):
        trainer = build(work, Strategy.parse(strategy), [0], 0, "cpu", batch=4, seed=1)
        times = [trainer.step() for _ in range(3)]
        losses.append(trainer.loss())
        trainer.close()
        assert times[0].optimiser <= times[1].begin
    assert losses[0] == losses[1] == losses[2]


def test_a_step_is_plain_sgd() -> None:
    work = load("mlp", hidden=8, layers=2, batch=4)
    trainer = build(work, Strategy.parse("single"), [0], 0, "cpu", batch=4, seed=1)
    torch.manual_seed(1)
    module = work.make()
    optimiser = torch.optim.SGD(module.parameters(), lr=0.01)
    batches = Batches(work, 4, 4, 0, 1, "cpu")
    for _ in range(6):
        trainer.step()
        (inputs,), target = batches.take()
        optimiser.zero_grad()
        output = module(inputs)
        output.backward(target)  # as the tutorial has it
        optimiser.step()
        assert trainer.loss() == pytest.approx(float((output * target).sum().detach()), rel=1e-6)


def test_dropout_is_named_since_each_rank_draws_its_own() -> None:
    sizes = {"image": 32, "width": 4, "hidden": 8, "classes": 3, "batch": 2}
    dropout = []
    for share in (0.5, 0):
        work = load("vgg16", **sizes, dropout=share)
        trainer = build(work, Strategy.parse("single"), [0], 0, "cpu", batch=2, seed=1)
        dropout.append(trainer.facts["dropout"])
    assert dropout == [["classify.2", "classify.5"], []]


class _Stream:
    """As much of a card's stream as FSDP uses: it is asked to wait."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: list[str] = []

    def wait_event(self, event: str) -> None:
        self.events.append(event)


def test_only_waits_of_the_compute_stream_are_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    compute, other = _Stream("compute"), _Stream("other")
    monkeypatch.setattr(torch.cuda, "Stream", _Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: compute)
    moments = iter([1.0, 3.0])
    clock: Any = HostClock()
    monkeypatch.setattr(clock, "mark", lambda: next(moments))
    spans, original = Spans(clock), _Stream.wait_event
    with pytest.raises(ZeroDivisionError), _fsdp.stalls(spans):
        other.wait_event("a")
        compute.wait_event("b")
        raise ZeroDivisionError
    assert (other.events, compute.events) == (["a"], ["b"])
    assert spans.take() == 2.0
    assert _Stream.wait_event is original


def test_blocks_are_the_elements_of_the_outermost_lists() -> None:
    def names(module: torch.nn.Module) -> list[str]:
        known = {id(each): name for name, each in module.named_modules()}
        return [known[id(each)] for each in _fsdp.blocks(module)]

    resnet = load("resnet50", image=32, width=4, blocks=2).make()
    assert names(resnet) == [f"layer{stage}.{at}" for stage in (1, 2, 3, 4) for at in (0, 1)]
    assert names(load("mlp", hidden=4, layers=2).make()) == ["layers.0", "layers.1"]
    odd = names(load("tests.measure.networks._users:odd").make())
    assert odd == [f"image.{at}" for at in range(5)] + ["widen.0", "widen.2", "rows.0.0"]


def test_the_contracts_are_read_without_torch() -> None:
    rooms = ("networks", "networks.workload", "training._times", "training._strategy",
             "training._trainer")  # fmt: skip
    imports = "; ".join(f"import hakaru.measure.{room}" for room in rooms)
    code = f"import sys; {imports}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
