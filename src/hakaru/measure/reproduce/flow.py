"""Hanyu et al. on Flow: the network of RaNNC's tutorial on 1 to 4 GPUs, and on 2 to 4 nodes.

The paper's time falls with the number of GPUs, so the batch of 64 is read as that of all GPUs together
(strong scaling), and what is compared is the time of a step.
"""

from __future__ import annotations

from hakaru.measure.numbers import amount, counted, share
from hakaru.measure.record import MOST_TEXT, Measurement
from hakaru.measure.reproduce.finding import (
    Answer,
    Experiment,
    Finding,
    Paper,
    Size,
    judged,
    not_comparable,
    other_hardware,
)
from hakaru.measure.reproduce.stored import (
    NotMeasured,
    Stored,
    facts,
    interval_of,
    is_above,
    machine_text,
    num_hosts,
    num_ranks,
    options,
    reading,
    shared_devices,
)

MODEL = "mlp"
CHOSEN = {"model": MODEL, "scaling": "strong", "strategy": "ddp", "compression": "none"}
SETTING = {**CHOSEN, "strategy": ("single", "ddp")}  # one rank alone has no strategy
A_NODE = 4  # GPUs
HARDWARE = "V100 × 4 a node"
NOT_SLOWER = "4 hosts are not slower than 1 here"
WHOLE_TIME = "and the paper does not say what its time covers"


def experiment(size: Size) -> Experiment:
    """Four ranks where there are no GPUs, as a node of Flow has four."""
    ranks = 0 if size.on_gpu or size.num_hosts > 1 else A_NODE
    return Experiment(
        {
            "scaling": {name: [value] for name, value in CHOSEN.items()},
            "strategies": {"model": [MODEL]},
        },
        ranks_per_host=ranks,
    )


def _step(stored: Stored, ranks: int) -> Measurement:
    """Of so many ranks, which are on one host."""
    every = stored.matching("scaling", "step", **SETTING)
    most = max(map(num_ranks, every), default=0)
    if 0 < most < ranks:
        text = f"the run has {counted(most, 'rank')}, and this takes {ranks}"
        raise NotMeasured(text, is_lacking=False)
    found = stored.one("scaling", "step", ranks=ranks, **SETTING)
    if num_hosts(found) > 1:
        text = f"{counted(ranks, 'rank')} of the run are on {num_hosts(found)} hosts"
        raise NotMeasured(f"{text}; give --ranks-per-host {A_NODE}", is_lacking=False)
    return found


def _three_are_slower(stored: Stored) -> Answer:
    two, three = (_step(stored, ranks) for ranks in (2, 3))
    measured = _listed([two, three])
    if shared := shared_devices(three):
        return not_comparable(measured, f"{shared}, and each of the paper's has its own GPU")
    return judged(is_above(three, two), measured)


def _four_are_fastest(stored: Stored) -> Answer:
    found = {ranks: _step(stored, ranks) for ranks in (1, 2, 3, A_NODE)}
    four, others = found[4], [found[ranks] for ranks in (1, 2, 3)]
    measured = _listed(list(found.values()))
    if shared := shared_devices(four):
        return not_comparable(measured, f"{shared}, and each of the paper's has its own GPU")
    slower = [is_above(each, four) for each in others]
    if False in slower or any(is_above(four, each) for each in others):
        return judged(False, measured)
    return judged(None if None in slower else True, measured)


def _time_of_a_node(stored: Stored) -> Answer:
    one = _step(stored, A_NODE)
    return other_hardware(f"{HARDWARE}, {WHOLE_TIME}", _with_machine(one))


def _of_nodes(stored: Stored, nodes: int) -> Measurement:
    """A step of all ranks of so many hosts."""
    every = stored.matching("scaling", "step", **SETTING)
    most = max(map(num_hosts, every), default=0)
    if 0 < most < nodes:
        text = f"the run has {counted(most, 'host')}, and this takes {nodes}"
        raise NotMeasured(text, is_lacking=False)
    found = [each for each in every if num_hosts(each) == nodes]
    ranks = max(map(num_ranks, found), default=0)
    return stored.one("scaling", "step", ranks=ranks, **SETTING)


def _time_of_four_nodes(stored: Stored) -> Answer:
    return other_hardware(f"{HARDWARE}, {WHOLE_TIME}", _with_machine(_of_nodes(stored, 4)))


def _nodes_help(stored: Stored) -> Answer:
    four, two = _of_nodes(stored, 4), _of_nodes(stored, 2)
    return judged(is_above(two, four), _listed([two, four]))


