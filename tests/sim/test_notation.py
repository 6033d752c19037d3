"""One-line notations: what they mean, and what is said of one that means nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakaru.errors import HakaruError
from hakaru.sim.limits import SCOPES, WHAT, Limit
from hakaru.sim.machine import Group, Outage
from hakaru.sim.notation import (
    parse_limit,
    parse_nodes,
    parse_outage,
    parse_weights,
    write_limit,
    write_weights,
)
from hakaru.sim.policies import POLICIES


def test_nodes():
    assert parse_nodes("38x8") == Group(38, 8)
    assert parse_nodes("4X8:a100:sxm") == Group(4, 8, "a100:sxm")
    assert parse_nodes("4 x 8") == Group(4, 8)


@pytest.mark.parametrize(
    "text", ["38", "0x8", "4x0", "x8", "4x8:", "-1x8", "4x8.5", "1x99999999999"]
)
def test_nodes_that_are_none(text):
    with pytest.raises(HakaruError, match="COUNTxSIZE"):
        parse_nodes(text)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("user:running-gpus=16", Limit("user", "running-gpus", 16)),
        ("queue=short:running-jobs=50", Limit("queue", "running-jobs", 50, only="short")),
        ("all:queued-jobs=0", Limit("all", "queued-jobs", 0)),
        (
            "user=2018Q1/7:running-jobs=4,queue=long,hours=22-6",
            Limit("user", "running-jobs", 4, queue="long", only="2018Q1/7", hours=(22, 6)),
        ),
        ("account=a:b:running-gpus=8", Limit("account", "running-gpus", 8, only="a:b")),
    ],
)
def test_limits(text, limit):
    assert parse_limit(text) == limit
    assert write_limit(limit) == text


def test_a_limit_is_read_whatever_its_case_and_spaces():
    assert parse_limit("User: running-gpus = 16") == Limit("user", "running-gpus", 16)


NAMES = st.none() | st.from_regex(r"[a-zA-Z0-9/._-]{1,12}", fullmatch=True)


@given(
    st.sampled_from(SCOPES),
    st.sampled_from(WHAT),
    st.integers(0, 10**6),
    NAMES,
    NAMES,
    st.none() | st.permutations(range(24)).map(lambda hours: (hours[0], hours[1])),
)
def test_what_is_written_is_read_again(scope, what, value, queue, only, hours):
    only = None if scope == "all" else only
    limit = Limit(scope, what, value, queue=queue, only=only, hours=hours)
    assert parse_limit(write_limit(limit)) == limit


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("16 gpus", "write SCOPE"),
        ("users:running-gpus=16", "did you mean user"),
        ("user:gpus=16", "running-gpus"),
        ("user:running-gpus=many", "a whole number from 0 on, after running-gpus=, found 'many'"),
        ("user:running-gpus=-5", "a whole number from 0 on, after running-gpus=, found '-5'"),
        ("user:running-gpus=", "a whole number from 0 on"),
        ("user:running-gpus", "a whole number from 0 on"),
        ("user:=5", "does not say what is limited"),
        ("user", "does not say what is limited"),
        (":running-gpus=5", "does not say who is limited"),
        ("all=x:running-jobs=5", "takes no name, found 'x'"),
        ("user:running-gpus=9999999999", "at most 2,147,483,647"),
        ("user:running-gpus=16,hours=9", "hours are two from 0 to 24 that differ, found '9'"),
        ("user:running-gpus=16,hours=9-99", "hours are two from 0 to 24"),
        ("user:running-gpus=16,hours=9-9", "hours are two from 0 to 24"),
        ("user:running-gpus=16,hours=24-0", "hours are two from 0 to 24"),
        ("user:running-gpus=16,night", "'night' is neither queue=QUEUE nor hours=FROM-TO"),
    ],
)
def test_limits_that_are_none(text, said):
    with pytest.raises(HakaruError, match=said):
        parse_limit(text)


def test_weights_by_name_are_written_as_they_are_read():
    policy = POLICIES.get("multifactor")
    weights = parse_weights(["age=5", "queue.a.b=2", "qos.high=3"], policy.weights)
    assert (weights.age, weights.queue, weights.qos) == (5, {"a.b": 2}, {"high": 3})
    (text,) = write_weights(replace(policy, weights=weights))
    assert text.endswith(" queue.a.b=2 qos.high=3")
    with pytest.raises(HakaruError, match=r"qos\.NAME"):
        parse_weights(["qos=3"], policy.weights)


def test_an_outage_takes_nodes_and_gives_them_back_on_the_sites_clock():
    # 1970-01-02 00:00 in Tokyo is 15:00 UTC of the day before
    assert parse_outage("0-1@1970-01-02..1970-01-02T01:00", "down", "Asia/Tokyo") == [
        Outage(0, 54000, 57600, "down"),
        Outage(1, 54000, 57600, "down"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3", "NODE@FROM..TO"),
        ("3@2018-01-01", "NODE@FROM..TO"),
        ("3@2018-01-02..2018-01-01", "ends before it begins"),
        ("3-2@2018-01-01..2018-01-02", "--drain .* the lower first"),
        ("3@soon..2018-01-01", "not a date"),
    ],
)
def test_outages_that_are_none(text, said):
    with pytest.raises(HakaruError, match=said):
        parse_outage(text, "drain", "UTC")
