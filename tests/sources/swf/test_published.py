"""The published logs: counts as in their headers, sums by awk over the files."""

from __future__ import annotations

from pathlib import Path

from hakaru.analyses import Selection, load_all, open_session
from hakaru.engine.duckdb import connect, one_row
from hakaru.lake import Lake
from hakaru.settings import Engine, load
from hakaru.sources._base import lines
from hakaru.sources.ingest import ingest
from tests.conftest import utc
from tests.sources.swf._log import jobs_of, view_of


def test_ricc(shared: Path, lake: Lake) -> None:
    path = shared / "data" / "swf" / "RICC-2010-2.swf.gz"
    summary = ingest(lake, [path], "ricc")
    assert (summary.num_read, summary.num_rejected) == (447_794, 0)
    con = view_of(lake)
    assert one_row(con, "SELECT count(*) FROM jobs WHERE state = 'completed'") == (431_549,)
    assert one_row(con, "SELECT count(*) FROM jobs WHERE state = 'cancelled'") == (16_245,)
    assert one_row(con, "SELECT count(*) FROM jobs WHERE requested_s IS NULL") == (2,)
    assert one_row(con, "SELECT count(*) FROM jobs WHERE wait_s = 0") == (192_359,)
    assert one_row(con, "SELECT sum(run_s), max(num_cpus) FROM jobs") == (5_305_148_426, 8192)
    assert one_row(con, "SELECT list_sort(list(DISTINCT queue)) FROM jobs") == (["1", "2"],)
    assert summary.since == utc("2010-04-30T15:04:55")  # StartTime: Sat May 01 00:04:55 JST 2010
    cluster = load(lake.workspace, lake.facts()).cluster("ricc")
    assert (cluster.zone, cluster.cpus_per_node, cluster.nodes[0].count) == ("Asia/Tokyo", 8, 1024)


def test_lines_are_numbered_in_the_order_of_the_file(shared: Path) -> None:
    """RICC's job 1 stands on line 21, and its ids rise by one."""
    path = shared / "data" / "swf" / "RICC-2010-2.swf.gz"
    job = "CAST(string_split(trim(_text), ' ')[1] AS INTEGER)"
    odd = f"SELECT count(*) FROM ({lines(path)}) WHERE _line > 20 AND {job} <> _line - 20"
    assert one_row(connect(Engine()), odd) == (0,)


def test_nasa_knows_neither_waits_nor_ends(shared: Path, lake: Lake) -> None:
    path = shared / "data" / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz"
    summary = ingest(lake, [path], "nasa")
    assert (summary.num_read, summary.num_rejected) == (18_239, 0)
    con = view_of(lake)
    unknown = "count(wait_s), count(started_at), count(ended_at), count(requested_s), count(state)"
    assert one_row(con, f"SELECT {unknown} FROM jobs") == (0, 0, 0, 0, 0)
    assert one_row(con, "SELECT sum(run_s), count(run_s) FROM jobs") == (13_950_781, 18_239)
    assert summary.since == utc("1993-10-01T07:00:03")  # StartTime: Fri Oct 01 00:00:03 PDT 1993
    with open_session(lake) as session:
        completed = session.run(load_all().get("walltime"), Selection(min_run_s=0))
        any_state = session.run(load_all().get("walltime"), Selection(min_run_s=0, states=("any",)))
    left_out = {entry.rule: entry.num_jobs for entry in completed.left_out}
    assert (completed.num_used, left_out["that are completed"]) == (0, 18_239)
    assert any_state.num_used == 18_239


def test_gaia(shared: Path, lake: Lake) -> None:
    """Its 127 lines of status 2 are each a job's only line: kept, their end unknown."""
    path = shared / "data" / "swf" / "UniLu-Gaia-2014-2.swf.gz"
    summary = ingest(lake, [path], "gaia")
    assert (summary.num_read, summary.num_rejected) == (51_987, 0)
    con = view_of(lake)
    assert con.execute("SELECT state, count(*) FROM jobs GROUP BY 1 ORDER BY 2").fetchall() == [
        (None, 127),
        ("failed", 10_592),
        ("completed", 41_268),
    ]
    assert one_row(con, "SELECT count(*) FROM jobs WHERE run_s IS NULL") == (28,)
    assert con.execute("SELECT queue, count(*) FROM jobs GROUP BY 1 ORDER BY 1").fetchall() == [
        ("besteffort", 14_915),
        ("default", 35_222),
        ("interactive", 1_850),
    ]


def test_kth_counts_from_the_epoch(shared: Path, lake: Lake) -> None:
    summary = ingest(lake, [shared / "data" / "schedules" / "kth-100.swf.gz"], "kth")
    assert (summary.num_read, summary.num_rejected) == (28_481, 0)
    assert summary.since == utc("1970-01-01T00:00:00")
    facts = {"unit": "cpu", "nodes": 100, "cpus_per_node": 1, "relative_dates": True}
    assert lake.facts() == {"kth": facts}
    assert jobs_of(lake)[0]["run_s"] == 97_225.0
