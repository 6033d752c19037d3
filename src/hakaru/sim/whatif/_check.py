"""Checks of a scenario's values; every problem is collected, so that a file is mended in one go."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hakaru.errors import HakaruError
from hakaru.registry import hint
from hakaru.sim.limits import LARGEST, MOST_SHOWN

Parse = Callable[[Any], Any]


class ScenarioError(HakaruError):
    """A scenario names something that is not there, or holds a value that is not allowed.

    `problems` has all that is wrong, one by one.
    """

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = list(problems) or [message]


class Checker:
    def __init__(self) -> None:
        self.problems: list[str] = []

    def table(self, value: Any, where: str, keys: Mapping[str, Parse]) -> dict[str, Any]:
        """The values of a table by key, each parsed; what is wrong is noted and left out."""
        if not isinstance(value, Mapping):
            self.problems.append(f"{where}: expected a table, found {value!r}")
            return {}
        return {
            key: parsed
            for key, item in value.items()
            if self.is_known(key, keys, where)
            and (parsed := self.value(item, f"{where}.{key}".lstrip("."), keys[key])) is not None
        }

    def value(self, value: Any, where: str, parse: Parse) -> Any:
        try:
            return parse(value)
        except (ValueError, HakaruError) as error:
            self.problems.append(f"{where}: {error}")
            return None

    def is_known(self, key: str, keys: Mapping[str, Parse], where: str) -> bool:
        if key not in keys:
            place = f"{where}.{key}" if where else key
            self.problems.append(f"{place}: unknown key; {hint(key, keys)}")
        return key in keys

    def name(self, name: str, known: Sequence[str], where: str) -> None:
        """A name that the log must hold."""
        if name not in known:
            self.problems.append(f"{where}: no job has {name!r}; {hint(name, known, MOST_SHOWN)}")

    def done(self, where: str) -> None:
        if self.problems:
            listed = "\n".join(f"  {problem}" for problem in self.problems)
            number = len(self.problems)
            raise ScenarioError(
                f"{where} has {number} problem{'' if number == 1 else 's'}:\n{listed}\n"
                "`hakaru whatif --example` prints a scenario with every key.",
                self.problems,
            )


def whole(least: int) -> Parse:
    def parse(value: Any) -> int:
        if isinstance(value, int):
            within(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"expected a whole number of at least {least}, found {value!r}")
        return value

    return parse


def within(value: int) -> int:
    """Numbers beyond these fit no array of the simulator."""
    if abs(value) > LARGEST:
        raise ValueError(f"expected a number of at most {LARGEST:,}, found one of {_digits(value)}")
    return value


def _digits(value: int) -> str:
    """Without writing it: Python refuses to write an integer of more than 4,300 digits."""
    return f"about {int(abs(value).bit_length() * math.log10(2)) + 1:,} digits"


def number(least: float, most: float = math.inf, above: bool = False, such_as: str = "") -> Parse:
    """A number from `least` (or above it) to `most`; `such_as` is an example."""
    says = f"{'above' if above else 'of at least'} {least:g}"
    says += f" and at most {most:g}" if most < math.inf else ""
    says += f" ({such_as})" if such_as else ""

    def parse(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"expected a number {says}, found {value!r}")
        if isinstance(value, int):
            within(value)
        if not least <= value <= most or (above and value == least) or math.isinf(value):
            raise ValueError(f"expected a number {says}, found {value!r}")
        return float(value)

    return parse


def one_of(*known: str) -> Parse:
    def parse(value: Any) -> str:
        if value not in known:
            raise ValueError(f"found {value!r}; {hint(str(value), known)}")
        return str(value)

    return parse


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {value!r}")
    return value


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a text, found {value!r}")
    return value


def texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f'expected a list of names such as ["short"], found {value!r}')
    return tuple(text(item) for item in value)
