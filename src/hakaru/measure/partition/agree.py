"""One decision for all ranks: their measurements differ, and stages that do not match would hang."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import torch.distributed as dist

from hakaru.errors import HakaruError
from hakaru.measure._base import NotApplicable

PREFIX = "hakaru/partition"


class NoPartition(HakaruError, NotApplicable):
    """A network cannot be cut so that it fits; other strategies may do."""


def question(*parts: Any) -> str:
    """What is asked, the same on all ranks, as a key."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def agreed(key: str, decide: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The document of the rank that asks first; the others wait for it. The same question is decided once.

    It goes through the store of the process group, since some ranks may not take part.
    """
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return decide()
    store: Any = dist.distributed_c10d._get_default_store()
    if store.add(f"{PREFIX}/{key}/asked", 1) == 1:
        store.set(f"{PREFIX}/{key}/told", json.dumps(_told(decide)))
    told: Sequence[Any] = json.loads(store.get(f"{PREFIX}/{key}/told"))
    is_document, found = told
    if not is_document:
        raise NoPartition(found)
    document: dict[str, Any] = found
    return document


def _told(decide: Callable[[], dict[str, Any]]) -> tuple[bool, Any]:
    try:
        return True, decide()
    except Exception as error:
        reason = (
            str(error) if isinstance(error, HakaruError) else f"{type(error).__name__}: {error}"
        )
        return False, reason
