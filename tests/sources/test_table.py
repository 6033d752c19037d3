"""The table source: mappings, cells, quoted fields, Hakaru's own Parquet, and what `guess` proposes."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakaru.engine.duckdb import connect
from hakaru.errors import HakaruError, SettingsError, SourceError
from hakaru.lake import Lake
from hakaru.schema import JOBS, REJECTS, Table
from hakaru.settings import Engine
from hakaru.settings import parse as parse_settings
from hakaru.sources._base import detect
from hakaru.sources.ingest import Summary, ingest
from hakaru.sources.table import guess
from hakaru.sources.table._cells import duration_s
from tests.conftest import job, utc

DATA = Path(__file__).resolve().parents[1] / "data"
MINIMAL = '[columns]\njob_id = "id"\nsubmitted_at = { column = "at", unit = "s" }\n'


class Site:
    """A folder with a lake, in which a test writes a log and its mapping, and reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = Lake.create(folder / "workspace")

    def read(self, log: str | bytes | Path, mapping: str | Path | None, **options: Any) -> Summary:
        path = log if isinstance(log, Path) else self.folder / "log.csv"
        if not isinstance(log, Path):
            path.write_bytes(log if isinstance(log, bytes) else log.encode())
        return self._ingest(path, mapping, options)

    def _ingest(self, path: Path, mapping: str | Path | None, options: dict[str, Any]) -> Summary:
        if isinstance(mapping, str):
            (self.folder / "mapping.toml").write_text(mapping)
            mapping = self.folder / "mapping.toml"
        options = {"mapping": mapping, **options}
        return ingest(self.lake, [path], "c", format="table", options=options)

    def jobs(self) -> list[dict[str, Any]]:
        return self._rows(JOBS)

    def rejects(self) -> list[tuple[int, str]]:
        return [(row["line"], row["reason"]) for row in self._rows(REJECTS)]

    def _rows(self, table: Table) -> list[dict[str, Any]]:
        con = connect(Engine())
        rows: list[dict[str, Any]] = self.lake.read(con, table).to_pylist()
        con.close()
        return sorted(rows, key=lambda row: (row.get("line", 0), row.get("job_id", "")))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def picked(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


# ---- a whole log, worked by hand


def test_a_home_made_log(site: Site) -> None:
    summary = site.read(DATA / "table" / "home-made.csv", DATA / "table" / "home-made.toml")
    assert (summary.num_read, summary.num_rejected) == (5, 0)
    jobs = site.jobs()
    assert picked(jobs, "job_id", "user", "state", "num_nodes", "num_gpus", "requested_s") == [
        ("101", "ann", "completed", 1, 1, 7200.0),
        ("102", "bob", "timeout", 2, 8, 86400.0),
        ("103", "chu, lab", "completed", 1, 0, None),
        ("104", "ann", "cancelled", 1, 8, 43200.0),
        ("105", "bob", "running", 1, 2, 3600.0),
    ]
    assert picked(jobs, "submitted_at", "started_at", "wait_s", "run_s") == [
        (utc("2019-04-01T00:00:00"), utc("2019-04-01T00:00:10"), 10.0, 3600.0),
        (utc("2019-04-01T03:30:00"), utc("2019-04-01T04:00:00"), 1800.0, 86400.0),
        (utc("2019-04-01T15:00:00"), utc("2019-04-01T15:00:00"), 0.0, 1800.0),
        (utc("2019-04-01T23:00:00"), None, None, None),
        (utc("2019-04-03T14:59:59"), utc("2019-04-03T15:00:01"), 2.0, None),
    ]
    # 16 GB are 16e9 bytes, and a MiB is 1,048,576
    assert [row["memory_mib"] for row in jobs] == pytest.approx(
        [15258.7890625, 61035.15625, 7629.39453125, 122070.3125, None]
    )


def test_the_cluster_facts_are_settings(site: Site) -> None:
    site.read(DATA / "table" / "home-made.csv", DATA / "table" / "home-made.toml")
    facts = site.lake.facts()
    assert facts["c"]["zone"] == "Asia/Tokyo"  # the times' zone is the site's
    cluster = parse_settings({}, facts, "").cluster("c")
    assert (cluster.gpus_per_node, cluster.nodes[0].count) == (8, 4)
    assert cluster.nodes[0].since == datetime.fromisoformat("2019-01-01T00:00:00+09:00")


def test_aaic_through_a_mapping_is_aaic(aaic_files: list[Path], site: Site, tmp_path: Path) -> None:
    path = aaic_files[-1]
    other = Lake.create(tmp_path / "aaic")
    ingest(other, [path], "c", format="aaic")
    summary = site.read(path, DATA / "table" / "aaic.toml")
    assert summary.num_rejected == 0
    con = connect(Engine())
    con.register("by_aaic", other.read(con, JOBS))
    con.register("by_table", site.lake.read(con, JOBS))
    ours = "SELECT * REPLACE (split_part(job_id, '/', 2) AS job_id, "
    ours += "split_part(\"user\", '/', 2) AS \"user\", split_part(account, '/', 2) AS account)"
    (counts,) = con.execute(
        f"""SELECT (SELECT count(*) FROM by_table), (SELECT count(*) FROM by_aaic),
            (SELECT count(*) FROM ({ours} FROM by_aaic EXCEPT ALL SELECT * FROM by_table))"""
    ).fetchall()
    assert counts[0] > 50_000
    assert counts == (counts[0], counts[0], 0)


# ---- cells


@pytest.mark.parametrize(
    ("entry", "cell", "expected"),
    [
        ('run_s = "x"', "90", 90.0),
        ('run_s = { column = "x", unit = "ms" }', "1500", 1.5),
        ('run_s = { column = "x", unit = "min" }', "1.5", 90.0),
        ('run_s = { column = "x", unit = "d" }', "2", 172800.0),
        ('run_s = { column = "x", unit = "duration" }', "1-02:03:04.5", 93784.5),
        ('run_s = { column = "x", unit = "duration" }', '"2 days, 1:00:00"', 176400.0),
        ('requested_s = "x"', "UNLIMITED", None),
        ('requested_s = { column = "x", missing = ["-1"] }', "-1", None),
        ('memory_mib = "x"', "2048", 2048.0),
        ('memory_mib = { column = "x", unit = "KiB" }', "2048", 2.0),
        ('memory_mib = { column = "x", unit = "TB" }', "1.048576", 1000000.0),
        ('memory_mib = { column = "x", unit = "size" }', "1.5G", 1536.0),
        ('memory_mib = { column = "x", unit = "size" }', "512 MiB", 512.0),
        ('memory_mib = { column = "x", unit = "GiB", times = 4 }', "2", 8192.0),
        ('num_gpus = "x"', "4.0", 4),
        ('num_gpus = "x"', "N/A", None),
        ('num_gpus = { column = "x", times = 8 }', "3", 24),
        ("num_gpus = { value = 2 }", "", 2),
        ('gpu_model = { value = "P100" }', "", "P100"),
        ('exit_code = "x"', "-9", -9),
        ('user = "x"', "None", "None"),
        ('user = { column = "x", missing = ["nobody"] }', "Nobody", None),
        ('queue = { column = "x", words = { 0 = "normal" } }', "0", "normal"),
        ('queue = { column = "x", words = { 0 = "normal" } }', "1", "1"),
        ('account = { column = ["x", "id"] }', "lab", "lab.7"),
        ('nodes = "x"', '"n1, n2"', ["n1", "n2"]),
        ('nodes = { column = "x", separator = "+" }', "n1+n2", ["n1", "n2"]),
        ('nodes = "x"', "\"['n1', 'n2']\"", ["n1", "n2"]),
        ('nodes = "x"', "", None),
        ('state = "x"', "Completed", "completed"),
        ('state = "x"', "", None),
        ('eligible_at = "x"', "2018-04-01T09:00:00+09:00", utc("2018-04-01T00:00:00")),
        ('eligible_at = "x"', "2018-04-01 09:00:00.25Z", utc("2018-04-01T09:00:00.250000")),
        ('eligible_at = "x"', "2018-04-01", utc("2018-04-01T00:00:00")),
        ('eligible_at = { column = "x", unit = "ms" }', "1522540800500", "2018-04-01T00:00:00.5"),
        ('eligible_at = { column = "x", format = "%d.%m.%Y %H:%M" }', "1.4.2018 9:05", 9),
        (
            'eligible_at = { column = "x", format = "%d %b %Y %H:%M %z" }',
            "1 Apr 2018 9:05 +0900",
            0,
        ),
        ('eligible_at = { column = "x", unit = "s", missing = ["0"] }', "0", None),
        ('eligible_at = "x"', "Unknown", None),
    ],
)
def test_a_cell(site: Site, entry: str, cell: str, expected: Any) -> None:
    site.read(f"id,at,x\n7,1522540800,{cell}\n", MINIMAL + entry)
    (row,) = site.jobs()
    found = row[entry.split()[0]]
    if isinstance(found, datetime) and isinstance(expected, int):
        expected = utc(f"2018-04-01T{expected:02}:05:00")
    elif isinstance(expected, str) and isinstance(found, datetime):
        expected = utc(expected)
    assert found == expected


@pytest.mark.parametrize(
    ("entry", "cell", "reason"),
    [
        ('started_at = "x"', "abc", "x: 'abc' is not a time (expected ISO 8601 such as"),
        ('started_at = "x"', "infinity", "x: 'infinity' is not a time (expected ISO"),
        ('started_at = "x"', "2018-02-30", "x: '2018-02-30' is not a time"),
        (
            'started_at = { column = "x", format = "%Y/%m/%d %H:%M" }',
            "2018-04-01 09:00",
            "x: '2018-04-01 09:00' is not a time (expected %Y/%m/%d %H:%M)",
        ),
        (
            'started_at = { column = "x", unit = "s" }',
            "1522540800500",
            "x: '1522540800500' is not a time (expected s since 1970-01-01)",
        ),
        ('num_gpus = "x"', "1.5", "x: '1.5' is not a whole number"),
        ('num_gpus = "x"', "four", "x: 'four' is not a whole number"),
        ('num_gpus = { column = "x", times = "y" }', "1", "y: 'z' is not a number"),
        ('num_gpus = { column = "id", times = "x" }', "0.1", "id: '7' is not a whole number"),
        ('run_s = "x"', "inf", "x: 'inf' is not a number (expected a duration in s)"),
        (
            'run_s = { column = "x", unit = "duration" }',
            "01:60:00",
            "x: '01:60:00' is not a duration (expected [D-]HH:MM:SS)",
        ),
        ('memory_mib = "x"', "-1", "x: '-1' is not an amount of memory (expected a number in MiB)"),
        ('memory_mib = { column = "x", unit = "size" }', "64", "x: '64' is not a size"),
        (
            'state = "x"',
            "It's odd",
            "x: 'It's odd' is an unknown state; map it under [states], e.g. \"It's odd\" = \"failed\"",
        ),
        ('started_at = "x"', "2018-03-31", "it starts before it is submitted"),
        ('requested_s = "x"', "-1", "the requested walltime is not above 0"),
    ],
)
def test_a_cell_that_cannot_be_read(site: Site, entry: str, cell: str, reason: str) -> None:
    good = "8,1522540800,,1\n"
    site.read(f"id,at,x,y\n{good}7,1522540800,{cell},z\n9,1522540800,,1\n", MINIMAL + entry)
    assert picked(site.jobs(), "job_id") == [("8",), ("9",)]
    ((line, found),) = site.rejects()
    assert line == 3
    assert found.startswith(reason)


def test_reasons_that_differ_by_their_values_are_counted_together(site: Site) -> None:
    bad = "".join(f"{i},moment {i}\n" for i in range(50))
    summary = site.read(f"id,at\n99,1522540800\n{bad}", MINIMAL)
    assert summary.rejected_by_reason == {"at: … is not a time (expected s since 1970-01-01)": 50}
    assert summary.first_rejects[0][2].startswith("at: 'moment 0' is not")


@given(
    days=st.integers(0, 400),
    hours=st.integers(0, 23),
    minutes=st.integers(0, 59),
    seconds=st.integers(0, 59),
)
def test_a_duration_is_the_seconds_it_says(
    days: int, hours: int, minutes: int, seconds: int
) -> None:
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    clock = f"{minutes:02}:{seconds:02}"
    forms = [f"{days}-{hours:02}:{clock}", f"{days * 24 + hours}:{clock}"]
    forms.append(f"{days} day{'s' * (days != 1)}, {hours}:{clock}")
    assert _durations(forms) == [float(total)] * 3


@given(st.text(alphabet="0123456789:-. day", max_size=12))
def test_what_is_no_duration_is_none(text: str) -> None:
    (found,) = _durations([text])
    if found is not None:
        clock = text.split("-")[-1].split(" ")[-1].split(":")
        assert len(clock) == 3
        assert float(clock[1]) < 60
        assert float(clock[2]) < 60
        assert found >= float(clock[0]) * 3600


CON = connect(Engine())


def _durations(texts: list[str]) -> list[float | None]:
    rows = CON.execute(f"SELECT {duration_s('x')} FROM (SELECT unnest(?) AS x)", [texts]).fetchall()
    return [row[0] for row in rows]


# ---- times that follow from others


def test_without_a_submission_the_wait_is_unknown(site: Site) -> None:
    mapping = '[columns]\njob_id = "id"\nstarted_at = "at"\nrun_s = "run"\n'
    site.read("id,at,run\n1,2018-04-01,60\n", mapping)
    (row,) = site.jobs()
    assert (row["submitted_at"], row["wait_s"]) == (utc("2018-04-01T00:00:00"), None)
    assert (row["run_s"], row["ended_at"]) == (60.0, utc("2018-04-01T00:01:00"))
    assert row["state"] is None


def test_the_start_follows_from_the_wait_and_a_running_job_has_no_end(site: Site) -> None:
    mapping = MINIMAL + 'wait_s = "w"\nrun_s = "r"\nstate = "s"\n'
    site.read("id,at,w,r,s\n1,1522540800,10,5,running\n2,1522540800,10,5,failed\n", mapping)
    assert picked(site.jobs(), "started_at", "ended_at", "run_s") == [
        (utc("2018-04-01T00:00:10"), None, 5.0),
        (utc("2018-04-01T00:00:10"), utc("2018-04-01T00:00:15"), 5.0),
    ]


def test_a_recorded_run_time_is_kept_and_a_missing_one_derived(site: Site) -> None:
    mapping = MINIMAL + (
        'started_at = { column = "at", unit = "s" }\n'
        'ended_at = { column = "end", unit = "s" }\nrun_s = "run"\n'
    )
    site.read("id,at,end,run\n1,1522540800,1522540860,42\n2,1522540800,1522540860,\n", mapping)
    assert picked(site.jobs(), "run_s", "wait_s") == [(42.0, 0.0), (60.0, 0.0)]


def test_a_job_without_an_id_is_known_by_its_line(site: Site) -> None:
    site.read("at\n1522540800\n\n1522540801\n", MINIMAL.replace('"id"', "{ line = true }"))
    assert picked(site.jobs(), "job_id") == [("log/2",), ("log/4",)]


def test_a_date_and_a_clock_in_two_columns(site: Site) -> None:
    mapping = '[columns]\njob_id = "id"\nsubmitted_at = { column = ["day", "clock"] }\n'
    mapping += 'started_at = { column = ["day2", "clock2"] }\n[time]\nzone = "Asia/Tokyo"\n'
    site.read("id,day,clock,day2,clock2\n1,2018-04-01,09:00:00,-,-\n", mapping)
    assert picked(site.jobs(), "submitted_at", "started_at") == [(utc("2018-04-01T00:00:00"), None)]


def test_the_zone_option_wins(site: Site) -> None:
    mapping = '[columns]\njob_id = "id"\nsubmitted_at = "at"\n[time]\nzone = "UTC"\n'
    site.read("id,at\n1,2018-04-01 09:00\n", mapping, zone="Asia/Tokyo")
    assert picked(site.jobs(), "submitted_at") == [(utc("2018-04-01T00:00:00"),)]


# ---- the layout of text files


def test_lines_are_exact_among_quoted_newlines_blanks_and_faults(site: Site) -> None:
    log = (
        "id,at,name\n"
        '1,1522540800,"two\n\nlines, ""quoted"""\n'  # lines 2 to 4
        "\n"
        "2,1522540800\n"  # line 6: a cell is missing
        '3,1522540800,"open\n'  # line 7: a quote that never closes
        "4,x,bad time\n"  # line 8
        "5,1522540800,\n"
        '6,1522540800,5" disk\n'
        '7,1522540800,"shut"up\n'  # line 11
        "8,1522540800,good\n"
    )
    site.read(log, MINIMAL + 'name = "name"\n')
    assert picked(site.jobs(), "job_id", "name") == [
        ("1", 'two\n\nlines, "quoted"'),
        ("5", None),
        ("6", '5" disk'),
        ("8", "good"),
    ]
    quotes = "a quote is not closed, or text stands beside it"
    assert site.rejects() == [
        (6, "expected 3 columns, found 2"),
        (7, quotes),
        (8, "at: 'x' is not a time (expected s since 1970-01-01)"),
        (11, quotes),
    ]


def test_other_layouts(site: Site) -> None:
    log = "made by hand\n# who knows\n1;'a;b';1522540800\n# done\n;;\n"
    section = "[csv]\ndelimiter = ';'\nquote = \"'\"\nskip = 1\ncomment = '#'\n"
    site.read(log, MINIMAL + 'user = "u"\n' + section + 'names = ["id", "u", "at"]\n')
    assert picked(site.jobs(), "job_id", "user") == [("1", "a;b")]
    assert site.rejects() == []


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(site: Site, delimiter: str) -> None:
    rows = [["id", "at", "who, what"], ["1", "1522540800", '"x"']]
    log = "\n".join(delimiter.join(row) for row in rows).replace("who, what", '"who, what"')
    site.read(log, MINIMAL + 'user = "who, what"\n')
    assert picked(site.jobs(), "job_id", "user") == [("1", "x")]


# ---- mappings that are wrong


def test_every_problem_of_a_mapping_is_told_at_once(site: Site) -> None:
    mapping = """
        [columns]
        jobid = "id"
        user = "ownr"
        num_gpus = { column = "gpus", unit = "h" }
        requested_s = { column = "limit", unit = "hours" }
        ended_at = { column = "at", format = "%Q" }
        queue = { value = 3 }
        memory_mib = 5
        cluster = "id"
        [states]
        done = "complete"
        [time]
        zone = "Tokyo"
        [csv]
        delimiter = ";;"
        [cluster]
        gpus_per_node = 0
        [extra]
    """
    with pytest.raises(SettingsError) as caught:
        site.read("id,at,owner,gpus,limit\n", mapping)
    told = str(caught.value)
    assert "mapping.toml (for log.csv) has 15 problem(s)" in told
    for problem in (
        "[columns] jobid: there is no canonical column 'jobid'; did you mean 'job_id'",
        "[columns] user: there is no source column 'ownr'; did you mean 'owner'",
        "known: id, at, owner, gpus, limit",
        "[columns] num_gpus: there is no key 'unit'; ",
        "[columns] requested_s: unknown unit 'hours'; known: ms, s, min, h, d, duration",
        "[columns] ended_at: format %Q in '%Q' is not known; write e.g. %Y/%m/%d",
        "[columns] queue: value: expected a text, found 3",
        '[columns] memory_mib: expected "column" or { column = … }, found 5',
        "[columns] cluster: the cluster's name is given by --cluster",
        "[columns] job_id: missing; ",
        "[columns] submitted_at: missing; ",
        "[states]: no column holds the state",
        "[time] zone: expected e.g. \"Asia/Tokyo\", found 'Tokyo'",
        "[csv] delimiter: expected one character, found ';;'",
        "[cluster] gpus_per_node: expected a whole number of at least 1, found 0",
        "[extra]: unknown section; known: columns, time",
    ):
        assert problem in told
    assert site.lake.status()[0].num_rows == 0


@pytest.mark.parametrize(
    ("addition", "problem"),
    [
        (
            'state = "x"\n[states]\ndone = "complete"',
            "no state 'complete'; did you mean 'completed'",
        ),
        ('state = "x"\n[states]\nok = "failed"\nOK = "completed"', "OK: given twice"),
        ('state = { value = "done" }', "no state 'done'"),
        ('user = { column = "x", value = "me" }', "either `column` or a constant `value`"),
        ("user = {}", "either `column` or a constant `value`"),
        ('num_gpus = { column = ["x", "id"] }', "expected the name of one column"),
        ('num_gpus = { column = "x", times = "nope" }', "times: there is no source column 'nope'"),
        ('num_gpus = { column = "x", times = 0 }', "times: expected a column or a number, found 0"),
        ('num_gpus = { value = "two" }', "value: expected a whole number"),
        ('run_s = { value = "long" }', "value: expected a number"),
        ("user = { line = true }", "there is no key 'line'"),
        ('ended_at = { column = "x", unit = "s", format = "%Y" }', "not both"),
        ('ended_at = { column = "x", unit = "min" }', "unknown unit 'min'; known: s, ms, us, ns"),
        ('nodes = { column = "x", separator = "" }', "separator: expected a text"),
        ('queue = { column = "x", words = [1] }', "words: expected"),
        ('queue = { column = "x", missing = "-1" }', "missing: expected words"),
        ('user = "twin"', "2 columns of the file are called 'twin'"),
        ("[values]\nmissing = 3", "[values]: missing: expected words"),
        ("[time]\nzones = 1", "[time] zones: there is no key 'zones'; did you mean 'zone'"),
        ("[csv]\nskip = -1", "[csv] skip: expected a number of lines"),
        ("[csv]\nnames = 'a'", "[csv] names: expected a list of column names"),
    ],
)
def test_a_problem_of_a_mapping(site: Site, addition: str, problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        site.read("id,at,x,twin,twin\n1,2,3,4,5\n", MINIMAL + addition)
    assert "has 1 problem(s)" in str(caught.value)
    assert problem in str(caught.value)


def test_a_mapping_that_is_no_toml_or_no_file(site: Site, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"mapping\.toml: the mapping is not valid TOML"):
        site.read("id,at\n1,2\n", "[columns\n")
    with pytest.raises(SettingsError, match=r"none\.toml: the mapping cannot be read: No such"):
        site.read("id,at\n1,2\n", tmp_path / "none.toml")


def test_a_log_without_a_mapping_says_how_to_get_one(site: Site) -> None:
    with pytest.raises(SourceError, match="needs a mapping") as caught:
        site.read("id,at\n1,2\n", None)
    assert "--format table --guess" in str(caught.value)


# ---- Hakaru's own columns


def full_job(number: int, **changes: Any) -> dict[str, Any]:
    """A job that knows every column; two lists, a fraction of a second and a name with spaces."""
    known: dict[str, Any] = {
        "array_id": "7",
        "qos": "high",
        "name": " two words ",
        "application": "pytorch",
        "modules": ["cuda/12.4", "python, 3"],
        "exit_code": 137,
        "gpu_model": "A100",
        "num_cpus": 16,
        "memory_mib": 1024.125,
        "eligible_at": utc("2018-01-01T00:00:01.234567"),
        "nodes": ["n1", "n2"],
        "gpu_ids": ["n1:0"],
    }
    return job(number, **(known | changes))


def export(path: Path, rows: list[dict[str, Any]], metadata: dict[str, str] | None = None) -> Path:
    schema = JOBS.arrow().with_metadata(metadata or {})
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return path


def test_our_own_parquet_comes_back_as_it_was(site: Site, tmp_path: Path) -> None:
    unknown = dict.fromkeys(JOBS.names) | {"cluster": "c", "job_id": "3"}
    rows = [
        full_job(1),
        # recorded, not derived: the export's nulls stay null
        full_job(2, run_s=None, wait_s=None, modules=[]),
        unknown | {"submitted_at": utc("2018-01-02T00:00:00.000001")},
    ]
    path = export(tmp_path / "jobs.parquet", rows)
    assert detect(path).id == "table"
    summary = ingest(site.lake, [path], "c")
    assert summary.num_rejected == 0
    assert site.jobs() == rows


def test_the_footer_says_synthetic_and_facts(site: Site, tmp_path: Path) -> None:
    facts = {"zone": "Asia/Tokyo", "gpus_per_node": 8}
    footer = {"hakaru.synthetic": "true", "hakaru.facts": json.dumps(facts)}
    ingest(site.lake, [export(tmp_path / "jobs.parquet", [full_job(1)], footer)], "c")
    assert site.lake.synthetic_clusters() == {"c"}
    assert site.lake.facts()["c"] == facts


def test_a_footer_with_broken_facts(site: Site, tmp_path: Path) -> None:
    path = export(tmp_path / "jobs.parquet", [full_job(1)], {"hakaru.facts": "[1]"})
    with pytest.raises(SourceError, match=r"hakaru\.facts is not a JSON object: '\[1\]'"):
        ingest(site.lake, [path], "c")


def test_a_bad_row_of_parquet_has_its_number(site: Site, tmp_path: Path) -> None:
    path = export(tmp_path / "jobs.parquet", [full_job(1), full_job(2, state="odd")])
    ingest(site.lake, [path], "c")
    ((line, reason),) = site.rejects()
    assert (line, reason[:28]) == (2, "state: 'odd' is an unknown s")


def test_jobs_of_two_clusters_are_not_mixed(site: Site, tmp_path: Path) -> None:
    path = export(tmp_path / "jobs.parquet", [full_job(1), full_job(1, cluster="d")])
    with pytest.raises(SourceError, match=r"jobs of several clusters \(c, d\)"):
        ingest(site.lake, [path], "c")


def test_a_broken_parquet_file_is_named(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(SourceError, match=r"jobs\.parquet: is not a readable Parquet file"):
        ingest(site.lake, [path], "c")


def test_foreign_parquet_is_not_recognised_but_can_be_mapped(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "foreign.parquet"
    moments = [datetime(2018, 4, 1, 9), None]
    table = pa.table(
        {
            "id": pa.array([1.0, 2.0]),  # what pandas makes of whole numbers with gaps
            "at": pa.array([1522540800, 1522540801]),
            "begun": pa.array(moments, pa.timestamp("ms")),
            "gpus": pa.array([float("nan"), 8.0]),
            "hosts": pa.array([["a", "b"], None]),
            "left": pa.array([-1, 60], pa.int32()),
        }
    )
    pq.write_table(table, path)
    with pytest.raises(SourceError, match="the format is not known"):
        detect(path)
    mapping = MINIMAL + 'started_at = "begun"\nnum_gpus = "gpus"\nnodes = "hosts"\n'
    mapping += 'requested_s = { column = "left", unit = "min", missing = ["-1"] }\n'
    site.read(path, mapping + '[time]\nzone = "Asia/Tokyo"\n')
    assert site.rejects() == []
    names = ("job_id", "started_at", "num_gpus", "nodes", "requested_s")
    assert picked(site.jobs(), *names) == [
        ("1", utc("2018-04-01T00:00:00"), None, ["a", "b"], None),
        ("2", None, 8, None, 3600.0),
    ]


def test_a_csv_with_our_columns_maps_itself(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text('job_id,submitted_at,state,nodes\n1,2018-04-01T00:00:00Z,failed,"a,b"\n')
    assert detect(path).id == "table"
    ingest(site.lake, [path], "c")
    names = ("job_id", "submitted_at", "state", "nodes")
    assert picked(site.jobs(), *names) == [("1", utc("2018-04-01T00:00:00"), "failed", ["a", "b"])]


# ---- guessing


def read_as_guessed(site: Site, path: Path) -> list[dict[str, Any]]:
    summary = site.read(path, guess(path))
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
    assert "put the site's zone here" in guess(DATA / "table" / "excel.csv")


def test_what_cannot_be_placed_is_listed(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("when,status,colour\n2018-04-01,7,red\n2018-04-02,7,blue\n2018-04-03,8,\n")
    lines = guess(log).splitlines()
    assert (
        "job_id = { line = true }  # no column of ids was found: the line's number stands for it"
        in (lines)
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
        ("start,end,walltime_h", "100,1900,7\n200,9200,7", 'run_s = { column = "walltime_h", unit = "h" }'),
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
