"""What `guess` proposes for a log that it has never seen."""

from __future__ import annotations

import lzma
import shlex
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import HakaruError, SourceError
from hakaru.sources._base import detect
from hakaru.sources.ingest import guess_mapping
from hakaru.sources.table import guess
from tests.conftest import utc
from tests.sources.table._site import DATA, Site, picked


def read_as_guessed(site: Site, path: Path) -> list[dict[str, Any]]:
    summary = site.read(path, guess(path), zone="UTC")
    assert summary.num_rejected == 0
    return site.jobs()


def test_a_grid_engine_log_is_guessed(site: Site) -> None:
    jobs = read_as_guessed(site, DATA / "table" / "grid-engine.csv")
    names = ("job_id", "user", "account", "queue", "name", "exit_code", "num_cpus", "memory_mib")
    assert picked(jobs, *names) == [
        ("2001.0", "ann", "lab1", "gpu.q", "train", 0, 8, 65536.0),
        ("2002.1", "bob", "lab2", "gpu.q", "sweep", 1, 4, 512.0),
        ("2002.2", "bob", "lab2", "gpu.q", "sweep", 137, 4, 512.0),
        ("2003.0", "ann", "lab1", "all.q", "a|b", 0, 1, 1024.0),
    ]
    assert picked(jobs, "state", "submitted_at", "started_at", "run_s", "requested_s") == [
        ("completed", utc("2019-04-01T00:00:00"), utc("2019-04-01T00:00:10"), 3600.0, 7200.0),
        ("failed", utc("2019-04-01T01:00:00"), utc("2019-04-01T01:01:00"), 60.0, 86400.0),
        ("failed", utc("2019-04-01T01:00:00"), utc("2019-04-01T01:01:10"), 50.0, 86400.0),
        ("completed", utc("2019-04-01T01:00:00"), None, 0.0, 600.0),
    ]
    assert [row["nodes"] for row in jobs] == [["node01"], ["node02"], ["node02"], ["node03"]]


def test_a_helios_log_is_guessed(site: Site) -> None:
    """There `queue` holds the seconds of waiting, and `vc` the queue."""
    jobs = read_as_guessed(site, DATA / "table" / "helios.csv")
    names = ("job_id", "user", "queue", "num_gpus", "num_cpus", "num_nodes", "state")
    assert picked(jobs, *names) == [
        ("h1", "u1", "vcA", 1, 4, 1, "completed"),
        ("h2", "u2", "vcB", 16, 64, 2, "cancelled"),
        ("h3", "u1", "vcA", 0, 4, 1, "node_failed"),
        ("h4", "u3", "vcA", 8, 32, 1, "timeout"),
    ]
    assert picked(jobs, "wait_s", "run_s") == [
        (5.0, 3600.0),
        (0.0, 30.0),
        (100.0, 100.0),
        (3600.0, 86400.0),
    ]


def test_a_spreadsheet_is_guessed(site: Site) -> None:
    """Semicolons, a byte order mark, a header with a newline, local times without seconds."""
    jobs = read_as_guessed(site, DATA / "table" / "excel.csv")
    names = ("job_id", "user", "account", "queue", "num_gpus", "state", "requested_s")
    assert picked(jobs, *names) == [
        ("1", "佐藤", "第一研究室", "short", 1, "completed", 10800.0),
        ("2", "鈴木", "第二研究室", "long", 8, "failed", 259200.0),
        ("3", "佐藤", "第一研究室", "short", 2, "timeout", 5400.0),
    ]
    assert picked(jobs, "submitted_at", "wait_s", "run_s") == [
        (utc("2019-04-01T09:05:00"), 300.0, 5400.0),
        (utc("2019-04-02T18:00:00"), 21600.0, 131400.0),
        (utc("2019-12-31T23:50:00"), 600.0, 5400.0),
    ]
    assert "put the site's time zone here" in guess(DATA / "table" / "excel.csv")


