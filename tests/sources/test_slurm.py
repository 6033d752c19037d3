"""Slurm's grammars (durations, node lists, TRES strings) against a plain reference."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hakaru.sources import _slurm as slurm

CON = duckdb.connect()


def value(expression: str, text: str) -> Any:
    ((found,),) = CON.execute(f"SELECT {expression} FROM (SELECT ? AS t)", [text]).fetchall()
    return found


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
@settings(max_examples=60, deadline=None)
def test_durations(days: int, hours: int, minutes: int, seconds: int) -> None:
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    clock = f"{hours:02}:{minutes:02}:{seconds:02}"
    assert value(slurm.duration_s("t"), f"{days}-{clock}") == total
    assert value(slurm.duration_s("t"), clock) == total - days * 86400
    assert value(slurm.duration_s("t"), f"{minutes:02}:{seconds:02}") == minutes * 60 + seconds
    assert value(slurm.duration_s("t"), f"{days}-{hours:02}") == (days * 24 + hours) * 3600


@pytest.mark.parametrize("text", ["", "x", "1", "1:2:3:4", "1-", "-1:00", "1-1:1:1:1", "00:00:00x"])
def test_what_is_no_duration(text: str) -> None:
    assert value(slurm.duration_s("t"), text) is None


ranges = st.tuples(st.integers(0, 120), st.integers(0, 12), st.integers(1, 4))
prefixes = st.sampled_from(["gpu", "n", "rack-a.x", "node1-"])
items = st.one_of(
    st.tuples(prefixes, st.lists(ranges, min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["login1", "a", "gpu-7.site.org"]), st.just([])),
)


def written(first: int, more: int, width: int) -> str:
    return f"{first:0{width}}" if more == 0 else f"{first:0{width}}-{first + more:0{width}}"


@given(st.lists(items, min_size=1, max_size=4))
@settings(max_examples=80, deadline=None)
def test_node_lists(parts: list[tuple[str, list[tuple[int, int, int]]]]) -> None:
    texts, names = [], []
    for prefix, spans in parts:
        if not spans:
            texts.append(prefix)
            names.append(prefix)
            continue
        texts.append(f"{prefix}[{','.join(written(*span) for span in spans)}]")
        for first, more, width in spans:
            names += [f"{prefix}{i:0{width}}" for i in range(first, first + more + 1)]
    assert value(slurm.node_names("t"), ",".join(texts)) == names


def test_a_node_list_of_two_dimensions() -> None:
    names = ["r1n08-ib", "r1n09-ib", "r1n10-ib", "r2n08-ib", "r2n09-ib", "r2n10-ib", "x"]
    assert value(slurm.node_names("t"), "r[1-2]n[08-10]-ib,x") == names


amounts = st.dictionaries(
    st.sampled_from(["billing", "cpu", "node", "gres/gpu:a100", "gres/gpu:v100", "gres/shard"]),
    st.integers(0, 64),
)


@given(amounts, st.one_of(st.none(), st.integers(0, 64)), st.randoms())
@settings(max_examples=80, deadline=None)
def test_tres_strings(amounts: dict[str, int], total: int | None, random: Any) -> None:
    entries = [*amounts.items(), *([("gres/gpu", total)] if total is not None else [])]
    random.shuffle(entries)
    text = ",".join(f"{name}={amount}" for name, amount in entries)
    typed = [(name[9:], amount) for name, amount in entries if name.startswith("gres/gpu:")]
    expected = total if total is not None else sum(amount for _, amount in typed)
    assert value(slurm.num_gpus("t"), text) == expected
    assert value(slurm.tres("t", "cpu"), text) == (
        str(amounts["cpu"]) if "cpu" in amounts else None
    )
    models = ",".join(name for name, amount in typed if amount)
    assert value(slurm.gpu_model("t"), text) == (models or None)


def test_a_range_that_no_machine_has_is_not_written_out() -> None:
    """It keeps its bracket, by which its record is rejected."""
    assert len(value(slurm.node_names("t"), "n[1-65536]")) == 65536
    assert value(slurm.node_names("t"), "n[1-65537]") == ["n[1-65537]"]
    assert value(slurm.node_names("t"), "n[7-7]") == ["n7"]
    assert value(slurm.node_names("t"), "a[1-2]b[08-10]c[3,5]")[:3] == [
        "a1b08c3",
        "a1b08c5",
        "a1b09c3",
    ]


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        ("12_[3]", ["12_3"]),
        ("12_[1-3%2]", ["12_1", "12_2", "12_3"]),
        ("12_[0-7:3,9]", ["12_0", "12_3", "12_6", "12_9"]),
        ("12_3", None),
    ],
)
def test_the_tasks_of_an_array(text: str, tasks: list[str] | None) -> None:
    assert value(slurm.task_ids("t"), text) == tasks
