"""`hakaru export`: pseudonyms, salts and shifts, filters in the manifest, and what is said."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.cli import export
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put_jobs, utc


def test_what_disguises_needs_anonymise(lake: Lake, tmp_path: Path) -> None:
    put_jobs(lake, [job(1)])
    out = ("export", "-w", lake.workspace, "--format", "parquet", "-o", tmp_path / "o.parquet")
    for option in (("--salt", "s"), ("--salt-file", tmp_path / "s"), ("--shift-times", "364")):
        refused = hakaru(*out, *option)
        assert refused.exit_code == 1 and f"{option[0]} needs --anonymise" in refused.stderr
    assert not (tmp_path / "o.parquet").exists()


def test_the_manifest_has_the_filters_and_a_file_is_replaced_only_if_asked(
    lake: Lake, tmp_path: Path
) -> None:
    put_jobs(lake, [job(n, submitted_at=utc(f"2018-01-0{n}T00:00:00")) for n in range(1, 6)])
    out = ("export", "-w", lake.workspace, "--format", "parquet", "-o", tmp_path / "o.parquet")
    chosen = (
        "--since",
        "2018-01-02",
        "--until",
        "2018-01-03",
        "--min-run",
        "60",
        "--state",
        "completed",
    )
    first = hakaru(*out, *chosen)
    assert first.exit_code == 0 and "wrote 2 of 2 jobs" in first.output
    manifest = Path(first.output.split("manifest ")[1].strip())
    assert json.loads(manifest.read_text())["filters"] == {
        "since": "2018-01-02", "until": "2018-01-03", "min_run_s": "60", "states": "completed",
    }  # fmt: skip
    assert hakaru(*out).exit_code == 1
    assert "wrote 5 of 5 jobs" in hakaru(*out, "--overwrite").output


def test_an_export_says_what_was_left_out_and_changed(capsys: pytest.CaptureFixture[str]) -> None:
    manifest = {
        "clusters": ["c"], "synthetic": True, "num_jobs_written": 1200, "num_jobs_selected": 1234,
        "format": "aaic", "missing": None, "left_out": {"no start": 34}, "changed": {"whole seconds": 5},
        "columns": {"removed": ["name", "nodes"], "added": []}, "anonymised": {"salt": "not kept"},
        "times": "moved", "settings_in_files": False,
    }  # fmt: skip
    files = [Path("out/a.csv"), Path("out/b.csv")]
    done: Any = SimpleNamespace(files=files, manifest=manifest, manifest_path=Path("out/m.json"))
    disguise: Any = object()
    export._print_done(done, disguise)
    assert capsys.readouterr().out.splitlines() == [
        "c (SYNTHETIC data): wrote 1,200 of 1,234 jobs as aaic to 2 files in out",
        "  left out 34: no start",
        "  changed 5: whole seconds",
        "  columns removed: name, nodes",
        "  the salt is not kept",
        "  times are moved",
        "  the files hold no settings (zone, nodes, limits): the manifest has them",
        "  manifest out/m.json",
    ]
