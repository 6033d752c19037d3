"""A module that lies in the working directory is never imported by a process that the app starts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hakaru
from hakaru.lake import Lake
from hakaru.safety.processes import module_command, python_words
from hakaru.web.app import create_app
from tests.conftest import put_jobs
from tests.web._site import running
from tests.web.what_if._runs import API, ONE_NODE, ended, queue_jobs


@pytest.fixture
def trapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory whose numpy.py and pyarrow.py leave a mark when they run; gives the mark."""
    mark, here = tmp_path / "mark", tmp_path / "here"
    here.mkdir()
    for name in ("numpy", "pyarrow", "pickle", "hakaru"):
        (here / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(here)
    return mark


def test_a_what_if_run_of_the_server_imports_nothing_from_the_working_directory(
    trapped: Path, tmp_path: Path
) -> None:
    lake = put_jobs(Lake.create(tmp_path / "lake"), queue_jobs())
    with running(create_app(lake)) as server, server.client() as client:
        asked = client.post(API, json={"cluster": "c", "scenario": ONE_NODE})
        assert ended(client, asked.json()["id"])["state"] == "done"
    assert not trapped.exists()


def test_the_trap_works(trapped: Path) -> None:
    subprocess.run([sys.executable, "-m", "hakaru.web.what_if.player"], capture_output=True)
    assert trapped.read_text() == "hakaru"


@pytest.mark.parametrize("module", ["hakaru.web.what_if.player", "hakaru.sim.whatif._worker"])
def test_our_modules_start_without_the_working_directory(trapped: Path, module: str) -> None:
    done = subprocess.run(module_command(module), capture_output=True, text=True)
    assert "hakaru" in done.stderr  # it came as far as its own arguments, which are missing
    assert not trapped.exists()


def test_a_launcher_starts_python_without_the_working_directory(trapped: Path) -> None:
    command = f"{python_words()} -u -m pickle"  # as submitit continues it
    assert subprocess.run(command, shell=True, capture_output=True).returncode == 0
    assert not trapped.exists()


def test_every_command_of_python_is_made_in_one_place() -> None:
    """`demo` looks only for `activate` beside the interpreter."""
    root = Path(hakaru.__file__).parent
    files = (file for file in root.rglob("*.py") if re.search(r"sys\.executable", file.read_text()))
    found = {str(file.relative_to(root)) for file in files}
    assert found == {"safety/processes.py", "cli/demo.py"}
