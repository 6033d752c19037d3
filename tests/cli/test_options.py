"""Options that change what is counted, written or passed on: each is seen to do so."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.filesize import decimal

from hakaru.cli import _advice, _replay, _whatif, advise, export, report, reproduce, whatif
from hakaru.cli._groups import natural
from hakaru.cli._table import Column
from hakaru.lake import Lake
from hakaru.web.access.tokens import Tokens
from tests._cli import hakaru
from tests.conftest import job, put, put_jobs, utc


class Stopped(Exception):
    """What a test puts in place of the work itself."""


def rows_of(*arguments: object) -> list[dict[str, str]]:
    result = hakaru(*arguments, "--format", "csv")
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(io.StringIO(result.stdout)))


# ---- show


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


# ---- --from


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


# ---- export


def test_what_disguises_needs_anonymise(lake: Lake, tmp_path: Path) -> None:
    put_jobs(lake, [job(1)])
    out = ("export", "-w", lake.workspace, "--format", "parquet", "-o", tmp_path / "o.parquet")
    for option in (("--salt", "s"), ("--salt-file", tmp_path / "s"), ("--shift-times", "364")):
        refused = hakaru(*out, *option)
        assert refused.exit_code == 1 and f"{option[0]} needs --anonymise" in refused.stderr
    assert not (tmp_path / "o.parquet").exists()


def test_the_manifest_has_the_filters_and_a_file_is_replaced_only_if_asked(
    lake: Lake, tmp_path: Path
) -> None:
    put_jobs(lake, [job(n, submitted_at=utc(f"2018-01-0{n}T00:00:00")) for n in range(1, 6)])
    out = ("export", "-w", lake.workspace, "--format", "parquet", "-o", tmp_path / "o.parquet")
    chosen = (
        "--since",
        "2018-01-02",
        "--until",
        "2018-01-03",
        "--min-run",
        "60",
        "--state",
        "completed",
    )
    first = hakaru(*out, *chosen)
    assert first.exit_code == 0 and "wrote 2 of 2 jobs" in first.output
    manifest = Path(first.output.split("manifest ")[1].strip())
    assert json.loads(manifest.read_text())["filters"] == {
        "since": "2018-01-02", "until": "2018-01-03", "min_run_s": "60", "states": "completed",
    }  # fmt: skip
    assert hakaru(*out).exit_code == 1
    assert "wrote 5 of 5 jobs" in hakaru(*out, "--overwrite").output


def test_a_period_may_be_one_day_but_not_end_before_it_begins(lake: Lake) -> None:
    put_jobs(lake, [job(n, submitted_at=utc(f"2018-01-0{n}T12:00:00")) for n in range(1, 6)])
    shown = ("show", "states", "-w", lake.workspace, "--since", "2018-01-02", "--until")
    assert "c: 1 of 1 jobs" in hakaru(*shown, "2018-01-02").output
    refused = hakaru(*shown, "2018-01-01")
    assert refused.exit_code == 1 and "the period ends before it begins" in refused.output


def test_an_export_says_what_was_left_out_and_changed(capsys: pytest.CaptureFixture[str]) -> None:
    manifest = {
        "clusters": ["c"], "synthetic": True, "num_jobs_written": 1200, "num_jobs_selected": 1234,
        "format": "aaic", "missing": None, "left_out": {"no start": 34}, "changed": {"whole seconds": 5},
        "columns": {"removed": ["name", "nodes"], "added": []}, "anonymised": {"salt": "not kept"},
        "times": "moved", "settings_in_files": False,
    }  # fmt: skip
    files = [Path("out/a.csv"), Path("out/b.csv")]
    done: Any = SimpleNamespace(files=files, manifest=manifest, manifest_path=Path("out/m.json"))
    disguise: Any = object()
    export._print_done(done, disguise)
    assert capsys.readouterr().out.splitlines() == [
        "c (SYNTHETIC data): wrote 1,200 of 1,234 jobs as aaic to 2 files in out",
        "  left out 34: no start",
        "  changed 5: whole seconds",
        "  columns removed: name, nodes",
        "  the salt is not kept",
        "  times are moved",
        "  the files hold no settings (zone, nodes, limits): the manifest has them",
        "  manifest out/m.json",
    ]


# ---- lake


def test_replaced_files_are_kept_as_long_as_is_asked(lake: Lake) -> None:
    for number in range(3):
        put_jobs(lake, [job(number)])

    def files() -> int:
        found = (lake.root / "jobs").rglob("*.parquet")
        return sum("_delta_log" not in path.parts for path in found)

    before = files()
    compact = ("lake", "compact", "-w", lake.workspace)
    assert hakaru(*compact).exit_code == 0 and files() > before  # the joined one, beside the others
    put_jobs(lake, [job(9)])
    assert hakaru(*compact, "--retain-hours", 0).exit_code == 0
    assert files() == sum(table.num_files for table in lake.status() if table.name == "jobs")


def test_status_has_each_number_under_its_heading(lake: Lake) -> None:
    days = ("2018-01-01", "2018-01-03", "2018-01-09")
    put(lake, "jobs", [job(n, submitted_at=utc(f"{day}T05:30:00"), user=f"u{n % 2}")
                       for n, day in enumerate(days)])  # fmt: skip
    for id, day in (("a", "2018-02-01"), ("b", "2018-02-03")):
        at = {"started_at": utc(f"{day}T00:00:00"), "ended_at": utc(f"{day}T00:07:00")}
        put(
            lake,
            "ingests",
            [{"ingest_id": id, "cluster": "c", "source": "x", "synthetic": False} | at],
        )
    for reason, first, num in (("seldom", 5, 1), ("often", 7, 3)):
        put(lake, "rejects", [{"cluster": "c", "file": "f.csv", "line": line, "reason": reason, "text": ""}
                              for line in range(first, first + num)])  # fmt: skip
    lines = hakaru("lake", "status", "-w", lake.workspace).output.splitlines()
    cells = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.count("│") > 5
    ]
    assert ["c", "3", "2", "2018-01-01 05:30", "2018-01-09 05:30", "2018-02-03 00:07"] in cells
    (stored,) = [table for table in lake.status() if table.name == "jobs"]
    (shown,) = [row for row in cells if row[0] == "jobs"]
    assert shown[1:4] == ["3", "1", decimal(stored.num_bytes)]
    assert [line for line in lines if line.startswith("rejected")] == [
        "rejected in c: 3 × often (first: f.csv, line 7)",
        "rejected in c: 1 × seldom (first: f.csv, line 5)",
    ]


# ---- token and serve


def test_a_token_lasts_the_days_that_are_asked_for(tmp_path: Path) -> None:
    made = hakaru(
        "token", "create", "-w", tmp_path, "--name", "a", "--role", "operator", "--days", 30
    )
    (token,) = Tokens(tmp_path).all()
    assert token.expires is not None and token.expires - token.created == timedelta(days=30)
    assert made.stdout.startswith("hakaru_") and made.stdout.count("\n") == 1  # for $(…)
    assert f"a (operator) until {token.expires:%Y-%m-%d}" in made.stderr
    Tokens(tmp_path).create("old", "user", "ann", datetime(2018, 1, 1, tzinfo=UTC))
    lines = hakaru("token", "list", "-w", tmp_path).output.splitlines()
    listed = {line.split("│")[2].strip(): line for line in lines if line.count("│") > 5}
    assert "2018-01-01 00:00 (expired)" in listed["old"] and "ann" in listed["old"]
    assert "expired" not in listed["a"]


def test_a_token_for_a_user_whom_no_log_names_is_made_with_a_warning(lake: Lake) -> None:
    words = ("token", "create", "-w", lake.workspace, "--role", "user", "--name")
    early = hakaru(*words, "early", "--user", "ann")
    assert f"warning: no log in {lake.workspace} names the user 'ann'" in early.stderr
    put_jobs(lake, [job(1, user="ann")])
    wrong = hakaru(*words, "wrong", "--user", "nobody")
    assert "names the user 'nobody'" in wrong.stderr and "hakaru show users" in wrong.stderr
    assert wrong.stdout.startswith("hakaru_") and wrong.stdout.count("\n") == 1
    known = hakaru(*words, "right", "--user", "ann")
    assert "warning" not in known.stderr
    assert [token.name for token in Tokens(lake.workspace).all()] == ["early", "wrong", "right"]


@pytest.mark.parametrize("name", ["", " ", "\t"])
def test_a_cluster_needs_a_name(log: Path, tmp_path: Path, name: str) -> None:
    for words in (("ingest", log, "--cluster", name), ("synth", "--jobs", "9", "--cluster", name)):
        refused = hakaru(*words, "-w", tmp_path)
        assert refused.exit_code == 1
        assert f"cluster name {name!r} is not allowed" in refused.output
    assert Lake(tmp_path).clusters() == []


def test_serve_passes_on_what_is_asked(log: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Tokens are those of the workspace, also where a log is read in place of it."""
    given: dict[str, Any] = {}

    def served(lake: Lake, host: str, port: int, **options: Any) -> None:
        given.update(options, host=host, port=port, clusters=lake.clusters())

    monkeypatch.setattr("hakaru.web.server.serve", served)
    options = ("-w", tmp_path / "w", "--host", "::1", "--port", 99, "--access-log", "--unit", "cpu")
    assert hakaru("serve", "--from", log, *options).exit_code == 0
    given.pop("ready")
    assert given == {"host": "::1", "port": 99, "clusters": ["mini"], "access_log": True,
                     "unit": "cpu", "access_folder": tmp_path / "w"}  # fmt: skip


