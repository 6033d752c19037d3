"""Where the ranks run: as many as asked for on each host, with one function for mpirun's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.measure.hpl import HERE, Program
from hakaru.measure.hpl.start import NOT_READ, on_hosts, remote_threads
from hakaru.measure.job import Plan
from hakaru.measure.launch import Layout
from hakaru.measure.launch.mpirun import is_open_mpi, mpirun_words
from hakaru.measure.place import host_name
from hakaru.measure.verdict import Verdict
from tests.measure.hpl._launchers import Tools
from tests.measure.hpl._measure import BUDGET_S, measure

HOSTS = Plan(("hpl",), launcher="mpirun", hosts=("n1", "n2"), num_hosts=2)


def test_ranks_are_spread_over_the_hosts_and_other_nodes_load_is_not_claimed(
    tools: Tools, tmp_path: Path
) -> None:
    pytest.importorskip("optuna")
    found = measure(tmp_path, BUDGET_S, HOSTS, ranks=8)
    assert found["rate"].verdict is Verdict.GOOD, found["rate"].reason
    calls = [" ".join(words) for words in tools.calls("mpirun") if words != ["--version"]]
    assert {words.split()[1] for words in calls} == {"1", "8"}
    assert all("--host n1:4,n2:4 --map-by ppr:4:node" in words for words in calls)
    assert all("-x OMP_NUM_THREADS" in words for words in calls)
    assert found["rate"].reason.endswith(NOT_READ)
    assert found["rate"].validity["other_nodes"] == NOT_READ


def test_ranks_that_do_not_fit_are_refused(tools: Tools, tmp_path: Path) -> None:
    plan = Plan(launcher="mpirun", hosts=("n1", "n2"), num_hosts=2, ranks_per_host=2)
    found = measure(tmp_path, BUDGET_S, plan, ranks=8)["rate"]
    assert found.verdict is Verdict.NOT_MEASURED
    assert "ranks=8 do not fit: --ranks-per-host 2 on 2 hosts are 4" in found.reason
    assert not tools.calls("mpirun")


@pytest.mark.usefixtures("quiet")
def test_all_on_this_machine_needs_no_excuse(tools: Tools, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    found = measure(tmp_path, BUDGET_S, Plan(), ranks=2)["rate"]
    assert found.verdict is Verdict.GOOD, found.reason
    assert "nodes" not in found.reason and found.validity["other_nodes"] is None
    assert on_hosts(Layout((host_name(), "localhost"), 1)).is_local


def test_threads_of_other_nodes_are_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert {*remote_threads().values()} == {"1"}
    monkeypatch.setenv("OMP_NUM_THREADS", "6")
    assert {*remote_threads().values()} == {"6"}


def test_the_words_of_mpirun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("hakaru.measure.launch.mpirun.is_open_mpi", lambda: True)
    here = ["mpirun", "-np", "2", "--bind-to", "none", "--oversubscribe"]
    assert HERE.command(Program("xhpl", "/x"), 2) == [*here, "/x"]
    assert mpirun_words(Layout((), 2)) == here
    monkeypatch.setattr("hakaru.measure.launch.mpirun.is_open_mpi", lambda: False)
    words = mpirun_words(Layout(("n1", "n2"), 4), 7)
    assert words == ["mpirun", "-np", "7", "-hosts", "n1,n2", "-ppn", "4"]


def test_mpirun_is_asked_which_it_is(tools: Tools) -> None:
    is_open_mpi.cache_clear()
    assert is_open_mpi()
    (tools.folder / "mpirun").write_text("#!/bin/sh\necho 'HYDRA build details:'\n")
    is_open_mpi.cache_clear()
    assert not is_open_mpi()
    is_open_mpi.cache_clear()
