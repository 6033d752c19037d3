"""One language: its texts by section and key, and how it writes numbers, shares, times and dates."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from hakaru.errors import HakaruError
from hakaru.texts._agree import agreeing

LANGUAGES = ("en", "ja", "ko")
UNKNOWN = "–"
# columns whose values are words of the analyses, not of the data
VOCABULARIES = (
    "parallelism", "class", "state", "fate", "coefficient", "reading", "part", "submissions", "holder",
)  # fmt: skip
RAN = re.compile(r"that ran for at least ([0-9.e+]+) s")
ARE = "that are "
BY_UNIT = ("title", "question", "description", "rule")  # texts that speak of the unit as GPUs
OR_PROCESSORS = re.compile(r"(GPUs?) ?\([^)]*\)")
STEPS = ((172800.0, "d", 86400.0), (7200.0, "h", 3600.0), (120.0, "min", 60.0))


@dataclass(frozen=True)
class Language:
    code: str
    texts: Mapping[str, Mapping[str, str]]
    unit: str = "gpu"

    def say(self, section: str, key: str, /, **values: object) -> str:
        """A text with its values; `{one}` and `{many}` name what the size of a job counts."""
        said = self.texts[section][key].format(**self._units(), **values)
        return agreeing(said) if self.code == "en" else said

    def told(self, section: str, key: str, otherwise: str) -> str:
        """A translation of what a registry says in English, which stands where there is none."""
        text = self.texts.get(section, {}).get(key)
        said = otherwise if text is None else text.format(**self._units())
        return self._in_processors(said) if section in BY_UNIT else said

    def column(self, name: str) -> str:
        """A column's heading; one that begins with the unit begins with a capital too."""
        text = self.told("column", name, name)
        return text if text == name else text[:1].upper() + text[1:]

    def rule(self, rule: str) -> str:
        """A rule of an analysis; the two that carry a value have a pattern."""
        if self.code == "en":
            return self._in_processors(rule)
        if found := RAN.fullmatch(rule):
            return self.texts["rule"]["that ran for at least"].format(seconds=found[1])
        if rule.startswith(ARE):
            states = [self.told("word", s, s) for s in rule.removeprefix(ARE).split(" or ")]
            return self.texts["rule"]["that are"].format(states=self.listed(states))
        return self.told("rule", rule, rule)

    def jobs(self, min_run_s: float | None, states: Sequence[str]) -> str:
        """The jobs of a least run time and of some states, as a sentence speaks of them."""
        named = [self.told("word", state, state) for state in states if state != "any"]
        key = ("states" if named else "") + ("_ran" if min_run_s else "")
        return self.texts["jobs"][key.strip("_") or "all"].format(
            seconds=f"{min_run_s:g}" if min_run_s else "", states=self.listed(named)
        )

    def in_unit(self, unit: str, text: str) -> str:
        """A number's text with its unit, as `h`, `s` or `percent`."""
        return self.texts["language"][unit].format(text)

    def _units(self) -> dict[str, str]:
        words = self.texts["unit"]
        return {"one": words[f"{self.unit}_one"], "many": words[f"{self.unit}_many"]}

    def _in_processors(self, text: str) -> str:
        """What the registry says of GPUs, for processors where the size of a job counts those."""
        if self.unit == "gpu":
            return text
        words = self._units()
        said = OR_PROCESSORS.sub(r"\1", text)
        said = said.replace("GPUs", words["many"]).replace("GPU", words["one"])
        return said[:1].upper() + said[1:] if text[:1].isupper() else said

    def number(self, value: float, digits: int = 0) -> str:
        return f"{value:,.{digits}f}".replace("-", "−")

    def share(self, value: float) -> str:
        """Percent with one decimal, or two where one would say nothing."""
        percent = value * 100
        digits = 2 if 0 < abs(percent) < 0.1 else 1
        return self.texts["language"]["percent"].format(self.number(percent, digits))

    def times(self, value: float) -> str:
        return self.number(value, 0 if value >= 10 else 1)

    def duration(self, seconds: float) -> str:
        for least, name, size in STEPS:
            if abs(seconds) >= least:
                return self.texts["language"][name].format(self.number(seconds / size, 1))
        whole = seconds == int(seconds)
        return self.texts["language"]["s"].format(self.number(seconds, 0 if whole else 1))

    def within(self, seconds: float) -> str:
        """Within a time, or at once where that is none."""
        if not seconds:
            return self.texts["language"]["at_once"]
        return self.texts["language"]["within"].format(self.duration(seconds))

    def hour(self, hour: int) -> str:
        return f"{hour % 24:02d}:00"

    def weekday(self, number: int) -> str:
        return self.texts["weekday"][str(number)]

    def of_unit(self, value: float, unit: str) -> str:
        """A metric's number, by the unit that `metrics.toml` gives it."""
        if unit == "share":
            return self.share(value)
        if unit == "s":
            return self.duration(value)
        if unit == "hour of day":
            return self.hour(int(value))
        if unit == "weekday":
            return self.weekday(int(value))
        if unit in ("correlation", "ratio"):
            return self.number(value, 3 if unit == "correlation" else 2)
        return self.number(value, 0 if value == int(value) else 2)

    def listed(self, parts: list[str]) -> str:
        return self.texts["language"]["join"].join(parts)

    def cell(self, column: str, value: Any) -> str:
        """A cell of an analysis' table; unknown is a dash, never 0."""
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return UNKNOWN
        if column == "weekday":
            return self.weekday(int(value))
        if isinstance(value, bool):
            return "✓" if value else ""
        if isinstance(value, int):
            return self.number(value)
        if isinstance(value, float):
            is_share = column.startswith("share") or column == "utilisation"
            return self.share(value) if is_share else self._decimal(value)
        if hasattr(value, "strftime"):
            return f"{value:%Y-%m-%d %H:%M}"
        return str(value)

    def _decimal(self, value: float) -> str:
        return self.number(value, 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 3)


@cache
def language(code: str, unit: str = "gpu") -> Language:
    """The language of a code; `unit` is what the size of the jobs counts: gpu or cpu."""
    if code not in LANGUAGES:
        raise HakaruError(f"there is no language {code!r}; known: {', '.join(LANGUAGES)}")
    return Language(code, _read(f"{code}.toml") | _read(f"{code}.figures.toml"), unit)


def _read(name: str) -> dict[str, dict[str, str]]:
    return tomllib.loads((files("hakaru.texts") / name).read_text(encoding="utf-8"))
