"""Names and reasons that others chose: harmless on a terminal, in a spreadsheet and in XML."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner

from hakaru.cli import main
from hakaru.lake import Lake
from hakaru.safety.text import (
    PlainStream,
    bare,
    one_line,
    plain,
    plain_output,
    spreadsheet_cell,
    spreadsheet_table,
    xml_text,
)
from hakaru.web.answers import _csv
from hakaru.web.app import create_app
from tests._cli import hakaru
from tests.cli._log import HEADER, ROWS
from tests.conftest import job, put, put_jobs
from tests.web._site import running

TITLE = "\x1b]0;owned\x07"  # sets a window's title
CLEAR = "\x1b[2J\x1b[8m"  # clears the screen and hides what follows
C1 = "\x9b31m"  # the same in one byte
BIDI = "\u202etxt.exe"
EVIL = f"{TITLE}{CLEAR}{C1}{BIDI}\r\b\x7f"


def harmful(text: str) -> set[str]:
    """What a terminal would obey, listed apart from the code: but lines and tabs nothing is allowed."""
    ranges = [(0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0x202A, 0x202E), (0x2066, 0x2069)]
    return {c for c in text if any(low <= ord(c) <= high for low, high in ranges)}


# ---- the terminal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("計る é – 🎌 a\tb\nc", "計る é – 🎌 a\tb\nc"),
        (TITLE, "\\u001b]0;owned\\u0007"),
        (CLEAR, "\\u001b[2J\\u001b[8m"),
        (C1, "\\u009b31m"),
        (BIDI, "\\u202etxt.exe"),
        ("a\rb", "a\\u000db"),
        ("\x00\x08\x0b\x1f\x7f\x80", "\\u0000\\u0008\\u000b\\u001f\\u007f\\u0080"),
        ("\u2066\u2069\u2028\ufeff\udcff", "\\u2066\\u2069\\u2028\\ufeff\\udcff"),
    ],
)
def test_control_characters_are_shown(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_line_holds_no_lines() -> None:
    assert one_line("a\nb\tc\x1b") == "a\\u000ab\\u0009c\\u001b"


def test_json_reads_back_what_was_escaped() -> None:
    text = json.dumps({"name": EVIL}, ensure_ascii=False)
    assert json.loads(plain(text)) == {"name": EVIL}


def test_our_own_styles_pass_and_others_do_not() -> None:
    sink = io.StringIO()
    own = "\x1b[1mbold\x1b[0m \x1b[33myellow\x1b[0m \x1b[1;36mboth\x1b[m\r\n"
    PlainStream(sink).write(own)
    assert sink.getvalue() == own
    for other in (
        "\x1b[8m",
        "\x1b[30m",
        "\x1b[2J",
        "\x1b[1;8m",
        "\x1b[?25l",
        "\x1b]8;;http://x\x07",
    ):
        sink = io.StringIO()
        PlainStream(sink).write(other)
        assert not harmful(sink.getvalue()), other


def test_whatever_is_printed_goes_through_it(capsys: pytest.CaptureFixture[str]) -> None:
    streams = (sys.stdout, sys.stderr)
    with plain_output():
        click.echo(TITLE)
        print(CLEAR, file=sys.stderr)
        assert (bare(sys.stdout), bare(sys.stderr)) == streams
        with pytest.raises(AttributeError):
            sys.stdout.buffer  # noqa: B018
    assert (sys.stdout, sys.stderr) == streams
    assert bare(sys.stdout) is sys.stdout
    captured = capsys.readouterr()
    assert captured.out == "\\u001b]0;owned\\u0007\n"
    assert captured.err == "\\u001b[2J\\u001b[8m\n"


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A workspace whose users, queues, rejects and files have evil names."""
    lake = put_jobs(Lake.create(tmp_path / "evil"), [job(1, user=EVIL, queue=f"=1+{EVIL}")])
    reject = {
        "cluster": "c",
        "file": f"{EVIL}.csv",
        "line": 1,
        "reason": f"[/]{EVIL}",
        "text": EVIL,
    }
    put(lake, "rejects", [reject])
    return lake.workspace


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "states", "--by", "user"),
        ("show", "states", "--by", "user", "--format", "csv"),
        ("show", "states", "--by", "user", "--format", "md"),
        ("show", "states", "--by", "user", "--format", "json"),
        ("show", "users"),
        ("show", "states", "--by", EVIL),
        ("show", EVIL),
        ("show", "states", "--where", f"queue = '{EVIL}'"),
        ("show", "states", "--cluster", EVIL),
        ("lake", "status"),
        (EVIL,),
        ("show", "states", f"--{EVIL}"),
    ],
    ids=str,
)
@pytest.mark.parametrize("color", [False, True])
def test_no_verb_lets_a_name_reach_the_terminal(
    evil: Path, arguments: tuple[str, ...], color: bool
) -> None:
    place = () if arguments == (EVIL,) else ("-w", str(evil))
    done = CliRunner().invoke(main, [*arguments, *place], color=color)
    assert not isinstance(done.exception, Exception) or isinstance(done.exception, SystemExit)
    styles = ("\x1b[1m", "\x1b[2m", "\x1b[3m", "\x1b[22m", "\x1b[33m", "\x1b[0m")
    shown = done.output
    for style in styles:
        shown = shown.replace(style, "")
    assert not harmful(shown), shown


