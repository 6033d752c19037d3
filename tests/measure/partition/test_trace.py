"""What is read from traced networks: edges, what cannot be cut, bytes, and refusals that name the place."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from hakaru.errors import HakaruError
from hakaru.measure.partition import pipe_of
from hakaru.measure.partition.cost import Machine, Shape
from hakaru.measure.partition.graph import Graph
from hakaru.measure.partition.names import cut_name, stage_modules, tree
from hakaru.measure.partition.search import best_cuts
from hakaru.measure.partition.trace import graph_of, numbers_of
from tests.measure.partition._networks import (
    Gated,
    Row,
    SmallResNet,
    SmallTransformer,
    UsedTwice,
)


@pytest.fixture(scope="module")
def resnet() -> Graph:
    torch.manual_seed(0)
    return graph_of(SmallResNet(), (torch.randn(4, 3, 8, 8),))


def index_of(graph: Graph, name: str) -> int:
    return next(at for at, node in enumerate(graph.nodes) if node.name == name)


def test_row_of_linear_layers() -> None:
    graph = graph_of(Row(hidden=16, layers=3), (torch.randn(8, 16),))
    assert [node.path for node in graph.nodes] == ["layers.0", "layers.1", "layers.2"]
    assert [node.inputs for node in graph.nodes] == [(), (0,), (1,)]
    assert {node.parameter_bytes for node in graph.nodes} == {4 * (16 * 16 + 16)}
    assert {node.num_parameters for node in graph.nodes} == {16 * 16 + 16}
    assert {node.output_bytes for node in graph.nodes} == {4 * 8 * 16}
    # each layer keeps its input; the network's own belongs to the batch
    assert [node.saved_bytes for node in graph.nodes] == [4 * 8 * 16, 4 * 8 * 16, 0]
    assert graph.input_bytes == 4 * 8 * 16
    assert graph.positions == (1, 2)
    assert all(node.forward_s > 0 and node.backward_s > 0 for node in graph.nodes)


def test_all_parameters_are_counted_once(resnet: Graph) -> None:
    assert sum(node.num_parameters for node in resnet.nodes) == numbers_total(SmallResNet())
    tied = graph_of(SmallTransformer(tied=True), (torch.randint(50, (4, 8)),))
    assert sum(node.num_parameters for node in tied.nodes) == numbers_total(
        SmallTransformer(tied=True)
    )


def numbers_total(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


def test_measuring_leaves_the_network_as_it_was() -> None:
    module = SmallResNet()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    graph_of(module, (torch.ones(2, 3, 8, 8),))
    assert torch.equal(torch.randn(3), expected)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert all(each.grad is None for each in module.parameters())


def test_writes_in_place_stay_with_what_they_write(resnet: Graph) -> None:
    """A stage cannot write a received value: bn2, += and relu_ are one stage; conv2 may be another."""
    add, relu = index_of(resnet, "add__2"), index_of(resnet, "relu__1")
    norm = index_of(resnet, "batch_norm_1")
    assert not set(range(norm + 1, relu + 1)) & set(resnet.positions)
    assert "in place" in str(resnet.problem((add,)))
    assert index_of(resnet, "conv2d_2") in resnet.positions  # within the residual block


def test_counter_of_batch_norm_stays_with_it(resnet: Graph) -> None:
    assert index_of(resnet, "batch_norm") not in resnet.positions
    assert index_of(resnet, "add_") in resnet.positions


def test_mask_for_all_blocks_forbids_nothing() -> None:
    """Constants are made by each stage, so that the mask is no value that several stages need."""
    graph = graph_of(SmallTransformer(), (torch.randint(50, (4, 8)),))
    found = best_cuts(graph, Shape("1f1b", 3, 4), Machine())
    assert found is not None
    assert graph.problem(found.cuts) is None


def test_lists_and_strided_values_are_not_cut() -> None:
    graph = graph_of(SmallTransformer(), (torch.randint(50, (4, 8)),))
    chunk = index_of(graph, "chunk")
    assert chunk + 1 not in graph.positions  # a list is no tensor
    assert index_of(graph, "scaled_dot_product_attention") not in graph.positions  # transposed


def test_value_of_two_later_stages() -> None:
    graph = graph_of(UsedTwice(), (torch.randn(4, 16),))
    b, mul = index_of(graph, "linear_1"), index_of(graph, "mul")
    late = index_of(graph, "mul_1")
    assert "linear is needed by 2 later stages" in str(graph.problem((b, late)))
    assert graph.problem((b,)) is None
    assert graph.problem((mul + 1,)) is None
    found = best_cuts(graph, Shape("gpipe", 2, 2), Machine())
    assert found is not None
    assert graph.problem(found.cuts) is None


def test_tied_embedding_keeps_all_between_together() -> None:
    graph = graph_of(SmallTransformer(tied=True), (torch.randint(50, (4, 8)),))
    assert best_cuts(graph, Shape("gpipe", 2, 2), Machine()) is None
    head = len(graph.nodes) - 1
    assert "weight is used more than once" in str(graph.problem((head,)))


class LateInput(nn.Module):
    """Its second input is needed by the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.c(self.b(self.a(x)) + y)


