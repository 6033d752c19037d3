"""Reading an export back gives the same analyses; what a format cannot carry is listed, and only that."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hakaru.analyses import Selection, load_all, open_session
from hakaru.engine.duckdb import connect
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine
from hakaru.sources import ingest
from tests.conftest import job
from tests.export._roundtrip import (
    Rows,
    differing,
    export,
    hakaru,
    read_back,
    run_all,
    same,
    small_lake,
)

FORMATS = ("aaic", "swf", "parquet")
BY_LOG = {"users-by-quarter": {"quarter": "log"}, "jobs-by-quarter": {"quarter": "log"}}

# An entry must differ: a format that learns to carry more is noticed here. The 5 jobs whose class of
# parallelism SWF cannot tell (2 nodes with 1 GPU each) ran for less than the minute that counts.
ENDS = "5,045 jobs record a run time that is not end - start: SWF has the run time only"
NAMING = {
    "users": "users have other names",
    "accounts": "accounts have other names",
    "job-shapes": "jobs have other ids, by which the sample is drawn",
}
LOST: dict[str, dict[str, str]] = {
    "aaic": {},
    "parquet": {},
    "swf": {
        "queues": "max_nodes is unknown",
        "states": "timeout reads as failed, killed as cancelled",
        "size-vs-walltime": "the sample is drawn by job id, and ids are numbered anew",
        "think-time": ENDS,
        "load": ENDS,
        "utilisation": ENDS,
        **NAMING,
    },
}
# with pseudonyms for job ids another sample is drawn; the rest stays as the format has it
LOST_ANONYMISED = {
    format: {**lost, **NAMING, "size-vs-walltime": "the sample is drawn by job id"}
    for format, lost in LOST.items()
}
SMALL_LOST = {
    "aaic": {
        "waits": "AAIC has no eligible time",
        "walltime-by-application": "AAIC has no applications",
        **NAMING,
    },
    "parquet": {},
    "swf": {
        "queues": "max_nodes is unknown",
        "states": "timeout reads as failed, killed as cancelled",
        "waits": "SWF has no eligible time",
        "walltime-by-application": "applications are numbered",
        **NAMING,
    },
}


@pytest.fixture(scope="module")
def aaic_lake(aaic_files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake.create(tmp_path_factory.mktemp("aaic"))
    ingest(lake, aaic_files, "aaic")
    return lake


@pytest.fixture(scope="module")
def aaic_results(aaic_lake: Lake) -> dict[str, Rows]:
    return run_all(aaic_lake)


@pytest.fixture(scope="module")
def aaic_by_log(aaic_lake: Lake) -> dict[str, Rows]:
    analyses = load_all()
    with open_session(aaic_lake) as session:
        return {id: session.run(analyses.get(id), **BY_LOG[id]).rows for id in BY_LOG}


@pytest.mark.parametrize("format", FORMATS)
def test_aaic_log(
    format: str, aaic_lake: Lake, aaic_results: dict[str, Rows], tmp_path: Path
) -> None:
    manifest = export(aaic_lake, tmp_path / "out", format)
    assert manifest["num_jobs_written"] == 459_545
    assert manifest["left_out"] == {}
    again = read_back(manifest, tmp_path / "out", tmp_path / "again")
    assert differing(aaic_results, run_all(again)) == LOST[format].keys()


def test_aaic_log_as_swf_loses_what_the_manifest_counts(aaic_lake: Lake, tmp_path: Path) -> None:
    manifest = export(aaic_lake, tmp_path / "out", "swf")
    assert manifest["changed"] == {
        "state killed becomes cancelled": 110,
        "state timeout becomes failed": 4966,
        "the end becomes start + recorded run time": 5045,
        "whether they span nodes is told from their size, and differs": 5,
    }


def test_aaic_files_are_written_as_they_were(
    aaic_lake: Lake, aaic_files: list[Path], tmp_path: Path
) -> None:
    export(aaic_lake, tmp_path / "out", "aaic")
    for file in aaic_files:
        written = gzip.decompress((tmp_path / "out" / file.name).read_bytes())
        assert written == gzip.decompress(file.read_bytes())


@pytest.mark.parametrize("format", FORMATS)
def test_aaic_log_anonymised(
    format: str,
    aaic_lake: Lake,
    aaic_results: dict[str, Rows],
    aaic_by_log: dict[str, Rows],
    tmp_path: Path,
) -> None:
    manifest = export(aaic_lake, tmp_path / "out", format, "--anonymise", "--salt", "long enough")
    again = read_back(manifest, tmp_path / "out", tmp_path / "again")
    results = run_all(again)
    assert differing(aaic_results, results) == LOST_ANONYMISED[format].keys()
    mean = {row["coefficient"]: row["mean"] for row in results["size-vs-walltime"]}
    assert mean["spearman"] == pytest.approx(0.254, abs=0.03)
    if format != "swf":  # one file, in which no log is told from another
        with open_session(again) as session:
            for id, expected in aaic_by_log.items():
                rows = session.run(load_all().get(id), **BY_LOG[id]).rows
                assert _without_labels(rows) == _without_labels(expected)


def _without_labels(rows: Rows) -> list[tuple[object, ...]]:
    """Logs under other names, hence in another order."""
    counts = ("num_users", "num_accounts", "num_jobs")
    return sorted(tuple(row[name] for name in counts if name in row) for row in rows)


@pytest.mark.parametrize("anonymise", [(), ("--anonymise",)], ids=["named", "anonymised"])
@pytest.mark.parametrize("format", FORMATS)
def test_small_lake(format: str, anonymise: tuple[str, ...], tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    manifest = export(lake, tmp_path / "out", format, *anonymise)
    assert manifest["left_out"] == {}
    again = read_back(manifest, tmp_path / "out", tmp_path / "again")
    facts = None if manifest["settings_in_files"] else manifest["settings"]
    lost = SMALL_LOST[format].keys() | (NAMING.keys() if anonymise else set())
    # AAIC's ids get the file's name before them, and with other ids another sample is drawn
    new_ids = {"size-vs-walltime"} if format == "aaic" or anonymise else set()
    assert differing(run_all(lake), run_all(again, facts)) - new_ids == lost
    hours = Selection(weight="gpu-hours")
    weighted = {id for id in lost if load_all().get(id).weighted}
    assert differing(run_all(lake, None, hours), run_all(again, facts, hours)) == weighted


@pytest.mark.parametrize("anonymise", [(), ("--anonymise",)], ids=["named", "anonymised"])
@pytest.mark.parametrize("format", FORMATS)
def test_users_of_two_logs_are_never_counted_as_people(
    format: str, anonymise: tuple[str, ...], lake_of: Callable[..., Lake], tmp_path: Path
) -> None:
    """User 0 of one file need not be user 0 of the other: no export may make one number of them."""
    rows = [job(f"{log}/{n}", user=f"{log}/0", account=f"{log}/0") for log in "ab" for n in (1, 2)]
    export(lake_of(rows), tmp_path / "out", format, *anonymise)
    files = tmp_path.glob("out/*.csv.gz" if format == "aaic" else f"out/c.{format}*")
    told = hakaru("ingest", *files, "--cluster", "c", "-w", tmp_path)
    assert told.exit_code == 0 and "somebody in two files has two ids" in told.output
    for command in ("lake status", "show concentration", "show users-by-quarter"):
        assert "somebody in two files has two ids" in _said(tmp_path, *command.split()), command
    cell = json.loads(_said(tmp_path, "compare", "--metric", "num_users", "--format", "json"))
    assert cell["metrics"][0]["computed"]["c"]["value"] is None


def _said(workspace: Path, *arguments: str) -> str:
    result = hakaru(*arguments, "-w", workspace)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_every_column_comes_back_from_parquet(tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    manifest = export(lake, tmp_path / "out.parquet", "parquet")
    again = read_back(manifest, tmp_path, tmp_path / "again")
    con = connect(Engine())
    before, after = (
        con.from_arrow(one.read(con, JOBS)).order("job_id").to_arrow_table().to_pylist()
        for one in (lake, again)
    )
    assert before == after
    assert lake.facts()["c"].keys() <= again.facts()["c"].keys()


@pytest.mark.parametrize("format", FORMATS)
def test_times_moved_by_weeks_keep_weekdays_and_hours(format: str, tmp_path: Path) -> None:
    """From winter into summer time and back: 154 days before, New York's clocks stood an hour on."""
    lake = small_lake(tmp_path / "lake")
    manifest = export(lake, tmp_path / "out", format, "--anonymise", "--shift-times", "-154")
    again = read_back(manifest, tmp_path / "out", tmp_path / "again")
    facts = None if manifest["settings_in_files"] else manifest["settings"]
    before, after = run_all(lake), run_all(again, facts)
    for id in ("arrivals-by-hour", "arrivals-by-weekday", "walltime", "request-accuracy"):
        assert same(before[id], after[id]), id
    assert [row["quarter"] for row in after["jobs-by-quarter"]] == ["2017Q3", "2017Q4"]
    assert [row["quarter"] for row in before["jobs-by-quarter"]] == ["2018Q1", "2018Q2"]


def test_a_log_in_place_of_a_workspace(tmp_path: Path) -> None:
    """A CPU log in SWF, its ids rising numbers: it comes back line by line."""
    lines = [
        "3 0 5 60 8 -1 -1 8 300 -1 1 7 2 -1 1 -1 -1 -1",
        "9 4 -1 -1 -1 -1 -1 16 -1 -1 -1 7 2 -1 2 -1 -1 -1",
        "12 4 6 0 0 -1 -1 16 60 -1 5 8 2 -1 2 -1 -1 -1",
    ]
    header = [
        "; UnixStartTime: 1272639895",
        "; MaxNodes: 4",
        "; MaxProcs: 32",
        "; Queue: 1 small",
        "; TimeZoneString: Asia/Tokyo",
    ]
    (tmp_path / "mini.swf").write_text("\n".join(header + lines) + "\n")
    out = tmp_path / "out.swf"
    result = hakaru("export", "--from", tmp_path / "mini.swf", "-o", out, "--format", "swf")
    assert result.exit_code == 0, result.output
    written = out.read_text().splitlines()
    assert [line for line in written if not line.startswith(";")] == lines
    assert set(header) <= set(written)
    assert "; Note: a processor (fields 5 and 8) is a CPU" in written
