"""Training, strategies and storage in the report and on a run's own page, drawn by a real Chromium."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hakaru.analyses import Selection, open_session
from hakaru.lake import Lake
from hakaru.measure.record import Run
from hakaru.report import measure_to_html, tell, to_html
from tests._cli import hakaru
from tests.conftest import job, put_jobs
from tests.measure.lakes import BEGIN, CLUSTER, put_runs
from tests.measure.lakes_training import HOSTILE, hostile_rows, training_run
from tests.report.conftest import Browser

TITLES = (
    "Scaling of training: mlp", "A step, by rank: mlp, ddp, weak, 4 ranks",
    "A step, by rank: transformer, ddp, 4 ranks", "Partition of the module: transformer",
    "Training time against the size of the data", "Layouts of the data", "What runs when: alexnet",
    "What runs when: resnet50",
)  # fmt: skip


def test_the_report_and_the_page_have_the_same_figures_and_sentences(lake: Lake) -> None:
    put_jobs(lake, [job(2, cluster=CLUSTER)])
    put_runs(lake, [training_run()])
    result = hakaru("bench", "show", "-w", lake.workspace, "-o", lake.workspace / "run.html")
    assert result.exit_code == 0, result.output
    with open_session(lake) as session:
        report = to_html(tell(session, Selection(clusters=(CLUSTER,)), []))
    for page in (report, (lake.workspace / "run.html").read_text()):
        section = page.partition('<section id="measured"')[2].partition("</section>")[0]
        titles = re.findall(r'<article id="measure-.*?<h3><bdi>(.*?)</bdi></h3>', section, re.S)
        assert titles[:-1] == list(TITLES) and titles[-1].startswith("History")
        assert "Rank 2 on n3 is ready 25 ms late, which costs 25 ms a step." in section
        assert "<bdi>520 MB/s, too slow</bdi>" in section
        assert "<bdi>agrees, 2.1e-07 apart</bdi>" in section
        assert "Chosen: ddp2+gpipe2; it is the fastest that fits." in section


def test_a_page_of_it_is_drawn(tmp_path: Path, browser: Browser) -> None:
    page = tmp_path / "run.html"
    page.write_text(measure_to_html(training_run()), encoding="utf-8")
    shown = browser(page, "--dump-dom")
    assert len(re.findall(r"<canvas", shown.stdout)) == len(TITLES) + 1
    assert re.findall(r"(?:CONSOLE|Refused).*", shown.stderr) == []


def test_damaged_documents_are_inert(tmp_path: Path, browser: Browser) -> None:
    rows = [
        row for number, facts in enumerate(HOSTILE) for row in hostile_rows(facts, workers=number)
    ]
    page = tmp_path / "run.html"
    page.write_text(measure_to_html(Run("r1", "c", BEGIN, tuple(rows))), encoding="utf-8")
    shown = browser(page, "--dump-dom")
    assert "<script>window" not in shown.stdout and "&lt;script&gt;window" in shown.stdout
    assert re.findall(r"(?:CONSOLE|Refused).*", shown.stderr) == []


def test_the_terminal_says_the_sentences(lake: Lake) -> None:
    """Also of a run beside another, whose documents are not compared."""
    first = training_run()
    later = [
        replace(each, started_at=each.started_at + timedelta(days=1)) for each in first.measurements
    ]
    put_runs(lake, [first, replace(first, id="r2", measurements=tuple(later))])
    result = hakaru("bench", "show", "-w", lake.workspace)
    assert "86 % of loading and all of copying hide behind compute." in " ".join(
        result.output.split()
    )
