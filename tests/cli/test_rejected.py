"""Rows that could not be read: the ingest ends with its own code, and every figure says what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hakaru.analyses import open_session
from hakaru.analyses._base import ANALYSES
from hakaru.cli import main
from hakaru.figures import draw
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.sources._log import line, write

MISSING = (
    "% of the rows of its log are missing here: they could not be read, or contradict another row"
)


def log(path: Path, num_good: int, num_bad: int, start: int = 0) -> Path:
    """`num_bad` rows with an unknown termcode among good ones."""
    good = [line(start + number) for number in range(num_good)]
    bad = [line(start + num_good + number, termcode=9) for number in range(num_bad)]
    return write(path, *good, *bad)


def ingest(folder: Path, path: Path, *more: str) -> tuple[int, str]:
    told = hakaru("ingest", path, "--cluster", "c", "-w", folder / "w", *more)
    return told.exit_code, told.output.splitlines()[0]


def test_too_many_rejected_rows_end_with_code_3_and_are_said_first(tmp_path: Path) -> None:
    code, first = ingest(tmp_path, log(tmp_path / "a.csv", 44, 56))
    assert code == 3
    assert first == (
        "56.0% of the rows are missing: 56 of 100 were rejected (56 × termcode 9 is not 0 to 4); "
        "every figure of c lacks them"
    )
    assert Lake.open(tmp_path / "w").missing() == {"c": 0.56}


@pytest.mark.parametrize(("num_bad", "code"), [(0, 0), (1, 0), (2, 3)])
def test_the_limit_is_one_percent(tmp_path: Path, num_bad: int, code: int) -> None:
    """One in a hundred is at the limit, not above it."""
    found, first = ingest(tmp_path, log(tmp_path / "a.csv", 100 - num_bad, num_bad))
    assert found == code
    assert first.startswith("c: read 100" if code == 0 else "2.0% of the rows are missing")


def test_a_limit_of_nothing_is_a_limit(tmp_path: Path) -> None:
    path = log(tmp_path / "a.csv", 999, 1)
    assert ingest(tmp_path, path)[0] == 0
    assert ingest(tmp_path, path, "--max-missing", "0")[0] == 3


def test_the_limit_is_set_by_an_option_or_in_hakaru_toml(tmp_path: Path) -> None:
    path = log(tmp_path / "a.csv", 90, 10)
    assert ingest(tmp_path, path, "--max-missing", "10%")[0] == 0
    assert ingest(tmp_path, path, "--max-missing", "0.09")[0] == 3
    (tmp_path / "w" / "hakaru.toml").write_text('ingest.max_missing = "20%"')
    assert ingest(tmp_path, path)[0] == 0
    assert ingest(tmp_path, path, "--max-missing", "5%")[0] == 3
    wrong = hakaru("ingest", path, "--cluster", "c", "--max-missing", "lots", "-w", tmp_path / "w")
    assert wrong.exit_code == 2 and "expected a share such as" in wrong.output


@pytest.mark.parametrize("share", ["1", "1.0"])
def test_a_bare_1_is_refused_as_a_limit(share: str, tmp_path: Path) -> None:
    """Meant as 1 %, it would allow everything to be missing."""
    path, where = log(tmp_path / "a.csv", 90, 10), ("--cluster", "c", "-w", tmp_path / "w")
    wrong = hakaru("ingest", path, *where, "--max-missing", share)
    assert wrong.exit_code == 2
    assert f'\'{share}\' could be "1%" or "100%": write it with %' in wrong.output
    assert ingest(tmp_path, path, "--max-missing", "1%")[0] == 3
    assert ingest(tmp_path, path, "--max-missing", "100%")[0] == 0
    (tmp_path / "w" / "hakaru.toml").write_text(f"ingest.max_missing = {share}")
    assert "write it with %" in hakaru("show", "walltime", "-w", tmp_path / "w").output


def test_a_file_counts_as_it_was_read_last(tmp_path: Path) -> None:
    ingest(tmp_path, log(tmp_path / "a.csv", 50, 50))
    lake = Lake.open(tmp_path / "w")
    ingest(tmp_path, log(tmp_path / "a.csv", 50, 50))
    assert lake.missing() == {"c": 0.5}  # not 100 of 200, and not twice
    ingest(tmp_path, log(tmp_path / "b.csv", 290, 10, start=1000))
    assert lake.missing() == {"c": 60 / 400}
    ingest(tmp_path, log(tmp_path / "a.csv", 100, 0))
    assert lake.missing() == {"c": 10 / 400}


def test_a_file_that_holds_another_log_takes_nothing_off_the_one_before(tmp_path: Path) -> None:
    """Each night's export overwrites the last; one that grows or is corrected is the same log."""
    path, lake = tmp_path / "a.csv", Lake.create(tmp_path / "w")
    ingest(tmp_path, log(path, 44, 56))
    for _ in range(2):  # the second time nothing is new
        ingest(tmp_path, log(path, 290, 10, start=1000))
        assert lake.missing() == {"c": 66 / 400}
    assert f"c: 16.5 {MISSING}" in hakaru("show", "walltime", "-w", tmp_path / "w").output
    status = " ".join(hakaru("lake", "status", "-w", tmp_path / "w").output.split())
    assert "rejected in c: 66 ×" in status and f"--rejects {path} " in status
    ingest(tmp_path, log(path, 300, 0, start=1000))
    assert lake.missing() == {"c": 56 / 400}
    names = [name for row in lake.ingests() for name in row["inputs"]]
    assert names[0] == str(path) and names[1] == names[2] == names[3] != names[0]


