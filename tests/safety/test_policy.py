"""The policy of a page in one file names its own scripts and styles, each in its place, and nothing else."""

from __future__ import annotations

import base64
import hashlib

from hakaru.safety.policy import hash_of, policy_of


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def test_the_policy_of_a_page() -> None:
    policy = policy_of(["a {color: red}", "b {}"], ["run()"])
    assert dict(part.strip().split(" ", 1) for part in policy.split(";")) == {
        "default-src": "'none'",
        "script-src": _hash("run()"),
        "style-src": f"{_hash('a {color: red}')} {_hash('b {}')}",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_a_hash_as_browsers_write_it() -> None:
    """The hash of nothing, as every implementation has it."""
    assert hash_of(b"") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
