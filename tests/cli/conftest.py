"""A log of three jobs for the verbs that read one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli._log import HEADER, ROWS


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "mini.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path