def test_each_day_through_a_pipe_counts_and_the_same_text_only_once(tmp_path: Path) -> None:
    """Every pipe is `-`: Tuesday's export must not take the place of Monday's rejects."""
    monday = log(tmp_path / "monday", 50, 50).read_text()
    tuesday = log(tmp_path / "tuesday", 290, 10, start=1000).read_text()
    arguments = ["ingest", "-", "--cluster", "c", "-w", str(tmp_path / "w")]
    for text in (monday, tuesday, tuesday):
        CliRunner().invoke(main, arguments, input=text)
    lake = Lake.open(tmp_path / "w")
    assert lake.missing() == {"c": 60 / 400}
    assert sum(table.num_rows for table in lake.status() if table.name == "rejects") == 60


def test_rows_that_contradict_one_another_are_missing_too(tmp_path: Path) -> None:
    """Job 0 stands there with 2, 4 and 8 GPUs: two of its rows are lost, like the rejected one."""
    rows = [*(line(n) for n in range(7)), line(0, gpus=4), line(0, gpus=8), line(8, termcode=9)]
    code, first = ingest(tmp_path, write(tmp_path / "a.csv", *rows))
    assert code == 3
    assert first == (
        "30.0% of the rows are missing: 1 of 10 was rejected (1 × termcode 9 is not 0 to 4) and "
        "2 of 10 contradict another row of their job; every figure of c lacks them"
    )
    assert Lake.open(tmp_path / "w").missing() == {"c": 0.3}
    shown = hakaru("show", "walltime", "-w", tmp_path / "w").output
    assert f"  c: 30.0 {MISSING}" in shown
    replay = hakaru("simulate", "-w", tmp_path / "w", "--nodes", "4x8").output
    assert "left out 2: contradicts another row of its job in the log" in replay


def test_a_corrected_export_lacks_nothing(tmp_path: Path) -> None:
    """A row that contradicts the stored one is the same job again."""
    assert ingest(tmp_path, write(tmp_path / "a.csv", *(line(n) for n in range(4))))[0] == 0
    code, first = ingest(tmp_path, write(tmp_path / "b.csv", *(line(n, gpus=4) for n in range(4))))
    assert (code, first[:9]) == (0, "c: read 4")
    assert Lake.open(tmp_path / "w").missing() == {"c": 0.0}


def test_every_figure_and_table_of_the_cluster_says_it(tmp_path: Path) -> None:
    ingest(tmp_path, log(tmp_path / "a.csv", 44, 56))
    where = ("-w", tmp_path / "w")
    assert f"  c: 56.0 {MISSING}" in hakaru("show", "walltime", *where).output
    assert f"  c: 56.0 {MISSING}" in hakaru("show", "walltime", *where, "--format", "csv").stderr
    assert json.loads(hakaru("show", "walltime", *where, "--format", "json").stdout)["missing"] == {
        "c": 0.56
    }
    with open_session(Lake.open(tmp_path / "w")) as session:
        assert len(ANALYSES.ids()) > 20
        for analysis in ANALYSES:
            notes = draw(session.run(analysis)).notes
            assert any(note.startswith("c: 56.0 % of the rows") for note in notes), analysis.id


def test_comparisons_and_exports_say_it(tmp_path: Path) -> None:
    ingest(tmp_path, log(tmp_path / "a.csv", 44, 56))
    where = ("-w", tmp_path / "w")
    assert f"c: 56.0 {MISSING}" in " ".join(hakaru("compare", "c", *where).output.split())
    told = json.loads(hakaru("compare", "c", *where, "--format", "json").stdout)
    assert [each["missing"] for each in told["clusters"]] == [0.56]
    done = hakaru("export", *where, "--format", "parquet", "-o", tmp_path / "c.parquet")
    assert f"  c: 56.0 {MISSING}" in done.output
    assert json.loads((tmp_path / "c.manifest.json").read_text())["missing"] == 0.56
    replay = hakaru("simulate", *where, "--nodes", "4x8").output
    assert "left out 56: rejected when the log was read: termcode" in replay


