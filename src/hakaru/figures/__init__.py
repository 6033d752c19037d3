"""Figures: one file a kind of chart; a result table in, an ECharts option (plain data) out."""

from hakaru.figures._base import KINDS, Figure, draw, load_kinds
from hakaru.figures._chromium import save
from hakaru.figures._page import embedded
from hakaru.figures._runs import figures_of_runs
from hakaru.figures._where import conjunction, of_rules

__all__ = [
    "KINDS",
    "Figure",
    "conjunction",
    "draw",
    "embedded",
    "figures_of_runs",
    "load_kinds",
    "of_rules",
    "save",
]
