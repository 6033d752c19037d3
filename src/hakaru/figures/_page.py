"""A figure as a page of its own: title, chart and notes in one file that needs no network to be read."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Literal

from hakaru.figures.theme import FONT, Theme
from hakaru.safety.policy import policy_of
from hakaru.safety.text import xml_text

if TYPE_CHECKING:
    from hakaru.figures._base import Figure

Renderer = Literal["canvas", "svg"]
WIDTH = 960
MARGIN = 24
HEAD_PX, NOTE_PX = 84, 21


def height_of(figure: Figure) -> int:
    """How high the whole page is: head, chart, notes."""
    return 2 * MARGIN + HEAD_PX + figure.height + NOTE_PX * len(figure.notes) + 12


def to_html(figure: Figure, theme: Theme, renderer: Renderer = "canvas") -> str:
    """A self-contained page; ECharts is in it."""
    from hakaru.assets import script

    notes = "".join(f"<li>{escape(note)}</li>" for note in figure.notes)
    style, echarts = _css(figure, theme), script("echarts").strip()
    drawing = f"""
const chart = echarts.init(document.getElementById("chart"), null, {{renderer: "{renderer}"}});
chart.setOption(JSON.parse(document.getElementById("option").textContent));
addEventListener("resize", () => chart.resize());
"""
    return f"""<!doctype html>
<html lang="{figure.lang}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy_of([style], [echarts, drawing])}">
<title>{escape(figure.title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{style}</style></head>
<body><main><h1>{escape(figure.title)}</h1><p>{escape(figure.question)}</p>
<div id="chart"></div><ul>{notes}</ul></main>
<script>{echarts}</script>
<script type="application/json" id="option">{embedded(figure.option)}</script>
<script>{drawing}</script></body></html>
"""


def to_svg_page(figure: Figure) -> str:
    """A page that draws the chart as the text of an SVG, for a browser to leave in the document."""
    from hakaru.assets import script

    size = f"width: {WIDTH - 2 * MARGIN}, height: {figure.height}"
    return f"""<!doctype html><meta charset="utf-8"><pre id="svg"></pre>
<script>{script("echarts")}</script>
<script type="application/json" id="option">{embedded(figure.option)}</script>
<script>
const chart = echarts.init(null, null, {{renderer: "svg", ssr: true, {size}}});
chart.setOption(JSON.parse(document.getElementById("option").textContent));
document.getElementById("svg").textContent = chart.renderToSVGString();
</script>
"""


def framed_svg(figure: Figure, theme: Theme, chart: str) -> str:
    """The chart's SVG with the title above it and the notes below."""
    height = height_of(figure)
    top = MARGIN + HEAD_PX
    below = top + figure.height + NOTE_PX
    notes = "".join(
        f'<text x="{MARGIN}" y="{below + NOTE_PX * at}" font-size="13" fill="{theme.muted}">'
        f"{escape(note)}</text>"
        for at, note in enumerate(figure.notes)
    )
    return xml_text(f"""<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"
 viewBox="0 0 {WIDTH} {height}" font-family="{escape(FONT)}">
<rect width="100%" height="100%" fill="{theme.background}"/>
<text x="{MARGIN}" y="{MARGIN + 24}" font-size="22" font-weight="600" fill="{theme.text}">{
        escape(figure.title)
    }</text>
<text x="{MARGIN}" y="{MARGIN + 52}" font-size="15" fill="{theme.muted}">{
        escape(figure.question)
    }</text>
<g transform="translate({MARGIN} {top})">{chart}</g>
{notes}</svg>
""")


def still(figure: Figure) -> Figure:
    """The figure as it is printed: a legend that cannot be scrolled shows all its names at once."""
    legend = figure.option.get("legend")
    if not legend:
        return figure
    return replace(figure, option=figure.option | {"legend": legend | {"type": "plain"}})


def embedded(option: object) -> str:
    """JSON that cannot end the script element that holds it, nor be read as markup."""
    text = json.dumps(option, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _css(figure: Figure, theme: Theme) -> str:
    return f"""
@page {{ size: {WIDTH}px {height_of(figure)}px; margin: 0 }}
html {{ background: {theme.background}; color: {theme.text}; font: 15px/1.4 {FONT};
        print-color-adjust: exact; -webkit-print-color-adjust: exact }}
body {{ margin: 0 }}
main {{ max-width: {WIDTH}px; margin: 0 auto; padding: {MARGIN}px; box-sizing: border-box }}
h1 {{ font-size: 22px; line-height: 30px; margin: 0 }}
p {{ margin: 4px 0 16px; color: {theme.muted} }}
#chart {{ height: {figure.height}px }}
ul {{ list-style: none; margin: 8px 0 0; padding: 0; color: {theme.muted}; font-size: 13px;
      line-height: {NOTE_PX}px }}
"""