def _four_nodes_are_slower(stored: Stored) -> Answer:
    four, one = _of_nodes(stored, 4), _of_nodes(stored, 1)
    return judged(is_above(four, one), _listed([one, four]))


def _because_of_communication(stored: Stored) -> Answer:
    """The cause that the paper supposes: what is exposed grows by half of what a step grows by, or more."""
    four, one = _of_nodes(stored, 4), _of_nodes(stored, 1)
    if not (is_slower := is_above(four, one)):
        told = _listed([one, four])
        return judged(None, told) if is_slower is None else not_comparable(told, NOT_SLOWER)
    exposed = [_exposed(stored, each) for each in (one, four)]
    grown = interval_of(four).median - interval_of(one).median
    part = (exposed[1] - exposed[0]) / grown
    before, after = (amount(each, "ms") for each in exposed)
    text = f"exposed communication {before} on 1 host, {after} on 4"
    return judged(part >= 0.5, f"{text}: {share(part)} of what a step takes longer")


def _exposed(stored: Stored, of: Measurement) -> float:
    found = stored.one("scaling", "exposed", ranks=num_ranks(of), **SETTING)
    return interval_of(found).median


def _cause_is_told(stored: Stored) -> Answer:
    """The analysis that the paper asks for."""
    one = max(stored.every("scaling", "step", **SETTING), key=num_ranks)
    if not (sentence := facts(one).text("verdict", MOST_TEXT)):
        raise NotMeasured("the rows of scaling carry no sentence on what stops it")
    return not_comparable(sentence, "the paper leaves it open")


def _partitions_unmodified(stored: Stored) -> Answer:
    """A pipeline of the network as it is; the benchmark compares its losses with those of one process."""
    every = stored.every("strategies", "step", model=MODEL)
    found = [each for each in every if facts(each).part("plan").items("stages")]
    if not found:
        raise NotMeasured("the run has no partitioned network that counts")
    best = min(found, key=lambda each: interval_of(each).median)
    gap = facts(best).number("loss_gap")
    if gap is None:
        raise NotMeasured("how far the losses of the partitioned network are off is not stored")
    stages = counted(len(facts(best).part("plan").items("stages")), "stage")
    told = f"{options(best).text('strategy')} in {stages}, {reading(best)} a step"
    return judged(True, f"{told}; its losses are those of one process within {amount(gap)}")


def _listed(steps: list[Measurement]) -> str:
    """As `2 ranks 4.1 ms, 3 ranks 5.2 ms`."""
    is_several = len({num_hosts(each) for each in steps}) > 1
    names = [
        f"{counted(num_hosts(each), 'host')} × {num_ranks(each) // num_hosts(each)}"
        if is_several
        else counted(num_ranks(each), "rank")
        for each in steps
    ]
    return ", ".join(f"{name} {reading(each)}" for name, each in zip(names, steps, strict=True))


def _with_machine(each: Measurement) -> str:
    return f"{reading(each)} a step, {machine_text(each)}"


FLOW = Paper(
    id="flow",
    title="RaNNC's tutorial on one node and several",
    cites="Hanyu, Katagiri, Ohshima, Nagai: Performance Evaluation of Distributed Deep Learning using "
    "Supercomputers (in Japanese)",
    hardware="Flow Type II: V100 × 4 a node; RaNNC 0.7.5, PyTorch 1.11.0, CUDA 11.3",
    experiment=experiment,
    findings=(
        Finding(
            "§3.3, Fig. 1",
            "3 GPUs are slower than 2",
            "performance drops with 3 GPUs",
            _three_are_slower,
        ),
        Finding(
            "§3.3, Fig. 1",
            "4 GPUs of a node are the fastest of 1 to 4",
            "fastest with 4 GPUs",
            _four_are_fastest,
        ),
        Finding(
            "§3.3",
            "time on 1 node with 4 GPUs (batch 64, hidden 512, layers 10)",
            "13.59 s",
            _time_of_a_node,
        ),
        Finding("§3.3", "time on 4 nodes with 16 GPUs", "15.46 s", _time_of_four_nodes),
        Finding("§3.3, Fig. 2", "4 nodes are faster than 2", "faster with more nodes", _nodes_help),
        Finding(
            "§3.3", "4 nodes are slower than 1", "15.46 s against 13.59 s", _four_nodes_are_slower
        ),
        Finding(
            "§3.3",
            "4 nodes are slower because of communication between nodes",
            "thought to be the reason",
            _because_of_communication,
        ),
        Finding("§3.3", "what scaling loses", "a detailed analysis is needed", _cause_is_told),
        Finding(
            "§2",
            "a network is partitioned without changing its code",
            "automatic",
            _partitions_unmodified,
        ),
    ),
)
