"""HPL's output: a rate is good only with its residual, and what went wrong has a row."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hakaru.measure.compare import compare_runs
from hakaru.measure.hpl.output import parse_output
from hakaru.measure.hpl.result import Output
from hakaru.measure.imports import Imported, read_file
from hakaru.measure.record import Run
from hakaru.measure.verdict import Verdict

DATA = Path(__file__).parent / "data"
TEXT = (DATA / "HPL.out").read_text()


def read(tmp_path: Path, text: str) -> Imported:
    path = tmp_path / "HPL.out"
    path.write_text(text)
    return read_file(path, host="n1")


def test_rates_with_their_settings_and_residuals() -> None:
    good, wrong, best = read_file(DATA / "HPL.out").measurements
    assert (good.benchmark, good.quantity, good.unit) == ("hpl", "rate", "GFLOP/s")
    assert (good.samples, good.verdict, good.device) == ((6.6767,), Verdict.GOOD, "2 ranks")
    assert good.parameters == {"n": 1000, "nb": 80, "p": 1, "q": 2, "variant": "WR11C2R4"}
    assert good.reason == "as reported by HPL; not compared with anything"
    assert good.started_at == datetime(2026, 2, 26, 12, 0, 0).astimezone(UTC)
    assert (wrong.verdict, wrong.samples) == (Verdict.FAILED, (10.679,))
    assert "9900" in wrong.reason
    assert (best.parameters, best.samples, best.model) == ({"ranks": 2}, (6.6767,), "2 ranks")
    assert best.reason.endswith("the best that passed: N 1,000, NB 80, 1 × 2")


def test_the_best_rate_meets_that_of_an_own_search() -> None:
    found = read_file(DATA / "HPL.out", host="n1")
    best = replace(found.measurements[-1], samples=(6.0, 6.1))  # as our own search stores it
    own = replace(best, parameters={"ranks": 2}, place={"model": "2 ranks"})
    runs = [Run(id, "c", best.started_at, tuple(each)) for id, each in
            (("own", [own]), ("theirs", found.measurements))]  # fmt: skip
    row = next(row for row in compare_runs(*runs) if row.parameters == {"ranks": 2})
    assert row.ratio is not None and row.change == "too few independent repetitions to tell"


def test_a_run_that_is_cut_off_has_a_row_that_failed(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT[: TEXT.index("WR11C2R4        2000")])
    assert [m.verdict for m in found.measurements] == [Verdict.GOOD, Verdict.GOOD, Verdict.FAILED]
    assert found.measurements[-1].samples == ()


@pytest.mark.parametrize("text", [TEXT[: TEXT.index("Finished")], f"{TEXT}HPL ERROR from n2\n"])
def test_many_lines_of_mixed_precision_hide_nothing(tmp_path: Path, text: str) -> None:
    mixed = "HPL_MxP WR03L2L2      176000   288     2     2       30.66       1.186e+05\n"
    found = read(tmp_path, mixed * 200 + text)
    last = found.measurements[-1]
    assert (last.verdict, last.device, last.samples) == (Verdict.FAILED, "unknown ranks", ())
    assert "mixed precision" in found.left_out[0] and "mixed precision" not in last.reason


def test_output_that_is_not_complete_fails_whatever_else_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quiet(text: str) -> Output:
        return replace(parse_output(text), problems=())

    monkeypatch.setattr("hakaru.measure.imports.hpl.parse_output", quiet)
    last = read(tmp_path, TEXT[: TEXT.index("Finished")]).measurements[-1]
    assert last.verdict is Verdict.FAILED and "did not come to its end" in last.reason


def test_no_residual_is_not_good_and_no_memory_is_a_failure(tmp_path: Path) -> None:
    lines = [line for line in TEXT.splitlines() if not line.startswith("||Ax-b||")]
    unchecked = read(tmp_path, "\n".join(lines))
    assert Verdict.GOOD not in {m.verdict for m in unchecked.measurements}
    error = "HPL ERROR from process # 0, on line 170 of function HPL_pdtest:\n>>> [0,0] Memory allocation failed for A, x and b. Skip. <<<\n"  # noqa: E501
    failed = read(tmp_path, "HPLinpack 2.3\n" + error + TEXT[TEXT.index("Finished") :])
    assert [m.verdict for m in failed.measurements] == [Verdict.FAILED]
    assert "Memory allocation failed" in failed.measurements[0].reason


@pytest.mark.parametrize(
    "row, verdict",
    [
        ("0.00             1.0000e+300", Verdict.FAILED),
        ("0.00             6.6767e+02", Verdict.NOT_MEASURED),
        ("0.10             6.6767e+01", Verdict.FAILED),
    ],
)
def test_a_rate_that_the_printed_time_does_not_support_is_not_good(
    tmp_path: Path, row: str, verdict: Verdict
) -> None:
    found = read(tmp_path, TEXT.replace("0.10             6.6767e+00", row))
    assert found.measurements[0].verdict is verdict
    assert Verdict.GOOD not in {m.verdict for m in found.measurements}


def test_a_time_of_nearly_half_a_hundredth_supports_its_rate(tmp_path: Path) -> None:
    row = "0.00             1.3353e+02"  # the work of N 1,000 in 0.005 s
    good = read(tmp_path, TEXT.replace("0.10             6.6767e+00", row)).measurements[0]
    assert (good.verdict, good.samples) == (Verdict.GOOD, (133.53,))
