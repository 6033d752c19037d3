"""A comparison as a page, as data and as rows: numbers in their places, citations, reasons and notes."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

import pytest

from hakaru.comparison import (
    Comparison,
    Line,
    Notes,
    jobs_counted,
    to_csv,
    to_document,
    to_markdown,
)
from hakaru.comparison._citations import _letter
from hakaru.reference.metrics import Cell, load_metrics
from hakaru.reference.published import Published

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


@pytest.fixture
def two() -> Comparison:
    """One cluster of GPUs, one of processors that is made up; a share, and a size that one has."""
    single = Line(
        METRICS["share_single_pe"],
        "≥ 60 s",
        {"c": Cell(0.5, caveat="by half", counted=(3, 4)), "d": Cell(0.25)},
        {"PAI": figure("share_single_pe", 0.75, cluster="PAI", bound="~", note="second-hand")},
        "jobs that ran",
    )
    sizes = {"c": Cell(None, "not set"), "d": Cell(2004.0)}
    nodes = Line(METRICS["num_nodes"], "", sizes, {"Philly": figure("num_nodes", 552)})
    told = ["d, waits: 3 of 4 jobs"]
    return Comparison(["c", "d"], {"c": "gpu", "d": "cpu"}, {"d"}, [single, nodes], None, told)


def test_a_comparison_as_data(two: Comparison) -> None:
    assert to_document(two) == {
        "clusters": [
            {"name": "c", "unit": "gpu", "synthetic": False, "missing": None},
            {"name": "d", "unit": "cpu", "synthetic": True, "missing": None},
        ],
        "metrics": [
            {
                "id": "share_single_pe",
                "label": "Jobs on one GPU or processor",
                "unit": "share",
                "analysis": "parallelism",
                "counting": "≥ 60 s",
                "computed": {"c": {"value": 0.5, "caveat": "by half"}, "d": {"value": 0.25}},
                "published": {
                    "PAI": {
                        "value": 0.75,
                        "bound": "~",
                        "note": "second-hand",
                        "source": "A & B, SC 2019",
                        "where": "p.1",
                    }
                },
            },
            {
                "id": "num_nodes",
                "label": "Nodes",
                "unit": "nodes",
                "analysis": None,
                "counting": None,
                "computed": {"c": {"value": None, "reason": "not set"}, "d": {"value": 2004.0}},
                "published": {
                    "Philly": {
                        "value": 552,
                        "bound": None,
                        "note": None,
                        "source": "A & B, SC 2019",
                        "where": "p.1",
                    }
                },
            },
        ],
        "contrasts": [
            {
                "subject": "Single PE",
                "differs": True,
                "sentences": [
                    "c: 50.0 % of jobs that ran use one GPU (3 of 4 jobs; by half); d (SYNTHETIC): "
                    "25.0 % of jobs that ran use one processor: 2.0 times as many."
                ],
            }
        ],
        "left_out": ["d, waits: 3 of 4 jobs"],
    }


def test_a_comparison_as_rows(two: Comparison) -> None:
    label = "share_single_pe,Jobs on one GPU or processor,share"
    assert to_csv(two).split("\n") == [
        "metric,label,unit,counting,cluster,kind,bound,value,low,high,note,source,where",
        f"{label},≥ 60 s,c,computed,,0.5,,,by half,,",
        f"{label},≥ 60 s,d,synthetic,,0.25,,,,,",
        f'{label},,PAI,published,~,0.75,,,second-hand,"A & B, SC 2019",p.1',
        "num_nodes,Nodes,nodes,,c,computed,,,,,not set,,",
        "num_nodes,Nodes,nodes,,d,synthetic,,2004.0,,,,,",
        'num_nodes,Nodes,nodes,,Philly,published,,552,,,,"A & B, SC 2019",p.1',
        "",
    ]


def test_a_comparison_as_a_page(two: Comparison) -> None:
    """Citations are numbered and reasons lettered in the order in which they are read."""
    assert to_markdown(two).split("\n") == [
        "- c: 50.0 % of jobs that ran use one GPU (3 of 4 jobs; by half); d (SYNTHETIC): 25.0 % of jobs that "
        "ran use one processor: 2.0 times as many. Published: PAI ~75.0 % [1].",
        "",
        "| metric | c | d (SYNTHETIC) | published |",
        "|---|---|---|---|",
        "| Jobs on one GPU or processor (≥ 60 s) | 50.0 % (a) | 25.0 % | PAI ~75.0 % [1] |",
        "| Nodes | – (b) | 2,004 | Philly 552 [1] |",
        "",
        "(a) c: by half  ",
        "(b) c: not set  ",
        "[1] A & B, SC 2019: p.1  ",
        "    Jobs on one GPU or processor: second-hand  ",
        "Jobs counted:  ",
        "  d, waits: 3 of 4 jobs",
        "",
    ]


def test_a_page_without_sentences_begins_with_its_table() -> None:
    line = Line(METRICS["num_jobs"], "", {"c": Cell(3.0)}, {})
    page = "| metric | c | published |\n|---|---|---|\n| Jobs | 3 |  |\n"
    assert to_markdown(compared(line)) == page
    assert jobs_counted(compared(line)) == []
    assert jobs_counted(compared(line, missing={"c": 0.5}))[0] == "Jobs counted:"


def test_published_figures_stand_after_the_last_of_several_sentences() -> None:
    cells = {"c": Cell(0.5), "d": Cell(0.5), "e": Cell(0.25)}
    found = [figure("share_completed", value) for value in (0.75, 0.125)]
    figures = {"Philly": found[0], "PAI": replace(found[1], cluster="PAI", source="C, OSDI 2021")}
    page = to_markdown(compared(Line(METRICS["share_completed"], "", cells, figures))).split("\n")
    assert page[0].endswith("e: 25.0 % of the jobs that ended completed: 2.0 times as many.")
    assert page[1].endswith(": the same. Published: Philly 75.0 % [1]; PAI 12.5 % [2].")
    assert "| Philly 75.0 % [1]; PAI 12.5 % [2] |" in page[5]


def test_an_interval_without_ends_is_null_in_data_and_absent_on_the_page() -> None:
    ends = {"c": Cell(0.25, low=float("-inf"), high=float("nan")), "d": Cell(0.25, low=0.0)}
    half = compared(Line(METRICS["spearman_size_run"], "", ends, {}))
    assert to_document(half)["metrics"][0]["computed"] == {
        "c": {"value": 0.25, "low": None, "high": None},
        "d": {"value": 0.25, "low": 0.0, "high": None},
    }
    assert [each["differs"] for each in to_document(half)["contrasts"]] == [False]
    assert to_markdown(half).count("| 0.250 |") == 1
    marked = Line(METRICS["spearman_size_run"], "", {"c": Cell(0.5, "", 0.0, 0.75, "of some")}, {})
    assert "| 0.500 [0.000, 0.750] (a) |" in to_markdown(compared(marked))


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
    assert [_letter(index) for index in (51, 52, 701, 702)] == ["az", "ba", "zz", "aaa"]
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
    notes.cite(figure("num_jobs", 2, note="GPU jobs only", cluster="PAI"))
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
    notes.cite(figure("num_jobs", 1, where="p" * 43))
    notes.cite(figure("num_jobs", 2, where="q" * 45))
    assert list(notes.lines()) == [f"[1] A & B, SC 2019: {'p' * 43}; {'q' * 45}"]
    notes = Notes()
    notes.cite(figure("num_jobs", 1, where="p" * 44))
    notes.cite(figure("num_jobs", 2, where="q" * 45))
    assert list(notes.lines()) == ["[1] A & B, SC 2019"], "91 characters with the semicolon"
