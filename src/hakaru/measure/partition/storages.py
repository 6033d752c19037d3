"""Whose memory autograd keeps for the backward of a network that runs operation by operation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves


class Storages:
    """The operation that made each storage, and whether it is kept; a storage counts once."""

    def __init__(self) -> None:
        self._owner: dict[int, str] = {}
        self._bytes: dict[int, int] = {}
        self._saved: set[int] = set()
        self._alive: list[StorageWeakRef] = []  # so that no storage takes the address of another

    def ignore(self, tensor: torch.Tensor) -> None:
        self._add("", tensor)

    def own(self, name: str, result: Any) -> None:
        for each in tensors_of(result):
            self._add(name, each)

    @contextmanager
    def watch(self, name: str) -> Iterator[None]:
        """What an operation saves; what nobody made before, it made itself, such as a mask of dropout."""

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            self._saved.add(self._add(name, tensor))
            return tensor

        with saved_tensors_hooks(pack, lambda tensor: tensor):
            yield

    def saved_by_owner(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for key in self._saved:
            if name := self._owner[key]:
                found[name] = found.get(name, 0) + self._bytes[key]
        return found

    def _add(self, name: str, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        key = int(reference.cdata)
        if key not in self._owner:
            self._owner[key], self._bytes[key] = name, storage.nbytes()
            self._alive.append(reference)
        return key


def tensors_of(result: Any) -> list[torch.Tensor]:
    return [each for each in tree_leaves(result) if isinstance(each, torch.Tensor)]
