"""The command line as a person uses it: real files in, tables and clear errors out."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from hakaru.cli import main
from hakaru.cli._output import without_nan
from hakaru.cli._render import cell
from hakaru.cli._table import Column, table_lines

HEADER = (
    "id, user, group, queue, nodes, gpus, walltime_req, termcode, "
    "time_submit, time_start, time_end, waittime, walltime"
)
ROWS = [
    "0, 0, 0, 0, 1, 1, 7200, 0, 1514764800, 1514764810, 1514768410, 10, 3600",
    "1, 0, 0, 0, 1, 4, 7200, 0, 1514764900, 1514764910, 1514772110, 10, 7200",
    "2, 1, 0, 1, 1, 1, 3600, 1, 1514765000, 1514765010, 1514765310, 10, 300",
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "mini.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


def hakaru(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_every_verb_has_help_with_an_example() -> None:
    for name in main.list_commands(None):  # type: ignore[arg-type]
        result = hakaru(name, "--help")
        assert result.exit_code == 0, result.output
        assert "Example" in result.output, f"hakaru {name} --help shows no example"


def test_help_does_not_import_the_heavy_packages() -> None:
    code = (
        "import sys; from hakaru.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'duckdb','deltalake','pyarrow','sqlglot','numpy','pyspark'} & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.splitlines()[-1] == "[]"


def test_ingest_show_and_repeat(log: Path, tmp_path: Path) -> None:
    space = tmp_path / "space"
    first = hakaru("ingest", log, "-w", space)
    assert first.exit_code == 0, first.output
    assert "mini: read 3 from 1 file (aaic)" in first.output
    assert "new 3, updated 0, unchanged 0" in first.output
    again = hakaru("ingest", log, "-w", space)
    assert "new 0, updated 0, unchanged 3" in again.output
    shown = hakaru("show", "walltime", "-w", space, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    assert [(r["class"], r["num_jobs"], r["mean_h"]) for r in rows] == [
        ("all", "2", "1.5"),
        ("single-pe", "1", "1"),
        ("single-node", "1", "2"),
    ]
    assert "left out 1: only jobs that are completed" in shown.stderr


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "waltime"], "did you mean walltime"),
        (["show", "walltime", "--where", "cost > 1"], "there is no column 'cost'"),
        (["show", "walltime", "--since", "yesterday"], "is not a date or time"),
        (["show", "walltime", "--by", "colour"], "cannot group by 'colour'"),
        (["show", "walltime", "--by", "queu"], "did you mean queue?"),
        (["show", "walltime", "--by", "user", "--by", "queue"], "one --by only"),
        (["show", "queues", "--by", "queue"], "queues has a row for each queue already"),
        (["show", "walltime", "--state", "done"], "there is no state 'done'"),
        (["show", "walltime", "--cluster", "mimi"], "did you mean mini?"),
        (["show", "states", "--since", "2019-01-02", "--until", "2019-01-01"], "ends before it"),
        (["show", "states", "--since", "2019-01-01T10:00", "--until", "2019-01-01T09:00"], "ends"),
        (["export", "--format", "swf", "-o", "x", "--since", "2030-01-01"], "nothing was written"),
        (["show", "states", "-o", "a.json", "--format", "csv"], "ends like json, and --format"),
        (["show", "states", "-o", "a.xyz"], "cannot tell its format"),
        (["show", "states", "-o", "/dev/null/a.csv"], "/dev/null is not a folder"),
        (["show", "walltime", "--cluster", "other"], "there is no cluster 'other'"),
        (["show", "walltime", "--param", "short_h"], "--param takes NAME=VALUE"),
    ],
)
def test_mistakes_get_one_clear_line(log: Path, arguments: list[str], message: str) -> None:
    result = hakaru(*arguments, "--from", log)
    assert result.exit_code == 1
    assert result.output.startswith("error: ")
    assert message in result.output
    assert "Traceback" not in result.output


def test_no_workspace_says_how_to_make_one(tmp_path: Path) -> None:
    result = hakaru("show", "walltime", "-w", tmp_path / "none")
    assert result.exit_code == 1
    assert "hakaru ingest FILE --cluster NAME" in result.output


def test_unknown_file_and_format(tmp_path: Path) -> None:
    missing = hakaru("ingest", tmp_path / "nothing.csv", "-w", tmp_path / "w")
    assert "there is no such file" in missing.output
    odd = tmp_path / "odd.txt"
    odd.write_text("hello\n")
    unknown = hakaru("ingest", odd, "-w", tmp_path / "w")
    assert unknown.exit_code == 1
    assert "--format table --guess" in unknown.output


def test_strict_stores_nothing(log: Path, tmp_path: Path) -> None:
    log.write_text(log.read_text() + "3, x, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0\n")
    refused = hakaru("ingest", log, "-w", tmp_path / "w", "--strict")
    assert refused.exit_code == 1
    assert "mini.csv, line 5: user is not a whole number" in refused.output
    loose = hakaru("ingest", log, "-w", tmp_path / "w")
    assert "rejected 1" in loose.output
    assert "line 5: user is not a whole number" in loose.output
    status = hakaru("lake", "status", "-w", tmp_path / "w")
    assert "1 × user is not a whole number" in status.output


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


def test_standard_input(log: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hakaru", "ingest", "-", "-w", str(tmp_path / "w")]
    named = subprocess.run(
        [*command, "--cluster", "piped"], input=log.read_bytes(), capture_output=True, check=True
    )
    assert b"piped: read 3" in named.stdout
    unnamed = subprocess.run(command, input=log.read_bytes(), capture_output=True)
    assert unnamed.returncode == 1
    assert b"--cluster NAME" in unnamed.stderr


def test_lake_compact(log: Path, tmp_path: Path) -> None:
    space = tmp_path / "w"
    hakaru("ingest", log, "-w", space)
    hakaru("ingest", log, "-w", space)
    assert "files became" in hakaru("lake", "compact", "-w", space).output
    assert "mini" in hakaru("lake", "status", "-w", space).output


def test_analyses_lists_every_question() -> None:
    output = hakaru("analyses").output
    assert "walltime" in output
    assert "AAIC Table 3" not in output
    assert "AAIC Table 3" in hakaru("analyses", "--verbose").output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    assert "_HAKARU_COMPLETE" in hakaru("completion", shell).output


def test_completion_knows_verbs_and_ids() -> None:
    def complete(words: str, number: int) -> str:
        words_of = {
            "COMP_WORDS": words,
            "COMP_CWORD": str(number),
            "_HAKARU_COMPLETE": "bash_complete",
        }
        command = [sys.executable, "-c", "from hakaru.cli import main; main(prog_name='hakaru')"]
        done = subprocess.run(command, env=os.environ | words_of, capture_output=True, text=True)
        return done.stdout

    assert "plain,show" in complete("hakaru sh", 1)
    assert "walltime-cdf" in complete("hakaru show wallt", 2)
    assert "plain,queue" in complete("hakaru show walltime --by que", 4)
    assert "plain,Kraken,Philly" in complete("hakaru compare --published Kraken,Ph", 3)
    assert "quarter=" in complete("hakaru show jobs-by-quarter --param q", 4)


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


# ---- tables that fit


def in_terminal(width: int, *arguments: object) -> list[str]:
    """What a terminal of this width shows, line by line, without its colours."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "hakaru", *(str(argument) for argument in arguments)]
    with subprocess.Popen(command, stdout=there, stderr=subprocess.DEVNULL, env=env):
        os.close(there)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal says that its program has ended
            while block := os.read(here, 65536):
                shown += block
    os.close(here)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", shown.decode()).splitlines()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_terminal_breaks_no_number(log: Path, width: int) -> None:
    lines = in_terminal(width, "show", "walltime", "--from", log, "--by", "user")
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for number in ("1.500", "2.000", "100.00%"):
        assert number in words
    assert sum("single-node" in line for line in lines) == {40: 4, 80: 1, 120: 1}[width]


