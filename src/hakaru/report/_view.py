"""A story in the words of its language: the plain texts and rows that the template puts into place."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hakaru.analyses import remarks
from hakaru.report._beside import citations, compared_view, published_view
from hakaru.schema import JOBS
from hakaru.texts import VOCABULARIES, Language

if TYPE_CHECKING:
    from hakaru.analyses import Result
    from hakaru.figures import Figure
    from hakaru.report._story import Part, Story

MAX_ROWS = 48
MAX_OPEN_ROWS = 16  # of a table that stands in place of a figure
NUM_ALL = "num_all"  # how many rows there are, in a table that has a limit of its own
WIDE = 8  # columns, beyond which print needs a smaller type


def view_of(story: Story) -> dict[str, Any]:
    words = story.words
    machine = published_view(story, "")  # first, as citations are numbered in the order of reading
    figures = [_figure(story, part) for part in story.parts]
    compared = compared_view(story)
    return {
        "say": lambda key, **values: words.say("report", key, **values),
        "lang": words.code,
        "title": words.say("report", "title", cluster=story.cluster),
        "subtitle": _subtitle(story),
        "synthetic": story.synthetic,
        "missing": words.share(story.missing) if story.missing else "",
        "machine": _machine(story),
        "machine_published": machine,
        "findings": story.findings,
        "figures": figures,
        "compared": compared,
        "contrasts": story.contrasts,
        "quality": _quality(story),
        "made": [_made(words, part.result) for part in story.parts],
        "made_by": _made_by(story),
        "measured": story.measured,
        "not_measured": story.not_measured,
        "citations": citations(story),  # last, when all figures have been cited
    }


def title_of(words: Language, result: Result) -> str:
    return words.told("title", result.analysis.id, result.analysis.title)


def _subtitle(story: Story) -> str:
    log, words = story.log, story.words
    if log.since is None or log.until is None:
        return words.say("report", "used_none", num_selected="0")
    told = words.say(
        "report",
        "subtitle",
        since=f"{log.since:%Y-%m-%d}",
        until=f"{log.until:%Y-%m-%d}",
        num_jobs=words.number(log.num_jobs),
    )
    if story.session.settings.cluster(story.cluster).relative_dates:
        return words.say("report", "subtitle_relative", subtitle=told)
    return told


def _machine(story: Story) -> list[tuple[str, str]]:
    """What the machine is and what the log holds, as pairs of a term and what stands beside it."""
    words, log = story.words, story.log
    site = story.session.settings.cluster(story.cluster)
    per_node = site.per_node(words.unit)
    unknown = words.say("report", "unknown")
    period = f"{log.since:%Y-%m-%d %H:%M} – {log.until:%Y-%m-%d %H:%M}" if log.since else unknown
    pairs = {
        "cluster": story.cluster,
        "period": period,
        "zone": site.zone if site.has_zone else f"{site.zone} ({unknown})",
        "jobs": words.number(log.num_jobs),
        "users": _count_of(words, "users", log.num_users, log.num_jobs),
        "accounts": _count_of(words, "accounts", log.num_accounts, log.num_jobs),
        "pe_hours": unknown if log.pe_hours is None else words.number(log.pe_hours),
        "nodes": _nodes(story) or unknown,
        "pes_per_node": unknown if per_node is None else words.number(per_node),
        "read_from": _sources(story) or unknown,
    }
    filters = _filters(story)
    return [
        *((_capital(words.say("report", key)), text) for key, text in pairs.items()),
        *([(words.say("report", "filters"), filters)] if filters else []),
    ]


def _count_of(words: Language, what: str, count: int | None, num_jobs: int) -> str:
    if count == 0 and num_jobs:
        return words.say("report", f"{what}_not_named")
    return words.say("report", f"{what}_not_counted") if count is None else words.number(count)


def _capital(term: str) -> str:
    return term[:1].upper() + term[1:]


def _nodes(story: Story) -> str:
    words = story.words
    spans = story.session.settings.cluster(story.cluster).nodes
    return words.listed(
        [
            words.say("report", "nodes_since", count=span.count, since=f"{span.since:%Y-%m-%d}")
            if span.since
            else words.number(span.count)
            for span in spans
        ]
    )


def _sources(story: Story) -> str:
    by_source: dict[str, dict[str, None]] = {}
    for row in story.quality.ingests:
        by_source.setdefault(row["source"], {}).update(dict.fromkeys(row["files"]))
    return "; ".join(
        story.words.say("report", "source_files", source=source, files=", ".join(names))
        if names
        else source
        for source, names in by_source.items()
    )


def _filters(story: Story) -> str:
    """The selection as one would type it."""
    return "  ".join(f"{name} {text}" for name, text in _options(story))


def _options(story: Story) -> list[tuple[str, str]]:
    chosen = story.selection
    found = [
        ("--since", chosen.since),
        ("--until", chosen.until),
        ("--where", chosen.where),
        ("--min-run", None if chosen.min_run_s is None else f"{chosen.min_run_s:g}"),
        *(("--state", state) for state in chosen.states),
    ]
    return [(name, text) for name, text in found if text is not None]


def _command(story: Story, id: str) -> str:
    """The command that prints a whole table; a report leaves its machine, so no path is in it."""
    unit = story.session.chosen_unit
    options = [
        ("--cluster", story.cluster),
        *_options(story),
        *([("--unit", unit)] if unit else []),
    ]
    typed = [f"{name} {shlex.quote(text)}" for name, text in options]
    return " ".join(["hakaru show", id, *typed, "-w WORKSPACE"])


def _figure(story: Story, part: Part) -> dict[str, Any]:
    words, analysis = story.words, part.result.analysis
    return {
        "id": analysis.id,
        "title": title_of(words, part.result),
        "question": words.told("question", analysis.id, analysis.answers),
        "reproduces": analysis.reproduces,
        "kind": part.figure.kind,
        "height": part.figure.height,
        "option": None if part.figure.kind == "table" else _option(part.figure),
        "notes": [
            *_notes(words, part.result),
            *(
                remarks(part.result, words)
                if part.figure.kind == "table"
                else part.figure.own_notes
            ),
            *([words.say("report", "users_note")] if part.counts_ids else []),
        ],
        "table": _table(
            story, part.result, MAX_OPEN_ROWS if part.figure.kind == "table" else MAX_ROWS
        ),
        "published": published_view(story, analysis.id),
    }


def _option(figure: Figure) -> dict[str, Any]:
    """Without the filters behind the items, as no click leads anywhere, and with tooltips that are drawn.

    A tooltip of HTML would need style attributes, which the page's policy forbids.
    """
    option: dict[str, Any] = _without_where(figure.option)
    return option | {"tooltip": option.get("tooltip", {}) | {"renderMode": "richText"}}


def _without_where(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_where(each) for name, each in value.items() if name != "where"}
    if isinstance(value, list | tuple):
        return [_without_where(each) for each in value]
    return value


def _notes(words: Language, result: Result) -> list[str]:
    """How many jobs it rests on, and who was left out."""
    used, selected = words.number(result.num_used), words.number(result.num_selected)
    if result.num_used == result.num_selected:
        return [words.say("report", "used_all", num_selected=selected)]
    key = "used" if result.num_used else "used_none"
    values = {"num_selected": selected} | ({"num_used": used} if result.num_used else {})
    left = [
        words.say(
            "report",
            "left_out",
            num_jobs=words.number(entry.num_jobs),
            rule=words.rule(entry.rule),
        )
        for entry in result.left_out
        if entry.num_jobs
    ]
    return [words.say("report", key, **values), *left]


def _table(story: Story, result: Result, max_rows: int) -> dict[str, Any]:
    words, names = story.words, result.table.column_names
    rows = result.table.slice(0, max_rows).to_pylist()
    num_all = rows[0].get(NUM_ALL, result.table.num_rows) if rows else 0
    return {
        "head": [words.column(name) for name in names],
        "is_text": [str(result.table.schema.field(name).type) == "string" for name in names],
        "rows": [[_cell(words, name, row[name]) for name in names] for row in rows],
        "is_wide": len(names) > WIDE,
        "num_more": num_all - len(rows),
        "command": _command(story, result.analysis.id),
    }


def _cell(words: Language, name: str, value: Any) -> str:
    if isinstance(value, str) and (name in VOCABULARIES or (name, value) == ("quarter", "all")):
        return words.told("word", value, value)
    return words.cell(name, value)


def _quality(story: Story) -> dict[str, Any]:
    words, quality = story.words, story.quality
    titles = {part.result.analysis.id: title_of(words, part.result) for part in story.parts}
    return {
        "rejects": [
            (each.reason, words.number(each.num_lines), f"{each.file}:{each.line}")
            for each in quality.rejects
        ],
        "ingests": [_ingest(words, row) for row in quality.ingests],
        "left_out": [
            (
                words.rule(each.rule),
                words.number(each.num_jobs),
                [(id, titles[id]) for id in each.analyses],
            )
            for each in sorted(quality.left_out, key=lambda each: -each.num_jobs)
        ],
        "coverage": [
            (name, JOBS.column(name).meaning, words.share(share))
            for name, share in quality.coverage.items()
        ],
    }


def _ingest(words: Language, row: dict[str, Any]) -> Sequence[str]:
    files = row["files"]
    listed = (
        words.say("report", "num_files", count=len(files)) if len(files) > 3 else ", ".join(files)
    )
    when = f"{row['ended_at']:%Y-%m-%d %H:%M}" if row["ended_at"] else "–"
    counts = [row[f"num_{name}"] for name in ("read", "new", "repeated", "conflicts", "rejected")]
    return [when, row["source"], listed, *("–" if n is None else words.number(n) for n in counts)]


def _made(words: Language, result: Result) -> dict[str, str]:
    rules = [words.rule(entry.rule) for entry in result.left_out]
    said = words.say("report", "only_jobs", rules="; ".join(rules)) if rules else ""
    return {
        "id": result.analysis.id,
        "title": title_of(words, result),
        "description": result.analysis.description,
        "rules": said or words.say("report", "all_jobs"),
        "sql": result.analysis.sql(**result.params),
    }


def _made_by(story: Story) -> str:
    from importlib.metadata import version

    spark = "spark" in type(story.session.engine).__name__.lower()
    return story.words.say(
        "report",
        "made_by",
        version=story.version,
        engine="Spark" if spark else "DuckDB",
        engine_version=version("pyspark" if spark else "duckdb"),
        when=f"{story.made_at:%Y-%m-%d %H:%M}",
    )
