"""The one record of everything that is measured: a run and its measurements, as rows of the lake's `runs`."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, get_args

from hakaru.measure._base import Better
from hakaru.measure.statistics import Interval, median_interval, spread
from hakaru.measure.verdict import Verdict, worst

Subject = tuple[str, str, str, str]
OWN = "hakaru"
MOST_RAW = 10_000
MOST_TEXT = 2_000
LARGEST = 1e300  # of a repetition; the mean of two larger ones may be infinite
ITEM = "item"  # in the validity of a part: the parameters that were asked for
CHECK_UNIT = "0–1"  # of a check or a share, which may be 0
COUNTS = (Verdict.GOOD, Verdict.SLOW)  # verdicts that rest on numbers
JUDGED = ("verdict", "reason", "unit", "median", "raw", "validity")  # columns of the verdict
NO_RESULT = "the record has a verdict but no repetitions"
DAMAGED = "the record is damaged: its verdict or its validity cannot be read"


@dataclass(frozen=True)
class Measurement:
    """One quantity of one device, or of one group of ranks: a row."""

    benchmark: str
    quantity: str
    unit: str
    better: Better
    host: str
    device: str
    started_at: datetime
    ended_at: datetime
    parameters: Mapping[str, Any] = field(default_factory=dict)
    samples: tuple[float, ...] = ()
    verdict: Verdict = Verdict.NOT_MEASURED
    reason: str = ""
    reference: float | None = None
    compared_with: str = ""
    correlation: float = 0.0
    device_uuid: str | None = None
    validity: Mapping[str, Any] = field(default_factory=dict)
    place: Mapping[str, Any] = field(default_factory=dict)

    @property
    def interval(self) -> Interval | None:
        """The median of the repetitions with its 95 % interval; None where there is no number."""
        known = [each for each in self.samples if math.isfinite(each)]
        return median_interval(known, correlation=self.correlation) if known else None

    @property
    def median(self) -> float | None:
        return self.interval.median if self.interval else None

    @property
    def share_of_reference(self) -> float | None:
        """How much of what it was compared with it reaches, 1 being all; None where there is no number."""
        if not self.median or not self.reference or not self.compared_with:
            return None
        is_rate = self.better == "higher"
        return self.median / self.reference if is_rate else self.reference / self.median

    @property
    def model(self) -> str:
        """The devices that should be equally fast: those of one model, else of one kind."""
        return str(self.place.get("model") or self.device.partition(":")[0])

    @property
    def subject(self) -> Subject:
        """What a baseline is kept for: the benchmark, its parameters, the model, the quantity."""
        return (self.benchmark, parameters_text(self.parameters), self.model, self.quantity)

    @property
    def is_trial(self) -> bool:
        """Whether it is a step of a search, which no other run repeats."""
        return "trial" in self.parameters

    def judged(self, verdict: Verdict, reason: str, **more: Any) -> Measurement:
        return replace(self, verdict=verdict, reason=reason[:MOST_TEXT], **more)


@dataclass(frozen=True)
class Run:
    """One call of `hakaru bench`: its measurements, what it left out and why, and an import's notes."""

    id: str
    cluster: str
    started_at: datetime
    measurements: tuple[Measurement, ...]
    source: str = OWN
    label: str | None = None
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of all; a trial that failed counts only through the search that it is a step of."""
        return worst(each.verdict for each in self.measurements if not each.is_trial)


def new_run_id(now: datetime | None = None) -> str:
    """A name that sorts by time and that two nodes never share."""
    return f"{now or datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}"


def parameters_text(parameters: Mapping[str, Any]) -> str:
    return json.dumps(dict(parameters), sort_keys=True, ensure_ascii=False)


# what a person looks for first, in this order; the others follow as they are stored
FIRST = (
    "model",
    "layout",
    "state",
    "scaling",
    "strategy",
    "compression",
    "accumulate",
    "microbatches",
)
UNSAID = {
    "compression": "none", "hosts": 1, "prefetch": 2, "accumulate": 1, "decode": "raw", "path": "temporary",
}  # fmt: skip
SWEPT = ("sizes",)  # which sweep it is a part of; its own size stands beside


def shown_parameters(parameters: Mapping[str, Any]) -> str:
    """As `fp64 size 2048`: names for numbers, words as they are, sizes in MiB, and nothing that is usual."""
    names = sorted(parameters, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    said = [name for name in names if parameters[name] != UNSAID.get(name) and name not in SWEPT]
    return " ".join(_shown(name, parameters[name]) for name in said)


def _shown(name: str, value: Any) -> str:
    if name == "mib" and isinstance(value, int):
        return f"{value} MiB"
    if name == "bytes" and isinstance(value, int):
        unit = next(
            (u for u in (("MiB", 2**20), ("KiB", 2**10)) if value % u[1] == 0 and value), None
        )
        return f"{value // unit[1]} {unit[0]}" if unit else f"{value} B"
    return str(value) if isinstance(value, str) else f"{name} {value}"


def to_rows(run: Run) -> list[dict[str, Any]]:
    return [_row(run, each) for each in run.measurements]


def from_rows(rows: Sequence[Mapping[str, Any]]) -> list[Run]:
    """The runs that the rows are of, the oldest first."""
    runs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        runs.setdefault((row["cluster"], row["run_id"]), []).append(row)
    found = [_run(cluster, id, listed) for (cluster, id), listed in runs.items()]
    return sorted(found, key=lambda run: (run.started_at, run.id))


def _row(run: Run, each: Measurement) -> dict[str, Any]:
    interval = each.interval
    texts = {"left_out": list(run.left_out)} | ({"notes": list(run.notes)} if run.notes else {})
    return {
        "cluster": run.cluster,
        "run_id": run.id,
        "started_at": each.started_at,
        "ended_at": each.ended_at,
        "source": run.source,
        "label": run.label,
        "benchmark": each.benchmark,
        "parameters": parameters_text(each.parameters),
        "host": each.host,
        "device": each.device,
        "device_uuid": each.device_uuid,
        "quantity": each.quantity,
        "unit": each.unit,
        "better": each.better,
        "num_repetitions": len(each.samples),
        "median": interval.median if interval else None,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "spread": spread(each.samples) if interval and len(each.samples) > 1 else None,
        "raw": json.dumps([_stored(value) for value in each.samples[:MOST_RAW]]),
        "reference": each.reference,
        "compared_with": each.compared_with or None,
        "verdict": each.verdict.value,
        "reason": each.reason,
        "validity": json.dumps(dict(each.validity) | {"correlation": each.correlation}, sort_keys=True),
        "place": json.dumps(dict(each.place) | texts, sort_keys=True),
    }  # fmt: skip


def _run(cluster: str, id: str, rows: Sequence[Mapping[str, Any]]) -> Run:
    first = min(rows, key=lambda row: row["started_at"])
    place = _object(first["place"])
    return Run(
        id=id,
        cluster=cluster,
        started_at=first["started_at"],
        measurements=tuple(_measurement(row) for row in rows),
        source=first["source"] or OWN,
        label=first["label"],
        left_out=texts_of(place, "left_out"),
        notes=texts_of(place, "notes"),
    )


def texts_of(place: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """What a run left out, or its notes; both are stored with the place of each of its rows."""
    found = place.get(name)
    return tuple(map(str, found)) if isinstance(found, list) else ()


def verdict_of(row: Mapping[str, Any]) -> tuple[Verdict, str]:
    """What a stored row says, and why; the one rule for terminal, lists and pages.

    It needs the columns JUDGED. What cannot be read, or rests on repetitions that are not all numbers
    above 0, is not measured, never good.
    """
    if row["verdict"] not in set(Verdict):
        return Verdict.NOT_MEASURED, row["reason"] or DAMAGED
    verdict, reason = Verdict(row["verdict"]), row["reason"] or ""
    if verdict not in COUNTS:
        return verdict, reason
    problem = _problem(row)
    return (Verdict.NOT_MEASURED, problem) if problem else (verdict, reason)


# SQL, in the words that both engines share: rows of which the stored verdict surely holds by `verdict_of`,
# so that lists of runs need not read every repetition; all others are looked at one by one. A repetition is
# a number above 0 of few digits, as it is mostly written; without braces, which mark places for values.
# Lists are short, because Java's expressions go some calls deeper for each number.
MOST_PLAIN = 1_000  # characters
_NUMBER = "([1-9][0-9]*[.][0-9]+|0[.]0*[1-9][0-9]*)"
_TOO_LONG = "[0-9]" * 20
PLAIN = f"""coalesce(
    verdict IN ('failed', 'contaminated', 'not measured')
    OR verdict IN ('good', 'slow') AND median > 0 AND median < 1e300
       AND validity LIKE '%"correlation": 0%' AND length(raw) <= {MOST_PLAIN} AND raw LIKE '[%]'
       AND regexp_extract(raw, '{_TOO_LONG}', 0) = ''
       AND regexp_extract(raw, '^.{_NUMBER}(, {_NUMBER})*.$', 0) = raw, false)"""


def _problem(row: Mapping[str, Any]) -> str:
    """Why the numbers of a row do not count; nothing where they do."""
    samples = _samples(row["raw"])
    if not samples or row["median"] is None or not math.isfinite(row["median"]):
        return NO_RESULT
    least = 0.0 if row["unit"] == CHECK_UNIT else math.ulp(0.0)
    num_bad = sum(not (math.isfinite(each) and each >= least) for each in samples)
    if num_bad:
        return f"{num_bad:,} of its {len(samples):,} repetitions are not numbers above 0"
    if max(samples) > LARGEST:
        return "its repetitions are too large to be real"
    return "" if _correlation(row["validity"]) is not None else DAMAGED


def _measurement(row: Mapping[str, Any]) -> Measurement:
    """A row read back."""
    verdict, reason = verdict_of(row)
    validity = _object(row["validity"])
    validity.pop("correlation", None)
    return Measurement(
        benchmark=row["benchmark"],
        quantity=row["quantity"],
        unit=row["unit"] or "",
        better=row["better"] if row["better"] in get_args(Better) else "higher",
        host=row["host"],
        device=row["device"],
        started_at=row["started_at"],
        ended_at=row["ended_at"] or row["started_at"],
        parameters=_object(row["parameters"]),
        samples=_samples(row["raw"]),
        verdict=verdict,
        reason=reason,
        reference=row["reference"],
        compared_with=row["compared_with"] or "",
        correlation=_correlation(row["validity"]) or 0.0,
        device_uuid=row["device_uuid"],
        validity=validity,
        place=_object(row["place"]),
    )


def _stored(value: float) -> float | None:
    """Null stands for what is not finite, so that it shows."""
    return float(f"{value:.9g}") if math.isfinite(value) else None


def _samples(text: str | None) -> tuple[float, ...]:
    """The repetitions; what is not a number among them is NaN, and what is no list has none."""
    values = _json(text or "[]")
    return tuple(_number(each) for each in values) if isinstance(values, list) else ()


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _correlation(validity: str | None) -> float | None:
    """Of one repetition with the next; None where it cannot be read."""
    found = _number(_object(validity).get("correlation", 0.0))
    return found if -1 < found < 1 else None


def _object(text: str | None) -> dict[str, Any]:
    found = _json(text or "{}")
    return found if isinstance(found, dict) else {}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
