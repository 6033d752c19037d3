"""Doi et al. on MN-1: DGEMM of each card, LINPACK, ResNet-50 on 1,024 GPUs, and how samples are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hakaru.measure.numbers import counted, share
from hakaru.measure.record import Measurement
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
    STORAGE,
    UNSEEN,
    NotMeasured,
    Stored,
    counts,
    facts,
    interval_of,
    is_above,
    is_processor,
    machine_text,
    num_ranks,
    options,
    origin,
    reading,
    shared_devices,
)
from hakaru.measure.statistics import LEAST_LEVEL
from hakaru.measure.verdict import Verdict

MODEL = "resnet50"
SMALL = "resnet50@image=64"  # where cores compute it
SETTING = {"model": MODEL, "scaling": "weak", "strategy": ("single", "ddp")}
FP32, FP16 = "none", "fp16"
FILES, ARCHIVE = "files", "packed"
WELL_UP_TO, WORSE_FROM = 256, 512
WELL = 0.8  # of linear; the paper gives no number
HALF = 0.55  # of the bytes: fp16 is half of fp32, and a little is not gradients
CARD = "P100"
CLUSTER = "P100 × 8 a node, 128 nodes, InfiniBand FDR"
PEAK_TEXT = "the paper's efficiency is of the data sheet's peak"


def experiment(size: Size) -> Experiment:
    return Experiment(
        {
            "gemm": {"dtype": ["fp64"]},
            "hpl": {},
            "scaling": {
                "model": [MODEL if size.on_gpu else SMALL],
                "scaling": ["weak"],
                "strategy": ["ddp"],
                "compression": [FP16],  # measured beside none on all ranks
            },
            "loading": {"layout": [f"{FILES}+{ARCHIVE}"]},  # measured in turn
        }
    )


def _cards(stored: Stored) -> list[Measurement]:
    """The rates of single cards, or of single cores; a NUMA node is many of them together."""
    every = stored.every("gemm", "rate", dtype="fp64")
    bad = [each for each in stored.matching("gemm", "rate", dtype="fp64") if not counts(each)]
    if any(each.verdict is not Verdict.NOT_MEASURED for each in bad):
        raise stored.lacking("gemm", {"dtype": "fp64"})
    found = [each for each in every if not each.device.startswith("numa")]
    return found or every


def _peak(stored: Stored) -> Answer:
    cards = _cards(stored)
    best = max(cards, key=lambda each: interval_of(each).median)
    return other_hardware(
        f"{CARD}, and the peak of its data sheet", f"{reading(best)}, {best.model}"
    )


def _cards_differ(stored: Stored) -> Answer:
    """Whether cards of one model are of unlike speed, by the harness' own verdicts."""
    cards = _cards(stored)
    medians = [interval_of(each).median for each in cards]
    behind = 1 - min(medians) / max(medians)
    slow = [each for each in cards if each.verdict is Verdict.SLOW]
    kind = "core" if is_processor(cards[0]) else "GPU"
    who = f"the slowest of {counted(len(cards), kind)}"
    measured = f"{who} is {share(behind)} behind the fastest; {len(slow)} slow"
    if is_processor(cards[0]):
        return not_comparable(measured, "these are cores of a processor, not cards of one model")
    if len(cards) < 2:
        raise NotMeasured("one card has no other to differ from", is_lacking=False)
    return judged(bool(slow), measured)


def _linpack(stored: Stored) -> str:
    """As `41.2 GFLOP/s, 71.0 % of DGEMM, 2 ranks`; of a search that did not end its best trial."""
    final = stored.matching("hpl", "rate")
    trials = [each for each in stored.trials("hpl") if counts(each)]
    is_open = all(each.verdict is Verdict.NOT_MEASURED for each in final)
    if final and is_open and trials:
        best = max(trials, key=lambda each: interval_of(each).median)
        tried = f"the best of {counted(len(trials), 'trial')} of a search that did not end"
        return f"{reading(best)}, {best.device}, {tried}"
    rate = stored.one("hpl", "rate")
    found = [each for each in stored.matching("hpl", "efficiency") if counts(each)]
    of_dgemm = f", {share(interval_of(found[0]).median)} of DGEMM" if found else ""
    return f"{reading(rate)}{of_dgemm}, {counted(num_ranks(rate), 'rank')}"


