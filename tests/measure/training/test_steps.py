"""What needs no second rank: micro-batches, batches, the clock, a single process, imports without torch."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch

from hakaru.measure.networks import load
from hakaru.measure.training import _fsdp
from hakaru.measure.training._batches import Batches
from hakaru.measure.training._clock import CardClock, HostClock
from hakaru.measure.training._marks import Buckets, Spans, length_s
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
    assert length_s(spans.take(), HostClock()) == 2.5
    assert not spans.take()


def test_a_single_process_needs_no_process_group() -> None:
    work = load("mlp", hidden=8, layers=2, batch=4)
    losses = []
    for strategy in ("single", "ddp", "1f1b"):
        trainer = build(work, Strategy.parse(strategy), [0], 0, "cpu", batch=4, seed=1)
        for _ in range(3):
            trainer.step()
        losses.append(trainer.loss())
        times = trainer.times()
        trainer.step()
        trainer.reset()
        trainer.close()
        assert len(times) == 3 and times[0].optimiser <= times[1].begin
        assert not trainer.times()
    assert losses[0] == losses[1] == losses[2]


def test_a_step_is_plain_sgd() -> None:
    work = load("mlp", hidden=8, layers=2, batch=4)
    trainer = build(work, Strategy.parse("single"), [0], 0, "cpu", batch=4, seed=1)
    torch.manual_seed(1)
    module = work.make()
    optimiser = torch.optim.SGD(module.parameters(), lr=0.01 / 4)
    batches = Batches(work, 4, 4, 0, 1, "cpu")
    for _ in range(6):
        trainer.step()
        (inputs,), target = batches.take()
        optimiser.zero_grad()
        output = module(inputs)
        output.backward(target)  # as the tutorial has it
        optimiser.step()
        assert trainer.loss() == pytest.approx(float((output * target).sum().detach()), rel=1e-6)


@pytest.mark.parametrize(("sizes", "batch"), [({}, 64), ({}, 4), ({"hidden": 32}, 8192)])
def test_many_steps_of_a_sum_stay_finite_and_begin_again(sizes: dict[str, int], batch: int) -> None:
    work = load("mlp", **sizes)
    trainer = build(work, Strategy.parse("single"), [0], 0, "cpu", batch=batch, seed=1)
    losses: list[list[float]] = [[], []]
    for each in losses:
        for _ in range(60):
            trainer.step()
            each.append(trainer.loss())
        trainer.reset()
    assert all(map(math.isfinite, losses[0]))
    assert len(set(losses[0])) == 60
    assert losses[0] == losses[1]


def test_a_reset_brings_back_buffers_and_dropout() -> None:
    work = load("alexnet", image=64, width=2, hidden=8, classes=3)
    normal = replace(work, make=lambda: torch.nn.Sequential(torch.nn.BatchNorm2d(3), work.make()))
    trainer: Any = build(normal, Strategy.parse("single"), [0], 0, "cpu", batch=2, seed=1)
    mean = trainer.loop.module[0].running_mean
    losses = []
    for _ in range(2):
        assert not mean.any()
        trainer.step()
        losses.append(trainer.loss())
        assert mean.any()
        trainer.reset()
    assert losses[0] == losses[1]


class _Event:
    """A card's event: its moment is known when the card has come to it."""

    queue: ClassVar[list[_Event]] = []
    now_ms = 0.0

    def __init__(self, enable_timing: bool) -> None:
        self.at_ms: float | None = None

    def record(self) -> None:
        self.queue.append(self)

    def elapsed_time(self, later: _Event) -> float:
        assert self.at_ms is not None and later.at_ms is not None
        return later.at_ms - self.at_ms

    @classmethod
    def synchronize(cls, device: Any) -> None:
        for each in cls.queue:
            cls.now_ms += 2.0
            each.at_ms = cls.now_ms
        cls.queue.clear()


def test_a_card_is_waited_for_before_and_after_steps_and_not_in_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "Event", _Event)
    monkeypatch.setattr(torch.cuda, "synchronize", _Event.synchronize)
    work = load("mlp", hidden=8, layers=2, batch=4)
    trainer: Any = build(work, Strategy.parse("single"), [0], 0, "cpu", batch=4, seed=1)
    clock = CardClock("cuda:0")
    setup = trainer.setup
    trainer.setup = trainer.loop.setup = replace(
        setup, clock=clock, forward=Spans(clock), waits=Spans(clock), buckets=Buckets(clock)
    )
    for _ in range(2):
        trainer.step()
    assert len(_Event.queue) == 1 + 2 * 6
    first, second = trainer.times()
    ends = (first.begin, first.data, first.forward, first.backward, first.optimiser, second.begin)
    past = [each - first.begin for each in ends]
    assert past == pytest.approx([0, 0.002, 0.004, 0.008, 0.010, 0.012])
    assert not trainer.times()


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
    assert length_s(spans.take(), clock) == 2.0
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
