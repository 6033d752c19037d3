"""The page of a story: Jinja fills the template, ECharts and the options are written into it once.

Nothing of the data can leave its place: the template escapes texts, options are JSON in which no `<` is
left, and the Content-Security-Policy lets only the scripts run whose hashes it names, and loads nothing.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hakaru.assets import script
from hakaru.figures import embedded
from hakaru.report._view import view_of
from hakaru.safety.policy import policy_of

if TYPE_CHECKING:
    from jinja2 import Environment

    from hakaru.report._story import Story


def to_html(story: Story) -> str:
    """The report as one HTML document."""
    style, chart = _file("style.css"), _file("figures.js")
    echarts = script("echarts").strip()
    environment = _environment()
    return environment.get_template("report.html").render(
        **view_of(story),
        is_both=False,
        style=style,
        echarts=echarts,
        figures_script=chart,
        policy=policy_of([style], [echarts, chart]),
    )


def _file(name: str) -> str:
    return (files("hakaru.report") / "templates" / name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def json_filter(option: Any) -> Markup:
        return Markup(embedded(option))  # every < > & is escaped

    environment.filters["embedded"] = json_filter
    # our own files and ECharts: the policy names their hashes
    environment.filters["trusted"] = Markup
    return environment
