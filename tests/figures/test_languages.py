"""Figures in Japanese and Korean: no fixed phrase stays English, and no value or filter changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hakaru.analyses import Analysis, Result, Selection, Session, load_all, open_session
from hakaru.cli import main
from hakaru.figures import Figure, draw
from hakaru.lake import Lake
from hakaru.texts import LANGUAGES, VOCABULARIES, language
from tests.conftest import job, put_jobs
from tests.figures._draw import axes, items, run

ALL = tuple(load_all())
OTHERS = [code for code in LANGUAGES if code != "en"]
# what stands in Latin letters in all three languages
LATIN = {"GPU", "CPU", "QOS", "bins"}
# words for ECharts, which nobody reads
TECHNICAL = {
    "column", "fontFamily", "fontWeight", "left", "nameLocation", "orient", "overflow", "position",
    "stack", "step", "symbol", "top", "trigger", "type", "where",
    "xAxisIndex",
}  # fmt: skip


def read_by_people(value: Any, key: str = "") -> Iterator[str]:
    """Every text of an option but ECharts' own words; a new key of those must be named above."""
    if isinstance(value, str) and key not in TECHNICAL and not key.lower().endswith("color"):
        yield re.sub(r"\{\w+\}", "", value)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from read_by_people(each, name)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from read_by_people(each, key)


def latin_words(text: str) -> set[str]:
    return {word for word in re.findall(r"[A-Za-z]{2,}", text) if word not in LATIN}


def names_of(result: Result) -> set[str]:
    """The words of the data: names of clusters, queues, people, applications, and the zone."""
    kinds = {field.name: str(field.type) for field in result.table.schema}
    columns = [name for name, kind in kinds.items() if kind == "string"]
    data = {
        str(value)
        for name in columns
        if name.removeprefix("group_") not in VOCABULARIES
        for value in result.table.column(name).unique().to_pylist()
        if value not in ("(unknown)", "(others)", "all")
    }
    named = [*data, *result.selection.clusters, result.zone]
    return {word for name in named for word in latin_words(name)}


def english_in(figure: Figure, result: Result) -> set[str]:
    texts = [figure.title, figure.question, *figure.notes, *read_by_people(figure.option)]
    return {word for text in texts for word in latin_words(text)} - names_of(result)


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize("analysis", ALL, ids=lambda each: each.id)
def test_no_fixed_phrase_is_english(sample: Session, analysis: Analysis, code: str) -> None:
    """Counted in jobs and in hours, and grouped by words of both kinds: of the data and of ours."""
    groups = [None, "state", "user"] if analysis.groups else [None]
    weights = ["jobs", "gpu-hours"] if analysis.weighted else ["jobs"]
    for chosen in [Selection(by=by, weight=weight) for by in groups for weight in weights]:
        result = sample.run(analysis, chosen)
        for unit in ("gpu", "cpu"):
            figure = draw(result, unit=unit, lang=code)
            assert english_in(figure, result) == set(), (chosen.by, chosen.weight, unit)


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize("analysis", ALL, ids=lambda each: each.id)
def test_values_and_filters_are_those_of_english(
    sample: Session, analysis: Analysis, code: str
) -> None:
    result = sample.run(analysis)
    english, other = draw(result), draw(result, lang=code)
    for key in ("value", "where"):
        assert [i.get(key) for i in items(english)] == [i.get(key) for i in items(other)]
    assert len(english.notes) == len(other.notes)
    assert (english.kind, english.height) == (other.kind, other.height)


@pytest.mark.parametrize("code", OTHERS)
def test_texts_that_the_sample_does_not_reach(code: str) -> None:
    texts = language(code).texts
    for section in ("axis", "value", "day", "figure"):
        for key, text in texts[section].items():
            bare = re.sub(r"\{\w+\}", "", text)
            assert latin_words(bare) == set(), (section, key)


@pytest.mark.parametrize("code", OTHERS)
def test_nothing_to_draw(lake: Lake, code: str) -> None:
    put_jobs(lake, [])
    with open_session(lake) as session:
        for analysis in ALL:
            result = session.run(analysis)
            assert english_in(draw(result, lang=code), result) == set()


def test_by_hand(lake_of: Callable[..., Lake]) -> None:
    """Names of the data stay, words of ours do not, even where a queue is called as a state is."""
    rows = [job(i, queue="failed", state="failed", run_s=90.0) for i in range(2)]
    rows.append(job(2, queue="all", state="out_of_memory", run_s=30.0))
    with open_session(lake_of(rows)) as session:
        states = draw(run(session, "states"), lang="ja")
        queues = draw(run(session, "queues"), lang="ko")
        classes = draw(run(session, "parallelism"), unit="cpu", lang="ja")
        days = draw(run(session, "arrivals-by-weekday"), lang="ko")
        gaps = draw(run(session, "interarrivals"), lang="ja")
    assert states.option["xAxis"]["data"] == ["失敗", "メモリ不足"]
    assert [item["where"] for item in items(states)] == [
        "state = 'failed'",
        "state = 'out_of_memory'",
    ]
    assert states.option["series"][0]["data"][0]["label"]["formatter"] == "2\n66.7%"
    assert (states.title, states.lang) == ("ジョブの終わり方", "ja")
    assert queues.option["xAxis"]["data"] == ["failed", "all"]
    assert [axis["name"] for axis in axes(queues)] == ["큐", "작업 수"]
    assert queues.notes == ("c: 작업 3건 가운데 3건",)
    assert classes.option["xAxis"]["data"] == ["プロセッサ 1 基"]
    assert classes.notes == ("c:3 ジョブのうち 2", "除外 1:対象は60 秒以上実行されたジョブのみ")
    assert days.option["xAxis"]["data"] == ["월", "화", "수", "목", "금", "토", "일"]
    assert gaps.option["xAxis"]["name"] == "秒"
    assert gaps.own_notes == ("1 秒未満はその位置に描いています",)


def test_months_of_a_time_axis(sample: Session) -> None:
    english, korean = (draw(run(sample, "load"), lang=code) for code in ("en", "ko"))
    for axis in english.option["xAxis"]:
        assert "formatter" not in axis["axisLabel"]
    for axis in korean.option["xAxis"]:
        assert axis["axisLabel"]["formatter"] == {
            "year": "{yyyy}년",
            "month": "{M}월",
            "day": "{d}일",
        }


def test_the_command_line(sample_lake: Lake, tmp_path: Path) -> None:
    out = tmp_path / "f.html"
    told = ["show", "states", "-w", str(sample_lake.workspace), "--figure", str(out)]
    assert CliRunner().invoke(main, [*told, "--lang", "ja"]).exit_code == 0
    page = out.read_text(encoding="utf-8")
    assert '<html lang="ja">' in page and "合成データ" in page and '"終了状態"' in page
    assert CliRunner().invoke(main, [*told, "--lang", "fr"]).exit_code == 2
