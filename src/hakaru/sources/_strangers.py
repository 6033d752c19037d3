"""Files that are not read, by what they are: how each is recognised, and what to do with it.

A new kind is one entry of `STRANGERS` and a sample in `tests/sources/test_strangers.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hakaru.errors import SourceError
from hakaru.sources._packing import HEAD_BYTES, open_bytes
from hakaru.sources._slurm import COMMAND

Recogniser = Callable[[bytes], bool]

IN_ZONE = " --zone ZONE\nZONE is the site's time zone, e.g. Asia/Tokyo."
GUESS = (
    "  hakaru ingest jobs.csv --format table --guess > mapping.toml\n"
    f"  hakaru ingest jobs.csv --format table --mapping mapping.toml --cluster NAME{IN_ZONE}"
)
SACCT = (
    "Write the jobs as text, which every version of Slurm can:\n"
    f"  {COMMAND} > jobs.txt\n  hakaru ingest jobs.txt --cluster NAME{IN_ZONE}"
)
TELEMETRY = (
    "It holds measurements and no jobs; read the scheduler's log instead. For Slurm:\n"
    + SACCT.split("\n", 1)[1]
)
TO_CSV = "Write the ended jobs as CSV and have a mapping proposed:\n"
# Sizes are totals, or chunks such as 2:ppn=8:gpus=4+1:ppn=4 (Torque) and 2:ncpus=8:ngpus=4 (PBS). An exit
# status from 256 on is a signal. R ends an attempt, and the next one waits from then on; in Torque it has no
# times.
PBS = r"""  awk -F';' '
    function either(a, b, c) {return a != "" ? a : b != "" ? b : c}
    function total(spec, key, least, i, j, m, k, chunk, part, each, sum) {
      gsub(/[()]/, "", spec); m = split(spec, chunk, "+"); sum = ""
      for (i = 1; i <= m; i++) {k = split(chunk[i], part, ":"); each = least
        for (j = 1; j <= k; j++)
          if (part[j] ~ ("^(" key ")=")) each = substr(part[j], index(part[j], "=") + 1)
        sum += (part[1] ~ /^[0-9]+$/ ? part[1] : 1) * each}
      return sum}
    BEGIN {L = "Resource_List."; U = "resources_used."
      print "job_id,user,queue,submit_time,start_time,end_time,walltime_req,nodes,cpus,total_gpus," \
        "exit_code,state"}
    $2 == "E" || $2 == "R" {
      rest = $0; sub(/^[^;]*;[^;]*;[^;]*;/, "", rest); split("", v); n = split(rest, a, " ")
      for (i = 1; i <= n; i++) {p = index(a[i], "="); v[substr(a[i], 1, p - 1)] = substr(a[i], p + 1)}
      if ($2 == "R" && v["end"] == "") next
      spec = either(v[L "select"], v[L "nodes"]); x = v["Exit_status"]
      state = x == "" ? "" : x + 0 >= 256 ? "killed" : x + 0 ? "failed" : "completed"
      if ($2 == "R") state = "preempted"
      print $3 "," v["user"] "," v["queue"] "," ($3 in again ? again[$3] : v["qtime"]) "," v["start"] "," \
        v["end"] "," v[L "walltime"] "," either(v[L "nodect"], total(spec, "-", 1)) "," \
        either(v[U "ncpus"], v[L "ncpus"], total(spec, "ppn|ncpus", 1)) "," \
        either(v[U "ngpus"], v[L "ngpus"], total(either(v["exec_vnode"], spec), "n?gpus", 0)) "," x "," state
      if ($2 == "R") again[$3] = v["end"]}' FILE > jobs.csv
"""
SGE = r"""  awk -F: 'BEGIN {print "job_id,user,queue,submit_time,start_time,end_time,slots,exit_code"}
    !/^#/ && $9 > 0 && $10 > 0 {id = $36 > 0 ? $6 "." $36 : $6
      print id "," $4 "," $1 "," $9 "," $10 "," $11 "," $35 "," $13}' FILE > jobs.csv
