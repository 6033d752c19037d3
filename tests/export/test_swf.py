"""The numbers of an SWF file and its header, worked by hand, and what its manifest counts as changed."""

from __future__ import annotations

import json
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import job, utc
from tests.export._roundtrip import Rows, write_rows

MIDNIGHT = utc("2018-01-01T00:00:00")


def swf(tmp_path: Path, rows: Rows, facts: Any = None, **site: Any) -> tuple[list[str], Rows]:
    """The header, and each job's fields by their numbers in the standard."""
    write_rows(rows, "swf", tmp_path / "x.swf", facts, overwrite=True, **site)
    lines = (tmp_path / "x.swf").read_text().splitlines()
    fields = [line.split(" ") for line in lines if not line.startswith(";")]
    assert all(len(cells) == 18 for cells in fields)
    return [line for line in lines if line.startswith(";")], [
        dict(enumerate(cells, 1)) for cells in fields
    ]


def changed(tmp_path: Path, rows: Rows, facts: Any = None, **site: Any) -> dict[str, int]:
    done = write_rows(rows, "swf", tmp_path / "x.swf", facts, overwrite=True, **site)
    found: dict[str, int] = done.manifest["changed"]
    return found


def after(seconds: float, **columns: Any) -> dict[str, Any]:
    """A job submitted so many seconds after midnight, which starts at once."""
    start = MIDNIGHT + timedelta(seconds=seconds)
    times = {"submitted_at": start, "started_at": start, "ended_at": start + timedelta(hours=1)}
    return times | {"wait_s": 0.0} | columns


@pytest.mark.parametrize(
    ("state", "status", "reads_as"),
    [
        ("completed", "1", None),
        ("failed", "0", None),
        ("cancelled", "5", None),
        ("timeout", "0", "failed"),
        ("out_of_memory", "0", "failed"),
        ("node_failed", "0", "failed"),
        ("killed", "5", "cancelled"),
        ("preempted", "5", "cancelled"),
        ("running", "-1", "unknown"),
        ("pending", "-1", "unknown"),
        (None, "-1", None),
    ],
)
def test_each_state_has_its_status(
    state: str | None, status: str, reads_as: str | None, tmp_path: Path
) -> None:
    _, (line,) = swf(tmp_path, [job(1, state=state)])
    assert line[11] == status
    told = {f"state {state} becomes {reads_as}": 1} if reads_as else {}
    assert changed(tmp_path, [job(1, state=state)]) == told


def test_durations_come_from_times_where_they_are_not_recorded(tmp_path: Path) -> None:
    """Recorded ones stay as they are: the second job's differ from its times."""
    rows = [
        job(1, wait_s=None, run_s=None),
        job(2, wait_s=7.0, run_s=40.0),
        job(3, wait_s=None),
        job(4, run_s=None, ended_at=None, state="running"),
        job(5, wait_s=12.0, run_s=3598.0),
    ]
    _, lines = swf(tmp_path, rows)
    assert [(line[3], line[4]) for line in lines] == [
        *(("10", "3600"), ("7", "40"), ("10", "3600"), ("10", "-1"), ("12", "3598")),
    ]
    assert changed(tmp_path, rows) == {
        "state running becomes unknown": 1,
        "the start becomes submit + recorded wait": 2,
        "the end becomes start + recorded run time": 2,
        "an unknown wait becomes start - submit": 2,
        "an unknown run time becomes end - start": 1,
    }


def test_numbers_are_rounded_and_counted(tmp_path: Path) -> None:
    """A submission to the second before it, durations to the nearest; a request is at least 1 s."""
    rows = [
        job(1, **after(0.0)),
        job(2, **after(10.75)),
        job(3, **after(20.0, wait_s=0.75)),
        job(4, **after(30.0, run_s=3600.25)),
        job(5, **after(40.0), requested_s=0.25),
    ]
    _, lines = swf(tmp_path, rows)
    assert [line[2] for line in lines] == ["0", "10", "20", "30", "40"]
    assert (lines[2][3], lines[3][4], lines[4][9]) == ("1", "3600", "1")
    assert changed(tmp_path, rows) == {"times or durations were rounded to whole seconds": 4}


