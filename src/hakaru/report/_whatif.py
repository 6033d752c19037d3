"""The page of a what-if: the runs side by side, who gains and who loses, and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hakaru.assets import script
from hakaru.figures import figures_of_runs
from hakaru.report._page import _environment, _file
from hakaru.safety.policy import policy_of
from hakaru.sim.notation import counted
from hakaru.sim.whatif.table import heading, interval_text, rows
from hakaru.sim.whatif.words import whose
from hakaru.sim.words import duration

if TYPE_CHECKING:
    from hakaru.figures import Figure
    from hakaru.sim.whatif import GroupChange, Outcome


def whatif_to_html(outcome: Outcome, cluster: str) -> str:
    """One HTML document that needs no network to be read."""
    style, chart = _file("style.css"), _file("figures.js")
    echarts = script("echarts").strip()
    return (
        _environment()
        .get_template("whatif.html")
        .render(
            lang="en",
            is_both=True,
            title=f"What if: {cluster}",
            subtitle=_subtitle(outcome),
            heading=heading(outcome),
            rows=rows(outcome),
            headlines=outcome.headlines,
            sentences=outcome.sentences,
            known_error=outcome.known_error,
            figures=_figures(outcome),
            groups=[
                (run.name, [_group(each, outcome.unit) for each in run.groups])
                for run in outcome.variants
            ],
            notes=outcome.notes,
            run_notes=[(run.name, run.notes) for run in outcome.runs if run.notes],
            style=style,
            echarts=echarts,
            figures_script=chart,
            policy=policy_of([style], [echarts, chart]),
        )
    )


def _subtitle(outcome: Outcome) -> str:
    num_jobs = outcome.baseline.metrics["num_jobs"]
    return (
        f"{counted(len(outcome.variants), 'variant')} beside “{outcome.baseline.name}”, "
        f"{counted(int(num_jobs), 'job')} of {counted(outcome.num_weeks, 'week')}"
    )


def _figures(outcome: Outcome) -> list[dict[str, Any]]:
    both = (figures_of_runs(outcome, dark) for dark in (False, True))
    return [_figure(number, *pair) for number, pair in enumerate(zip(*both, strict=True), 1)]


def _figure(number: int, figure: Figure, dark: Figure) -> dict[str, Any]:
    return {
        "id": f"figure-{number}",
        "title": figure.title,
        "question": figure.question,
        "height": figure.height,
        "option": _in_page(figure),
        "dark": _in_page(dark),
        "notes": figure.notes,
    }


def _in_page(figure: Figure) -> dict[str, Any]:
    """A tooltip of HTML would need style attributes, which the page's policy forbids."""
    return figure.option | {"tooltip": figure.option["tooltip"] | {"renderMode": "richText"}}


def _group(group: GroupChange, unit: str) -> list[str]:
    cells = [whose(group, unit), f"{group.num_jobs:,}"]
    for name in ("mean_wait_s", "p95_wait_s"):
        change = group.changes[name]
        cells += [duration(change.before), duration(change.after)]
        cells.append(interval_text(change, duration) or "–")
    return cells
