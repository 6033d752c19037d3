"""Where something is measured: the host's name, the command, the commit, and the cards that must be there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hakaru.measure import devices, place
from hakaru.measure.devices import Device, missing_gpus
from hakaru.measure.place import source_commit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_slurm_names_its_nodes_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HAKARU_HOST", raising=False)
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    monkeypatch.setattr("socket.gethostname", lambda: "n1.cluster.example")
    assert place.host_name() == "n1.cluster.example"
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    assert place.host_name() == "n1"
    monkeypatch.setenv("HAKARU_HOST", "h1")
    assert place.host_name() == "h1"


def test_the_users_command_is_recorded_and_not_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["worker.py", "task.json"])
    monkeypatch.delenv(place.COMMAND, raising=False)
    assert place.gather()["command"] == ["worker.py", "task.json"]
    monkeypatch.setenv(place.COMMAND, "hakaru bench run gemm --label 'after repair'")
    words = place.gather()["command"]
    assert words == ["hakaru", "bench", "run", "gemm", "--label", "after repair"]
    monkeypatch.setenv(place.COMMAND, "an 'open quote")
    assert place.gather()["command"] == ["an 'open quote"]


def checkout(root: Path, head: str) -> Path:
    """A source tree with a `.git`, and the folder of its package."""
    (root / ".git/refs/heads").mkdir(parents=True)
    (root / ".git/HEAD").write_text(f"{head}\n")
    package = root / "src/hakaru"
    package.mkdir(parents=True)
    return package


def test_the_commit_is_that_of_the_branch(tmp_path: Path) -> None:
    package = checkout(tmp_path, "ref: refs/heads/main")
    assert source_commit(package) is None  # before the first commit
    packed = (
        f"# pack-refs with: peeled\n{COMMIT[::-1]} refs/heads/other\n{COMMIT} refs/heads/main\n"
    )
    (tmp_path / ".git/packed-refs").write_text(packed)
    assert source_commit(package) == COMMIT
    (tmp_path / ".git/refs/heads/main").write_text(f"{COMMIT[::-1]}\n")
    assert source_commit(package) == COMMIT[::-1]  # a later commit is in a file of its own


def test_the_commit_of_a_detached_head_and_of_a_worktree(tmp_path: Path) -> None:
    assert source_commit(checkout(tmp_path / "detached", COMMIT)) == COMMIT
    assert source_commit(checkout(tmp_path / "damaged", "no commit")) is None
    main = checkout(tmp_path / "main", "ref: refs/heads/main").parents[1] / ".git"
    (main / "refs/heads/side").write_text(COMMIT)
    own = main / "worktrees/side"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/side\n")
    (own / "commondir").write_text("../..\n")
    package = tmp_path / "side/src/hakaru"
    package.mkdir(parents=True)
    (tmp_path / "side/.git").write_text(f"gitdir: {own}\n")
    assert source_commit(package) == COMMIT


def test_an_installed_package_has_no_commit(tmp_path: Path) -> None:
    package = checkout(tmp_path, COMMIT).parents[1] / "lib/site-packages/hakaru"
    package.mkdir(parents=True)
    assert source_commit(package) is None
    assert place.gather()["commit"] == source_commit()


NVIDIA, AMD = "0x10de", "0x1002"
CPU = [Device("cpu:0", "core")]


def bus(root: Path, *cards: tuple[str, str]) -> Path:
    """A PCI bus with devices of these vendors and classes."""
    for at, (vendor, kind) in enumerate(cards):
        folder = root / f"0000:{at:02x}:00.0"
        folder.mkdir()
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text(f"{kind}\n")
    return root


def gpus(num: int) -> list[Device]:
    return [Device(f"cuda:{at}", "A100") for at in range(num)]


@pytest.fixture
def eight(tmp_path: Path) -> Path:
    return bus(tmp_path, *[(NVIDIA, "0x030200")] * 8, (NVIDIA, "0x068000"), ("0x1a03", "0x030000"))


def test_cards_on_the_bus_that_torch_does_not_see_are_missed(eight: Path) -> None:
    assert missing_gpus(gpus(8), (), eight, {}) is None
    problem = missing_gpus(gpus(7), (), eight, {})
    assert problem is not None
    assert "8 NVIDIA GPUs and torch sees 7: check nvidia-smi" in problem
    assert "torch sees 0" in str(missing_gpus(CPU, (), eight, {}))
    assert missing_gpus(gpus(7), ("cuda",), eight, {}) is not None  # all of a kind
    assert missing_gpus(gpus(1), ("n1/cuda:3",), eight, {}) is None
    assert missing_gpus(CPU, ("cpu",), eight, {}) is None


@pytest.mark.parametrize(
    ("visible", "num"),
    [("3", 1), ("0,1", 2), ("GPU-1b,GPU-2c,MIG-3d", 3), ("0, 1,-1,2", 2), ("", 0), ("-1", 0)],
)
def test_what_the_environment_hides_is_not_missed(eight: Path, visible: str, num: int) -> None:
    for name in devices.VISIBLE:
        environ = {name: visible}
        assert missing_gpus(gpus(num) or CPU, (), eight, environ) is None
        if num:
            seen = gpus(num - 1) or CPU
            assert f"{name} leaves {num}" in str(missing_gpus(seen, (), eight, environ))


@pytest.mark.parametrize(
    "environ",
    [
        {"SLURM_GPUS_ON_NODE": "4"},
        {"SLURM_STEP_GPUS": "0,1,2,3"},
        {"SLURM_JOB_GPUS": "0-2,7"},
        {"CUDA_VISIBLE_DEVICES": "0,1,2,3"},
        {"ROCR_VISIBLE_DEVICES": "0,1,2,3"},
        {"SLURM_GPUS_ON_NODE": "4", "CUDA_VISIBLE_DEVICES": "0"},  # the job holds more than it sees
    ],
)
def test_in_slurm_the_cards_of_the_job_are_expected(eight: Path, environ: dict[str, str]) -> None:
    inside = environ | {"SLURM_JOB_ID": "1"}
    assert missing_gpus(gpus(4), (), eight, inside) is None
    problem = missing_gpus(gpus(3), (), eight, inside)
    assert problem is not None
    assert "holds 4 GPUs on this node and torch sees 3" in problem
    assert missing_gpus(CPU, (), eight, inside) is not None


def test_in_slurm_without_its_variables_the_bus_does_not_count(eight: Path) -> None:
    inside = {"SLURM_JOB_ID": "1"}
    assert missing_gpus(gpus(1), (), eight, inside) is None
    assert "--slurm gpus_per_node" in str(missing_gpus(CPU, (), eight, inside))  # cores in silence
    hidden = inside | {"CUDA_VISIBLE_DEVICES": "NoDevFiles"}
    assert missing_gpus(CPU, (), eight, hidden) is not None
    assert missing_gpus(CPU, ("cpu",), eight, hidden) is None


def test_without_any_card_cores_are_the_devices(tmp_path: Path) -> None:
    assert missing_gpus(CPU, (), tmp_path, {}) is None
    assert missing_gpus(CPU, (), tmp_path, {"SLURM_JOB_ID": "1"}) is None


def test_the_graphics_of_a_laptop_are_no_missing_card(tmp_path: Path) -> None:
    assert missing_gpus(CPU, (), bus(tmp_path, (AMD, "0x030000")), {}) is None


@pytest.mark.parametrize("kind", ["0x038000", "0x120000"])
def test_amds_cards_are_missed_too(tmp_path: Path, kind: str) -> None:
    problem = missing_gpus(CPU, (), bus(tmp_path, *[(AMD, kind)] * 4), {})
    assert problem is not None
    assert "4 AMD GPUs and torch sees 0: check rocm-smi" in problem


def test_a_processors_own_graphics_is_no_missing_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed = bus(tmp_path, (AMD, "0x038000"), (NVIDIA, "0x030000"), (NVIDIA, "0x030000"))
    assert missing_gpus(gpus(2), (), mixed, {}) is None
    assert missing_gpus(gpus(1), (), mixed, {}) is not None
    monkeypatch.setattr("torch.version.hip", "6.2")
    assert missing_gpus(gpus(1), (), mixed, {}) is None