def _linpack_of_a_node(stored: Stored) -> Answer:
    return other_hardware(f"{CARD} × 8; {PEAK_TEXT}", _linpack(stored))


def _linpack_of_all(stored: Stored) -> Answer:
    return other_hardware(f"{CLUSTER}; {PEAK_TEXT}", _linpack(stored))


def _efficiency_falls(stored: Stored) -> Answer:
    """It takes LINPACK on one node and on several; a run has one of them."""
    text = "a run has LINPACK on one number of hosts; compare a run on one node with one on several"
    raise NotMeasured(text, _linpack(stored), is_lacking=False)


def _steps(stored: Stored, quantity: str = "step") -> dict[int, Measurement]:
    """By the number of ranks, with gradients in fp32: fp16 is measured on all ranks only."""
    wanted = {**SETTING, "compression": FP32}
    every = stored.matching("scaling", quantity, **wanted)
    sizes = sorted({num_ranks(each) for each in every if "ranks" in each.parameters})
    if not sizes:
        raise stored.lacking("scaling", wanted)
    return {num: stored.one("scaling", quantity, ranks=num, **wanted) for num in sizes}


def _scales_well(stored: Stored) -> Answer:
    """A smaller machine can refute it and cannot prove it."""
    efficiency = {num: each for num, each in _steps(stored, "efficiency").items() if num > 1}
    if not efficiency:
        raise NotMeasured("the run has one rank", is_lacking=False)
    upto = {num: each for num, each in efficiency.items() if num <= WELL_UP_TO}
    measured = ", ".join(
        f"{counted(num, 'rank')} {share(interval_of(each).median)} of linear"
        for num, each in upto.items()
    )
    own = [each for each in upto.values() if not shared_devices(each)]
    if not own:
        first = next(iter(efficiency.values()))
        return not_comparable(measured, shared_devices(first) or f"more than {WELL_UP_TO} ranks")
    is_low = [_is_low(each) for each in own]
    if any(is_low):
        return judged(
            False, f"{measured} (well is {share(WELL)} or more, the paper gives no number)"
        )
    most = num_ranks(own[-1])
    if most < WELL_UP_TO:
        return not_comparable(measured, f"{counted(most, 'rank')} cannot tell of {WELL_UP_TO}")
    return judged(None if None in is_low else True, measured)


def _is_low(each: Measurement) -> bool | None:
    found = interval_of(each)
    if found.level < LEAST_LEVEL:
        return None
    return True if found.high < WELL else False if found.low >= WELL else None


def _worse_from(stored: Stored) -> Answer:
    steps = _steps(stored)
    measured = ", ".join(f"{counted(num, 'rank')} {reading(each)}" for num, each in steps.items())
    below = [each for num, each in steps.items() if num <= WELL_UP_TO]
    beyond = [each for num, each in steps.items() if num >= WORSE_FROM]
    if not below or not beyond:
        most = counted(max(steps), "rank")
        return not_comparable(measured, f"{most} cannot tell of {WORSE_FROM} and more")
    return judged(is_above(beyond[0], below[-1]), measured)


def _communication(stored: Stored) -> Answer:
    """What of a step is exposed communication at the most ranks: the second curve of Fig. 4."""
    steps, exposed = _steps(stored), _steps(stored, "exposed")
    most = max(exposed)
    if most not in steps:
        raise stored.lacking("scaling", SETTING)
    step, own = interval_of(steps[most]).median, interval_of(exposed[most]).median
    measured = (
        f"{share(own / step)} of a step is exposed communication, {machine_text(steps[most])}"
    )
    return other_hardware(CLUSTER, measured)


def _fp16_halves_bytes(stored: Stored) -> Answer:
    sizes = sorted(num for num in _steps(stored) if num > 1)
    if not sizes:
        raise NotMeasured("the run has one rank", is_lacking=False)
    ranks = sizes[-1]
    both = [
        stored.one("scaling", "step", ranks=ranks, **SETTING, compression=each)
        for each in (FP32, FP16)
    ]
    sent = [facts(each).part("communication").number("bytes") for each in both]
    if not sent[0] or not sent[1]:
        raise NotMeasured("the rows of scaling do not say how many bytes were sent")
    part = sent[1] / sent[0]
    steps = " and ".join(
        f"{reading(each)} in {name}" for each, name in zip(both, ("fp32", "fp16"), strict=True)
    )
    measured = (
        f"{share(part)} of the bytes of fp32; a step takes {steps} on {counted(ranks, 'rank')}"
    )
    return judged(part <= HALF, measured)


