"""The registry: order, unique kebab-case ids, and help for a mistyped one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hakaru.errors import HakaruError
from hakaru.registry import Registry


@dataclass(frozen=True)
class Thing:
    id: str


@pytest.fixture
def registry() -> Registry[Thing]:
    registry: Registry[Thing] = Registry("thing")
    for name in ("walltime", "queues", "jobs-by-quarter"):
        registry.add(Thing(name))
    return registry


def test_keeps_what_was_declared_in_order(registry: Registry[Thing]) -> None:
    assert registry.ids() == ["walltime", "queues", "jobs-by-quarter"]
    assert [thing.id for thing in registry] == registry.ids()
    assert len(registry) == 3
    assert "queues" in registry and "queue" not in registry
    assert registry.get("queues") == Thing("queues")


def test_add_gives_the_thing_back(registry: Registry[Thing]) -> None:
    thing = Thing("new")
    assert registry.add(thing) is thing


@pytest.mark.parametrize("id", ["", "Upper", "two words", "a_b", "-a", "a-", "a--b", "é", "a\n"])
def test_an_id_is_kebab_case(registry: Registry[Thing], id: str) -> None:
    with pytest.raises(ValueError, match="not kebab-case"):
        registry.add(Thing(id))


def test_an_id_is_registered_once(registry: Registry[Thing]) -> None:
    with pytest.raises(ValueError, match="thing 'queues' is registered twice"):
        registry.add(Thing("queues"))


def test_a_mistyped_id_gets_a_hint(registry: Registry[Thing]) -> None:
    with pytest.raises(HakaruError, match=r"no thing 'waltime'; did you mean walltime\?"):
        registry.get("waltime")
    with pytest.raises(HakaruError, match="no thing 'zzz'; known: walltime, queues, jobs-by"):
        registry.get("zzz")