# ---- report, compare, ingest, synth


@pytest.mark.parametrize(
    ("beside", "names"),
    [((), None), (("all",), None), (("none",), []), (("a, b", "c"), ["a", "b", "c"])],
)
def test_what_a_report_is_compared_with(beside: tuple[str, ...], names: list[str] | None) -> None:
    assert report._names(beside) == names


def test_a_report_says_its_size(log: Path, monkeypatch: Any) -> None:
    seen: list[Any] = []

    def written(session: Any, output: Path, *given: Any) -> int:
        seen.extend(given)
        return 2_540_000

    monkeypatch.setattr(report, "write_report", written)
    options = ("-o", "r.html", "--lang", "ja", "--compare", "Kraken", "--since", "2018-01-01")
    done = hakaru("report", "--from", log, *options)
    assert (done.exit_code, done.output) == (0, "r.html (2.5 MB)\n")
    assert (seen[0].since, seen[1:]) == ("2018-01-01", [["Kraken"], "ja"])


def test_a_cluster_that_is_named_twice_is_compared_once(lake: Lake) -> None:
    put_jobs(lake, [job(1), job(2, cluster="d")])
    result = hakaru("compare", "d", "c", "d", "-w", lake.workspace, "--format", "json")
    assert [each["name"] for each in json.loads(result.stdout)["clusters"]] == ["d", "c"]


