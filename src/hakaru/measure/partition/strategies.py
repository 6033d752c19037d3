"""Each strategy's predicted step and memory on alike devices, and why it cannot be applied where it cannot.

Exchanges go around a ring at the link's rate; DDP's hide behind the backward but for the last bucket, FSDP's
behind forward and backward on GPUs alone (on processors they block).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from hakaru.measure.partition.cost import SCHEDULES, Schedule, Shape
from hakaru.measure.partition.document import Asked, Candidate
from hakaru.measure.partition.graph import Graph
from hakaru.measure.partition.names import within
from hakaru.measure.partition.pipe import candidate_of, obstacle
from hakaru.measure.partition.scaled import Scaled
from hakaru.measure.partition.search import best_cuts, best_of, least_memory
from hakaru.measure.preflight.check import size

BUCKET_BYTES = 25 << 20  # DDP's default: the last one is exchanged after the backward


@dataclass(frozen=True)
class Network:
    """What the strategies ask of a network."""

    costs: Scaled
    splittable: Callable[[int], Collection[str]]  # modules whose channels divide by so many ranks
    blocks: Collection[str]  # modules that FSDP collects one at a time
    least_samples: int = 1  # of a micro-batch; batch norm needs two
    exchanges_hide: bool = False  # FSDP's, as on GPUs


def candidates(asked: Asked, network: Network) -> list[Candidate]:
    """Every strategy for the devices, the simplest first."""
    devices = asked.num_devices
    if devices == 1:
        return [_data(asked, network, "single", 1, 1)]
    found = [_data(asked, network, "ddp", devices, 1), _data(asked, network, "fsdp", 1, devices)]
    found.append(_tensor(asked, network, "tensor", 1, devices))
    found += [_pipeline(asked, network, schedule, 1, devices) for schedule in SCHEDULES]
    for data in (each for each in range(2, devices) if devices % each == 0):
        found.append(
            _data(asked, network, f"ddp{data}+fsdp{devices // data}", data, devices // data)
        )
        found.append(
            _tensor(asked, network, f"ddp{data}+tensor{devices // data}", data, devices // data)
        )
        found += [
            _pipeline(asked, network, schedule, data, devices // data) for schedule in SCHEDULES
        ]
    return found


def _data(asked: Asked, network: Network, name: str, copies: int, shards: int) -> Candidate:
    """Every device has samples of its own; parameters are whole, or in shards."""
    ranks = copies * shards
    if asked.batch % ranks:
        return _not_divided(name, asked.batch, ranks)
    graph, machine = network.costs.of(asked.batch / ranks), asked.machine
    parameters = graph.parameter_bytes
    held = (2 + machine.optimiser_copies) * parameters / shards
    held += parameters if copies > 1 and shards == 1 else 0  # buckets
    held += 2 * _largest_block(graph, network.blocks) if shards > 1 else 0
    forward, backward = _times(graph)
    if shards > 1:
        gather = machine.all_reduce_s(parameters, shards) / 2
        gather += (shards - 1) * machine.latency_s * len(network.blocks)
        if network.exchanges_hide:
            forward, backward = max(forward, gather), max(backward, 2 * gather)
        else:
            forward, backward = forward + gather, backward + 2 * gather
    reducing = machine.all_reduce_s(parameters / shards, copies)
    last = min(1.0, BUCKET_BYTES / max(parameters / shards, 1))
    step = forward + max(backward, reducing * (1 - last)) + reducing * last
    step += graph.update_s_per_byte * parameters / shards
    return _judged(asked, name, step, held + _activations(graph), data=ranks, graph=graph)


def _tensor(asked: Asked, network: Network, name: str, copies: int, ranks: int) -> Candidate:
    """The ranks of a group compute the same samples, each a share of the layers' channels."""
    if asked.batch % copies:
        return _not_divided(name, asked.batch, copies)
    split = set(network.splittable(ranks))
    if not split:
        return Candidate(name, False, f"no layer's output channels divide by {ranks}", data=copies)
    graph, machine = network.costs.of(asked.batch / copies), asked.machine
    parameters, seconds, exchanged = 0.0, 0.0, 0.0
    for node in graph.nodes:
        is_split = node.path in split and node.parameter_bytes > 0
        parameters += node.parameter_bytes / (ranks if is_split else 1)
        seconds += node.seconds / (ranks if is_split else 1)
        if is_split:  # outputs are gathered, and the inputs' gradients summed
            given = sum(graph.nodes[each].output_bytes for each in node.inputs)
            exchanged += node.output_bytes / 2 + given
    copies_held = 2 + machine.optimiser_copies + (copies > 1)
    latencies = 3 * (ranks - 1) * machine.latency_s * len(split)
    step = seconds + latencies + machine.all_reduce_s(exchanged, ranks)
    step += machine.all_reduce_s(parameters, copies)
    step += graph.update_s_per_byte * parameters
    held = copies_held * parameters + _activations(graph)
    return _judged(asked, name, step, held, data=copies, graph=graph)


