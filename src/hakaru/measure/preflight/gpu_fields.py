"""A field of all cards of a node: n/a where none has it, and no pass where one lacks what its model has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hakaru.measure.node.driver import NO_VALUE
from hakaru.measure.node.machine import Absent, Unread
from hakaru.measure.preflight.gpu import label


def refuse_gaps(here: Sequence[Mapping[str, str]], values: Mapping[str, Any], field: str) -> None:
    """Raise where a card has no value although another card of its model has one."""
    models = {card["name"] for card in here if card["bus"] in values}
    silent = [card for card in here if card["bus"] not in values and card["name"] in models]
    if silent:
        names = ", ".join(map(label, silent))
        raise Unread(f"{names}: no value of {field}, which other cards of the model report")


def share_of(values: Mapping[str, Any], here: Sequence[Mapping[str, str]]) -> str:
    """`8 GPUs`, or `7 of 8 GPUs` where a card of another model does not report it."""
    num = len(values)
    return f"{num} GPUs" if num == len(here) else f"{num} of {len(here)} GPUs"


def values_of(
    here: Sequence[Mapping[str, str]], field: str, read: Callable[[str], Any]
) -> dict[str, Any]:
    """The field's value of each card that has one, by bus id; n/a where none has."""
    if any(field not in card for card in here):
        raise Unread(f"nvidia-smi of this driver does not report {field}")
    texts = {card["bus"]: card[field] for card in here if card[field].lower() not in NO_VALUE}
    if not texts:
        raise Absent(f"these GPUs do not report {field}")
    try:
        return {bus: read(text) for bus, text in texts.items()}
    except (ValueError, KeyError):
        raise Unread(f"{field}: not understood: {', '.join(texts.values())}"[:200]) from None
