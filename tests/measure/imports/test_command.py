"""`hakaru bench import` as a person calls it: everything that is not good is listed with its reason."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from click.testing import Result

from hakaru.analyses import open_session
from hakaru.figures.measure.stored import load_view
from hakaru.figures.measure.view import RunView
from hakaru.lake import Lake
from hakaru.measure.store import list_runs, load_runs
from tests._cli import hakaru

DATA = Path(__file__).parent / "data"


def import_file(lake: Lake, path: Path, *options: str) -> Result:
    return hakaru("bench", "import", path, "--cluster", "c", "-w", lake.workspace, *options)


def test_each_bad_line_has_its_reason_and_the_run_its_command(lake: Lake) -> None:
    result = import_file(lake, DATA / "HPL.out", "--host", "n1")
    assert result.exit_code == 11
    lines = result.output.splitlines()
    assert lines[0].endswith("FAILED: 2 good, 1 failed")
    text = "failed: n1/2 ranks: hpl"
    assert any(text in line and "HPL's residual is 9900.0" in line for line in lines), lines
    (run,) = load_runs(lake)
    workspace = shlex.quote(str(lake.workspace))
    assert lines[-1].strip() == f"show it: hakaru bench show {run.id} -w {workspace}"
    shown = hakaru(*shlex.split(lines[-1].partition("hakaru ")[2]))
    assert shown.output.startswith("FAILED: 2 good, 1 failed")


def test_the_date_of_the_file_is_shown(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "diag.json"
    path.write_text((DATA / "dcgm-4.json").read_text())
    os.utime(path, (1_700_000_000, 1_700_000_000))
    output = import_file(lake, path).output
    assert (
        "note: the file does not say when it was measured; the date is that of the file, 2023-11-14"
        in output
    )
    assert "failed: unknown/node: dcgm-memory" in output and "a GPU was lost" in output
    assert "not measured: unknown/node: dcgm-eud" in output


def test_a_host_that_is_no_text_is_an_error_without_a_traceback(lake: Lake) -> None:
    result = import_file(lake, DATA / "HPL.out", "--host", os.fsdecode(b"\xff"))
    assert result.exit_code == 1 and "not text in UTF-8" in result.output
    assert not list_runs(lake)


def test_a_note_is_not_called_left_out_here_or_on_the_pages(lake: Lake, tmp_path: Path) -> None:
    """What DCGM warns of, and why its numbers meet none of our own, take nothing away from the run."""
    path = tmp_path / "diag.json"
    document = json.loads((DATA / "dcgm-4.json").read_text())
    document["DCGM Diagnostic"]["Warning"] = "GPU 3 is busy"
    path.write_text(json.dumps(document))
    output = import_file(lake, path).output
    assert "  note: DCGM warns: GPU 3 is busy\n" in output and "left out" not in output
    (run,) = load_runs(lake)
    assert run.left_out == () and "DCGM warns: GPU 3 is busy" in run.notes
    with open_session(lake) as session:
        view = load_view(session, "c", run.id)
    assert view.notes == RunView.of(run).notes == run.notes and not view.left_out
    shown = " ".join(hakaru("bench", "show", "-w", lake.workspace).output.split())
    assert "Notes: DCGM warns: GPU 3 is busy; " in shown
