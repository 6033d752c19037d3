"""Figures: one file a kind of chart; a result table in, an ECharts option (plain data) out."""

from hakaru.figures._base import KINDS, Figure, draw, load_kinds
from hakaru.figures._chromium import save

__all__ = ["KINDS", "Figure", "draw", "load_kinds", "save"]
