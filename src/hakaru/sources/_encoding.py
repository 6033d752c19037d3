"""Which encoding a text that is not UTF-8 is probably in, and the commands that turn it into UTF-8."""

from __future__ import annotations

import codecs
import re
import shlex
from pathlib import Path

from hakaru.sources._packing import HEAD_BYTES, encoding_of, open_bytes, packing_of

# Names that both Python and iconv know, with the letters that tell the language. Read as one another, texts
# give kanji and Hangul too, but hardly any kana, and no Hangul without single jamo.
EAST_ASIAN = {
    "CP932": ("[\u3041-\u30fc]", "[\uff61-\uff9f]"),
    "EUC-JP": ("[\u3041-\u30fc]", "[\uff61-\uff9f]"),
    "CP949": ("[\uac00-\ud7a3]", "[\u3131-\u318e]"),
}
MOST_ODD = 10  # a telling letter weighs less than an odd one


def utf8_advice(path: Path) -> str | None:
    """For text that is not UTF-8, how to have a mapping proposed; None for UTF-8."""
    with open_bytes(path) as file:
        start = file.read(HEAD_BYTES)
    likely = None if encoding_of(start) or b"\0" in start else likely_encoding(start)
    if likely is None:
        return None
    name = shlex.quote(str(path))
    convert = f"iconv -f {likely} -t UTF-8"
    packing = packing_of(path)
    command = f"{packing.unpack} {name} | {convert}" if packing else f"{convert} < {name}"
    return (
        f"It is not UTF-8 text; its letters look like {likely}. Turn it into UTF-8, and have a mapping "
        f"proposed:\n  {command} > jobs-utf8.csv\n  hakaru ingest jobs-utf8.csv --format table --guess"
    )


def likely_encoding(start: bytes) -> str | None:
    """The likely encoding of a text's beginning, which may end amid a letter; None for UTF-8."""
    if _decoded(start, "UTF-8") is not None:
        return None
    for name, (telling, odd) in EAST_ASIAN.items():
        text = _decoded(start, name) or ""
        if len(re.findall(telling, text)) > len(re.findall(odd, text)) * MOST_ODD:
            return name
    return "CP1252" if re.search(rb"[\x80-\x9f]", start) else "ISO-8859-1"


def _decoded(start: bytes, encoding: str) -> str | None:
    try:
        return codecs.getincrementaldecoder(encoding)().decode(start)
    except UnicodeDecodeError:
        return None
