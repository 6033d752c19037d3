"""The queue of runs in one server, step by step: a run that is prepared waits for the test's word."""

from __future__ import annotations

import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.web.problems import Busy, Unknown
from hakaru.web.what_if import models
from hakaru.web.what_if.bounds import Bounds
from hakaru.web.what_if.runs import Run, Runs

PATIENCE_S = 60


class Held:
    """A run whose jobs cannot be had: it says so when it is let go."""

    def __init__(self) -> None:
        self.entered, self.go = threading.Event(), threading.Event()
        wanted = models.Wanted(cluster="c", scenario="[[variant]]")
        self.run = Run(wanted, ["a", "b"], 7, self._prepare)

    def _prepare(self, folder: Path) -> Any:
        self.entered.set()
        assert self.go.wait(PATIENCE_S)
        raise HakaruError("the jobs cannot be had")


def joined(runs: Runs) -> None:
    """Wait until all that were queued are over."""
    if (worker := runs._worker) is not None:
        worker.join(PATIENCE_S)
        assert not worker.is_alive()


def test_one_is_played_two_wait_and_a_fourth_is_refused() -> None:
    runs = Runs(Bounds(waiting=2))
    first, second, third, fourth = (Held() for _ in range(4))
    runs.start(first.run)
    assert first.entered.wait(PATIENCE_S)
    runs.start(second.run)
    runs.start(third.run)
    with pytest.raises(Busy, match="2 what-if runs wait already"):
        runs.start(fourth.run)
    assert [each.run.state for each in (first, second, third)] == ["running", "queued", "queued"]
    assert [runs.num_ahead(each.run) for each in (first, second, third)] == [0, 1, 2]
    assert runs.all() == [third.run, second.run, first.run]
    with pytest.raises(Unknown):
        runs.find(fourth.run.id)

    assert runs.cancel(second.run.id).state == "cancelled"
    assert runs.num_ahead(third.run) == 1
    runs.start(fourth.run)  # there is room again
    first.go.set()
    assert third.entered.wait(PATIENCE_S)
    assert (first.run.state, first.run.problem) == ("failed", "the jobs cannot be had")
    assert not second.entered.is_set()  # who was cancelled is never prepared
    third.go.set()
    fourth.go.set()
    joined(runs)
    assert fourth.run.state == "failed"
    runs.close()


def test_what_has_ended_is_not_cancelled_and_the_oldest_are_forgotten() -> None:
    runs = Runs(Bounds(waiting=3, kept=2))
    held = [Held() for _ in range(3)]
    for each in held:
        each.go.set()
        runs.start(each.run)
        joined(runs)
    assert runs.cancel(held[-1].run.id).state == "failed"
    assert runs.all() == [each.run for each in reversed(held)]
    more = Held()
    more.go.set()
    runs.start(more.run)  # two that are over stay beside it
    assert [each.run.id for each in (more, held[2], held[1])] == [run.id for run in runs.all()]
    joined(runs)
    runs.close()


def test_a_server_that_closes_ends_what_it_plays_and_takes_no_more() -> None:
    runs = Runs(Bounds(waiting=2))
    first, second = Held(), Held()
    runs.start(first.run)
    assert first.entered.wait(PATIENCE_S)
    runs.start(second.run)
    folder = first.run.folder
    assert folder is not None and folder.exists()
    first.go.set()
    runs.close()
    assert second.run.state == "cancelled" and isinstance(second.run.ended_at, datetime)
    assert not folder.parent.exists()
    with pytest.raises(Busy):
        runs.start(Held().run)


def test_an_internal_error_says_where_its_cause_is() -> None:
    class Broken(Held):
        def _prepare(self, folder: Path) -> Any:
            raise ZeroDivisionError

    runs = Runs(Bounds())
    broken = Broken()
    runs.start(broken.run)
    joined(runs)
    runs.close()
    assert broken.run.problem == (
        "it failed by an internal error; the cause is in the app's log, which hakaru serve writes to its "
        "standard error"
    )
