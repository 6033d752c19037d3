"""What an importer is, and the few things that all of them need: clean texts, numbers, JSON and times."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from hakaru.errors import HakaruError
from hakaru.measure._base import Better, load_all
from hakaru.measure.record import Measurement
from hakaru.measure.store import SELFTEST
from hakaru.measure.verdict import Verdict, worst
from hakaru.registry import Registry
from hakaru.safety.text import one_line

UNKNOWN_HOST = "unknown"
UNKNOWN_RANKS = "unknown ranks"
CHECK, CHECK_UNIT = "passed", "0–1"
FIRST_TIME = datetime(1990, 1, 1, tzinfo=UTC)
MOST_NAME = 200
MOST_REASON = 500
MOST_NOTES = 50
MOST_VALUE = 1e15  # in any unit that is used here; more is no result
MOST_RESULTS = 50_000  # a SuperBench summary of a hundred nodes; tables have a few hundred rows
DOCUMENT = re.compile(r"\s*(?:\{|\[\s*[{\]])")
HEAD = 2**18  # characters by which the format of a document is recognised
MOST_DIGITS = 18  # of a whole number; more would not fit where it is stored


@dataclass(frozen=True)
class ResultFile:
    """The file that is read; `host` is for formats that do not name the host themselves."""

    path: Path
    modified_at: datetime
    host: str = UNKNOWN_HOST

    @property
    def name(self) -> str:
        return clip(self.path.name)


class Content:
    """The text of a file, and the JSON that all of it is; it is parsed at most once."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def document(self) -> Any:
        """None where the text is not one document of JSON from its beginning to its end."""
        return _parsed(self.text) if self.begins_as_json else None

    @cached_property
    def lines(self) -> list[dict[str, Any]] | None:
        """None where the text is not an object of JSON in each of several lines."""
        if not self.begins_as_json or self.document is not None:
            return None
        found = []
        for line in self.text.splitlines():
            parsed = _parsed(line)
            if line.strip() and not isinstance(parsed, dict):
                return None
            found += [parsed] if line.strip() else []
        return found

    @cached_property
    def begins_as_json(self) -> bool:
        """A log may begin with `[1,0]<stdout>:` or `[node07:411]`."""
        return bool(DOCUMENT.match(self.text))

    @property
    def is_json(self) -> bool:
        return self.document is not None or self.lines is not None

    @property
    def looks(self) -> str:
        """Where to look for a format: a document is of one program, and its beginning shows of which."""
        return self.text[:HEAD] if self.is_json else self.text


class Found(NamedTuple):
    """What a file holds, what of it was left out and why, and what else one should know of its numbers."""

    measurements: list[Measurement]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Importer:
    """An entry of the registry; `looks` describes the format to a person.

    `is_printed` is of programs that print their results, so that a job's log may hold those of several.
    """

    id: str
    title: str
    looks: str
    recognises: Callable[[Content], bool]
    read: Callable[[ResultFile, Content], Found]
    is_printed: bool = False


IMPORTERS: Registry[Importer] = Registry("import format")


class Key(NamedTuple):
    """What is measured, of what: the samples of one key become one measurement."""

    benchmark: str
    quantity: str
    unit: str
    better: Better
    host: str
    device: str
    parameters: tuple[tuple[str, int | str], ...] = ()
    model: str = ""


def own_key(
    benchmark: str, quantity: str, host: str, device: str,
    parameters: Mapping[str, int | str], model: str = "",
) -> Key:  # fmt: skip
    """A quantity that our own benchmarks measure too, in their unit."""
    own = load_all().get(benchmark).quantity(quantity)
    return Key(
        benchmark, quantity, own.unit, own.better, host, device, tuple(parameters.items()), model
    )


