"""`hakaru report`: what it passes on, and the line that it prints."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.cli import report
from tests._cli import hakaru


@pytest.mark.parametrize(
    ("beside", "names"),
    [
        ((), None),
        (("all",), None),
        (("none",), []),
        (("a, b", "c"), ["a", "b", "c"]),
        (("NONE",), []),
        (("All",), None),
        (("none,a",), ["none", "a"]),
        (("a,,",), ["a"]),
    ],
)
def test_what_a_report_is_compared_with(beside: tuple[str, ...], names: list[str] | None) -> None:
    assert report._names(beside) == names


def test_a_report_says_its_size(log: Path, monkeypatch: Any) -> None:
    seen: list[Any] = []

    def written(session: Any, output: Path, *given: Any) -> int:
        seen.extend(given)
        return 2_540_000

    monkeypatch.setattr(report, "write_report", written)
    options = ("-o", "r.html", "--lang", "ja", "--compare", "Kraken", "--since", "2018-01-01")
    done = hakaru("report", "--from", log, *options)
    assert (done.exit_code, done.output) == (0, "r.html (2.5 MB)\n")
    assert (seen[0].since, seen[1:]) == ("2018-01-01", [["Kraken"], "ja"])


def test_what_is_told_is_written_whole(tmp_path: Path, monkeypatch: Any) -> None:
    """Three letters of Japanese are nine bytes."""
    seen: list[Any] = []
    story = SimpleNamespace(name="story", not_measured="")
    monkeypatch.setattr("hakaru.report.tell", lambda *given: seen.append(given) or story)
    monkeypatch.setattr("hakaru.report.to_html", lambda told: f"{told.name}: 日本語")
    output = tmp_path / "new" / "r.html"
    session: Any = "a session"
    chosen: Any = "a selection"
    size = report.write_report(session, output, chosen, ["Kraken"], "ja")
    assert (size, output.read_text(encoding="utf-8")) == (16, "story: 日本語")
    report.write_report(session, output)
    assert seen == [(session, chosen, ["Kraken"], "ja"), (session, None, None, "en")]


def test_a_report_is_html_and_its_default_name_is_report_html(
    log: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(report, "write_report", lambda session, output, *given: 149_999)
    for options, name in (((), "report.html"), (("-o", "r.HTM"), "r.HTM")):
        done = hakaru("report", "--from", log, *options)
        assert (done.exit_code, done.output) == (0, f"{name} (0.1 MB)\n")
    refused = hakaru("report", "--from", log, "-o", "r.pdf")
    assert (refused.exit_code, refused.stderr) == (
        1,
        "error: r.pdf: the report is HTML; end its name in .html (and print it in a browser for a PDF)\n",
    )


def test_filters_clusters_and_language_of_a_report(log: Path, monkeypatch: Any) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        report, "write_report", lambda session, output, *given: seen.append(given) or 0
    )
    hakaru("report", "--from", log)
    ((chosen, beside, lang),) = seen
    assert (chosen.clusters, chosen.states, chosen.min_run_s) == ((), (), None)
    assert (beside, lang) == (None, "en")
    hakaru("report", "--from", log, "--cluster", "mini", "--min-run", 0, "--compare", "none")
    chosen, beside, _ = seen[1]
    assert (chosen.clusters, chosen.min_run_s, beside) == (("mini",), 0.0, [])
    refused = hakaru("report", "--from", log, "--cluster", "other")
    assert refused.exit_code == 1 and "there is no cluster 'other'" in refused.stderr