"""
# Texts may hold blanks. After lists of hosts of any length come the status and a factor, then two texts, the
# job's name and command; the index in the array is 29 fields after the status (0: no array).
LSF = r"""  awk 'BEGIN {print "job_id,user,queue,slots,submit_time,start_time,end_time,state"}
    /^"JOB_FINISH" / {split("", f); n = 0; line = $0
      while (match(line, /"([^"]|"")*"|[^ "]+/)) {
        f[++n] = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)}
      for (s = 24; s < n && !(f[s] f[s + 1] !~ /"/ && f[s + 2] ~ /"/ && f[s + 3] ~ /"/);) s++
      state = f[s] == "64" ? "DONE" : f[s] == "32" ? "EXIT" : ""
      id = f[4] (f[s + 29] + 0 > 0 ? "[" f[s + 29] "]" : ""); gsub(/"/, "", f[12]); gsub(/"/, "", f[13])
      if (f[11] + 0 > 0)
        print id "," f[12] "," f[13] "," f[7] "," f[8] "," f[11] "," f[3] "," state}' FILE > jobs.csv
"""
AS_CSV = "Write it as CSV, here with Hakaru's own DuckDB, and have a mapping proposed:\n"
FROM_JSON = "python -c \"import duckdb, sys; duckdb.read_json(sys.argv[1]).write_csv('jobs.csv')\""
LONGEST_LIST = (
    "python -c \"import json, sys; held = json.load(open(sys.argv[1], 'rb')).values(); "
    'print(json.dumps(max((each for each in held if isinstance(each, list)), key=len)))"'
)
STATE = rb"COMPLETED|FAILED|CANCELLED( by \d+)?|TIMEOUT|OUT_OF_MEMORY|NODE_FAIL|PREEMPTED|PENDING|RUNNING"
JOB_ID = rb"\d+(_\d+|_\[.*\]|\+\d+)?(\.\w+)?"
# what only Slurm's jobs have in JSON; where the file says who wrote it, that may stand at its end
SLURM_KEYS = (
    '"(association|allocation_nodes|derived_exit_code|het_job_id|accrue_time|tres_alloc_str)"'
)


@dataclass(frozen=True)
class Stranger:
    """A kind of file. `readable_as` names the formats that may read it all the same when asked for."""

    kind: str
    recognises: Recogniser
    advice: str  # FILE stands for the file's name, quoted for a shell
    readable_as: tuple[str, ...] = ()


def refuse_stranger(path: Path, format: str | None = None) -> None:
    """Name a file that is known and not read, and say what to do with it."""
    with open_bytes(path) as file:
        head = file.read(HEAD_BYTES)
    for each in STRANGERS:
        if format not in each.readable_as and each.recognises(head):
            advice = each.advice.replace("FILE", shlex.quote(str(path)))
            raise SourceError(f"{path}: is {each.kind}; Hakaru cannot read it. {advice}")


def _begins(*starts: bytes) -> Recogniser:
    return lambda head: head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(starts)


def _has(*patterns: str) -> Recogniser:
    """Every pattern is found, each from the beginning of a line where it begins with ^."""
    wanted = [re.compile(pattern.encode(), re.MULTILINE | re.IGNORECASE) for pattern in patterns]
    return lambda head: all(pattern.search(head) for pattern in wanted)


def _record(pattern: str) -> Recogniser:
    """The first line that is neither blank nor a comment is such a record."""
    wanted = re.compile(pattern.encode())

    def recognises(head: bytes) -> bool:
        rows = (row.strip() for row in head.splitlines())
        first = next((row for row in rows if row and not row.startswith((b"#", b";"))), b"")
        return wanted.match(first) is not None

    return recognises


_is_json = _record(r'(\{\s*("|$|\})|\[\s*(\{|\[|"|$))')


def _is_json_rows(head: bytes) -> bool:
    """A list of jobs, or a job a line."""
    return _is_json(head) and re.search(rb"\A\s*\[|\}\s*\n\s*\{", head) is not None


def _is_json_with_list(head: bytes) -> bool:
    """An object that holds a list, itself and not in another object."""
    depth = 0
    for mark in re.findall(rb"[\[\]{}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", head)):
        if mark == b"[" and depth == 1:
            return _is_json(head)
        depth += 1 if mark in b"[{" else -1
    return False


def _is_headless_sacct(head: bytes) -> bool:
    """A job's id and a state of Slurm stand in the first line, where the names of fields would be."""
    first = head.split(b"\n", 1)[0].rstrip(b"\r")
    for delimiter in (b"|", b"\x1f", b"\t", b",", b";"):
        cells = first.split(delimiter)
        has_id = any(re.fullmatch(JOB_ID, cell) for cell in cells)
        if len(cells) > 2 and has_id and any(re.fullmatch(STATE, cell) for cell in cells):
            return True
    return False


# The particular before the general: the first that recognises a file names it.
STRANGERS: tuple[Stranger, ...] = (
    Stranger(
        "a Git LFS pointer and not the file itself",
        _begins(b"version https://git-lfs.github.com/spec/"),
        "Fetch the file, in its repository, with: git lfs pull",
    ),
    Stranger(
        "a git-annex pointer and not the file itself",
        _begins(b"/annex/objects/"),
        "Fetch the file, in its repository, with: git annex get FILE",
    ),
    Stranger(
        "a SQLite database",
        _begins(b"SQLite format 3\0"),
        "List its tables with `sqlite3 FILE .tables`, and write the one that holds the jobs, here <TABLE>, "
        "as CSV:\n"
        """  sqlite3 -header -csv FILE 'SELECT * FROM "<TABLE>"' > jobs.csv\n""" + GUESS,
    ),
    Stranger(
        "a 7z archive", _begins(b"7z\xbc\xaf\x27\x1c"), "Unpack it and name the log: 7z x FILE"
    ),
    Stranger("a RAR archive", _begins(b"Rar!\x1a\x07"), "Unpack it and name the log: unrar x FILE"),
    Stranger(
        "packed with LZ4", _begins(b"\x04\x22\x4d\x18"), "Unpack it first: lz4 -d FILE jobs.txt"
    ),
    Stranger(
        "packed with compress (.Z)", _begins(b"\x1f\x9d"), "Unpack it first: zcat FILE > jobs.txt"
    ),
    Stranger(
        "a tar archive",
        lambda head: head[257:262] == b"ustar",
        "Unpack it and name the logs: tar xf FILE",
    ),
    Stranger("a PDF", _begins(b"%PDF-"), "Ask its author for the jobs as CSV, then:\n" + GUESS),
    Stranger(
        "an Excel file (.xls)",
        _begins(b"\xd0\xcf\x11\xe0"),
        "Save the sheet as CSV (UTF-8), here jobs.csv, then:\n" + GUESS,
    ),
    Stranger(
        "a web page (HTML)",
        lambda head: _begins(b"<!doctype html", b"<html")(head.lower()),
        "A download that wants you to sign in often gives one. Fetch the log itself with a browser.",
    ),
    Stranger("nvidia-smi output (XML)", _has(r"\A\s*<", "<!DOCTYPE nvidia_smi_log"), TELEMETRY),
    Stranger(
        "an XML file",
        _begins(b"<?xml", b"<!DOCTYPE"),
        "Write its jobs as CSV with a header line, e.g. with Python's xml.etree, then:\n" + GUESS,
    ),
    Stranger("Slurm JSON (sacct --json)", _has(r"\A\s*\{", '"jobs"', '"sacct"'), SACCT),
    Stranger("Slurm JSON (squeue --json)", _has(r"\A\s*\{", '"jobs"', '"squeue"'), SACCT),
    Stranger("slurmrestd JSON", _has(r"\A\s*\{", '"jobs"', r"openapi\\?/|Slurm OpenAPI"), SACCT),
    Stranger(
        "Slurm JSON (sacct --json or slurmrestd)", _has(r"\A\s*\{", '"jobs"', SLURM_KEYS), SACCT
    ),
    Stranger("JSON", _is_json_rows, AS_CSV + f"  {FROM_JSON} FILE\n" + GUESS),
    Stranger(
        "a JSON object with a list in it",
        _is_json_with_list,
        AS_CSV + f"  {LONGEST_LIST} FILE > list.json\n  {FROM_JSON} list.json\n" + GUESS,
    ),
    Stranger(
        "a JSON object",
        _is_json,
        "Write its jobs as CSV with a header line, e.g. with Python's json, then:\n" + GUESS,
    ),
    Stranger(
        "PBS or Torque accounting",
        _record(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Z];[^;]*;"),
        TO_CSV + PBS + GUESS,
        readable_as=("table",),
    ),
    Stranger(
        "Grid Engine (SGE) accounting",
        _record(r"(?:[^:]*:){5}\d+:(?:[^:]*:){2}\d+:\d+:\d+:\d+:(?:[^:]*:){28}"),
        TO_CSV + SGE + GUESS,
        readable_as=("table",),
    ),
    Stranger(
        "LSF accounting (lsb.acct)",
        _record(r'"(JOB_FINISH2?|JOB_NEW|JOB_START|EVENT_ADRSV_FINISH)" "[\d.]+" \d+ '),
        TO_CSV + LSF + GUESS,
        readable_as=("table",),
    ),
    Stranger(
        "nvidia-smi output (CSV)",
        _record(r".*\b(utilization\.(gpu|memory)|memory\.(used|total|free)|power\.draw)\b"),
        TELEMETRY,
        readable_as=("table",),
    ),
    Stranger("nvidia-smi output (table)", _has(r"^\|\s*NVIDIA-SMI \d"), TELEMETRY),
    Stranger("DCGM output", _has(r"^DCGM_FI_\w+[{ ]|^#\s*Entity\s+\w+"), TELEMETRY),
    Stranger("Prometheus metrics", _has(r"^# (HELP|TYPE) [\w:]+ \w+"), TELEMETRY),
    Stranger(
        "Prometheus metrics",
        _record(r'[a-zA-Z_:][\w:]*\{\w+="[^"]*".*\} [-+\d.eNaIinf]+( \d+)?$'),
        TELEMETRY,
    ),
    Stranger(
        "sacct output without -P, whose columns are cut off",
        _has(r"\A\s*JobID\s+\w+.*\r?\n\s*-+ [- ]+\s*$"),
        "Add -P to the command that wrote it. " + SACCT,
    ),
    Stranger(
        "squeue output, which lists no ended jobs",
        _has(r"\A\s*JOBID\s+PARTITION\s+NAME\s+USER\s"),
        SACCT,
    ),
    Stranger(
        "scontrol output, which lists no jobs that ended long ago",
        _begins(b"JobId=", b"NodeName="),
        SACCT,
    ),
    Stranger(
        "a database dump",
        _begins(
            b"-- MySQL dump", b"-- MariaDB dump", b"-- PostgreSQL database dump", b"/*M!999999"
        ),
        "Slurm's accounting is read through sacct, which needs no database. " + SACCT,
        readable_as=("table",),
    ),
    Stranger(
        "sacct output without its header line",
        _is_headless_sacct,
        "With the names of its fields it can: give them in their order, as to sacct -o, for example:\n"
        "  hakaru ingest FILE --cluster NAME --fields JobID,User,Partition,State,Submit,Start,End"
        f"{IN_ZONE}\n"
        "Or write it again without -n (--noheader).",
        readable_as=("sacct", "table"),
    ),
)
