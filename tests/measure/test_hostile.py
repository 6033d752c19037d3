"""Names and files of others: nothing of them reaches a shell, and nothing is written through a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.cli.bench._options import choose_parameters, default_cluster, parse_slurm
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.measure._base import find_benchmarks
from hakaru.measure.launch import Layout, split_hosts
from hakaru.measure.launch.slurm import Slurm
from hakaru.measure.preflight import ask_nodes, unanswered
from hakaru.measure.task import Task
from tests._cli import hakaru


@pytest.mark.parametrize(
    "name",
    [
        "n1\ntouch /tmp/x",
        "-oProxyCommand=touch",
        "n1;id",
        "n1 n2",
        "",
        "n1:4",
        "$(id)",
        "n1\r",
        "n[1",
    ],
)
def test_what_is_no_host_name_makes_no_layout(name: str) -> None:
    with pytest.raises(HakaruError, match="is not a host name"):
        Layout(("n1", name))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, ()),
        ("n1, n2.example.org,", ("n1", "n2.example.org")),
        ("n[1-3,7],m1", ("n1", "n2", "n3", "n7", "m1")),
        ("gpu[08-11]-ib", ("gpu08-ib", "gpu09-ib", "gpu10-ib", "gpu11-ib")),
    ],
)
def test_hosts_are_split_as_slurm_writes_them(text: str | None, names: tuple[str, ...]) -> None:
    assert split_hosts(text) == names


@pytest.mark.parametrize(
    "text", ["n[4-1]", "n[1-]", "n[1-999999999]", "n1\nid", "-oProxyCommand=x"]
)
def test_hosts_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(HakaruError, match="--hosts"):
        split_hosts(text)


@pytest.mark.parametrize(
    "pair", ["partition=gpu\ntouch /tmp/x", "a\nb=1", "comment=\x1b[1m", "a b=1"]
)
def test_no_option_of_slurm_begins_a_line_of_the_script(tmp_path: Path, pair: str) -> None:
    with pytest.raises(HakaruError, match="--slurm"):
        parse_slurm([pair])
    name, _, value = pair.partition("=")
    with pytest.raises(HakaruError, match="--slurm"):
        Slurm(parameters={name: value}).submit(tmp_path, Layout(), 60, print)


def test_options_of_slurm_have_types_and_one_value() -> None:
    given = ["partition=gpu", "mem=0", "exclusive=false", "comment=²", f"qos={'9' * 5000}"]
    assert parse_slurm(given) == {
        "partition": "gpu", "mem": 0, "exclusive": False, "comment": "²", "qos": "9" * 5000,
    }  # fmt: skip
    with pytest.raises(HakaruError, match="--slurm partition is given twice"):
        parse_slurm(["partition=a", "partition=b"])


def test_values_of_a_repeated_parameter_are_joined() -> None:
    pairs = ["dtype=fp64", "dtype=fp32", "dtype=fp64"]
    assert choose_parameters(find_benchmarks(["gemm"]), pairs) == {
        "gemm": {"dtype": ["fp64", "fp32"]}
    }


@pytest.mark.parametrize(
    ("clusters", "measured", "chosen"),
    [
        (["mn1"], ["laptop"], "mn1"),
        (["mn1"], ["laptop", "other"], "mn1"),
        ([], ["laptop"], "laptop"),
        (["a", "b"], ["b"], "b"),
        (["a", "b"], [], None),
    ],
)
def test_a_run_goes_to_the_only_cluster_with_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    clusters: list[str], measured: list[str], chosen: str | None,
) -> None:  # fmt: skip
    lake = Lake.create(tmp_path / "ws")
    monkeypatch.setattr(Lake, "clusters", lambda self: clusters)
    rows = [{"cluster": name} for name in measured]
    monkeypatch.setattr("hakaru.measure.store.list_runs", lambda lake: rows)
    if chosen:
        assert default_cluster(lake, None) == chosen
    else:
        with pytest.raises(HakaruError, match="--cluster: a, b"):
            default_cluster(lake, None)


@pytest.mark.parametrize("name", ["preflight-n1.new", "preflight-n1.json"])
def test_a_preflight_is_never_kept_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(ask_nodes, "ask_here", lambda: [unanswered("n1", "no route")])
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    Lake.create(tmp_path)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / name).symlink_to(victim)

    done = hakaru("bench", "preflight", "-w", tmp_path, "--cluster", "n1")

    assert done.exit_code == 13
    assert ("is a link to" in done.output) == (name == "preflight-n1.json")
    assert victim.read_text() == "theirs"


def test_a_task_is_never_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    (tmp_path / "task.json").symlink_to(victim)
    with pytest.raises(HakaruError, match="is a link to"):
        Task("device", ()).write(tmp_path)
    (tmp_path / "r1").symlink_to(tmp_path)
    with pytest.raises(HakaruError, match="is a link to"):
        Task("device", ()).write(tmp_path / "r1")
    assert victim.read_text() == "theirs"
