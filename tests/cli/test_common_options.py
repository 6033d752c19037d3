"""Options that several commands share reach the work in each of them: jobs, unit, engine, workspace."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put_jobs, utc


class Stopped(Exception):
    """What a test puts in place of the work itself."""


@pytest.fixture
def four(lake: Lake) -> Lake:
    """Each second around midnight of the second and of the third of January, in India."""
    facts = '{"zone": "Asia/Kolkata", "nodes": 4, "gpus_per_node": 2}'
    times = ("01-01T18:29:59", "01-01T18:30:00", "01-02T18:29:59", "01-02T18:30:00")
    runs = (59.0, 60.0, 61.0, 3600.0)
    more = ({}, {}, {"state": "failed"}, {"queue": "long"})
    rows = [
        job(n, submitted_at=utc(f"2018-{at}"), run_s=run_s, wait_s=0.0, **columns)
        for n, (at, run_s, columns) in enumerate(zip(times, runs, more, strict=True))
    ]
    return put_jobs(lake, rows, facts, zone=None)


def shown(lake: Lake, *options: str) -> int:
    done = hakaru("show", "states", "-w", lake.workspace, "--format", "json", *options)
    return int(json.loads(done.stdout)["num_used"])


def compared(lake: Lake, *options: str) -> int:
    words = ("compare", "--metric", "num_jobs", "-w", lake.workspace, "--format", "json")
    (metric,) = json.loads(hakaru(*words, *options).stdout)["metrics"]
    return int(metric["computed"]["c"]["value"])


def exported(lake: Lake, *options: str) -> int:
    words = ("export", "--format", "parquet", "-o", lake.workspace / "o.parquet", "--overwrite")
    told = hakaru(*words, "-w", lake.workspace, *options).stdout
    return int(re.findall(r"wrote (\d+) of", told)[0])


def simulated(lake: Lake, *options: str) -> int:
    told = hakaru("simulate", "-w", lake.workspace, *options).stdout
    return int(re.findall(r"(\d+) jobs? on 4 nodes", told)[0])


@pytest.mark.parametrize("count", [shown, compared, exported, simulated])
def test_filters_choose_the_jobs_of_every_command(four: Lake, count: Callable[..., int]) -> None:
    for options, number in (
        ((), 4),
        (("--since", "2018-01-02"), 3),
        (("--until", "2018-01-02"), 3),
        (("--until", "2018-01-02T00:00:00"), 1),
        (("--since", "2018-01-02", "--until", "2018-01-02"), 2),
        (("--min-run", "60"), 3),
        (("--min-run", "0"), 4),
        (("--state", "completed"), 3),
        (("--state", "completed", "--state", "failed"), 4),
        (("--state", "any"), 4),
        (("--where", "queue = 'long'"), 1),
    ):
        assert count(four, *options) == number, options


def test_filters_reach_a_report_and_advice(four: Lake, monkeypatch: Any) -> None:
    seen: list[Any] = []

    def stop(session: Any, chosen: Any) -> None:
        seen.append(chosen)
        raise Stopped

    filters = ("--where", "queue = 'long'", "--since", "2018-01-02", "--until", "2018-01-03",
               "--min-run", "0", "--state", "FAILED", "--cluster", "c")  # fmt: skip
    for verb in ("report", "advise"):
        monkeypatch.setattr(f"hakaru.cli.{verb}.check_selection", stop)
        assert isinstance(hakaru(verb, "-w", four.workspace, *filters).exception, Stopped)
        found = seen.pop()
        assert (found.where, found.since, found.until) == (
            "queue = 'long'", "2018-01-02", "2018-01-03",
        )  # fmt: skip
        assert (found.min_run_s, found.states, found.clusters) == (0.0, ("failed",), ("c",))


@pytest.fixture
def opened(monkeypatch: Any) -> list[tuple[str, Any]]:
    """The engine and the unit that a command opens its session with; nothing runs."""
    seen: list[tuple[str, Any]] = []

    def stop(lake: Lake, engine: str = "duckdb", unit: Any = None) -> None:
        seen.append((engine, unit))
        raise Stopped

    monkeypatch.setattr("hakaru.analyses.open_session", stop)
    return seen


def commands(folder: Path) -> dict[str, list[object]]:
    scenario = folder / "s.toml"
    scenario.write_text("[[variant]]\nnodes = 1\n")
    return {
        "show": ["show", "states"],
        "compare": ["compare"],
        "report": ["report"],
        "export": ["export", "--format", "swf", "-o", folder / "x.swf"],
        "simulate": ["simulate"],
        "advise": ["advise"],
        "whatif": ["whatif", scenario],
    }


def test_the_unit_and_the_engine_are_those_asked_for(
    four: Lake, tmp_path: Path, opened: list[tuple[str, Any]]
) -> None:
    for name, words in commands(tmp_path).items():
        place = ("-w", four.workspace)
        assert isinstance(hakaru(*words, *place).exception, Stopped), name
        assert opened.pop() == ("duckdb", None), name
        hakaru(*words, *place, "--unit", "cpu")
        assert opened.pop() == ("duckdb", "cpu"), name
        if name in ("show", "compare", "report"):
            hakaru(*words, *place, "--engine", "spark")
            assert opened.pop() == ("spark", None), name


def test_reproduce_runs_on_the_engine_asked_for(
    log: Path, opened: list[tuple[str, Any]], monkeypatch: Any
) -> None:
    for engine in ("duckdb", "spark"):
        assert isinstance(hakaru("reproduce", "aaic", log, "--engine", engine).exception, Stopped)
    assert opened == [("duckdb", None), ("spark", None)]


def test_the_workspace_is_the_option_s_or_the_environment_s_or_the_default(
    log: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    hakaru("ingest", log, "--cluster", "here")
    monkeypatch.setenv("HAKARU_WORKSPACE", str(tmp_path / "other"))
    hakaru("ingest", log, "--cluster", "there")
    hakaru("ingest", log, "--cluster", "option", "--workspace", tmp_path / "third")
    found = {
        name: Lake(tmp_path / name).clusters() for name in ("hakaru-workspace", "other", "third")
    }
    assert found == {"hakaru-workspace": ["here"], "other": ["there"], "third": ["option"]}


def test_a_filter_for_what_no_job_has_names_twelve_values_that_jobs_have(lake: Lake) -> None:
    put_jobs(lake, [job(n, queue=f"q{n:02}") for n in range(14)])
    told = hakaru("show", "states", "-w", lake.workspace, "--where", "queue = 'q99'").stderr
    names = ", ".join(f"q{n:02}" for n in range(12))
    assert told == f"warning: no job has queue = 'q99'; it is one of: {names} and 2 more\n"


def test_a_period_of_no_length_is_refused_and_one_of_a_minute_is_not(four: Lake) -> None:
    words = ("show", "states", "-w", four.workspace, "--since", "2018-01-02T10:00", "--until")
    refused = hakaru(*words, "2018-01-02T10:00")
    assert refused.stderr == (
        "error: the period ends before it begins: --since 2018-01-02T10:00 --until 2018-01-02T10:00\n"
    )
    assert hakaru(*words, "2018-01-02T10:01").exit_code == 0
