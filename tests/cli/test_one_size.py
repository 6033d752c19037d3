"""One size of the machine for every verb, where `hakaru.toml` and a log's header say different ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hakaru.lake import Lake
from hakaru.sources import ingest
from hakaru.web.app import create_app
from tests._cli import hakaru
from tests.web._site import running

START_S = 1514764800  # 2018-01-01
SCENARIO = '[baseline]\nname = "as it is"\n[[variant]]\nname = "sjf"\npolicy = "sjf"\n'


def workspace(folder: Path, header: str, settings: str) -> Path:
    """Two jobs an hour for ten days, of four processors each."""
    line = "{i} {at} 30 600 4 -1 -1 4 900 -1 1 {user} 1 -1 1 -1 -1 -1\n"
    lines = [line.format(i=i, at=1800 * i, user=i % 6) for i in range(480)]
    log = folder / "log.swf"
    log.write_text(f"; UnixStartTime: {START_S}\n{header}{''.join(lines)}")
    lake = Lake.create(folder / "w")
    ingest(lake, [log], "c")
    (lake.workspace / "hakaru.toml").write_text(f"[clusters.c]\n{settings}")
    return lake.workspace


def output(*arguments: object) -> str:
    done = hakaru(*arguments)
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def told(verb: str, place: Path, *more: object) -> Any:
    file = place.parent / f"{verb}.json"
    output(verb, *more, "-w", place, "-o", file)
    return json.loads(file.read_text())


def rows(place: Path, id: str) -> list[dict[str, Any]]:
    return list(json.loads(output("show", id, "-w", place, "--format", "json"))["rows"])


def compared(place: Path, id: str) -> float:
    document = json.loads(output("compare", "-w", place, "--metric", id, "--format", "json"))
    (metric,) = (each for each in document["metrics"] if each["id"] == id)
    return float(metric["computed"]["c"]["value"])


@pytest.mark.parametrize(
    ("header", "settings", "size", "machine"),
    [
        (
            "; MaxProcs: 2004\n; MaxNodes: 151\n",
            "nodes = 10\ncpus_per_node = 8",
            80,
            "80 processors in one pool",
        ),
        ("; MaxProcs: 80\n; MaxNodes: 20\n", "cpus = 100", 100, "100 processors in one pool"),
        (
            "; MaxProcs: 64\n",
            "nodes = [{since = 2017-01-01, count = 4}, {since = 2017-06-01, count = 8}]\n"
            "cpus_per_node = 4",
            32,
            "8 nodes x 4 = 32 processors",
        ),
    ],
)
def test_every_verb_takes_the_size_of_the_file(
    tmp_path: Path, header: str, settings: str, size: int, machine: str
) -> None:
    place = workspace(tmp_path, header, settings)
    (whole,) = (row for row in rows(place, "utilisation") if row["quarter"] == "all")
    assert whole["utilisation"] == pytest.approx(
        whole["busy_pe_hours"] / whole["span_h"] / size, rel=1e-6
    )
    assert {row["num_pes_installed"] for row in rows(place, "load")} == {size}
    with running(create_app(Lake.open(place))) as server, server.client() as client:
        (overview,) = client.get("/api/v1/overview").json()["clusters"]
    assert overview["now"]["installed_pes"] == size
    assert machine in output("simulate", "-w", place)
    assert machine in output("simulate", "-w", place, "--from", f"c={tmp_path / 'log.swf'}")
    (tmp_path / "s.toml").write_text(SCENARIO)
    notes = told("whatif", place, tmp_path / "s.toml", "--jobs", "1")["notes"]
    assert any(machine in note for note in notes), notes
    assert compared(place, "num_cpus") == size
