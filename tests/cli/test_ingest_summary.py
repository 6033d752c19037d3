"""`hakaru ingest`: what its options hand on, and every line that it prints in the end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hakaru.cli.ingest import missing_line, print_summary
from hakaru.lake import Conflicts, Lake, Upsert
from hakaru.sources import Summary
from tests._cli import hakaru
from tests.conftest import utc

SUMMARY = Summary(
    cluster="c", sources=["sacct", "swf"], num_files=2, num_read=12345,
    upsert=Upsert(num_new=1001, num_updated=2002, num_unchanged=3003, num_repeated=4004),
    num_rejected=0, rejected_by_reason={}, first_rejects=[],
    since=utc("2018-01-01T18:30:00"), until=utc("2018-03-04T18:29:59"), zone=ZoneInfo("Asia/Kolkata"),
    num_users=1234, users_note="", num_gpus=8, seconds=1.26,
)  # fmt: skip


def lines_of(capsys: Any, workspace: Path = Path("w"), **changed: Any) -> list[str]:
    print_summary(replace(SUMMARY, **changed), workspace)
    return list(capsys.readouterr().out.splitlines())


def test_each_number_in_its_place(capsys: Any) -> None:
    """Midnight in India begins the second of January; the last second is still the fourth of March."""
    assert lines_of(capsys) == [
        "c: read 12,345 from 2 files (sacct, swf) in 1.3 s",
        "  new 1,001, updated 2,002, unchanged 3,003, repeated 4,004, rejected 0",
        "  submitted 2018-01-02 to 2018-03-04 (Asia/Kolkata), 1,234 users, up to 8 GPUs a job",
        "  workspace w; next: hakaru show walltime --cluster c -w w",
    ]


def test_what_there_is_more_to_say(capsys: Any) -> None:
    told = lines_of(
        capsys, Path("my work"), num_rejected=5, rejected_by_reason={"bad\tstate": 3, "no end": 2},
        first_rejects=[("a.txt", 7, "bad\tstate"), ("b.txt", 9, "no end"), ("a.txt", 8, "bad\tstate")],
        upsert=Upsert(num_new=1, num_conflicts=6), num_gpus=None, num_users=1, users_note="a note",
        warnings=["beware"], has_run_times=False, num_files=1,
    )  # fmt: skip
    assert told == [
        "c: read 12,345 from 1 file (sacct, swf) in 1.3 s",
        "  new 1, updated 0, unchanged 0, repeated 0, in conflict 6, rejected 5",
        "    3 × bad\\u0009state",
        "    2 × no end",
        "    a.txt, line 7: bad\\u0009state",
        "    b.txt, line 9: no end",
        "    a.txt, line 8: bad\\u0009state",
        "  submitted 2018-01-02 to 2018-03-04 (Asia/Kolkata), 1 user",
        "  a note",
        "  warning: beware",
        "  workspace my work; next: hakaru show states --cluster c -w 'my work'",
    ]


def test_without_a_date_no_period_is_told(capsys: Any) -> None:
    assert not any("submitted" in line for line in lines_of(capsys, since=None, until=None))
    assert "up to 1 GPU a job" in lines_of(capsys, num_gpus=1)[2]


def test_the_next_command_has_something_to_show(capsys: Any) -> None:
    """Without a completed job of a minute, no run times by size; without a state, no states."""
    for states, id in ((True, "states"), (False, "jobs-by-quarter")):
        told = lines_of(capsys, has_run_times=False, has_states=states)
        assert f"next: hakaru show {id} --cluster c" in told[-1]


def test_a_log_without_users_does_not_count_none(capsys: Any) -> None:
    assert "(Asia/Kolkata), the log names no users, up" in lines_of(capsys, num_users=0)[2]


def test_rows_that_are_missing_come_first_and_each_file_is_cleared_once(capsys: Any) -> None:
    told = lines_of(
        capsys, num_read=1000, num_rejected=25, rejected_by_reason={"bad state": 25},
        first_rejects=[("a.txt", 7, "bad state"), ("b.txt", 9, "bad state"), ("a.txt", 8, "bad state")],
    )  # fmt: skip
    assert told[0] == (
        "2.5% of the rows are missing: 25 of 1,000 were rejected (25 × bad state); every figure of c lacks "
        "them"
    )
    at = told.index("  if you read the rejected rows from another file, clear them here with:")
    assert told[at + 1 : at + 3] == [
        f"      hakaru lake forget --cluster c --rejects {name} --workspace w"
        for name in ("a.txt", "b.txt")
    ]
    assert told[at + 3].startswith("  workspace w; next: ")


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ({"x": 30}, "(30 × x)"),
        ({"x": 20, "y": 10}, "(20 × x and another reason)"),
        ({"x": 20, "y": 9, "z": 1}, "(20 × x and 2 other reasons)"),
    ],
)
def test_the_first_reason_and_how_many_others(reasons: dict[str, int], words: str) -> None:
    told = missing_line(
        replace(SUMMARY, num_read=1000, num_rejected=30, rejected_by_reason=reasons)
    )
    assert told is not None and f"30 of 1,000 were rejected {words}; " in told


def test_dropped_rows_are_missing_in_the_singular_and_plural() -> None:
    for dropped, words in ((1, "1 of 50 contradicts another row of its job"),
                           (2, "2 of 50 contradict another row of their job")):  # fmt: skip
        told = missing_line(replace(SUMMARY, num_read=50, upsert=Upsert(inside=Conflicts(dropped))))
        assert told == (
            f"{dropped * 2}.0% of the rows are missing: {words}; every figure of c lacks them"
        )
    assert missing_line(SUMMARY) is None


def test_every_option_reaches_the_ingest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def ingest(lake: Lake, paths: Any, cluster: str, **given: Any) -> Summary:
        seen.update(given, paths=paths, cluster=cluster, workspace=lake.workspace)
        return SUMMARY

    monkeypatch.setattr("hakaru.cli._progress.ingest_with_progress", ingest)
    place = ("-w", tmp_path / "w")
    assert hakaru("ingest", "ab-1.txt", "ab-2.txt", *place).exit_code == 0
    assert (seen["paths"], seen["cluster"]) == ((Path("ab-1.txt"), Path("ab-2.txt")), "ab")
    assert seen["options"] == {"mapping": None, "zone": None, "start": None, "fields": None}
    assert (seen["format"], seen["strict"], seen["max_missing"]) == (None, False, None)
    options = ("--cluster", "x", "--format", "table", "--mapping", "m.toml", "--zone", "Asia/Tokyo",
               "--start", "2014-03-01", "--fields", "JobID", "--strict", "--max-missing", "0")  # fmt: skip
    assert hakaru("ingest", "a.txt", *place, *options).exit_code == 0
    assert seen["options"] == {
        "mapping": Path("m.toml"), "zone": "Asia/Tokyo", "start": "2014-03-01", "fields": "JobID",
    }  # fmt: skip
    assert (seen["cluster"], seen["format"], seen["strict"]) == ("x", "table", True)
    assert seen["max_missing"] == 0 and seen["workspace"] == tmp_path / "w"


def test_a_guess_reads_nothing_and_names_the_cluster(tmp_path: Path) -> None:
    log = tmp_path / "own.csv"
    log.write_text("job_id,user,submit_time\n1,ann,2024-05-01 08:30:00\n")
    told = hakaru("ingest", log, "--guess", "--cluster", "mine", "-w", tmp_path / "w")
    assert told.exit_code == 0 and "[columns]" in told.stdout
    assert "--cluster NAME" not in told.stdout and "--cluster mine" in told.stdout
    assert not (tmp_path / "w").exists()


def test_the_default_workspace_is_not_repeated_in_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("jobs.txt").write_text("7|ann|gpu|COMPLETED|1514764800|1514764801|1514764802\n")
    told = hakaru("ingest", "jobs.txt", "--cluster", "mine").stderr
    assert "hakaru ingest jobs.txt --cluster mine --fields " in told


def test_an_open_lake_is_closed_and_its_mode_is_told(log: Path, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "lake").mkdir(mode=0o755)
    (tmp_path / "w" / "lake").chmod(0o755)
    told = hakaru("ingest", log, "-w", tmp_path / "w").stderr
    assert told == (
        f"{tmp_path / 'w' / 'lake'} had the mode 0755; only its owner may read it now, and the group that "
        "workspace.group in hakaru.toml names\n"
    )
    assert hakaru("ingest", log, "-w", tmp_path / "w").stderr == ""
