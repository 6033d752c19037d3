"""The registry: order, unique kebab-case ids, and help for a mistyped one."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass

import pytest

from hakaru.errors import HakaruError
from hakaru.registry import Registry, hint


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


def test_sorted_things_of_one_key_stay_as_they_were(registry: Registry[Thing]) -> None:
    registry.sort(lambda thing: thing.id.startswith("w"))
    assert registry.ids() == ["queues", "jobs-by-quarter", "walltime"]


@pytest.mark.parametrize("first", ["shapes", "waits", "overview"])
def test_analyses_come_in_reading_order_whatever_was_imported_first(first: str) -> None:
    text = (
        f"import hakaru.analyses.{first}; from hakaru.analyses import load_all; "
        "print([*dict.fromkeys(each.subject for each in load_all())])"
    )
    told = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    subjects = ast.literal_eval(told.stdout)
    assert subjects[:3] == ["overview", "parallelism", "requests"]
    assert subjects.index("waits") < subjects.index("shapes")


def test_a_long_list_of_names_is_cut_and_counted() -> None:
    users = [f"user{n:03}" for n in range(200)]
    assert hint("nobody", users, most=3) == "known: user000, user001, user002 and 197 more"
    assert "user018" in hint("user0188", users, most=3)
    assert hint("x", []) == "known: none"


def test_a_list_of_just_as_many_names_is_not_cut() -> None:
    assert hint("zzz", ["ann", "bob"], most=2) == "known: ann, bob"
    names = [f"n{n}" for n in range(41)]
    assert hint("zzz", names).endswith("n38, n39 and 1 more")


def test_at_most_three_names_are_proposed() -> None:
    names = ["queue1", "queue2", "queue3", "queue4"]
    assert hint("queue", names).count("queue") == 3


def test_capital_letters_do_not_hide_what_was_meant() -> None:
    assert hint("WALLTIME", ["walltime", "queues"]) == "did you mean walltime?"
    assert hint("gpu-long", ["GPU-LONG", "CPU"]) == "did you mean GPU-LONG?"
