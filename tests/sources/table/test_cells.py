"""Cells of a table: units, words, missing values, durations, and those that cannot be read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hakaru.engine.duckdb import connect
from hakaru.settings import Engine
from hakaru.sources.table._cells import duration_s
from tests.conftest import utc
from tests.sources.table._site import MINIMAL, Site, picked


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
        ('requested_s = "x"\n[values]\nmissing = ["-1"]', "-1", None),
        ('requested_s = { column = "x", missing = ["0"] }\n[values]\nmissing = ["-1"]', "-1", None),
        ('requested_s = { column = "x", missing = ["0"] }\n[values]\nmissing = ["-1"]', "0", None),
        ('memory_mib = "x"', "2048", 2048.0),
        ('memory_mib = { column = "x", unit = "KiB" }', "2048", 2.0),
        ('memory_mib = { column = "x", unit = "TB" }', "1.048576", 1000000.0),
        ('memory_mib = { column = "x", unit = "size" }', "1.5G", 1536.0),
        ('memory_mib = { column = "x", unit = "size" }', "512 MiB", 512.0),
        ('memory_mib = { column = "x", unit = "size" }', "2T", 2097152.0),
        ('memory_mib = { column = "x", unit = "size" }', "512K", 0.5),
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
        ('nodes = "x"', '"n1,,n2,"', ["n1", "n2"]),
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
        (
            'eligible_at = { column = "x", format = "%Y-%m-%d %H:%M %Z" }',
            "2018-04-01 09:05 Asia/Tokyo",
            0,
        ),
        ('eligible_at = { column = "x", unit = "s", missing = ["0"] }', "0", None),
        ('eligible_at = "x"', "Unknown", None),
    ],
)
def test_a_cell(site: Site, entry: str, cell: str, expected: Any) -> None:
    site.read(f"id,at,x\n7,1522540800,{cell}\n", MINIMAL + entry, zone="UTC")
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
        ('num_gpus = "x"', "unlimited", "x: 'unlimited' is not a whole number"),
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
    log = f"id,at,x,y\n{good}7,1522540800,{cell},z\n9,1522540800,,1\n"
    site.read(log, MINIMAL + entry, zone="UTC")
    assert picked(site.jobs(), "job_id") == [("8",), ("9",)]
    ((line, found),) = site.rejects()
    assert line == 3
    assert found.startswith(reason)


@pytest.mark.parametrize(
    ("form", "cell"),
    [("%Y-%m-%d %H:%M %z", "2018-04-01 09:05 +0200"), ("%Y-%m-%d %H:%M %Z", "2018-04-01 09:05 Europe/Paris")],
)  # fmt: skip
def test_a_time_that_says_its_zone_is_not_read_in_that_of_the_log(
    site: Site, form: str, cell: str
) -> None:
    entry = f'eligible_at = {{ column = "x", format = "{form}" }}\n[time]\nzone = "Asia/Tokyo"\n'
    site.read(f"id,at,x\n7,1522540800,{cell}\n", MINIMAL + entry)
    assert picked(site.jobs(), "eligible_at") == [(utc("2018-04-01T07:05:00"),)]


def test_of_two_beginnings_of_a_state_the_longer_counts(site: Site) -> None:
    """Whatever their order in the mapping, and an exact word before both."""
    words = '[states]\n"err*" = "failed"\n"err_mem*" = "out_of_memory"\n"err_memo" = "killed"\n'
    cells = ("err_17", "ERR_MEM_2", "err_memo", "err")
    log = "id,at,x\n" + "".join(f"{i},1522540800,{cell}\n" for i, cell in enumerate(cells))
    site.read(log, MINIMAL + f'state = "x"\n{words}')
    assert picked(site.jobs(), "state") == [
        ("failed",),
        ("out_of_memory",),
        ("killed",),
        ("failed",),
    ]


def test_reasons_that_differ_by_their_values_are_counted_together(site: Site) -> None:
    bad = "".join(f"{i},moment {i}\n" for i in range(50))
    summary = site.read(f"id,at\n99,1522540800\n{bad}", MINIMAL)
    assert summary.rejected_by_reason == {"at: … is not a time (expected s since 1970-01-01)": 50}
    assert summary.first_rejects[0][2].startswith("at: 'moment 0' is not")


@settings(deadline=None)
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


@settings(deadline=None)
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
