"""A card: one analysis with the addresses of its figure, its data, and the jobs behind it."""

from __future__ import annotations

from dataclasses import dataclass

from hakaru.analyses import load_all
from hakaru.texts import Language, language
from hakaru.web.models import AnalysisInfo
from hakaru.web.pages import _address as address
from hakaru.web.pages._frame import Frame


@dataclass(frozen=True)
class Card:
    """Its texts and `words` are in GPUs or processors: what the first cluster counts, as in the figure."""

    info: AnalysisInfo
    words: Language
    figure: str
    csv: str
    parquet: str
    json: str
    page: str
    jobs: str
    where: str
    refused: str

    @property
    def id(self) -> str:
        return self.info.id


def card(
    frame: Frame, info: AnalysisInfo, cluster: str | None = None, own: address.Pairs | None = None
) -> Card:
    """`own` are the page's by and parameters; the weight goes only to those that take it."""
    base = _selected(frame, info, cluster)
    extra = [each for each in own or [] if each[0] != "weight"]
    if info.weighted and frame.weight != "jobs":
        extra.append(("weight", frame.weight))
    asked = [*base, *extra]
    data = f"/api/v1/analyses/{info.id}"
    words = _words(frame, cluster)
    return Card(
        info=_in_unit(info, words),
        words=words,
        figure=address.written(f"/api/v1/figures/{info.id}", asked),
        csv=address.written(data, asked, format="csv"),
        parquet=address.written(data, asked, format="parquet"),
        json=address.written(data, asked),
        page=address.written(f"/workload/{info.id}", [*frame.pairs, *extra]),
        jobs=address.written("/jobs", _behind(info, base)),
        where=frame.filters.where or "",
        refused=_refused(frame, info),
    )


def _words(frame: Frame, cluster: str | None) -> Language:
    first = cluster or frame.one.cluster[0]
    return language("en", next((c.unit for c in frame.clusters if c.name == first), "gpu"))


def _in_unit(info: AnalysisInfo, words: Language) -> AnalysisInfo:
    texts = ("title", "question", "description")
    said = {name: words.told(name, info.id, getattr(info, name)) for name in texts}
    return info.model_copy(update=said)


def _selected(frame: Frame, info: AnalysisInfo, cluster: str | None) -> address.Pairs:
    """One cluster, unless several are chosen and can stand side by side."""
    pairs = address.pairs_of(frame.one)
    names = [cluster] if cluster else list(frame.one.cluster)
    rest = address.without(pairs, "cluster")
    if len(names) > 1 and info.groups:
        return [*rest, *(("cluster", name) for name in names), ("by", "cluster")]
    return [*rest, *(("cluster", name) for name in names[:1])]


def _behind(info: AnalysisInfo, base: address.Pairs) -> address.Pairs:
    """The filters of the jobs behind it; those that ran in a period may have been submitted before it."""
    gone = {"by", "where"}
    if load_all().get(info.id).period == "present":
        gone |= {"since", "until"}
    return [each for each in base if each[0] not in gone]


def _refused(frame: Frame, info: AnalysisInfo) -> str:
    """Why a user would get nothing here, said before it is asked."""
    if frame.me.role != "user" or info.for_users or frame.filters.user == frame.me.user:
        return ""
    return (
        "This figure could show individual people. Choose “only mine” to see it for your own jobs."
    )
