"""How numbers, times and names are written on the pages; unknown is a dash."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from hakaru.figures.measure.words import in_zone
from hakaru.texts import language
from hakaru.web.models import Cluster, ClusterOverview

WORDS = language("en")
UNKNOWN = "–"
BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
DURATIONS = ("wait_s", "run_s", "requested_s")


def number(value: float | None, digits: int = 0) -> str:
    """Grouped by thousands."""
    return UNKNOWN if _unknown(value) else WORDS.number(value or 0, digits)


def brief(value: float | None) -> str:
    """A large number in few digits: 2.11 M, 459,545, 43.7."""
    if value is None or _unknown(value):
        return UNKNOWN
    if abs(value) >= 1_000_000:
        return f"{value / 1e6:,.2f} M"
    whole = abs(value) >= 100 or float(value).is_integer()
    return WORDS.number(value, 0 if whole else 1)


def duration(seconds: float | None) -> str:
    return UNKNOWN if seconds is None or _unknown(seconds) else WORDS.duration(seconds)


def share(value: float | None) -> str:
    return UNKNOWN if value is None or _unknown(value) else WORDS.share(value)


def change(value: float | None) -> str:
    """+12 % or −3 %; nothing that a fifth digit would tell."""
    if value is None or _unknown(value):
        return ""
    percent = round(value * 100)
    if percent > 999:
        return f"×{value + 1:,.0f}"
    sign = "+" if percent > 0 else "−" if percent < 0 else "±"
    return f"{sign}{abs(percent)} %"


def bytes_(value: int | None) -> str:
    if value is None:
        return UNKNOWN
    for size, name in BYTES:
        if value >= size:
            return f"{value / size:.1f} {name}"
    return f"{value} B"


def moment(value: datetime | None, zone: str = "UTC") -> Markup | str:
    """In the site's zone; UTC stands in the title."""
    if value is None:
        return UNKNOWN
    at = value.astimezone(UTC)
    local = in_zone(at, zone)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        f"{at:%Y-%m-%dT%H:%M:%SZ}", f"{at:%Y-%m-%d %H:%M:%S}", f"{local:%Y-%m-%d %H:%M:%S}"
    )


def day(value: datetime | None, zone: str = "UTC") -> str:
    return UNKNOWN if value is None else f"{in_zone(value, zone):%Y-%m-%d}"


def clock(log: Cluster | ClusterOverview) -> str:
    """Which clock a log's times are on."""
    if log.relative_dates:
        return "dates are relative"
    return log.zone if log.zone_known else f"{log.zone} (time zone unknown)"


def times(log: Cluster) -> str:
    """What to say under a table of times."""
    if log.relative_dates:
        return "Dates are relative: the log does not say when it began."
    if not log.zone_known:
        return f"Times are in {log.zone}: the site’s time zone is unknown."
    return f"Times are those of the site ({log.zone}); UTC is in the title of each."


def cell(value: Any, column: str, zone: str = "UTC") -> Markup | str:
    """A cell of a table, by its column's name."""
    if isinstance(value, datetime):
        return moment(value, zone)
    if value is not None and (column in DURATIONS or column.endswith("_s")):
        return duration(float(value))
    if isinstance(value, list | tuple):
        return " ".join(str(each) for each in value) or UNKNOWN
    if column == "median_request_accuracy":
        return share(value)
    if column.endswith("pe_hours") and not column.startswith("share"):
        return _hours(value)
    return WORDS.cell(column, value)


def _hours(value: float | None) -> str:
    """Whole where they are many, or none; a few with what makes them differ."""
    if value is None or _unknown(value):
        return UNKNOWN
    whole = abs(value) >= 100 or float(value).is_integer()
    return WORDS.number(value, 0 if whole else 1 if abs(value) >= 1 else 3)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_moment(value: Any) -> bool:
    return isinstance(value, datetime)


def state(value: str | None) -> str:
    return "unknown" if value is None else value.replace("_", " ")


def prose(text: str) -> Markup:
    """A sentence of ours, in which `backticks` mean code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def bar(value: float, label: str) -> Markup:
    """A share as a small horizontal bar, without a style of its own."""
    width = max(0.0, min(1.0, value)) * 100
    return Markup(
        '<svg class="bar" role="img" aria-label="{}" viewBox="0 0 100 8" preserveAspectRatio="none">'
        '<rect class="bar-track" width="100" height="8"></rect>'
        '<rect class="bar-fill" width="{}" height="8"></rect></svg>'
    ).format(escape(label), f"{width:.2f}")


def _unknown(value: float | None) -> bool:
    return value is None or not math.isfinite(value)


FILTERS = {
    "number": number,
    "brief": brief,
    "duration": duration,
    "share": share,
    "change": change,
    "bytes": bytes_,
    "moment": moment,
    "day": day,
    "clock": clock,
    "times": times,
    "cell": cell,
    "state": state,
    "bar": bar,
    "prose": prose,
}
