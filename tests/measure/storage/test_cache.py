"""Files leave the page cache and come back when they are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.storage import _cache
from hakaru.measure.storage._cache import cached_share, evict
from hakaru.measure.storage._counters import IN_MEMORY, file_system_of

MIB = 1 << 20


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def on_disk(tmp_path: Path) -> Path:
    if file_system_of(tmp_path).type in IN_MEMORY:
        pytest.skip("the temporary folder is in memory, which evicts nothing")
    return tmp_path


def test_new_files_are_cached_evicted_and_read_again(on_disk: Path) -> None:
    (on_disk / "inner").mkdir()
    for number in range(3):
        (on_disk / "inner" / f"{number}.bin").write_bytes(os.urandom(MIB))
    (on_disk / "empty").touch()
    files = files_below(on_disk)
    assert len(files) == 4
    assert cached_share(files) == 1.0
    found = evict(files)
    assert found.total_bytes == 3 * MIB
    assert found.worked
    assert found.problem == ""
    files[1].read_bytes()
    share = cached_share(files)
    assert share is not None
    assert 0.3 <= share <= 0.4


def test_many_files_are_written_out_together(on_disk: Path) -> None:
    for number in range(_cache.FEW + 10):
        (on_disk / f"{number}.bin").write_bytes(os.urandom(4096))
    assert evict(files_below(on_disk)).worked


def test_files_in_memory_stay_and_that_is_said() -> None:
    folder = Path("/dev/shm")
    if not folder.is_dir() or file_system_of(folder).type not in IN_MEMORY:
        pytest.skip("no file system in memory here")
    path = folder / f"hakaru-test-{os.getpid()}"
    try:
        path.write_bytes(bytes(MIB))
        found = evict([path])
        assert found.worked is False
        assert found.problem == "100.0 % of the files stayed in the page cache"
    finally:
        path.unlink()


def test_files_of_another_user_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels since 5.2 call every page of them cached."""
    path = tmp_path / "file"
    path.write_bytes(bytes(8192))
    monkeypatch.setattr(_cache.os, "geteuid", lambda: path.stat().st_uid + 1)
    monkeypatch.setattr(_cache.os, "access", lambda *asked: False)
    found = evict([path])
    assert found.left is None
    assert found.worked is None
    assert "another user" in found.problem


@pytest.mark.parametrize("act", [lambda path: evict([path]), lambda path: cached_share([path])])
def test_a_pipe_or_a_link_in_a_file_s_place_is_refused_at_once(
    tmp_path: Path, act: Callable[[Path], object]
) -> None:
    """Opening a pipe would wait for a writer for ever."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    (tmp_path / "theirs").write_bytes(b"x")
    link.symlink_to(tmp_path / "theirs")
    with pytest.raises(HakaruError, match="no regular file"):
        act(pipe)
    with pytest.raises(HakaruError, match="found a link"):
        act(link)
