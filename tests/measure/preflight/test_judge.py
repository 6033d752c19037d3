"""The verdict: good only where all nodes answered and every check that matters was made."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.preflight import CHECKS, FACTS, Ask, judge, read_answer, stamp, unanswered
from hakaru.measure.verdict import Verdict
from tests.measure.preflight._fake import NOW_S, Fake, fleet

ASK = Ask(num_ranks=16, ranks_per_node=8, gpus_per_node=8)
# read by checks that only give notes, or that only refine an answer
NOTES = {"capabilities", "clock-sync", "numa-balancing", "transparent-hugepages"}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return fleet(tmp_path_factory.mktemp("root"), Fake("gpu01"), Fake("gpu02"))


def test_a_healthy_fleet_is_good_and_its_report_is_json(two: list[dict[str, Any]]) -> None:
    preflight = judge(json.loads(json.dumps(two)), ASK)

    rest = {row.check.id: row.finding for row in preflight.rows if row.finding.status != "pass"}
    built_without = {id for id in ("same-cuda", "same-rocm") if id in rest}  # this torch, for one
    assert rest.keys() == built_without
    assert all(each.status == "n/a" for each in rest.values())
    assert (preflight.verdict, preflight.exit_code) == (Verdict.GOOD, 0)
    report = json.loads(json.dumps(preflight.to_json(), allow_nan=False))
    assert report["nodes"] == ["gpu01", "gpu02"]
    assert [check["id"] for check in report["checks"]] == ["answered", *CHECKS.ids()]
    assert {(row["check"], row["node"]) for row in report["rows"]} >= {
        ("open-files", "gpu01"),
        ("open-files", "gpu02"),
        ("same-torch", "all nodes"),
    }


@pytest.mark.parametrize("id", FACTS.ids())
def test_an_unread_fact_is_never_a_pass(two: list[dict[str, Any]], id: str) -> None:
    nodes = copy.deepcopy(two)
    nodes[0]["facts"][id] = {"value": None, "reason": "permission denied", "absent": False}
    preflight = judge(nodes, ASK)

    assert (preflight.verdict is Verdict.GOOD) == (id in NOTES)
    if id not in NOTES:
        assert any("permission denied" in row.finding.found for row in preflight.unknowns)
        assert all(row.finding.fix for row in preflight.unknowns)
        assert (preflight.failures or preflight.unknowns)[0].check.title in preflight.summary


@pytest.mark.parametrize("id", [each.id for each in FACTS if not each.optional])
def test_a_node_cannot_lack_what_every_node_has(two: list[dict[str, Any]], id: str) -> None:
    nodes = copy.deepcopy(two)
    for node in nodes:
        node["facts"][id] = {"value": None, "reason": "x", "absent": True}
    preflight = judge(nodes, ASK)

    assert (preflight.verdict is Verdict.GOOD) == (id in NOTES)
    rows = preflight.notes if id in NOTES - {"capabilities"} else preflight.unknowns
    assert bool(rows) == (id != "capabilities")
    assert all(f"calls {id} absent" in row.finding.found for row in rows)


def test_a_node_that_calls_everything_absent_is_not_good(two: list[dict[str, Any]]) -> None:
    nodes = copy.deepcopy(two)
    for node in nodes:
        node["facts"] = {id: {"value": None, "reason": "x", "absent": True} for id in FACTS.ids()}

    one = nodes[:1]
    for answers, ask in ((nodes, Ask(16, 8)), (one, Ask(4, 4)), (one, Ask(1, 1, gpus_per_node=0))):
        preflight = judge(answers, ask)
        assert (preflight.verdict, preflight.exit_code) == (Verdict.NOT_MEASURED, 13)
        unread = {row.check.id for row in preflight.unknowns}
        assert unread >= {"open-files", "free-memory", "own-name", "shared-memory"}


def test_answers_alone_make_nothing_good(
    two: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CHECKS, "_items", {})
    preflight = judge(two, ASK)

    assert [row.finding.status for row in preflight.rows] == ["pass"]
    assert preflight.verdict is Verdict.NOT_MEASURED
    assert "nothing was checked" in preflight.summary


@pytest.mark.parametrize(
    ("name", "names", "fix"),
    [
        ("gpu02", ("gpu01", "gpu02"), "ssh gpu02 true"),
        ("gpu02", (), "python -m hakaru.measure.preflight"),  # this machine
        ("a;reboot", ("gpu01", "a;reboot"), "python -m hakaru.measure.preflight"),
    ],
)
def test_the_fix_for_a_silent_node_starts_from_here(
    two: list[dict[str, Any]], name: str, names: tuple[str, ...], fix: str
) -> None:
    preflight = judge([two[0], unanswered(name, "no route")], Ask(16, 8, node_names=names))

    assert preflight.rows[0].node == name
    assert preflight.rows[0].finding.fix.startswith(fix)


def test_facts_that_only_make_notes_do_not_stop_a_run(two: list[dict[str, Any]]) -> None:
    nodes = copy.deepcopy(two)
    for id in ("transparent-hugepages", "numa-balancing", "clock-sync"):
        nodes[0]["facts"][id] = {"value": None, "reason": "permission denied", "absent": False}
    preflight = judge(nodes, ASK)

    assert preflight.verdict is Verdict.GOOD
    assert preflight.counts["not measured"] == 4  # the three of the node, and the settings of all
    assert all(
        row.finding.wanted == "does not decide" and row.finding.fix for row in preflight.notes
    )
    assert (
        "not measured (does not decide): " in preflight.summary
        and "Time service" in preflight.summary
    )


@pytest.mark.parametrize("value", [float("nan"), True, None, "many", [], {"soft": 1}])
def test_an_answer_of_another_shape_is_never_a_pass(two: list[dict[str, Any]], value: Any) -> None:
    nodes = copy.deepcopy(two)
    nodes[0]["facts"]["limits"]["value"]["Max open files"] = {"soft": value, "hard": value}
    nodes[1]["facts"]["memory"] = {"value": value}

    preflight = judge(nodes, ASK)

    assert preflight.verdict is Verdict.NOT_MEASURED
    assert {row.check.id for row in preflight.unknowns} >= {"open-files", "free-memory"}


def test_a_node_that_did_not_answer_is_named(two: list[dict[str, Any]]) -> None:
    preflight = judge([two[0], unanswered("gpu02", "ssh: connection refused")], ASK)

    assert preflight.verdict is Verdict.NOT_MEASURED
    assert "gpu02" in preflight.summary
    assert ("gpu02", "ssh: connection refused") in [
        (row.node, row.finding.found) for row in preflight.rows if row.check.id == "answered"
    ]


@pytest.mark.parametrize(
    ("chosen", "ask", "reason"),
    [
        ([], ASK, "0 of 2 nodes"),
        ([0], ASK, "1 of 2 nodes"),
        ([0, 0], ASK, "2 answers from the same node"),
        ([0, 1], Ask(16, 8, node_names=("gpu01", "gpu02", "gpu03")), "no answer"),
    ],
)
def test_every_node_must_be_looked_at_once(
    two: list[dict[str, Any]], chosen: list[int], ask: Ask, reason: str
) -> None:
    preflight = judge([two[index] for index in chosen], ask)

    assert preflight.verdict is Verdict.NOT_MEASURED
    answered = [row.finding for row in preflight.rows if row.check.id == "answered"]
    assert any(reason in each.found and each.status == "not measured" for each in answered)


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("", "printed no facts"),
        ("Welcome to gpu02\n", "printed no facts"),
        ('{"schema": "hakaru-preflight-1", "node": "gpu02", "fac', "not JSON"),
        ('{"schema": "hakaru-preflight-9", "facts": {}}', "hakaru-preflight-9"),
        ('{"schema": "hakaru-preflight-1", "facts": {"memory": {"value": NaN}}}', "NaN"),
        ('{"schema": "hakaru-preflight-1", "facts": 3}', "lacks"),
    ],
)
def test_what_is_no_answer_counts_as_silence(
    two: list[dict[str, Any]], printed: str, reason: str
) -> None:
    preflight = judge([two[0], read_answer("gpu02", printed, NOW_S, NOW_S)], ASK)

    assert preflight.verdict is Verdict.NOT_MEASURED
    assert any(reason in row.finding.found and row.node == "gpu02" for row in preflight.unknowns)


def test_an_answer_is_read_among_other_lines_and_keeps_the_launchers_name(
    two: list[dict[str, Any]],
) -> None:
    printed = f"Loading module cuda\n{json.dumps(two[0])}\nbye\n"
    answer = read_answer("gpu01.cluster", printed, NOW_S - 1, NOW_S + 1)

    assert answer["facts"] == two[0]["facts"]
    assert answer["controller"] == {"asked_s": NOW_S - 1, "answered_s": NOW_S + 1}
    preflight = judge([answer, two[1]], Ask(16, 8, node_names=("gpu01", "gpu02")))
    assert preflight.rows[0].finding.status == "pass"


def test_hostile_text_reaches_no_terminal_and_no_shell(two: list[dict[str, Any]]) -> None:
    nodes = copy.deepcopy(two)
    nodes[0]["node"] = "gpu\x1b[31m01"
    card = nodes[0]["facts"]["gpus"]["value"][0]
    card |= {"bus": "0;reboot", "pcie.link.width.current": "8", "name": "\x1b]0;x"}
    report = json.dumps(judge(nodes, ASK).to_json(), ensure_ascii=False)

    assert "\x1b" not in report
    assert "cat '/sys/bus/pci/devices/0;reboot/current_link_width'" in report


def test_a_skewed_clock_fails_and_one_that_cannot_be_judged_is_not_measured(tmp_path: Path) -> None:
    nodes = fleet(tmp_path, Fake("gpu01", now_s=NOW_S + 90), Fake("gpu02"))
    nodes[1] = stamp(nodes[1], NOW_S - 100, NOW_S + 1)
    nodes[1]["facts"]["clock-sync"]["value"]["synchronised"] = False
    found = {
        row.node: row.finding for row in judge(nodes, ASK).rows if row.check.id == "clock-skew"
    }

    assert (found["gpu01"].status, found["gpu01"].found) == ("fail", "at least 89.5 s ahead")
    assert found["gpu02"].status == "not measured"


def test_an_impossible_run_is_refused() -> None:
    with pytest.raises(HakaruError, match="num_ranks must be at least 1"):
        Ask(0, 8, port=70000)
