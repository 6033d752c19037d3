"""`--from`: logs read in place of a workspace, by name, by pattern and through pipes."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

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
