"""Gathering: on this machine, on one where nothing can be read, and of a command that hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.node import machine
from hakaru.measure.preflight import FACTS, Ask, Machine, gather, judge, read_answer
from hakaru.measure.verdict import Verdict
from tests.measure.preflight._fake import Fake

# of this Python, not of the root
OURS = {
    "environment",
    "wall-clock",
    "version-python",
    "version-hakaru",
    "version-torch",
    "version-numpy",
    "version-cuda",
    "version-rocm",
    "version-nccl",
}


def test_this_machine_prints_facts_that_can_be_judged() -> None:
    program = (
        "import atexit, runpy, sys; sys.argv[1:] = ['localhost']; "
        "atexit.register(lambda: sys.stderr.write(str('torch' in sys.modules))); "
        "runpy.run_module('hakaru.measure.preflight', run_name='__main__', alter_sys=True)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "False")
    answer = read_answer("here", done.stdout, 0.0, 4e9)
    assert json.loads(json.dumps(answer)) == answer
    assert set(answer["facts"]) == set(FACTS.ids())
    assert answer["facts"]["memory"]["value"]["MemTotal"] > 0
    preflight = judge([answer], Ask(2, 2, gpus_per_node=0))
    assert {row.check.id for row in preflight.rows} >= {"open-files", "free-memory", "same-torch"}
    assert not any("unexpected form" in row.finding.found for row in preflight.rows)


def test_what_cannot_be_read_is_null_with_a_reason(tmp_path: Path) -> None:
    def nothing(command: object) -> subprocess.CompletedProcess[str]:
        raise PermissionError(13, "Permission denied")

    facts = gather(Machine(tmp_path, {}, nothing))

    for id, found in facts["facts"].items():
        if id not in OURS:
            assert found["value"] is None
            assert found["reason"]
            assert found["absent"] is False, (id, found)
    preflight = judge([facts], Ask(2, 2))
    assert preflight.verdict is Verdict.NOT_MEASURED
    assert not [row for row in preflight.rows[1:] if row.finding.status in ("pass", "warn")]


def test_secrets_of_the_environment_stay_where_they_are(tmp_path: Path) -> None:
    facts = gather(Machine(tmp_path, {"NCCL_IB_HCA": "mlx5", "AWS_SECRET_ACCESS_KEY": "hush"}))

    assert facts["facts"]["environment"]["value"] == {"NCCL_IB_HCA": "mlx5"}
    assert "hush" not in json.dumps(facts)


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(HakaruError, match="host names"):
        gather(Machine(peers=("--help",)))


def test_a_program_that_hangs_is_waited_for_once_and_costs_only_its_facts(tmp_path: Path) -> None:
    node, asked = Fake("gpu01"), []

    def hang() -> None:
        asked.append(1)
        raise subprocess.TimeoutExpired("nvidia-smi", 20)

    node.broken = {"nvidia-smi": hang}
    answer = node.facts(tmp_path)
    found = answer["facts"]
    unread = {id for id, each in found.items() if "nvidia-smi" in each.get("reason", "")}

    assert (unread, len(asked)) == ({"gpus", "remapped-rows", "gpu-processes"}, 1)
    assert {found[id]["reason"] for id in unread} == {"nvidia-smi did not answer within 20 s"}
    rows = {row.check.id: row.finding for row in judge([answer], Ask(8, 8)).rows}
    assert rows["gpu-visible"].status == "fail"
    assert "nvidia-smi did not answer within 20 s" in rows["gpu-visible"].found
    assert rows["gpu-visible"].fix.startswith("sudo dmesg")
    assert rows["gpu-throttling"].status == "not measured"
    assert all(rows[id].status == "pass" for id in ("pcie-width", "own-name", "shared-memory"))


def test_after_two_programs_that_hang_no_other_is_started(tmp_path: Path) -> None:
    node, asked = Fake("gpu01", peers=("gpu01", "gpu02")), []

    def hang() -> None:
        asked.append(1)
        raise subprocess.TimeoutExpired("any", 20)

    node.broken = dict.fromkeys(("nvidia-smi", "df", "ip", "getent", "mpirun", "chronyc"), hang)
    found = node.facts(tmp_path)["facts"]

    assert len(asked) == 2
    reason = "mpirun was not started, since chronyc and nvidia-smi did not answer within 20 s each"
    assert found["version-mpi"] == {"value": None, "reason": reason, "absent": False}
    assert found["limits"]["value"]


def test_a_command_that_hangs_is_given_up_and_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "TIMEOUT_S", 0.3)
    pid = tmp_path / "pid"
    with pytest.raises(subprocess.TimeoutExpired):
        machine.run_command(["sh", "-c", f"echo $$ > {pid}; exec sleep 60"])

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
