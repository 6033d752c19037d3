"""Files that are not read are named for what they are, and what the message advises works."""

from __future__ import annotations

import bz2
import gzip
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.sources import ingest
from hakaru.sources._slurm import COMMAND
from hakaru.sources._strangers import STRANGERS, _is_headless_sacct, refuse_stranger
from hakaru.sources.ingest import guess_mapping
from tests._cli import hakaru

DATA = Path(__file__).resolve().parents[1] / "data" / "strangers"

# sample, what the message calls it, and a part of what it says to do
TEXTS = [
    ("lfs.swf.gz", "a Git LFS pointer", "git lfs pull"),
    ("annex.csv", "a git-annex pointer", "git annex get"),
    ("page.html", "a web page (HTML)", "Fetch the log itself"),
    ("jobs.xml", "an XML file", "--format table --guess"),
    ("nvidia-smi.xml", "nvidia-smi output (XML)", "sacct -a -D -P"),
    ("sacct.json", "Slurm JSON (sacct --json);", "sacct -a -D -P"),
    ("squeue.json", "Slurm JSON (squeue --json)", "sacct -a -D -P"),
    ("slurmrestd.json", "slurmrestd JSON", "sacct -a -D -P"),
    ("long-sacct.json", "Slurm JSON (sacct --json or slurmrestd)", "sacct -a -D -P"),
    ("jobs.json", "JSON;", "duckdb.read_json("),
    ("jobs.jsonl", "JSON;", "duckdb.read_json("),
    ("list.json", "a JSON object with a list in it;", "duckdb.read_json("),
    ("object.json", "a JSON object;", "Write its jobs as CSV"),
    ("pbs.txt", "PBS or Torque accounting", "awk -F';'"),
    ("sge.txt", "Grid Engine (SGE) accounting", "awk -F:"),
    ("lsf.txt", "LSF accounting (lsb.acct)", "JOB_FINISH"),
    ("dmon.txt", "DCGM output", "measurements and no jobs"),
    ("dcgm.prom", "DCGM output", "measurements and no jobs"),
    ("metrics.prom", "Prometheus metrics", "measurements and no jobs"),
    ("series.prom", "Prometheus metrics", "measurements and no jobs"),
    ("nvidia-smi.csv", "nvidia-smi output (CSV)", "measurements and no jobs"),
    ("nvidia-smi.txt", "nvidia-smi output (table)", "measurements and no jobs"),
    ("sacct-no-header.txt", "sacct output without its header line", "--fields JobID,"),
    ("sacct-screen.txt", "sacct output without -P", "Add -P to the command"),
    (
        "squeue.txt",
        "squeue output, which lists no ended jobs; Hakaru cannot read it.",
        "sacct -a -D -P",
    ),
    ("scontrol.txt", "scontrol output", "sacct -a -D -P"),
    ("dump.sql", "a database dump", "sacct -a -D -P"),
]


def _binary(path: Path, kind: str) -> tuple[str, str]:
    """Write a file of this kind; gives its name in the message, and a part of the advice."""
    contents = {
        "7z": (b"7z\xbc\xaf\x27\x1c" + bytes(40), "a 7z archive", f"7z x {path}"),
        "rar": (b"Rar!\x1a\x07\x01\x00" + bytes(40), "a RAR archive", f"unrar x {path}"),
        "lz4": (b"\x04\x22\x4d\x18" + bytes(40), "packed with LZ4", f"lz4 -d {path}"),
        "Z": (b"\x1f\x9d\x90" + bytes(40), "packed with compress", f"zcat {path}"),
        "pdf": (b"%PDF-1.7\n%\xe2\xe3", "a PDF", "jobs as CSV"),
        "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel file (.xls)", "sheet as CSV"),
    }
    if kind in contents:
        content, name, advice = contents[kind]
        path.write_bytes(content)
        return name, advice
    if kind == "sqlite":
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE jobs (id)")
        return "a SQLite database", f"sqlite3 {path} .tables"
    with tarfile.open(path, "w") as archive:
        archive.add(DATA / "pbs.txt", "pbs.txt")
    return "a tar archive", f"tar xf {path}"


BINARIES = ["7z", "rar", "lz4", "Z", "pdf", "xls", "sqlite", "tar"]


