"""`hakaru whatif`: what each option hands on, how an outcome is laid out, and files of each ending."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from hakaru.cli import _whatif, whatif
from hakaru.cli._table import Column
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put_jobs, utc


class Stopped(Exception):
    """In place of the replay."""


@pytest.fixture
def played(lake: Lake, tmp_path: Path, monkeypatch: Any) -> Any:
    """What the runs are played with, for jobs of three days in India."""
    seen: dict[str, Any] = {}

    def stop(scenario: Any, workload: Any, site: Any, **given: Any) -> None:
        seen.update(given, scenario=scenario, workload=workload, site=site)
        raise Stopped

    days = [utc(f"2018-01-0{n}T18:30:00") for n in (1, 2, 3)]  # midnights
    rows = [job(n, submitted_at=at) for n, at in enumerate(days)]
    rows += [job(9, cluster="d", submitted_at=days[0])]
    facts = '{"zone": "Asia/Kolkata", "nodes": 2, "gpus_per_node": 4}'
    put_jobs(lake, rows, facts, zone=None)
    monkeypatch.setattr("hakaru.sim.whatif.run", stop)
    path = tmp_path / "s.toml"
    path.write_text('[[variant]]\nname = "more"\nnodes = +1\n')

    def call(*options: object) -> dict[str, Any]:
        place = () if "--cluster" in options else ("--cluster", "c")
        done = hakaru("whatif", path, "-w", lake.workspace, *place, *options)
        assert isinstance(done.exception, Stopped), done.output
        return seen

    return call


def test_the_defaults(played: Any) -> None:
    found = played()
    assert (found["on"], found["num_processes"], found["folder"], found["slurm"]) == (
        "local", None, None, {},
    )  # fmt: skip
    assert [plan.name for plan in found["scenario"].plans][1:] == ["more"]
    assert len(found["workload"]) == 3 and found["site"].name == "c"


def test_the_options(played: Any, tmp_path: Path) -> None:
    assert played("--jobs", 3)["num_processes"] == 3
    assert played("--cluster", "d")["site"].name == "d"
    found = played("--on", "slurm", "--folder", tmp_path, "--slurm", "partition=short",
                   "--slurm", "gpus-per-node=2", "--slurm", "time=1:00")  # fmt: skip
    assert (found["on"], found["folder"]) == ("slurm", tmp_path)
    assert found["slurm"] == {"partition": "short", "gpus_per_node": 2, "time": "1:00"}


def test_rules_on_idle_jobs_reach_the_reading_of_samples(lake: Lake, tmp_path: Path) -> None:
    put_jobs(lake, [job(1)], '{"nodes": 2, "gpus_per_node": 4}')
    path = tmp_path / "s.toml"
    path.write_text("[[variant]]\nend_idle_after_h = 2\n")
    told = hakaru("whatif", path, "-w", lake.workspace).output
    assert "no samples of c" in told, "which jobs are idle is looked up before anything is played"


def test_the_period_is_of_the_sites_clock(played: Any) -> None:
    """Submitted at the midnights with which the second, third and fourth of January begin."""
    assert len(played("--since", "2018-01-03")["workload"]) == 2
    assert len(played("--until", "2018-01-02")["workload"]) == 1
    assert len(played("--since", "2018-01-03", "--until", "2018-01-03")["workload"]) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--folder", "x"), "--folder and --slurm go with --on slurm"),
        (("--slurm", "a=b"), "--folder and --slurm go with --on slurm"),
        (("--on", "slurm", "--slurm", "=x"), "--slurm takes KEY=VALUE such as partition=short, found '=x'"),
        (("--on", "slurm", "--slurm", "x="), "found 'x='"),
        (("-o", "x.txt"), "x.txt: cannot tell its format; end it in .html, .htm, .json, .md"),
    ],
)  # fmt: skip
def test_what_is_refused(lake: Lake, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    (tmp_path / "s.toml").write_text("[[variant]]\nnodes = +1\n")
    refused = hakaru("whatif", tmp_path / "s.toml", "-w", lake.workspace, *options)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: ") and said in refused.stderr


def test_a_scenario_that_cannot_be_read(lake: Lake, tmp_path: Path) -> None:
    place = ("-w", lake.workspace)
    gone, odd, wrong = (tmp_path / name for name in ("gone.toml", "odd.toml", "wrong.toml"))
    told = hakaru("whatif", gone, *place)
    assert told.exit_code == 1
    assert told.stderr == (
        f"error: {gone}: cannot be read: No such file or directory; `hakaru whatif --example > {gone}` "
        "makes one to begin from\n"
    )
    odd.write_bytes(b"\xff")
    assert hakaru("whatif", odd, *place).stderr == f"error: {odd}: cannot be read: not UTF-8\n"
    wrong.write_text("[[variant]]\nnodez = 1\n")
    assert str(wrong) in hakaru("whatif", wrong, *place).stderr
    assert hakaru("whatif", *place).exit_code == 2


OUTCOME: Any = SimpleNamespace(
    headlines=("short | words",), sentences=("ann gains", "bob <loses>"), known_error="an error",
    notes=("a note",), runs=[SimpleNamespace(name="base", notes=("b1",)),
                             SimpleNamespace(name="more", notes=("m1", "m2"))],
    as_dict=lambda: {"seed": 7},
)  # fmt: skip


@pytest.fixture
def outcome(monkeypatch: Any) -> Any:
    table = "hakaru.sim.whatif.table"
    monkeypatch.setattr(f"{table}.heading", lambda outcome: ["run", "wait"])
    monkeypatch.setattr(f"{table}.rows", lambda outcome: [["base|0", "5 s"], ["more", "3 s ≈"]])
    return OUTCOME


def test_the_parts_of_an_outcome_on_the_terminal(outcome: Any) -> None:
    lines = list(_whatif.lines(outcome, 60))
    mark = "≈: the change is smaller than the replay's own error, so that it may be nothing"
    assert [text for text, _ in lines] == [
        "run      wait", "─────────────", "base|0    5 s", "more    3 s ≈", mark,
        "", "In short", "short | words",
        "", "Who gains, who loses", "ann gains", "bob <loses>",
        "", "Known error", "an error",
        "", "Notes", "a note", "base: b1", "more: m1", "more: m2",
    ]  # fmt: skip
    styles = dict(lines)
    assert (styles["In short"], styles["ann gains"], styles["a note"]) == ("bold", "", "dim")


def test_sentences_are_not_wider_than_a_hundred(outcome: Any) -> None:
    long = SimpleNamespace(**(vars(outcome) | {"sentences": ("word " * 60,)}))
    widths = [len(text) for text, _ in _whatif.lines(long, 1_000_000)]
    assert 95 <= max(widths) <= 100


def test_markdown_escapes_bars_and_tags(outcome: Any) -> None:
    assert _whatif.markdown(outcome, "c") == (
        "# What if: c\n\n"
        "| run | wait |\n| --- | --- |\n| base\\|0 | 5 s |\n| more | 3 s ≈ |\n\n"
        "≈: the change is smaller than the replay's own error, so that it may be nothing\n\n"
        "## In short\n\n- short \\| words\n\n"
        "## Who gains, who loses\n\n- ann gains\n- bob &lt;loses>\n\n"
        "## Known error\n\n- an error\n\n"
        "## Notes\n\n- a note\n- base: b1\n- more: m1\n- more: m2\n"
    )


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.md", "# What if: c"), ("a.JSON", "{"), ("a.htm", "<page c>"), ("a.html", "<page c>")],
)
def test_the_ending_tells_what_is_written(
    outcome: Any, tmp_path: Path, monkeypatch: Any, capsys: Any, name: str, start: str
) -> None:
    monkeypatch.setattr(
        "hakaru.report.whatif_to_html", lambda outcome, cluster: f"<page {cluster}>"
    )
    path = tmp_path / "new" / name
    whatif._tell(outcome, path, "c")
    text = path.read_text()
    assert text.startswith(start)
    if name == "a.JSON":
        assert json.loads(text) == {"seed": 7}
    printed = capsys.readouterr()
    assert printed.out.startswith("run      wait\n") and printed.err == f"wrote {path}\n"


def test_marks_are_explained_where_they_stand() -> None:
    columns = [Column("a", ["x ≈", "y"])]
    assert [mark[0] for mark in _whatif._marks(columns)] == ["≈"]
    assert _whatif._marks([Column("a", ["x"])]) == []
    assert [mark[0] for mark in _whatif._marks([Column("a", ["x ?"])])] == ["?"]


def test_runs_that_were_played_are_counted(capsys: Any, monkeypatch: Any) -> None:
    with whatif._progress(3) as tell:
        tell(2, 3, "more")
    assert capsys.readouterr().err == "2 of 3 played: more\n"
    shown = io.StringIO()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(
        whatif, "bar_console", lambda: Console(file=shown, force_terminal=True, width=100)
    )
    with whatif._progress(3) as tell:
        tell(2, 3, "[bold]more\n")
    assert "2/3" in shown.getvalue() and "[bold]more\\u000a" in shown.getvalue()
