"""Every language has every text, with the same values in it, and writes numbers its own way."""

from __future__ import annotations

import string
from collections.abc import Callable
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
    ],
)
def test_cells(column: str, value: Any, text: str) -> None:
    assert language("en").cell(column, value) == text


def test_a_machine_without_gpus_has_processors() -> None:
    assert language("en", "cpu").column("num_pes") == "processors"
    assert language("ja", "cpu").column("pe_hours") == "プロセッサ 時間"


def test_an_unknown_language_is_told() -> None:
    with pytest.raises(HakaruError, match="there is no language 'fr'; known: en, ja, ko"):
        language("fr")


def test_every_column_of_a_table_has_a_label(lake_of: Callable[..., Lake]) -> None:
    known = language("en").texts["column"].keys()
    with open_session(lake_of([job(1)])) as session:
        for analysis in load_all():
            assert set(session.run(analysis).table.column_names) <= known, analysis.id
