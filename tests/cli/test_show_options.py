"""`hakaru show`: the groups it keeps, the figure it draws, the period, and what JSON holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hakaru.cli import _groups
from hakaru.cli._groups import natural
from hakaru.cli._options import parse_params
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.cli._rows import rows_of
from tests.conftest import job, put_jobs, utc
from tests.figures._result import result


def test_the_largest_are_those_with_most_of_what_is_counted(lake: Lake) -> None:
    """ann has three jobs of an hour, bob one of ten hours on eight GPUs."""
    rows = [job(n) for n in range(3)] + [job(9, user="bob", num_gpus=8, run_s=36000.0)]
    put_jobs(lake, rows)
    for weight, user in (("jobs", "ann"), ("gpu-hours", "bob")):
        top = ("--by", "user", "--top", 1, "--weight", weight)
        assert [row["user"] for row in rows_of("show", "states", "-w", lake.workspace, *top)] == [
            user
        ]


def test_a_group_is_as_large_as_all_its_rows(lake: Lake) -> None:
    """ann has 2 completed, 2 failed and 1 cancelled jobs; bob has 4 completed ones, and cat 3."""
    ends = ("completed", "completed", "failed", "failed", "cancelled")
    rows = [job(n, state=state) for n, state in enumerate(ends)]
    rows += [job(n, user="bob" if n < 14 else "cat") for n in range(10, 17)]
    shown = ("show", "states", "-w", put_jobs(lake, rows).workspace, "--by", "user", "--top")
    assert [row["user"] for row in rows_of(*shown, 1)] == ["ann"] * 3
    assert [row["user"] for row in rows_of(*shown, 2)] == ["ann"] * 3 + ["bob"]


def test_groups_are_in_the_order_of_their_numbers_and_unknown_is_last() -> None:
    names = [None, "q10", "q2", "b", "q2/3"]
    assert sorted(names, key=natural) == ["b", "q2", "q2/3", "q10", None]


def test_a_figure_and_a_file_are_both_written_and_said_on_stderr(
    lake: Lake, tmp_path: Path
) -> None:
    put_jobs(lake, [job(n, num_gpus=None, num_cpus=8) for n in range(3)])
    figure, file = tmp_path / "a.html", tmp_path / "a.csv"
    done = hakaru("show", "load", "-w", lake.workspace, "--figure", figure, "-o", file)
    assert (done.exit_code, done.stdout) == (0, "") and f"wrote {figure}" in done.stderr
    assert file.read_text().startswith('"since_at"')
    text = figure.read_text()
    assert "Busy processors" in text and "Busy GPUs" not in text


def test_json_holds_what_stands_beside_a_table(lake: Lake) -> None:
    """Two jobs with GPUs and one without; the zone is not known."""
    rows = [job(1), job(2), job(3, num_gpus=None, num_cpus=4, run_s=60.0)]
    place = ("-w", put_jobs(lake, rows, zone=None).workspace)
    told = json.loads(hakaru("show", "parallelism", *place, "--format", "json").stdout)
    assert told["units"] == {"c": "gpu"}
    (line,) = told["remarks"]
    assert line.startswith("c: 1 job without GPUs is left out")
    hours = json.loads(hakaru("show", "arrivals-by-hour", *place, "--format", "json").stdout)
    assert any(line.startswith("hours and days of c are in UTC") for line in hours["remarks"])


def test_a_period_may_be_one_day_but_not_end_before_it_begins(lake: Lake) -> None:
    put_jobs(lake, [job(n, submitted_at=utc(f"2018-01-0{n}T12:00:00")) for n in range(1, 6)])
    shown = ("show", "states", "-w", lake.workspace, "--since", "2018-01-02", "--until")
    assert "c: 1 of 1 job" in hakaru(*shown, "2018-01-02").output
    refused = hakaru(*shown, "2018-01-01")
    assert refused.exit_code == 1 and "the period ends before it begins" in refused.output


@pytest.fixture
def five(lake: Lake) -> Path:
    """Three completed jobs, a failed and a cancelled one; two of bob's, of which one has no GPU."""
    rows = [job(1, state="failed"), job(2), job(3), job(4, state="cancelled", user="bob"),
            job(5, user="bob", num_gpus=None, num_cpus=3)]  # fmt: skip
    return put_jobs(lake, rows).workspace


def test_the_largest_rows_and_how_many_more_there_are(five: Path) -> None:
    shown = hakaru("show", "states", "-w", five, "--top", 1).stdout.splitlines()
    assert shown[4].startswith("completed") and shown[5] == ""
    assert shown[-1] == "and 2 more rows with less num_jobs"
    two = [row["state"] for row in rows_of("show", "states", "-w", five, "--top", 2)]
    assert two == ["completed", "cancelled"], "of those that are alike the first"
    whole = hakaru("show", "states", "-w", five, "--top", 3)
    assert "more row" not in whole.output
    assert hakaru("show", "states", "-w", five, "--top", 0).exit_code == 2


def test_top_is_refused_where_nothing_is_counted(five: Path) -> None:
    refused = hakaru("show", "utilisation", "-w", five, "--top", 1)
    assert (refused.exit_code, refused.stderr) == (
        1, "error: --top does not apply to utilisation\n",
    )  # fmt: skip


def test_groups_are_counted_by_what_is_not_the_group_itself() -> None:
    table: dict[str, list[Any]] = {"num_gpus": [9, 1], "num_users": [1, 5], "pe_hours": [7.0, 2.0]}
    made = result("states", table, by="num_gpus")
    assert _groups._measure(made) == "num_users"
    assert _groups.largest(made, 1)[0].table["num_gpus"].to_pylist() == [1]
    assert _groups.largest(made, 1)[1] == ["and 1 more group of num_gpus with less num_users"]
    weighted = result("states", table, by="num_gpus", weight="gpu-hours")
    assert _groups.largest(weighted, 1)[0].table["num_gpus"].to_pylist() == [9]