def test_one_row_is_the_only_one(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("job,usr,num_gpu,duration,submitted\n1,ann,2,60,2024-03-31 15:57:17\n")
    assert "# A mapping proposed for one.csv from its only row.\n" in guess_mapping(path)


def test_what_cannot_be_placed_is_listed(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("when,status,colour\n2018-04-01,7,red\n2018-04-02,7,blue\n2018-04-03,8,\n")
    lines = guess(log).splitlines()
    assert "job_id = { line = true }  # no column of ids was found: the line's number is used" in (
        lines
    )
    assert (
        '# submitted_at = "…"  # needed, or started_at; these columns hold times: "when"' in lines
    )
    assert '#   "colour": "blue", "red"' in lines
    assert '# state = "status"  # put this under [columns]' in lines
    assert '# "7" = "…"  # rows: 2' in lines


@pytest.mark.parametrize(
    ("header", "rows", "line"),
    [
        ("start,end,elapsed", "100,1900,30\n200,9200,150", 'run_s = { column = "elapsed", unit = "min" }'),
        ("start,end,elapsed_h", "100,1900,7\n200,9200,7", 'run_s = { column = "elapsed_h", unit = "h" }'),
        ("start,end,limit", "100,1900,60\n200,9200,240", 'requested_s = { column = "limit", unit = "min" }'),
        ("start,nodes,gpus", "100,4,2\n200,8,2", 'num_gpus = { column = "gpus", times = "nodes" }'),
        ("start,nodes,gpus", "100,4,8\n200,8,8", 'num_gpus = "gpus"'),
        ("start,nodes,ppn", "100,4,2\n200,8,2", 'num_cpus = { column = "ppn", times = "nodes" }'),
        ("start,mem", "100,68719476736\n200,1", 'memory_mib = { column = "mem", unit = "B" }'),
        ("start,hosts", "100,n1+n2\n200,n3", 'nodes = { column = "hosts", separator = "+" }'),
        ("start,limit", "100,-1\n200,60", 'requested_s = { column = "limit", unit = "s", missing = ["-1"] }'),
        ("start,JobState", "100,CANCELLED by 5\n200,DONE", '"cancelled by *" = "cancelled"'),
    ],
)  # fmt: skip
def test_units_come_from_names_and_times(tmp_path: Path, header: str, rows: str, line: str) -> None:
    log = tmp_path / "log.csv"
    epoch = 1522540800
    moved = [row.split(",") for row in rows.split("\n")]
    times = 2 if ",end" in header else 1
    body = "\n".join(
        ",".join([*(str(epoch + int(cell)) for cell in row[:times]), *row[times:]]) for row in moved
    )
    log.write_text(f"{header}\n{body}\n")
    assert any(found.startswith(line) for found in guess(log).splitlines()), guess(log)


def test_day_and_month_may_be_swapped(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("id,submitted\n1,1/2/2018 10:00:00\n2,3/4/2018 11:00:00\n")
    assert "or is the day before the month?" in guess(log)
    log.write_text(
        "id,submitted\n1,31/2/2018 10:00:00\n2,30/4/2018 11:00:00\n3,29/4/2018 1:00:00\n"
    )
    assert "no column of times was recognised" in guess(log)
    log.write_text("id,submitted\n1,31/1/2018 10:00:00\n2,3/4/2018 11:00:00\n")
    assert '{ column = "submitted", format = "%d/%m/%Y %H:%M:%S" }\n' in guess(log)


def test_only_the_first_rows_are_looked_at(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("id,state\n" + "1,done\n" * 10_000 + "2,never seen\n" * 5)
    text = guess(log)
    assert "from its first 10,000 rows" in text
    assert "never seen" not in text


@pytest.mark.parametrize("content", [b"", b"id,at\n", b"id,at\n\xff\xfe,1\n"])
def test_nothing_to_guess_from(tmp_path: Path, content: bytes) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(content)
    with pytest.raises(HakaruError, match=r"(?s)log\.csv: .*(is empty|has no rows|iconv)"):
        guess(log)


@pytest.mark.parametrize(("num_columns", "is_refused"), [(1000, False), (1001, True)])
def test_a_table_that_is_too_wide_is_refused_at_once(
    tmp_path: Path, num_columns: int, is_refused: bool
) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{i}" for i in range(num_columns)) + "\n")  # and no row
    with pytest.raises(SourceError) as caught:
        guess(path)
    told = "It has 1,001 columns; a mapping is proposed for at most 1,000."
    assert (told in str(caught.value)) == is_refused
    with pytest.raises(SourceError) as caught:
        detect(path)
    assert (told in str(caught.value)) == is_refused


@pytest.mark.parametrize("name", ["log.csv", "a log.csv.xz"])
def test_the_command_names_the_file_with_its_folder(tmp_path: Path, name: str) -> None:
    path = tmp_path / "my logs" / name
    path.parent.mkdir()
    content = b"id,submit,start,end\n1,1514764800,1514764810,1514768410\n"
    path.write_bytes(lzma.compress(content) if name.endswith("xz") else content)
    (command,) = (row for row in guess_mapping(path).splitlines() if "hakaru ingest" in row)
    words = shlex.split(command.partition(", then: ")[2])
    assert words[:4] == ["hakaru", "ingest", str(path), "--format"]
