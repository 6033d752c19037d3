from __future__ import annotations

import hashlib
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hakaru.analyses.walltime import PRIME
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from tests.analyses._ask import ask
from tests.conftest import job, utc

HOURS = [1.0, 2.0, 3.0, 30.0]


@pytest.fixture
def small(lake_of: Callable[..., Lake]) -> Lake:
    rows = [job(i, run_s=h * 3600) for i, h in enumerate(HOURS)]
    rows.append(job(9, run_s=24 * 3600.0, num_gpus=16, num_nodes=2))
    return lake_of(rows)


def test_statistics_by_class(small: Lake) -> None:
    rows = {r["class"]: r for r in ask(small, "walltime").rows}
    assert list(rows) == ["all", "single-pe", "multi-node"]
    single = rows["single-pe"]
    assert single["num_jobs"] == 4
    assert single["mean_h"] == 9.0
    assert single["sd_h"] == pytest.approx(statistics.stdev(HOURS))
    assert (single["median_h"], single["min_h"], single["max_h"]) == (2.5, 1.0, 30.0)
    assert (single["share_short"], single["share_long"]) == (0.75, 0.25)
    assert rows["all"]["num_jobs"] == 5
    assert rows["all"]["share_long"] == 0.4


def test_thresholds_are_parameters(small: Lake) -> None:
    rows = ask(small, "walltime", {"short_h": "1", "long_h": 2}).rows
    assert (rows[1]["share_short"], rows[1]["share_long"]) == (0.25, 0.75)
    with pytest.raises(HakaruError, match="short_h is a number"):
        ask(small, "walltime", {"short_h": "x); DROP TABLE jobs"})
    with pytest.raises(HakaruError, match="no parameter 'shrt_h'"):
        ask(small, "walltime", {"shrt_h": 1})


def test_cdf_is_exact_at_its_steps(small: Lake) -> None:
    rows = [r for r in ask(small, "walltime-cdf").rows if r["class"] == "single-pe"]
    for row in rows:
        assert row["share"] == sum(h <= row["run_h"] for h in HOURS) / 4
    assert [r["num_jobs"] for r in rows] == [1, 1, 1, 1]
    assert rows[-1]["share"] == 1.0


def test_cdf_by_gpu_hours(small: Lake) -> None:
    rows = [r for r in ask(small, "walltime-cdf", weight="gpu-hours").rows if r["class"] == "all"]
    assert rows[0]["share"] == pytest.approx(1 / (36 + 16 * 24))


def lake_of_two_sides(lake_of: Callable[..., Lake], sign: int) -> Lake:
    """60 jobs on one GPU and 60 on more, whose run time follows the size."""
    rows = [job(i, run_s=600.0 + i) for i in range(60)]
    sizes = [2, 4, 8]
    rows += [
        job(100 + i, num_gpus=sizes[i % 3], run_s=600.0 * sizes[i % 3] ** sign + i)
        for i in range(60)
    ]
    return lake_of(rows)


@pytest.mark.parametrize(("sign", "reading"), [(1, "weak scaling"), (-1, "strong scaling")])
def test_scaling(lake_of: Callable[..., Lake], sign: int, reading: str) -> None:
    rows = ask(
        lake_of_two_sides(lake_of, sign), "size-vs-walltime", {"sample": 40, "draws": 20}
    ).rows
    assert [r["coefficient"] for r in rows] == ["spearman", "pearson of logs"]
    assert {r["reading"] for r in rows} == {reading}
    assert {(r["num_jobs"], r["num_draws"]) for r in rows} == {(80, 20)}
    assert all(r["low"] <= r["mean"] <= r["high"] for r in rows)


def drawn_by_hand(jobs: list[tuple[str, int, float]], draw: int, sample: int) -> pd.DataFrame:
    """The pool in the order of its lots, thinned to ten times the sample; then places with replacement."""
    begin = int(utc("2018-01-01T00:00:00").timestamp())
    drawn: list[tuple[str, int, float]] = []
    for single in (False, True):
        side = [job for job in jobs if (job[1] == 1) == single]
        lots = {job: hashlib.md5(f"{job[0]} 3 {begin}".encode()).hexdigest()[:8] for job in side}
        pool = sorted(side, key=lambda job: lots[job])[: 10 * sample]
        half = 2 * draw + int(single)
        steps = [f"3 {name} {half}" for name in ("first_step", "second_step", "start")]
        a, b, c = (int(hashlib.md5(step.encode()).hexdigest()[:7], 16) + 1 for step in steps)
        turns = range(1, sample + 1)
        drawn += [pool[(a * t % PRIME * t + b * t + c) % PRIME % len(pool)] for t in turns]
    return pd.DataFrame(drawn, columns=["id", "size", "run_s"])


