"""A plan on the module's tree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hakaru.figures.measure._tree import MOST_ROWS
from hakaru.figures.measure.partition import candidates_sheet, partition
from hakaru.measure.documents import Document
from tests.measure.lakes_training import HOSTILE, module, plan_document


def nodes(item: dict[str, Any], depth: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """What is seen: nothing below a closed node, and not the empty nodes that only reach to the column."""
    if item["name"]:
        yield depth, item
    for each in [] if item.get("collapsed") else item.get("children", []):
        yield from nodes(each, depth + 1)


def labels(figure: Any) -> list[str]:
    (root,) = figure.option["series"][0]["data"]
    return [each["label"]["formatter"] for _, each in nodes(root)]


def test_the_tree_is_open_where_it_is_cut_and_closed_elsewhere() -> None:
    figure = partition(plan_document())
    assert labels(figure) == [
        "transformer", "embed · stage 0 · 0.5 ms", "blocks",
        "0 … 6 · stage 0 · 14 ms", "7 … 11 · stage 1 · 10 ms", "head · stage 1 · 1.5 ms",
    ]  # fmt: skip
    (root,) = figure.option["series"][0]["data"]
    leaves = [(depth, each) for depth, each in nodes(root) if " · " in each["label"]["formatter"]]
    assert {depth for depth, _ in leaves} == {2}, "all rows stand in one column"
    looks = {each["label"]["formatter"].split(" · ")[1]: (each["symbol"], each["itemStyle"]["color"])
             for _, each in leaves}  # fmt: skip
    assert (
        len({symbol for symbol, _ in looks.values()})
        == len({colour for _, colour in looks.values()})
        == 2
    )
    first = next(each for _, each in leaves if each["label"]["formatter"].startswith("0 …"))
    assert first["name"] == "blocks.0 … blocks.6\nstage 0\n14 ms\n700,000 parameters"
    assert first["collapsed"] and len(first["children"]) == 7
    assert figure.notes[1] == "Stage 0: 14.5 ms, 450 MiB, 640,000 parameters, 8 modules."


def test_containers_that_are_not_listed_sum_up_and_stages_alone_make_a_tree() -> None:
    plan = {"tree": [module("a.b.c", 1.0, 10, [0]), module("a.b.d", 2.0, 20, [1])]}
    (root,) = partition(plan).option["series"][0]["data"]
    (a,) = root["children"]
    assert a["value"] == 3.0 and "30 parameters" in a["name"] and "stages 0, 1" in a["name"]
    only = {"stages": [{"stage": 0, "modules": ["x"]}, {"stage": 1, "modules": ["y"]}]}
    assert labels(partition(only)) == ["module", "x · stage 0", "y · stage 1"]


def test_a_plan_without_cuts_shows_the_parts_of_the_module() -> None:
    tree = [
        module("conv", 1.0, 1, [0]),
        module("body", 2.0, 2, [0]),
        module("body.one", 2.0, 2, [0]),
    ]
    figure = partition({"model": "cnn", "tree": tree})
    assert labels(figure) == ["cnn", "conv · stage 0 · 1 ms", "body · stage 0 · 2 ms"]


@pytest.mark.parametrize("stages", [lambda at: [at % 2], lambda at: [0, 1], lambda at: [0]])
def test_a_large_model_stays_readable(stages: Any) -> None:
    """Alternating stages, stages that share every module, and one stage for 3,000 modules."""
    tree = [module(f"part{at // 100}.layer{at}", 1.0, 1, stages(at)) for at in range(3_000)]
    figure = partition({"tree": tree})
    rows = [label for label in labels(figure) if " · " in label]
    assert 1 <= len(rows) <= MOST_ROWS
    assert len(json.dumps(figure.option)) < 200_000


def test_candidates_are_a_table_with_why() -> None:
    sheet = candidates_sheet(Document(plan_document()))
    assert sheet is not None and sheet.note == "Chosen: ddp2+gpipe2; it is the fastest that fits."
    assert sheet.rows[1] == (
        "ddp",
        "no",
        "48 ms",
        "17.2 GiB",
        "1",
        "needs 17.2 GiB a device, which has 16 GiB",
    )
    alone = plan_document() | {"candidates": plan_document()["candidates"][:1]}
    assert candidates_sheet(Document(alone)) is None and candidates_sheet(Document({})) is None


@pytest.mark.parametrize(
    "plan", [*({} if each is None else each for each in HOSTILE), {"tree": [{"path": ""}] * 9}]
)
def test_a_damaged_plan_draws_or_says_that_there_is_none(plan: Any) -> None:
    for document in (plan, plan.get("plan") if isinstance(plan, dict) else None):
        figure = partition(document if isinstance(document, dict) else {})
        assert json.dumps(figure.option, allow_nan=False)
        assert figure.option["series"] or figure.option["title"]["text"] == "No plan was made."
