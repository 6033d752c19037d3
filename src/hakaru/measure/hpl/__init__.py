"""LINPACK: real HPL through hpcc or xhpl, its settings searched from small to large, and its output read."""

from hakaru.measure.hpl.confirm import Margin, Measured
from hakaru.measure.hpl.dat import DEFAULT, Batch, Config, default_for
from hakaru.measure.hpl.history import Launch, Scale, Trial
from hakaru.measure.hpl.outcome import Efficiency, Outcome
from hakaru.measure.hpl.output import parse_output
from hakaru.measure.hpl.program import Program, find_program, missing_tools
from hakaru.measure.hpl.result import Output, Problem, ProblemKind, Result, Status
from hakaru.measure.hpl.run import Launched, LaunchError, launch
from hakaru.measure.hpl.search import search_hpl
from hakaru.measure.hpl.start import HERE, Start

__all__ = [
    "DEFAULT",
    "HERE",
    "Batch",
    "Config",
    "Efficiency",
    "Launch",
    "LaunchError",
    "Launched",
    "Margin",
    "Measured",
    "Outcome",
    "Output",
    "Problem",
    "ProblemKind",
    "Program",
    "Result",
    "Scale",
    "Start",
    "Status",
    "Trial",
    "default_for",
    "find_program",
    "launch",
    "missing_tools",
    "parse_output",
    "search_hpl",
]
