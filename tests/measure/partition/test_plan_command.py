"""`hakaru bench plan` as it is typed: the sentence first, files, and errors that help."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests._cli import hakaru

PLAN = ("bench", "plan", "mlp@hidden=32+layers=6", "--devices", 4)
FACTORY = """
import torch
from torch import nn


def make():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)), torch.randn(4, 8)
"""


def test_sentence_first_then_candidates_then_stages() -> None:
    result = hakaru(*PLAN, "--memory", "16GiB", "--link", "10GB/s")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].startswith("mlp on 4 devices: ")
    assert "of 16.0 GiB on the fullest device" in lines[0]
    assert lines[1].endswith("with links of 10 GB/s.")
    heads = [line.split()[0] for line in lines if line.startswith(("strategy", "stage "))]
    assert heads == ["strategy", "stage"]
    assert any(line.startswith("ddp2+1f1b2") for line in lines)


def test_assumed_link_is_said() -> None:
    assert "assuming links of 1 GB/s" in hakaru(*PLAN).output


def test_json_on_the_terminal_and_in_a_file(tmp_path: Path) -> None:
    printed = json.loads(hakaru(*PLAN, "--format", "json", "--memory", "500MB").output)
    assert printed["memory_bytes"] == 500 * 10**6
    assert printed["batch"] == 4 * 64
    path = tmp_path / "deep" / "plan.json"
    result = hakaru(*PLAN, "--batch", 32, "-o", path)
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"{path}: mlp on 4 devices")
    assert json.loads(path.read_text())["batch"] == 32


def test_page_with_the_figure(tmp_path: Path) -> None:
    path = tmp_path / "plan.html"
    assert hakaru(*PLAN, "-o", path).exit_code == 0
    text = path.read_text(encoding="utf-8")
    assert "Partition of the module: mlp" in text
    assert "layers" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--memory", "16"], "expected a size such as \"2GB\", found '16'"),
        (["--link", "10"], "'10' is not a rate such as 10GB/s or 200Mbit/s"),
        (["-o", "plan.txt"], "a plan's file ends in .json, .html"),
        (["--device", "gpu"], "'gpu' is no device; write cpu"),
        (["--memory", "0.01MB"], "no plan fits in"),
    ],
)
def test_errors_help(options: list[str], said: str) -> None:
    result = hakaru(*PLAN, *options)
    assert result.exit_code != 0
    assert said in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("mlp@depth=3", "mlp has no size 'depth'"),
        ("mlp@hidden=wide", "hidden='wide': expected a number"),
        ("mlp@hidden", "'hidden' is no size; write them as resnet50@image=64+classes=10"),
    ],
)
def test_wrong_sizes(model: str, said: str) -> None:
    result = hakaru("bench", "plan", model, "--devices", 2)
    assert result.exit_code == 1
    assert said in " ".join(result.output.split())


def test_wrong_model() -> None:
    result = hakaru("bench", "plan", "resnet5", "--devices", 2)
    assert result.exit_code == 1
    assert "there is no network 'resnet5'" in result.output
    assert result.output.rstrip().endswith("did you mean resnet50?")


def test_network_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planned_network.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    result = hakaru("bench", "plan", "planned_network:make", "--devices", 2, "--format", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["model"] == "planned_network:make"
    assert [each["path"] for each in found["tree"]] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("text", "rate"), [("10GB/s", 10e9), ("200Mbit/s", 25e6), ("1.5 GB/s", 1.5e9)]
)
def test_rates(text: str, rate: float) -> None:
    from hakaru.cli.bench.plan import Rate

    assert Rate().convert(text, None, None) == rate
