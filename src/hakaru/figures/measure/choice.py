"""What can be looked at in a run: a benchmark with its parameters, one quantity, one model of device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hakaru.errors import HakaruError
from hakaru.figures.measure.view import Reading, RunView, parse_object
from hakaru.measure._base import Better
from hakaru.measure.record import shown_parameters
from hakaru.measure.verdict import Verdict
from hakaru.registry import listed

MOST_NAMED = 8
# what has a history of each benchmark of training and storage, and what is only followed at its largest
KEPT = {
    "scaling": ("throughput", "ranks"),
    "strategies": ("throughput", "ranks"),
    "loading": ("rate", "mib"),
    "data-size": ("epoch", "mib"),
}
GROWING = ("bytes", "batch", "ranks", "hosts", "mib")  # parameters that differ along a sweep


@dataclass(frozen=True)
class Subject:
    """Things that can be compared with one another; `parameters` is JSON as it is stored."""

    benchmark: str
    parameters: str
    quantity: str
    model: str
    unit: str = ""
    better: Better = "higher"
    num_devices: int = 0
    num_valid: int = 0
    num_bad: int = 0

    @property
    def shown(self) -> str:
        return shown_parameters(parse_object(self.parameters))

    @property
    def title(self) -> str:
        """As `gemm fp64 size 1024, rate`."""
        return f"{self.benchmark} {self.shown}".strip() + f", {self.quantity}"

    @property
    def axis(self) -> str:
        name = self.quantity[:1].upper() + self.quantity[1:]
        return f"{name} ({self.unit})" if self.unit else name

    def holds(self, each: Reading) -> bool:
        return (each.benchmark, each.parameters, each.quantity, each.model) == (
            self.benchmark, self.parameters, self.quantity, self.model,
        )  # fmt: skip

    def of(self, view: RunView) -> list[Reading]:
        return [each for each in view.readings if self.holds(each)]


@dataclass(frozen=True)
class Choice:
    """What is asked for; what is left open is chosen. `parameters` is as it is shown."""

    benchmark: str | None = None
    parameters: str | None = None
    quantity: str | None = None
    model: str | None = None

    @property
    def is_open(self) -> bool:
        return self == Choice()

    def fits(self, subject: Subject) -> bool:
        pairs = (
            (self.benchmark, subject.benchmark),
            (self.parameters, subject.shown),
            (self.quantity, subject.quantity),
            (self.model, subject.model),
        )
        return all(wanted is None or wanted == found for wanted, found in pairs)


def card_subjects(view: RunView) -> list[Subject]:
    """What was measured on devices: what counts on most first, there what shows a bad one, else in order."""
    return sorted(_counted(view.cards), key=_rank)


def _rank(each: Subject) -> tuple[bool, bool, int, int, int]:
    """One device alone has nothing to be compared with, so that two or more come first."""
    return (
        not each.num_valid, each.num_devices < 2, -each.num_valid, -each.num_devices, -each.num_bad,
    )  # fmt: skip


def history_subjects(view: RunView) -> list[Subject]:
    """What has a history: all that was measured on devices, and each sweep among ranks at its largest."""
    together = [
        each for each in view.judged if not each.is_card and not each.is_link and _is_followed(each)
    ]
    largest: dict[tuple[str, ...], int] = {}
    for each in together:
        largest[_kind(each)] = max(largest.get(_kind(each), 0), _size(each))
    kept = [each for each in together if _size(each) == largest[_kind(each)]]
    return [*card_subjects(view), *_counted(kept)]


def find_subject(subjects: Sequence[Subject], choice: Choice) -> Subject | None:
    """The first that fits; None where there is nothing to choose from."""
    if not subjects:
        return None
    found = next((each for each in subjects if choice.fits(each)), None)
    if found is None:
        wanted = " ".join(filter(None, (choice.benchmark, choice.parameters, choice.quantity)))
        known = listed((each.title for each in subjects), MOST_NAMED)
        raise HakaruError(f"this run has no {wanted or choice.model!r}; it has: {known}")
    return found


def _counted(readings: Sequence[Reading]) -> list[Subject]:
    groups: dict[tuple[str, str, str, str], list[Reading]] = {}
    for each in readings:
        key = (each.benchmark, each.parameters, each.quantity, each.model)
        groups.setdefault(key, []).append(each)
    return [
        Subject(*key, group[0].unit, group[0].better, _num_devices(group), *_counts(group))
        for key, group in groups.items()
    ]


def _counts(group: Sequence[Reading]) -> tuple[int, int]:
    """Devices with a number that counts, and those that are not good."""
    valid = [each for each in group if each.is_valid]
    return _num_devices(valid), sum(each.verdict is not Verdict.GOOD for each in group)


def _num_devices(group: Sequence[Reading]) -> int:
    return len({(each.host, each.device) for each in group})


def _is_followed(each: Reading) -> bool:
    """Of quantities that say the same, one has a history."""
    if each.benchmark in KEPT:
        return each.quantity == KEPT[each.benchmark][0]
    return each.quantity not in ("algbw", "time")


def _kind(each: Reading) -> tuple[str, ...]:
    """What is the same along a sweep."""
    if each.benchmark not in KEPT:
        return each.benchmark, str(each.options.get("dtype")), each.quantity
    same = {name: value for name, value in each.options.items() if name not in GROWING}
    return each.benchmark, shown_parameters(same), each.quantity


def _size(each: Reading) -> int:
    size = each.options.get(KEPT[each.benchmark][1] if each.benchmark in KEPT else "bytes")
    return size if isinstance(size, int) else 0
