"""What a figure is, the registry of its kinds, and the one call that draws a result."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hakaru.figures.theme import DARK, LIGHT, Theme
from hakaru.registry import Registry
from hakaru.texts import language

if TYPE_CHECKING:
    from hakaru.analyses import Result
    from hakaru.figures._frame import Frame

Unit = Literal["gpu", "cpu"]
FALLBACK = "table"
HEIGHT = 380


@dataclass(frozen=True)
class Figure:
    """An ECharts option, and what must be said around it; `height` is in pixels, at any width.

    `own_notes` are those of the notes that speak of the drawing, not of the jobs behind it.
    """

    kind: str
    title: str
    question: str
    option: dict[str, Any]
    notes: tuple[str, ...]
    height: int = HEIGHT
    own_notes: tuple[str, ...] = ()
    lang: str = "en"


@dataclass(frozen=True)
class Drawn:
    """What a kind makes: the option, how high it is best drawn, and notes of its own."""

    option: dict[str, Any]
    height: int = HEIGHT
    notes: tuple[str, ...] = ()


Painter = Callable[["Frame", Theme], Drawn]


@dataclass(frozen=True)
class Kind:
    id: str
    paint: Painter
    description: str


KINDS: Registry[Kind] = Registry("kind of figure")


def kind(id: str) -> Callable[[Painter], Painter]:
    """Register a function that draws; its docstring says what it draws."""

    def register(paint: Painter) -> Painter:
        KINDS.add(Kind(id, paint, (paint.__doc__ or "").strip()))
        return paint

    return register


def draw(result: Result, dark: bool = False, unit: Unit = "gpu", lang: str = "en") -> Figure:
    """The figure of a result in a language; `unit` is what the size of its jobs counts (`Session.unit`)."""
    from hakaru.analyses import remarks
    from hakaru.figures._frame import Frame, notes_of
    from hakaru.figures._parts import empty, finished

    theme = DARK if dark else LIGHT
    chosen = _kind_of(result)
    words = language(lang, unit)
    frame = Frame.of(result, words)
    drawn = chosen.paint(frame, theme) if frame.rows else empty(theme, frame.say("nothing"))
    analysis = result.analysis
    title = words.told("title", analysis.id, analysis.title)
    own_notes = (*drawn.notes, *remarks(result, words))
    return Figure(
        kind=chosen.id,
        title=title,
        question=words.told("question", analysis.id, analysis.answers),
        option=finished(drawn.option, theme, title, words),
        notes=(*notes_of(frame), *own_notes),
        height=drawn.height,
        own_notes=own_notes,
        lang=lang,
    )


def load_kinds() -> Registry[Kind]:
    """Import every kind of this folder, so that it has registered itself."""
    import hakaru.figures as package

    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"hakaru.figures.{module.name}")
    return KINDS


def _kind_of(result: Result) -> Kind:
    kinds = load_kinds()
    word = result.analysis.figure
    return kinds.get(word if word in kinds else FALLBACK)