def columns(num: int) -> list[Column]:
    return [
        Column("key", ["a", "b"], False),
        *(Column(f"x_{i}", ["12,345", "6"]) for i in range(num)),
    ]


def test_headings_break_at_underscores_only() -> None:
    wide = [Column("k", ["a"], False), Column("share_of_all_jobs", ["12.34%"])]
    texts = [text for text, _ in table_lines(wide, 1, 12)]
    assert texts == ["   share_", "      of_", "     all_", "k    jobs", "─────────", "a  12.34%"]


def test_parts_repeat_the_key_and_blocks_are_the_last_resort() -> None:
    texts = [text for text, _ in table_lines(columns(3), 1, 20)]
    assert [text for text in texts if text.startswith("a")] == [
        "a    12,345  12,345",
        "a    12,345",
    ]
    texts = [text for text, _ in table_lines(columns(1), 1, 8)]
    assert texts == ["── 1 ──", "key  a", "x_0  12,345", "── 2 ──", "key  b", "x_0  6"]


def test_a_pipe_has_no_trailing_blanks(log: Path) -> None:
    for verb in (["show", "walltime", "--from", log], ["analyses"], ["analyses", "-v"]):
        assert not any(line.endswith(" ") for line in hakaru(*verb).output.splitlines())


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


def test_json_holds_no_nan() -> None:
    assert without_nan({"a": [1.5, float("nan"), float("inf")]}) == {"a": [1.5, None, None]}
    assert cell("share", float("nan")) == "–"


