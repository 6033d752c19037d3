"""The page of a what-if in a real Chromium: every figure is drawn, and nothing is refused."""

from __future__ import annotations

import re
from pathlib import Path

from hakaru.report import whatif_to_html
from hakaru.sim.site import Site
from hakaru.sim.whatif import read, run
from hakaru.sim.whatif.intervals import WEEK_S
from tests.report.conftest import Browser
from tests.sim._jobs import workload

SCENARIO = """
[machine]
processors = 20
[[variant]]
name = "<script>more</script>"
machine = { processors = 40 }
[[variant]]
name = "shortest first"
policy = "sjf"
"""


def test_every_figure_is_drawn(tmp_path: Path, browser: Browser) -> None:
    jobs = workload(*((week * WEEK_S + at, 50 + at, 1) for week in range(12) for at in range(60)))
    outcome = run(read(SCENARIO), jobs, site=Site(unit="cpu"), num_processes=1)
    page = tmp_path / "whatif.html"
    page.write_text(whatif_to_html(outcome, "c"), encoding="utf-8")
    shown = browser(page, "--dump-dom")
    assert len(re.findall(r"<canvas", shown.stdout)) == 4
    assert "<script>more" not in shown.stdout
    errors = re.findall(r"(?:CONSOLE|Refused).*", shown.stderr)
    assert errors == []
    assert "Who gains, who loses: &lt;script&gt;more" in shown.stdout
