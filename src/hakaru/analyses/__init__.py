"""Analyses: one small query a published figure or table, grouped by subject."""

from hakaru.analyses._base import ANALYSES, Analysis, Param, Rule, analysis, load_all
from hakaru.analyses._run import LeftOut, Result, Session, open_session
from hakaru.analyses._select import Check, Selection

__all__ = [
    "ANALYSES",
    "Analysis",
    "Check",
    "LeftOut",
    "Param",
    "Result",
    "Rule",
    "Selection",
    "Session",
    "analysis",
    "load_all",
    "open_session",
]
