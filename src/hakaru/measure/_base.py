"""What a benchmark is: declared once, and from that alone in the command line, the docs, report and web.

A benchmark's function prepares a case on a device (or among ranks); the protocol times its step. Adding
one is one file and its test.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from hakaru.errors import HakaruError
from hakaru.measure.verdict import Verdict
from hakaru.registry import Registry, hint, listed

if TYPE_CHECKING:
    from hakaru.measure.record import Measurement

Better = Literal["higher", "lower"]
Scope = Literal["device", "ranks", "machine"]
Value = int | str
AUTO = "auto"  # the device decides
FAMILIES = ("device", "collective", "hpl", "training", "storage")


class WrongResult(Exception):
    """The computed result is not what it must be: the device or the link corrupts data."""


class NotApplicable(Exception):
    """This device does not have what the benchmark measures; nothing is wrong with it."""


@dataclass(frozen=True)
class Quantity:
    """Something that is measured, its unit, and whether more of it is better."""

    name: str
    unit: str
    better: Better = "higher"
    title: str = ""


@dataclass(frozen=True)
class Parameter:
    """A parameter with the values that are swept; `quick` is the shorter sweep of `--quick`.

    `on_gpu` and `quick_on_gpu` replace them where the devices are GPUs, which need larger sizes. A parameter
    whose values are numbers takes the words of `choices` too.
    """

    name: str
    values: tuple[Value, ...]
    help: str
    quick: tuple[Value, ...] = ()
    choices: tuple[str, ...] = ()
    on_gpu: tuple[Value, ...] = ()
    quick_on_gpu: tuple[Value, ...] = ()
    is_word: bool = False  # though its usual value is `auto`, which mostly stands for a number
    is_path: bool = False  # one value, in which a comma is a letter like others
    check: Callable[[str], object] | None = (
        None  # of a word: raises HakaruError before anything is measured
    )

    def swept(self, quick: bool = False, on_gpu: bool = False) -> tuple[Value, ...]:
        for_gpu = ((quick and self.quick_on_gpu) or self.on_gpu) if on_gpu else ()
        return for_gpu or (quick and self.quick) or self.values

    def parse(self, text: str) -> Value:
        if self.values[0] == AUTO and text == AUTO:
            return text
        if self.is_word or not (isinstance(self.values[0], int) or self.values[0] == AUTO):
            if self.choices and text not in self.choices:
                raise HakaruError(f"{self.name}={text!r}: {hint(text, self.choices)}")
            if self.check is not None:
                self.check(text)
            return text
        if text in self.choices:
            return text
        if not re.fullmatch(r"[0-9]{1,13}", text) or not 0 < int(text) <= 2**40:
            usual = [AUTO] if self.values[0] == AUTO else []
            named = " or ".join(["a whole number above 0", *usual, *self.choices])
            raise HakaruError(f"{self.name}={text!r}: expected {named}")
        return int(text)

    def split(self, text: str) -> list[str]:
        """The values of a list such as `1024,2048`."""
        return [text] if self.is_path else [each.strip() for each in text.split(",")]


def nothing() -> None:
    """What a case without a queue of work waits for."""


@dataclass(frozen=True)
class Case:
    """A prepared benchmark: one step of it, what its seconds say, and how its result is checked.

    `values` turns the seconds of one step into the quantities. `check` raises `WrongResult`. `sync` waits
    for what the device still has to do. `read` gives facts that only hold under load, such as link widths.
    `together` says that the other devices of the node are to work too while one is timed.
    """

    step: Callable[[], object]
    values: Callable[[float], Mapping[str, float]]
    check: Callable[[], None]
    sync: Callable[[], None] = nothing
    read: Callable[[], Mapping[str, Any]] | None = None
    together: bool = False


@dataclass(frozen=True)
class Part:
    """One of the things that a procedure timed together, such as a number of ranks or a layout of files.

    `samples` has a value a repetition of each quantity; a quantity that is not there has no row. `parameters`
    come beside those of the item. `facts` is a JSON document that is stored with the rows.
    """

    samples: Mapping[str, Sequence[float]]
    parameters: Mapping[str, Value] = field(default_factory=dict)
    device: str = ""  # else all ranks
    facts: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None  # where it is not good
    reason: str = ""


Links = Mapping[str, Mapping[str, Sequence[float]]]  # samples of each quantity, by the link's name


@dataclass(frozen=True)
class Procedure:
    """A benchmark that times several things at once, such as all pairs of a round.

    `run` is called by every rank with the time that it may take; rank 0's answer counts. `check` raises
    `WrongResult`. With `fills_memory`, waiting for memory is a part of what is measured.
    """

    run: Callable[[float], Links | Sequence[Part]]
    check: Callable[[], None] = nothing
    fills_memory: bool = False


# a benchmark of scope `machine` starts its own processes and gives its measurements
Prepare = Callable[..., "Case | Procedure | list[Measurement]"]


@dataclass(frozen=True)
class Benchmark:
    """An entry of the registry; the last parameter of its grid changes fastest."""

    id: str
    title: str
    answers: str
    family: str
    scope: Scope
    check: str
    judged: str
    prepare: Prepare
    description: str
    reproduces: str = ""
    parameters: tuple[Parameter, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    needs: tuple[str, ...] = field(default=("torch",))

    def quantity(self, name: str) -> Quantity:
        return next(each for each in self.quantities if each.name == name)

    def grid(
        self,
        quick: bool = False,
        chosen: Mapping[str, Sequence[Value]] | None = None,
        on_gpu: bool = False,
    ) -> list[dict[str, Value]]:
        """The points of the sweep; `chosen` replaces the values of some parameters."""
        given = chosen or {}
        values = [given.get(each.name) or each.swept(quick, on_gpu) for each in self.parameters]
        names = [each.name for each in self.parameters]
        return [dict(zip(names, point, strict=True)) for point in product(*values)]

    def parse(self, pairs: Mapping[str, str]) -> dict[str, list[Value]]:
        """`size=1024,2048` as values of the parameter; a name that it does not have is an error."""
        known = {each.name: each for each in self.parameters}
        for name in pairs:
            if name not in known:
                raise HakaruError(f"{self.id} has no parameter {name!r}; {hint(name, known)}")
        return {
            name: list(dict.fromkeys(map(known[name].parse, known[name].split(text))))
            for name, text in pairs.items()
        }


BENCHMARKS: Registry[Benchmark] = Registry("benchmark")


def benchmark(
    id: str,
    *,
    title: str,
    answers: str,
    family: str,
    scope: Scope,
    check: str,
    judged: str,
    quantities: Sequence[Quantity],
    parameters: Sequence[Parameter] = (),
    reproduces: str = "",
    needs: Sequence[str] = ("torch",),
) -> Callable[[Prepare], Prepare]:
    """Register a function that prepares a case; its docstring is the benchmark's description."""

    def register(prepare: Prepare) -> Prepare:
        BENCHMARKS.add(
            Benchmark(
                id=id,
                title=title,
                answers=answers,
                family=family,
                scope=scope,
                check=check,
                judged=judged,
                prepare=prepare,
                description=" ".join((prepare.__doc__ or "").split()),
                reproduces=reproduces,
                parameters=tuple(parameters),
                quantities=tuple(quantities),
                needs=tuple(needs),
            )
        )
        return prepare

    return register


def load_all() -> Registry[Benchmark]:
    """Import every module of the families' folders, so that each benchmark has registered itself."""
    for family in FAMILIES:
        package = importlib.import_module(f"hakaru.measure.{family}")
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{package.__name__}.{module.name}")
    BENCHMARKS.sort(key=lambda each: FAMILIES.index(each.family))
    return BENCHMARKS


def find_benchmarks(names: Sequence[str]) -> list[Benchmark]:
    """Benchmarks by id or family; all of them where none is named."""
    every = load_all()
    if not names:
        return list(every)
    found: dict[str, Benchmark] = {}
    for name in names:
        if name in FAMILIES:
            found |= {each.id: each for each in every if each.family == name}
        elif name in every:
            found[name] = every.get(name)
        else:
            known = [*FAMILIES, *every.ids()]
            raise HakaruError(
                f"there is no benchmark or family {name!r}; {hint(name, known)}"
                f" (families: {listed(FAMILIES)})"
            )
    return [each for each in every if each.id in found]