def test_unknown_amounts_are_the_smallest_and_rows_of_a_group_keep_their_order() -> None:
    table: dict[str, list[Any]] = {
        "user": ["a", "b", "c", "b"], "num_jobs": [None, 2, 3, 2], "state": list("wxyz"),
    }  # fmt: skip
    kept, told = _groups.largest(result("states", table, by="user"), 2)
    assert kept.table["user"].to_pylist() == ["b", "b", "c"]
    assert kept.table["state"].to_pylist() == ["x", "z", "y"]
    assert told == ["and 1 more group of user with less num_jobs"]


def test_rows_are_in_the_order_of_their_groups_only_where_there_are_groups() -> None:
    table: dict[str, list[Any]] = {"queue": ["q10", None, "q2", "q10"], "num_jobs": [1, 2, 3, 4]}
    grouped = _groups.in_order(result("states", table, by="queue")).table
    assert grouped["num_jobs"].to_pylist() == [3, 1, 4, 2]
    assert _groups.in_order(result("states", table)).table["num_jobs"].to_pylist() == [1, 2, 3, 4]
    numbers: dict[str, list[Any]] = {"num_gpus": [16, 2, None, 8], "num_jobs": [1, 2, 3, 4]}
    grouped = _groups.in_order(result("states", numbers, by="num_gpus")).table
    assert grouped["num_gpus"].to_pylist() == [2, 8, 16, None]


def test_parameters_reach_the_analysis_and_others_are_refused(five: Path) -> None:
    words = ("show", "walltime", "-w", five, "--param", "short_h=2", "--param")
    assert rows_of(*words, "long_h=9")[0]["share_short"] == "1"
    assert rows_of(*words, "short_h=0.5")[0]["share_short"] == "0", "the last one counts"
    refused = hakaru("show", "states", "-w", five, "--param", "x=1")
    assert refused.exit_code == 1 and "states has no parameter 'x'" in refused.stderr
    assert parse_params(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


def test_rows_of_users_that_are_shown_are_counted(five: Path) -> None:
    words = ("show", "users", "-w", five)
    whole = hakaru(*words)
    assert "sorted by" not in whole.output
    first = hakaru(*words, "--param", "limit=1").stdout.splitlines()
    assert first[-1] == "rows 1 to 1 of 2, sorted by pe_hours; --top 2 shows all"
    second = hakaru(*words, "--param", "offset=1", "--top", 1).stdout.splitlines()
    assert second[4].startswith("bob") and second[-1] == "rows 2 to 2 of 2, sorted by pe_hours"
    later = hakaru(*words, "--param", "offset=1").stdout.splitlines()
    assert later[-1] == second[-1], "no --top shows the rows before an offset"
    assert [row["user"] for row in rows_of(*words, "--param", "limit=1")] == ["ann"]


def test_a_figure_is_drawn_in_its_language_and_nothing_is_printed(
    five: Path, tmp_path: Path
) -> None:
    for lang, title, jobs in (
        ((), "How jobs ended", "5 of 5 jobs"),
        (("--lang", "ja"), "ジョブの終わり方", "5 ジョブのうち 5"),
        (("--lang", "ko"), "작업", "5"),
    ):
        path = tmp_path / "a.html"
        done = hakaru("show", "states", "-w", five, "--figure", path, "--top", 1, *lang)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"wrote {path}\n")
        text = path.read_text()
        assert title in text and jobs in text
        assert "<li>and 2 more rows with less num_jobs</li>" in text
        assert f'lang="{lang[1] if lang else "en"}"' in text


def test_notes_go_to_stderr_where_the_output_is_for_programs(five: Path, tmp_path: Path) -> None:
    left = 'c: 1 job without GPUs is left out: --unit cpu (in hakaru.toml: unit = "cpu") counts processors'
    words = ("show", "parallelism", "-w", five)
    for format, on_stdout, on_stderr in (
        ("table", True, False), ("md", True, False), ("csv", False, True), ("json", True, True),
    ):  # fmt: skip
        done = hakaru(*words, "--format", format)
        assert (left.split(":")[0] + ": 1 job without" in done.stdout) is on_stdout, format
        assert (f"  {left}\n" in done.stderr) is on_stderr, format
        assert ("c: 4 of 5 jobs" in done.stderr) is on_stderr, format
    parquet = hakaru(*words, "-o", tmp_path / "a.parquet")
    assert f"  {left}\n" in parquet.stderr
    assert hakaru("show", "states", "-w", five, "--format", "json").stderr == ""


def test_nothing_selected_of_two_clusters_tells_the_period_of_each(lake: Lake) -> None:
    put_jobs(lake, [job(1), job(2, cluster="d", submitted_at=utc("2019-05-05T05:05:00"))])
    words = ("show", "states", "-w", lake.workspace, "--by", "cluster", "--since", "2030-01-01")
    lines = hakaru(*words).stdout.splitlines()
    assert lines[-3:] == [
        "no job of c, d is selected",
        "  the jobs of c were submitted from 2018-01-01 00:00 to 2018-01-01 00:00 (UTC)",
        "  the jobs of d were submitted from 2019-05-05 05:05 to 2019-05-05 05:05 (UTC)",
    ]


def test_the_shortest_run_that_counts_may_be_none(lake: Lake) -> None:
    """Jobs of less than a minute are left out of run times unless that is asked for."""
    put_jobs(lake, [job(1), job(2, run_s=59.0)])
    words = ("show", "walltime", "-w", lake.workspace)
    assert [rows_of(*words, *more)[0]["num_jobs"] for more in ((), ("--min-run", 0))] == ["1", "2"]
