"""What Hakaru writes is for its user alone, or for the group that the workspace names."""

from __future__ import annotations

import errno
import grp
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hakaru.engine.duckdb import connect
from hakaru.errors import SettingsError
from hakaru.lake import Lake
from hakaru.safety.files import Readers, make_folder, own_folder, spill_folder
from hakaru.settings import Engine
from tests._cli import hakaru
from tests.cli._log import HEADER, ROWS
from tests.conftest import job, put_jobs


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The most open umask, so that nothing is private by chance; it must be there again at the end."""
    before = os.umask(0)
    yield
    assert os.umask(before) == 0


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "mini.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


@pytest.fixture
def group() -> str:
    """A group that this process may give to a file."""
    gids = [1] if os.getuid() == 0 else os.getgroups()
    return grp.getgrgid(gids[-1]).gr_name


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_to_others(folder: Path) -> list[Path]:
    return [path for path in [folder, *folder.rglob("*")] if mode(path) & 0o077]


def test_an_ingest_makes_a_workspace_for_its_user_alone(tmp_path: Path, log: Path) -> None:
    workspace = tmp_path / "above" / "workspace"
    assert hakaru("ingest", log, "--cluster", "c", "-w", workspace).exit_code == 0
    assert mode(workspace) == 0o700
    assert mode(workspace / "lake") == 0o700
    assert open_to_others(tmp_path / "above") == []


def test_a_library_that_writes_gets_a_private_workspace_too(tmp_path: Path) -> None:
    put_jobs(Lake.create(tmp_path / "workspace"), [job(1)])
    assert open_to_others(tmp_path / "workspace") == []


def test_a_folder_that_is_there_keeps_its_mode_and_the_lake_in_it_is_private(
    tmp_path: Path, log: Path
) -> None:
    tmp_path.chmod(0o755)
    assert hakaru("ingest", log, "--cluster", "c", "-w", tmp_path).exit_code == 0
    assert mode(tmp_path) == 0o755
    assert open_to_others(tmp_path / "lake") == []


def test_a_lake_that_was_open_is_closed_by_the_next_write_and_says_so_once(
    tmp_path: Path, log: Path
) -> None:
    hakaru("ingest", log, "--cluster", "c", "-w", tmp_path)
    for path in [tmp_path / "lake", *(tmp_path / "lake").rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    said = hakaru("ingest", log, "--cluster", "c", "-w", tmp_path)
    assert f"{tmp_path / 'lake'} had the mode 0755; only its owner may read it now" in said.stderr
    assert open_to_others(tmp_path / "lake") == []
    assert "had the mode" not in hakaru("ingest", log, "--cluster", "c", "-w", tmp_path).stderr


def test_a_workspace_of_a_group(tmp_path: Path, log: Path, group: str) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "hakaru.toml").write_text(f'[workspace]\ngroup = "{group}"\n')
    assert hakaru("ingest", log, "--cluster", "c", "-w", tmp_path).exit_code == 0
    assert hakaru("lake", "compact", "-w", tmp_path).exit_code == 0
    for path in [tmp_path / "lake", *(tmp_path / "lake").rglob("*")]:
        assert path.group() == group, path
        assert mode(path) & 0o777 == (0o770 if path.is_dir() else 0o660), path


def test_a_private_lake_is_given_to_a_group_by_the_next_write(
    tmp_path: Path, log: Path, group: str
) -> None:
    hakaru("ingest", log, "--cluster", "c", "-w", tmp_path)
    (tmp_path / "hakaru.toml").write_text(f'[workspace]\ngroup = "{group}"\n')
    hakaru("ingest", log, "--cluster", "c", "-w", tmp_path)
    files = list((tmp_path / "lake").rglob("*.parquet"))
    assert files
    assert {(path.group(), mode(path)) for path in files} == {(group, 0o660)}


def test_a_new_workspace_of_a_group_can_be_reached(tmp_path: Path, group: str) -> None:
    make_folder(tmp_path / "a" / "b", Readers(group))
    assert mode(tmp_path / "a") == 0o711
    assert mode(tmp_path / "a" / "b") == 0o2770


def test_an_unknown_group_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hakaru.toml").write_text('[workspace]\ngroup = "no-such-group"\n')
    with pytest.raises(SettingsError, match="no group 'no-such-group'"):
        Lake.create(tmp_path)


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        (("show", "walltime"), "walltime.csv"),
        (("show", "walltime"), "walltime.parquet"),
        (("show", "walltime", "--figure"), "figure.html"),
        (("report",), "report.html"),
        (("export", "--format", "swf"), "exported.swf"),
    ],
    ids=["csv", "parquet", "figure", "report", "export"],
)
def test_reports_figures_and_exports_are_private(
    tmp_path: Path, log: Path, verb: tuple[str, ...], name: str
) -> None:
    output = tmp_path / "out" / name
    option = () if verb[-1] == "--figure" else ("-o",)
    done = hakaru(*verb, *option, output, "--from", f"c={log}")
    assert done.exit_code == 0, done.output
    assert mode(output) == 0o600
    assert open_to_others(output.parent) == []


def test_duckdb_spills_into_a_private_folder_that_goes_with_the_process(tmp_path: Path) -> None:
    found = connect(Engine()).execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
    assert Path(found) == spill_folder()
    assert mode(spill_folder()) == 0o700
    code = "from hakaru.safety.files import spill_folder as s; print(s()); (s() / 'x').touch()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(tmp_path)}, stdout=-1
    )
    assert Path(done.stdout.decode().strip()).parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_a_lake_that_its_owner_made_read_only_stays_so(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake").chmod(0o555)
    Lake.create(tmp_path)
    assert mode(tmp_path / "lake") == 0o500


@pytest.mark.parametrize("open_mode", [0o750, 0o710, 0o705, 0o777])
def test_a_lake_that_a_group_or_others_could_enter_is_closed(
    tmp_path: Path, open_mode: int
) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake").chmod(open_mode)
    assert Lake.create(tmp_path).mode_before == open_mode
    assert mode(tmp_path / "lake") == 0o700


def test_a_lake_that_only_its_owner_may_close_is_not_called_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    (tmp_path / "lake").mkdir()
    (tmp_path / "lake").chmod(0o555)
    monkeypatch.setattr(Path, "chmod", refuse)
    assert Lake.create(tmp_path).mode_before is None


def test_a_fork_leaves_the_spill_folder_of_its_parent() -> None:
    code = (
        "import os, sys; from hakaru.safety.files import spill_folder; mine = spill_folder(); "
        "child = os.fork(); child or sys.exit(); os.waitpid(child, 0); print(mine.is_dir())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.parametrize("shared", [False, True])
def test_the_mode_of_what_a_link_leads_to_stays(tmp_path: Path, group: str, shared: bool) -> None:
    secret, outside = tmp_path / "secret", tmp_path / "outside"
    secret.touch(0o604)
    outside.mkdir(0o705)
    lake = tmp_path / "workspace" / "lake"
    (lake / "inside").mkdir(parents=True)
    lake.chmod(0o755)
    for target in (secret, outside):
        (lake / "inside" / target.name).symlink_to(target)
    before = (secret.stat().st_gid, mode(secret), mode(outside))
    own_folder(lake, Readers(group if shared else None))
    assert (secret.stat().st_gid, mode(secret), mode(outside)) == before
    assert mode(lake / "inside") == (0o2770 if shared else 0o700)


def test_a_process_that_is_told_to_end_removes_its_temporary_files(tmp_path: Path) -> None:
    spills, workspace = tmp_path / "spills", tmp_path / "workspace"
    spills.mkdir()
    code = (
        "from hakaru.cli import main; from hakaru.safety.files import spill_folder; spill_folder(); "
        f"main(['ingest', '-', '--cluster', 'c', '-w', {str(workspace)!r}])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"TMPDIR": str(spills)},
        stdin=subprocess.PIPE,
    )
    while not list(workspace.glob("lake/_staging/*/*/stdin")):  # it waits for its input
        assert process.poll() is None
        time.sleep(0.05)
    assert list(spills.iterdir()) != []
    process.terminate()
    assert process.wait(30) == 143
    assert list(spills.iterdir()) == []
    assert list(workspace.glob("lake/_staging/*")) == []
