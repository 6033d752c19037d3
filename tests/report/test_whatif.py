"""The page of a what-if in a real Chromium: every figure is drawn, and nothing is refused."""

from __future__ import annotations

import re
from pathlib import Path

from hakaru.report import whatif_to_html
from hakaru.report._whatif import _group, _subtitle
from hakaru.sim.site import Site
from hakaru.sim.whatif import read, run
from hakaru.sim.whatif.intervals import WEEK_S
from hakaru.sim.whatif.outcome import Change, GroupChange, Outcome, Variant
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


def test_the_page_says_before_and_after_of_each_group() -> None:
    """Mean waits of 5 h become 3 h, those of one in twenty 10 h become 11 h, which has no interval."""
    mean = Change(18000.0, 10800.0, -10800.0, -1800.0)
    late = Change(36000.0, 39600.0)
    group = GroupChange("queue", "long", 1234, {"mean_wait_s": mean, "p95_wait_s": late})
    cells = _group(group, "gpu")
    assert cells[1:] == [
        "1,234", "5.0 h", "3.0 h", "−3.0 h to −30.0 min", "10.0 h", "11.0 h", "–",
    ]  # fmt: skip
    assert "long" in cells[0]


def test_the_subtitle_counts_variants_jobs_and_weeks() -> None:
    base = Variant("as it is", {"num_jobs": 1234.0})
    one = Outcome(base, (Variant("a", {}),), (), "", (), 12, 100, 1)
    assert _subtitle(one) == "1 variant beside “as it is”, 1,234 jobs of 12 weeks"
