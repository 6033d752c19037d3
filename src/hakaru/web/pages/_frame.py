"""What stands around every page: who looks, the pages, the clusters, and the filters with their chips."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from hakaru.registry import hint
from hakaru.schema import RUNS, STATES
from hakaru.web.api import asker_of
from hakaru.web.filters import Filters
from hakaru.web.models import Cluster, Me
from hakaru.web.pages import _address as address
from hakaru.web.pages import _shown as shown
from hakaru.web.pages.static import address_of
from hakaru.web.problems import Unknown
from hakaru.web.service import MAX_NAMES, Asker

TEMPLATES = Path(__file__).parents[1] / "templates"
PAGES = (
    ("overview", "/", "Overview"),
    ("workload", "/workload", "Workload"),
    ("jobs", "/jobs", "Jobs"),
    ("people", "/people", "People"),
    ("compare", "/compare", "Compare"),
    ("what-if", "/what-if", "What-if"),
    ("measure", "/measure", "Measure"),
    ("data", "/data", "Data"),
)
FOR_OPERATORS = ("what-if", "measure")
PERIODS = (("Last 7 days", 7), ("30 days", 30), ("90 days", 90), ("Year", 365))
CHIPS = {
    "cluster": "Cluster", "since": "Since", "until": "Until", "queue": "Queue", "user": "User",
    "account": "Account", "application": "Application", "min_gpus": "{many} ≥", "max_gpus": "{many} ≤",
    "state": "State", "min_run": "Run time ≥ s", "where": "Where",
}  # fmt: skip
WEIGHTS = ("jobs", "gpu-hours")
LISTED = {"queue": "queues", "application": "applications"}
POOLED = ("overview", "jobs", "compare", "data")  # pages of all clusters, where none is chosen


@dataclass(frozen=True)
class Frame:
    """One request for a page: the asker, the clusters, and the address taken apart."""

    request: Request
    page: str
    asker: Asker
    me: Me
    clusters: list[Cluster]
    hint: str | None
    filters: Filters
    own: address.Pairs

    @classmethod
    def of(cls, request: Request, page: str) -> Frame:
        """Read the address; where one cluster must be chosen and none is, it is the first."""
        asker = asker_of(request)
        found = asker.clusters()
        chosen, own = address.split(address.given(request))
        return cls(
            request, page, asker, asker.me(), found.clusters, found.hint,
            address.read(Filters, chosen), own,
        )  # fmt: skip

    @property
    def pairs(self) -> address.Pairs:
        return address.pairs_of(self.filters)

    @property
    def one(self) -> Filters:
        """The filters with one cluster: the first that is chosen, else the first there is."""
        if self.filters.cluster or not self.clusters:
            return self.filters
        return self.filters.model_copy(update={"cluster": (self.clusters[0].name,)})

    @property
    def cluster(self) -> Cluster | None:
        names = self.filters.cluster
        found = [each for each in self.clusters if not names or each.name in names]
        return found[0] if found else None

    def check_clusters(self) -> None:
        known = [each.name for each in self.clusters]
        for name in self.filters.cluster:
            if name not in known:
                raise Unknown(f"there is no cluster {name!r}", hint(name, known))

    @property
    def shown(self) -> list[Cluster]:
        """The clusters of the page: those chosen, else all where it can pool them, else the first."""
        names = self.filters.cluster
        pooled = self.page in POOLED and not names
        return [c for c in self.clusters if c.name in names or pooled] or self.clusters[:1]

    @property
    def zone(self) -> str:
        return self.cluster.zone if self.cluster else "UTC"

    @property
    def units(self) -> tuple[str, str]:
        """What sizes count, one and many; PEs where the clusters of the page count different things."""
        found = {each.unit for each in self.shown} or {"gpu"}
        if len(found) > 1:
            return "PE", "PEs"
        return ("GPU", "GPUs") if found == {"gpu"} else ("processor", "processors")

    def heading(self, title: str) -> str:
        """A title with its units in place, capitalised."""
        text = title.format(one=self.units[0], many=self.units[1])
        return text[:1].upper() + text[1:]

    @property
    def weight(self) -> str:
        named = [value for name, value in self.own if name == "weight"]
        return named[-1] if named and named[-1] in WEIGHTS else "jobs"

    def own_only(self, *names: str) -> address.Pairs:
        """What else the address may say on this page; anything unknown is left for the model to refuse."""
        return [each for each in self.own if each[0] not in (*names, "weight")]

    def zone_of(self, cluster: str) -> str:
        return next((each.zone for each in self.clusters if each.name == cluster), "UTC")

    def at(self, path: str | None = None, **more: Any) -> str:
        """This view at another page, or with other words in its address."""
        base = [*self.pairs, *(self.own if path is None else self._weight())]
        return address.written(path or self.request.url.path, base, **more)

    def _weight(self) -> address.Pairs:
        return [("weight", self.weight)] if self.weight != "jobs" else []

    def render(self, template: str, **context: Any) -> Response:
        if address.has_empty(self.request):
            return RedirectResponse(self.at(), status_code=303)
        return HTMLResponse(render(template, frame=self, **_around(self), **context))

    def empty(self) -> Response:
        """The page of a lake that holds nothing yet."""
        return self.render("empty.html")


def pages_of(role: str) -> list[tuple[str, str, str]]:
    """The pages that somebody of this role can open."""
    return [each for each in PAGES if role != "user" or each[0] not in FOR_OPERATORS]


def render(template: str, **context: Any) -> str:
    return environment().get_template(template).render(**context)


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= shown.FILTERS
    made.globals |= {"static": address_of, "words": shown.WORDS, "pooled": POOLED}
    made.globals |= {"is_number": shown.is_number, "is_moment": shown.is_moment}
    return made


def _around(frame: Frame) -> dict[str, Any]:
    return {
        "pages": [(id, frame.at(path), name) for id, path, name in pages_of(frame.me.role)],
        "banners": _banners(frame),
        "chips": _chips(frame),
        "lacking": _lacking(frame),
        "periods": _periods(frame),
        "states": STATES,
        "is_user": frame.me.role == "user",
        "one": frame.units[0],
        "many": frame.units[1],
        "has_more": _has_more(frame.filters),
        "has_measured": _has_measured(frame),
    }


def _banners(frame: Frame) -> list[tuple[str, str]]:
    """What must be said of each cluster's log before any number of it."""
    found = []
    for each in frame.shown:
        log = "this log" if len(frame.shown) == 1 else f"the log of {each.name}"
        if each.synthetic:
            text = f"The jobs of {log}, or the times when they ran, were made up."
            found.append(("Synthetic data.", text))
        if each.missing:
            found.append((
                "Rows are missing.",
                f"{shown.share(each.missing)} of the rows of {log} could not be read, or contradict "
                "another row of their job; its numbers lack them.",
            ))  # fmt: skip
        if each.relative_dates:
            text = f"Those of {log} count from an unknown day, as it does not say when it began."
            found.append(("Dates are relative.", text))
    return found