class Collected:
    """Samples and judgements by key; the worst judgement of a key is the one that counts."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._samples: dict[Key, list[float]] = {}
        self._reasons: dict[Key, dict[Verdict, str]] = {}

    def add(
        self, key: Key, value: float | None, verdict: Verdict = Verdict.GOOD, reason: str = ""
    ) -> None:
        """One sample; good without a number, or with one that cannot be, does not exist."""
        if key.benchmark == SELFTEST:  # a run of nothing else would count as a test of our meter
            key = key._replace(benchmark=f"{self.title.lower()}-{SELFTEST}")
        if value is not None and abs(value) > MOST_VALUE:
            implausible = f"{self.title} reports {value:g}, which is too large to be a result"
            value = None
            if verdict is Verdict.GOOD:
                verdict, reason = Verdict.NOT_MEASURED, implausible
        if value is None and verdict is Verdict.GOOD:
            verdict, reason = Verdict.NOT_MEASURED, f"{self.title} has no number for it"
        if value is not None and value <= 0 and verdict is Verdict.GOOD and key.unit != CHECK_UNIT:
            verdict, reason = (
                Verdict.NOT_MEASURED,
                f"{self.title} reports {value:g}, which is not a number above 0",
            )
        self._samples.setdefault(key, []).extend([] if value is None else [value])
        check_size(len(self._samples), "results")
        reasons = self._reasons.setdefault(key, {})
        reasons.setdefault(verdict, clip(reason, MOST_REASON) or as_reported(self.title))

    @property
    def is_empty(self) -> bool:
        return not self._samples

    def has(self, *benchmarks: str) -> bool:
        return any(key.benchmark in benchmarks for key in self._samples)

    def measurements(
        self, started_at: datetime, ended_at: datetime, place: Mapping[str, Any]
    ) -> list[Measurement]:
        return [self._measurement(key, started_at, ended_at, place) for key in self._samples]

    def _measurement(
        self, key: Key, started_at: datetime, ended_at: datetime, place: Mapping[str, Any]
    ) -> Measurement:
        verdict = worst(self._reasons[key])
        return Measurement(
            benchmark=key.benchmark,
            quantity=key.quantity,
            unit=key.unit,
            better=key.better,
            host=key.host,
            device=key.device,
            started_at=started_at,
            ended_at=ended_at,
            parameters=dict(key.parameters),
            samples=tuple(self._samples[key]),
            verdict=verdict,
            reason=self._reasons[key][verdict],
            place=dict(place) | ({"model": key.model} if key.model else {}),
        )


def check_size(count: int, what: str) -> None:
    """Before all of it is kept: each result takes some kilobytes and time."""
    if count > MOST_RESULTS:
        raise HakaruError(
            f"the file holds more than {MOST_RESULTS:,} {what}, which is the most of one import;"
            " split it and import the parts"
        )


def as_reported(title: str) -> str:
    """Why an imported number is good: there is one, and the program reports no error."""
    return f"as reported by {title}; not compared with anything"


def clip(text: object, most: int = MOST_NAME) -> str:
    """A text of a file as one harmless line of bounded length."""
    words = " ".join(str(text)[: 4 * most].split())
    clean = one_line(words)
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def number(value: object) -> float | None:
    """A finite number, or nothing; a truth value is none, and neither is an empty cell or Python's 0_0."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or "_" in str(value):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def whole(value: object) -> int | None:
    """A whole number of at least 0."""
    text = str(value).strip() if isinstance(value, int | str) else ""
    usable = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    return int(text) if usable and not isinstance(value, bool) else None


def mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def parse_json(path: Path, text: str, line: int = 0) -> Any:
    """The document; an error names the place where it is broken."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise HakaruError(f"{where(path)}: the JSON is nested too deeply to be a result") from error
    except json.JSONDecodeError as error:
        at = f"line {line or error.lineno}, column {error.colno}"
        raise HakaruError(
            f"{where(path)}, {at}: this is not JSON ({error.msg});"
            " the file may be cut off: copy it again, or repeat the run that wrote it"
        ) from error
    except ValueError as error:  # a whole number of thousands of digits
        raise HakaruError(f"{where(path)}: a number in it is too long to be a result") from error


def where(path: Path) -> str:
    return one_line(str(path))


def noted(notes: Sequence[str]) -> tuple[str, ...]:
    """Notes of bounded number, each once; the last counts the rest."""
    every = list(dict.fromkeys(notes))
    more = [f"and {len(every) - MOST_NOTES:,} more"] if len(every) > MOST_NOTES else []
    return tuple(every[:MOST_NOTES] + more)


def is_plausible(moment: datetime) -> bool:
    """Whether a result can be of that time; clocks and zones may differ by a day."""
    return FIRST_TIME <= moment <= datetime.now(UTC) + timedelta(days=1)


def local_time(text: object) -> datetime | None:
    """`2026-02-26 12:00:00` without a zone: the writer's local time, taken to be ours."""
    try:
        return datetime.strptime(str(text)[:40], "%Y-%m-%d %H:%M:%S").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
