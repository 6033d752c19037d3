"""Documents of stored rows: read by type, kept for training and storage alone, and never trusted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hakaru.analyses import open_session
from hakaru.figures.measure.stored import load_view
from hakaru.figures.measure.view import WITH_DOCUMENTS, RunView
from hakaru.lake import Lake
from tests.figures.measure._runs import run_of, view_of
from tests.measure.lakes import measured, put_runs
from tests.measure.lakes_training import HOSTILE, hostile_rows, scaling_rows


def test_a_stored_run_has_the_documents_of_the_run_at_hand(lake: Lake) -> None:
    """The rows of one document share its text; those of other benchmarks keep none."""
    other = measured(validity={"verdict": "not read"})
    run = run_of(*scaling_rows(ranks=(1, 2)), other)
    put_runs(lake, [run])
    with open_session(lake) as session:
        stored = load_view(session, "c", "r1")
    at_hand = RunView.of(run)
    for view in (stored, at_hand):
        assert {each.benchmark for each in view.readings if each.facts} == {"scaling"}
        assert all(
            not each.validity for each in view.readings if each.benchmark not in WITH_DOCUMENTS
        )
    told = [
        sorted(each.facts.text("verdict") for each in view.readings) for view in (stored, at_hand)
    ]
    assert told[0] == told[1] and sum(map(bool, told[0])) == 8
    rows = [each for each in stored.readings if each.validity]
    assert len({id(each.validity) for each in rows}) == len({each.validity for each in rows}) == 2
    assert (
        stored.nbytes
        < view_of(other).nbytes * 9
        + sum(len(text) for text in {each.validity for each in rows})
        + 1
    )


@pytest.mark.parametrize("facts", HOSTILE)
def test_a_damaged_document_is_stored_and_read(lake: Lake, facts: Any) -> None:
    put_runs(lake, [run_of(*hostile_rows(facts))])
    with open_session(lake) as session:
        view = load_view(session, "c", "r1")
    assert len(view.readings) == 4
    assert all(json.dumps(each.shown) for each in view.readings)