def refused(lake: Lake, path: Path, format: str | None = None) -> str:
    with pytest.raises(SourceError) as caught:
        ingest(lake, [path], "c", format=format)
    assert lake.ingests() == []
    assert "_staging" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("file", "kind", "advice"), TEXTS, ids=[file for file, _, _ in TEXTS])
def test_a_text_is_named_for_what_it_is(lake: Lake, file: str, kind: str, advice: str) -> None:
    message = refused(lake, DATA / file)
    assert message.startswith(f"{DATA / file}: is {kind}")
    assert advice in message


@pytest.mark.parametrize(("file", "kind", "advice"), TEXTS, ids=[file for file, _, _ in TEXTS])
def test_packed_or_not_it_is_the_same(
    lake: Lake, tmp_path: Path, file: str, kind: str, advice: str
) -> None:
    path = tmp_path / "log"
    path.write_bytes(gzip.compress((DATA / file).read_bytes()))
    assert refused(lake, path).startswith(f"{path}: is {kind}")


@pytest.mark.parametrize("kind", BINARIES)
@pytest.mark.parametrize("format", [None, "table", "sacct", "swf"])
def test_what_is_no_text_is_named_whatever_format_is_asked_for(
    lake: Lake, tmp_path: Path, kind: str, format: str | None
) -> None:
    path = tmp_path / "jobs.db"
    name, advice = _binary(path, kind)
    message = refused(lake, path, format)
    assert message.startswith(f"{path}: is {name}")
    assert advice in message


def test_every_kind_has_a_sample(tmp_path: Path) -> None:
    samples = {file: (DATA / file).read_bytes() for file, _, _ in TEXTS}
    for kind in BINARIES:
        _binary(tmp_path / kind, kind)
        samples[kind] = (tmp_path / kind).read_bytes()
    first = {next(each for each in STRANGERS if each.recognises(head)) for head in samples.values()}
    assert first == set(STRANGERS)


@pytest.mark.parametrize("file", ["aaicwl-2019Q1.csv", "canonical.csv", "sacct.txt", "small.swf"])
def test_no_log_that_is_read_is_taken_for_a_stranger(file: str) -> None:
    head = (DATA.parent / file).read_bytes()
    assert [each.kind for each in STRANGERS if each.recognises(head)] == []


def test_another_format_is_named_too_but_not_for_a_table(lake: Lake) -> None:
    assert "PBS or Torque accounting" in refused(lake, DATA / "pbs.txt", "sacct")
    assert "PBS or Torque accounting" not in refused(lake, DATA / "pbs.txt", "table")


# ---- what the messages advise


def _commands(message: str) -> list[str]:
    """The commands of a message: its indented lines; deeper ones go on with the one before."""
    found: list[str] = []
    for line in message.splitlines():
        if line.startswith("    "):
            found[-1] += "\n" + line
        elif line.startswith("  "):
            found.append(line.strip())
    return found


