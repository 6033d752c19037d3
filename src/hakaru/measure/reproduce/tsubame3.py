"""Miwa on TSUBAME3.0: four CNNs on data sets below and above memory; does loading hide behind compute?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
    NotMeasured,
    Stored,
    base_name,
    counts,
    facts,
    interval_of,
    is_processor,
    machine_text,
    many,
    number,
    shown_share,
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


def experiment(size: Size) -> Experiment:
    """Quickly with less memory, so that data sets larger than it are small too."""
    memory = {"memory": [QUICK_MEMORY]} if size.quick and not size.on_gpu else {}
    return Experiment({BENCHMARK: {"model": list(MODELS), **memory}})


def _sizes(stored: Stored, model: str, quantity: str = "epoch") -> list[Measurement]:
    """The rows of a network from the smallest size on, all of one setting and none of them bad."""
    every = stored.matching(BENCHMARK, quantity, model=model)
    own = [each for each in every if number(each.parameters.get("mib"))]
    groups: dict[tuple[Any, ...], list[Measurement]] = {}
    for each in own:
        groups.setdefault(_setting(each), []).append(each)
    if not groups:
        raise stored.lacking(BENCHMARK, {"model": model})
    found = max(groups.values(), key=len)
    if bad := [each for each in found if not counts(each)]:
        sizes = ", ".join(f"{each.parameters['mib']:,} MiB" for each in bad)
        raise NotMeasured(f"{sizes}: {bad[0].verdict}: {bad[0].reason}")
    return sorted(found, key=lambda each: float(each.parameters["mib"]))


def _setting(each: Measurement) -> tuple[Any, ...]:
    return tuple(each.parameters.get(name) for name in ("model", "layout", "workers", "memory"))


def _proportional(model: str) -> Callable[[Stored], Answer]:
    def judge(stored: Stored) -> Answer:
        """All epochs are near one line through zero, as in the figure."""
        rows = _sizes(stored, model)
        if len(rows) < 2:
            raise NotMeasured(f"one size has no line. {_notes(rows)}".strip(), _range(rows), False)
        off = _off_the_line(rows)
        worst = max(max(shares) for shares in off)
        measured = f"{_range(rows)}; at most {shown_share(worst)} of the longest off the line"
        is_off = any(min(shares) > IN_PROPORTION for shares in off)
        return judged(True if worst <= IN_PROPORTION else False if is_off else None, measured)

    return judge


def _off_the_line(rows: Sequence[Measurement]) -> list[list[float]]:
    """How far each epoch of each size is off the best line through zero, as a share of the longest."""
    points = [(float(each.parameters["mib"]), interval_of(each).median) for each in rows]
    rate = sum(mib * time for mib, time in points) / sum(mib * mib for mib, _ in points)
    longest = max(time for _, time in points)
    return [
        [abs(seconds - rate * mib) / longest for seconds in each.samples]
        for each, (mib, _) in zip(rows, points, strict=True)
    ]


def _notes(rows: Sequence[Measurement]) -> str:
    """What the benchmark says of sizes that it left out."""
    found = facts(rows[-1], "notes")
    return " ".join(map(str, found)) if isinstance(found, list) else ""


def _no_bend(model: str) -> Callable[[Stored], Answer]:
    def judge(stored: Stored) -> Answer:
        """What the benchmark's own fit says of the line at the size of memory."""
        largest = _sizes(stored, model)[-1]
        fit = facts(largest, "fit")
        if not isinstance(fit, dict):
            raise NotMeasured(f"the largest size of {model} carries no fit of its line")
        sentence, state = str(fit.get("sentence") or "").rstrip("."), _state(fit)
        if state == "below":
            why = f"no data set was larger than memory. {_notes([largest])}".strip()
            raise NotMeasured(why, sentence, is_lacking=False)
        return judged({"none": True, "knee": False}.get(state), sentence)

    return judge


def _state(fit: dict[str, Any]) -> str:
    if fit.get("state"):
        return str(fit["state"])
    if fit.get("knee_mib") is not None:
        return "knee"
    return "below" if fit.get("slope_above_s_per_gib") is None else "none"


def _set_up(stored: Stored) -> Answer:
    rows = stored.every(BENCHMARK, "epoch")
    trained = [each for each in rows if base_name(each.parameters.get("model")) in MODELS]
    sizes = sorted({int(each.parameters["mib"]) for each in trained or rows})
    memory = number(facts(rows[0], "memory_mib"))
    of_memory = f", memory for {memory:,.0f} MiB of files" if memory else ""
    epochs = max(len(each.samples) for each in rows)
    measured = f"{sizes[0]:,} to {sizes[-1]:,} MiB{of_memory}, {many(epochs, 'epoch')}"
    return other_hardware(NODE, f"{measured}, {machine_text(rows[0])}")


def _copies_hide(stored: Stored) -> Answer:
    largest = _sizes(stored, PROFILED)[-1]
    share = number(facts(largest, "timeline", "hidden", "copy"))
    if share is None and is_processor(largest):
        return not_comparable("no copies", "a processor has no memory of its own to copy to")
    if share is None:
        raise NotMeasured("the timeline has no copies to the GPU")
    return judged(share >= HIDDEN, f"{shown_share(share)} of the copies hide behind compute")


def _loading_hides(stored: Stored) -> Answer:
    """Whether training waits for data that really come from storage."""
    stall = _sizes(stored, PROFILED, "stall")[-1]
    labels = {_label(each) for each in facts(stall, "epochs") or () if _label(each)}
    hidden = number(facts(stall, "timeline", "hidden", "loading"))
    waits = interval_of(stall).median
    measured = f"training waits for data {shown_share(waits)} of the time"
    if hidden is not None:
        measured += f"; {shown_share(hidden)} of the loading hides behind compute"
    if not _is_storage_seen(stall, labels):
        told = " or ".join(sorted(labels)) or "not labelled"
        raise NotMeasured(f"the epochs are {told}, so that storage is not seen", measured, False)
    are_above = {share > MOST_STALL for share in stall.samples}
    return judged(None if len(are_above) > 1 else not are_above.pop(), measured)


def _is_storage_seen(each: Measurement, labels: set[str]) -> bool:
    """Bytes were read from the device, or must have been: a network file system does not say."""
    if labels - {"cached", "unknown"}:
        return True
    memory = number(facts(each, "memory_mib"))
    return labels == {"unknown"} and memory is not None and each.parameters["mib"] > memory


def _label(epoch: Any) -> str:
    """Where the bytes of a steady epoch came from."""
    is_steady = isinstance(epoch, dict) and epoch.get("state") != "cold"
    return str(epoch.get("label") or "") if is_steady else ""


def _range(rows: Sequence[Measurement]) -> str:
    """As `16 MiB 0.41 s to 256 MiB 6.2 s`."""
    ends = dict.fromkeys((0, len(rows) - 1))
    return " to ".join(
        f"{rows[at].parameters['mib']:,} MiB {interval_of(rows[at]).median:.3g} s" for at in ends
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
