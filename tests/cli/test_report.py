"""`hakaru report`: what it passes on, and the line that it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hakaru.cli import report
from tests._cli import hakaru


@pytest.mark.parametrize(
    ("beside", "names"),
    [((), None), (("all",), None), (("none",), []), (("a, b", "c"), ["a", "b", "c"])],
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
