"""Baselines: what is kept of a run, and what is refused when one is read."""

from __future__ import annotations

import grp
import json
import os
import stat
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.measure import baseline
from hakaru.measure._base import load_all
from hakaru.measure.collect import Gathered, measurements
from hakaru.measure.fleet import QUICK
from hakaru.measure.folders import own_bench_folder
from hakaru.measure.judge import judge_by
from hakaru.measure.record import CHECK_UNIT, Measurement
from hakaru.measure.task import Item, Task
from hakaru.measure.verdict import Verdict
from tests.measure._runs import NOW, measured, run_of

GOOD = baseline.make_baseline("ok", run_of(measured(100.0)))


def kept(workspace: Path, *changes: dict[str, Any]) -> Path:
    """A baseline on the disk, with an entry for each of the changes."""
    path = baseline.save(workspace, GOOD)
    raw = asdict(GOOD)
    raw["entries"] = [raw["entries"][0] | change for change in changes]
    path.write_text(json.dumps(raw))
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([{"num_devices": 0}], "0 devices, not 1 or more"),
        ([{"num_devices": -5}], "-5 devices"),
        ([{"num_devices": True}], "True devices"),
        ([{"median": 5e-324}], "not a number from 1e-12 to 1e[+]18"),
        ([{"median": 1e300}], "not a number from"),
        ([{"median": True}], "not a number from"),
        ([{"better": "sideways"}], "wrong direction"),
        ([{}, {"median": 1.0}], "2 entries are of gemm"),
    ],
)
def test_what_no_run_can_have_measured_is_refused(
    tmp_path: Path, changes: list[dict[str, Any]], words: str
) -> None:
    kept(tmp_path, *changes)
    with pytest.raises(HakaruError, match=words):
        baseline.load(tmp_path, "ok")


def test_an_entry_fits_only_its_own_unit_and_direction() -> None:
    same = measured(90.0)
    assert GOOD.entries[0].fits(same)
    assert not GOOD.entries[0].fits(replace(same, unit="TFLOP/s"))
    assert not GOOD.entries[0].fits(replace(same, better="lower"))


def test_devices_are_counted_once_and_for_each_host() -> None:
    twice = [measured(100.0), measured(101.0), measured(99.0, host="n2")]
    (entry,) = baseline.make_baseline("ok", run_of(*twice)).entries
    assert entry.num_devices == 1
    two = [*twice, measured(100.0, device="cuda:1")]
    (entry,) = baseline.make_baseline("ok", run_of(*two)).entries
    assert entry.num_devices == 2


def test_checks_are_no_part_of_a_baseline_but_must_be_good() -> None:
    check = measured(0.0, benchmark="gpu-burn", quantity="passed", unit=CHECK_UNIT)
    made = baseline.make_baseline("ok", run_of(measured(100.0), check))
    assert [entry.benchmark for entry in made.entries] == ["gemm"]
    with pytest.raises(HakaruError, match="gpu-burn passed on n1/cuda:0 is failed"):
        baseline.make_baseline(
            "ok", run_of(measured(100.0), replace(check, verdict=Verdict.FAILED))
        )
    with pytest.raises(HakaruError, match="no measurement that another run could be compared with"):
        baseline.make_baseline("ok", run_of(check))


def test_a_number_of_0_is_named_as_such() -> None:
    with pytest.raises(HakaruError, match="gemm rate on n1/cuda:0 has no number above 0"):
        baseline.make_baseline("ok", run_of(measured(0.0)))


def test_one_quantity_in_two_units_makes_no_baseline() -> None:
    with pytest.raises(HakaruError, match="several units"):
        baseline.make_baseline("ok", run_of(measured(1.0), measured(1.0, unit="TFLOP/s")))


@pytest.mark.parametrize("name", ["ok.new", "ok.json"])
def test_a_baseline_is_never_written_through_a_link(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / name).symlink_to(victim)
    try:
        baseline.save(tmp_path, GOOD)
    except HakaruError as error:
        assert "is a link to" in str(error)  # the file itself is refused, a .new ignored
    assert victim.read_text() == "theirs"


@pytest.mark.parametrize("name", ["baselines", "bench"])
def test_a_folder_that_is_a_link_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HakaruError, match="is a link to"):
        baseline.save(tmp_path, GOOD) if name == "baselines" else own_bench_folder(tmp_path)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_group_reads_and_writes_its_baselines_and_runs(tmp_path: Path) -> None:
    gid = 1 if os.getuid() == 0 else os.getgroups()[0]
    group = grp.getgrgid(gid).gr_name
    (tmp_path / "hakaru.toml").write_text(f'[workspace]\ngroup = "{group}"\n')
    path = baseline.save(tmp_path, GOOD)
    run = own_bench_folder(tmp_path, "r1")
    for each, mode in ((path, 0o660), (path.parent, 0o2770), (run, 0o2770), (run.parent, 0o2770)):
        assert (stat.S_IMODE(each.stat().st_mode), each.group()) == (mode, group), each


def test_without_a_group_only_the_owner_reads(tmp_path: Path) -> None:
    path = baseline.save(tmp_path, GOOD)
    run = own_bench_folder(tmp_path, "r1")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, run)] == [
        0o600,
        0o700,
        0o700,
    ]


def test_a_folder_that_cannot_be_read_is_not_an_empty_one(tmp_path: Path) -> None:
    assert baseline.names(tmp_path) == []
    (tmp_path / "baselines").write_text("not a folder")
    with pytest.raises(HakaruError, match="baselines cannot be read: Not a directory"):
        baseline.names(tmp_path)


