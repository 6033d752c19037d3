"""`hakaru whatif`: an example that runs, the table and the sentences, and reports of each kind."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hakaru.cli import main
from hakaru.lake import Lake
from tests.conftest import job, put_jobs, utc

SCENARIO = """
[machine]
nodes = 1
size = 4
[baseline]
name = "one <node>"
[[variant]]
name = "two | nodes"
nodes = +1
"""


def hakaru(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def busy(lake: Lake) -> Lake:
    """Twelve weeks, in each of which eighty one-GPU jobs of an hour come at once, on four GPUs."""
    first = utc("2018-01-01T00:00:00")
    rows = []
    for number in range(12 * 80):
        at = first + timedelta(weeks=number // 80)
        rows.append(job(number, submitted_at=at, started_at=at, wait_s=0.0, ended_at=None))
    return put_jobs(lake, rows)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    return path


def test_the_example_plays(busy: Lake, tmp_path: Path) -> None:
    told = hakaru("whatif", "--example")
    path = tmp_path / "scenario.toml"
    path.write_text(told.output.replace("# nodes = 38", "nodes = 8").replace("# size", "size"))
    result = hakaru("whatif", path, "-w", busy.workspace, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "6 of 6 played: 20 % more load" in result.output


def test_the_table_and_the_sentences(busy: Lake, scenario: Path) -> None:
    result = hakaru("whatif", scenario, "-w", busy.workspace, "--jobs", 1)
    assert result.exit_code == 0, result.output
    # on 4 GPUs the waits are 0 to 19 hours, on 8 they are 0 to 9: 9.5 and 4.5 in the mean
    base = next(each for each in result.output.splitlines() if each.startswith("one <node>"))
    assert base.split()[2:4] == ["9.5", "h"]
    told = " ".join(result.output.split())
    assert (
        "the mean wait falls from 9.5 h to 4.5 h (−5.0 h, −52.6 %, 95 % interval −5.0 h to −5.0 h from "
        "12 weeks)" in told
    )
    assert "records a mean wait of 0 s and the baseline gives 9.5 h" in told
    # every week is off by as much, and January has five of them
    assert "off most in 2018-01 (400 jobs): recorded 0 s, replayed 9.5 h" in told
    assert "1 node added: 2 instead of 1" in told


def test_a_machine_of_unknown_size_is_asked_for_in_the_scenario(busy: Lake, tmp_path: Path) -> None:
    """The advice is one that this verb takes: written into the scenario, it plays."""
    path = tmp_path / "scenario.toml"
    path.write_text("[[variant]]\nname = 'more'\nnodes = +1\n")
    result = hakaru("whatif", path, "-w", busy.workspace, "--jobs", 1)
    assert result.exit_code == 1 and "--nodes" not in result.output
    assert "Add to the scenario under [machine]: nodes = 38 and size = 8" in result.output
    path.write_text("[machine]\nnodes = 38\nsize = 8\n" + path.read_text())
    assert hakaru("whatif", path, "-w", busy.workspace, "--jobs", 1).exit_code == 0


def test_json_is_the_outcome(busy: Lake, scenario: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "out.json"
    assert (
        hakaru("whatif", scenario, "-w", busy.workspace, "-o", output, "--jobs", 1).exit_code == 0
    )
    held: dict[str, Any] = json.loads(output.read_text())
    assert held["variants"][0]["changes"]["mean_wait_s"]["change"] == -5 * 3600


def test_markdown_and_html_hold_the_same_sentences(
    busy: Lake, scenario: Path, tmp_path: Path
) -> None:
    page, text = tmp_path / "out.html", tmp_path / "out.md"
    for output in (page, text):
        done = hakaru("whatif", scenario, "-w", busy.workspace, "-o", output, "--jobs", 1)
        assert done.exit_code == 0, done.output
    assert "| two \\| nodes | 0 | 4.5 h | −5.0 h (−5.0 h to −5.0 h) ≈ |" in text.read_text()
    html = page.read_text()
    assert "the mean wait falls from 9.5 h to 4.5 h" in html
    assert "one &lt;node&gt;" in html
    assert "one <node>" not in html
    assert "http://" not in html.split("<script>")[0]
    assert html.count('class="chart"') == 3


def test_a_bare_log_is_played_on_what_its_header_says(shared: Path, tmp_path: Path) -> None:
    log = shared / "data" / "schedules" / "kth-100.swf.gz"
    path = tmp_path / "s.toml"
    path.write_text('[[variant]]\nname = "sjbf"\npolicy = "easy-sjbf"\n')
    result = hakaru("whatif", path, "--from", log, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "sjbf" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which scenario?"),
        (["gone.toml"], "`hakaru whatif --example > gone.toml` makes one"),
        (["{scenario}", "-o", "x.pdf"], "cannot tell its format; end it in .html"),
        (["{scenario}", "--folder", "x"], "go with --on slurm"),
        (["{scenario}", "--on", "slurm", "--slurm", "x"], "--slurm takes KEY=VALUE"),
        (["{scenario}", "--cluster", "d"], "there is no cluster 'd'"),
    ],
)
def test_what_cannot_be_done_is_said(
    busy: Lake, scenario: Path, arguments: list[str], said: str
) -> None:
    given = [each.format(scenario=scenario) for each in arguments]
    result = hakaru("whatif", *given, "-w", busy.workspace)
    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_what_if_is_of_its_period(lake: Lake, tmp_path: Path) -> None:
    put_jobs(lake, [job(1)], '{"gpus_per_node": 2, "nodes": 2}')
    scenario = tmp_path / "s.toml"
    scenario.write_text("[[variant]]\nnodes = 1\n")
    for option in (("--until", "2017-12-31"), ("--since", "2018-01-02")):
        none = hakaru("whatif", scenario, "-w", lake.workspace, *option)
        assert none.exit_code == 1, none.output
