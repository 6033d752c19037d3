"""An unmodified network as a graph of its operations, by torch.export in training mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn

from hakaru.measure.partition.graph import Graph, Node, Span
from hakaru.measure.partition.meter import Measured, measure, update_s_per_byte
from hakaru.measure.partition.refusal import explained, without_logs


def graph_of(module: nn.Module, inputs: Sequence[Any], device: str = "cpu") -> Graph:
    """The measured graph of a network for one micro-batch; `inputs` are the arguments of its forward."""
    return read_graph(export(module, inputs), inputs, device)


def export(module: nn.Module, inputs: Sequence[Any]) -> fx.GraphModule:
    """The network's operations; it shares parameters and buffers with the network."""
    module.train()
    with explained(module), without_logs():
        program = torch.export.export(module, tuple(inputs))
    traced: fx.GraphModule = program.module(check_guards=False)
    return traced


def read_graph(traced: fx.GraphModule, inputs: Sequence[Any], device: str = "cpu") -> Graph:
    """Cost, edges and spans of a traced network."""
    measured = measure(traced, inputs, device)
    nodes, free = operations(traced), free_values(traced)
    index = {node: at for at, node in enumerate(nodes)}
    made = index.keys() - free
    owned = _new_parameters(traced, nodes)
    return Graph(
        tuple(
            Node(
                name=node.name,
                forward_s=measured[node.name].forward_s,
                backward_s=measured[node.name].backward_s,
                output_bytes=measured[node.name].output_bytes,
                parameter_bytes=sum(each.nbytes for each in owned[node.name]),
                saved_bytes=measured[node.name].saved_bytes,
                inputs=tuple(index[each] for each in node.all_input_nodes if each in made),
                path=module_path(node),
                num_parameters=sum(each.numel() for each in owned[node.name]),
            )
            for node in nodes
        ),
        tuple(_spans(traced, nodes, index, free, measured)),
        sum(each.nbytes for each in inputs if isinstance(each, torch.Tensor)),
        update_s_per_byte(device),
    )  # fmt: skip


def operations(traced: fx.GraphModule) -> list[fx.Node]:
    """What is computed, in linear order."""
    return [node for node in traced.graph.nodes if node.op == "call_function"]


def numbers_of(module: nn.Module) -> dict[str, int]:
    """How many parameters each module has, by path, depth first."""
    return {
        path: sum(each.numel() for each in part.parameters())
        for path, part in module.named_modules()
        if path
    }


def module_path(node: fx.Node) -> str:
    """The innermost module that an operation belongs to; empty for the network itself."""
    stack = node.meta.get("nn_module_stack") or {}
    return next((str(path) for path, _ in reversed(list(stack.values()))), "")


def free_values(traced: fx.GraphModule) -> set[fx.Node]:
    """Operations on constants alone, such as a mask: each stage computes them for itself."""
    found: set[fx.Node] = set()
    for node in operations(traced):
        sources = node.all_input_nodes
        constant = all(
            each in found or (each.op == "get_attr" and not _is_parameter(traced, each))
            for each in sources
        )
        tags = getattr(node.target, "tags", ())
        if constant and not _written(node) and torch.Tag.nondeterministic_seeded not in tags:
            found.add(node)
    return found


def _new_parameters(traced: fx.GraphModule, nodes: Sequence[fx.Node]) -> dict[str, list[Any]]:
    """For each operation the parameters that none before it uses."""
    seen: set[int] = set()
    found: dict[str, list[Any]] = {}
    for node in nodes:
        used = [
            _tensor(traced, each) for each in node.all_input_nodes if _is_parameter(traced, each)
        ]
        found[node.name] = [each for each in used if id(each) not in seen]
        seen.update(map(id, used))
    return found


