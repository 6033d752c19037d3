"""Analyses: one small query a published figure or table, grouped by subject."""

from hakaru.analyses._base import ANALYSES, Analysis, Param, Rule, analysis, load_all
from hakaru.analyses._run import LeftOut, Result, Selection, open_session

__all__ = [
    "ANALYSES",
    "Analysis",
    "LeftOut",
    "Param",
    "Result",
    "Rule",
    "Selection",
    "analysis",
    "load_all",
    "open_session",
]