@pytest.mark.parametrize("format", ["csv", "json", "md", "table"])
def test_colours_of_a_name_are_shown_alike_on_a_terminal_and_in_a_pipe(
    tmp_path: Path, format: str
) -> None:
    """They are sequences that our own styles use: a name must not pass as one of those."""
    name = "\x1b[31mred\x1b[0m"
    place = put_jobs(Lake.create(tmp_path / "w"), [job(1, user=name)]).workspace
    asked = ("show", "states", "--by", "user", "--format", format, "-w", str(place))
    terminal, pipe = (
        CliRunner().invoke(main, asked, color=color).stdout for color in (True, False)
    )
    for shown in (terminal, pipe):
        assert "\\u001b[31mred\\u001b[0m" in shown and "\x1b[31m" not in shown
    if format != "table":  # which has styles of its own
        assert terminal == pipe
    output = tmp_path / "out.csv"
    hakaru("show", "states", "--by", "user", "-o", output, "-w", place)
    assert name in {row["user"] for row in read(output.read_text())}


def test_an_ingest_shows_bad_rows_and_file_names_without_obeying_them(tmp_path: Path) -> None:
    log = tmp_path / f"x{TITLE.replace('/', '')}.csv"
    bad = ROWS[0].replace(ROWS[0].split(",")[1], f"{CLEAR}{C1}", 1)
    log.write_text("\n".join([HEADER, bad, *ROWS]) + "\n")
    done = hakaru("ingest", log, "--cluster", "c", "-w", tmp_path / "w")
    assert "rejected 1" in done.output, done.output
    assert not harmful(done.output)
    assert "\\u001b]0;owned\\u0007.csv, line 2" in done.output
    status = hakaru("lake", "status", "-w", tmp_path / "w")
    assert not harmful(status.output) and "line 2" in status.output


def test_an_error_shows_the_file_it_could_not_read(tmp_path: Path) -> None:
    done = hakaru("ingest", tmp_path / f"no{CLEAR}.csv", "--cluster", "c", "-w", tmp_path / "w")
    assert done.exit_code != 0
    assert not harmful(done.output) and "no\\u001b[2J" in done.output


# ---- spreadsheets


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        ("＝1", "'＝1"),
        ("-", "'-"),
        ("--1", "'--1"),
        ("-1.5", "-1.5"),
        ("+7", "+7"),
        ("-.5e-3", "-.5e-3"),
        ("1-2", "1-2"),
        ("a=b", "a=b"),
        ("'=1", "'=1"),
        ("", ""),
        ("-1\n", "'-1\n"),
    ],
)
def test_what_begins_like_a_formula_is_text(text: str, cell: str) -> None:
    assert spreadsheet_cell(text) == cell
    table = spreadsheet_table(pa.table({"a": [text, None], "n": [-1.5, 2.0]}))
    assert table.to_pydict() == {"a": [cell, None], "n": [-1.5, 2.0]}


