"""What storage must deliver so that training never waits: now, and with devices 2, 4 and 8 times as fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from hakaru.measure.numbers import amount
from hakaru.measure.storage._counters import OF_STORAGE
from hakaru.measure.storage._epoch import Epoch

TIMES = (2, 4, 8)


@dataclass(frozen=True)
class Needed:
    """Rates in MB/s; the loader's is storage's only where its label says so."""

    now: float
    loader: float | None
    label: str

    def delivers(self, times: float) -> bool | None:
        """None where the loader's rate is not known to be storage's."""
        if self.loader is None or self.label not in OF_STORAGE:
            return None
        return self.loader >= self.now * times

    @property
    def sentence(self) -> str:
        need = f"Without waiting for data, training takes {amount(self.now, 'MB/s')}"
        if self.loader is None:
            return f"{need}. There was no time to measure what the loader delivers."
        found = f"{need}; the loader alone delivers {amount(self.loader, 'MB/s')}"
        if self.label not in OF_STORAGE:
            why = {"unknown": "unknown where from"}.get(self.label, self.label)
            return f"{found}, {why}: that says nothing of storage."
        return f"{found} {self.label}, {self._judgement()}."

    def _judgement(self) -> str:
        if not self.delivers(1):
            return "which is too little already now"
        enough = [times for times in TIMES if self.delivers(times)]
        if len(enough) == len(TIMES):
            return f"enough for a device {TIMES[-1]} times as fast"
        if not enough:
            return f"too little for a device {TIMES[0]} times as fast"
        return f"enough for a device {enough[-1]} times as fast, but not {TIMES[len(enough)]}"

    def to_json(self) -> dict[str, Any]:
        return {
            "mb_per_s_now": round(self.now, 3),
            "loader_mb_per_s": None if self.loader is None else round(self.loader, 3),
            "loader_label": self.label,
            "for_faster": [
                {
                    "times": times,
                    "mb_per_s": round(self.now * times, 3),
                    "delivers": self.delivers(times),
                }
                for times in TIMES
            ],
            "sentence": self.sentence,
        }


def needed_by(steady: Sequence[Epoch], loader_only: Epoch | None) -> Needed | None:
    """From epochs of training, and one of the loader alone; None where nothing was computed."""
    rates = [each.delivered_bytes / each.computed_s / 1e6 for each in steady if each.computed_s > 0]
    if not rates:
        return None
    if loader_only is None:
        return Needed(median(rates), None, "unknown")
    return Needed(median(rates), loader_only.mb_per_s, loader_only.label)
