"""A search that is killed without warning goes on where it was: nothing is lost, nothing measured twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.measure import journal
from hakaru.measure.hpl import Program, Scale, search_hpl
from hakaru.measure.hpl.orphan import most_used_s, only_search
from tests.measure.hpl.conftest import ALONE

SCRIPT = """
import sys
from pathlib import Path
from hakaru.measure.hpl import Program, Scale, Start, search_hpl
folder, program = Path(sys.argv[1]), Program("xhpl", sys.argv[2])
alone = Start(lambda ranks: ())
search_hpl(folder, 2, 60.0, program, alone, scales=[Scale(1, 1024), Scale(2, 1536), Scale(2, 2048)])
"""


def entries(folder: Path) -> list[dict[str, object]]:
    return journal.read(folder / "journal.jsonl")[0]


def wait_for(folder: Path, num_launches: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if sum(entry["kind"] == "launch" for entry in entries(folder)) >= num_launches:
            return
        time.sleep(0.02)
    raise AssertionError("the search ended, or hung, before it was to be killed")


def test_after_kill_nothing_is_lost_or_measured_twice(
    fake_xhpl: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    folder = tmp_path / "s"
    monkeypatch.setenv("FAKE_XHPL_S", "0.3")
    words = [sys.executable, "-c", SCRIPT, str(folder), fake_xhpl.path]
    process = subprocess.Popen(words, start_new_session=True)
    wait_for(folder, 3, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    left_over = json.loads((folder / "running.json").read_text())["pid"]
    before, whole = (folder / "journal.jsonl").read_bytes(), entries(folder)

    monkeypatch.setenv("FAKE_XHPL_S", "0.01")
    scales = [Scale(1, 1024), Scale(2, 1536), Scale(2, 2048)]
    found = search_hpl(folder, 2, 60.0, fake_xhpl, ALONE, scales=scales)

    assert (folder / "journal.jsonl").read_bytes().startswith(before)
    assert entries(folder)[: len(whole)] == whole
    assert [launch.number for launch in found.launches] == list(range(1, len(found.launches) + 1))
    written = Counter((e["launch"], e["index"]) for e in entries(folder) if e["kind"] == "trial")
    planned = {(each.number, at) for each in found.launches for at in range(len(each.tests))}
    assert set(written) == planned and set(written.values()) == {1}
    searched = Counter(each.tests for each in found.launches if each.phase == "search")
    assert set(searched.values()) == {1}
    assert found.best is not None and found.best.config.nb == 128
    with pytest.raises(ProcessLookupError):  # the launch that the killed search left behind
        os.kill(left_over, 0)


def test_results_whose_lines_were_not_written_are_read_from_the_launch(
    fake_xhpl: Program, tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    search_hpl(folder, 2, 2.1, fake_xhpl, ALONE, scales=[Scale(2, 1024)])
    path = folder / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    kinds = [entry["kind"] for entry in entries(folder)]
    first = kinds.index("launch")
    whole = entries(folder)[: first + 4]
    path.write_bytes(b"".join(lines[: first + 2]) + lines[first + 2][:20])
    search_hpl(folder, 2, 2.1, fake_xhpl, ALONE, scales=[Scale(2, 1024)])
    assert entries(folder)[: first + 4] == whole


def test_a_damaged_line_in_the_middle_is_read_again_and_that_of_a_launch_is_an_error(
    fake_xhpl: Program, tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    search_hpl(folder, 2, 2.1, fake_xhpl, ALONE, scales=[Scale(2, 1024)])
    path = folder / "journal.jsonl"
    lines, whole = path.read_bytes().splitlines(keepends=True), entries(folder)
    first = [each["kind"] for each in whole].index("trial")
    path.write_bytes(b"".join([*lines[:first], b"x" + lines[first], *lines[first + 1 :]]))
    search_hpl(folder, 2, 2.1, fake_xhpl, ALONE, scales=[Scale(2, 1024)])
    trials = [(e["launch"], e["index"]) for e in entries(folder) if e["kind"] == "trial"]
    assert len(trials) == len(set(trials))
    assert whole[first] in entries(folder)

    path.write_bytes(b"".join([*lines[: first - 1], b"x" + lines[first - 1], *lines[first:]]))
    with pytest.raises(HakaruError, match=r"the line of launch 1 is damaged. Remove the folder"):
        search_hpl(folder, 2, 2.1, fake_xhpl, ALONE, scales=[Scale(2, 1024)])


def test_two_searches_do_not_share_a_folder(fake_xhpl: Program, tmp_path: Path) -> None:
    with (
        only_search(tmp_path),
        pytest.raises(HakaruError, match="another search works in this folder"),
    ):
        search_hpl(tmp_path, 2, 5.0, fake_xhpl, ALONE)


def test_a_launchs_own_processor_time_is_not_taken_for_somebody_elses() -> None:
    spin = "import time\nwhile time.process_time() < 60: pass"
    words = ["sh", "-c", f"{sys.executable} -c '{spin}' & wait"]
    with subprocess.Popen(words, process_group=0) as process:
        deadline = time.monotonic() + 20
        while most_used_s(process.pid) < 0.3 and time.monotonic() < deadline:
            time.sleep(0.1)
        used = most_used_s(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
    assert 0.3 <= used < 20


def test_what_proc_cuts_from_the_times_of_many_ranks_counts_as_theirs() -> None:
    words = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait"]
    with subprocess.Popen(words, process_group=0) as process:
        deadline = time.monotonic() + 20
        while (used := most_used_s(process.pid)) < 0.4 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    assert used >= 0.4  # ten processes with four numbers each, of which each may lack almost 0.01 s