# ---- what was not found, and what was


def test_an_empty_result_says_why(log: Path) -> None:
    outside = hakaru("show", "states", "--from", log, "--since", "2030-01-01").output
    assert "no job of mini is selected" in outside
    outside = " ".join(outside.split())  # wherever the terminal's width breaks it
    assert "submitted from 2018-01-01 09:00 to 2018-01-01 09:03 (Asia/Tokyo)" in outside
    none_passes = hakaru("show", "walltime", "--from", log, "--min-run", "99999").output
    assert "no job passes: mini: 0 of 3 jobs" in none_passes
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
        assert ("and 1 more groups of user" in result.stderr) == bool(options)
        return [r["user"].rpartition("/")[2] for r in csv.DictReader(io.StringIO(result.stdout))]

    assert shown() == ["1", "2", "10"]
    assert shown("--top", "2") == ["10", "2"]


def test_an_unquoted_pattern_is_told(log: Path) -> None:
    result = hakaru("show", "states", "--from", log, log)
    assert result.exit_code == 2
    assert "quote the pattern: --from '*.gz'" in result.output


def test_a_mistyped_verb() -> None:
    assert "did you mean show?" in hakaru("shwo").output


def test_a_log_of_unknown_format_names_the_right_option(tmp_path: Path) -> None:
    odd = tmp_path / "odd.txt"
    odd.write_text("hello\n")
    output = hakaru("show", "states", "--from", odd).output
    assert "Name it with --log-format" in output and "ingest" in output


def test_a_log_from_standard_input(log: Path) -> None:
    command = [sys.executable, "-m", "hakaru", "show", "states", "--from", "piped=-"]
    done = subprocess.run(command, input=log.read_bytes(), capture_output=True, check=True)
    assert b"piped: 3 of 3 jobs" in done.stdout


def test_export_takes_the_filters_of_show(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.swf"
    common = ("export", "--from", log, "--format", "swf", "-o", out, "--overwrite")
    assert "wrote 1 of" in hakaru(*common, "--state", "failed").output
    assert "wrote 2 of" in hakaru(*common, "--min-run", "3600").output


def test_an_interrupt_is_told_in_a_word(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hakaru.cli._progress.ingest_with_progress", interrupt)
    result = hakaru("ingest", log, "-w", log.parent / "w")
    assert (result.exit_code, result.stderr) == (130, "stopped; nothing was stored\n")


def test_two_logs_are_not_poured_into_one(log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(log.read_text())
    result = hakaru("ingest", log, other, "-w", tmp_path / "w")
    assert result.exit_code == 1
    assert "speak of mini and other" in result.output
    assert hakaru("ingest", log, other, "-w", tmp_path / "w", "--cluster", "c").exit_code == 0


def test_a_wrong_format_is_not_a_success(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; UnixStartTime: 0\n" + "1 0 0 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n" * 3)
    result = hakaru("ingest", path, "--format", "aaic", "-w", tmp_path / "w")
    assert result.exit_code == 1
    assert "None of the 3 rows could be read as aaic" in result.output
    assert "holds no jobs" in hakaru("show", "states", "-w", tmp_path / "w").output
