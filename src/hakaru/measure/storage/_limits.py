"""The memory that caches the files of a sweep: a limited one of the loader's workers, or the machine's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hakaru.errors import HakaruError
from hakaru.measure._base import AUTO
from hakaru.measure.node.memory import available_bytes
from hakaru.measure.storage._group import Group
from hakaru.measure.storage._memory import MIB, Room, files_room
from hakaru.measure.storage._outcome import Memory, Settings
from hakaru.measure.storage._sizes import has_shares
from hakaru.measure.storage._store import NULL
from hakaru.measure.truth import Unavailable

MACHINE = "machine"  # in place of a number: all of its memory
USUAL_MIB, USUAL_MIB_ON_GPU = 32, 4096  # of files in memory


@contextmanager
def memory_of(group: Group, settings: Settings, device: str) -> Iterator[Memory]:
    """A limit for the workers where it is asked for and can be had on all hosts."""
    wanted = _wanted_mib(settings, device)
    if not wanted or settings.layout == NULL:
        machine = _machine_mib(group)
        yield Memory(machine, wanted or machine, None)
        return
    with ExitStack() as stack:
        room, why = _room(stack, group, wanted, settings.workers)
        why = next((each for each in group.share(why) if each), "")
        if why:
            yield Memory(_machine_mib(group), wanted, None, why)
        else:
            yield Memory(wanted, wanted, room)


def _wanted_mib(settings: Settings, device: str) -> int:
    """The limit; 0 is none, as for sizes that are not shares of a memory."""
    given = settings.memory
    if given == MACHINE:
        return 0
    if given != AUTO:
        if isinstance(given, str):
            raise HakaruError(f"memory={given!r}: expected MiB, {AUTO} or {MACHINE}")
        return given
    if not has_shares(settings.sizes):
        return 0
    return USUAL_MIB if device == "cpu" else USUAL_MIB_ON_GPU


def _room(stack: ExitStack, group: Group, mib: int, workers: int) -> tuple[Room | None, str]:
    """This rank's part of its host's memory, or why there is none."""
    if not workers:
        return None, "it is a limit for loader workers, and workers=0 has none"
    try:
        return stack.enter_context(files_room(max(1, mib // group.num_local))), ""
    except (Unavailable, OSError) as problem:
        return None, str(problem).rstrip(".")


def _machine_mib(group: Group) -> int:
    """Of the host that has least of it."""
    least: int = min(group.share(available_bytes() or 0))
    return max(1, least // MIB)
