"""A paper's claims against computed rows: what holds, what differs, and what a log cannot tell."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from hakaru.analyses import load_all, open_session
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.reference.claims import Claim, judge, load_claims

ROWS: list[dict[str, Any]] = [
    {
        "queue": "normal",
        "num_jobs": 1200,
        "share": 0.8317,
        "mean": 0.254,
        "low": 0.21,
        "high": 0.28,
    },
    {"queue": "short", "num_jobs": 30, "share": 0.1683, "mean": None, "low": None, "high": None},
]
ZEROS: list[dict[str, Any]] = [{"queue": "normal", "num_jobs": 0}, {"queue": "long", "num_jobs": 8}]


def claim(published: str, **fields: Any) -> Claim:
    fields = {"column": "num_jobs", "row": {"queue": "normal"}, **fields}
    return Claim(where="Fig. 1", says="a number", published=published, analysis="queues", **fields)


def test_a_zero_is_a_number() -> None:
    assert judge(claim("0"), ZEROS).verdict == "same"
    for published, reduce in (("0", "min"), ("4", "mean")):
        assert judge(claim(published, row={}, reduce=reduce), ZEROS).verdict == "same", reduce


@pytest.mark.parametrize(
    ("published", "fields", "computed", "verdict"),
    [
        ("1,200", {}, "1,200", "same"),
        ("1,201", {}, "1,200", "differs"),
        ("1200", {}, "1,200", "differs"),  # a claim is written as the paper prints it
        ("83", {"column": "share", "scale": 100.0}, "83", "same"),
        ("83.2", {"column": "share", "scale": 100.0}, "83.2", "same"),
        ("83.1", {"column": "share", "scale": 100.0}, "83.2", "differs"),
        ("1,230", {"row": {}, "reduce": "sum"}, "1,230", "same"),
        ("615", {"row": {}, "reduce": "mean"}, "615", "same"),
        ("30", {"row": {}, "reduce": "min"}, "30", "same"),
        ("1,200", {"row": {}, "reduce": "max"}, "1,200", "same"),
        ("1,200", {"row": {}}, "1,200", "same"),  # the first row's
        ("0.90", {"column": "share", "relation": "<"}, "0.8317", "same"),
        ("0.9", {"column": "share", "relation": ">"}, "0.8317", "differs"),
        ("999", {"column": "share", "scale": 1000.0, "relation": "<"}, "831.7", "same"),
        ("-1,300", {"scale": -1.0, "relation": ">"}, "-1,200", "same"),
        ("1,230", {"row": {"queue": ["normal", "short"]}, "reduce": "sum"}, "1,230", "same"),
        ("normal", {"row": {}, "reduce": "argmax"}, "normal", "same"),
        ("normal", {"row": {}, "reduce": "argmin"}, "short", "differs"),
        ("normal", {"column": "queue"}, "normal", "same"),
        ("1,000", {"relation": ">"}, "1,200", "same"),
        ("1,200", {"relation": ">"}, "1,200", "differs"),
        ("1,200", {"relation": ">="}, "1,200", "same"),
        ("1,200", {"relation": "<"}, "1,200", "differs"),
        ("1,200", {"relation": "<="}, "1,200", "same"),
        ("more", {"relation": ">", "than": {"queue": "short"}}, "1,200 against 30", "same"),
        ("fewer", {"relation": "<", "than": {"queue": "short"}}, "1,200 against 30", "differs"),
        ("0.219", {"relation": "within"}, "0.254 [0.210, 0.280]", "same"),
        ("0.300", {"relation": "within"}, "0.254 [0.210, 0.280]", "differs"),
        ("0.209", {"relation": "within"}, "0.254 [0.210, 0.280]", "differs"),
        ("0.210", {"relation": "within"}, "0.254 [0.210, 0.280]", "same"),
        ("0.280", {"relation": "within"}, "0.254 [0.210, 0.280]", "same"),
    ],
)
def test_verdicts(published: str, fields: dict[str, Any], computed: str, verdict: str) -> None:
    judged = judge(claim(published, **fields), ROWS)
    assert (judged.computed, judged.verdict) == (computed, verdict)


def test_a_known_contradiction_is_told_apart_from_a_difference() -> None:
    known = claim("1", known="1,200", known_why="two cells are swapped")
    assert judge(known, ROWS).verdict == "known difference"
    assert judge(known, ROWS).computed == "1,200: two cells are swapped"
    changed = [{**ROWS[0], "num_jobs": 7}]
    assert judge(known, changed).verdict == "differs"


def test_what_a_log_cannot_tell_is_said() -> None:
    judged = judge(claim("106", why_not="user ids are per file"), ROWS)
    assert (judged.computed, judged.verdict) == ("user ids are per file", "not in the log")


@pytest.mark.parametrize(
    "fields",
    [
        {"row": {"queue": "long"}},
        {"relation": ">", "than": {"queue": "long"}},
        {"column": "mean", "row": {"queue": "short"}},
        {"column": "median"},
        {"relation": "within", "row": {"queue": "long"}},
        {"relation": "within", "row": {"queue": "short"}},
    ],
)
def test_a_row_that_is_not_there_differs(fields: dict[str, Any]) -> None:
    judged = judge(claim("0.2", **fields), ROWS)
    assert (judged.computed, judged.verdict) == ("no such row", "differs")


def test_the_claims_of_the_paper_name_analyses_that_are_there() -> None:
    analyses = load_all()
    claims = load_claims("aaic")
    assert len(claims) > 70
    for entry in claims:
        assert entry.where and entry.says and entry.published
        assert bool(entry.analysis) != bool(entry.why_not), entry.says
        assert not entry.analysis or entry.analysis in analyses
        assert bool(entry.known) == bool(entry.known_why), entry.says


def test_an_unknown_paper_is_refused() -> None:
    with pytest.raises(HakaruError, match="no list of claims for 'nature'; known: aaic"):
        load_claims("nature")


def test_what_the_paper_prints_on_its_own_log(aaic_lake: Lake) -> None:
    """No number differs. Where paper and log contradict each other, the claim says how."""
    analyses, claims = load_all(), load_claims("aaic")
    tables: dict[str, list[dict[str, Any]]] = {}
    with open_session(aaic_lake) as session:
        for each in claims:
            if (key := f"{each.analysis} {each.params}") not in tables and each.analysis:
                tables[key] = session.run(analyses.get(each.analysis), **each.params).rows
    judged = [judge(each, tables.get(f"{each.analysis} {each.params}", [])) for each in claims]
    assert [each.claim.says for each in judged if each.verdict == "differs"] == []
    counts = Counter(each.verdict for each in judged)
    assert counts == {"same": 69, "known difference": 1, "not in the log": 6}