def links_of(rates: dict[str, float]) -> list[Measurement]:
    """What two hosts of two ranks each report of their links."""
    load_all()
    when = NOW.isoformat()
    entry = {
        "item": "pairs {}", "benchmark": "pairs", "parameters": {"bytes": 8}, "rank": 0, "host": "n1,n2",
        "device": "4 ranks", "device_uuid": None, "model": "A100", "hosts": ["n1", "n1", "n2", "n2"],
        "started_at": when, "ended_at": when, "samples": {}, "problem": None, "validity": {},
        "subjects": {name: {"bandwidth": [rate] * 5} for name, rate in rates.items()},
    }  # fmt: skip
    return measurements(Task("ranks", (Item("pairs"),)), Gathered(results=[entry]))


def test_a_link_is_compared_with_links_of_its_own_place() -> None:
    rates = {"0>1": 400.0, "2>3": 400.0, "1>0": 300.0, "0>2": 20.0, "1>3": 20.0, "3>1": 20.0}
    made = baseline.make_baseline("ok", run_of(*links_of(rates)))
    assert {each.model: each.median for each in made.entries} == {
        "link inside a host 0-1": 400.0, "link inside a host 1-0": 300.0, "link between hosts": 20.0,
    }  # fmt: skip
    again = judge_by(links_of(rates), made, QUICK)
    assert {each.verdict for each in again} == {Verdict.GOOD}
    fallen = judge_by(links_of(rates | {"2>3": 20.0}), made, QUICK)
    assert [each.device for each in fallen if each.verdict is Verdict.SLOW] == ["n2#2>n2#3"]


def test_a_later_run_replaces_what_it_measured_again() -> None:
    slow = measured(70.0, host="n7").judged(Verdict.SLOW, "30 % slower")
    first = run_of(measured(100.0), slow, measured(101.0, host="n7", device="cuda:1"), id="cards")
    again = run_of(measured(102.0, host="n7"), id="again")
    with pytest.raises(HakaruError, match="run cards cannot be a baseline: 1 of its 3"):
        baseline.make_baseline("acceptance", first)
    again = replace(again, started_at=NOW + timedelta(hours=1))
    made = baseline.make_baseline(
        "acceptance", again, first
    )  # in order of time, not of the command
    (entry,) = made.entries
    assert (made.run_id, entry.median, entry.num_devices) == ("again, cards", 101.0, 2)


def test_runs_of_two_clusters_make_no_baseline() -> None:
    with pytest.raises(HakaruError, match="several clusters, c, other"):
        baseline.make_baseline("ok", run_of(measured(1.0)), replace(run_of(), cluster="other"))


WIDE = (100.0, 130.0, 60.0, 70.0, 140.0, 100.0)


def test_repetitions_that_resemble_one_another_are_left_out_of_the_gate() -> None:
    alike = replace(measured(*[100.0] * 18), correlation=0.97)
    steady = measured(*[50.0] * 6, benchmark="memory", quantity="bandwidth", unit="GB/s")
    run = run_of(alike, steady)
    made = baseline.make_baseline("ok", run)
    assert [each.is_noisy for each in made.entries] == [True, False]
    assert {each.verdict for each in judge_by(run.measurements, made, QUICK)} == {Verdict.GOOD}
    imported = baseline.make_baseline("ok", run_of(measured(100.0)))  # a number is a reference
    assert not imported.entries[0].is_noisy


def test_what_would_not_pass_its_own_baseline_is_left_out_of_the_gate(tmp_path: Path) -> None:
    noisy = measured(*WIDE, benchmark="memory", quantity="bandwidth", unit="GB/s")
    run = run_of(measured(*[100.0] * 6), noisy)
    made = baseline.make_baseline("ok", run)
    assert [each.is_noisy for each in made.entries] == [False, True]
    baseline.save(tmp_path, made)
    loaded = baseline.load(tmp_path, "ok")
    assert [each.benchmark for each in loaded.gated] == ["gemm"]
    judged = judge_by(run.measurements, loaded, QUICK)
    assert [each.verdict for each in judged] == [Verdict.GOOD, Verdict.GOOD]
    assert judged[1].reason.endswith("too noisy a quantity to be compared with the baseline ok")
    assert len(judge_by(run.measurements[:1], loaded, QUICK)) == 1, "nobody misses it"
    with pytest.raises(HakaruError, match="repetitions of all its numbers differ too much"):
        baseline.make_baseline("none", run_of(noisy))


def test_a_choice_of_devices_makes_the_others_no_loss() -> None:
    cards = [measured(*[100.0] * 6, device=f"cuda:{at}") for at in range(4)]
    core = measured(*[1.0] * 6, device="cpu:0", place={"model": "core"})
    made = baseline.make_baseline("ok", run_of(*cards, core))
    whole = judge_by(cards[:1], made, QUICK)
    assert [each.verdict for each in whole] == [Verdict.GOOD, Verdict.FAILED, Verdict.NOT_MEASURED]
    chosen = judge_by(cards[:1], made, QUICK, "devices")
    assert [each.verdict for each in chosen] == [Verdict.GOOD]
    of_kind = judge_by(cards[:3], made, QUICK, "kinds")
    assert [each.verdict for each in of_kind] == [*[Verdict.GOOD] * 3, Verdict.FAILED]
    assert of_kind[-1].reason == "3 of 4 devices were measured"
