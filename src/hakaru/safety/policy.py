"""The Content-Security-Policy of a page in one file: only its own scripts and styles, and nothing loaded."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence


def policy_of(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """The policy that names the hashes of the elements' texts, as they stand in the page."""
    return (
        f"default-src 'none'; script-src {_listed(scripts)}; style-src {_listed(styles)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _listed(texts: Sequence[str]) -> str:
    return " ".join(f"'{hash_of(text.encode())}'" for text in texts)


def hash_of(content: bytes) -> str:
    """As `sha256-…`, the way that browsers and npm write it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode("ascii")