@pytest.mark.parametrize(("sample", "draws", "num_side"), [(40, 1, 60), (20, 40, 60), (10, 7, 150)])
def test_draws_are_what_they_say(
    lake_of: Callable[..., Lake], sample: int, draws: int, num_side: int
) -> None:
    """Draws made again by hand, and what lies between the 2.5th and the 97.5th percentile of them."""
    jobs = [(str(i), 1, 600.0 + i) for i in range(num_side)]
    sizes = [[2, 4, 8][i % 3] for i in range(num_side)]
    jobs += [(str(1000 + i), size, 600.0 * size + i) for i, size in enumerate(sizes)]
    lake = lake_of([job(id, num_gpus=size, run_s=run_s) for id, size, run_s in jobs])
    params = {"sample": sample, "draws": draws, "seed": 3}
    rows = ask(lake, "size-vs-walltime", params).rows
    frames = [drawn_by_hand(jobs, draw, sample) for draw in range(draws)]
    spearman = [frame["size"].rank().corr(frame["run_s"].rank()) for frame in frames]
    pearson = [np.log(frame["size"]).corr(np.log(frame["run_s"])) for frame in frames]
    assert [(row["num_jobs"], row["num_draws"]) for row in rows] == [(2 * sample, draws)] * 2
    for row, values in zip(rows, (spearman, pearson), strict=True):
        expected = (*np.percentile(values, [2.5, 97.5]), np.mean(values))
        assert (row["low"], row["high"], row["mean"]) == pytest.approx(expected, abs=1e-12)


def test_draws_lie_around_the_plain_coefficient(lake_of: Callable[..., Lake]) -> None:
    rows = ask(lake_of_two_sides(lake_of, 1), "size-vs-walltime").rows
    sizes = pd.Series([1] * 60 + [[2, 4, 8][i % 3] for i in range(60)])
    runs = pd.Series(
        [600.0 + i for i in range(60)] + [600.0 * [2, 4, 8][i % 3] + i for i in range(60)]
    )
    for row, plain in zip(
        rows, (sizes.rank().corr(runs.rank()), np.log(sizes).corr(np.log(runs))), strict=True
    ):
        assert row["low"] < plain < row["high"]
        assert row["low"] < row["high"]


def test_small_logs_do_not_claim_to_be_sure(lake_of: Callable[..., Lake]) -> None:
    """Sizes and run times that have nothing to do with each other, fewer jobs than the sample."""
    rng = np.random.default_rng(5)
    rows = [
        job(i, num_gpus=1 + 7 * (i % 2), run_s=float(t))
        for i, t in enumerate(rng.uniform(60, 9999, 400))
    ]
    for row in ask(lake_of(rows), "size-vs-walltime").rows:
        assert row["low"] < 0 < row["high"]
        assert (row["reading"], row["num_jobs"]) == ("neither", 400)


def test_sides_are_balanced(lake_of: Callable[..., Lake]) -> None:
    rows = [job(i) for i in range(500)] + [job(1000 + i, num_gpus=8) for i in range(40)]
    assert {r["num_jobs"] for r in ask(lake_of(rows), "size-vs-walltime").rows} == {80}


@pytest.mark.parametrize("sizes", [[1] * 100, [1] * 100 + [2] * 5], ids=["one side", "five jobs"])
def test_too_few_jobs_say_so(lake_of: Callable[..., Lake], sizes: list[int]) -> None:
    rows = ask(
        lake_of([job(i, num_gpus=n, run_s=60.0 + i) for i, n in enumerate(sizes)]),
        "size-vs-walltime",
    ).rows
    assert [row["reading"] for row in rows] == ["too few jobs"] * 2
    if max(sizes) == 1:
        assert [(row["mean"], row["low"]) for row in rows] == [(None, None)] * 2


def test_run_times_that_do_not_vary_have_no_correlation(lake_of: Callable[..., Lake]) -> None:
    rows = [job(i, num_gpus=1 + i % 2) for i in range(100)]
    assert [r["mean"] for r in ask(lake_of(rows), "size-vs-walltime").rows] == [None, None]


def test_the_seed_decides_the_sample(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of_two_sides(lake_of, 1)

    def means(seed: int) -> list[Any]:
        params = {"sample": 20, "draws": 5, "seed": seed}
        return [r["mean"] for r in ask(lake, "size-vs-walltime", params).rows]

    assert means(1) == pytest.approx(means(1), abs=1e-12)
    assert means(1) != pytest.approx(means(2), abs=1e-6)


@pytest.mark.parametrize("id", ["walltime", "walltime-cdf", "size-vs-walltime"])
def test_no_jobs_no_rows(lake_of: Callable[..., Lake], id: str) -> None:
    assert ask(lake_of([]), id).rows == []


TABLE_3 = {
    "all": "2.730 8.255 0.470 0.017 332.678",
    "single-pe": "2.461 7.429 0.460 0.017 332.678",
    "single-node": "14.062 22.038 5.576 0.017 276.374",
    "multi-node": "4.642 9.640 0.187 0.017 53.798",
}


def test_the_published_log(aaic_lake: Lake) -> None:
    columns = ("mean_h", "sd_h", "median_h", "min_h", "max_h")
    rows = ask(aaic_lake, "walltime").rows
    assert {r["class"]: " ".join(f"{r[c]:.3f}" for c in columns) for r in rows} == TABLE_3
    spearman, pearson = ask(aaic_lake, "size-vs-walltime").rows
    assert spearman["low"] < 0.254 < spearman["high"]
    assert pearson["low"] < 0.219 < pearson["high"]
    single = [r for r in ask(aaic_lake, "walltime-cdf").rows if r["class"] == "single-pe"]
    below_3h = max(r["share"] for r in single if r["run_h"] <= 3)
    above_3h = min(r["share"] for r in single if r["run_h"] >= 3)
    assert below_3h <= 0.8407 <= above_3h
