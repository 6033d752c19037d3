"""A comparison as a page, as data and as rows: numbers in their places, citations, reasons and notes."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from hakaru.analyses import Selection, load_all, open_session
from hakaru.comparison import (
    Comparison,
    Line,
    Notes,
    compare,
    notes_on_users,
    period_of,
    shown,
    to_csv,
    to_document,
    to_markdown,
    users_note,
)
from hakaru.comparison._contrast import AS_ACCURATE, SUBJECTS, _say_scaling, _signs
from hakaru.lake import Lake
from hakaru.reference.metrics import Cell, find_metrics, load_metrics
from hakaru.reference.published import Published
from tests.conftest import job, put_jobs, utc

METRICS = load_metrics()


def figure(metric: str, value: float, **fields: str) -> Published:
    known = {
        "cluster": "Philly",
        "bound": "",
        "note": "",
        "source": "A & B, SC 2019",
        "where": "p.1",
    }
    return Published(metric=metric, value=value, unit=METRICS[metric].unit, **(known | fields))


def compared(*lines: Line, **fields: Any) -> Comparison:
    names = list(lines[0].cells)
    return Comparison(names, dict.fromkeys(names, "gpu"), set(), list(lines), None, **fields)


SPEARMAN = Line(
    METRICS["spearman_size_run"],
    "completed",
    {"c": Cell(0.25, low=0.125, high=0.375), "d|e": Cell(None, "too few")},
    {"Philly": figure("spearman_size_run", -0.5)},
)


def test_ends_of_an_interval_in_every_form() -> None:
    both = compared(SPEARMAN, missing={"c": 0.125}, left_out=["c, waits: 3 of 4 jobs"])
    document = to_document(both)
    assert document["metrics"][0]["computed"] == {
        "c": {"value": 0.25, "low": 0.125, "high": 0.375},
        "d|e": {"value": None, "reason": "too few"},
    }
    assert [each["missing"] for each in document["clusters"]] == [0.125, None]
    first, second, published = csv.DictReader(io.StringIO(to_csv(both)))
    assert (first["value"], first["low"], first["high"]) == ("0.25", "0.125", "0.375")
    assert (first["counting"], second["note"], published["value"]) == (
        "completed",
        "too few",
        "-0.5",
    )
    page = to_markdown(both)
    assert "| metric | c | d\\|e | published |" in page
    assert "| 0.250 [0.125, 0.375] | – (a) | Philly −0.500 [1] |" in page
    assert "(a) d|e: too few" in page and "[1] A & B, SC 2019: p.1" in page
    assert "c: 12.5 % of the rows of its log " in page
    assert "  c, waits: 3 of 4 jobs" in page
    assert "weak scaling of jobs (Spearman 0.250, 95 % of samples between 0.125 and 0.375)" in page
    assert "Published: Philly −0.500, strong scaling [1]." in page


def test_cells_of_a_spreadsheet_are_no_formulas() -> None:
    line = Line(METRICS["num_jobs"], "", {"=1+1": Cell(3.0)}, {})
    (row,) = csv.DictReader(io.StringIO(to_csv(compared(line))))
    assert row["cluster"] == "'=1+1" and row["value"] == "3.0"


def test_a_chosen_cluster_that_has_no_such_figure_has_an_empty_cell() -> None:
    chosen = Comparison(["c"], {"c": "gpu"}, set(), [SPEARMAN], ["Kraken", "Philly"])
    assert "| 0.250 [0.125, 0.375] |  | −0.500 [1] |" in to_markdown(chosen)


def test_citations_and_reasons_are_numbered_once() -> None:
    notes = Notes()
    figures = [
        figure("num_jobs", 1, where="p.1"),
        figure("num_users", 2, where="p.1", note="second-hand"),
        figure("num_jobs", 3, source="C et al., OSDI 2021", where="Table 2"),
    ]
    assert [notes.cite(each) for each in (*figures, figures[0])] == ["[1]", "[1]", "[2]", "[1]"]
    cells = [Cell(None, f"reason {n}") for n in range(28)]
    letters = [notes.reason("c", cell) for cell in cells]
    assert letters[:2] + letters[25:] == ["a", "b", "z", "aa", "ab"]
    assert (notes.reason("d", cells[1]), notes.reason("d", cells[1])) == ("b", "b")
    lines = list(notes.lines())
    assert lines[1] == "(b) c, d: reason 1"
    assert lines[28:] == [
        "[1] A & B, SC 2019: p.1",
        "    Users: second-hand",
        "[2] C et al., OSDI 2021: Table 2",
    ]
    assert list(notes.lines(whole=False))[28:] == [lines[28], lines[30]]


@pytest.mark.parametrize(("num", "end"), [(3, ""), (4, " and 1 more"), (6, " and 3 more")])
def test_a_note_names_three_of_its_metrics(num: int, end: str) -> None:
    ids = ["num_jobs", "num_users", "num_days", "wra_mean", "num_gpus", "num_cpus"]
    notes = Notes()
    for id in ids[:num]:
        notes.cite(figure(id, 1, note="GPU jobs only"))
    named = "Jobs; Users; Days, first to last submission"
    assert list(notes.lines())[1] == f"    {named}{end}: GPU jobs only"


def test_a_note_names_the_metrics_that_it_is_about() -> None:
    notes = Notes()
    said = {"num_jobs": "GPU jobs only", "num_users": "", "wra_mean": "read off a plot"}
    for id, note in (said | {"num_days": "GPU jobs only"}).items():
        notes.cite(figure(id, 1, note=note))
    notes.cite(figure("num_cpus", 1, note="GPU jobs only", source="C et al., OSDI 2021"))
    assert list(notes.lines()) == [
        "[1] A & B, SC 2019: p.1",
        "    Jobs; Days, first to last submission: GPU jobs only",
        f"    {METRICS['wra_mean'].label}: read off a plot",
        "[2] C et al., OSDI 2021: p.1",
        f"    {METRICS['num_cpus'].label}: GPU jobs only",
    ]


def test_a_source_is_whole_or_short() -> None:
    notes = Notes()
    notes.cite(figure("num_jobs", 1, source="A & B, A Long Title, SC 2019, doi:10.1/2"))
    assert list(notes.lines()) == ["[1] A & B, A Long Title, SC 2019, doi:10.1/2: p.1"]
    assert list(notes.lines(whole=False)) == ["[1] A & B, SC 2019: p.1"]


def test_places_that_are_a_long_list_are_left_out() -> None:
    notes = Notes()
    for at in range(30):
        notes.cite(figure("num_jobs", at, where=f"p.{at}"))
    assert list(notes.lines()) == ["[1] A & B, SC 2019"]


def test_a_subject_judges_the_numbers_that_it_names() -> None:
    for subject in SUBJECTS:
        assert subject.name and all(id in METRICS for id in subject.metrics)
        for by, id in zip(subject.by, subject.metrics, strict=bool(subject.by)):
            assert by in id.split("_"), subject.name
    said = {
        subject.name: subject.say([Cell(0.25), Cell(0.5)][: len(subject.metrics)], "gpu", "jobs")
        for subject in SUBJECTS
    }
    for name, metrics in ((subject.name, subject.metrics) for subject in SUBJECTS):
        for word in ("median", "mean"):
            is_meant = word in "_".join(metrics).split("_") and name != "Utilisation"
            assert (f"({word})" in said[name]) == is_meant, name
    assert said["Run time"] == "jobs run for 0.2 s (median) and 0.5 s (mean)"
    assert said["Wait"] == "jobs wait for 0.2 s (median) and 0.5 s (mean)"


@pytest.mark.parametrize(
    ("x", "y", "told"),
    [
        (0.2, 0.3, "the same sign"),
        (-0.2, -0.3, "the same sign"),
        (0.2, -0.3, "opposite signs"),
        (0.0, 0.0, "no sign in either"),
        (0.2, 0.0, "only one has a sign"),
    ],
)
def test_signs(x: float, y: float, told: str) -> None:
    assert _signs(Cell(x), Cell(y)) == told


def test_more_and_less_accurate_than_nothing() -> None:
    assert AS_ACCURATE(Cell(0.5), Cell(0.0)) == "more accurate"
    assert AS_ACCURATE(Cell(0.0), Cell(0.5)) == "less accurate"
    assert _say_scaling([Cell(-0.25)], "gpu", "jobs") == (
        "strong scaling of jobs (Spearman −0.250)"
    )


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (119.0, "s", "119 s"),
        (120.0, "s", "2.0 min"),
        (7199.0, "s", "120.0 min"),
        (7200.0, "s", "2.0 h"),
        (172_799.0, "s", "48.0 h"),
        (172_800.0, "s", "2.0 d"),
        (1.846, "ratio", "1.85"),
    ],
)
def test_units_change_at_two(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


# ---- from a lake


@pytest.fixture
def tokyo(lake: Lake) -> Lake:
    """Submitted at nine in the evening in UTC, which is six in the morning of the next day in Tokyo."""
    rows = [
        job(f"q{n}/7", submitted_at=utc(f"2018-01-0{n}T21:00:00"), user=f"q{n}/0", run_s=30.0)
        for n in (1, 3)
    ]
    put_jobs(lake, rows, '{"zone": "Asia/Tokyo"}')
    return put_jobs(lake, [job(9, cluster="d", state="failed")])


def test_the_period_is_told_by_the_site_s_clock(tokyo: Lake) -> None:
    with open_session(tokyo) as session:
        told = period_of(session, "c")
        assert told == (
            "the jobs of c were submitted from 2018-01-02 06:00 to 2018-01-04 06:00 (Asia/Tokyo)"
        )


def test_users_of_a_log_that_numbers_them_anew(tokyo: Lake) -> None:
    """Whatever the rules leave out: the question is about the log."""
    analyses = load_all()
    with open_session(tokyo) as session:
        for chosen in (Selection(), Selection(states=("failed",)), Selection(min_run_s=99.0)):
            assert users_note(session, "c", chosen), chosen
            assert not users_note(session, "d", chosen), chosen
        mine = Selection(clusters=("c",))
        by_user = session.run(analyses.get("users-by-quarter"), mine)
        assert [line[:3] for line in notes_on_users(session, by_user)] == ["c: "]
        by_log = session.run(analyses.get("users-by-quarter"), mine, quarter="log")
        assert notes_on_users(session, by_log) == []
        assert notes_on_users(session, session.run(analyses.get("queues"), mine)) == []


def test_only_what_was_asked_for_stands_beside(tokyo: Lake) -> None:
    with open_session(tokyo) as session:
        session.missing = {"c": 0.5, "d": 0.25}
        jobs = find_metrics(["num_jobs"])
        every = compare(session, ["d"], jobs, None, Selection())
        some = compare(session, ["d"], jobs, ["Kraken"], Selection())
    assert {"Helios", "Philly"} <= every.lines[0].published.keys()
    assert "Helios-Venus" not in every.lines[0].published, "a part of a whole that is there"
    assert list(some.lines[0].published) == ["Kraken"]
    assert every.missing == {"d": 0.25}


def test_why_there_is_no_number(tokyo: Lake) -> None:
    """d's one job failed; those of c ran for half a minute. A rule that leaves nobody out is not named."""
    with open_session(tokyo) as session:
        (line,) = compare(session, ["c", "d"], find_metrics(["wra_mean"]), [], Selection()).lines
    assert line.cells["c"].reason == (
        "no job counts of 2; left out 2: only jobs that ran for at least 60 s"
    )
    assert line.cells["d"].reason == (
        "no job counts of 1; left out 1: only jobs that are completed "
        "(--state any counts jobs however they ended)"
    )


def test_an_analysis_that_counts_the_same_jobs_twice_is_named_once(lake: Lake) -> None:
    put_jobs(lake, [job(1), job(2), job(3, run_s=None)])
    metrics = find_metrics(["run_mean_s", "run_mean_completed_s"])
    with open_session(lake) as session:
        told = compare(session, ["c"], metrics, [], Selection()).left_out
    assert told == ["c, walltime: 2 of 3 jobs; left out 1: only jobs with a known run time"]
