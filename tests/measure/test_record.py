"""The record: what is stored comes back, and what cannot be read is never good."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hakaru.analyses import open_session
from hakaru.engine.duckdb import connect
from hakaru.errors import HakaruError
from hakaru.figures.measure.stored import before, load_view, newest
from hakaru.figures.measure.stored import list_runs as list_in_page
from hakaru.lake import Lake
from hakaru.measure.record import JUDGED, PLAIN, from_rows, to_rows, verdict_of
from hakaru.measure.store import GATE, check_label, find_run, list_runs, load_runs, save
from hakaru.measure.verdict import EXIT_CODES, Verdict, worst
from hakaru.schema import RUNS
from hakaru.settings import Engine
from tests._cli import hakaru
from tests.measure._runs import NOW, measured, run_of


def test_a_run_comes_back_as_it_was_stored(lake: Lake) -> None:
    run = run_of(
        measured(1.0, 2.0, 3.0, reason="fine", validity={"steal": 0.1}),
        measured(device="cuda:1", verdict=Verdict.FAILED, reason="killed"),
        label="acceptance",
        left_out=("tf32",),
    )
    save(lake, run)
    save(lake, run)
    (found,) = load_runs(lake)
    assert found.left_out == ("tf32",)
    assert (found.label, found.verdict) == ("acceptance", Verdict.FAILED)
    first, second = sorted(found.measurements, key=lambda each: each.device)
    assert (first.samples, first.median, first.reason) == ((1.0, 2.0, 3.0), 2.0, "fine")
    assert first.validity["steal"] == 0.1
    assert first.model == "A100"
    assert (second.samples, second.median) == ((), None)


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "splendid"}, {"raw": "[1.0,"}, {"raw": None}, {"raw": "[NaN]"}, {"raw": '["x"]'},
        {"raw": "[1.0, 0]"}, {"raw": "[-5, 1.0]"}, {"raw": "[1.0, 1e999]"}, {"raw": "[1.0, null]"},
        {"raw": "[" * 100_000}, {"raw": f"[{'9' * 400}]"}, {"raw": "[true]"}, {"raw": "[1e308, 1e308]"},
        {"median": None},
        {"validity": '{"correlation": "x"}'}, {"validity": '{"correlation": NaN}'},
        {"validity": '{"correlation": 5}'}, {"raw": "[0]", "verdict": "slow"},
        {"raw": "[]"}, {"raw": "[abc]"}, {"raw": "[5,,6]"}, {"raw": "[5.0, ]"}, {"raw": "[05.0]"},
    ],
    ids=["unknown verdict", "half-written", "missing", "not a number", "text", "zero", "negative",
         "infinite", "a gap", "nested", "too large", "true", "far too large", "no median",
         "correlation in words",
         "correlation NaN", "correlation of 5", "slow with 0",
         "none", "a word", "a hole", "an end without a number", "a zero before it"],
)  # fmt: skip
def test_a_record_that_cannot_be_read_is_not_measured(lake: Lake, change: dict[str, str]) -> None:
    (row,) = to_rows(run_of(measured(1.0, 1.0)))
    (run,) = from_rows([row | change])
    assert run.verdict is Verdict.NOT_MEASURED and run.measurements[0].reason
    with closing(connect(Engine())) as con:
        lake.put_rows(con, RUNS, [row | change])
    (listed,) = list_runs(lake)
    assert (listed["verdicts"], listed["num_good"]) == ([Verdict.NOT_MEASURED], 0)
    with open_session(lake) as session:
        (shown,) = list_in_page(session)
        assert shown.verdict is load_view(session, "c", "r1").verdict is Verdict.NOT_MEASURED
    result = hakaru("bench", "list", "--runs", "-w", lake.workspace)
    assert result.exit_code == 0 and "not measured" in result.output, result.output


def one_kind_of(text: str, verdict: str = "good") -> dict[str, object]:
    (row,) = to_rows(run_of(measured(1.0)))
    return {name: row[name] for name in JUDGED} | {"raw": text, "verdict": verdict}


def plain_ones(rows: list[dict[str, object]]) -> list[bool]:
    table = pa.Table.from_pylist(
        rows, schema=pa.schema([(name, RUNS.arrow().field(name).type) for name in JUDGED])
    )
    with closing(connect(Engine())) as con:
        con.register("judged", table)
        return [found for (found,) in con.execute(f"SELECT {PLAIN} FROM judged").fetchall()]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text("[]0015.., e-", max_size=9).map("[{}]".format), min_size=40, max_size=40))
def test_what_counts_without_a_look_is_what_a_look_finds_good(texts: list[str]) -> None:
    rows = [one_kind_of(text) for text in texts]
    for row, is_plain in zip(rows, plain_ones(rows), strict=True):
        assert not is_plain or verdict_of(row) == (Verdict.GOOD, ""), row["raw"]


def test_what_is_usually_stored_needs_no_look() -> None:
    many = [measured(*(scale * each for each in (1.0, 12.5, 99.0))) for scale in (1e-3, 1.0, 1e9)]
    rows = [{name: row[name] for name in JUDGED} for row in to_rows(run_of(*many))]
    assert plain_ones(rows) == [True, True, True]


def test_a_repetition_that_is_no_number_is_stored_and_shows() -> None:
    (row,) = to_rows(run_of(measured(100.0, math.nan, math.inf)))
    assert row["raw"] == "[100.0, null, null]"
    (run,) = from_rows([row])
    assert run.measurements[0].reason == "2 of its 3 repetitions are not numbers above 0"


def test_a_check_may_be_zero() -> None:
    (row,) = to_rows(run_of(measured(0.0, unit="0–1", better="lower")))
    assert from_rows([row])[0].verdict is Verdict.GOOD


def test_left_out_that_is_no_list_ends_nothing() -> None:
    (row,) = to_rows(run_of(measured(1.0)))
    assert from_rows([row | {"place": '{"left_out": 5}'}])[0].left_out == ()


def test_a_label_in_two_clusters_is_ambiguous_and_an_id_wins(lake: Lake) -> None:
    for cluster, id, label in (("a", "r1", "nightly"), ("b", "r2", "nightly"), ("a", "r3", "r1")):
        save(lake, replace(run_of(measured(1.0), id=id, label=label), cluster=cluster))
    with pytest.raises(HakaruError, match=r"several clusters have a run 'nightly'.*: a, b"):
        find_run(lake, "nightly")
    assert find_run(lake, "nightly", "b").id == "r2"
    assert find_run(lake, "r1").id == "r1", "its id, not the label of r3"


def test_a_label_like_the_beginning_of_another_id_is_ambiguous(lake: Lake) -> None:
    """A gate must not judge an old good run in place of the one that was labelled with a date."""
    save(lake, run_of(measured(1.0), id="20260101-a"))
    save(lake, run_of(measured(1.0), id="20270101-b", label="20260101"))
    with pytest.raises(HakaruError, match="several runs begin with '20260101' or have this label"):
        find_run(lake, "20260101")
    save(lake, run_of(measured(1.0), id="20280101-c", label="20280101"))
    assert find_run(lake, "20280101").id == "20280101-c"


@pytest.mark.parametrize("label", ["", "  ", "20261101-120000", "20261101-120000-abcdef", "latest"])
def test_a_label_like_an_id_or_blank_is_refused(label: str) -> None:
    with pytest.raises(HakaruError, match="cannot be labelled"):
        check_label(label)
    with pytest.raises(HakaruError, match="'latest': the name is reserved for the newest run"):
        check_label("latest")
    assert check_label("acceptance 2026") == "acceptance 2026"


def test_runs_are_found_by_id_beginning_label_and_as_the_latest(lake: Lake) -> None:
    for at, id in enumerate(("20260101-a", "20260102-b")):
        when = NOW.replace(day=at + 1)
        each = measured(1.0, started_at=when, ended_at=when)
        save(lake, replace(run_of(each, id=id), label=f"label-{at}"))
    assert [row["run_id"] for row in list_runs(lake)] == ["20260102-b", "20260101-a"]
    assert find_run(lake).id == "20260102-b"
    assert find_run(lake, "20260101").id == find_run(lake, "label-0").id == "20260101-a"
    with pytest.raises(HakaruError, match="several runs begin with '2026'") as several:
        find_run(lake, "2026")
    assert str(several.value).endswith("; choose one of 20260102-b, 20260101-a")
    with pytest.raises(HakaruError, match="there is no run 'x'"):
        find_run(lake, "x")


def test_a_run_that_two_clusters_have_is_not_guessed(lake: Lake) -> None:
    for cluster in ("a", "b"):
        save(lake, replace(run_of(measured(1.0)), cluster=cluster))
    with pytest.raises(HakaruError, match="choose one with --cluster: a, b"):
        find_run(lake, "r1")
    assert find_run(lake, "r1", "b").cluster == "b"


def test_an_id_comes_before_a_label_and_a_self_test_is_not_the_latest(lake: Lake) -> None:
    later = measured(1.0, started_at=NOW.replace(day=9), ended_at=NOW.replace(day=9))
    save(lake, run_of(measured(1.0), id="r1"))
    save(lake, replace(run_of(later, id="r2"), label="r1"))
    test = replace(later, benchmark="selftest", started_at=NOW.replace(day=10))
    save(lake, run_of(test, id="r3"))
    assert (find_run(lake, "r1").id, find_run(lake).id) == ("r1", "r2")


def test_a_gate_of_one_node_is_not_the_latest_run_of_the_cluster(lake: Lake) -> None:
    later = NOW.replace(day=9)
    save(lake, run_of(measured(1.0), id="r1"))
    gate = measured(1.0, host="n7", started_at=later, ended_at=later)
    save(lake, replace(run_of(gate, id="r2"), label=f"{GATE}acceptance"))
    assert (find_run(lake).id, find_run(lake, f"{GATE}acceptance").id) == ("r1", "r2")
    with open_session(lake) as session:
        gate_run, fleet_run = list_in_page(session)
    assert newest([gate_run, fleet_run]).id == "r1"
    assert before([gate_run, fleet_run], replace(gate_run, id="r3")) == fleet_run
    with pytest.raises(HakaruError, match="are those of hakaru bench check"):
        check_label(f"{GATE}acceptance")


def test_samples_that_are_no_numbers_are_one_row_without_any(lake: Lake) -> None:
    save(lake, run_of(measured(float("nan"), float("inf")), measured(2.0, device="cuda:1")))
    (run,) = load_runs(lake)
    assert {each.device: each.verdict for each in run.measurements} == {
        "cuda:0": Verdict.NOT_MEASURED,
        "cuda:1": Verdict.GOOD,
    }


def test_only_good_has_the_exit_code_zero_and_nothing_is_not_measured() -> None:
    assert [verdict for verdict, code in EXIT_CODES.items() if code == 0] == [Verdict.GOOD]
    assert len(set(EXIT_CODES.values())) == len(Verdict)
    assert worst([]) is Verdict.NOT_MEASURED
    assert worst([Verdict.GOOD, Verdict.NOT_MEASURED]) is Verdict.NOT_MEASURED
    assert worst([Verdict.SLOW, Verdict.FAILED, Verdict.CONTAMINATED]) is Verdict.FAILED
