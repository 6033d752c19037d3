"""How the kernels are compiled: one signature a function, kept on disk until any kernel's source changes.

numba keeps what it compiled until the function's own file changes, and does not notice a callee that changed
in another file. Here the contents of all kernels' files are part of what a compiled function is found by, so
that a kernel may lie in several files and never runs with yesterday's parts.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hakaru.errors import MissingExtraError

try:
    from numba import float64, from_dtype, int32, int64, njit
    from numba.core.caching import FunctionCache
except ImportError:
    raise MissingExtraError("numba", "sim") from None

__all__ = ["compiler", "float64", "from_dtype", "int32", "int64"]

HERE = Path(__file__).parent


def compiler(types: Mapping[str, Any]) -> Callable[..., Any]:
    """A decorator that compiles for the types that the parameters' names stand for, else for int64.

    One signature a function keeps the first compilation short; only one named `play` is called from Python.
    Nothing is allocated in the kernels, so nothing need be counted: numba's runtime would lock the bus twice
    an array and call. What every event passes through is inlined: a call hands over seven words an array.
    """

    def compiled(function: Any, inlined: bool = False) -> Any:
        names = inspect.signature(function).parameters
        options = {"no_cpython_wrapper": function.__name__ != "play", "no_cfunc_wrapper": True}
        options |= {"nogil": True, "error_model": "numpy", "forceinline": inlined, "_nrt": False}
        dispatcher = njit(**options)(function)
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
        dispatcher.compile(tuple(types.get(name, int64) for name in names))
        dispatcher.disable_compile()
        return dispatcher

    return compiled


@cache
def _stamp() -> str:
    """Of all that a kernel may be made of: the private modules of this room and of those inside it."""
    digest = hashlib.sha256()
    for path in sorted([*HERE.glob("_*.py"), *HERE.glob("_*/*.py")]):
        digest.update(f"{path.relative_to(HERE)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _Cache(FunctionCache):
    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), _stamp())  # type: ignore[no-untyped-call]
