"""Any file: recognised or refused with what is known, bounded, and never good by accident."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.measure import imports
from hakaru.measure._base import load_all
from hakaru.measure.device._types import TYPES
from hakaru.measure.imports import IMPORTERS, read_file, read_run
from hakaru.measure.record import from_rows, to_rows
from hakaru.measure.verdict import Verdict, worst

DATA = Path(__file__).parent / "data"
FORMATS = {
    "nccl-new.txt": "nccl-tests",
    "nccl-old-alltoall.txt": "nccl-tests",
    "nccl.json": "nccl-tests",
    "HPL.out": "hpl",
    "results-summary.jsonl": "superbench",
    "diagnosis_summary.json": "superbench",
    "dcgm-3.json": "dcgm",
    "dcgm-4.json": "dcgm",
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_recognised_and_its_measurements_are_rows_of_the_record(name: str) -> None:
    run = read_run(DATA / name, "mine", label="acceptance")
    assert run.source == FORMATS[name]
    assert run == read_run(DATA / name, "mine", label="acceptance")
    (back,) = from_rows(to_rows(run))
    assert [each.verdict for each in back.measurements] == [m.verdict for m in run.measurements]
    assert all(m.reason and m.samples for m in run.measurements if m.verdict is Verdict.GOOD)


@pytest.mark.parametrize("name", FORMATS)
def test_what_we_measure_ourselves_has_our_names_and_units(name: str) -> None:
    known = load_all()
    for each in read_file(DATA / name).measurements:
        if each.benchmark not in known or each.quantity == "iteration-time":
            continue
        own = known.get(each.benchmark)
        quantity = own.quantity(each.quantity)
        assert (each.unit, each.better) == (quantity.unit, quantity.better)
        if dtype := each.parameters.get("dtype"):
            assert dtype in TYPES


def test_every_sample_has_a_format_and_every_format_a_sample() -> None:
    assert {path.name for path in DATA.iterdir()} == set(FORMATS)
    assert set(FORMATS.values()) == set(IMPORTERS.ids())


def test_an_unknown_format_lists_those_that_are_known(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing to see\n")
    with pytest.raises(HakaruError, match=r"(?s)nccl-tests: .*hpl: .*dcgm: .*superbench: "):
        read_file(path)
    with pytest.raises(HakaruError, match="did you mean superbench"):
        read_file(path, format="superbnech")


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_an_empty_file_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "HPL.out"
    path.write_text(text)
    with pytest.raises(HakaruError, match="is empty"):
        read_file(path)


def test_a_missing_or_a_huge_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HakaruError, match="no such file"):
        read_file(tmp_path / "nothing")
    monkeypatch.setattr(imports, "MOST_MB", 0.0001)
    with pytest.raises(HakaruError, match=r"at most 0\.0001 MB are read"):
        read_file(DATA / "HPL.out")


@pytest.mark.parametrize("format", ["dcgm", "superbench"])
@pytest.mark.parametrize("text", ["{not json", "[1, 2]", '{"a": ' * 5000, '{"a/b": ' + "9" * 5000])
def test_what_is_not_the_json_expected_is_an_error(tmp_path: Path, format: str, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(HakaruError, match=r"x\.json"):
        read_file(path, format)


@pytest.mark.parametrize(
    "name", ["nccl.json", "dcgm-3.json", "dcgm-4.json", "diagnosis_summary.json"]
)
def test_json_that_is_cut_off_is_an_error(tmp_path: Path, name: str) -> None:
    text = (DATA / name).read_text().rstrip()
    for share in (0.3, 0.7, 0.99):
        path = tmp_path / name
        path.write_text(text[: int(len(text) * share)])
        with pytest.raises(HakaruError, match="not JSON"):
            read_file(path, FORMATS[name])


def test_text_that_is_cut_off_is_never_good(tmp_path: Path) -> None:
    whole = (DATA / "nccl-new.txt").read_text().splitlines(keepends=True)
    path = tmp_path / "cut.txt"
    for num_lines in range(5, 19):
        path.write_text("".join(whole[:num_lines])[:-4])
        found = read_file(path)
        assert worst(each.verdict for each in found.measurements) is Verdict.FAILED, num_lines


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"\xff\xfe\x00HPLinpack \x1b[31m\x00\nWR11C2R4 \xff\n")
    found = read_file(path)
    assert worst(each.verdict for each in found.measurements) is Verdict.FAILED
    assert all("\x1b" not in each.reason for each in found.measurements)


def test_the_time_is_the_file_s_where_it_holds_none(tmp_path: Path) -> None:
    path = tmp_path / "diag.json"
    path.write_text((DATA / "dcgm-4.json").read_text())
    os.utime(path, (1_700_000_000, 1_700_000_000))
    first = read_file(path, host="gpu01").measurements[0]
    assert first.started_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert first.host == "gpu01"
    assert "the date is that of the file, 2023-11-14 22:13 UTC" in read_file(path).notes[-1]
    assert not any("the date" in note for note in read_file(DATA / "nccl.json").notes)


@pytest.mark.parametrize("year", ["0001", "1500", "9998", "9999"])
@pytest.mark.parametrize("name", ["nccl.json", "HPL.out"])
def test_a_time_that_cannot_be_is_replaced_by_the_file_s(
    tmp_path: Path, name: str, year: str
) -> None:
    path = tmp_path / name
    text = (DATA / name).read_text()
    path.write_text(text.replace("2026-02-26", f"{year}-02-26").replace("00 2026", f"00 {year}"))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    run = read_run(path, "c")
    assert {m.started_at.year for m in run.measurements} == {2023}
    assert run.id.startswith("20231114-") and {m.ended_at.year for m in run.measurements} == {2023}
    assert "the date is that of the file" in run.notes[-1]


def test_an_end_that_cannot_be_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "nccl.json"
    text = (DATA / "nccl.json").read_text()
    path.write_text(text.replace("2026-02-26 12:00:07", "9999-12-30 12:00:07"))
    found = read_file(path)
    assert all(m.ended_at == m.started_at for m in found.measurements)
    assert "the time of the end" in found.notes[-1]


@pytest.mark.parametrize("seconds", [0, -(10**10), 250_000_000_000])
def test_a_file_from_another_age_is_refused(tmp_path: Path, seconds: int) -> None:
    path = tmp_path / "diag.json"
    path.write_text((DATA / "dcgm-4.json").read_text())
    try:
        os.utime(path, (seconds, seconds))
    except OSError:
        pytest.skip("the file system has no such times")
    with pytest.raises(HakaruError, match=r"cannot be that of a result; set it with: touch -d"):
        read_file(path)


def test_a_host_that_is_no_text_is_refused() -> None:
    with pytest.raises(HakaruError, match="not text in UTF-8"):
        read_run(DATA / "HPL.out", "c", host=os.fsdecode(b"n\xff1"))
