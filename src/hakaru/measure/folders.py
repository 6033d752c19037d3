"""Where the measurements of a workspace lie beside its lake."""

from __future__ import annotations

from pathlib import Path

from hakaru.errors import HakaruError
from hakaru.safety.files import Readers, make_folder, own_folder, refuse_link
from hakaru.settings import check_cluster_name, load

BENCH, BASELINES = "bench", "baselines"


def bench_folder(workspace: Path) -> Path:
    """A folder a run, until it is stored."""
    return workspace / BENCH


def baselines_folder(workspace: Path) -> Path:
    return workspace / BASELINES


def preflight_file(workspace: Path, cluster: str) -> Path:
    """The last preflight of a cluster, for the page and the report."""
    return bench_folder(workspace) / f"preflight-{check_cluster_name(cluster)}.json"


def preflight_files(workspace: Path) -> list[Path]:
    """Those of all clusters."""
    return sorted(bench_folder(workspace).glob("preflight-*.json"))


def own_bench_folder(workspace: Path, *names: str) -> Path:
    """The folder of runs, or one inside, made for the workspace's readers; a link is refused."""
    return _own(workspace, BENCH, *names)


def own_baselines_folder(workspace: Path) -> Path:
    return _own(workspace, BASELINES)


def _own(workspace: Path, first: str, *names: str) -> Path:
    readers = Readers(load(workspace).workspace.group)
    folder = workspace / first
    try:
        refuse_link(folder)
        own_folder(folder, readers)
        for name in names:
            folder /= name
            refuse_link(folder)
            make_folder(folder, readers)
    except OSError as error:
        raise HakaruError(f"{folder} cannot be made: {error.strerror}") from None
    return folder
