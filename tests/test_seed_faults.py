"""The tool that puts faults into the code: which it makes, and that it notices whether a test finds them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "seed_faults.py"
CODE = '''"""Says a < b AND more, in prose."""


def least(a, b):
    """Not a fault: a >= b."""
    if a < b and not a == 3:
        return f"SELECT max({a}) WHERE x >= {b}"
    return [*a, -b]
'''


@pytest.fixture(scope="module")
def seeding() -> ModuleType:
    spec = importlib.util.spec_from_file_location("seed_faults", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["seed_faults"] = module
    spec.loader.exec_module(module)
    return module


def test_faults_are_in_code_and_in_sql_but_not_in_docstrings(seeding: ModuleType) -> None:
    found = {(f.line, f.old, f.new) for f in seeding.faults_of(Path("x.py"), CODE)}
    assert found == {
        (6, "<", "<="),
        (6, "and", "or"),
        (6, "not ", ""),
        (6, "==", "!="),
        (6, "3", "4"),
        (7, "max(", "min("),
        (7, ">=", ">"),
    }


def test_a_fault_changes_its_own_place_only(seeding: ModuleType) -> None:
    (fault,) = [f for f in seeding.faults_of(Path("x.py"), CODE) if f.new == "<="]
    assert fault.applied(CODE) == CODE.replace("if a < b", "if a <= b")


def test_faults_of_a_list_lie_in_their_rooms_and_occur_once(
    seeding: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeding, "ROOT", tmp_path)
    names = [f"src/hakaru/{name}.py" for name in ("lake/a", "web/b")]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(CODE)
    rows = [
        {"path": name, "old": "3:\n        return", "new": "4:\n        yield"} for name in names
    ]
    faults = tmp_path / "faults.jsonl"
    faults.write_text("\n".join(map(json.dumps, rows)))
    (fault,) = seeding.listed(faults, ["lake"])
    assert (str(fault.path), fault.line) == (names[0], 6)
    assert fault.applied(CODE) == CODE.replace("3:\n        return", "4:\n        yield")
    faults.write_text(json.dumps(rows[0] | {"old": "return"}))
    with pytest.raises(SystemExit, match="occurs 2 times"):
        seeding.listed(faults, ["lake"])


def test_it_notices_whether_a_test_finds_the_fault(seeding: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "sized.py").write_text("def fits(n):\n    return n < 3\n")
    checks = tmp_path / "test_sized.py"
    checks.write_text("from sized import fits\n\n\ndef test_two():\n    assert fits(2)\n")
    fault = seeding.Fault(Path("src/sized.py"), 2, 13, "<", "<=")
    assert seeding.found_by(fault, tmp_path, [str(checks)], 60) is None
    checks.write_text("from sized import fits\n\n\ndef test_three():\n    assert not fits(3)\n")
    assert "test_three" in seeding.found_by(fault, tmp_path, [str(checks)], 60)
    assert (tmp_path / "sized.py").read_text() == "def fits(n):\n    return n < 3\n"


def test_a_time_out_and_tests_that_cannot_start_are_no_find(
    seeding: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three faults: one is found, one missed, and with one pytest itself cannot start."""
    names = ("found", "missed", "stops")
    for name in names:
        (tmp_path / f"{name}.py").write_text("ON = False\n")
    checks = tmp_path / "test_all.py"
    checks.write_text("import found, missed\n\n\ndef test_it():\n    assert not found.ON\n")
    (tmp_path / "conftest.py").write_text("import os, stops\n\nif stops.ON:\n    os._exit(3)\n")
    faults = [seeding.Fault(Path(f"src/{name}.py"), 1, 5, "False", "True") for name in names]
    counts = seeding.score(faults, tmp_path, [str(checks)], 60)
    assert (counts.num_found, counts.num_missed, counts.num_unknown) == (1, 1, 1)
    assert str(counts) == "1 of 2 faults found (50%); 1 without a verdict"
    late = seeding.score(faults[:1], tmp_path, [str(checks)], 0.001)
    assert (late.num_found, late.num_missed, late.num_unknown) == (0, 0, 1)
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == ["found", "MISSED", "UNKNOWN", "UNKNOWN"]
    assert said[2].endswith("no test could start") and said[3].endswith("a time-out")
