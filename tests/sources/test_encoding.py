"""Text in other encodings than UTF-8: the likely one is named, with the commands that help."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shlex
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hakaru.errors import SourceError
from hakaru.sources._base import detect
from hakaru.sources._encoding import likely_encoding
from hakaru.sources.ingest import guess_mapping

HEADER = "job_id;user;name;submit_time;start_time;end_time\n"
ROW = "7;ann;{};1514764800;1514764810;1514768410\n"


@pytest.mark.parametrize(
    ("text", "encoding", "likely"),
    [
        ("Müller, Français, señor", "ISO-8859-1", "ISO-8859-1"),
        ("Größe “5 €”", "cp1252", "CP1252"),
        ("学習ジョブ、テスト", "cp932", "CP932"),
        ("画像の学習", "euc-jp", "EUC-JP"),
        ("학습 작업", "cp949", "CP949"),
        ("学習 é 학습", "utf-8", None),
        ("plain", "ascii", None),
    ],
)
def test_the_likely_encoding(text: str, encoding: str, likely: str | None) -> None:
    assert likely_encoding((HEADER + ROW.format(text)).encode(encoding)) == likely


def test_a_letter_cut_off_at_the_end_is_utf8_still() -> None:
    assert likely_encoding("aé".encode()[:-1]) is None


def zipped(content: bytes) -> bytes:
    with io.BytesIO() as made:
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr("jobs.csv", content)
        return made.getvalue()


@pytest.mark.parametrize(
    "pack",
    [
        bytes,
        gzip.compress,
        bz2.compress,
        lzma.compress,
        lambda content: pa.compress(content, "zstd", asbytes=True),
        zipped,
    ],
)
def test_the_commands_lead_to_a_mapping(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "jobs of mine.csv"
    path.write_bytes(pack((HEADER + ROW.format("Müller")).encode("latin-1")))
    with pytest.raises(SourceError) as unknown:
        detect(path)
    with pytest.raises(SourceError) as unguessed:
        guess_mapping(path)
    for message in (str(unknown.value), str(unguessed.value)):
        assert "It is not UTF-8 text; its letters look like ISO-8859-1." in message
        assert "no table" not in message
        command, guess = [row.strip() for row in message.splitlines() if row.startswith("  ")]
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
        assert shlex.split(guess)[:3] == ["hakaru", "ingest", "jobs-utf8.csv"]
        assert 'name = "name"' in guess_mapping(tmp_path / "jobs-utf8.csv")
        assert "Müller" in (tmp_path / "jobs-utf8.csv").read_text()
