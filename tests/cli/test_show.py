"""`hakaru show`: filters, groups, formats, and what it says of an empty answer."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests._cli import hakaru
from tests.cli._log import HEADER


def test_show_a_log_without_a_workspace(log: Path) -> None:
    result = hakaru("show", "parallelism", "--from", log, "--format", "json")
    document = json.loads(result.stdout)
    assert document["clusters"] == ["mini"]
    assert document["num_used"] == 3
    assert document["synthetic"] is False
    assert [row["num_jobs"] for row in document["rows"]] == [2, 1]


def test_formats(log: Path, tmp_path: Path) -> None:
    table = hakaru("show", "states", "--from", log)
    assert "How jobs ended" in table.output
    assert "66.67%" in table.output
    text = hakaru("show", "states", "--from", log, "--format", "md")
    assert "| completed | 2 |" in text.output
    path = tmp_path / "out.parquet"
    assert hakaru("show", "states", "--from", log, "--format", "parquet", "-o", path).exit_code == 0
    assert pq.read_table(path).column("num_jobs").to_pylist() == [2, 1]
    assert pq.read_schema(path).metadata[b"hakaru.analysis"] == b"states"
    refused = hakaru("show", "states", "--from", log, "--format", "parquet")
    assert refused.exit_code == 1
    assert "add -o result.parquet" in refused.output


def test_filters(log: Path) -> None:
    def count(*options: str) -> int:
        result = hakaru("show", "states", "--from", log, "--format", "json", *options)
        assert result.exit_code == 0, result.output
        return int(json.loads(result.stdout)["num_used"])

    assert count() == 3
    assert count("--where", "num_gpus >= 4") == 1
    assert count("--state", "failed") == 1
    assert count("--min-run", "3600") == 2
    # the log's zone is Asia/Tokyo, where these jobs were submitted at nine in the morning
    assert count("--since", "2018-01-01T09:01") == 2
    assert count("--until", "2017-12-31") == 0
    assert count("--until", "2018-01-01") == 3


def test_two_clusters_ask_for_a_choice(log: Path, tmp_path: Path) -> None:
    space = tmp_path / "w"
    hakaru("ingest", log, "-w", space, "--cluster", "one")
    hakaru("ingest", log, "-w", space, "--cluster", "two")
    undecided = hakaru("show", "states", "-w", space)
    assert "holds one, two: choose one with --cluster" in undecided.output
    chosen = hakaru("show", "states", "-w", space, "--cluster", "one", "--format", "json")
    assert json.loads(chosen.stdout)["num_used"] == 3
    both = hakaru("show", "states", "-w", space, "--by", "cluster", "--format", "json")
    assert {row["cluster"] for row in json.loads(both.stdout)["rows"]} == {"one", "two"}


def test_settings_and_mapping_hold_for_logs_too(log: Path, tmp_path: Path) -> None:
    space = tmp_path / "space"
    space.mkdir()
    (space / "hakaru.toml").write_text('[clusters.mini]\nzone = "UTC"\n')
    command = ["show", "arrivals-by-hour", "--from", log, "--format", "json"]

    def busy_hours(*options: object) -> list[int]:
        result = hakaru(*command, *options)
        assert result.exit_code == 0, result.output
        return [row["hour"] for row in json.loads(result.stdout)["rows"] if row["num_jobs"]]

    assert busy_hours("-w", tmp_path / "none") == [9]
    assert busy_hours("-w", space) == [0]
    own = tmp_path / "own.csv"
    own.write_text("nr,who,begin\n1,ann,2024-05-01 08:30:00\n")
    mapping = tmp_path / "own.toml"
    mapping.write_text('[columns]\njob_id = "nr"\nuser = "who"\nsubmitted_at = "begin"\n')
    shown = hakaru(
        *("show", "states", "--from", own, "--log-format", "table", "--mapping", mapping),
        *("--zone", "Asia/Tokyo", "--format", "json"),
    )
    assert json.loads(shown.stdout)["num_used"] == 1


# ---- files


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.csv", '"state"'), ("a.json", "{"), ("a.md", "### How"), ("a.txt", "How jobs ended\n\n")],
)
def test_the_ending_tells_the_format(log: Path, tmp_path: Path, name: str, start: str) -> None:
    path = tmp_path / "new" / "folder" / name
    result = hakaru("show", "states", "--from", log, "-o", path)
    assert result.exit_code == 0, result.output
    assert path.read_text().startswith(start)


# ---- what was not found, and what was


def test_an_empty_result_says_why(log: Path) -> None:
    outside = hakaru("show", "states", "--from", log, "--since", "2030-01-01").output
    assert "no job of mini is selected" in outside
    outside = " ".join(outside.split())  # wherever the terminal's width breaks it
    assert "submitted from 2018-01-01 09:00 to 2018-01-01 09:03 (Asia/Tokyo)" in outside
    none_passes = hakaru("show", "walltime", "--from", log, "--min-run", "99999").output
    assert "no jobs left: mini: 0 of 3 jobs" in none_passes
    assert "left out 3: only jobs that ran" in none_passes and "num_jobs" not in none_passes


def test_states_in_capitals(log: Path) -> None:
    result = hakaru("show", "states", "--from", log, "--state", "FAILED", "--format", "json")
    assert json.loads(result.stdout)["num_used"] == 1


def test_the_largest_groups_and_their_natural_order(log: Path) -> None:
    row = "{n}, {user}, 0, 0, 1, 1, 7200, 0, 1514764800, 1514764810, 1514768410, 10, 3600"
    users = [2, 2, 10, 10, 10, 1]
    log.write_text(
        "\n".join([HEADER, *(row.format(n=n, user=u) for n, u in enumerate(users))]) + "\n"
    )

    def shown(*options: str) -> list[str]:
        result = hakaru(
            "show", "states", "--from", log, "--by", "user", "--format", "csv", *options
        )
        assert ("and 1 more group of user" in result.stderr) == bool(options)
        return [r["user"].rpartition("/")[2] for r in csv.DictReader(io.StringIO(result.stdout))]

    assert shown() == ["1", "2", "10"]
    assert shown("--top", "2") == ["10", "2"]


def test_an_unquoted_pattern_is_told(log: Path) -> None:
    result = hakaru("show", "states", "--from", log, log)
    assert result.exit_code == 2
    assert "quote the pattern: --from '*.gz'" in result.output


def test_a_log_of_unknown_format_names_the_right_option(tmp_path: Path) -> None:
    odd = tmp_path / "odd.txt"
    odd.write_text("hello\n")
    output = hakaru("show", "states", "--from", odd).output
    assert "name it with --log-format" in output and "ingest" in output


def test_a_log_from_standard_input(log: Path) -> None:
    command = [sys.executable, "-m", "hakaru", "show", "states", "--from", "piped=-"]
    done = subprocess.run(command, input=log.read_bytes(), capture_output=True, check=True)
    assert b"piped: 3 of 3 jobs" in done.stdout


@pytest.mark.parametrize(
    ("option", "value", "advice"),
    [
        ("--zone", "Asia/Tokio", "clusters.NAME.zone in its hakaru.toml"),
        ("--start", "2014-03-01", "give it to `hakaru ingest`"),
        ("--fields", "JobID,State", "give it to `hakaru ingest`"),
        ("--mapping", "m.toml", "give it to `hakaru ingest`"),
        ("--log-format", "swf", "give `hakaru ingest` --format"),
    ],
)
def test_options_of_a_log_are_refused_for_a_workspace(
    log: Path, tmp_path: Path, option: str, value: str, advice: str
) -> None:
    hakaru("ingest", log, "-w", tmp_path / "w")
    told = hakaru("show", "states", "-w", tmp_path / "w", option, value)
    assert told.exit_code == 1
    assert told.output.startswith(f"error: {option} needs --from") and advice in told.output


# ---- users: sorted by the analysis, not by --top

USERS = 120  # more than the analysis' own limit of 100


def _users_log(path: Path) -> None:
    """User n has one job of n + 1 hours, but user 0 has three of 20 s: last by hours, first by jobs."""
    row = "{n}, {user}, 0, 0, 1, 1, 720000, 0, 1514764800, 1514764810, {end}, 10, {run}"
    jobs = [(user, 3600 * (user + 1)) for user in range(1, USERS)] + [(0, 20)] * 3
    lines = [
        row.format(n=n, user=user, end=1514764810 + run, run=run)
        for n, (user, run) in enumerate(jobs)
    ]
    path.write_text("\n".join([HEADER, *lines]) + "\n")


def _shown_users(log: Path, *options: object) -> tuple[list[int], str]:
    result = hakaru("show", "users", "--from", log, *options)
    assert result.exit_code == 0, result.output
    rows = csv.DictReader(io.StringIO(result.stdout))
    return [int(row["user"].rpartition("/")[2]) for row in rows], result.stderr


def test_top_users_are_those_of_the_whole_log_by_the_chosen_column(log: Path) -> None:
    _users_log(log)
    by_hours, told = _shown_users(log, "--format", "csv", "--top", 2)
    assert by_hours == [119, 118]
    assert "rows 1 to 2 of 120, sorted by pe_hours\n" in told
    by_jobs, told = _shown_users(log, "--format", "csv", "--top", 1, "--param", "sort=num_jobs")
    assert by_jobs == [0] and "rows 1 to 1 of 120, sorted by num_jobs\n" in told
    least = ("--param", "sort=median_run_s", "--param", "order=asc", "--param", "offset=1")
    assert _shown_users(log, "--format", "csv", "--top", 2, *least)[0] == [1, 2]


def test_an_export_has_every_user_and_the_terminal_says_what_it_lacks(
    log: Path, tmp_path: Path
) -> None:
    _users_log(log)
    whole, told = _shown_users(log, "--format", "csv")
    assert sorted(whole) == [*range(USERS)] and "rows 1 to" not in told
    some, told = _shown_users(log, "--format", "csv", "--top", 110)
    assert len(some) == 110 and "rows 1 to 110 of 120, sorted by pe_hours\n" in told
    file = tmp_path / "users.parquet"
    assert hakaru("show", "users", "--from", log, "-o", file).exit_code == 0
    assert pq.read_table(file).num_rows == USERS
    shown = hakaru("show", "users", "--from", log).output
    assert "rows 1 to 100 of 120, sorted by pe_hours; --top 120 shows all" in shown
    refused = hakaru("show", "users", "--from", log, "--top", 3, "--param", "limit=2")
    assert refused.exit_code == 1 and "give --top or --param limit, not both" in refused.output
