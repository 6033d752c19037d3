"""Word of the first compilation, and what is said where the simulator is not installed."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.cli import _simulator
from hakaru.errors import MissingExtraError
from hakaru.sim import POLICIES


def test_what_takes_long_is_said_on_stderr_and_what_does_not_is_not(capsys: Any) -> None:
    with _simulator.saying("compiling", after_s=0.01):
        time.sleep(0.2)
    assert capsys.readouterr() == ("", "compiling\n")
    with _simulator.saying("compiling", after_s=0.2):
        pass
    time.sleep(0.3)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("policy", "kernel"),
    [
        ("easy", "_queueing"),
        ("conservative", "_conservative"),
        ("conservative-depth", "_conservative"),
    ],
)
def test_the_kernel_of_the_policy_is_loaded(monkeypatch: Any, policy: str, kernel: str) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(_simulator, "importlib", SimpleNamespace(import_module=loaded.append))
    _simulator.load_kernel(POLICIES.get(policy))
    assert loaded == [f"hakaru.sim.{kernel}"]


def test_without_numba_the_extra_is_named_and_other_gaps_are_errors(monkeypatch: Any) -> None:
    easy = POLICIES.get("easy")
    gone = "numba"

    def load(module: str) -> None:
        raise ModuleNotFoundError(name=gone)

    monkeypatch.setattr(_simulator, "importlib", SimpleNamespace(import_module=load))
    with pytest.raises(MissingExtraError, match=r"pip install 'hakaru\[sim\]'"):
        _simulator.load_kernel(easy)
    gone = "other"
    with pytest.raises(ModuleNotFoundError):
        _simulator.load_kernel(easy)
