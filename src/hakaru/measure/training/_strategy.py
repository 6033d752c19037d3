"""How a training is spread over ranks, as the user writes it: `ddp`, `1f1b`, `ddp2+gpipe2`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from hakaru.errors import HakaruError
from hakaru.registry import hint, listed

DATA = ("ddp", "fsdp")  # each rank has samples of its own
PIPELINES = ("gpipe", "1f1b")
MODEL = ("tensor", *PIPELINES)  # the ranks share the samples and split the network
NAMES = ("single", *DATA, *MODEL)


@dataclass(frozen=True)
class Strategy:
    """Parts and their sizes, the outermost first; size 0 is what the others leave of the world."""

    parts: tuple[tuple[str, int], ...]

    @classmethod
    def parse(cls, text: str) -> Strategy:
        """Names joined by `+`, each with its number of ranks or without; of several without, the first takes
        what is left and the others two ranks each."""
        parts = [_part(each.strip(), text) for each in text.lower().split("+")]
        open_parts = [at for at, (_, size) in enumerate(parts) if not size]
        for at in open_parts[1:]:
            parts[at] = (parts[at][0], 2)
        if problem := _combination([name for name, _ in parts]):
            raise HakaruError(f"strategy {text!r}: {problem}")
        return cls(tuple(parts))

    def __str__(self) -> str:
        return "+".join(f"{name}{size if size > 1 else ''}" for name, size in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.parts)

    @property
    def pipeline(self) -> str | None:
        """Its pipeline schedule, if it has one."""
        return next((name for name in self.names if name in PIPELINES), None)

    def fits(self, world: int) -> str | None:
        """Why so many ranks cannot run it, or None; any single part runs on one rank, as that rank alone."""
        if world == 1 and len(self.parts) == 1 and self.parts[0][1] < 2:
            return None  # the first point of every scaling curve
        fixed = math.prod(size for _, size in self.parts if size)
        if all(size for _, size in self.parts):
            return None if fixed == world else f"{self} takes {_ranks(fixed)}, not {world}"
        if world % fixed:
            return f"{self} needs a multiple of {_ranks(fixed)}, not {world}"
        short = [name for name, size in self.sizes(world).items() if size < 2]
        return f"{short[0]} needs two ranks or more, and {self} leaves it one" if short else None

    def sizes(self, world: int) -> dict[str, int]:
        """The ranks of each part, the outermost first; call it where the strategy fits."""
        fixed = math.prod(size for _, size in self.parts if size)
        return {name: size or world // fixed for name, size in self.parts}

    def data_ranks(self, world: int) -> int:
        """Among how many ranks, or groups of ranks, a batch is divided."""
        return math.prod(size for name, size in self.sizes(world).items() if name in DATA)


def _part(word: str, text: str) -> tuple[str, int]:
    found = re.fullmatch(r"(single|ddp|fsdp|tensor|gpipe|1f1b)([0-9]{0,6})", word)
    if not found:
        raise HakaruError(
            f"strategy {text!r}: {word!r} is unknown (write names, each with a number of ranks if it is "
            f"fixed, and + between them, as in ddp2+gpipe2); {hint(word, NAMES)}"
        )
    name, size = found[1], int(found[2] or 0)
    if found[2] and (size < 2 or name == "single"):
        raise HakaruError(f"strategy {text!r}: {word!r}: a part has two ranks or more")
    return name, 1 if name == "single" else size


def _combination(names: list[str]) -> str | None:
    """Why these parts do not go together, or None."""
    if len(set(names)) < len(names):
        return "a part is named twice"
    if "single" in names and len(names) > 1:
        return "a single process is not combined with anything"
    model = [name for name in names if name in MODEL]
    if len(model) > 1:
        return f"{listed(model)} both split the network; choose one of them"
    if model and names[-1] != model[0]:
        return f"{model[0]} comes last, since its ranks share samples; write {_sorted(names)}"
    if model and model[0] in PIPELINES and "fsdp" in names:
        return (
            f"{model[0]} already keeps each layer on one rank; combine it with ddp, not with fsdp"
        )
    if names[:2] == ["fsdp", "ddp"]:
        return "ddp copies what fsdp shards; write ddp before fsdp"
    return None


def _sorted(names: list[str]) -> str:
    return "+".join(sorted(names, key=NAMES.index))


def _ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"