def test_sacct_without_a_header_has_the_fields_that_are_named(tmp_path: Path) -> None:
    log = tmp_path / "jobs.txt"
    rows = [f"{n}|COMPLETED|2018-01-0{n}T09:00:00|2018-01-0{n}T09:00:10|2018-01-0{n}T10:00:10|ann"
            for n in (1, 3)]  # fmt: skip
    log.write_text("\n".join(rows) + "\n")
    fields = ("--fields", "JobID,State,Submit,Start,End,User", "--zone", "Asia/Tokyo")
    told = hakaru("ingest", log, "-w", tmp_path / "w", *fields)
    assert told.exit_code == 0, told.output
    assert "submitted 2018-01-01 to 2018-01-03 (Asia/Tokyo), 1 user" in told.output


def test_synth_and_demo_make_what_is_asked(tmp_path: Path, monkeypatch: Any) -> None:
    specs: list[Any] = []

    def generate(lake: Lake, spec: Any) -> None:
        specs.append(spec)
        raise Stopped

    monkeypatch.setattr("hakaru.cli.synth.generate_with_progress", generate)
    options = (
        "--jobs",
        5,
        "--seed",
        9,
        "--days",
        3,
        "--nodes",
        4,
        "--users",
        2,
        "--samples-days",
        0,
    )
    assert isinstance(
        hakaru("synth", *options, "--cluster", "x", "-w", tmp_path).exception, Stopped
    )
    found = specs[0]
    assert (found.num_jobs, found.seed, found.cluster, found.days) == (5, 9, "x", 3.0)
    assert (found.num_nodes, found.num_users, found.samples_days) == (4, 2, 0.0)
    hakaru("demo", "--jobs", 7, "--folder", tmp_path / "demo")
    assert (specs[1].num_jobs, specs[1].cluster) == (7, "demo")