def _chips(frame: Frame) -> list[tuple[str, str, str]]:
    """Each condition that narrows the view, and the address without it."""
    everything = [*frame.pairs, *frame.own]
    path = frame.request.url.path
    return [
        (
            frame.heading(CHIPS[name]),
            value,
            address.written(path, address.without(everything, name, value)),
        )
        for name, value in frame.pairs
    ]


def _lacking(frame: Frame) -> list[tuple[str, str, str, str]]:
    """Names that no chosen cluster has, as where the cluster was changed; a user's own are not listed."""
    asked = frame.shown
    if frame.me.role == "user" or not asked:
        return []
    whose, path = ", ".join(c.name for c in asked), frame.request.url.path
    everything = [*frame.pairs, *frame.own]
    return [
        (whose, name, value, address.written(path, address.without(everything, name)))
        for name, listed in LISTED.items()
        if (value := getattr(frame.filters, name)) is not None
        and not any(_may_have(getattr(c, listed), value) for c in asked)
    ]


def _may_have(listed: list[str], name: str) -> bool:
    return name in listed or len(listed) >= MAX_NAMES


def _periods(frame: Frame) -> list[tuple[str, str, bool]]:
    """Quick choices, counted back from the last submission, as a log may have ended long ago."""
    last = max((c.last_submit for c in frame.shown if c.last_submit), default=None)
    now = (frame.filters.since, frame.filters.until)
    path = frame.request.url.path
    base = [p for p in (*frame.pairs, *frame.own) if p[0] not in ("since", "until", "page")]
    choices = [("All", None)]
    if last is not None:
        ends = last.astimezone(ZoneInfo(frame.zone)).date()
        choices += [(name, str(ends - timedelta(days=days - 1))) for name, days in PERIODS]  # type: ignore[misc]
    return [
        (name, address.written(path, base, since=since), now == (since, None))
        for name, since in choices
    ]


def _has_measured(frame: Frame) -> bool:
    """Whether a lake without jobs has measurements that the viewer may see."""
    may_see = frame.hint is not None and frame.me.role != "user"
    return may_see and bool(frame.asker.readers.lake.files(RUNS))


def _has_more(filters: Filters) -> bool:
    names = ("user", "account", "application", "min_gpus", "max_gpus", "state", "where")
    return any(getattr(filters, name) not in (None, ()) for name in names)
