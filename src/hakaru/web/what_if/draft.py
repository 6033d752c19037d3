"""The form of a scenario: its fields, the TOML that they write, and at which field a problem is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hakaru.web.what_if.bounds import Bounds
from hakaru.web.what_if.check import WrongScenario, checked

NUM_VARIANTS = 4
FAVOURED = "{ size = 2000, age = 1000, fair_share = 0 }"
# what the form begins with, so that one sees what can be said
BEGIN = {"policy": "easy", "months": "trusted", "v1-nodes": "4", "v2-accurate": "50"}
KEYS = ("name", "policy", "user_gpus", "user_jobs", "nodes", "accurate", "load", "favour")
# where the parser finds something wrong, and the field that wrote it
FIELD_OF = {
    "limits": "user_gpus", "accurate_requests": "accurate", "weights": "favour",
}  # fmt: skip
PLACE = re.compile(r"(machine|baseline|variant (\d+))(?: \([^\n]*?\))?[.:]\s?(\w*)")

PREFIX = re.compile(r"(?:machine|baseline|variant \d+)(?: \([^\n]*?\))?(?:\.[\w.\[\]]+)?: ")


@dataclass
class Draft:
    """What stands in the form; `errors` has a text for a field, and under "" for the whole."""

    values: Mapping[str, str]
    errors: dict[str, list[str]] = field(default_factory=dict)

    def get(self, name: str) -> str:
        return self.values.get(name, "").strip()

    def toml(self) -> str:
        """The scenario that the fields say; a number that is none is noted at its field."""
        self.errors = {}
        parts = ["[machine]" if self._machine() else "", *self._machine()]
        if self.get("months") not in ("", "trusted"):
            parts.insert(0, f"months = {_text(self.get('months'))}\n")
        parts += ["\n[baseline]", 'name = "as it is"']
        parts.append(f"policy = {_text(self.get('policy') or 'easy')}")
        for number in self.slots():
            parts += ["\n[[variant]]", *self._variant(number)]
        return "\n".join(part for part in parts if part).strip() + "\n"

    def slots(self) -> list[int]:
        """The variants that say anything; a name alone changes nothing."""
        numbers = range(1, NUM_VARIANTS + 1)
        return [n for n in numbers if any(self.get(f"v{n}-{key}") for key in KEYS[1:])]

    def explain(self, error: WrongScenario) -> None:
        """Put each problem at the field that it is about."""
        for problem in error.problems:
            name = self._field(problem)
            told = problem if not name else PREFIX.sub("", problem)
            if name.endswith("-load"):
                told = f"expected more than -100 and at most 900, found {self.get(name)}"
            self.errors.setdefault(name, []).append(told)

    def check(self, bounds: Bounds) -> str:
        """The text, if all is well with it."""
        text = self.toml()
        found = dict(self.errors)
        try:
            checked(text, bounds)
        except WrongScenario as error:
            self.explain(error)
            raise
        if found:
            raise WrongScenario(text, [each for listed in found.values() for each in listed])
        return text

    def _machine(self) -> list[str]:
        listed = (("nodes", "nodes"), ("size", "size"), ("processors", "processors"))
        return [line for name, key in listed if (line := self._number(name, key))]

    def _variant(self, number: int) -> list[str]:
        at = f"v{number}-"
        favour, chosen = self.get(at + "favour"), self.get(at + "policy")
        policy = chosen or ("multifactor" if favour else "")
        lines = [
            f"name = {_text(self.get(at + 'name') or self._name(number))}",
            f"policy = {_text(policy)}" if policy else "",
            f"weights = {FAVOURED}" if favour else "",
            self._number(at + "nodes", "nodes"),
            self._limits(at),
            self._number(at + "accurate", "accurate_requests", whole=False),
            self._load(at),
        ]
        return [line for line in lines if line]

    def _limits(self, at: str) -> str:
        kinds = (("user_gpus", "running-gpus"), ("user_jobs", "running-jobs"))
        listed = [
            f'{{ scope = "user", what = "{what}", {line} }}'
            for name, what in kinds
            if (line := self._number(at + name, "value"))
        ]
        return f"limits = [{', '.join(listed)}]" if listed else ""

    def _load(self, at: str) -> str:
        line = self._number(at + "load", "load", whole=False)
        return f"load = {1 + float(line.split('= ')[1]) / 100:g}" if line else ""

    def _number(self, name: str, key: str, whole: bool = True) -> str:
        """`key = 4`, or nothing; what is no number is told at its field."""
        text = self.get(name).replace("−", "-").removesuffix("%").strip()
        if not text:
            return ""
        if not re.fullmatch(r"[+-]?\d{1,9}" if whole else r"[+-]?\d{1,9}(\.\d{1,6})?", text):
            kind = "a whole number" if whole else "a number"
            self.errors.setdefault(name, []).append(f"expected {kind}, found {text[:40]!r}")
            return ""
        return f"{key} = {int(text)}" if whole else f"{key} = {float(text):g}"

    def _name(self, number: int) -> str:
        """What a variant is called, by what it changes."""
        at = f"v{number}-"
        nodes = self.get(at + "nodes")
        said = [
            self.get(at + "policy"),
            "multi-GPU favoured" if self.get(at + "favour") else "",
            _nodes_name(nodes) if nodes else "",
            _of(self.get(at + "user_gpus"), "{} GPUs a user"),
            _of(self.get(at + "user_jobs"), "{} jobs a user"),
            _of(_percent(self.get(at + "accurate")), "{} % ask accurately"),
            _load_name(_percent(self.get(at + "load"))),
        ]
        return ", ".join(each for each in said if each) or f"variant {number}"

    def _field(self, problem: str) -> str:
        found = PLACE.match(problem)
        if found is None:
            return ""
        part, number, key = found.groups()
        if part == "machine":
            return key if key in ("nodes", "size", "processors") else "processors"
        if part == "baseline":
            return "policy"
        slots = self.slots()
        slot = slots[int(number) - 1] if int(number) <= len(slots) else 1
        named = FIELD_OF.get(key, key)
        return f"v{slot}-{named if named in KEYS else 'name'}"


def _text(value: str) -> str:
    """A TOML string; JSON's escapes are TOML's too."""
    return json.dumps("".join(c for c in value if c.isprintable())[:100], ensure_ascii=False)


def _of(value: str, form: str) -> str:
    return form.format(value) if value else ""


def _percent(text: str) -> str:
    return text.replace("−", "-").removesuffix("%").strip().lstrip("+")


def _load_name(percent: str) -> str:
    more = "less" if percent.startswith("-") else "more"
    return f"{percent.removeprefix('-')} % {more} load" if percent else ""


def _nodes_name(text: str) -> str:
    number = text.replace("−", "-").lstrip("+")
    count = number.removeprefix("-")
    noun = "node" if count == "1" else "nodes"
    return f"{count} {'fewer' if number.startswith('-') else 'more'} {noun}"
