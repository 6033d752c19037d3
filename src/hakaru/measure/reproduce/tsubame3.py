"""Miwa on TSUBAME3.0: four CNNs on data sets below and above memory; does loading hide behind compute?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hakaru.measure.documents import LARGEST, Document
from hakaru.measure.numbers import amount, counted, share
from hakaru.measure.record import Measurement, parameters_text
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
    UNLABELLED,
    NotMeasured,
    Stored,
    base_name,
    counts,
    facts,
    interval_of,
    is_processor,
    machine_text,
    options,
    origin,
)

MODELS = {
    "resnet50": "ResNet50",
    "inception-v3": "Inception-v3",
    "vgg16": "Vgg16",
    "alexnet": "AlexNet",
}
PROFILED = "alexnet"
NODE = "1 node with 4 GPUs, Lustre"
IN_PROPORTION = (
    0.15  # of the longest epoch, that may not grow with the size; the paper gives no number
)
HIDDEN = 0.95  # of a transfer: completely, but for the clock
MOST_STALL = 0.05  # of the time of each epoch; the paper gives no number
BENCHMARK = "data-size"
QUICK_MEMORY = 24  # MiB
SURE = {"none": True, "knee": False}  # whether the line grows alike, by the state of the fit


def experiment(size: Size) -> Experiment:
    """Quickly with less memory, so that data sets larger than it are small too."""
    memory = {"memory": [QUICK_MEMORY]} if size.quick and not size.on_gpu else {}
    return Experiment({BENCHMARK: {"model": list(MODELS), **memory}})


def _sizes(stored: Stored, model: str, quantity: str = "epoch") -> list[Measurement]:
    """The rows of a network from the smallest size on, all of one setting and none of them bad."""
    every = stored.matching(BENCHMARK, quantity, model=model)
    own = [each for each in every if _mib(each)]
    groups: dict[str, list[Measurement]] = {}
    for each in own:
        groups.setdefault(_setting(each), []).append(each)
    if not groups:
        raise stored.lacking(BENCHMARK, {"model": model})
    found = max(groups.values(), key=len)
    if bad := sorted((each for each in found if not counts(each)), key=_mib):
        sizes = ", ".join(amount(_mib(each), "MiB") for each in bad)
        raise NotMeasured(f"{sizes}: {bad[0].verdict}: {bad[0].reason}")
    return sorted(found, key=_mib)


def _mib(each: Measurement) -> float:
    """The size of its data set; 0 where it does not say."""
    return options(each).number("mib") or 0.0


def _setting(each: Measurement) -> str:
    known = {name: each.parameters.get(name) for name in ("model", "layout", "workers", "memory")}
    return parameters_text(known)


def _proportional(model: str) -> Callable[[Stored], Answer]:
    def judge(stored: Stored) -> Answer:
        """All epochs are near one line through zero, as in the figure."""
        rows = _sizes(stored, model)
        if len(rows) < 2:
            raise NotMeasured(f"one size has no line. {_notes(rows)}".strip(), _range(rows), False)
        off = _off_the_line(rows)
        worst = max(max(shares) for shares in off)
        measured = f"{_range(rows)}; at most {share(worst)} of the longest off the line"
        is_off = any(min(shares) > IN_PROPORTION for shares in off)
        return judged(True if worst <= IN_PROPORTION else False if is_off else None, measured)

    return judge


def _off_the_line(rows: Sequence[Measurement]) -> list[list[float]]:
    """How far each epoch of each size is off the best line through zero, as a share of the longest."""
    points = [(_mib(each), interval_of(each).median) for each in rows]
    rate = sum(mib * time for mib, time in points) / sum(mib * mib for mib, _ in points)
    longest = max(time for _, time in points)
    return [
        [abs(seconds - rate * mib) / longest for seconds in each.samples]
        for each, (mib, _) in zip(rows, points, strict=True)
    ]


def _notes(rows: Sequence[Measurement]) -> str:
    """What the benchmark says of sizes that it left out."""
    return " ".join(facts(rows[-1]).texts("notes"))


def _no_bend(model: str) -> Callable[[Stored], Answer]:
    def judge(stored: Stored) -> Answer:
        """What the benchmark's own fit says of the line at the size of memory."""
        rows = _sizes(stored, model)
        fit = facts(rows[-1]).part("fit")
        if not fit:
            raise NotMeasured(f"the largest size of {model} carries no fit of its line")
        sentence, state = fit.text("sentence").rstrip("."), _state(fit)
        if why := _why_open(state, sentence, rows):
            measured = _range(rows) if why == sentence else sentence
            raise NotMeasured(f"{why}. {_notes(rows)}".strip(), measured, is_lacking=False)
        return judged(SURE[state], sentence)

    return judge


def _why_open(state: str, sentence: str, rows: Sequence[Measurement]) -> str:
    """Why the fit tells nothing of the line above memory; empty where it does."""
    if facts(rows[-1]).number("memory_mib") is None:
        return "the rows do not say how large memory was"
    above = [each for each in rows if _is_above_memory(each)]
    if not above:
        return "no data set was larger than memory"
    if state in SURE and not any(map(_is_from_storage, above)):
        return f"above memory the epochs are {_origins(above)}, so that storage is not seen"
    return "" if state in SURE else sentence or "the fit does not say why it is open"


