"""Notations as they are written for people, and the whole of what is said of one that means nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.sim import POLICIES, Group, Machine, Weights
from hakaru.sim.limits import Limit
from hakaru.sim.machine import Change, Outage, Placement
from hakaru.sim.notation import (
    counted,
    parse_limit,
    parse_nodes,
    parse_outage,
    parse_weights,
    write_limit,
    write_machine,
    write_note,
    write_weights,
)

NODES_FORM = "write COUNTxSIZE[:MODEL], e.g. 38x8 for 38 nodes of 8 GPUs each, or 4x8:a100"
LIMIT_FORM = (
    "write SCOPE[=NAME]:WHAT=NUMBER[,queue=QUEUE][,hours=FROM-TO], e.g. user:running-gpus=16, "
    "queue=short:running-jobs=50 or user:running-jobs=4,queue=long,hours=9-18"
)


def refused(what: Any, *given: Any) -> str:
    with pytest.raises(HakaruError) as caught:
        what(*given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4by8", f"--nodes '4by8': {NODES_FORM}"),
        (
            "0x8",
            f"--nodes '0x8': how many nodes is from 1 to 2,147,483,647, found 0; {NODES_FORM}",
        ),
        (
            "4x2147483648",
            "--nodes '4x2147483648': the size of a node is from 1 to 2,147,483,647, found 2147483648; "
            + NODES_FORM,
        ),
    ],
)
def test_nodes_that_cannot_be_read(text: str, said: str) -> None:
    assert refused(parse_nodes, text) == said


def test_nodes_as_large_as_they_may_be() -> None:
    assert parse_nodes("1x2147483647") == Group(1, 2147483647)
    assert "found 9999999999999999999999999999999999999999; " in refused(
        parse_nodes, "9" * 60 + "x1"
    )
    assert parse_nodes(" 2*3 ") == parse_nodes("2×3") == Group(2, 3)


MIXED = (Group(1200, 8, "a100"), Group(2, 4))


@pytest.mark.parametrize(
    ("machine", "unit", "text"),
    [
        (Machine.flat(1304), "gpu", "1,304 GPUs in one pool"),
        (Machine.flat(5), "cpu", "5 processors in one pool"),
        (Machine.of_nodes(38, 8), "gpu", "38 nodes x 8 = 304 GPUs"),
        (Machine(MIXED), "cpu", "1,200 nodes x 8 a100 + 2 nodes x 4 = 9,608 processors"),
        (
            Machine.of_nodes(4, 2, placement=Placement(packing="spread", whole_nodes=False)),
            "gpu",
            "4 nodes x 2 = 8 GPUs, spread, shared nodes",
        ),
        (
            Machine.of_nodes(4, 2, switch_size=2, placement=Placement(locality="required")),
            "gpu",
            "4 nodes x 2 = 8 GPUs, 2 nodes a switch (locality required)",
        ),
        (
            Machine.of_nodes(2, 2, closed=(1,)),
            "gpu",
            "2 nodes x 2 = 4 GPUs, nodes coming and going",
        ),
        (
            Machine.of_nodes(2, 2, changes=(Change(9, 0, "down"),)),
            "gpu",
            "2 nodes x 2 = 4 GPUs, nodes coming and going",
        ),
    ],
)
def test_a_machine_in_words(machine: Machine, unit: str, text: str) -> None:
    assert write_machine(machine, unit) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "user,x",
            "limit 'user,x' cannot be read: " + LIMIT_FORM,
        ),
        (
            "usr:running-gpus=1",
            f"limit 'usr:running-gpus=1': there is no scope 'usr' (did you mean user?); {LIMIT_FORM}",
        ),
        (
            "user:running-gpu=1",
            "limit 'user:running-gpu=1': there is no what 'running-gpu' (did you mean running-gpus or "
            f"running-jobs?); {LIMIT_FORM}",
        ),
        (
            "account:queued-jobs=x",
            "limit 'account:queued-jobs=x': expected how many, a whole number from 0 on, after queued-jobs=, "
            "found 'x'; e.g. account:queued-jobs=16",
        ),
        (
            "user:running-jobs=1,queue=",
            "limit 'user:running-jobs=1,queue=': 'queue=' is neither queue=QUEUE nor hours=FROM-TO; "
            + LIMIT_FORM,
        ),
        (
            "user:running-jobs=1,hours=9-25",
            "limit 'user:running-jobs=1,hours=9-25': hours are two from 0 to 24 that differ, found '9-25'; "
            "write hours=9-18, or hours=22-6 past midnight",
        ),
        (
            "queue=long:walltime=6",
            "limit 'queue=long:walltime=6': the longest walltime of a queue is no limit of this kind. Set it "
            "with `hakaru simulate --walltime long=6`, or in a scenario of `hakaru whatif`: queues.long = "
            "{ max_walltime_h = 6 }",
        ),
    ],
)
def test_limits_that_cannot_be_read(text: str, said: str) -> None:
    assert refused(parse_limit, text) == said


def test_who_and_what_may_be_limited_are_listed() -> None:
    told = refused(parse_limit, ":running-jobs=5")
    assert told.startswith("limit ':running-jobs=5' does not say who is limited (")
    assert "user" in told and told.endswith(LIMIT_FORM)
    told = refused(parse_limit, "user:=5")
    assert told.startswith("limit 'user:=5' does not say what is limited (")
    assert "running-gpus" in told
    assert "--walltime short=6" in refused(parse_limit, "user:walltime=6")


def test_a_limit_of_a_name_with_no_letters_is_still_of_that_name() -> None:
    assert write_limit(Limit("user", "running-jobs", 0, only="0", queue="0", hours=(0, 1))) == (
        "user=0:running-jobs=0,queue=0,hours=0-1"
    )


@pytest.mark.parametrize(
    ("number", "note", "text"),
    [
        (1, "ask for no time: taken to know their run", "1 job asks for no time: taken to know its run"),
        (2, "ask for no time: taken to know their run", "2 jobs ask for no time: taken to know their run"),
        (1, "have no user: no limit of a user holds them", "1 job has no user: no limit of a user holds it"),
        (1, "run for less than 1 s: taken as 1 s", "1 job runs for less than 1 s: taken as 1 s"),
        (1, "ran longer than they asked: ended", "1 job ran longer than it asked: ended"),
        (1, "are recorded with a node a processor", "1 job is recorded with a node a processor"),
        (2000, "are here", "2,000 jobs are here"),
    ],
)  # fmt: skip
def test_a_note_of_one_job_is_of_one(number: int, note: str, text: str) -> None:
    assert write_note(number, note) == text


def test_counts() -> None:
    assert [counted(number) for number in (0, 1, 2, 1234)] == [
        "0 jobs",
        "1 job",
        "2 jobs",
        "1,234 jobs",
    ]
    assert counted(1, "week") == "1 week"


BASE = Weights(age=100, size=50, queue={"short": 5, "long": 1})


def test_weights_are_changed_one_by_one() -> None:
    got = parse_weights(["size=0", "queue.short=7", "half_life_s=3600"], BASE)
    assert got == replace(BASE, size=0, queue={"short": 7, "long": 1}, half_life_s=3600)
    assert parse_weights(["age=1.5"], BASE).age == 1.5
    assert parse_weights([], BASE) == BASE
    assert BASE.queue == {"short": 5, "long": 1}  # not changed itself


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age", "weight 'age': write NAME=POINTS, e.g. age=1000 or queue.short=500"),
        ("age=x", "weight 'age=x': write NAME=POINTS, e.g. age=1000 or queue.short=500"),
        ("age=inf", "weight 'age=inf': write NAME=POINTS, e.g. age=1000 or queue.short=500"),
        ("half_life_s=0", "weight 'half_life_s=0': half_life_s is a time above 0, in seconds"),
        ("agee=5", "weight 'agee=5': there is no 'agee'; did you mean age?"),
        ("queue.=5", "weight 'queue.=5': there is no 'queue.'; did you mean queue.NAME?"),
    ],
)
def test_weights_that_cannot_be_read(text: str, said: str) -> None:
    assert refused(parse_weights, [text], BASE) == said


def test_the_least_time_of_a_weight_is_above_zero() -> None:
    assert parse_weights(["half_life_s=0.5"], BASE).half_life_s == 0.5
    assert parse_weights(["size=0"], BASE).size == 0


def test_weights_and_depth_in_words() -> None:
    policy = replace(POLICIES.get("multifactor"), weights=replace(BASE, size=0, qos={"high": 2}))
    (text,) = write_weights(policy)
    assert text.startswith("weights: age=100 ") and " size=" not in text
    assert text.endswith(" queue.short=5 queue.long=1 qos.high=2")
    easy = POLICIES.get("easy")
    assert write_weights(easy) == ([f"depth: {easy.depth:,}"] if easy.depth else [])
    assert write_weights(replace(easy, depth=1500)) == ["depth: 1,500"]


NAMES = ("gpu-a", "gpu-b", "gpu-a", "7")


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("gpu-a@1970-01-01..1970-01-02", [0, 2]),  # rebuilt: both are it
        ("gpu-b@1970-01-01..1970-01-02", [1]),
        ("7@1970-01-01..1970-01-02", [3]),  # a name goes before a number
        ("2@1970-01-01..1970-01-02", [2]),
        ("0-2@1970-01-01..1970-01-02", [0, 1, 2]),
        ("1-1@1970-01-01..1970-01-02", [1]),
    ],
)
def test_an_outage_of_named_nodes(text: str, nodes: list[int]) -> None:
    for kind in ("down", "drain"):
        assert parse_outage(text, kind, "UTC", NAMES) == [  # type: ignore[arg-type]
            Outage(node, 0, 86400, kind)  # type: ignore[arg-type]
            for node in nodes
        ]


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (
            "gpu-c@1970-01-01..1970-01-02",
            "drain",
            "--drain 'gpu-c@1970-01-01..1970-01-02': no node is called so; did you mean gpu-b or gpu-a?",
        ),
        (
            "3",
            "down",
            "--fail '3': write NODE@FROM..TO or FIRST-LAST@FROM..TO with nodes counted from 0, e.g. "
            "0-3@2018-04-01..2018-04-02T12:00",
        ),
        (
            "0-1000000@1970-01-01..1970-01-02",
            "down",
            "--fail '0-1000000@1970-01-01..1970-01-02': expected nodes FIRST-LAST, the lower first and "
            "counted from 0",
        ),
        (
            "0@1970-01-01..1970-01-01",
            "drain",
            "--drain '0@1970-01-01..1970-01-01': it ends before it begins; write FROM..TO",
        ),
        ("0@soon..1970-01-01", "down", "--fail '0@soon..1970-01-01': "),
    ],
)
def test_outages_that_cannot_be_read(text: str, kind: str, said: str) -> None:
    assert refused(parse_outage, text, kind, "UTC", NAMES).startswith(said)
