"""The parser: liberal with what others print around a result, strict about what passed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakaru.measure.hpl import Config, ProblemKind, Status, parse_output
from hakaru.measure.hpl.dat import RANGES
from tests.measure.hpl._xhpl import page, result, variant

RUN = {"n": 2000, "nb": 80, "p": 1, "q": 2, "pmap": 0, "depth": 1, "bcast": 1, "rfact": 1, "ndiv": 2,
       "pfact": 2, "nbmin": 4}  # fmt: skip
GOOD = page([result(RUN, 60.0), result(RUN | {"nb": 128}, 66.0)])
NVIDIA = """
HPL-NVIDIA 24.3.0  -- NVIDIA accelerated HPL benchmark -- NVIDIA
T/V                N    NB     P     Q         Time          Gflops (   per GPU)
--------------------------------------------------------------------------------
WC0            92160  1024     1     1        30.73       1.698e+04 ( 1.698e+04)

HPL_pdgesv() start time Tue Mar 12 04:52:03 2024
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   0.000320172243 ...... PASSED
||Ax-b||_oo  . . . . . . . . . . . . . . . . . = 0.0000000009839921
Finished      1 tests with the following results:
              1 tests completed and passed residual checks,
              0 tests completed and failed residual checks,
              0 tests skipped because of illegal input values.
End of Tests.
"""
OLD_RESIDUALS = """
||Ax-b||_oo / ( eps * ||A||_1  * N        ) =        0.0340000 ...... PASSED
||Ax-b||_oo / ( eps * ||A||_1  * ||x||_1  ) =       17.0000000 ...... FAILED
||Ax-b||_oo / ( eps * ||A||_oo * ||x||_oo ) =        0.0020000 ...... PASSED
"""

settings = {
    n: st.integers(RANGES[n][0], min(RANGES[n][1], 300)) for n in RUN if n not in ("n", "p", "q")
}
runs = st.fixed_dictionaries(
    settings | {"n": st.integers(100, 200_000), "p": st.integers(1, 64), "q": st.integers(1, 64)}
)


@given(runs, st.floats(1.0, 1e6))
def test_what_hpl_prints_is_read_back(run: dict[str, int], rate: float) -> None:
    output = parse_output(page([result(run, rate)]))
    (found,) = output.results
    assert output.passed and found.config == Config(**run) and found.variant == variant(run)
    assert found.gflops == pytest.approx(rate, rel=1e-4)


def test_no_beginning_of_a_text_has_passed() -> None:
    """A killed run, a full disk: whatever is missing at the end, it is reported and is no pass."""
    end = GOOD.index("End of Tests") + len("End of Tests")
    for length in range(0, end, 3):
        output = parse_output(GOOD[:length])
        assert not output.passed and not output.is_complete
        assert ProblemKind.TRUNCATED in {problem.kind for problem in output.problems}
    assert parse_output(GOOD).passed


def test_a_result_without_its_residual_is_unchecked() -> None:
    lines = [line for line in GOOD.splitlines() if not line.startswith("||Ax-b")]
    output = parse_output("\n".join(lines))
    assert {each.status for each in output.results} == {Status.UNCHECKED} and not output.passed


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("0.0034465 ...... PASSED", "123456.7 ...... FAILED", Status.FAILED),
        ("0.0034465 ...... PASSED", "nan ...... PASSED", Status.FAILED),
        ("0.0034465 ...... PASSED", "99.0 ...... PASSED", Status.FAILED),
        ("0.0034465 ...... PASSED", "0.0034465 ...... ", Status.INCONSISTENT),
        ("6.0000e+01", "6.0000e+03", Status.INCONSISTENT),
    ],
)
def test_each_kind_of_bad_result_is_recognised(old: str, new: str, status: Status) -> None:
    output = parse_output(GOOD.replace(old, new, 1))
    assert [each.status for each in output.results] == [status, Status.PASSED]
    assert not output.passed


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("HPL WARNING from process # 0, on line 331 of function HPL_pdtest:\n"
         ">>> [0,0] Memory allocation failed for A, x and b. Skip. <<<", ProblemKind.MEMORY),
        ("HPL ERROR from process # 0, on line 440 of function HPL_pdinfo:\n"
         ">>> Need at least 6 processes for these tests <<<", ProblemKind.INPUT),
        ("HPL ERROR from process # 3, on line 12 of function HPL_rollT:\n>>> MPI call failed <<<",
         ProblemKind.ERROR),
        ("HPL_AI   WR03L2L2      176000   288     2     2       30.66       1.186e+05",
         ProblemKind.PRECISION),
        ("WR11C2R4        2000    80     1     2         x", ProblemKind.FORMAT),
    ],
)  # fmt: skip
def test_complaints_have_kinds(text: str, kind: ProblemKind) -> None:
    output = parse_output(GOOD.replace("\nFinished", f"\n{text}\n\x1b[31mFinished", 1))
    assert output.problems[0].kind == kind and not output.passed


MIXED = "HPL_AI   WR03L2L2      176000   288     2     2       30.66       1.186e+05\n"
UNREADABLE = "WR11C2R4        2000    80     1     2         x\n"
COMPLAINT = "HPL ERROR from process # 3, on line 12 of function HPL_rollT:\n"
FULL = ">>> [0,0] Memory allocation failed for A, x and b. Skip. <<<\n"


@pytest.mark.parametrize("line", [MIXED, UNREADABLE, COMPLAINT])
def test_no_number_of_problems_hides_one_of_another_kind(line: str) -> None:
    output = parse_output(line * 150 + GOOD + COMPLAINT + FULL)
    assert {each.kind for each in output.problems[-1:]} == {ProblemKind.MEMORY}
    assert len(output.problems) == 101
    cut = parse_output(line * 150 + GOOD[: GOOD.index("Finished")])
    assert cut.problems[-1].kind is ProblemKind.TRUNCATED and not cut.is_complete


def test_the_second_line_of_a_complaint_belongs_to_its_first_alone() -> None:
    output = parse_output(GOOD + COMPLAINT + UNREADABLE + FULL)
    kinds = [each.kind for each in output.problems]
    assert kinds == [ProblemKind.ERROR, ProblemKind.FORMAT, ProblemKind.MEMORY]
    assert output.problems[2].text.startswith("HPL ERROR")


def test_nvidias_output_is_read_though_it_does_not_spell_the_settings() -> None:
    output = parse_output(NVIDIA)
    (found,) = output.results
    assert output.passed and output.program == "xhpl (NVIDIA)"
    assert (found.n, found.nb, found.gflops, found.config) == (92160, 1024, 16980.0, None)


def test_of_three_residuals_the_worst_counts() -> None:
    new = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0034465 ...... PASSED"
    (found,) = parse_output(page([result(RUN, 60.0)]).replace(new, OLD_RESIDUALS)).results
    assert (found.status, found.residual) == (Status.FAILED, 17.0)


def test_labels_of_launchers_and_several_runs_in_one_file() -> None:
    tagged = "\n".join(f"[1,0]<stdout>:{line}" for line in GOOD.splitlines())
    numbered = "\n".join(f"0: {line}" for line in GOOD.splitlines())
    assert parse_output(tagged).results == parse_output(GOOD).results
    assert parse_output(f"{numbered}\n{GOOD}").passed
    assert not parse_output(f"{GOOD}\n{GOOD[: len(GOOD) // 2]}").passed


def test_counts_that_do_not_agree_are_a_problem() -> None:
    lied = GOOD.replace("     2 tests completed and passed", "     3 tests completed and passed")
    assert [problem.kind for problem in parse_output(lied).problems] == [ProblemKind.COUNT]


UNCHECKED = """
Finished      2 tests with the following results:
              2 tests completed without checking,
              0 tests skipped because of illegal input values.
