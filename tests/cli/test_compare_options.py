"""`hakaru compare`: names given twice, published clusters, citations, and files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from hakaru.cli import compare
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put_jobs

TITLE = "Comprehensive Workload Analysis"  # of the citation of Kraken's figure
HINT = "Whole citations, and what they say of their figures: --sources"


@pytest.fixture
def two(lake: Lake) -> Lake:
    return put_jobs(lake, [job(1), job(2, cluster="d", run_s=720.0), job(3, cluster="d")])


def test_a_cluster_that_is_named_twice_is_compared_once(two: Lake) -> None:
    result = hakaru("compare", "d", "c", "d", "-w", two.workspace, "--format", "json")
    assert [each["name"] for each in json.loads(result.stdout)["clusters"]] == ["d", "c"]


def test_a_table_in_a_file_has_whole_citations_if_they_are_asked_for(
    two: Lake, tmp_path: Path
) -> None:
    words = ("compare", "c", "-w", two.workspace, "--metric", "wra_mean", "-o", tmp_path / "t.txt")
    hakaru(*words)
    short = (tmp_path / "t.txt").read_text()
    hakaru(*words, "--sources")
    whole = (tmp_path / "t.txt").read_text()
    assert (TITLE in short, HINT in short) == (False, True)
    assert (TITLE in whole, HINT in whole) == (True, False)
    printed = hakaru(*words[:-2], "--sources").stdout
    assert printed == whole
    none = hakaru(*words[:-2], "--published", "none").stdout
    assert HINT not in none, "there is no citation to see whole"


def test_a_file_is_as_wide_as_its_table_whatever_the_terminal(
    two: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    hakaru("compare", "-w", two.workspace, "-o", tmp_path / "t.txt")
    lines = (tmp_path / "t.txt").read_text().splitlines()
    assert max(map(len, lines)) > 200 and not any(line.endswith(" ") for line in lines)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("all", None),
        (" ALL ", None),
        ("none", []),
        ("None", []),
        ("kraken, philly ,", ["Kraken", "Philly"]),
    ],
)
def test_published_clusters_are_named_in_any_case(text: str, names: list[str] | None) -> None:
    assert compare._published(text) == names


def test_metrics_are_those_named_the_headline_or_all(two: Lake) -> None:
    words = ("compare", "-w", two.workspace, "--format", "json")

    def ids(*options: str) -> list[str]:
        return [each["id"] for each in json.loads(hakaru(*words, *options).stdout)["metrics"]]

    assert ids("--metric", "wra_mean", "--metric", "num_jobs") == ["num_jobs", "wra_mean"]
    assert 5 < len(ids()) < len(ids("--all"))


def test_a_few_published_clusters_are_columns_and_more_stand_under_each_metric(
    two: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    words = (
        "compare",
        "c",
        "d",
        "-w",
        two.workspace,
        "--metric",
        "wra_mean",
        "--metric",
        "num_jobs",
    )
    few = hakaru(*words, "--published", "Kraken").stdout.splitlines()
    head = next(line for line in few if line.startswith("metric"))
    assert head.split() == ["metric", "c", "d", "Kraken"]
    row = next(line for line in few if line.strip().startswith("Jobs"))
    assert row.split() == ["Jobs", "1", "2", "693,829", "[1]"]
    many = hakaru(*words).stdout.splitlines()
    head = next(line for line in many if line.startswith("metric"))
    assert head.split() == ["metric", "c", "d"]
    at = next(n for n, line in enumerate(many) if line.strip().startswith("Jobs"))
    assert many[at].split() == ["Jobs", "1", "2"]
    assert many[at + 1].startswith("    ") and "Kraken 693,829 [" in " ".join(many[at + 1 : at + 9])


def test_subjects_head_their_metrics_once(two: Lake) -> None:
    words = ("compare", "c", "-w", two.workspace, "--published", "none")
    lines = hakaru(*words).stdout.splitlines()
    table = lines[next(n for n, line in enumerate(lines) if line.startswith("───")) + 1 :]
    body = table[: table.index("")]
    subjects = [line for line in body if not line.startswith(" ")]
    assert len(subjects) == len(set(subjects)) > 2
    assert body[0] == subjects[0] and body[1].startswith("  ")


def test_csv_and_json_go_to_a_file(two: Lake, tmp_path: Path) -> None:
    words = ("compare", "c", "-w", two.workspace, "--metric", "num_jobs", "-o")
    for name in ("a.csv", "a.json"):
        assert hakaru(*words, tmp_path / name).stdout == ""
    (own, *_) = csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text()))
    assert (own["cluster"], own["metric"], float(own["value"])) == ("c", "num_jobs", 1.0)
    (metric,) = json.loads((tmp_path / "a.json").read_text())["metrics"]
    assert metric["computed"]["c"]["value"] == 1


def test_a_cluster_that_is_not_there_is_refused_with_what_to_do(two: Lake) -> None:
    told = hakaru("compare", "c", "Kraken", "-w", two.workspace)
    assert told.exit_code == 1
    assert told.stderr == (
        f"error: there is no cluster 'Kraken' in {two.workspace}; known: c, d. Read one in with: hakaru "
        "ingest FILE --cluster NAME; what others have published stands beside it with --published NAME\n"
    )


def test_a_file_of_that_name_is_no_reason_to_refuse_a_cluster(
    two: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only beside --from is it what the shell has made of a pattern."""
    monkeypatch.chdir(tmp_path)
    Path("c").write_text("")
    assert hakaru("compare", "c", "-w", two.workspace).exit_code == 0