def _spans(
    traced: fx.GraphModule, nodes: Sequence[fx.Node], index: Mapping[fx.Node, int],
    free: set[fx.Node], measured: Mapping[str, Measured],
) -> Iterator[Span]:  # fmt: skip
    """What must stay in one stage, whatever the other cuts are."""
    for node in traced.graph.nodes:
        users = sorted(index[each] for each in node.users if each in index)
        if node.op == "placeholder" and users:
            yield Span(
                0, users[-1], f"the input {node.name} is needed by {_label(nodes[users[-1]])}"
            )
        if node in index and node not in free and users and not _can_be_sent(node, measured):
            yield Span(index[node], users[-1], f"the value of {node.name} cannot be sent")
        if node in index and (base := _written_base(node)) is not None:
            first = index.get(base, 0 if base.op == "placeholder" else index[node])
            last = index[node] + (
                not users and index[node] < len(nodes) - 1
            )  # a counter, by its module
            yield Span(first, last, f"{node.name} changes a value in place")
        if node.op == "output":
            for each in node.all_input_nodes:
                yield Span(index.get(each, 0), len(nodes) - 1, f"the network returns {each.name}")
    yield from _shared_spans(traced, index)


def _shared_spans(traced: fx.GraphModule, index: Mapping[fx.Node, int]) -> Iterator[Span]:
    """Parameters, and buffers that are written, have all of their users in one stage."""
    users: dict[int, set[int]] = {}
    names: dict[int, str] = {}
    for node in traced.graph.nodes:
        if node.op != "get_attr" or not isinstance(_tensor(traced, node), torch.Tensor):
            continue
        if _is_parameter(traced, node) or any(_writes(user, node) for user in node.users):
            key = id(_tensor(traced, node))
            users.setdefault(key, set()).update(index[each] for each in node.users if each in index)
            names.setdefault(key, str(node.target))
    for key, found in users.items():
        if len(found) > 1:
            yield Span(min(found), max(found), f"{names[key]} is used more than once")


def _can_be_sent(node: fx.Node, measured: Mapping[str, Measured]) -> bool:
    """Pipelines send contiguous tensors of a fixed shape."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or not measured[node.name].contiguous:
        return False
    return all(isinstance(size, int) for size in value.shape) and value.is_contiguous()


def _written_base(node: fx.Node) -> fx.Node | None:
    """The value whose memory an operation changes, behind all views of it: received ones are read only."""
    written = _written(node)
    return _base(written[0]) if written else None


def _base(node: fx.Node) -> fx.Node:
    while node.op == "call_function":
        viewed = [each for each, info in _aliases(node) if info is not None]
        if not viewed and "dropout" in str(node.target):  # without dropping it is its input
            viewed = node.all_input_nodes[:1]
        if str(node.target) == "<built-in function getitem>":
            viewed = node.all_input_nodes[:1]
        if not viewed:
            return node
        node = viewed[0]
    return node


def _aliases(node: fx.Node) -> list[tuple[fx.Node, Any]]:
    """The values that an operation takes, with what its schema says of their memory."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return []
    named = {each.name: each.alias_info for each in schema.arguments}
    by_place = zip(node.args, named.values(), strict=False)
    by_name = ((value, named.get(name)) for name, value in node.kwargs.items())
    return [(arg, info) for arg, info in (*by_place, *by_name) if isinstance(arg, fx.Node)]


def _written(node: fx.Node) -> list[fx.Node]:
    return [each for each, info in _aliases(node) if info is not None and info.is_write]


def _writes(user: fx.Node, node: fx.Node) -> bool:
    """Whether an operation changes a buffer; normalisations do so without their schema saying it."""
    return node in _written(user) or "_norm" in str(user.target)


def _is_parameter(traced: fx.GraphModule, node: fx.Node) -> bool:
    return node.op == "get_attr" and isinstance(_tensor(traced, node), nn.Parameter)


def _tensor(traced: fx.GraphModule, node: fx.Node) -> Any:
    found: Any = traced
    for name in str(node.target).split("."):
        found = getattr(found, name)
    return found


def _label(node: fx.Node) -> str:
    path = module_path(node)
    return f"{node.name} in {path}" if path else node.name
