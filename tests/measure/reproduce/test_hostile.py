"""Rows that anybody may have written: each is judged or not measured, and nothing breaks."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from hakaru.measure.record import Measurement, Run, from_rows, to_rows
from hakaru.measure.reproduce import PAPERS, Paper, compare
from hakaru.measure.verdict import Verdict
from tests.measure._runs import measured, run_of
from tests.measure.lakes_training import HALF, HOSTILE
from tests.measure.reproduce._rows import epoch, loading, near, row, scaling

ODD: tuple[Any, ...] = (
    None, 0, -1, 0.5, 1e300, 10**400, True, "x", HALF, [], [1], {"a": 1}, float("nan"), float("inf"),
)  # fmt: skip
DOCUMENTS: tuple[Any, ...] = (
    {"epochs": 5}, {"epochs": [3, None, {"label": 3}, {"label": HALF}]}, {"plan": {"stages": 3}},
    {"plan": {"stages": ["x"]}, "loss_gap": HALF}, {"plan": 7, "loss_gap": 1e-9},
    {"fit": 3}, {"fit": {"state": 5, "sentence": 3}}, {"fit": {"state": HALF}, "memory_mib": HALF},
    {"timeline": {"hidden": 4}}, {"timeline": {"hidden": {"copy": 7, "loading": "x"}}},
    {"communication": {"bytes": "many"}}, {"communication": 3}, {"notes": 3, "label": [1], "filesystem": 3},
)  # fmt: skip


@pytest.fixture(params=PAPERS.values(), ids=list(PAPERS))
def paper(request: pytest.FixtureRequest) -> Paper:
    found: Paper = request.param
    return found


def rows_of() -> list[Measurement]:
    """One of each kind that the papers ask for."""
    timed = [
        scaling(ranks, value, quantity=quantity, model=model, scaling=kind, compression=compression)
        for ranks in (1, 2, 3, 4)
        for quantity, value in (("step", 9.0), ("exposed", 1.0), ("efficiency", 0.9), ("throughput", 9.0))
        for model, kind in (("mlp", "strong"), ("resnet50", "weak"))
        for compression in ("none", "fp16")
    ]  # fmt: skip
    plan = row("strategies", "step", near(4.0), parameters={"model": "mlp", "strategy": "gpipe"})
    stored = [epoch("alexnet", mib, 1.0, 1.1, quantity=quantity)
              for mib in (16, 64, 128) for quantity in ("epoch", "stall")]  # fmt: skip
    layouts = [loading(name, 9.0, state, "cached")
               for name in ("files", "packed") for state in ("cold", "warm")]  # fmt: skip
    return [
        *timed,
        plan,
        *stored,
        *layouts,
        measured(*near(9.0)),
        measured(*near(9.0), device="cuda:1"),
    ]


def judged(paper: Paper, run: Run) -> None:
    """As it is stored and read again; all that is told can be written."""
    (again,) = from_rows(to_rows(run))
    found = compare(paper, again)
    assert len(found) == len(paper.findings)
    for each in found:
        told = each.to_json()
        assert json.dumps(told, ensure_ascii=False).encode()
        assert not re.search(r"\b(nan|inf) (%|s|ms|MiB)", told["measured"] or "")
        assert len(told["measured"] or "") <= 2_000
        is_quiet = told["verdict"] not in ("not measured", "not comparable")
        assert not (is_quiet and told["measured"] is None)


@pytest.mark.parametrize("document", [*HOSTILE, *DOCUMENTS])
def test_a_damaged_document_breaks_nothing(paper: Paper, document: Any) -> None:
    facts = document if isinstance(document, dict) else {"epochs": document, "fit": document,
                                                         "plan": document, "timeline": document}  # fmt: skip
    judged(paper, run_of(*(replace(each, validity=facts) for each in rows_of())))


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "name", ["mib", "memory", "ranks", "hosts", "model", "strategy", "workers", "layout"]
)
def test_an_odd_parameter_breaks_nothing(paper: Paper, name: str, value: Any) -> None:
    rows = rows_of()
    all_odd = [replace(each, parameters={**each.parameters, name: value}) for each in rows]
    judged(paper, run_of(*all_odd))
    judged(paper, run_of(*rows, *all_odd))


@pytest.mark.parametrize("value", ODD)
def test_an_odd_place_breaks_nothing(paper: Paper, value: Any) -> None:
    for place in (
        {"hardware": value}, {"hardware": {"gpus": value, "num_usable": value}},
        {"model": value, "hardware": {"num_usable": 2}},
        {"model": "core of x", "hardware": {"num_usable": value}},
    ):  # fmt: skip
        judged(paper, run_of(*(replace(each, place=place) for each in rows_of())))


@pytest.mark.parametrize(
    "samples", [(), (0.0, 0.0), (1e-300, 1e300), (1e300, 1e300), (0.0, 0.0, 1.0)]
)
def test_odd_numbers_break_nothing(paper: Paper, samples: tuple[float, ...]) -> None:
    for unit in ("s", "0–1"):
        judged(paper, run_of(*(replace(each, samples=samples, unit=unit) for each in rows_of())))


def test_words_that_cannot_be_written_are_made_safe() -> None:
    bad = [
        replace(each, verdict=Verdict.FAILED, reason=HALF.replace("\ud800", "\n"))
        for each in rows_of()
    ]
    for paper in PAPERS.values():
        for each in compare(paper, run_of(*bad, left_out=(HALF,))):
            assert each.answer.why.encode() and "\n" not in each.answer.why
