"""Where the measurements of a workspace lie beside its lake."""

from __future__ import annotations

from pathlib import Path

from hakaru.safety.files import Readers, make_folder, own_folder, refuse_link
from hakaru.settings import load

BENCH, BASELINES = "bench", "baselines"


def bench_folder(workspace: Path) -> Path:
    """A folder a run, until it is stored."""
    return workspace / BENCH


def baselines_folder(workspace: Path) -> Path:
    return workspace / BASELINES


def preflight_file(workspace: Path) -> Path:
    """The last preflight, for the page."""
    return bench_folder(workspace) / "preflight.json"


def own_bench_folder(workspace: Path, *names: str) -> Path:
    """The folder of runs, or one inside, made for the workspace's readers; a link is refused."""
    return _own(workspace, BENCH, *names)


def own_baselines_folder(workspace: Path) -> Path:
    return _own(workspace, BASELINES)


def _own(workspace: Path, first: str, *names: str) -> Path:
    readers = Readers(load(workspace).workspace.group)
    folder = workspace / first
    refuse_link(folder)
    own_folder(folder, readers)
    for name in names:
        folder /= name
        refuse_link(folder)
        make_folder(folder, readers)
    return folder
