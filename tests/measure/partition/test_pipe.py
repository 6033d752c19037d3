"""Networks that were cut by themselves train as one process does, and are cut where the plan says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hakaru.errors import HakaruError
from hakaru.measure._base import NotApplicable
from hakaru.measure.partition import pipe_of
from tests.measure.partition._networks import (
    Gated,
    LongSkip,
    Row,
    SmallResNet,
    SmallTransformer,
    UsedTwice,
)
from tests.measure.partition._pipelines import OVER_A_STAGE, computed

ROOT = Path(__file__).resolve().parents[3]
WORLD, TIMEOUT_S = 3, 180
CASES = [
    f"{name}-{how}"
    for name in ("row", "resnet", "transformer", "skip", "mask")
    for how in ("2-gpipe", "3-1f1b")
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All cases by three processes over gloo."""
    store = tmp_path_factory.mktemp("gloo") / "store"
    command = [sys.executable, "-m", "tests.measure.partition._pipelines"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(WORLD), str(store)],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(WORLD)
    ]  # fmt: skip
    found: dict[str, Any] = {}
    try:
        for each in ranks:
            out, err = each.communicate(timeout=TIMEOUT_S)
            assert each.returncode == 0, err[-3000:]
            found |= json.loads(out.strip().splitlines()[-1]) if out.strip() else {}
    finally:
        for each in ranks:
            each.kill()
    return found


def test_every_case_ran(ran: dict[str, Any]) -> None:
    assert sorted(ran) == sorted(CASES)


@pytest.mark.parametrize("case", CASES)
def test_losses_and_outputs_are_those_of_one_process(ran: dict[str, Any], case: str) -> None:
    alone, piped = ran[case]["losses"]
    assert piped == pytest.approx(alone, rel=1e-5)
    assert ran[case]["output_gap"] < 1e-5


@pytest.mark.parametrize("case", CASES)
def test_stages_begin_where_the_plan_cuts(ran: dict[str, Any], case: str) -> None:
    found = ran[case]
    stages = int(case.split("-")[1])
    assert found["num"] == found["plan"]["chosen"]["stages"] == stages
    assert len(found["plan"]["cuts"]) == stages - 1
    assert found["computed"] == found["planned"]


def test_document_of_a_pipe() -> None:
    pipe, document = pipe_of(Row(), (torch.randn(8, 16),), 3, microbatches=6, name="row")
    assert pipe.num_stages == 3
    assert document["model"] == "row"
    assert document["batch"] == 48
    assert document["chosen"]["strategy"] == "1f1b"
    assert document["chosen"]["microbatches"] == 6
    assert [each["stage"] for each in document["stages"]] == [0, 1, 2]
    assert sum(each["parameters"] for each in document["stages"]) == 6 * (16 * 16 + 16)
    assert {each["path"] for each in document["tree"]} == {
        "layers",
        *(f"layers.{n}" for n in range(6)),
    }
    assert document["sentence"].startswith("row on 3 devices: 1f1b with 6 micro-batches")
    assert json.loads(json.dumps(document)) == document


def test_memory_limit_is_respected() -> None:
    """The limit is 2 % above the least that three stages can do with: only the evenest cuts are left."""
    module, inputs = SmallResNet(channels=16), (torch.randn(4, 3, 8, 8),)
    with pytest.raises(HakaruError) as refused:
        pipe_of(module, inputs, 3, memory_bytes=1000, microbatches=4)
    assert "90 %" in str(refused.value)
    needed = least_of(module, inputs)
    limit = int(needed * 1.02 / 0.9) + 1
    _, document = pipe_of(module, inputs, 3, memory_bytes=limit, microbatches=4)
    assert max(each["memory_bytes"] for each in document["stages"]) <= 0.9 * limit
    _, free = pipe_of(module, inputs, 3, microbatches=4)
    assert max(each["memory_bytes"] for each in free["stages"]) >= needed


def least_of(module: Any, inputs: tuple[torch.Tensor, ...]) -> int:
    from hakaru.measure.partition.cost import Machine, Shape
    from hakaru.measure.partition.search import least_memory
    from hakaru.measure.partition.trace import graph_of

    found = least_memory(graph_of(module, inputs), Shape("1f1b", 3, 4), Machine())
    assert found is not None
    return found.most_bytes


def test_what_has_no_legal_cut_says_why() -> None:
    tied = SmallTransformer(tied=True)
    with pytest.raises(NotApplicable, match=r"no legal cuts into 2 stages: .*used more than once"):
        pipe_of(tied, (torch.randint(50, (4, 8)),), 2)
    with pytest.raises(HakaruError, match="no legal cuts into 4 stages"):
        pipe_of(UsedTwice(), (torch.randn(4, 16),), 4)
    with pytest.raises(HakaruError, match=r"gate \(.*torch.where"):
        pipe_of(Gated(), (torch.randn(4, 4),), 2)


def test_given_cuts_take_the_place_of_the_search() -> None:
    x = torch.randn(4, 16)
    pipe, document = pipe_of(LongSkip(), (x,), 3, cuts=OVER_A_STAGE[LongSkip])
    assert document["cut_before"] == list(OVER_A_STAGE[LongSkip])
    assert computed(pipe)[1] == ["aten.tanh.default", "aten.linear.default"]
    one = (
        x.nbytes
    )  # each value is as large as the input; the last stage gets three, two from the first
    assert [each["received_bytes"] for each in document["stages"]] == [0, one, 3 * one]


def test_wrong_cuts_are_refused() -> None:
    inputs = (torch.randn(4, 16),)
    with pytest.raises(HakaruError, match="tanh is needed by 2 later stages"):
        pipe_of(LongSkip(), inputs, 3, cuts=("linear_2", "mul"))
    with pytest.raises(HakaruError, match="no operation 'linear_9'; did you mean linear_"):
        pipe_of(LongSkip(), inputs, 2, cuts=("linear_9",))
    with pytest.raises(HakaruError, match="1 cuts make no 3 stages"):
        pipe_of(LongSkip(), inputs, 3, cuts=("mul",))


def test_pipe_computes_what_the_network_computes() -> None:
    module = SmallTransformer().eval()
    x = torch.randint(50, (4, 8))
    pipe, _ = pipe_of(module, (x,), 3)
    assert torch.equal(pipe(x)[0], module(x))
