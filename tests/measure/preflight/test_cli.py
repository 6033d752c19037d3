"""`hakaru bench preflight`: its options reach the checks, and sizes follow from one another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hakaru.cli.bench.preflight import Size, find_size
from hakaru.errors import HakaruError
from hakaru.figures.measure.preflight import read_preflight
from hakaru.lake import Lake
from hakaru.measure.launch import Layout
from hakaru.measure.preflight import ask_nodes, has_gpus, unanswered
from tests._cli import hakaru
from tests.measure.preflight._fake import Fake, fleet, gpu


@pytest.mark.parametrize(
    ("ranks", "per_node", "nodes", "gpus", "size"),
    [
        (32, None, 2, None, Size(32, 16, 2)),
        (33, None, 2, None, Size(33, 17, 2)),
        (1024, None, 128, None, Size(1024, 8, 128)),
        (1024, 8, None, None, Size(1024, 8, 128)),
        (None, None, 2, None, Size(16, 8, 2)),
        (None, None, 2, 4, Size(8, 4, 2)),
        (None, None, 2, 0, Size(16, 8, 2)),
        (None, 3, 2, 4, Size(6, 3, 2)),
        (2, None, None, None, Size(2, 2, 1)),
        (None, None, None, None, Size(8, 8, 1)),
    ],
)
def test_sizes_follow_from_one_another(
    ranks: int | None, per_node: int | None, nodes: int | None, gpus: int | None, size: Size
) -> None:
    assert find_size(ranks, per_node, nodes, gpus) == size


def test_sizes_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(HakaruError, match="need 4 nodes, found 2"):
        find_size(32, 8, 2, None)
    with pytest.raises(HakaruError, match="--ranks-per-node 8 is more than --ranks 2"):
        find_size(2, 8, None, None)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Layout]:
    """Two healthy nodes answer, whatever is asked; the layouts that were asked for."""
    layouts: list[Layout] = []
    answers = fleet(tmp_path / "root", Fake("gpu01"), Fake("gpu02"))

    def ask_slurm(layout: Layout, *rest: Any) -> list[dict[str, Any]]:
        layouts.append(layout)
        return answers

    monkeypatch.setattr(ask_nodes, "ask_slurm", ask_slurm)
    monkeypatch.setattr(ask_nodes, "ask_hosts", lambda hosts: answers)
    return layouts


SLURM = ("bench", "preflight", "--launcher", "slurm", "--format", "json")


@pytest.mark.parametrize("where", [("--nodes", 2), ("--hosts", "gpu01,gpu02")])
def test_ranks_are_divided_by_the_nodes(
    tmp_path: Path, two: list[Layout], where: tuple[str, object]
) -> None:
    """8 on each node would need 4 nodes, of which 2 never answered."""
    done = hakaru(*SLURM, "-w", tmp_path, "--ranks", 32, *where)
    report = json.loads(done.stdout)

    assert (done.exit_code, report["verdict"]) == (0, "good")
    assert (report["ask"]["ranks_per_node"], report["ask"]["num_nodes"]) == (16, 2)
    assert two[0].num_ranks == 2


def test_the_hosts_are_those_that_slurm_is_asked_for(tmp_path: Path, two: list[Layout]) -> None:
    hakaru(*SLURM, "-w", tmp_path, "--hosts", "gpu01,gpu02")

    assert two == [Layout(("gpu01", "gpu02"), 1, 2)]


@pytest.mark.parametrize(
    ("options", "failing"),
    [
        (("--gpus-per-node", 9, "--ranks-per-node", 8), "gpu-visible"),
        (("--memory-per-rank", "64GiB"), "free-memory"),
        (("--all-to-all", "--ranks", 32768), "open-files"),
        (("--port", 22), "master-port"),
    ],
)
def test_options_reach_the_checks(
    tmp_path: Path, two: list[Layout], options: tuple[object, ...], failing: str
) -> None:
    done = hakaru(*SLURM, "-w", tmp_path, "--nodes", 2, *options)
    failed = [row["check"] for row in json.loads(done.stdout)["rows"] if row["status"] == "fail"]

    assert done.exit_code == 11
    assert failing in failed


def test_a_run_without_gpus_ignores_a_lost_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ill = Fake("gpu01", gpus=[gpu(0)]).facts(tmp_path / "root")
    monkeypatch.setattr(ask_nodes, "ask_here", lambda: [ill])

    assert hakaru("bench", "preflight", "-w", tmp_path).exit_code == 11
    assert hakaru("bench", "preflight", "-w", tmp_path, "--gpus-per-node", 0).exit_code == 0


@pytest.mark.parametrize(
    ("node", "options", "num_ranks"),
    [
        (Fake("gpu01"), (), 8),
        (Fake("gpu01"), ("--gpus-per-node", 0), 3),
        (Fake("gpu01"), ("--gpus-per-node", 4), 4),
        (None, (), 8),
    ],
)
def test_a_run_without_gpus_has_a_rank_for_each_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    node: Fake | None, options: tuple[object, ...], num_ranks: int,
) -> None:  # fmt: skip
    answer = node.facts(tmp_path / "root") if node else unanswered("gpu01", "no route")
    monkeypatch.setattr(ask_nodes, "ask_here", lambda: [answer])
    monkeypatch.setattr("hakaru.measure.devices.cores", lambda: [1, 2, 3])
    done = hakaru("bench", "preflight", "-w", tmp_path, "--format", "json", *options)

    assert json.loads(done.stdout)["ask"]["num_ranks"] == num_ranks


def test_a_bus_without_gpus_has_none(tmp_path: Path) -> None:
    facts = Fake("gpu01").facts(tmp_path)
    assert has_gpus(facts)
    facts["facts"]["pci-devices"] = {"value": [{"kind": "GPU", "vendor": "1a03", "bus": "0"}]}
    assert not has_gpus(facts), "the display of a management board computes nothing"
    facts["facts"]["pci-devices"] = {"value": None, "reason": "no PCI bus", "absent": True}
    assert not has_gpus(facts)
    facts["facts"]["pci-devices"] = {"value": None, "reason": "permission denied"}
    assert has_gpus(facts), "what cannot be read proves nothing"


def test_terminal_and_file_use_the_same_words(tmp_path: Path, two: list[Layout]) -> None:
    words = (
        "bench",
        "preflight",
        "--launcher",
        "slurm",
        "--nodes",
        2,
        "-w",
        tmp_path,
        "--port",
        22,
    )
    report = json.loads(hakaru(*words, "--format", "json").stdout)
    shown = hakaru(*words, "--all").stdout

    titles = {check["id"]: check["title"] for check in report["checks"]}
    failed = [titles[row["check"]] for row in report["rows"] if row["status"] == "fail"]
    assert failed == ["Port of the master"]
    assert any(line.startswith("fail ") and failed[0] in line for line in shown.splitlines())
    assert f"{report['counts']['pass']} pass, {report['counts']['fail']} fail" in shown


def test_each_cluster_keeps_its_own(tmp_path: Path, two: list[Layout]) -> None:
    Lake.create(tmp_path)
    for cluster, port in (("big", 22), ("small", 23)):
        hakaru(*SLURM, "-w", tmp_path, "--nodes", 2, "--cluster", cluster, "--port", port)
    kept = {name: read_preflight(tmp_path, name) for name in ("big", "small")}

    assert {name: each and each.verdict for name, each in kept.items()} == {
        "big": "failed", "small": "good",
    }  # fmt: skip
    assert kept["big"] is not None and kept["big"].where == "2 nodes by slurm"


def test_a_cluster_that_is_not_clear_is_asked_for_before_any_node(
    tmp_path: Path, two: list[Layout], monkeypatch: pytest.MonkeyPatch
) -> None:
    Lake.create(tmp_path)
    monkeypatch.setattr(Lake, "clusters", lambda self: ["a", "b"])
    done = hakaru(*SLURM, "-w", tmp_path, "--nodes", 2)

    assert (done.exit_code, two) == (1, [])
    assert "--cluster: a, b" in done.output


def test_what_was_not_measured_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_nodes, "ask_here", lambda: [unanswered("gpu01", "no route")])
    done = hakaru("bench", "preflight", "-w", tmp_path)

    assert done.exit_code == 13
    assert done.stdout.startswith(
        "NOT MEASURED: could not be checked on gpu01: Every node answered"
    )
    assert "1 not measured" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--memory-per-rank", "much"), "expected a size such as"),
        (("--launcher", "slurm", "--nodes", 3, "--hosts", "a,b"), "--hosts lists 2"),
        (("--launcher", "mpirun"), "needs the names of the hosts"),
        (("--nodes", 2), "for other nodes use"),
        (("--slurm", "partition=gpu"), "--slurm is for --launcher slurm"),
    ],
)
def test_wrong_options_are_refused_before_any_node_is_asked(
    options: tuple[object, ...], words: str
) -> None:
    done = hakaru("bench", "preflight", *options)

    assert done.exit_code in (1, 2)
    assert words in " ".join(done.output.split())


def test_a_run_on_other_nodes_says_how_to_ask_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Fake("gpu01").facts(tmp_path / "root")
    monkeypatch.setattr(ask_nodes, "ask_here", lambda: [node])
    advice = (
        "Only this machine was asked; ask the others with --launcher slurm, or --launcher mpirun"
    )
    many = hakaru("bench", "preflight", "-w", tmp_path, "--ranks", 1024)

    assert many.exit_code != 0 and advice in many.stdout
    assert advice not in hakaru("bench", "preflight", "-w", tmp_path).stdout


def test_what_is_not_saved_is_said_where_a_workspace_was_named(
    tmp_path: Path, two: list[Layout], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("bench", "preflight", "--launcher", "slurm", "--nodes", 2)
    said = f"there is no workspace at {tmp_path / 'a b'} yet; hakaru bench run --quick -w "

    new = hakaru(*words, "-w", tmp_path / "a b")
    assert said + f"'{tmp_path / 'a b'}' makes one" in new.stderr and new.stderr.count("\n") == 1
    assert "not saved" not in hakaru(*words).stderr
    assert "not saved" not in hakaru(*words, "-w", tmp_path / "a b", "--format", "json").stderr
    Lake.create(tmp_path / "a b")
    assert "not saved" not in hakaru(*words, "-w", tmp_path / "a b").stderr