def test_who_never_started(tmp_path: Path) -> None:
    """Cancelled while waiting: how long it waited, no run, no processors; else all is unknown."""
    never: dict[str, Any] = {"started_at": None, "wait_s": None, "run_s": None}
    never |= {"num_gpus": 2, "num_nodes": None}
    gone = never | {"ended_at": utc("2018-01-01T00:05:00")}
    states = ("cancelled", "killed", "preempted", "timeout")
    rows = [job(n, state=state, **gone) for n, state in enumerate(states, 1)]
    rows.append(job(5, state="cancelled", **never, ended_at=None))
    _, lines = swf(tmp_path, rows)
    assert [(line[3], line[4], line[5], line[8]) for line in lines] == [
        *[("300", "0", "0", "2")] * 3,
        *[("-1", "-1", "-1", "2")] * 2,
    ]
    assert changed(tmp_path, rows) == {
        "state killed becomes cancelled": 1,
        "state preempted becomes cancelled": 1,
        "state timeout becomes failed": 1,
        "the end is lost, as they never started and were not cancelled": 1,
    }


def test_cancelled_at_their_start_without_processors(tmp_path: Path) -> None:
    at_once = {"state": "cancelled", "run_s": 0.0, "ended_at": utc("2018-01-01T00:00:10")}
    rows = [
        job(1, **at_once, num_gpus=None),
        job(2, **at_once),
        job(3, **at_once | {"run_s": 1.0, "ended_at": utc("2018-01-01T00:00:11")}, num_gpus=None),
        job(4, **at_once | {"state": "failed"}, num_gpus=None),
    ]
    told = "cancelled at their start with no processors, they read as never started"
    assert changed(tmp_path, rows) == {told: 1}


def test_jobs_whose_nodes_their_size_does_not_tell(tmp_path: Path) -> None:
    """Nodes have four GPUs: four on two nodes and five on one are not what their size says."""
    sizes = [(4, 1), (4, 2), (5, 2), (6, 2), (5, 1), (1, 2), (8, None)]
    rows = [job(n, num_gpus=g, num_nodes=k) for n, (g, k) in enumerate(sizes, 1)]
    told = "whether they span nodes is told from their size, and differs"
    assert changed(tmp_path, rows, {"gpus_per_node": 4}) == {told: 2}
    assert changed(tmp_path, rows) == {told: 5}, "where nobody says how large a node is"


def test_memory_is_in_kilobytes_of_one_processor(tmp_path: Path) -> None:
    """Three GiB over four GPUs; a job without GPUs has no such number."""
    rows = [job(1, num_gpus=4, memory_mib=3072.0), job(2, num_gpus=0, memory_mib=3072.0)]
    _, lines = swf(tmp_path, rows)
    assert [line[10] for line in lines] == ["786432", "-1"]


def test_a_processor_is_what_the_cluster_counts(tmp_path: Path) -> None:
    rows = [job(1, num_gpus=2, num_cpus=48)]
    for unit, size, lost in (("gpu", "2", "num_cpus"), ("cpu", "48", "num_gpus")):
        header, (line,) = swf(tmp_path, rows, unit=unit)
        assert (line[5], line[8]) == (size, size)
        assert f"; Note: a processor (fields 5 and 8) is a {unit.upper()}" in header
        done = write_rows(rows, "swf", tmp_path / "y.swf", unit=unit, overwrite=True)
        assert done.manifest["columns"]["not_in_format"] == {
            "num_nodes": "1 jobs have it",
            lost: "1 jobs have it",
        }


def test_ids_are_kept_where_they_rise(tmp_path: Path) -> None:
    """Of two jobs of one second the smaller id comes first; one id twice, or a word, gives new numbers."""
    for ids, written in [
        (((3, 0), (12, 5)), ["3", "12"]),
        (((12, 0), (3, 0)), ["3", "12"]),
        (((12, 0), (3, 5)), ["1", "2"]),
        (((3, 0), (3, 5)), ["1", "2"]),
        ((("3_1", 0), ("12", 5)), ["1", "2"]),
        ((("0", 0), ("999999999", 5)), ["0", "999999999"]),
        ((("0", 0), ("1000000000", 5)), ["1", "2"]),
    ]:
        rows = [job(id, **after(at)) for id, at in ids]
        _, lines = swf(tmp_path, rows)
        assert [line[1] for line in lines] == written, ids


