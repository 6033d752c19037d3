"""A scenario's text, checked before anything is played; each problem with the line that it is about."""

from __future__ import annotations

import re
from importlib.util import find_spec

from hakaru.sim.whatif import Plan, Scenario, ScenarioError, read
from hakaru.web.problems import WebError
from hakaru.web.what_if.bounds import MAX_TEXT, Bounds

INSTALL = "pip install 'hakaru[sim]'"
AT_LINE = re.compile(r"\(at line (\d+)")
VARIANT = re.compile(r"variant (\d+)")
HEAD = re.compile(r"\s*\[+\s*(variant|baseline|machine)\s*\]")
KEY = re.compile(r"^(?:(?:machine|baseline|variant \d+)(?: \(.*?\))?\.)?([a-z_]+)(?=[.:\[])")


class WrongScenario(WebError):
    """All that is wrong with a scenario; `problems` has them one by one."""

    title = "The scenario is wrong"

    def __init__(self, text: str, problems: list[str]) -> None:
        self.problems = problems
        self.lines = [_with_line(text, each) for each in problems]
        super().__init__("; ".join(self.lines))


class NotInstalled(WebError):
    status = 503
    title = "The simulator is not installed"


def is_installed() -> bool:
    return find_spec("numba") is not None


def checked(text: str, bounds: Bounds) -> Scenario:
    """The scenario, within the bounds of this server."""
    if len(text) > MAX_TEXT:
        raise WrongScenario("", [f"the text has more than {MAX_TEXT:,} characters"])
    try:
        scenario = read(text)
    except ScenarioError as error:
        raise WrongScenario(text, error.problems) from None
    except Exception:  # a parser has corners of its own; no text may lead there
        raise WrongScenario(text, ["the text cannot be read as TOML"]) from None
    problems = _beyond(scenario, bounds)
    if problems:
        raise WrongScenario(text, problems)
    return scenario


def num_to_play(scenario: Scenario, num_jobs: int) -> int:
    return round(sum(num_jobs * max(1.0, plan.load or 1.0) for plan in scenario.plans))


def line_of(text: str, problem: str) -> int | None:
    """The line that a problem speaks of: what the parser says, else where the key stands."""
    if said := AT_LINE.search(problem):
        return int(said.group(1))
    lines = text.splitlines()
    begin, end = _part(lines, problem)
    key = KEY.match(problem)
    for number in range(begin, end) if key else ():
        if re.match(rf"\s*\[?(variant\.)?\"?{key.group(1)}\b", lines[number]):  # type: ignore[union-attr]
            return number + 1
    return begin + 1 if begin else None


def _part(lines: list[str], problem: str) -> tuple[int, int]:
    """The lines of the table that a problem is in: the n-th variant, the baseline, the machine."""
    heads = [n for n, line in enumerate(lines) if HEAD.match(line)]
    if said := VARIANT.match(problem):
        variants = [n for n in heads if re.match(r"\s*\[\[", lines[n])]
        at = int(said.group(1)) - 1
        begin = variants[at] if at < len(variants) else 0
    else:
        name = next((each for each in ("baseline", "machine") if problem.startswith(each)), "-")
        begin = next((n for n in heads if name in lines[n]), 0)
    return begin, next((n for n in heads if n > begin), len(lines))


def _with_line(text: str, problem: str) -> str:
    line = line_of(text, problem)
    return f"line {line}: {problem}" if line and not AT_LINE.search(problem) else problem


def _beyond(scenario: Scenario, bounds: Bounds) -> list[str]:
    problems = []
    if len(scenario.variants) > bounds.variants:
        problems.append(
            f"{len(scenario.variants)} variants: this server plays {bounds.variants} at a time"
        )
    if scenario.num_resamples > bounds.resamples:
        problems.append(f"num_resamples: at most {bounds.resamples:,}")
    for plan in scenario.plans:
        if _num_nodes(scenario, plan) > bounds.nodes:
            problems.append(f"{plan.name}: at most {bounds.nodes:,} nodes")
        if _node_size(scenario, plan) > bounds.node_size:
            problems.append(
                f"{plan.name}: at most {bounds.node_size:,} GPUs or processors in a node"
            )
        if sum(failure.nodes for failure in plan.failures) > bounds.nodes:
            problems.append(f"{plan.name}: at most {bounds.nodes:,} nodes fail")
    return problems


def _num_nodes(scenario: Scenario, plan: Plan) -> int:
    return (plan.machine.nodes or scenario.machine.nodes or 0) + max(plan.nodes, 0)


def _node_size(scenario: Scenario, plan: Plan) -> int:
    return max(plan.machine.size or 0, scenario.machine.size or 0)
