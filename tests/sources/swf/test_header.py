"""SWF's header: the machine, the queues and the zone that it names, and by what a log is recognised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.settings import load
from hakaru.sources._base import detect
from hakaru.sources.ingest import ingest
from hakaru.sources.swf import parse_header
from tests.conftest import utc
from tests.sources.swf._log import GOOD, SAMPLE, jobs_of, read


def test_the_machine_is_known_from_the_header(lake: Lake) -> None:
    ingest(lake, [SAMPLE], "c")
    cluster = load(lake.workspace, lake.facts()).cluster("c")
    assert (cluster.zone, cluster.unit, cluster.cpus_per_node) == ("Asia/Tokyo", "cpu", 8)
    assert [span.count for span in cluster.nodes] == [4]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", {}),
        ("; MaxProcs: 100", {"cpus": 100}),
        ("; MaxNodes: 151\n; MaxProcs: 2004", {"nodes": 151, "cpus": 2004}),
        ("; MaxNodes: 0\n; MaxProcs: many", {}),
        ("; MaxNodes: 338 (163 64)\n; MaxProcs: 338", {"nodes": 338, "cpus_per_node": 1}),
        ("; TimeZoneString: US/Pacific", {"zone": "US/Pacific"}),
        ("; TimeZoneString: Middle of Nowhere", {}),
        ("; TimeZone: -28800", {}),
    ],
)
def test_header_facts(text: str, facts: dict[str, Any]) -> None:
    assert parse_header(text).facts() == {"unit": "cpu", **facts}


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        ("; Queue:  0  interactive    interactive", {0: "interactive"}),
        ("; Queue:  1  ", {}),
        ("; Queue:  2 0 ", {}),
        (
            "; Queue: 1 - Normal jobs queue - normal priority - not preemptible",
            {1: "Normal jobs queue"},
        ),
        ("; Queue: 2 - Besteffort", {2: "Besteffort"}),
        ("; Queue: 1 - Normal jobs queue\n; Queue:  1  default  default", {1: "default"}),
        ("; Queue: 1 batch\n; Queue: 2 batch\n; Queue: 3 long", {3: "long"}),
        ("; Queues: Queue nb 1 is default queue.", {}),
    ],
)
def test_queue_names(text: str, queues: dict[int, str]) -> None:
    assert parse_header(text).queues == queues


@pytest.mark.parametrize("num_bytes", [60_000, 65_536, 300_000])
def test_a_long_header_is_read_whole(num_bytes: int, lake: Lake, tmp_path: Path) -> None:
    """The archive's longer headers list every partition and every change of the machine."""
    row = "; Note: " + "x" * 91  # 100 bytes with its end
    notes = [row] * (num_bytes // 100)
    summary = read(lake, tmp_path, *notes, "; UnixStartTime: 1500000000", "; MaxNodes: 4", GOOD)
    assert not any("relative" in warning for warning in summary.warnings)
    assert jobs_of(lake)[0]["submitted_at"] == utc("2017-07-14T02:42:10")
    assert lake.facts()["c"]["nodes"] == 4


def test_a_zone_of_the_header_that_is_none_is_told(lake: Lake, tmp_path: Path) -> None:
    header = ("; UnixStartTime: 1500000000", "; TimeZoneString: Asia/Tokio")
    told = read(lake, tmp_path, *header, GOOD).warnings
    assert "TimeZoneString 'Asia/Tokio' in the header is not a time zone" in told[0]
    assert "the time zone of c is not known" in told[1]
    assert read(lake, tmp_path, *header, GOOD, zone="Asia/Tokyo").warnings == []


@pytest.mark.parametrize(
    ("name", "content", "is_swf"),
    [
        ("log.swf", "anything", True),
        ("log.txt", "; MaxProcs: 8\n", True),
        ("log.txt", GOOD + "\n", True),
        ("log.txt", "; a remark\n\n" + GOOD + "\n", True),
        ("log.txt", GOOD + " 5\n", False),
        ("log.txt", "a,b,c\n1,2,3\n", False),
    ],
)
def test_recognised_by_name_header_or_columns(
    name: str, content: str, is_swf: bool, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    if is_swf:
        assert detect(path).id == "swf"
    else:
        with pytest.raises(SourceError, match="the format is not known"):
            detect(path)


def test_a_latin1_name_in_the_header_does_no_harm(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(
        "; Acknowledge: José\n; UnixStartTime: 1500000000\n".encode("latin-1") + GOOD.encode()
    )
    summary = ingest(lake, [path], "c")
    assert (summary.num_read, summary.num_rejected) == (1, 0)
    assert jobs_of(lake)[0]["submitted_at"] == utc("2017-07-14T02:42:10")
