"""`hakaru synth` and `hakaru demo`: what they make and what they say of it."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hakaru.cli import demo, synth
from hakaru.lake import Lake, Upsert
from hakaru.sources.synth import Generated, Synth
from tests._cli import hakaru
from tests.conftest import utc


class Stopped(Exception):
    """What a test puts in place of the work itself."""


def test_synth_and_demo_make_what_is_asked(tmp_path: Path, monkeypatch: Any) -> None:
    specs: list[Any] = []

    def generate(lake: Lake, spec: Any) -> None:
        specs.append(spec)
        raise Stopped

    monkeypatch.setattr("hakaru.cli.synth.generate_with_progress", generate)
    options = (
        "--jobs",
        5,
        "--seed",
        9,
        "--days",
        3,
        "--nodes",
        4,
        "--users",
        2,
        "--samples-days",
        0,
    )
    assert isinstance(
        hakaru("synth", *options, "--cluster", "x", "-w", tmp_path).exception, Stopped
    )
    found = specs[0]
    assert (found.num_jobs, found.seed, found.cluster, found.days) == (5, 9, "x", 3.0)
    assert (found.num_nodes, found.num_users, found.samples_days) == (4, 2, 0.0)
    hakaru("demo", "--jobs", 7, "--no-measure", "--folder", tmp_path / "demo")
    assert (specs[1].num_jobs, specs[1].cluster) == (7, "demo")


def test_the_defaults_are_those_of_the_help(tmp_path: Path, monkeypatch: Any) -> None:
    specs: list[Any] = []

    def generate(lake: Lake, spec: Any) -> None:
        specs.append((lake.workspace, spec))
        raise Stopped

    monkeypatch.setattr("hakaru.cli.synth.generate_with_progress", generate)
    monkeypatch.chdir(tmp_path)
    hakaru("synth")
    hakaru("demo", "--no-measure")
    (place, found), (demo_place, sample) = specs
    assert (place, demo_place) == (Path("hakaru-workspace"), Path("hakaru-demo"))
    assert (found.num_jobs, found.seed, found.cluster, found.days) == (100_000, 1, "synth", None)
    assert (found.num_nodes, found.num_users, found.samples_days) == (None, 106, 2.0)
    assert (sample.num_jobs, sample.cluster, sample.samples_days) == (100_000, "demo", 1)


MADE = Generated(
    cluster="x", jobs=Upsert(num_new=1001, num_updated=2002, num_unchanged=3003), samples=Upsert(),
    num_jobs=6006, num_samples=7007, num_nodes=1038, num_gpus=8304, since=utc("2018-01-02T00:00:00"),
    until=utc("2018-03-04T23:59:59"), seconds=1.26,
)  # fmt: skip


def test_what_was_made_is_told_number_by_number(capsys: Any) -> None:
    synth.print_generated(MADE, Path("w"))
    assert capsys.readouterr().out.splitlines() == [
        "x (synthetic): made 6,006 jobs and 7,007 samples in 1.3 s",
        "  jobs new 1,001, updated 2,002, unchanged 3,003",
        "  submitted 2018-01-02 to 2018-03-04 (UTC) on 1,038 nodes with 8,304 GPUs",
        "  workspace w; next: hakaru show walltime --cluster x -w w",
    ]


def test_a_bar_counts_the_rows_on_a_terminal_only(tmp_path: Path, monkeypatch: Any) -> None:
    def generate(lake: Any, spec: Any, progress: Any = None) -> Any:
        if progress is not None:
            progress(3, 4)
        return progress is not None

    shown = io.StringIO()
    monkeypatch.setattr("hakaru.sources.synth.generate", generate)
    lake, spec = Lake.create(tmp_path), Synth(num_jobs=4, cluster="mine")
    assert synth.generate_with_progress(lake, spec) is False
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    console = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr(synth, "bar_console", lambda: console)
    assert synth.generate_with_progress(lake, spec) is True  # type: ignore[comparison-overlap]
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())
    assert "making mine" in text and "3/4" in text


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A small demo, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "d"
    done = hakaru("demo", "--jobs", 2000, "--folder", folder)
    assert done.exit_code == 0, done.output
    return folder, done.stdout


def test_a_demo_compares_reports_and_says_what_is_next(shown: tuple[Path, str]) -> None:
    folder, told = shown
    assert "demo (synthetic): made 2,000 jobs and " in told
    heads = [line.split() for line in told.splitlines() if line.startswith("metric")]
    assert heads == [["metric", "demo", "(SYNTHETIC)", "AAIC"]]
    rows = [line.split() for line in told.splitlines() if line.strip().startswith("Jobs ")]
    assert rows[0][:2] == ["Jobs", "2,000"]
    assert "This machine, measured\nthe meter itself: " in told
    assert f"  hakaru show states --by queue -w {folder}\n" in told
    assert f"  hakaru serve -w {folder}\n" in told
    report = folder / "report.html"
    assert told.endswith(
        f"The report, 2,000 synthetic jobs, to open in a browser: {report.resolve()}\n"
    )
    assert report.read_text().startswith("<!")


def test_where_the_shell_does_not_find_hakaru_the_way_is_told_first(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "activate").write_text("")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr("shutil.which", lambda name: None)
    first = demo._next_steps(Path("d"))[0]
    assert first == "First, so that the shell finds hakaru:  . bin/activate"
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/hakaru")
    assert demo._next_steps(Path("d"))[0].startswith("Next, ")
    monkeypatch.setattr("shutil.which", lambda name: None)
    (tmp_path / "bin" / "activate").unlink()
    assert demo._next_steps(Path("d"))[0].startswith("Next, ")


def test_a_demo_is_served_if_that_is_asked_for(tmp_path: Path, monkeypatch: Any) -> None:
    served: list[Any] = []
    monkeypatch.setattr("hakaru.cli.synth.generate_with_progress", lambda lake, spec: MADE)
    monkeypatch.setattr(demo, "_print_headline", lambda session: None)
    monkeypatch.setattr("hakaru.cli.report.write_report", lambda session, output: 0)
    monkeypatch.setattr("hakaru.web.server.serve", lambda lake, *given, **more: served.append(lake))
    for options, number in (((), 0), (("--serve",), 1)):
        done = hakaru("demo", "--no-measure", "--folder", tmp_path / "d", *options)
        assert done.exit_code == 0, done.output
        assert len(served) == number
    assert served[0].workspace == tmp_path / "d"
