"""The journal: whole lines come back, half-written ones are counted and never read."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.measure import journal
from hakaru.measure.collect import gather
from hakaru.measure.task import journal_of


def test_a_half_written_line_is_noticed_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.jsonl"
    journal.append(path, {"kind": "begin"})
    journal.append(path, {"kind": "result", "value": 1.5})
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    assert journal.read(path) == ([{"kind": "begin"}], 1)
    journal.append(path, {"kind": "end"})
    assert journal.read(path) == ([{"kind": "begin"}, {"kind": "end"}], 1)


def test_a_line_that_somebody_changed_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.jsonl"
    journal.append(path, {"value": 1.5})
    path.write_text(path.read_text().replace("1.5", "9.5"))
    assert journal.read(path) == ([], 1)


def test_no_journal_is_no_entry(tmp_path: Path) -> None:
    assert journal.read(tmp_path / "none") == ([], 0)


def test_a_line_without_a_kind_is_not_whole(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.jsonl"
    lines = ["{}", '{"kind": 3}', "[]", "no JSON", '{"kind": "end"}']
    marks = [hashlib.sha256(line.encode()).hexdigest()[:12] for line in lines]
    path.write_text("".join(f"{mark} {line}\n" for mark, line in zip(marks, lines, strict=True)))
    assert journal.read(path) == ([{"kind": "end"}], 4)


def test_an_entry_without_a_kind_gets_one(tmp_path: Path) -> None:
    journal.append(tmp_path / "plan.json", {"id": "a"})
    assert journal.read(tmp_path / "plan.json") == ([{"id": "a", "kind": "entry"}], 0)


def test_what_a_disk_takes_in_parts_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:5]))
    journal.append(tmp_path / "rank-0.jsonl", {"kind": "end"})
    assert journal.read(tmp_path / "rank-0.jsonl") == ([{"kind": "end"}], 0)


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(HakaruError, match="cannot be written: No space left"):
        journal.append(tmp_path / "rank-0.jsonl", {"kind": "end"})


@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o600), (0o2770, 0o660)])
def test_a_journal_is_for_those_who_may_read_its_folder(
    tmp_path: Path, folder: int, file: int
) -> None:
    tmp_path.chmod(folder)
    journal.append(tmp_path / "rank-0.jsonl", {"kind": "end"})
    assert stat.S_IMODE((tmp_path / "rank-0.jsonl").stat().st_mode) == file


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "rank-0.jsonl"
    victim.write_text("theirs")
    path.symlink_to(victim)
    with pytest.raises(HakaruError, match="it is a link"):
        journal.append(path, {"kind": "end"})
    assert victim.read_text() == "theirs"


def read_refused(path: Path) -> str:
    with pytest.raises(HakaruError, match="cannot be read: ") as refused:
        journal.read(path)
    return str(refused.value)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.jsonl"
    os.mkfifo(path)
    assert read_refused(path) == f"{path}: cannot be read: it is not a regular file"


def test_nothing_is_read_through_a_link(tmp_path: Path) -> None:
    journal.append(tmp_path / "theirs", {"kind": "end"})
    (tmp_path / "rank-0.jsonl").symlink_to(tmp_path / "theirs")
    assert read_refused(tmp_path / "rank-0.jsonl").endswith("it is a link")


def test_a_device_or_a_folder_is_no_journal(tmp_path: Path) -> None:
    assert read_refused(Path("/dev/null")).endswith("it is not a regular file")
    assert read_refused(tmp_path).endswith("it is not a regular file")


def test_a_file_larger_than_a_journal_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.jsonl"
    journal.append(path, {"kind": "end"})
    os.truncate(path, journal.MOST_BYTES + 1)  # sparse: it takes no room on the disk
    assert read_refused(path).endswith("it is larger than 1,073,741,824 bytes")


def test_a_refused_journal_leaves_no_file_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in (tmp_path / "pipe", tmp_path):
        read_refused(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_launch_with_an_unreadable_journal_has_no_result(tmp_path: Path) -> None:
    journal.append(journal_of(tmp_path, 0), {"kind": "end", "rank": 0})
    os.mkfifo(journal_of(tmp_path, 1))
    with pytest.raises(HakaruError, match=r"rank-1.*cannot be read: it is not a regular file"):
        gather(tmp_path, 2)
