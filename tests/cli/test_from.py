"""`--from`: logs read in place of a workspace, by name, by pattern and through pipes."""

from __future__ import annotations

import io
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hakaru.cli._options import cluster_name, group_logs
from hakaru.cli._progress import ingest_with_progress
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.cli._rows import rows_of


def swf(*waits: int, header: str = "; UnixStartTime: 1514764800\n; MaxProcs: 8\n") -> str:
    """Jobs of one processor and 100 s, a minute apart, which wait as said."""
    rows = [
        f"{n} {60 * n} {wait} 100 1 -1 -1 1 200 -1 1 1 1 -1 1 -1 -1 -1\n"
        for n, wait in enumerate(waits, 1)
    ]
    return header + "".join(rows)


def test_a_log_read_in_place_has_the_warnings_of_an_ingest(tmp_path: Path) -> None:
    log = tmp_path / "old.swf"
    log.write_text(swf(5, 5, header="; MaxProcs: 8\n"))
    ingested = hakaru("ingest", log, "-w", tmp_path / "w").stdout
    told = hakaru("show", "waits", "--from", log, "--format", "json")
    json.loads(told.stdout)
    (line,) = [each for each in ingested.splitlines() if "warning: " in each]
    assert "--start 2014-03-01" in line  # it has no UnixStartTime
    assert told.stderr.splitlines()[0] == line.strip()


def test_a_warning_names_the_workspace_whose_settings_hold(tmp_path: Path) -> None:
    log = tmp_path / "mine.swf"
    log.write_text(swf(5, 5))
    told = hakaru("show", "waits", "--from", log, "-w", tmp_path / "w").stderr
    assert "the time zone of mine is not known" in told
    assert str(tmp_path / "w" / "hakaru.toml") in told


def test_names_that_are_nearly_alike_are_different_files(tmp_path: Path) -> None:
    """Two pipes and a file: 1, 2 and 3 jobs, that wait 10, 20 and 30 s."""
    pipes = [tmp_path / "real.swf", tmp_path / "real-swf"]
    file = tmp_path / "real_swf"
    file.write_text(swf(30, 30, 30))
    for number, pipe in enumerate(pipes, 1):
        os.mkfifo(pipe)
        text = swf(*[10 * number] * number)
        threading.Thread(target=pipe.write_text, args=(text,), daemon=True).start()
    logs = [word for name, path in zip("abc", [*pipes, file], strict=True)
            for word in ("--from", f"{name}={path}")]  # fmt: skip
    rows = rows_of("show", "waits", *logs, "--by", "cluster", "--state", "any")
    found = {r["cluster"]: (r["num_jobs"], r["median_s"]) for r in rows if "start" in r["part"]}
    assert found == {"a": ("1", "10"), "b": ("2", "20"), "c": ("3", "30")}


def test_files_of_one_cluster_are_read_together(tmp_path: Path) -> None:
    """One, two and four jobs of `mine`, by its name twice and by the file's own; three of another."""
    names = {"a.swf": 1, "b.swf": 2, "mine-3.swf": 4, "c.swf": 3}
    a, b, mine, c = (tmp_path / name for name in names)
    for at, (name, num) in enumerate(names.items()):
        start = f"; UnixStartTime: {1514764800 + 86400 * at}\n; MaxProcs: 8\n"
        (tmp_path / name).write_text(swf(*[5] * num, header=start))
    logs = [word for log in (f"mine={a}", f"x={c}", f"mine={b}", mine) for word in ("--from", log)]
    rows = rows_of("show", "states", *logs, "--by", "cluster")
    assert {row["cluster"]: row["num_jobs"] for row in rows} == {"mine": "7", "x": "3"}


SACCT = "{n}|COMPLETED|2018-01-0{n}T00:30:00|2018-01-0{n}T00:30:10|2018-01-0{n}T01:30:10\n"


def test_a_log_without_a_header_or_a_zone_is_told_of_them(tmp_path: Path) -> None:
    """Half past midnight in Tokyo is the day before in UTC, and hour 0 on the site's clock."""
    log = tmp_path / "jobs.txt"
    log.write_text("".join(SACCT.format(n=n) for n in (2, 3)))
    fields = ("--fields", "JobID,State,Submit,Start,End", "--zone", "Asia/Tokyo")
    words = ("show", "arrivals-by-hour", "--from", log)
    hours = {row["hour"]: row["num_jobs"] for row in rows_of(*words, *fields)}
    assert (hours["0"], hours["15"]) == ("2", "0")
    late = rows_of(*words, *fields, "--since", "2018-01-03")
    assert {row["hour"]: row["num_jobs"] for row in late}["0"] == "1"
    refused = hakaru(*words)
    assert refused.exit_code == 1 and "--fields" in refused.stderr


