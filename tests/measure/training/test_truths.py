"""Ground truth of training: a late rank is named with its cost, a slow host is blamed as a link, and the
scaling model predicts sizes that it has not seen. Hosts are network namespaces with shaped links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hakaru.measure.job import Job, Plan
from hakaru.measure.launch.namespaces import Namespaces
from hakaru.measure.record import Measurement, Run
from hakaru.measure.run import measure
from hakaru.measure.truth import links
from tests.measure._runs import until_valid
from tests.measure.training.factories import DELAY, LAYER

pytestmark = pytest.mark.alone
ROOT = Path(__file__).resolve().parents[3]
FACTORIES = "tests.measure.training.factories"
DELAY_S = 0.25


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers find the networks of this folder."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def scale(
    folder: Path,
    model: str,
    rates: float | Sequence[float] | None,
    num: int,
    late: Mapping[int, float] | None = None,
    layer: int = 0,
    budget_s: float = 18.0,
    **more: list[str],
) -> tuple[list[Measurement], list[str]]:
    """The rows of a weak scaling over so many hosts, one rank each; `late` ranks sleep in backward."""
    chosen: dict[str, Any] = {
        "model": [f"{FACTORIES}:{model}"], "scaling": ["weak"], "compression": ["none"], **more,
    }  # fmt: skip
    with links.hosts(num, rates) as hosts:
        names = [host.name for host in hosts]
        environ = {
            names[rank]: {DELAY: str(seconds), LAYER: str(layer)}
            for rank, seconds in (late or {}).items()
        }
        plan = Plan(
            ("scaling",), {"scaling": chosen}, True, budget_s, hosts=tuple(names), num_hosts=num,
            ranks_per_host=1,
        )  # fmt: skip
        launcher = Namespaces(hosts, environ)
        run = until_valid(lambda: measure(Job.begin(folder, "c", plan), launcher))
    return whole(run), names


def whole(run: Run) -> list[Measurement]:
    assert all(each.samples for each in run.measurements), [e.reason for e in run.measurements]
    return list(run.measurements)


def at(rows: Sequence[Measurement], ranks: int, quantity: str = "step") -> Measurement:
    (found,) = [e for e in rows if e.parameters["ranks"] == ranks and e.quantity == quantity]
    return found


@pytest.mark.parametrize(
    ("model", "rate_mbit", "layer", "hidden"),
    [("small", None, 2, 0.0), ("large", 1000.0, 0, 0.3), ("large", 400.0, 0, 0.9)],
    ids=["in the open", "behind communication in part", "behind communication"],
)
def test_a_rank_that_is_late_in_backward_is_named_with_what_it_costs(
    tmp_path: Path, model: str, rate_mbit: float | None, layer: int, hidden: float
) -> None:
    healthy, _ = scale(tmp_path, model, rate_mbit, 4, layer=layer, sizes=["4"])
    delayed, names = scale(tmp_path, model, rate_mbit, 4, {2: DELAY_S}, layer, sizes=["4"])
    assert at(healthy, 4).validity["culprit"] is None
    culprit = at(delayed, 4).validity["culprit"]
    assert culprit is not None, at(delayed, 4).reason
    assert (culprit["rank"], culprit["host"]) == (2, names[2])
    assert "its backward pass" in culprit["sentence"]
    assert not any(name in culprit["sentence"] for name in names if name != names[2])
    assert culprit["late_ms"] == pytest.approx(DELAY_S * 1e3, rel=0.1)
    measured_ms = (at(delayed, 4).median or 0.0) - (at(healthy, 4).median or 0.0)
    # of a cost near none the steps' own noise is more than a tenth
    noise_ms = sum(
        (e.interval.high - e.interval.low) / 2
        for e in (at(healthy, 4), at(delayed, 4))
        if e.interval
    )
    assert culprit["cost_ms"] == pytest.approx(measured_ms, rel=0.1, abs=max(noise_ms, 1.0))
    assert culprit["hidden_ms"] >= hidden * DELAY_S * 1e3
    assert culprit["cost_ms"] + culprit["hidden_ms"] == pytest.approx(culprit["late_ms"], rel=0.02)


def test_a_host_with_a_slow_link_is_blamed_as_a_link_and_not_as_a_rank(tmp_path: Path) -> None:
    rows, names = scale(tmp_path, "flat", [1000.0, 1000.0, 200.0, 1000.0], 4, sizes=["4"])
    row = at(rows, 4)
    assert row.validity["culprit"] is None
    verdict = row.validity["verdict"]
    assert names[2] in verdict and "slow to all its partners" in verdict
    assert not any(name in verdict.split(";")[0] for name in names if name != names[2])


def test_exposed_communication_over_a_shaped_link_is_bytes_over_rate(tmp_path: Path) -> None:
    rows, _ = scale(tmp_path, "flat", 200.0, 2)
    row = at(rows, 2, "exposed")
    sent = row.validity["communication"]["bytes"]  # of two ranks each sends all of it
    payload_mbit = 200.0 * 8948 / 9014  # without the headers of a frame
    assert row.median == pytest.approx(sent * 8 / payload_mbit / 1e3, rel=0.1)


@pytest.mark.parametrize(("model", "rate_mbit"), [("flat", 200.0), ("large", 1000.0)])
def test_the_scaling_model_of_one_and_two_ranks_predicts_three_and_four(
    tmp_path: Path, model: str, rate_mbit: float
) -> None:
    """Of one bucket and no computing, and of several that hide behind the backward pass in part."""
    rows, _ = scale(tmp_path, model, rate_mbit, 4, budget_s=40.0)
    for ranks in (3, 4):
        law = at(rows, ranks).validity["law"]
        assert law["fitted_on"] == [1, 2]
        assert law["predicted_step_ms"] == pytest.approx(at(rows, ranks).median, rel=0.15)
