"""A log of several programs: all of them are read, and what is not read is never silently good."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.measure.imports import Imported, read_file, read_run
from hakaru.measure.store import load_runs
from hakaru.measure.verdict import Verdict
from tests._cli import hakaru
from tests.measure.hpl._xhpl import page, result

DATA = Path(__file__).parent / "data"
NCCL = (DATA / "nccl-new.txt").read_text()
RUN = {"n": 2000, "nb": 80, "p": 1, "q": 2, "pmap": 0, "depth": 1, "bcast": 1, "rfact": 1, "ndiv": 2,
       "pfact": 2, "nbmin": 4}  # fmt: skip
HPL = page([result(RUN, 60.0)])
WRONG = page([result(RUN, 60.0, "123456.7", "FAILED")], num_failed=1)
NVIDIA = "HPL-NVIDIA 24.3.0  -- NVIDIA accelerated HPL benchmark -- NVIDIA\n"
GOOD, FAILED = {Verdict.GOOD}, {Verdict.FAILED}


def read(tmp_path: Path, text: str, format: str | None = None) -> Imported:
    path = tmp_path / "job-77.out"
    path.write_text(text)
    return read_file(path, format)


def by_benchmark(found: Imported) -> dict[str, set[Verdict]]:
    names = {each.benchmark for each in found.measurements}
    return {name: {m.verdict for m in found.measurements if m.benchmark == name} for name in names}


@pytest.mark.parametrize("noise", ["", "a line of a module\n" * 20_000])
def test_nccl_tests_and_hpl_in_one_log_are_both_read(tmp_path: Path, noise: str) -> None:
    found = read(tmp_path, NCCL + noise + HPL)
    assert by_benchmark(found) == {"all-reduce": GOOD, "hpl": GOOD}
    assert found.format == "nccl-tests and hpl"
    assert by_benchmark(read(tmp_path, HPL + noise + NCCL)) == {"all-reduce": GOOD, "hpl": GOOD}


@pytest.mark.parametrize("hpl", [WRONG, HPL[: HPL.index("Finished")], HPL[:300], NVIDIA])
def test_an_hpl_that_failed_beside_a_good_nccl_tests_is_not_lost(tmp_path: Path, hpl: str) -> None:
    for text in (f"{NCCL}{hpl}", f"{hpl}\n{NCCL}"):
        found = by_benchmark(read(tmp_path, text))
        assert found["all-reduce"] == GOOD and Verdict.FAILED in found["hpl"]


def test_an_nccl_tests_that_failed_beside_a_good_hpl_is_not_lost(tmp_path: Path) -> None:
    cut = NCCL[: NCCL.index("# Out of")]
    assert by_benchmark(read(tmp_path, HPL + cut)) == {"all-reduce": FAILED, "hpl": GOOD}


def test_a_crash_of_hpl_is_not_one_of_nccl_tests_before_it(tmp_path: Path) -> None:
    crash = "srun: error: n2: task 1: Killed\n"
    found = by_benchmark(read(tmp_path, f"{NCCL}{HPL}{crash}"))
    assert found == {"all-reduce": GOOD, "hpl": {*GOOD, *FAILED}}
    assert by_benchmark(read(tmp_path, f"{NCCL}{crash}{HPL}"))["all-reduce"] == FAILED


@pytest.mark.parametrize("mention", ["+ cd /opt/HPLinpack/bin", "module load HPLinpack-2.3", "hpl"])
def test_a_mention_of_hpl_is_no_output_of_it(tmp_path: Path, mention: str) -> None:
    assert by_benchmark(read(tmp_path, f"{mention}\n{NCCL}")) == {"all-reduce": GOOD}


LABELS = [
    "[1,0]<stdout>:",
    "[1,0]<stderr>: ",
    "[prterun-node07-411@1,0]<stdout>: ",
    "0: ",
    " 0: ",
    "   0: ",
    "P0  3: ",
    "P0 3: ",
    "[0] ",
]


@pytest.mark.parametrize("label", LABELS)
def test_results_with_labels_of_a_launcher_are_recognised(tmp_path: Path, label: str) -> None:
    def labelled(text: str) -> str:
        return "".join(f"{label}{line}\n" for line in text.splitlines())

    headless = HPL[HPL.index("WR11C2R4") :]
    assert by_benchmark(read(tmp_path, NCCL + labelled(headless)))["hpl"] == GOOD
    found = by_benchmark(read(tmp_path, labelled(NCCL + HPL)))
    assert found == {"all-reduce": GOOD, "hpl": GOOD}
    wrong = labelled(NCCL.replace("30.99       0", "30.99      17"))
    found = by_benchmark(read(tmp_path, wrong + HPL))
    assert Verdict.FAILED in found["all-reduce"] and found["hpl"] == GOOD
    assert Verdict.FAILED in by_benchmark(read(tmp_path, labelled(WRONG) + NCCL))["hpl"]


@pytest.mark.parametrize(
    "first", ['{"job": 77}', "[]", '{"a": 1}\n{"b": 2}', '{"job": ', "{", "[{"]
)
def test_a_log_whose_first_line_is_json_is_no_document(tmp_path: Path, first: str) -> None:
    cut = NCCL[: NCCL.index("# Out of")]
    for log in (f"{cut}{HPL}", f"{HPL}{cut}"):
        found = by_benchmark(read(tmp_path, f"{first}\n{log}"))
        assert found == {"all-reduce": FAILED, "hpl": GOOD}
    assert by_benchmark(read(tmp_path, f"{first}\n{NCCL}")) == {"all-reduce": GOOD}
    found = by_benchmark(read(tmp_path, f'{first}\n{{"nccl_version": 22902}}\n{cut}{HPL}'))
    assert found == {"all-reduce": FAILED, "hpl": GOOD}


@pytest.mark.parametrize("name", ["nccl.json", "dcgm-4.json", "results-summary.jsonl"])
def test_a_document_after_a_first_line_of_json_is_refused(tmp_path: Path, name: str) -> None:
    document = (DATA / name).read_text()
    for log in (HPL + document, document + HPL):
        with pytest.raises(HakaruError, match=r"job-77\.out"):
            read(tmp_path, f'{{"job": 77}}\n{log}')


def test_the_file_of_nccl_tests_in_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HakaruError, match=r"nccl-tests -J among other text: put it into a file"):
        read(tmp_path, HPL + (DATA / "nccl.json").read_text())


def test_a_document_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def loads(text: str) -> object:
        parsed.append(text)
        return json.loads(text)

    monkeypatch.setattr("hakaru.measure.imports._base.json", SimpleNamespace(loads=loads))
    for name in ("nccl.json", "dcgm-4.json", "diagnosis_summary.json"):
        parsed.clear()
        read_file(DATA / name)
        assert len(parsed) == 1, name
    parsed.clear()
    read(tmp_path, NCCL + HPL)
    assert not parsed, "a log does not begin as JSON"


def test_a_format_that_is_asked_for_names_what_it_leaves_out(tmp_path: Path) -> None:
    found = read(tmp_path, NCCL + WRONG, "nccl-tests")
    assert by_benchmark(found) == {"all-reduce": GOOD}
    assert found.left_out == ("output of HPL, which --format leaves out",)


def test_a_document_in_a_log_of_another_program_is_refused(tmp_path: Path) -> None:
    document = (DATA / "dcgm-4.json").read_text()
    with pytest.raises(
        HakaruError, match=r"output of nccl-tests and of DCGM, .* a file of its own"
    ):
        read(tmp_path, NCCL + document)


@pytest.mark.parametrize("text", [NCCL, (DATA / "nccl.json").read_text(), "Killed\n"])
def test_hpl_is_not_read_from_a_file_without_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(HakaruError, match="holds no output of HPL"):
        read(tmp_path, text, "hpl")


def test_another_format_is_another_run(lake: Lake, tmp_path: Path) -> None:
    """Stored under the same id, its rows would be added to the run that is there."""
    path = tmp_path / "job-77.out"
    path.write_text(NCCL + WRONG)
    ids = {read_run(path, "c", format).id for format in (None, "nccl-tests", "hpl")}
    assert len(ids) == 3 and read_run(path, "c").id in ids
    for options in (["--format", "nccl-tests"], ["--format", "hpl"]):
        hakaru("bench", "import", path, "--cluster", "c", "-w", lake.workspace, *options)
    assert {run.verdict for run in load_runs(lake)} == {Verdict.GOOD, Verdict.FAILED}


def test_the_command_shows_both_and_fails(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "job-77.out"
    path.write_text(NCCL + WRONG)
    shown = hakaru("bench", "import", path, "--cluster", "c", "-w", lake.workspace)
    assert shown.exit_code == 11 and "nccl-tests and hpl, run" in " ".join(shown.output.split())