def _fifteen_minutes(stored: Stored) -> Answer:
    rates = _steps(stored, "throughput")
    most = rates[max(rates)]
    measured = f"{reading(most)} of {options(most).text('model')}, {machine_text(most)}"
    return other_hardware(CLUSTER, measured)


def _archive_is_faster(state: str) -> Callable[[Stored], Answer]:
    def judge(stored: Stored) -> Answer:
        """The same workers and prefetch; the best setting of each layout where there are several."""
        rates = {
            name: stored.every("loading", "rate", layout=name, state=state)
            for name in (FILES, ARCHIVE)
        }
        bad = [
            each
            for name in rates
            for each in stored.matching("loading", "rate", layout=name, state=state)
            if not counts(each)
        ]
        if bad:
            raise stored.lacking("loading", {"state": state})
        pairs = _pairs(rates[FILES], rates[ARCHIVE])
        if not pairs:
            raise NotMeasured("files and archive were read with unlike workers or sizes")
        files, archive = max(pairs, key=lambda pair: interval_of(pair[1]).median)
        measured = f"{reading(archive)} from one archive, {reading(files)} from files"
        labels = sorted({origin(each, facts(each).text("label")) for each in (files, archive)})
        if state == "cold" and not set(labels) <= set(STORAGE):
            told = f"where a cold read came from: {' and '.join(labels)}"
            raise NotMeasured(told, measured, is_lacking=UNSEEN not in labels)
        return judged(is_above(archive, files), f"{measured}, {', '.join(labels)}")

    return judge


def _pairs(
    files: Sequence[Measurement], archives: Sequence[Measurement]
) -> list[tuple[Measurement, Measurement]]:
    """Two layouts of which all else is alike."""
    by_setting = {_setting(each): each for each in files}
    return [(by_setting[_setting(each)], each) for each in archives if _setting(each) in by_setting]


def _setting(each: Measurement) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted((name, str(value)) for name, value in each.parameters.items() if name != "layout")
    )


MN1 = Paper(
    id="mn1",
    title="Into service with LINPACK and ResNet-50",
    cites="Doi, Suzuki, Fukuda, Akiba, Watanabe: Lessons Learned from MN-1 (in Japanese)",
    hardware="MN-1: P100 × 8 a node, 128 nodes, InfiniBand FDR × 2; ChainerMN, NCCL2",
    experiment=experiment,
    findings=(
        Finding("§4.1", "peak of a GPU in fp64, by the data sheet", "4.7 TFLOP/s", _peak),
        Finding(
            "§4.1, Fig. 3",
            "cards of one model differ in DGEMM",
            "a large difference between cards",
            _cards_differ,
        ),
        Finding(
            "§4.1", "efficiency of LINPACK on 1 node (8 GPUs)", "about 72 %", _linpack_of_a_node
        ),
        Finding("§4.1", "LINPACK on all GPUs", "1.39 PFLOP/s, 28 %", _linpack_of_all),
        Finding(
            "§4.1",
            "LINPACK's efficiency falls as communication grows",
            "72 % on 1 node, 28 % on all",
            _efficiency_falls,
        ),
        Finding(
            "§4.2, Fig. 4", "ResNet-50 scales well up to 256 GPUs", "scales well", _scales_well
        ),
        Finding(
            "§4.2, Fig. 4",
            "an iteration takes longer from 512 GPUs on",
            "the time grows",
            _worse_from,
        ),
        Finding(
            "§4.2, Fig. 4",
            "share of an iteration that is communication",
            "drawn only, no number in the text",
            _communication,
        ),
        Finding(
            "§4.2",
            "gradients in fp16 reduce what is sent",
            "compute in fp32, send in fp16",
            _fp16_halves_bytes,
        ),
        Finding(
            "§4.2, heading",
            "90 epochs of ImageNet with ResNet-50",
            "15 min",
            _fifteen_minutes,
        ),
        Finding(
            "§5",
            "one archive is read faster than one file a sample (cold)",
            "faster",
            _archive_is_faster("cold"),
        ),
        Finding(
            "§5",
            "one archive is read faster than one file a sample (warm)",
            "faster",
            _archive_is_faster("warm"),
        ),
    ),
)
