"""The layout of text files, and tables with Hakaru's own columns."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hakaru.errors import SourceError
from hakaru.schema import JOBS
from hakaru.sources._base import detect
from hakaru.sources.ingest import ingest
from tests.conftest import job, utc
from tests.sources.table._site import MINIMAL, Site, picked


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


def test_parquet_is_known_by_its_first_bytes(site: Site, tmp_path: Path) -> None:
    path = export(tmp_path / "jobs.parquet", [full_job(1), full_job(2)])
    other = path.rename(tmp_path / "jobs of May")
    assert detect(other).id == "table"
    assert ingest(site.lake, [other], "c").upsert.num_new == 2


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
