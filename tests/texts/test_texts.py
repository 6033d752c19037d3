"""Every language has every text, with the same values in it, and writes numbers its own way."""

from __future__ import annotations

import string
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from hakaru.analyses import load_all, open_session
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.reference.metrics import load_metrics
from hakaru.texts import LANGUAGES, language
from tests.conftest import job

OTHERS = [code for code in LANGUAGES if code != "en"]


def fields(text: str) -> set[str]:
    """The values of a text; a plural may be the singular, a column what it is called."""
    names = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    return {{"many": "one", "by": "label", "key": "label"}.get(name, name) for name in names}


@pytest.mark.parametrize("code", OTHERS)
def test_a_language_has_the_keys_and_values_of_english(code: str) -> None:
    english, other = language("en").texts, language(code).texts
    for section in english:
        assert english[section].keys() == other[section].keys(), section
        for key, text in english[section].items():
            assert other[section][key].strip(), (section, key)
            if section in ("finding", "remark", "report", "figure", "value"):
                assert fields(other[section][key]) == fields(text), (section, key)


@pytest.mark.parametrize("code", OTHERS)
def test_what_the_registries_say_is_translated(code: str) -> None:
    texts = language(code).texts
    ids = {analysis.id for analysis in load_all()}
    assert ids <= texts["title"].keys() and ids <= texts["question"].keys()
    assert {rule.text for analysis in load_all() for rule in analysis.rules} <= texts["rule"].keys()
    assert load_metrics().keys() == texts["metric"].keys()


@pytest.mark.parametrize(
    ("code", "share", "seconds", "minutes", "days"),
    [
        ("en", "96.2 %", "5 s", "28.2 min", "2.5 days"),
        ("ja", "96.2%", "5 秒", "28.2 分", "2.5 日"),
        ("ko", "96.2%", "5초", "28.2분", "2.5일"),
    ],
)
def test_numbers_by_language(code: str, share: str, seconds: str, minutes: str, days: str) -> None:
    words = language(code)
    assert words.share(0.9621) == share
    assert [words.duration(s) for s in (5.0, 1692.0, 216000.0)] == [seconds, minutes, days]


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("num_jobs", 459545, "459,545"),
        ("share", None, "–"),
        ("share", float("nan"), "–"),
        ("share_at_max", 0.3654, "36.5 %"),
        ("share", 0.0002, "0.02 %"),
        ("median_h", 0.47, "0.470"),
        ("pe_hours", 982865.65, "982,866"),
        ("low", -0.2293, "−0.229"),
        ("weekday", 2, "Wednesday"),
        ("queue", "normal", "normal"),
        ("utilisation", 0.456, "45.6 %"),
        ("mean_s", 99.96, "99.960"),
        ("mean_s", 100.0, "100.0"),
        ("mean_s", 999.94, "999.9"),
        ("mean_s", 1000.0, "1,000"),
        ("mean_s", -1500.0, "−1,500"),
        ("mean_s", -123.45, "−123.5"),
        ("is_working", True, "✓"),
        ("is_working", False, ""),
        ("since_at", datetime(2018, 3, 4, 5, 6, 7), "2018-03-04 05:06"),
    ],
)
def test_cells(column: str, value: Any, text: str) -> None:
    assert language("en").cell(column, value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.25, "0.2 s"),
        (119.0, "119 s"),
        (120.0, "2.0 min"),
        (7199.0, "120.0 min"),
        (7200.0, "2.0 h"),
        (172799.0, "48.0 h"),
        (172800.0, "2.0 days"),
        (-5400.0, "−90.0 min"),
        (1e8, "1,157.4 days"),
    ],
)
def test_durations_change_their_unit_at_two(seconds: float, text: str) -> None:
    assert language("en").duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0 %"),
        (0.00042, "0.04 %"),
        (0.001, "0.1 %"),
        (-0.0005, "−0.05 %"),
        (12.5, "1,250.0 %"),
    ],
)
def test_small_shares_have_a_digit_more(share: float, text: str) -> None:
    assert language("en").share(share) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.25, "share", "25.0 %"),
        (90.0, "s", "90 s"),
        (17.0, "hour of day", "17:00"),
        (5.0, "weekday", "Saturday"),
        (-0.1234, "correlation", "−0.123"),
        (2.345, "ratio", "2.35"),
        (12000.0, "jobs", "12,000"),
        (12.345, "nodes", "12.35"),
    ],
)
def test_metrics_by_their_unit(value: float, unit: str, text: str) -> None:
    assert language("en").of_unit(value, unit) == text


def test_times_hours_and_days() -> None:
    words = language("en")
    assert [words.times(n) for n in (1.54, 9.94, 10.4, 1234.0)] == ["1.5", "9.9", "10", "1,234"]
    assert [words.hour(n) for n in (0, 9, 23, 24)] == ["00:00", "09:00", "23:00", "00:00"]
    days = [words.weekday(n) for n in range(7)]
    assert (days[0], days[4], days[6]) == ("Monday", "Friday", "Sunday")
    assert [language("ja").weekday(n)[0] for n in range(7)] == list("月火水木金土日")
    assert [language("ko").weekday(n)[0] for n in range(7)] == list("월화수목금토일")


def test_rules_keep_their_values_in_every_language() -> None:
    ran = "that ran for at least 60 s"
    assert language("en").rule(ran) == ran
    for code in OTHERS:
        words = language(code)
        assert "60" in words.rule(ran) and "ran" not in words.rule(ran)
        both = words.rule("that are completed or failed")
        assert words.texts["word"]["completed"] in both and words.texts["word"]["failed"] in both
        assert words.rule("that nobody knows") == "that nobody knows"


def test_a_machine_without_gpus_has_processors() -> None:
    assert language("en", "cpu").column("num_pes") == "Processors"
    assert language("ja", "cpu").column("pe_hours") == "プロセッサ 時間"


@pytest.mark.parametrize(
    ("code", "of_hours"),
    [
        ("en", "{share_hours} of the {one}-hours"),
        ("ja", "{one} 時間の {share_hours}"),
        ("ko", "{one} 시간의 {share_hours}"),
    ],
)
def test_a_share_of_hours_is_called_one_in_every_sentence(code: str, of_hours: str) -> None:
    findings = language(code).texts["finding"]
    told = [text for text in findings.values() if "{share_hours}" in text]
    assert len(told) >= 6
    assert [text for text in told if of_hours not in text] == []


def test_an_unknown_language_is_told() -> None:
    with pytest.raises(HakaruError, match="there is no language 'fr'; known: en, ja, ko"):
        language("fr")


def test_every_column_of_a_table_has_a_label(lake_of: Callable[..., Lake]) -> None:
    known = language("en").texts["column"].keys()
    with open_session(lake_of([job(1)])) as session:
        for analysis in load_all():
            assert set(session.run(analysis).table.column_names) <= known, analysis.id
