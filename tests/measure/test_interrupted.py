"""Runs that were interrupted: listed with the command that goes on with them, and resumed by name."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.measure import job as jobs
from hakaru.measure.folders import bench_folder
from hakaru.measure.job import Job, Plan, interrupted, unfinished
from hakaru.measure.store import save
from tests._cli import hakaru
from tests.measure._runs import measured, run_of

PLAN = Plan(("gemm",), {"gemm": {"dtype": ["fp64"], "size": [64]}}, True, 2.0, devices=("cpu:0",))
IDS = ("20261101-120000-aaaaaa", "20261101-120000-bbbbbb", "20261102-090000-cccccc")


@pytest.fixture
def begun(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs of one second, of which the first is labelled, and one of the next day."""
    monkeypatch.setenv("HAKARU_HOST", "n1")
    labels = ("night", None, None)
    for id, label in zip(IDS, labels, strict=True):
        monkeypatch.setattr(jobs, "new_run_id", lambda now, id=id: id)
        Job.begin(lake.workspace, "c", replace(PLAN, label=label))
    save(lake, run_of(measured(1.0)))
    return lake.workspace


@pytest.mark.parametrize(
    ("name", "at"),
    [(IDS[0], 0), ("night", 0), ("20261102", 2), ("20261101-120000-b", 1), (None, 2)],
)
def test_a_run_is_resumed_by_its_id_its_label_or_its_beginning(
    begun: Path, name: str | None, at: int
) -> None:
    assert Job.resume(begun, name).id == IDS[at]


def test_a_name_of_several_runs_lists_them(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HakaruError, match=f"several interrupted runs: {IDS[0]}, {IDS[1]}; choose"):
        Job.resume(begun, "20261101")
    monkeypatch.setattr(jobs, "new_run_id", lambda now: "20261103-120000-dddddd")
    Job.begin(begun, "c", replace(PLAN, label="night"))
    with pytest.raises(HakaruError, match="'night' names several interrupted runs"):
        Job.resume(begun, "night")
    with pytest.raises(
        HakaruError, match=f"run '2025' cannot be resumed; interrupted runs: {IDS[0]}"
    ):
        Job.resume(begun, "2025")


def test_an_id_is_taken_before_a_label_and_a_label_before_a_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for id, label in (("ab", None), ("abc", "a"), ("x", "ab")):
        monkeypatch.setattr(jobs, "new_run_id", lambda now, id=id: id)
        Job.begin(tmp_path, "c", replace(PLAN, label=label))
    assert [Job.resume(tmp_path, name).id for name in ("ab", "a")] == ["ab", "abc"]


def test_interrupted_runs_are_listed_below_those_stored(begun: Path) -> None:
    output = hakaru("bench", "list", "--runs", "-w", begun).output
    assert output.index("1 of 1") < output.index("Interrupted, not stored yet")
    lines = output.splitlines()
    (at,) = [at for at, line in enumerate(lines) if line.startswith(f"  {IDS[0]}")]
    assert lines[at].endswith("UTC, label night") and str(datetime.now(UTC).year) in lines[at]
    assert lines[at + 1] == f"    go on with: hakaru bench run --resume {IDS[0]} -w {begun}"