def test_a_log_with_relative_dates_begins_on_the_day_that_is_named(tmp_path: Path) -> None:
    log = tmp_path / "old.swf"
    log.write_text(swf(5, 5, header="; MaxProcs: 8\n"))
    words = ("show", "states", "--from", log, "--start", "2014-03-01", "--zone", "UTC")
    assert rows_of(*words, "--since", "2014-03-01", "--until", "2014-03-01")[0]["num_jobs"] == "2"
    assert "no job of old is selected" in hakaru(*words, "--since", "2014-03-02").output


def test_the_format_is_the_one_that_is_named(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text(swf(5))
    refused = hakaru("show", "states", "--from", log, "--log-format", "aaic")
    assert refused.exit_code == 1 and "as aaic" in refused.stderr
    unknown = hakaru("show", "states", "--from", log, "--log-format", "swff")
    assert unknown.exit_code == 1 and "swf" in unknown.stderr


def test_files_of_a_pattern_are_read_in_order_and_none_is_an_error(tmp_path: Path) -> None:
    for name in ("b.swf", "a.swf", "c.txt"):
        (tmp_path / name).write_text(swf(5))
    found = group_logs([f"x={tmp_path}/*.swf", str(tmp_path / "c.txt")])
    assert found == {"x": [tmp_path / "a.swf", tmp_path / "b.swf"], "c": [tmp_path / "c.txt"]}
    with pytest.raises(HakaruError, match=r"no file matches '.*\*\.gz'"):
        group_logs([f"{tmp_path}/*.gz"])
    gone = tmp_path / "gone.swf"
    assert group_logs([str(gone)]) == {"gone": [gone]}, "it is named by who reads it"


def test_a_file_with_an_equals_sign_in_its_name_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a=b.swf"
    path.write_text(swf(5))
    assert group_logs([str(path)]) == {"a": [path]}
    assert group_logs([f"c={path}"]) == {"c": [path]}


@pytest.mark.parametrize(
    ("names", "cluster"),
    [
        (["RICC-2010-2.swf.gz"], "ricc"),
        (["aaicwl-2017Q3.csv.gz", "AAICWL-2018.csv"], "aaicwl"),
        (["2018_jobs.txt"], "2018"),
        (["-"], "log"),
        (["/dev/fd/63", "kth.swf"], "kth"),
        (["/proc/self/fd/0"], "log"),
        (["_x.txt"], "log"),
    ],
)
def test_a_cluster_is_named_after_what_its_files_names_share(
    names: list[str], cluster: str
) -> None:
    assert cluster_name([Path(name) for name in names]) == cluster


def test_files_that_share_no_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HakaruError) as refused:
        cluster_name([Path("nasa.swf"), Path("kth.swf")])
    assert str(refused.value) == (
        "the files' names begin with kth and nasa: name the cluster with --cluster NAME (or, with --from, "
        "NAME=FILE for each)"
    )


def test_the_copy_of_a_log_is_gone_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "log.swf").write_text(swf(5))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "kept"))
    assert hakaru("show", "states", "--from", tmp_path / "log.swf").exit_code == 0
    assert (
        hakaru("show", "states", "--from", tmp_path / "log.swf", "--where", "x = 1").exit_code == 1
    )
    assert not list((tmp_path / "kept").glob("hakaru-*"))
    assert not (tmp_path / "hakaru-workspace").exists()


# ---- the bar, on a terminal only


@pytest.fixture
def ingested(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What an ingest is called with, and what its bar shows of 3 of 4 bytes, 1,200 rows and 5 rejects."""
    seen: dict[str, Any] = {}

    def ingest(lake: Lake, paths: Any, cluster: str, progress: Any = None, **options: Any) -> str:
        seen.update(options, paths=paths, cluster=cluster, has_bar=progress is not None)
        if progress is not None:
            progress(3000, 4000, 1200, 5)
        return "a summary"

    monkeypatch.setattr("hakaru.sources.ingest", ingest)
    return seen


def test_an_ingest_has_the_engine_of_the_settings(lake: Lake, ingested: Any) -> None:
    (lake.workspace / "hakaru.toml").write_text("[engine]\nthreads = 3\n")
    given = ingest_with_progress(lake, [Path("a")], "c", strict=True)
    assert given == "a summary" and ingested["engine"].threads == 3
    assert (ingested["paths"], ingested["cluster"], ingested["strict"]) == ([Path("a")], "c", True)
    assert ingested["has_bar"] is False


def test_a_terminal_shows_bytes_rows_and_rejects(
    lake: Lake, ingested: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=120)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("hakaru.cli._progress.bar_console", lambda: console)
    assert ingest_with_progress(lake, [Path("a")], "mine") == "a summary"
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())
    assert "reading mine" in text and "3.0/4.0 kB" in text
    assert "1,200 rows, 5 rejected" in text
