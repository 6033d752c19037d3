"""The notes under a comparison: numbered citations, whole or short, and lettered reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hakaru.reference.metrics import load_metrics

if TYPE_CHECKING:
    from hakaru.reference.metrics import Cell
    from hakaru.reference.published import Published

LONG_PLACES = 90
MOST_NAMED = 3
AUTHORS = re.compile(r" & |et al\.")
YEAR = re.compile(r"\b(?:19|20)[0-9]{2}\b|\bSC[0-9]{2}\b|arXiv:")


@dataclass
class Notes:
    """Numbered citations and lettered reasons, each once, in the order of their first use."""

    sources: dict[str, dict[Published, None]] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)

    def cite(self, figure: Published) -> str:
        self.sources.setdefault(figure.source, {})[figure] = None
        return f"[{list(self.sources).index(figure.source) + 1}]"

    def reason(self, cluster: str, cell: Cell) -> str:
        """The letter of the reason for a missing number, or of the caveat on one."""
        reason = cell.reason or cell.caveat
        clusters = self.reasons.setdefault(reason, [])
        if cluster not in clusters:
            clusters.append(cluster)
        return _letter(list(self.reasons).index(reason))

    def lines(self, whole: bool = True) -> Iterator[str]:
        for index, (reason, clusters) in enumerate(self.reasons.items()):
            yield f"({_letter(index)}) {', '.join(clusters)}: {reason}"
        for number, (source, figures) in enumerate(self.sources.items(), 1):
            places = "; ".join(dict.fromkeys(figure.where for figure in figures))
            name = source if whole else short(source)
            yield f"[{number}] {name}" + (f": {places}" if len(places) <= LONG_PLACES else "")
            if whole:
                yield from _caveats(list(figures))


def short(source: str) -> str:
    """Who and when: authors and venue with year, or the repository and the paper it is of."""
    if paper := re.search(r"\(([^()]*et al\.[^()]*)\)", source):
        repository = re.split(r"[@ ]", source)[0]
        return f"{repository} ({re.sub(r', doi:.*', '', paper[1])})"
    parts = source.split(", ")
    last_author = next((i for i, part in enumerate(parts) if AUTHORS.search(part)), 0)
    rest = parts[last_author + 1 :]
    when = next((part for part in rest if YEAR.search(part)), rest[-1] if rest else "")
    return ", ".join([*parts[: last_author + 1], *([when] if when else [])])


def _caveats(figures: Sequence[Published]) -> Iterator[str]:
    """What a source says of its figures: of which ones, where it is not all of them."""
    labels = {id: metric.label for id, metric in load_metrics().items()}
    for note in dict.fromkeys(figure.note for figure in figures if figure.note):
        meant = list(dict.fromkeys(labels[f.metric] for f in figures if f.note == note))
        more = f" and {len(meant) - MOST_NAMED} more" if len(meant) > MOST_NAMED else ""
        yield f"    {'; '.join(meant[:MOST_NAMED])}{more}: {note}"


def _letter(index: int) -> str:
    """a to z, then aa, ab …"""
    prefix = _letter(index // 26 - 1) if index >= 26 else ""
    return prefix + chr(ord("a") + index % 26)