def _is_above_memory(each: Measurement) -> bool:
    memory = facts(each).number("memory_mib")
    return memory is not None and _mib(each) > memory


def _is_from_storage(each: Measurement) -> bool:
    """Whether most of its steady epochs were read from the device or over the network."""
    labels = _labels(each)
    return 2 * sum(label in STORAGE for label in labels) > len(labels)


def _labels(each: Measurement) -> list[str]:
    """Where the bytes of its steady epochs came from; what memory cannot hold was read again."""
    epochs = facts(each).parts("epochs")
    known = [one.text("label", 40) for one in epochs if one.text("state") != "cold"]
    if _is_above_memory(each):
        return [origin(each, label) for label in known]
    return [label or UNLABELLED for label in known]


def _origins(rows: Sequence[Measurement]) -> str:
    return " or ".join(sorted({label for each in rows for label in _labels(each)})) or UNLABELLED


def _state(fit: Document) -> str:
    if state := fit.text("state", 20):
        return state
    if fit.number("knee_mib") is not None:
        return "knee"
    return "below" if fit.number("slope_above_s_per_gib", -LARGEST) is None else "none"


def _set_up(stored: Stored) -> Answer:
    rows = [each for each in stored.every(BENCHMARK, "epoch") if _mib(each)]
    trained = [each for each in rows if base_name(each.parameters.get("model")) in MODELS]
    if not rows:
        raise NotMeasured("the rows of data-size do not say how large the data sets were")
    sizes = sorted(_mib(each) for each in trained or rows)
    memory = facts(rows[0]).number("memory_mib")
    of_memory = f", memory for {amount(memory, 'MiB')} of files" if memory else ""
    epochs = counted(max(len(each.samples) for each in rows), "epoch")
    measured = f"{amount(sizes[0])} to {amount(sizes[-1], 'MiB')}{of_memory}, {epochs}"
    return other_hardware(NODE, f"{measured}, {machine_text(rows[0])}")


def _copies_hide(stored: Stored) -> Answer:
    largest = _sizes(stored, PROFILED)[-1]
    hidden = _hidden(largest, "copy")
    if hidden is None and is_processor(largest):
        return not_comparable("no copies", "a processor has no memory of its own to copy to")
    if hidden is None:
        raise NotMeasured("the timeline has no copies to the GPU")
    return judged(hidden >= HIDDEN, f"{share(hidden)} of the copies hide behind compute")


def _loading_hides(stored: Stored) -> Answer:
    """Whether training waits for data that really come from storage."""
    stall = _sizes(stored, PROFILED, "stall")[-1]
    hidden = _hidden(stall, "loading")
    measured = f"training waits for data {share(interval_of(stall).median)} of the time"
    if hidden is not None:
        measured += f"; {share(hidden)} of the loading hides behind compute"
    if not _is_from_storage(stall):
        why = f"the epochs are {_origins([stall])}, so that storage is not seen"
        raise NotMeasured(why, measured, is_lacking=False)
    are_above = {each > MOST_STALL for each in stall.samples}
    return judged(None if len(are_above) > 1 else not are_above.pop(), measured)


def _hidden(each: Measurement, lane: str) -> float | None:
    """The share of a lane that hides behind compute."""
    found = facts(each).part("timeline").part("hidden").number(lane)
    return found if found is not None and found <= 1 else None


def _range(rows: Sequence[Measurement]) -> str:
    """As `16 MiB 0.41 s to 256 MiB 6.2 s`."""
    ends = dict.fromkeys((0, len(rows) - 1))
    return " to ".join(
        f"{amount(_mib(rows[at]), 'MiB')} {amount(interval_of(rows[at]).median, 's')}"
        for at in ends
    )


TSUBAME3 = Paper(
    id="tsubame3",
    title="Data sets below and above the size of memory",
    cites="Miwa: Performance Evaluation of TensorFlow Applications on TSUBAME3.0 (in Japanese)",
    hardware="1 node of TSUBAME3.0: 4 GPUs, Lustre; TensorFlow 1.12",
    experiment=experiment,
    findings=(
        Finding(
            "results",
            "data sets around the size of memory (batch 256, 10 epochs)",
            "147.5 GB and 295.1 GB",
            _set_up,
        ),
        *(
            Finding(
                "results, Fig. 1",
                f"{title}: time grows in proportion to the data set",
                "in proportion",
                _proportional(model),
            )
            for model, title in MODELS.items()
        ),
        *(
            Finding(
                "results, Fig. 1",
                f"{title}: time grows alike below memory and above it",
                "almost the same",
                _no_bend(model),
            )
            for model, title in MODELS.items()
        ),
        Finding(
            "results, Fig. 2",
            "copies to the GPU hide behind compute (AlexNet)",
            "completely hidden",
            _copies_hide,
        ),
        Finding(
            "results",
            "reading from storage hides behind compute (AlexNet)",
            "hidden",
            _loading_hides,
        ),
    ),
)
