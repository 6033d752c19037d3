"""What a comparison says of each subject: the numbers in their places, the judgement, what comes first."""

from __future__ import annotations

import pytest

from hakaru.comparison import Comparison, Line, contrasts
from hakaru.comparison._contrast import SUBJECTS
from hakaru.reference.metrics import Cell, load_metrics
from hakaru.reference.published import Published

METRICS = load_metrics()
BY_NAME = {subject.name: subject for subject in SUBJECTS}


@pytest.mark.parametrize(
    ("name", "cells", "told"),
    [
        ("Single PE", {"share_single_pe": 0.25}, "25.0 % of long jobs use one GPU"),
        (
            "Requests",
            {"wra_mean": 0.4, "wra_median": 0.1},
            "long jobs run for 40.0 % (mean) and 10.0 % (median) of the time they ask for",
        ),
        ("Maximum", {"share_at_max": 0.3}, "30.0 % of long jobs ask for their queue's maximum"),
        (
            "Scaling",
            {"spearman_size_run": -0.25},
            "strong scaling of long jobs (Spearman −0.250)",
        ),
        (
            "Week",
            {"weekday_peak_ratio": 2.5},
            "the busiest weekday has 2.50 times the jobs of the quietest",
        ),
        ("Arrivals", {"interarrival_median_s": 12.5}, "12.5 s between submissions (median)"),
        (
            "Run time",
            {"run_mean_s": 7200.0, "run_median_s": 30.0},
            "long jobs run for 30 s (median) and 2.0 h (mean)",
        ),
        (
            "Wait",
            {"wait_mean_s": 600.0, "wait_median_s": 5.0},
            "long jobs wait for 5 s (median) and 10.0 min (mean)",
        ),
        ("Ends", {"share_completed": 0.625}, "62.5 % of the jobs that ended completed"),
        ("Utilisation", {"utilisation_mean": 0.875}, "jobs hold 87.5 % of the machine"),
    ],
)
def test_each_number_in_its_own_place(name: str, cells: dict[str, float], told: str) -> None:
    subject = BY_NAME[name]
    assert {*subject.metrics} == {*cells}
    for by, id in zip(subject.by, subject.metrics, strict=bool(subject.by)):
        assert by in id.split("_"), "what a judgement goes by"
    listed = [Cell(cells[metric]) for metric in subject.metrics]
    assert subject.say(listed, "gpu", "long jobs") == told


def test_jobs_of_a_cluster_of_processors_use_one_processor() -> None:
    told = BY_NAME["Single PE"].say([Cell(0.25)], "cpu", "jobs")
    assert told == "25.0 % of jobs use one processor"


@pytest.mark.parametrize(
    ("names", "three_times", "more", "less"),
    [
        (("Single PE", "Maximum", "Ends"), "3.0 times as many", "more", "fewer"),
        (("Requests",), "3.0 times as accurate", "more accurate", "less accurate"),
        (("Week",), "3.0 times as uneven", "more uneven", "less uneven"),
        (("Arrivals", "Run time", "Wait"), "3.0 times as long", "longer", "shorter"),
        (("Utilisation",), "3.0 times as full", "fuller", "emptier"),
        (("Scaling",), "the same sign", "only one has a sign", "only one has a sign"),
    ],
)
def test_each_subject_has_its_own_judgement(
    names: tuple[str, ...], three_times: str, more: str, less: str
) -> None:
    for name in names:
        judge = BY_NAME[name].judge
        pairs = ((0.75, 0.25), (0.75, 0.0), (0.0, 0.75))
        judged = [judge(Cell(x), Cell(y)) for x, y in pairs]
        assert judged == [three_times, more, less], name


# ---- sentences


def line(id: str, *cells: Cell, published: float | None = None, jobs: str = "jobs") -> Line:
    figures = {}
    if published is not None:
        unit = METRICS[id].unit
        figures = {"Philly": Published("Philly", id, published, "~", unit, "", "A, 2019", "p.1")}
    named = dict(zip("cde", cells, strict=False))
    return Line(METRICS[id], "", named, figures, jobs)


def compared(*lines: Line, synthetic: str = "") -> Comparison:
    names = list(lines[0].cells)
    units = {"c": "gpu", "d": "cpu", "e": "gpu"}
    return Comparison(names, {n: units[n] for n in names}, {*synthetic}, list(lines), None)