def test_inputs_are_for_the_first_stage() -> None:
    graph = graph_of(LateInput(), (torch.randn(2, 4), torch.randn(2, 4)))
    assert graph.positions == (3,)
    assert "the input y is needed by add" in str(graph.problem((1,)))


def test_control_flow_on_a_value_is_refused_with_its_place() -> None:
    with pytest.raises(HakaruError) as refused:
        graph_of(Gated(), (torch.randn(2, 4),))
    text = str(refused.value)
    assert "Gated cannot be traced: gate (" in text
    assert "_networks.py:" in text
    assert "torch.where" in text


class Broken(nn.Module):
    """Uses what it does not have."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.missing(x)


def test_other_errors_name_their_place_too() -> None:
    with pytest.raises(HakaruError, match=r"the network \(.*test_trace.py:\d+\): AttributeError"):
        graph_of(Broken(), (torch.randn(2, 4),))


def test_names_of_cuts_and_stages(resnet: Graph) -> None:
    inside, after = index_of(resnet, "conv2d_2"), index_of(resnet, "conv2d_3")
    assert cut_name(resnet, inside) == "after relu_ in blocks.0.relu"
    assert cut_name(resnet, after) == "after blocks.0"
    assert stage_modules(resnet, 0, after) == ["stem", "blocks.0"]
    first = stage_modules(resnet, 0, inside)
    assert first == ["stem", "blocks.0.conv1", "blocks.0.bn1", "blocks.0.relu"]


def test_tree_of_modules(resnet: Graph) -> None:
    cut = index_of(resnet, "conv2d_2")
    found = {each["path"]: each for each in tree(resnet, (cut,), numbers_of(SmallResNet()))}
    assert found["stem"]["stages"] == [0]
    assert found["blocks.0"]["stages"] == [0, 1]
    assert found["blocks.0.conv2"] == {
        "path": "blocks.0.conv2", "parameters": 6 * 6 * 9, "stages": [1],
        "ms": found["blocks.0.conv2"]["ms"],
    }  # fmt: skip
    assert found["fc"]["parameters"] == 70
    parts = sum(found[f"blocks.{at}"]["ms"] for at in range(3))
    assert found["blocks"]["ms"] == pytest.approx(parts, rel=1e-3)


class Warns(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        warnings.warn("the user's", FutureWarning, stacklevel=1)
        return self.layers(x)


def test_of_warnings_only_torch_s_about_itself_are_silenced() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        pipe_of(Warns(), (torch.randn(4, 4),), 2)
    assert {str(each.message) for each in found} == {"the user's"}
