"""Ranks that build a training together fail together, with the same reason, before any waits for another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

from hakaru.errors import HakaruError
from hakaru.measure._base import NotApplicable
from hakaru.measure.place import host_name


@dataclass(frozen=True)
class Word:
    """What a rank says of a part of the work."""

    host: str
    takes_part: bool
    reason: str = ""  # why it failed; empty where it did not
    applies: bool = True  # not, where the strategy cannot be applied to this network at all


def agreed(part: Callable[[], None], takes_part: bool, control: Any) -> None:
    """Do this rank's part; if any rank of the world fails, raise the same on all of them.

    NotApplicable where all that take part say so, else HakaruError with the first reason.
    """
    error = None
    try:
        part()
    except Exception as found:
        error = found
    said = _shared(_word(error, takes_part), control)
    failed = [(rank, each) for rank, each in enumerate(said) if each.reason]
    if not failed:
        return
    if all(each.reason and not each.applies for each in said if each.takes_part):
        raise NotApplicable(failed[0][1].reason) from error
    # a rank that broke explains more than one that finds the strategy not applicable
    rank, word = min(failed, key=lambda each: not each[1].applies)
    raise HakaruError(f"rank {rank} on {word.host} cannot train: {word.reason}") from error


def _word(error: Exception | None, takes_part: bool) -> Word:
    if error is None:
        return Word(host_name(), takes_part)
    known = isinstance(error, HakaruError | NotApplicable) and str(error)
    reason = str(error) if known else f"{type(error).__name__}: {error}"
    return Word(host_name(), takes_part, reason, not isinstance(error, NotApplicable))


def _shared(own: Word, control: Any) -> list[Word]:
    """What every rank says, in the order of the ranks."""
    if not dist.is_initialized():
        return [own]
    said: list[Any] = [None] * dist.get_world_size(control)
    dist.all_gather_object(said, own, group=control)
    return said
