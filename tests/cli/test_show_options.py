"""`hakaru show`: the groups it keeps, the figure it draws, the period, and what JSON holds."""

from __future__ import annotations

import json
from pathlib import Path

from hakaru.cli._groups import natural
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.cli._rows import rows_of
from tests.conftest import job, put_jobs, utc


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
    assert "c: 1 of 1 jobs" in hakaru(*shown, "2018-01-02").output
    refused = hakaru(*shown, "2018-01-01")
    assert refused.exit_code == 1 and "the period ends before it begins" in refused.output