def test_nothing_is_said_below_the_limit(tmp_path: Path) -> None:
    ingest(tmp_path, log(tmp_path / "a.csv", 99, 1))
    assert MISSING not in hakaru("show", "walltime", "-w", tmp_path / "w").output
    (tmp_path / "w" / "hakaru.toml").write_text("ingest.max_missing = 0")
    assert f"  c: 1.0 {MISSING}" in hakaru("show", "walltime", "-w", tmp_path / "w").output


def test_from_says_it_too(tmp_path: Path) -> None:
    told = hakaru("show", "walltime", "--from", f"c={log(tmp_path / 'a.csv', 44, 56)}")
    assert told.exit_code == 0
    assert told.stderr.startswith("warning: 56.0% of the rows are missing: 56 of 100")
    assert f"  c: 56.0 {MISSING}" in told.stdout


SACCT = "JobID|State|Submit|Start|End\n{}|COMPLETED|1514764800|1514764810|1514768410\n"
OTHER = "State|JobID|Submit|Start|End\nCOMPLETED|8|1514764800|1514764810|1514768410\n"


def _run(text: str, folder: Path) -> None:
    """What a person does who pastes the indented lines of a message into a shell."""
    (folder / "hakaru").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hakaru "$@"\n')
    (folder / "hakaru").chmod(0o755)
    commands = [row.strip() for row in text.splitlines() if row.startswith("      ")]
    assert len(commands) > 0
    for command in commands:
        shell = ["bash", "-c", f'PATH="{folder}:$PATH"; {command}']
        subprocess.run(shell, cwd=folder, check=True, capture_output=True)


def test_two_exports_that_are_split_lack_nothing_any_more(tmp_path: Path) -> None:
    """Of three rows (job 7, and a header and job 8 of another export) two are rejected."""
    log, where = tmp_path / "my log.txt", ("--cluster", "c", "-w", tmp_path / "w")
    log.write_text(SACCT.format(7) + OTHER)
    told = hakaru("ingest", log, *where, "--zone", "UTC").output
    assert told.splitlines()[0] == (
        "66.7% of the rows are missing: 2 of 3 were rejected (2 × part of a second export, whose header "
        "is in line 3); every figure of c lacks them"
    )
    assert told.count("head -n 2") == 1 and told.count("tail -n +3") == 1
    shown = hakaru("show", "walltime", "-w", tmp_path / "w").output
    assert f"66.7 {MISSING}" in shown and "`hakaru lake status` lists those" in " ".join(
        shown.split()
    )
    warning, forget = told.split("if you read the rejected rows from another file, clear")
    _run(warning.split("Split the file and read both parts:")[1], tmp_path)
    parts = [tmp_path / "my log-1.txt", tmp_path / "my log-2.txt"]
    assert hakaru("ingest", *parts, *where).exit_code == 0
    status = hakaru("lake", "status", "-w", tmp_path / "w").output
    command = f"hakaru lake forget --cluster c --rejects '{log}' --workspace {tmp_path / 'w'}"
    assert command in forget and command in status
    _run(forget, tmp_path)
    lake = Lake.open(tmp_path / "w")
    assert lake.missing() == {"c": 0.0}
    assert [row["num_read"] - row["num_rejected"] for row in lake.ingests()] == [1, 2]
    assert "missing" not in hakaru("show", "walltime", "-w", tmp_path / "w").output
    assert "no rejects" in hakaru("lake", "status", "-w", tmp_path / "w").output


def test_only_the_rejects_of_that_file_and_cluster_are_cleared(tmp_path: Path) -> None:
    a, b = log(tmp_path / "a.csv", 50, 50), log(tmp_path / "b.csv", 290, 10, start=1000)
    hakaru("ingest", a, b, "--cluster", "c", "-w", tmp_path / "w")
    hakaru("ingest", a, "--cluster", "other", "-w", tmp_path / "w")
    forget = ("lake", "forget", "--cluster", "c", "-w", tmp_path / "w", "--rejects")
    assert hakaru(*forget, a).output == f"c: removed 50 rejects of {a}; its jobs stay\n"
    assert Lake.open(tmp_path / "w").missing() == {"c": 10 / 350, "other": 0.5}
    again = hakaru(*forget, a)
    assert again.exit_code == 1 and f"files with rejects: {b}" in again.output


def test_the_commonest_reason_comes_first(tmp_path: Path) -> None:
    rows = [line(1), line(2, termcode=7), *(line(n, termcode=9) for n in (3, 4)), line(5, gpus=-1)]
    _, first = ingest(tmp_path, write(tmp_path / "a.csv", *rows))
    assert "4 of 5 were rejected (2 × termcode 9 is not 0 to 4 and 2 other reasons)" in first
