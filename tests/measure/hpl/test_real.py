"""A real search with hpcc, killed in the middle, that goes on and beats the default HPL.dat."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from hakaru.measure.hpl import missing_tools, search_hpl
from hakaru.measure.hpl.orphan import most_used_s
from hakaru.measure.verdict import Verdict
from tests.measure.hpl.test_resume import entries, wait_for

BUDGET_S, LONGER_S = 45.0, 75.0
KILLED_AFTER = 3  # launches: the two that calibrate and one of the search
SCRIPT = f"""
import sys
from pathlib import Path
from hakaru.measure.hpl import search_hpl
search_hpl(Path(sys.argv[1]), 2, {BUDGET_S})
"""


@pytest.fixture(autouse=True)
def hpcc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real one, whatever program this shell has chosen."""
    pytest.importorskip("optuna")
    monkeypatch.delenv("HAKARU_XHPL", raising=False)
    if problem := missing_tools():
        pytest.skip(problem)


@pytest.mark.alone
def test_a_killed_search_goes_on_and_beats_the_default(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], start_new_session=True
    )
    wait_for(tmp_path, KILLED_AFTER, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    whole = entries(tmp_path)

    found = search_hpl(tmp_path, 2, BUDGET_S)
    assert found.spent_s < BUDGET_S + 10
    if found.verdict is Verdict.CONTAMINATED:  # more pairs outvote those that somebody disturbed
        found = search_hpl(tmp_path, 2, LONGER_S)

    assert found.verdict in (Verdict.GOOD, Verdict.CONTAMINATED, Verdict.NOT_MEASURED), found.reason
    assert entries(tmp_path)[: len(whole)] == whole
    assert len(found.launches) > KILLED_AFTER
    written = Counter((e["launch"], e["index"]) for e in entries(tmp_path) if e["kind"] == "trial")
    planned = {(each.number, at) for each in found.launches for at in range(each.num_results)}
    assert set(written) == planned and set(written.values()) == {1}
    searched = Counter(each.tests for each in found.launches if each.phase == "search")
    assert set(searched.values()) == {1}
    assert found.trials and all(trial.passed for trial in found.trials)
    if found.verdict is not Verdict.GOOD:  # where others took the cores there is no margin to read
        pytest.skip(f"nothing was lost, but the margin is {found.verdict}: {found.reason}")
    assert found.margin_own is not None and found.margin_own.against.n == 1000
    assert found.margin_own.low > 0.1, found.reason
    assert (
        found.margin is not None or not found.changed
    )  # what is changed was compared at the same N


@pytest.mark.alone
def test_a_rank_that_is_killed_fails_the_search(tmp_path: Path) -> None:
    killed = threading.Thread(target=kill_a_rank, args=[tmp_path])
    killed.start()
    found = search_hpl(tmp_path, 2, BUDGET_S)
    killed.join()
    assert found.verdict is Verdict.FAILED, found.reason
    assert re.match(r"launch \d+ failed", found.reason) and "signal 9 (Killed)" in found.reason


def kill_a_rank(folder: Path) -> None:
    """One of two, as soon as both are there; only those that work in the folder."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        ranks = [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cwd")
            if is_rank_in(folder, path)
        ]
        if (
            len(ranks) == 2 and min(map(most_used_s, ranks)) > 0.3
        ):  # mpirun may hang on one that just begins
            os.kill(ranks[1], signal.SIGKILL)
            return
        time.sleep(0.02)


def is_rank_in(folder: Path, working: Path) -> bool:
    try:
        name = (working.parent / "comm").read_text().strip()
        return name == "hpcc" and working.resolve().is_relative_to(folder)
    except OSError:
        return False
