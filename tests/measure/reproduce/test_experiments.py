"""The experiments as plans of registered benchmarks, and the published numbers in the guides."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.cli._experiment import plan_of
from hakaru.errors import HakaruError
from hakaru.measure._base import load_all
from hakaru.measure.networks import NAMES
from hakaru.measure.reproduce import PAPERS, Paper, Size, compare, exit_code, find_paper
from hakaru.measure.store import check_label
from tests.measure._runs import run_of
from tests.measure.reproduce._rows import CORES, ON_CORES, contaminated, scaling

GUIDES = Path(__file__).parents[3] / "docs" / "reproduce"
SIZES = (Size(), Size(quick=True), Size(on_gpu=True), Size(quick=True, on_gpu=True, num_hosts=4))
ASKED = {
    "quick": True, "budget": None, "params": (), "devices": (), "launcher": "local", "hosts": None,
    "nodes": 1, "ranks_per_host": None, "slurm_options": (), "timeout": None,
}  # fmt: skip


@pytest.fixture(params=PAPERS.values(), ids=list(PAPERS))
def paper(request: pytest.FixtureRequest) -> Paper:
    found: Paper = request.param
    return found


@pytest.mark.parametrize("size", SIZES)
def test_an_experiment_names_what_is_registered(paper: Paper, size: Size) -> None:
    for name, chosen in paper.experiment(size).chosen.items():
        benchmark = load_all().get(name)
        texts = {key: ",".join(map(str, values)) for key, values in chosen.items()}
        assert benchmark.parse(texts) == {key: list(values) for key, values in chosen.items()}
        for model in chosen.get("model", ()):
            assert str(model).partition("@")[0] in NAMES


def test_a_plan_is_that_of_a_run(paper: Paper) -> None:
    plan = plan_of(paper, **ASKED)
    assert plan.label == check_label(f"reproduce {paper.id}")
    assert plan.names == paper.experiment(Size()).names
    assert {each.id for each in plan.benchmarks} == set(plan.names)
    assert plan.budget_s == 100.0
    (longest,) = {max(len(plan.items(each)) for each in plan.families)}
    assert 1 <= longest <= 4


def test_parameters_replace_those_of_the_experiment() -> None:
    plan = plan_of(PAPERS["tsubame3"], **ASKED | {"params": ("memory=48", "model=alexnet")})
    (item,) = plan.items("storage")
    assert item.parameters["memory"] == 48 and item.parameters["model"] == "alexnet"
    plan = plan_of(PAPERS["flow"], **ASKED | {"params": ("batch=32",)})
    (scaled,) = (each for each in plan.items("training") if each.benchmark == "scaling")
    assert (scaled.parameters["batch"], scaled.parameters["scaling"]) == (32, "strong")
    with pytest.raises(HakaruError, match="none of the benchmarks has it"):
        plan_of(PAPERS["flow"], **ASKED | {"params": ("dtype=fp64",)})


def test_flow_takes_four_ranks_where_nobody_says() -> None:
    flow = PAPERS["flow"]
    assert plan_of(flow, **ASKED).ranks_per_host == 4
    assert plan_of(flow, **ASKED | {"ranks_per_host": 2}).ranks_per_host == 2
    on_slurm = {"launcher": "slurm", "nodes": 4, "slurm_options": ("gpus_per_node=4",)}
    plan = plan_of(flow, **ASKED | on_slurm)
    assert (plan.num_hosts, plan.ranks_per_host, plan.on_gpu) == (4, 0, True)


def test_a_network_small_enough_for_cores() -> None:
    experiment = PAPERS["mn1"].experiment
    assert experiment(Size()).chosen["scaling"]["model"] == ["resnet50@image=64"]
    assert experiment(Size(on_gpu=True)).chosen["scaling"]["model"] == ["resnet50"]


def test_the_guide_has_every_published_number(paper: Paper) -> None:
    """A row of the guide's table for each finding: where, what, published."""
    text = (GUIDES / f"{paper.id}.md").read_text(encoding="utf-8")
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in text.splitlines()
        if line.startswith("|")
    ]
    for each in paper.findings:
        assert (each.where, each.says, each.published) in rows


def test_findings_differ_by_their_words(paper: Paper) -> None:
    said = [(each.where, each.says) for each in paper.findings]
    assert len(set(said)) == len(said)


def test_the_exit_code_is_about_what_is_lacking() -> None:
    flow = PAPERS["flow"]
    steps = [
        scaling(num, 5.0, place=ON_CORES, facts={"verdict": "Nothing gained."})
        for num in (1, 2, 3, 4)
    ]
    whole = [each for each in compare(flow, run_of(*steps)) if each.finding.where != "§2"]
    assert exit_code(whole) == 0
    assert {each.answer.verdict.value for each in whole} == {"not comparable", "not measured"}
    spoilt = [*steps[:2], contaminated(steps[2]), steps[3]]
    assert exit_code(compare(flow, run_of(*spoilt))) == 1
    assert exit_code(compare(flow, run_of())) == 1
    assert CORES["num_usable"] == 2


def test_a_paper_that_is_not_known() -> None:
    with pytest.raises(HakaruError, match="known: flow, mn1, tsubame3"):
        find_paper("aaic")
