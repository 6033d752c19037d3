"""The page of a what-if: the runs side by side, who gains and who loses, and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hakaru.assets import script
from hakaru.figures import figures_of_runs
from hakaru.report._page import _environment, _file, _policy
from hakaru.sim.whatif.table import heading, rows
from hakaru.sim.whatif.words import duration, whose

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
            title=f"What if: {cluster}",
            subtitle=_subtitle(outcome),
            heading=heading(outcome),
            rows=rows(outcome),
            sentences=outcome.sentences,
            known_error=outcome.known_error,
            figures=[
                _figure(number, each) for number, each in enumerate(figures_of_runs(outcome), 1)
            ],
            groups=[
                (run.name, [_group(each, outcome.unit) for each in run.groups])
                for run in outcome.variants
            ],
            notes=outcome.notes,
            run_notes=[(run.name, run.notes) for run in outcome.runs if run.notes],
            style=style,
            echarts=echarts,
            figures_script=chart,
            policy=_policy(style, [echarts, chart]),
        )
    )


def _subtitle(outcome: Outcome) -> str:
    num_jobs = outcome.baseline.metrics["num_jobs"]
    return (
        f"{len(outcome.variants)} variants beside “{outcome.baseline.name}”, {num_jobs:,.0f} jobs "
        f"of {outcome.num_weeks} weeks"
    )


def _figure(number: int, figure: Figure) -> dict[str, Any]:
    """A tooltip of HTML would need style attributes, which the page's policy forbids."""
    tooltip = figure.option["tooltip"] | {"renderMode": "richText"}
    return {
        "id": f"figure-{number}",
        "title": figure.title,
        "question": figure.question,
        "height": figure.height,
        "option": figure.option | {"tooltip": tooltip},
        "notes": figure.notes,
    }


def _group(group: GroupChange, unit: str) -> list[str]:
    cells = [whose(group, unit), f"{group.num_jobs:,}"]
    for name in ("mean_wait_s", "p95_wait_s"):
        change = group.changes[name]
        cells += [duration(change.before), duration(change.after)]
        if change.low is None or change.high is None:
            cells.append("–")
        else:
            cells.append(f"{duration(change.low, True)} to {duration(change.high, True)}")
    return cells
