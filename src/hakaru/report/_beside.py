"""Published figures beside one's own, each with the number of its citation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hakaru.comparison import Line
    from hakaru.reference.metrics import Cell, Metric
    from hakaru.reference.published import Published
    from hakaru.report._story import Story
    from hakaru.texts import Language


LONG_PLACES = 120


def published_view(story: Story, analysis: str) -> list[dict[str, Any]]:
    """The metrics of an analysis that others have published: ours, then theirs; "" for the machine's."""
    return [
        {
            "label": _label(story.words, line),
            "own": _shown(story.words, line, story.cluster),
            "others": [_figure(story, figure) for figure in line.published.values()],
        }
        for line in story.published.lines
        if _home(line.metric) == analysis and line.published
    ]


def _home(metric: Metric) -> str:
    """Beside which figure a metric stands; one by number of GPUs is about the jobs' parallelism."""
    return "parallelism" if metric.by == "num_gpus" else metric.analysis


def compared_view(story: Story) -> dict[str, Any]:
    """The headline: a row a metric, a column a cluster, and the published ones in columns or a list."""
    compared = story.compared
    names = [compared.name(cluster) for cluster in compared.clusters]
    chosen = compared.published
    heads = [story.words.say("report", "published_beside")] if chosen is None else chosen
    return {
        "heads": [*names, *heads],
        "num_own": len(names),
        "rows": [_row(story, line) for line in compared.lines],
        "reasons": _reasons(story),
    }


def citations(story: Story) -> list[dict[str, Any]]:
    """The sources in the order in which they were cited, with the places that the figures stand at."""
    return [
        {
            "number": number,
            "source": source,
            "places": _places([figure.where for figure in figures]),
            "caveats": list(dict.fromkeys(figure.note for figure in figures if figure.note)),
        }
        for number, (source, figures) in enumerate(story.notes.sources.items(), 1)
    ]


def _places(places: list[str]) -> str:
    """Where the figures stand, unless that is a long list: each figure's own mark has its place too."""
    listed = "; ".join(dict.fromkeys(places))
    return listed if len(listed) <= LONG_PLACES else ""


def _row(story: Story, line: Line) -> dict[str, Any]:
    compared = story.compared
    own = [_shown(story.words, line, cluster) for cluster in compared.clusters]
    if compared.published is None:
        beside = [[_figure(story, figure) for figure in line.published.values()]]
    else:
        found = [line.published.get(name) for name in compared.published]
        beside = [[_figure(story, figure, False)] if figure else [] for figure in found]
    return {"label": _label(story.words, line), "own": own, "beside": beside}


def _label(words: Language, line: Line) -> str:
    label = words.told("metric", line.metric.id, line.metric.label)
    return f"{label} ({line.counting})" if line.counting and words.code == "en" else label


def _shown(words: Language, line: Line, cluster: str) -> str:
    cell: Cell = line.cells[cluster]
    return "–" if cell.value is None else words.of_unit(cell.value, line.metric.unit)


def _figure(story: Story, figure: Published, named: bool = True) -> dict[str, str]:
    value = story.words.of_unit(figure.value, figure.unit)
    return {
        "cluster": figure.cluster if named else "",
        "value": f"{figure.bound}{value}",
        "citation": story.notes.cite(figure).strip("[]"),
        "where": figure.where,
        "note": figure.note,
    }


def _reasons(story: Story) -> list[tuple[str, str]]:
    """Why a cell has no number, and what must be said beside one."""
    words = story.words
    return [
        (f"{_label(words, line)}, {cluster}", cell.reason or cell.caveat)
        for line in story.compared.lines
        for cluster, cell in line.cells.items()
        if cell.reason or cell.caveat
    ]