def test_the_first_is_set_against_each_of_the_others() -> None:
    """By its own unit; what differs comes first, and a cluster of unknown number is not spoken of."""
    several = compared(line("share_single_pe", Cell(0.5), Cell(0.51), Cell(0.25)))
    (contrast,) = contrasts(several)
    assert contrast.sentences == [
        "c: 50.0 % of jobs use one GPU; e: 25.0 % of jobs use one GPU: 2.0 times as many.",
        "c: 50.0 % of jobs use one GPU; d: 51.0 % of jobs use one processor: about the same.",
    ]
    assert contrast.differs
    (partly,) = contrasts(compared(line("share_single_pe", Cell(0.5), Cell(None), Cell(0.5))))
    assert partly.sentences == [
        "c: 50.0 % of jobs use one GPU; e: 50.0 % of jobs use one GPU: the same."
    ]
    assert not partly.differs
    (alone,) = contrasts(compared(line("share_single_pe", Cell(0.5), Cell(None))))
    assert alone.sentences == ["c: 50.0 % of jobs use one GPU."] and not alone.differs
    assert contrasts(compared(line("share_single_pe", Cell(None), Cell(0.5)))) == []


def test_a_subject_of_two_numbers_is_judged_by_both() -> None:
    medians = line("run_median_s", Cell(30.0), Cell(30.0))
    means = line("run_mean_s", Cell(60.0), Cell(20.0), published=0.0)
    (contrast,) = contrasts(compared(means, medians))
    assert contrast.sentences == [
        "c: jobs run for 30 s (median) and 60 s (mean); d: jobs run for 30 s (median) and 20 s (mean): "
        "the same by the median, 3.0 times as long by the mean."
    ]
    assert contrast.differs, "by the mean"
    assert contrast.published == [], "the figures are those of its first number, the median"
    assert contrasts(compared(medians)) == [], "one number of two says too little"
    unknown = line("run_mean_s", Cell(None), Cell(20.0))
    assert contrasts(compared(unknown, medians)) == [], "and so does one that is not known"


def test_subjects_that_differ_come_first_and_keep_their_order() -> None:
    lines = [
        line("utilisation_mean", Cell(0.5), Cell(0.25)),
        line("share_completed", Cell(0.5), Cell(0.5)),
        line("spearman_size_run", Cell(0.2), Cell(-0.2)),
        line("share_single_pe", Cell(0.5), Cell(0.49)),
        line("weekday_peak_ratio", Cell(None), Cell(2.0)),
    ]
    told = [(each.subject.name, each.differs) for each in contrasts(compared(*lines))]
    assert told == [
        ("Scaling", True),
        ("Utilisation", True),
        ("Single PE", False),
        ("Ends", False),
    ]


@pytest.mark.parametrize(
    ("x", "y", "differs"),
    [
        (Cell(0.2), Cell(0.3), False),
        (Cell(0.2, low=-0.1, high=0.4), Cell(0.0), False),
        (Cell(0.2, low=-0.1, high=0.4), Cell(-0.2), True),
        (Cell(-0.2), Cell(0.3), True),
    ],
)
def test_scaling_differs_where_the_signs_do(x: Cell, y: Cell, differs: bool) -> None:
    (contrast,) = contrasts(compared(line("spearman_size_run", x, y)))
    assert contrast.differs is differs


def test_beside_a_number_stands_what_it_rests_on() -> None:
    """How many jobs, where it is not all; what it is not; that its cluster is made up; which jobs."""
    cells = [
        Cell(0.5, counted=(1200, 3400), caveat="of a part"),
        Cell(0.5, counted=(7, 7)),
        Cell(0.5, caveat="by half"),
    ]
    several = compared(line("share_at_max", *cells, jobs="long jobs"), synthetic="d")
    first, second = contrasts(several)[0].sentences
    maximum = "50.0 % of long jobs ask for their queue's maximum"
    begun = f"c: {maximum} (1,200 of 3,400 jobs; of a part); "
    assert first == f"{begun}d (SYNTHETIC): {maximum}: the same."
    assert second == f"{begun}e: {maximum} (by half): the same."


@pytest.mark.parametrize(
    ("id", "value", "told"),
    [
        ("spearman_size_run", 0.25, "Philly ~0.250, weak scaling"),
        ("spearman_size_run", 0.0, "Philly ~0.000, neither weak nor strong scaling"),
        ("share_single_pe", 0.25, "Philly ~25.0 %"),
        ("interarrival_median_s", 7200.0, "Philly ~2.0 h"),
    ],
)
def test_a_published_figure_beside_the_sentences(id: str, value: float, told: str) -> None:
    (contrast,) = contrasts(compared(line(id, Cell(0.5), published=value)))
    (figure,) = contrast.published
    assert contrast.subject.published(figure) == told
