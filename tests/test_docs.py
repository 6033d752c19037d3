"""The generated pages are fresh, and everything registered is documented."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hakaru.analyses import load_all
from hakaru.sources._slurm import COMMAND

ROOT = Path(__file__).parents[1]


def test_generated_pages_are_fresh() -> None:
    command = [sys.executable, "docs/generate.py", "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_readme_shows_the_sacct_command_that_errors_recommend() -> None:
    assert COMMAND in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_analysis_says_what_it_is() -> None:
    page = (ROOT / "docs/reference/analyses.md").read_text(encoding="utf-8")
    for analysis in load_all():
        assert f"## {analysis.id}\n" in page
        assert analysis.answers.endswith("?"), analysis.id
        assert analysis.description and analysis.title, analysis.id