def test_a_part_of_the_paper_s_log_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    claims: Any = [SimpleNamespace(says="users", published="7"),
                   SimpleNamespace(says="jobs in the log", published="1,234")]  # fmt: skip
    assert reproduce._missing(claims, 1234) == []
    assert reproduce._missing(claims, 1233)[0].startswith("this log has 1,233 of 1,234 jobs")
    verdicts = ["same"] * 4 + ["differs"] * 3 + ["known difference"] * 2 + ["not in the log"]
    claim = SimpleNamespace(published="1", where="Table 1", says="jobs")
    judged: Any = [
        SimpleNamespace(verdict=each, computed="2: off", claim=claim) for each in verdicts
    ]
    reproduce._print_table(judged)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "4 the same, 3 different, 2 known to differ, 1 that the log cannot tell"


# ---- advice, replay and what-if


@pytest.mark.parametrize(("text", "part"), [("10%", 0.1), ("0.1", 0.1), ("25 %", 0.25), ("1", 1.0)])
def test_a_part_is_in_percent_only_if_it_says_so(text: str, part: float) -> None:
    assert advise.part_of(text, "--keep") == pytest.approx(part)


def test_what_advice_must_keep() -> None:
    unbounded: Any = advise._loss(None, None, "any")  # type: ignore[arg-type]
    given = {"keep": ("utilisation:5%", "p95-wait"), "account": None, "user": unbounded}
    found = advise._constraints(given)
    assert found.keep == {"utilisation": pytest.approx(0.05), "p95_wait_s": 0.01}
    assert found.loses["user"] == math.inf


def test_settings_are_written_in_their_units() -> None:
    told: Any = SimpleNamespace(machine=SimpleNamespace(num_pes=8), unit="gpu")
    written = [_advice._setting_value(told, name, value) for name, value in (
        ("half_life_h", 48), ("gpus_per_user", 7), ("gpus_per_user", 8), ("age", 1500),
        ("backfill", "easy"),
    )]  # fmt: skip
    assert written == ["2.0 days", "7", "no limit", "1,500", "easy"]


@pytest.mark.parametrize(
    ("part", "text"),
    [(None, "–"), (0.5, "+50.0 %"), (-0.25, "−25.0 %"), (9.5, "+950.0 %"), (10.0, "11 times")],
)
def test_how_far_a_month_is_off(part: float | None, text: str) -> None:
    assert _replay._part(part) == text


def test_marks_are_explained_where_they_stand() -> None:
    columns = [Column("a", ["x ≈", "y"])]
    assert [mark[0] for mark in _whatif._marks(columns)] == ["≈"]
    assert _whatif._marks([Column("a", ["x"])]) == []


def test_options_for_sbatch_are_words_of_python() -> None:
    assert whatif._pair("gpus-per-node=2") == ("gpus_per_node", 2)
    assert whatif._pair("time=1:00") == ("time", "1:00")


def test_a_what_if_is_of_its_period(lake: Lake, tmp_path: Path) -> None:
    put_jobs(lake, [job(1)], '{"gpus_per_node": 2, "nodes": 2}')
    scenario = tmp_path / "s.toml"
    scenario.write_text("[[variant]]\nnodes = 1\n")
    for option in (("--until", "2017-12-31"), ("--since", "2018-01-02")):
        none = hakaru("whatif", scenario, "-w", lake.workspace, *option)
        assert none.exit_code == 1, none.output
