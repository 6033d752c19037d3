"""Measurements in the report, and on a page of their own that a real Chromium draws."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hakaru.analyses import Selection, open_session
from hakaru.lake import Lake
from hakaru.measure.folders import preflight_file
from hakaru.measure.record import Run
from hakaru.measure.verdict import Verdict
from hakaru.report import measure_to_html, tell, to_html
from tests._cli import hakaru
from tests.conftest import job, put_jobs
from tests.measure.lakes import BEGIN, CLUSTER, measured, put_runs, synthetic_runs
from tests.report.conftest import Browser


def test_the_report_has_the_section_where_the_cluster_was_measured(lake: Lake) -> None:
    put_jobs(lake, [job(1), job(2, cluster=CLUSTER)])
    put_runs(lake, synthetic_runs(num_nodes=4, cards_per_node=4, num_runs=3))
    with open_session(lake) as session:
        pages = {
            name: to_html(tell(session, Selection(clusters=(name,)), [])) for name in (CLUSTER, "c")
        }
    assert 'id="measured"' not in pages["c"] and "#measured" not in pages["c"]
    own = pages[CLUSTER]
    assert own.count('id="measured"') == 1 and 'href="#measured"' in own
    section = own.partition('<section id="measured"')[2].partition("</section>")[0]
    assert "<strong>Slow.</strong> Of 16 devices: 3 slow, 13 good." in section
    assert len(re.findall(r'<article id="measure-', section)) == 7
    assert "3 runs in all" in section and "Too few runs to tell a change" in section
    assert "Preflight" not in section, "none was made"
    assert "Against the run before" in section


def put_preflight(workspace: Path, fix: str) -> None:
    path = preflight_file(workspace, CLUSTER)
    path.parent.mkdir(parents=True, exist_ok=True)
    names = ("check", "node", "status", "found", "wanted", "fix")
    rows = [
        ("files", "n1", "fail", "1,024", "65,536", fix),
        ("clock", "n1", "pass", "1 ms", "", ""),
    ]
    listed = [dict(zip(names, row, strict=True)) for row in rows]
    path.write_text(json.dumps({"verdict": "failed", "summary": "1 check fails", "rows": listed}))


@pytest.mark.parametrize(("language", "heading", "note"), [
    ("ja", "計測結果", "この節は英語で書かれています。"),
    ("ko", "측정 결과", "이 절은 영어로 작성되어 있습니다."),
])  # fmt: skip
def test_a_section_in_english_says_so(lake: Lake, language: str, heading: str, note: str) -> None:
    put_jobs(lake, [job(2, cluster=CLUSTER)])
    put_runs(lake, synthetic_runs(num_nodes=2, cards_per_node=2, num_runs=1))
    page = lake.workspace / "report.html"
    words = ("--cluster", CLUSTER, "--lang", language, "-w", lake.workspace, "-o", page)
    assert hakaru("report", *words).exit_code == 0
    section = page.read_text().partition('<section id="measured"')[2].partition("</section>")[0]
    assert f"<h2>{heading}</h2>" in section and note in section


def test_the_section_has_the_run_before_and_the_preflight(lake: Lake) -> None:
    """What differs first; an import in between, which shares no benchmark, is not the run before."""
    runs = synthetic_runs(num_nodes=2, cards_per_node=2, num_runs=3)
    slower = [replace(each, samples=tuple(0.5 * rate for rate in each.samples))
              if each.benchmark == "gemm" else each for each in runs[-1].measurements]  # fmt: skip
    when = runs[-1].started_at - timedelta(hours=1)
    other = replace(runs[-1].measurements[0], benchmark="dcgm-pcie", started_at=when)
    between = Run("between", CLUSTER, when, (other,))
    put_jobs(lake, [job(2, cluster=CLUSTER)])
    put_runs(lake, [*runs[:-1], between, replace(runs[-1], measurements=tuple(slower))])
    put_preflight(lake.workspace, "ulimit -n 65536")
    with open_session(lake) as session:
        report = to_html(tell(session, Selection(clusters=(CLUSTER,)), []))
    result = hakaru("bench", "show", "-w", lake.workspace, "-o", lake.workspace / "run.html")
    assert result.exit_code == 0, result.output
    for page in (report, (lake.workspace / "run.html").read_text()):
        table = page.partition("Against the run before")[2].partition("</table>")[0]
        assert runs[1].id in table
        rows = re.findall(r"<tr><td><bdi>(\S+) .*?<td><bdi>([^<]*)</bdi></td></tr>", table)
        assert rows[0][0] == "gemm" and rows[0][1].startswith("4 of 4 worse: gpu001/cuda:")
        assert ("all-reduce", "no sure change") in rows
        preflight, _, rest = page.partition("<h3>Preflight</h3>")[2].partition("</table>")
        assert "1 check fails" in preflight and "ulimit -n 65536" in preflight
        assert ">fail<" in preflight and ">pass<" not in preflight
        assert "1 passed, 0 do not apply." in rest


def test_a_first_run_has_neither_a_run_before_nor_a_preflight() -> None:
    page = measure_to_html(synthetic_runs(num_nodes=2, cards_per_node=2, num_runs=1)[0])
    assert "Against the run before" not in page and "Preflight" not in page


def test_a_run_as_one_file(tmp_path: Path, browser: Browser) -> None:
    runs = synthetic_runs(num_nodes=4, cards_per_node=4, num_runs=10)
    bad = "<script>more</script>"
    named = [
        replace(each, host=bad) if each.host == "gpu001" else each for each in runs[-1].measurements
    ]
    page = tmp_path / "run.html"
    last = replace(runs[-1], label=bad, measurements=tuple(named))
    page.write_text(measure_to_html(last, runs), encoding="utf-8")
    shown = browser(page, "--dump-dom")
    assert len(re.findall(r"<canvas", shown.stdout)) == 7
    assert "<script>more" not in shown.stdout and "&lt;script&gt;more" in shown.stdout
    assert re.findall(r"(?:CONSOLE|Refused).*", shown.stderr) == []
    assert "Confirmed: −" in shown.stdout or "Suspected: −" in shown.stdout


def test_runs_of_another_cluster_are_mentioned(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path)
    put_jobs(lake, [job(1)])
    put_runs(lake, [Run("r1", "vm", BEGIN, (measured(),))])
    result = hakaru("report", "-w", tmp_path, "-o", tmp_path / "report.html")
    note = "Runs of vm are not in this report: hakaru bench show --cluster vm -o FILE"
    assert note in result.output, result.output
    assert note in (tmp_path / "report.html").read_text()


def test_a_report_of_measurements_alone_names_the_command_for_them(tmp_path: Path) -> None:
    put_runs(Lake.create(tmp_path), [Run("r1", "vm", BEGIN, (measured(),))])
    result = hakaru("report", "-w", tmp_path, "-o", tmp_path / "report.html")
    assert result.exit_code == 1 and "hakaru bench show -o FILE" in result.output


def test_a_run_without_numbers_says_nothing_of_the_meter() -> None:
    missing = measured(samples=()).judged(Verdict.NOT_MEASURED, "hpcc is not installed")
    page = measure_to_html(Run("r1", "vm", BEGIN, (missing,)))
    assert "hpcc is not installed" in page
    assert "The meter" not in page and "<li><bdi></bdi></li>" not in page


def test_the_table_of_more_ranks_says_why_it_predicts_nothing() -> None:
    page = measure_to_html(synthetic_runs(num_nodes=2, cards_per_node=2, num_runs=1)[0])
    note = page.partition("A prediction holds")[2].partition("</p>")[0]
    assert "no ring" in note and "fewer than three sizes" in note and "more than 25 %" in note