"""


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("     2 tests completed and passed residual checks,\n", "", "are not whole"),
        ("     0 tests completed and failed residual checks,\n", "", "are not whole"),
        ("     0 tests skipped because of illegal input values.\n", "", "are not whole"),
        ("Finished      2 tests with the following results:\n", "", "are not whole"),
        (GOOD[GOOD.index("Finished") : GOOD.index("End of")], "", "are not whole"),
        ("Finished      2 tests", "Finished      3 tests", "finished 3 tests; its counts add up to 2"),
        ("     0 tests skipped", "     1 tests skipped", "finished 2 tests; its counts add up to 3"),
        (GOOD[GOOD.index("WR11C2R4") : GOOD.rindex("WR11C2R4")], "", "counted 2 passed and 0 failed"),
        (GOOD[GOOD.index("Finished") : GOOD.index("End of")], UNCHECKED.replace("2", "3"),
         "counted 3 tests; the text has 2"),
    ],
)  # fmt: skip
def test_lost_results_and_lost_counts_are_a_problem(old: str, new: str, text: str) -> None:
    assert old in GOOD
    (problem,) = parse_output(GOOD.replace(old, new)).problems
    assert problem.kind is ProblemKind.COUNT and text in problem.text
    later = parse_output(GOOD + GOOD.replace(old, new))
    assert [each.kind for each in later.problems] == [ProblemKind.COUNT], "of each run in the file"


def test_tests_that_were_skipped_or_not_checked_are_counted_too() -> None:
    skipped = GOOD.replace("Finished      2", "Finished      3").replace(
        "  0 tests sk", "  1 tests sk"
    )
    assert not parse_output(skipped).problems and parse_output(skipped).num_skipped == 1
    lines = [line for line in GOOD.splitlines() if not line.startswith("||Ax-b")]
    text = "\n".join(lines)
    unchecked = text.replace(text[text.index("Finished") : text.index("End of")], UNCHECKED)
    assert not parse_output(unchecked).problems and not parse_output(unchecked).passed


@given(st.text(max_size=300))
def test_any_text_is_read_without_a_pass(text: str) -> None:
    output: Any = parse_output(text)
    assert not output.passed