def test_the_host_that_can_go_on_is_named(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAKARU_HOST", "n2")
    assert "UTC on n1, label night" in hakaru("bench", "list", "--runs", "-w", begun).output


def test_the_list_is_data_too(begun: Path) -> None:
    words = ("bench", "list", "--runs", "-w", begun, "--format", "json")
    found = json.loads(hakaru(*words).output)
    (run,) = found["runs"]
    assert (run["run"], run["verdict"], run["num_good"], run["benchmarks"]) == (
        "r1",
        "good",
        1,
        ["gemm"],
    )
    assert [each["run"] for each in found["interrupted"]] == list(IDS)
    assert found["interrupted"][0] | {"started_at": ""} == {
        "run": IDS[0], "started_at": "", "label": "night", "cluster": "c", "host": "n1",
        "resume": f"hakaru bench run --resume {IDS[0]} -w {begun}",
    }  # fmt: skip


def break_plan(folder: Path) -> None:
    (folder / jobs.PLAN_FILE).write_text("not a journal")


def remove_plan_of_a_folder(folder: Path) -> None:
    (folder / jobs.PLAN_FILE).unlink()
    (folder / jobs.PLAN_FILE).mkdir()


def pipe_for_a_plan(folder: Path) -> None:
    (folder / jobs.PLAN_FILE).unlink()
    os.mkfifo(folder / jobs.PLAN_FILE)


def link_for_a_plan(folder: Path) -> None:
    (folder / jobs.PLAN_FILE).rename(folder / "theirs")
    (folder / jobs.PLAN_FILE).symlink_to(folder / "theirs")


def lock_with_a_link(folder: Path) -> None:
    (folder / jobs.LOCK).symlink_to("/dev/null")


def lock_with_a_folder(folder: Path) -> None:
    (folder / jobs.LOCK).mkdir()


OF_PLAN = (break_plan, remove_plan_of_a_folder, pipe_for_a_plan, link_for_a_plan)


@pytest.mark.parametrize("damage", [*OF_PLAN, lock_with_a_link, lock_with_a_folder])
def test_a_damaged_folder_does_not_hide_the_others(begun: Path, damage: Any) -> None:
    damage(bench_folder(begun) / IDS[1])
    result = hakaru("bench", "list", "--runs", "-w", begun)
    assert result.exit_code == 0 and unfinished(begun) == list(IDS)
    assert [each.id for each in interrupted(begun)] == list(IDS)
    assert f"--resume {IDS[2]}" in result.output
    if damage in OF_PLAN:
        assert (
            f"{IDS[1]}: its plan is damaged; delete {bench_folder(begun) / IDS[1]}" in result.output
        )
        assert Job.resume(begun, "night").id == IDS[0]


def test_the_list_of_runs_is_of_a_benchmark_or_a_family(lake: Lake, begun: Path) -> None:
    save(lake, run_of(measured(1.0, benchmark="hpl"), id="r2"))
    save(lake, run_of(measured(1.0, benchmark="only-imported"), id="r3"))

    def names(*words: str) -> tuple[list[str], int]:
        asked = ("bench", "list", *words, "--runs", "-w", begun, "--format", "json")
        found = json.loads(hakaru(*asked).output)
        return [each["run"] for each in found["runs"]], len(found["interrupted"])

    assert names("gemm") == names("device") == (["r1"], 3)
    assert names("hpl") == (["r2"], 0)
    assert names("only-imported") == (["r3"], 0)
    assert names("--cluster", "c") == (["r3", "r2", "r1"], 3)
    assert (
        "no run has this choice" in hakaru("bench", "list", "memory", "--runs", "-w", begun).output
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gem", "--runs"), "there is no benchmark or family 'gem'; did you mean gemm?"),
        (("--runs", "--cluster", "d"), "no run is of the cluster 'd'; there is: c"),
        (("--cluster", "c"), "add --runs"),
    ],
)
def test_a_choice_that_does_not_apply_is_an_error(
    begun: Path, words: tuple[str, ...], message: str
) -> None:
    result = hakaru("bench", "list", *words, "-w", begun)
    assert result.exit_code == 1 and message in result.output


def test_benchmarks_are_data_too() -> None:
    found = json.loads(hakaru("bench", "list", "gemm", "--format", "json").output)
    assert [each["id"] for each in found] == ["gemm"]
    assert [each["name"] for each in found[0]["parameters"]] == ["dtype", "size"]


@pytest.mark.parametrize("words", [(), ("night",), ("--cluster", "c")])
def test_a_workspace_with_interrupted_runs_alone_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    Lake.create(tmp_path)
    for id, cluster in zip(IDS, ("c", "c", "other"), strict=True):
        monkeypatch.setattr(jobs, "new_run_id", lambda now, id=id: id)
        Job.begin(tmp_path, cluster, replace(PLAN, label="night"))
    (tmp_path / "bench" / "20270101-120000-eeeeee").mkdir()
    break_plan(tmp_path / "bench" / "20270101-120000-eeeeee")
    newest = IDS[1] if "--cluster" in words else IDS[2]
    done = hakaru("bench", "show", *words, "-w", tmp_path)
    assert done.exit_code == 1
    assert f"run {newest} (label night) was interrupted. Go on with it" in done.output
    assert f"hakaru bench run --resume {newest} -w {tmp_path}" in done.output
    elsewhere = hakaru("bench", "show", "-w", tmp_path, "--cluster", "empty").output
    assert "holds no runs of empty. Measure first: hakaru bench run --quick" in elsewhere