def test_names_are_numbered_by_first_appearance(tmp_path: Path) -> None:
    """Not by where they stand in the lake; of two at one moment by the name. Unknown stays unknown."""
    rows = [
        job(1, **after(9), user="ann", account="5", application="b"),
        job(2, **after(5), user="zoe", account="7", application="a"),
        job(3, **after(7), user=None, account=None, application=None),
        job(4, **after(5), user="bob", account="5", application="c"),
        job(5, **after(11), user="zoe", account="7", application="b"),
    ]
    _, lines = swf(tmp_path, rows)
    by_submit = {line[2]: [] for line in lines}
    for line in lines:
        by_submit[line[2]].append((line[12], line[13], line[14]))
    assert by_submit == {
        "0": [("2", "7", "1"), ("1", "5", "2")],
        "2": [("-1", "-1", "-1")],
        "4": [("3", "5", "3")],
        "6": [("2", "7", "3")],
    }
    done = write_rows(rows, "swf", tmp_path / "y.swf")
    assert done.manifest["columns"]["replaced"] == {
        "job_id": "numbered from 1, by time of submission",
        "user": "numbered from 1, by first appearance",
        "application": "numbered from 1, by first appearance",
    }


def test_queues_keep_their_numbers_and_names(tmp_path: Path) -> None:
    names = ["2", "0", "b'ig", "small  one", "x - y", "007", None]
    header, lines = swf(tmp_path, [job(n, queue=name) for n, name in enumerate(names, 1)])
    assert [line[15] for line in lines] == ["2", "0", "3", "4", "5", "1", "-1"]
    assert [line for line in header if "Queue" in line] == [
        "; MaxQueues: 6",
        "; Queue: 1 007",
        "; Queue: 3 b'ig",
        "; Queue: 4 - small one",
        "; Queue: 5 x-y",
    ]


def test_the_header(tmp_path: Path) -> None:
    """On the site's clock, half an hour off; the last to end is not the last to be submitted."""
    facts = {
        "zone": "Asia/Kolkata",
        "working_hours": [8, 17],
        "nodes": [{"count": 5}, {"since": "2018-01-01", "count": 3}],
        "gpus_per_node": 4,
        "cpus_per_node": 48,
        "gpus": [{"count": 19}, {"since": "2018-01-01", "count": 11}],
        "cpus": 230,
        "queues": {"normal": {"max_walltime_h": 2, "max_gpus": 4}, "long": {}},
    }
    rows = [job(1, **after(0.5), queue="long"), job(2, **after(60) | {"ended_at": None})]
    rows.append(job(3, **after(60) | {"ended_at": None}))
    header, _ = swf(tmp_path, rows, facts, synthetic=True)
    note = header.pop(-2)
    assert header == [
        "; Version: 2.2",
        "; Installation: c",
        f"; Conversion: hakaru {version('hakaru')}",
        "; MaxJobs: 3",
        "; MaxRecords: 3",
        "; UnixStartTime: 1514764800",
        "; TimeZoneString: Asia/Kolkata",
        "; StartTime: Mon Jan 01 05:30:00 IST 2018",
        "; EndTime: Mon Jan 01 06:30:00 IST 2018",
        "; MaxNodes: 5",
        "; MaxProcs: 19",
        "; MaxQueues: 2",
        "; Queue: 1 long",
        "; Queue: 2 normal",
        "; Note: a processor (fields 5 and 8) is a GPU",
        "; Note: status 0 and 5 also stand for timeout (0), out_of_memory (0), node_failed (0), "
        "killed (5), preempted (5)",
        "; Note: synthetic: generated data, not the log of a machine",
        ";",
    ]
    assert note.startswith("; Note: hakaru.facts ")
    assert json.loads(note.removeprefix("; Note: hakaru.facts ")) == {
        "zone": "Asia/Kolkata",
        "unit": "cpu",
        "cpus_per_node": 4,
        "cpus": [{"count": 19}, {"since": "2018-01-01T00:00:00+05:30", "count": 11}],
        "working_hours": [8, 17],
        "nodes": [{"count": 5}, {"since": "2018-01-01T00:00:00+05:30", "count": 3}],
        "queues": {"normal": {"max_walltime_h": 2.0, "max_gpus": 4}, "long": {}},
    }


@pytest.mark.parametrize(("logs", "joined"), [("a", False), ("ab", True)])
def test_users_of_several_logs_are_marked_in_the_header(
    logs: str, joined: bool, tmp_path: Path
) -> None:
    rows = [job(f"{log}/{n}", user=f"{log}/0") for log in logs for n in (1, 2)]
    header, _ = swf(tmp_path, rows)
    assert ('"users_per_file": true' in header[-2]) is joined
