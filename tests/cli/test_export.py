"""`hakaru export`: pseudonyms, salts and shifts, filters in the manifest, and what is said."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from hakaru.cli import export
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put, put_jobs, utc


@pytest.fixture
def jobs(lake: Lake) -> Lake:
    rows = [job(n, user=user, submitted_at=utc(f"2018-01-0{n}T00:00:00"))
            for n, user in ((1, "ann"), (2, "bob"), (3, "ann"))]  # fmt: skip
    return put_jobs(lake, rows, '{"zone": "Asia/Kolkata"}', zone=None)


def exported(lake: Lake, *options: object) -> tuple[list[Any], list[Any], str]:
    """The users and the submissions that are written, and what is said."""
    file = lake.workspace / "out" / "o.parquet"
    words = ("export", "-w", lake.workspace, "--format", "parquet", "-o", file, "--overwrite")
    done = hakaru(*words, *options)
    assert done.exit_code == 0, done.output
    table = pq.read_table(file).sort_by("submitted_at")
    return table["user"].to_pylist(), table["submitted_at"].to_pylist(), done.stdout


def test_names_stay_unless_they_are_to_be_anonymised(jobs: Lake) -> None:
    assert exported(jobs)[0] == ["ann", "bob", "ann"]
    users = exported(jobs, "--anonymise")[0]
    assert users[0] == users[2] != users[1] and not {"ann", "bob"} & set(users)
    assert exported(jobs, "--anonymise")[0] != users, "each time another random salt"


def test_the_salt_of_a_file_is_its_text_without_the_end_of_its_line(
    jobs: Lake, tmp_path: Path
) -> None:
    users, _, told = exported(jobs, "--anonymise", "--salt", "a long salt")
    assert exported(jobs, "--anonymise", "--salt", "a long salt")[0] == users
    assert exported(jobs, "--anonymise", "--salt", "another salt")[0] != users
    file = tmp_path / "salt.txt"
    for text in ("a long salt", "a long salt\n", "a long salt\r\n", "  a long salt\n\n"):
        file.write_bytes(text.encode())
        assert exported(jobs, "--anonymise", "--salt-file", file)[0] == users, text
    assert "a long salt" not in told


def test_times_are_moved_by_the_days_that_are_asked_for(jobs: Lake) -> None:
    for days in (364, -7):
        _, times, told = exported(jobs, "--anonymise", "--shift-times", days)
        assert times[0] - utc("2018-01-01T00:00:00") == timedelta(days=days)
        assert "  times are moved" in told
    assert exported(jobs, "--anonymise")[1][0] == utc("2018-01-01T00:00:00")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--salt", "a long salt", "--salt-file", "s"), "give --salt or --salt-file, not both"),
        (("--salt-file", "gone.txt"), "gone.txt: the salt cannot be read: "),
        (("--salt", "short"), "salt"),
        (("--salt", ""), "salt"),
        (("--shift-times", "soon"), "soon"),
    ],
)
def test_a_disguise_that_cannot_be_is_refused(
    jobs: Lake, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    out = tmp_path / "o.parquet"
    words = ("export", "-w", jobs.workspace, "--format", "parquet", "-o", out, "--anonymise")
    refused = hakaru(*words, *options)
    assert refused.exit_code == 1 and said in refused.stderr
    assert refused.stderr.startswith("error: ") and not out.exists()


def test_a_salt_that_is_no_text_is_refused(jobs: Lake, tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"\xff\xfe\x00")
    words = ("export", "-w", jobs.workspace, "--format", "swf", "-o", tmp_path / "o.swf")
    refused = hakaru(*words, "--anonymise", "--salt-file", tmp_path / "s")
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"error: {tmp_path / 's'}: the salt cannot be read: ")


def test_the_jobs_of_one_cluster_are_written_with_its_settings(jobs: Lake, tmp_path: Path) -> None:
    put_jobs(jobs, [job(9, cluster="d", num_gpus=None, num_cpus=4)], '{"zone": "Asia/Tokyo"}', None)
    for name, zone, num in (("c", "Asia/Kolkata", 3), ("d", "Asia/Tokyo", 1)):
        out = tmp_path / f"{name}.swf"
        words = ("export", "-w", jobs.workspace, "--format", "swf", "-o", out, "--cluster", name)
        told = hakaru(*words).stdout
        first, *_, last = told.splitlines()
        noun = "job" if num == 1 else "jobs"
        assert first == f"{name}: wrote {num} of {num} {noun} as swf to {out}"
        assert last == f"  manifest {tmp_path / f'{name}.manifest.json'}"
        assert zone in out.read_text()
        assert out.read_text().splitlines()[-1].split()[4] == {"c": "1", "d": "4"}[name]


def test_synthetic_jobs_are_marked(lake: Lake, tmp_path: Path) -> None:
    put(lake, "jobs", [job(1)])
    at = utc("2018-02-01T00:00:00")
    made = {"ingest_id": "s", "cluster": "c", "source": "synth", "synthetic": True}
    put(lake, "ingests", [made | {"started_at": at, "ended_at": at}])
    out = tmp_path / "o.swf"
    told = hakaru("export", "-w", lake.workspace, "--format", "swf", "-o", out).stdout
    assert told.startswith("c (SYNTHETIC data): wrote 1 of 1 job")
    assert json.loads((tmp_path / "o.manifest.json").read_text())["synthetic"] is True


def test_no_job_is_no_export_and_the_period_is_told(jobs: Lake, tmp_path: Path) -> None:
    out = tmp_path / "o.swf"
    words = ("export", "-w", jobs.workspace, "--format", "swf", "-o", out)
    refused = hakaru(*words, "--since", "2019-01-01")
    assert refused.exit_code == 1 and not out.exists()
    assert refused.stderr == (
        "error: no job of c passes the filters; the jobs of c were submitted from 2018-01-01 05:30 to "
        "2018-01-03 05:30 (Asia/Kolkata); nothing was written\n"
    )


def test_filters_of_nought_stand_in_the_manifest(jobs: Lake, tmp_path: Path) -> None:
    words = ("export", "-w", jobs.workspace, "--format", "swf", "-o", tmp_path / "o.swf")
    filters = (
        "--min-run",
        "0",
        "--where",
        "user = 'ann'",
        "--state",
        "failed",
        "--state",
        "completed",
    )
    assert hakaru(*words, *filters).exit_code == 0
    manifest = json.loads((tmp_path / "o.manifest.json").read_text())
    assert manifest["filters"] == {
        "where": "user = 'ann'", "min_run_s": "0", "states": "failed, completed",
    }  # fmt: skip


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


def test_one_file_is_named_and_only_what_there_is_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    manifest = {
        "clusters": ["c"], "synthetic": False, "num_jobs_written": 1, "num_jobs_selected": 1,
        "format": "swf", "missing": 0.25, "left_out": {}, "changed": {}, "columns": {"not_in_swf": ["qos"]},
        "anonymised": None, "times": "as recorded", "settings_in_files": True,
    }  # fmt: skip
    done: Any = SimpleNamespace(
        files=[Path("out/a.swf")], manifest=manifest, manifest_path=Path("out/m.json")
    )
    export._print_done(done, None)
    first, missing, *rest = capsys.readouterr().out.splitlines()
    assert first == "c: wrote 1 of 1 job as swf to out/a.swf"
    assert missing.startswith("  c: 25.0 % of the rows of its log are missing here")
    assert rest == ["  columns not in swf: qos", "  manifest out/m.json"]
