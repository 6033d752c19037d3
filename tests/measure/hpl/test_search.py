"""The search on a stand-in whose best settings are known, and its verdicts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.measure import validity
from hakaru.measure.hpl import (
    Config,
    Margin,
    Measured,
    Outcome,
    Program,
    Scale,
    default_for,
    search_hpl,
)
from hakaru.measure.hpl.history import History, Trial
from hakaru.measure.hpl.outcome import Comparison, judge
from hakaru.measure.hpl.search import _fitting_round
from hakaru.measure.hpl.space import cover, new_space, ruled_out
from hakaru.measure.verdict import Verdict
from tests.measure.hpl.conftest import ALONE

SCALES = [Scale(1, 1024), Scale(2, 1536), Scale(2, 2048)]


pytestmark = pytest.mark.usefixtures("quiet")


def search(folder: Path, program: Program, budget_s: float = 20.0, **more: object) -> Outcome:
    return search_hpl(folder, 2, budget_s, program, ALONE, scales=SCALES, **more)  # type: ignore[arg-type]


def test_it_finds_the_best_settings_and_states_both_margins(
    fake_xhpl: Program, tmp_path: Path
) -> None:
    pytest.importorskip("optuna")
    shares: list[float] = []
    found = search(
        tmp_path / "s",
        fake_xhpl,
        progress=lambda text, share: shares.append(share),
        peak_gflops=200.0,
    )
    assert found.verdict is Verdict.GOOD, found.reason
    assert found.best is not None and found.margin is not None and found.margin_own is not None
    config = found.best.config
    assert (config.n, config.nb, config.depth) == (2048, 128, 0)
    # nothing that earns less than 2 % is changed
    assert set(found.changed) == {"nb", "depth"}
    assert found.margin.share == pytest.approx(1 / (0.9 * 0.9625) - 1, abs=1e-3)
    assert found.margin_own.share > found.margin.share and found.margin.against.n == 2048
    assert found.margin.num_pairs >= 6 and found.margin.level > 0.95
    assert found.efficiency is not None and found.efficiency.relative_to == "the given peak"
    assert found.efficiency.share == pytest.approx((found.best.gflops or 0) / 200.0)
    assert shares == sorted(shares)
    check_history(found)
    again = search(tmp_path / "s", fake_xhpl, budget_s=found.spent_s)
    assert again.trials == found.trials and again.reason == found.reason


def check_history(found: Outcome) -> None:
    """Every scale is there, its best curve never falls, and each seed names the trial that it repeats."""
    for index in range(len(SCALES)):
        curve = [t.best_so_far for t in found.trials if t.scale == index]
        assert curve == sorted(curve, key=lambda value: value or 0.0) and curve
    seeds = [trial for trial in found.trials if trial.origin == "seed"]
    assert seeds and {trial.scale for trial in seeds} == {1, 2}
    for trial in seeds:
        source = found.trials[(trial.seeded_by or 0) - 1]
        assert source.scale == (trial.scale or 0) - 1 and source.config.nb == trial.config.nb


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("wrong", "wrong result"), ("crash", "exit code 3"), ("half", "complete result")],
)
def test_a_broken_machine_is_never_good(
    fake_xhpl: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, reason: str
) -> None:
    monkeypatch.setenv("FAKE_XHPL", mode)
    found = search(tmp_path / "s", fake_xhpl, budget_s=3.0)
    assert found.verdict is Verdict.FAILED and reason in found.reason


def test_without_time_it_is_not_measured(
    fake_xhpl: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_XHPL_S", "0.3")
    short = search(tmp_path / "short", fake_xhpl, budget_s=2.5)
    assert short.verdict is Verdict.NOT_MEASURED and short.best is None and short.margin is None
    monkeypatch.setenv("FAKE_XHPL", "hang")
    hung = search(tmp_path / "hung", fake_xhpl, budget_s=3.0)
    assert hung.verdict is Verdict.NOT_MEASURED
    assert "did not finish" in (hung.launches[-1].failure or "")


def test_company_makes_the_numbers_void(
    fake_xhpl: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validity, "problems", lambda *_: ["other processes used 50% of the cores"])
    found = search(tmp_path, fake_xhpl, budget_s=2.1)
    assert found.verdict is Verdict.CONTAMINATED and "used 50%" in found.reason


@pytest.mark.parametrize(
    ("low", "high", "num_pairs", "verdict", "reason"),
    [
        (0.4, 0.6, 6, Verdict.GOOD, "+50.0% (+40.0% to +60.0%"),
        (0.5, 0.5, 1, Verdict.NOT_MEASURED, "1 of 6 pairs were measured"),
        (-0.1, 1.1, 6, Verdict.NOT_MEASURED, "differ too much"),
        (-0.2, -0.1, 6, Verdict.SLOW, "nothing found is as fast"),
        (-0.2, -0.2, 1, Verdict.NOT_MEASURED, "1 of 6 pairs were measured"),
    ],
)
def test_few_pairs_and_doubt_are_not_good(
    tmp_path: Path, low: float, high: float, num_pairs: int, verdict: Verdict, reason: str
) -> None:
    history = History.open(tmp_path / "journal.jsonl", {})
    best = Measured(Config(2048, 128, 1, 2), (90.0,))
    default, own = Measured(default_for(2, 2048), (80.0,)), Measured(default_for(2), (60.0,))
    margin = Margin(own.config, (low + high) / 2, low, high, 0.97, num_pairs)
    found = judge(history, Comparison(best, default, own, margin_own=margin))
    assert found[0] is verdict and reason in found[1]
    without = judge(history, Comparison(best, default, own))
    assert without[0] is Verdict.NOT_MEASURED and "has no rate" in without[1]


def test_a_folder_belongs_to_one_search(fake_xhpl: Program, tmp_path: Path) -> None:
    search(tmp_path, fake_xhpl, budget_s=2.1)
    with pytest.raises(HakaruError, match=r"other settings \(seed 0, now 1\)"):
        search(tmp_path, fake_xhpl, seed=1)
    with pytest.raises(HakaruError, match="the last scale has 1 ranks"):
        search_hpl(tmp_path, 2, 5.0, fake_xhpl, ALONE, scales=[Scale(1, 500)])


def test_a_batch_holds_the_first_ones_whole_and_values_of_the_rest() -> None:
    default, other = default_for(2, 2000), Config(2000, 128, 1, 2, depth=0)
    rest = [Config(2000, nb, 2, 1, pfact=1) for nb in (64, 192, 256)]
    batch = cover([default, other, *rest], 8)
    assert {default, other} <= set(batch.configs()) and len(batch) == 8
    assert batch.listed["grid"] == ((1, 2), (2, 1)) and batch.listed["pfact"] == (2,)
    larger = cover([default, other, *rest], 24)  # a second value for each before a third for any
    assert (larger.listed["nb"], larger.listed["pfact"]) == ((80, 128, 64), (2, 1))
    assert cover([default, other], 1).configs() == [default]


@pytest.mark.parametrize(("remaining_s", "pairs"), [(36.0, 6), (80.0, 7)])
def test_one_round_has_enough_pairs_where_two_would_not(remaining_s: float, pairs: int) -> None:
    """A launch costs 10 s and 1 s a run, and a pair is four runs; half of 36 s would hold two of them."""
    session: Any = SimpleNamespace(
        ranks=2, remaining_s=remaining_s, history=SimpleNamespace(launches=[]),
        predicted_s=lambda batch, ranks: 10.0 + len(batch),
    )  # fmt: skip
    best = Config(2000, 128, 1, 2)
    (batch,) = _fitting_round(session, best, is_first=True)
    assert batch.configs().count(best) == pairs


def test_only_hopeless_values_are_left_out() -> None:
    def trial(number: int, config: Config, gflops: float) -> Trial:
        return Trial(
            number, 1, "search", 0, 2, config, "sampler", None, "passed", gflops, 1.0, 0.1, None
        )

    rates = {80: 100.0, 32: 60.0, 160: 60.0, 384: 60.0, 64: 90.0}
    trials = [
        trial(i, Config(1000, nb, 1, 2), rate) for nb, rate in rates.items() for i in range(4)
    ]
    gone = ruled_out([*trials, trial(9, Config(1000, 48, 1, 2), 1.0)])
    assert gone == [
        ("nb", 32, 0.6),
        ("nb", 384, 0.6),
    ]  # larger blocks may yet be good, one run says little
    space = new_space(Scale(2, 2000)).without((name, value) for name, value, _ in gone)
    assert 32 not in space.values["nb"] and 80 in space.values["nb"]