def _pipeline(
    asked: Asked, network: Network, schedule: Schedule, replicas: int, stages: int
) -> Candidate:
    """The best cuts over all numbers of micro-batches."""
    name = f"ddp{replicas}+{schedule}{stages}" if replicas > 1 else schedule
    if asked.batch % replicas:
        return _not_divided(name, asked.batch, replicas)
    share = asked.batch // replicas
    tried = [
        (network.costs.of(share / shape.microbatches), shape)
        for shape in _shapes(schedule, share, replicas, stages, network.least_samples)
    ]
    if not tried:
        return Candidate(
            name, False, f"{share} samples do not divide into {stages} or more micro-batches", data=replicas
        )  # fmt: skip
    graphs = {shape: graph for graph, shape in tried}
    best = best_of(best_cuts(graph, shape, asked.machine) for graph, shape in tried)
    if best is not None:
        return candidate_of(name, graphs[best.shape], best, _needs(asked, best.most_bytes))
    least = [
        found for graph, shape in tried if (found := least_memory(graph, shape, asked.machine))
    ]
    if not least:
        reason = obstacle(tried[0][0])
        return Candidate(
            name, False, f"no legal cuts into {stages} stages: {reason}", data=replicas
        )
    smallest = min(least, key=lambda each: each.most_bytes)
    why = _needs(asked, smallest.most_bytes)
    return candidate_of(name, graphs[smallest.shape], smallest, why, fits=False)


def _shapes(
    schedule: Schedule, share: int, replicas: int, stages: int, least: int
) -> Iterator[Shape]:
    """With the numbers of micro-batches that a trainer tries."""
    from hakaru.measure.training._pipeline import micro_batch_choices

    for number in sorted(micro_batch_choices(share, stages)):
        if share // number >= least:
            yield Shape(schedule, stages, number, replicas)


def _judged(
    asked: Asked, name: str, step_s: float, memory: float, data: int, graph: Graph
) -> Candidate:
    num_bytes = int(memory)
    fits = num_bytes <= asked.machine.limit_bytes
    return Candidate(
        name, fits, _needs(asked, num_bytes), step_s, num_bytes, data=data, graph=graph
    )


def _needs(asked: Asked, num_bytes: int) -> str:
    if num_bytes <= asked.machine.limit_bytes:
        return f"needs {size(num_bytes)} on the fullest device"
    room = size(asked.machine.memory_bytes or 0)
    return f"needs {size(num_bytes)} on the fullest device, over 90 % of {room}"


def _not_divided(name: str, batch: int, parts: int) -> Candidate:
    return Candidate(name, False, f"a batch of {batch} samples does not divide into {parts} parts")


def _times(graph: Graph) -> tuple[float, float]:
    return sum(node.forward_s for node in graph.nodes), sum(node.backward_s for node in graph.nodes)


def _activations(graph: Graph) -> int:
    return graph.saved_bytes + graph.input_bytes + graph.workspace_bytes


def _largest_block(graph: Graph, blocks: Collection[str]) -> int:
    """The parameters that FSDP holds whole at one time: those outside of blocks, and one block."""
    sizes = dict.fromkeys(blocks, 0)
    outside = 0
    for node in graph.nodes:
        block = next((each for each in blocks if within(node.path, each)), None)
        if block is None:
            outside += node.parameter_bytes
        else:
            sizes[block] += node.parameter_bytes
    return outside + max(sizes.values(), default=0)