def test_headings_and_all_kinds_of_columns() -> None:
    table = pa.table({"=a": pa.array(["=x"], pa.large_string()), "n": [-3], "b": [True]})
    assert spreadsheet_table(table).to_pydict() == {"'=a": ["'=x"], "n": [-3], "b": [True]}
    assert spreadsheet_table(table.slice(0, 0)).num_rows == 0


def test_csv_of_the_command_line_and_of_the_web(tmp_path: Path) -> None:
    rows = [job(i, user="=HYPERLINK(1)", queue="-1.5", run_s=float(i)) for i in range(1, 4)]
    lake = put_jobs(Lake.create(tmp_path / "w"), rows)
    output = tmp_path / "users.csv"
    assert (
        hakaru("show", "states", "--by", "user", "-o", output, "-w", lake.workspace).exit_code == 0
    )
    assert "'=HYPERLINK(1)" in {cell for row in read(output.read_text()) for cell in row.values()}
    with running(create_app(lake)) as server, server.client() as client:
        answer = client.get("/api/v1/analyses/states?cluster=c&by=user&format=csv")
        web = {cell for row in read(answer.text) for cell in row.values()}
        assert "'=HYPERLINK(1)" in web and "=HYPERLINK(1)" not in web
        queues = client.get("/api/v1/analyses/queues?cluster=c&format=csv")
        assert "-1.5" in {cell for row in read(queues.text) for cell in row.values()}


def test_lists_in_csv_are_joined_by_a_space() -> None:
    table = pa.table({"nodes": [["=a", "b"], ["c"], None]})
    assert read(_csv(table).decode()) == [{"nodes": "'=a b"}, {"nodes": "c"}]


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_schedule_and_a_comparison_too(tmp_path: Path) -> None:
    rows = [job(f"={i}", user="=u", num_nodes=None) for i in range(3)]
    workspace = put_jobs(Lake.create(tmp_path / "w"), rows).workspace
    output = tmp_path / "schedule.csv"
    done = hakaru("simulate", "--processors", 4, "-o", output, "-w", workspace)
    assert done.exit_code == 0, done.output
    assert {row["job_id"] for row in read(output.read_text())} == {"'=0", "'=1", "'=2"}


# ---- XML


def test_xml_has_no_place_for_control_characters() -> None:
    text = "a\x00\x08\x0b\x1b\x1f\ufffe\uffff\t\n\rz計🎌\x85"
    assert xml_text(text) == "a" + "\ufffd" * 7 + "\t\n\rz計🎌\x85"
    ET.fromstring(f"<a>{xml_text(text)}</a>")


# ---- tracebacks


def test_the_traceback_of_an_uncaught_error_is_plain() -> None:
    """A fault of ours may quote a log's text; Python prints it when the command has ended."""
    program = (
        "import click\n"
        "from hakaru.cli import main\n"
        "def fail(): raise RuntimeError('job \\x1b]0;evil\\x07')\n"
        "main.get_command = lambda ctx, name: click.Command('x', callback=fail)\n"
        "main(['x'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "RuntimeError: job \\u001b]0;evil\\u0007" in done.stderr
    assert "\x1b" not in done.stderr and "\x07" not in done.stderr


@pytest.mark.parametrize(
    "hidden", ["\u200b", "\u2060", "\ufeff", "\u00ad", "\U000e0000", "\U000e0041", "\U000e007f"]
)
def test_what_nobody_sees_is_shown(hidden: str) -> None:
    text = f"ro{hidden}ot"
    for shown in (plain(text), one_line(text)):
        assert shown.isascii() and shown.startswith("ro\\u")
        assert json.loads(f'"{shown}"') == text


def test_marks_that_scripts_need_stay() -> None:
    assert plain("\u200c\u200d 計る é 👩\u200d🔬") == "\u200c\u200d 計る é 👩\u200d🔬"
