"""Analyses: one small query a published figure or table, grouped by subject."""

from hakaru.analyses._base import ANALYSES, HAS_SIZE, Analysis, Param, Rule, analysis, load_all
from hakaru.analyses._caveats import caveat_remarks, never_recorded
from hakaru.analyses._remarks import missing_remarks, over_remarks, remarks, unit_remarks
from hakaru.analyses._result import LeftOut, Result
from hakaru.analyses._run import Session, open_session
from hakaru.analyses._select import (
    COLUMNS,
    DERIVED,
    GROUPS,
    STEPS,
    Branch,
    Check,
    Selection,
    counted,
    passing,
    rules_of,
)
from hakaru.analyses._site import CLASSES, UNKNOWN, class_name, quarter_name
from hakaru.analyses._unit import UNITS, Unit

__all__ = [
    "ANALYSES",
    "CLASSES",
    "COLUMNS",
    "DERIVED",
    "GROUPS",
    "HAS_SIZE",
    "STEPS",
    "UNITS",
    "UNKNOWN",
    "Analysis",
    "Branch",
    "Check",
    "LeftOut",
    "Param",
    "Result",
    "Rule",
    "Selection",
    "Session",
    "Unit",
    "analysis",
    "caveat_remarks",
    "class_name",
    "counted",
    "load_all",
    "missing_remarks",
    "never_recorded",
    "open_session",
    "over_remarks",
    "passing",
    "quarter_name",
    "remarks",
    "rules_of",
    "unit_remarks",
]