def _run(message: str, folder: Path, **words: str) -> None:
    """Run a message's commands as a person would paste them; `words` are what it leaves to be filled in."""
    (folder / "hakaru").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hakaru "$@"\n')
    (folder / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    for name in ("hakaru", "python"):
        (folder / name).chmod(0o755)
    for command in _commands(message):
        for word, value in words.items():
            command = command.replace(word, value)
        done = subprocess.run(
            ["bash", "-c", f'PATH="{folder}:$PATH"; {command}'],
            cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def _read_back(folder: Path, columns: str) -> list[str]:
    shown = subprocess.run(
        [
            sys.executable, "-c",
            "import sys; from pathlib import Path; from hakaru.lake import Lake; "
            "from hakaru.schema import JOBS; from hakaru.engine.duckdb import connect; "
            "from hakaru.settings import Engine; lake = Lake.open(Path('hakaru-workspace'))\n"
            "for row in sorted(lake.read(connect(Engine()), JOBS).to_pylist(), key=lambda r: r['job_id']):\n"
            "    print(*(row[name] for name in sys.argv[1].split(',')))",
            columns,
        ],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return shown.stdout.splitlines()


WAITS = "job_id,user,queue,wait_s,run_s"


@pytest.mark.parametrize(
    ("file", "columns", "jobs"),
    [
        (
            "pbs.txt",
            WAITS + ",requested_s,num_nodes,num_cpus,num_gpus,exit_code,state",
            [
                "11.head ann batch 10.0 3600.0 7200.0 1 8 1 0 completed",
                "12.head bob long 10.0 7200.0 14400.0 2 16 4 1 failed",
                "13.head bob long 10.0 3600.0 14400.0 2 16 8 271 killed",
                "14.head cat long 10.0 3600.0 14400.0 3 13 2 -3 failed",
                "15.head cat long 10.0 3600.0 14400.0 3 20 8 0 completed",
                "16.head cat long 10.0 3600.0 14400.0 1 8 2 127 failed",
                "17.head dan long 10.0 90.0 14400.0 1 4 0 -11 preempted",
                "17.head dan long 100.0 3600.0 14400.0 1 4 0 0 completed",
            ],
        ),
        (
            "sge.txt",
            WAITS + ",num_cpus,exit_code",
            [
                "11 ann all.q 10.0 3600.0 4 0",
                "12 bob gpu.q 10.0 7200.0 8 1",
                "13.1 bob gpu.q 10.0 60.0 8 1",
                "13.2 bob gpu.q 20.0 90.0 8 1",
            ],
        ),
        (
            "lsf.txt",
            WAITS + ",state",
            [
                "11 ann normal 10.0 3600.0 completed",
                "12 bob gpu 10.0 7200.0 completed",
                "13[1] bob gpu 10.0 60.0 completed",
                "13[2] bob gpu 10.0 70.0 failed",
                "14 bob gpu 10.0 80.0 failed",
            ],
        ),
        ("jobs.json", WAITS, ["1 ann gpu 10.0 3600.0", "2 bob gpu 10.0 7200.0"]),
        ("jobs.jsonl", WAITS, ["1 ann gpu 10.0 3600.0", "2 bob gpu 10.0 7200.0"]),
        ("list.json", WAITS, ["1 ann gpu 10.0 3600.0", "2 bob gpu 10.0 7200.0"]),
    ],
)  # fmt: skip
def test_the_commands_of_a_message_lead_to_the_jobs(
    lake: Lake, tmp_path: Path, file: str, columns: str, jobs: list[str]
) -> None:
    log = tmp_path / "it's my log"  # a name that a shell would cut
    log.write_bytes((DATA / file).read_bytes())
    _run(refused(lake, log), tmp_path, NAME="c", ZONE="Asia/Tokyo")
    assert _read_back(tmp_path, columns) == jobs


def test_the_commands_for_a_database_lead_to_the_jobs(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with sqlite3.connect(path) as database:
        database.execute('CREATE TABLE "my jobs" (job_id, user, submit_time, start_time, end_time)')
        row = "(1, 'ann', 1514764800, 1514764810, 1514768410)"
        database.execute(f'INSERT INTO "my jobs" VALUES {row}')
    message = refused(lake, path).replace("<TABLE>", "my jobs")
    _run(message, tmp_path, NAME="c", ZONE="Asia/Tokyo")
    assert _read_back(tmp_path, "job_id,user,run_s") == ["1 ann 3600.0"]


# ---- what is not known at all


def test_an_empty_file_is_named(lake: Lake, tmp_path: Path) -> None:
    log = tmp_path / "jobs.txt"
    log.write_text(" \n")
    assert refused(lake, log) == f"{log}: is empty. Check the command that wrote it."


def test_slurms_command_is_the_documented_one_with_the_sites_zone(lake: Lake) -> None:
    command, ingest = _commands(refused(lake, DATA / "sacct.json"))
    assert command == f"{COMMAND} > jobs.txt"
    assert ingest == "hakaru ingest jobs.txt --cluster NAME --zone ZONE"


def test_a_mapping_is_offered_only_for_what_is_a_table(lake: Lake, tmp_path: Path) -> None:
    table, words, noise = tmp_path / "t.csv", tmp_path / "w.txt", tmp_path / "n"
    table.write_text("id;who;t0\n1;ann;1514764800\n2;bob;1514764900\n")
    words.write_text("1 ann 1514764800\n2 bob 1514764900\n")
    noise.write_bytes(bytes(range(1, 256)) * 20 + b"\0")
    assert f"hakaru ingest {table} --format table --guess" in refused(lake, table)
    assert guess_mapping(table)
    assert f"ingest {words} --format table" not in refused(lake, words)
    assert "awk -v OFS=," in refused(lake, words)
    assert "--guess" not in refused(lake, noise) and "This is not a text file." in refused(
        lake, noise
    )


@pytest.mark.parametrize("packing", ["", ".bz2"])
def test_an_advised_command_quotes_a_name_with_blanks(
    lake: Lake, tmp_path: Path, packing: str
) -> None:
    """Also that of a packed log, of which a copy without blanks in its name is read."""
    text = b"id;who;t0\n1;ann;1514764800\n2;bob;1514764900\n"
    log = tmp_path / f"my jobs.csv{packing}"
    log.write_bytes(bz2.compress(text) if packing else text)
    command = f"  hakaru ingest '{log}' --format table --guess"
    for format in (None, "table"):
        message = refused(lake, log, format)
        assert message.startswith(f"{log}: ") and command in message.splitlines()
    assert f"then: hakaru ingest '{log}' --format table" in guess_mapping(log)


def test_an_unknown_log_of_words_becomes_a_table_by_the_advice(lake: Lake, tmp_path: Path) -> None:
    words = tmp_path / "w.txt"
    words.write_text("id who submit start end\n1 ann 1514764800 1514764810 1514768410\n")
    _run(refused(lake, words), tmp_path)
    assert "start" in guess_mapping(tmp_path / "jobs.csv")


def test_another_layout_of_swf_is_led_to_a_table_that_can_be_read(
    lake: Lake, tmp_path: Path
) -> None:
    log = tmp_path / "log.swf"
    log.write_text("; note\nid submit start end\n" + "1 1514764800 1514764810 1514768410\n" * 3)
    message = refused(lake, log)
    assert "not the Standard Workload Format" in message
    assert f"ingest {log} --format table" not in message
    _run(message, tmp_path)
    assert 'submitted_at = "submit"' in guess_mapping(tmp_path / "jobs.csv").replace(
        "{ column = ", ""
    )


def test_a_guess_is_refused_as_an_ingest_is(tmp_path: Path) -> None:
    told = hakaru("ingest", DATA / "jobs.json", "--format", "table", "--guess")
    assert told.exit_code == 1 and "is JSON; Hakaru cannot read it" in told.output
    page = hakaru("ingest", tmp_path, "--format", "table", "--guess")
    assert page.exit_code == 1 and "is a folder" in page.output


@pytest.mark.parametrize("file", ["pbs.txt", "sacct.json", "lfs.swf.gz"])
def test_from_gives_the_same_message(file: str) -> None:
    told = hakaru("show", "walltime", "--from", DATA / file)
    kind = next(kind for name, kind, _ in TEXTS if name == file)
    assert told.exit_code == 1
    assert told.output.startswith(f"error: {DATA / file}: is {kind}")


def test_a_zip_of_several_files_or_of_a_sheet_is_named(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "x")
        archive.writestr("b.csv", "x")
    assert f"{path}: is a zip of 2 files (a.csv, b.csv)" in refused(lake, path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "x")
        archive.writestr("xl/workbook.xml", "x")
    assert "is an Excel or Word file" in refused(lake, path)


@pytest.mark.parametrize(
    ("first", "is_headless"),
    [
        (b"7|COMPLETED|1514764800", True),
        (b"7|COMPLETED", False),  # two columns could be anything
        (b"ann\x1f7\x1fFAILED", True),
        (b"7\tTIMEOUT\tann", True),
        (b"7,RUNNING,ann", True),
        (b"7;PENDING;ann", True),
        (b"7_3|CANCELLED by 61001|ann", True),
        (b"7_[1-3%2]|PENDING|ann", True),
        (b"7+1|NODE_FAIL|ann", True),
        (b"7.batch|COMPLETED|ann", True),
        (b"7|DONE|ann", False),
        (b"seven|COMPLETED|ann", False),
        (b"JobID|State|User", False),
    ],
)
def test_records_of_sacct_are_known_without_their_header(first: bytes, is_headless: bool) -> None:
    for end in (b"\n", b"\r\n"):
        assert _is_headless_sacct(first + end + b"8|COMPLETED|9" + end) == is_headless


@pytest.mark.parametrize(
    "comment", ["", "# written by hand\n", "; of the workload archive\n", "\n\n"]
)
def test_a_comment_before_the_records_hides_no_format(comment: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(comment + (DATA / "pbs.txt").read_text())
    with pytest.raises(SourceError, match="is PBS or Torque accounting"):
        refuse_stranger(path)
