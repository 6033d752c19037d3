"""What a job's size counts: GPUs or processors, as chosen, as set, else by what most hours are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hakaru.analyses import Selection, load_all, open_session, remarks, unit_remarks
from hakaru.lake import Lake
from hakaru.texts import language
from tests._cli import hakaru
from tests.conftest import job, put_jobs

Make = Callable[..., Lake]


def gpu(number: int, hours: float | None, **columns: Any) -> dict[str, Any]:
    return job(number, num_gpus=2, num_cpus=8, run_s=hours and hours * 3600, **columns)


def cpu(number: int, hours: float | None, **columns: Any) -> dict[str, Any]:
    return job(number, **{"num_gpus": 0, "num_cpus": 16, "run_s": hours and hours * 3600} | columns)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([gpu(1, 10), *(cpu(i, 1) for i in range(2, 9))], "gpu"),  # 10 h against 7 h
        ([gpu(1, 1), gpu(2, 1), gpu(3, 1), cpu(4, 4)], "cpu"),  # 3 h against 4 h
        ([gpu(1, 4), cpu(2, 4)], "gpu"),  # half of the hours is enough
        ([gpu(1, 4), cpu(2, 2), cpu(3, 2)], "cpu"),  # equal hours: two jobs against one
        ([gpu(1, None), cpu(2, None), cpu(3, None)], "cpu"),  # no hours: the jobs
        ([gpu(1, 1), cpu(2, 2, num_gpus=None)], "cpu"),  # unknown GPUs, known processors
        ([gpu(1, 1), cpu(2, 9, num_cpus=None)], "gpu"),  # a size that nobody knows counts nothing
        ([cpu(1, 1)], "cpu"),
        ([cpu(1, 1, num_cpus=None)], "cpu"),
    ],
)
def test_most_hours_decide(lake_of: Make, rows: list[dict[str, Any]], expected: str) -> None:
    with open_session(lake_of(rows)) as session:
        assert session.unit("c") == expected


def test_each_cluster_has_its_own(lake_of: Make) -> None:
    lake = lake_of([gpu(1, 1), cpu(1, 5, cluster="d")])
    with open_session(lake) as session:
        assert (session.unit("c"), session.unit("d")) == ("gpu", "cpu")


def test_a_setting_is_stronger_than_the_log_and_a_choice_than_both(lake_of: Make) -> None:
    lake = lake_of([gpu(1, 1), cpu(2, 5)], facts='{"unit": "gpu"}')
    with open_session(lake) as session:
        assert session.unit("c") == "gpu"
    with open_session(lake, unit="cpu") as session:
        assert session.unit("c") == "cpu"


def mixed(lake_of: Make) -> Lake:
    """One long job on 2 GPUs, three short ones on 16 processors, one whose size nobody knows."""
    rows = [gpu(1, 9), *(cpu(i, 1) for i in (2, 3, 4)), cpu(5, 1, num_cpus=None)]
    return lake_of(rows)


def test_what_is_left_out_says_how_to_see_it(lake_of: Make) -> None:
    with open_session(mixed(lake_of)) as session:
        result = session.run(load_all().get("parallelism"), Selection())
        assert [entry.num_jobs for entry in result.left_out if entry.num_jobs] == [4]
        assert result.uncounted == {"c": 3}
        assert remarks(result, language("en")) == [
            "c: 3 jobs without GPUs are left out: --unit cpu (in hakaru.toml: unit = "
            '"cpu") counts processors'
        ]
        again = session.run(load_all().get("parallelism"), Selection(min_run_s=0))
        assert again.num_used == 1 and again.uncounted == {"c": 3}, "the second time as the first"
        assert session.run(load_all().get("states"), Selection()).uncounted == {}
    with open_session(mixed(lake_of), unit="cpu") as session:
        result = session.run(load_all().get("parallelism"), Selection())
        assert result.num_used == 4 and result.uncounted == {} and result.units == {"c": "cpu"}


def test_the_load_leaves_out_only_what_is_unknown(lake_of: Make) -> None:
    """A job with no GPU makes none busy; one of unknown GPUs is left out, and counts processors."""
    with open_session(lake_of([gpu(1, 9), cpu(2, 1), cpu(3, 1, num_gpus=None)])) as session:
        result = session.run(load_all().get("load"), Selection())
        assert (result.num_used, result.uncounted) == (2, {"c": 1})


def test_one_job_is_told_as_one(lake_of: Make) -> None:
    with open_session(lake_of([gpu(1, 9), cpu(2, 1)])) as session:
        (told,) = unit_remarks(
            session.run(load_all().get("parallelism"), Selection()), language("en")
        )
        assert told.startswith("c: 1 job without GPUs is left out: --unit cpu")


def test_the_command_line_counts_what_one_asks_for(lake_of: Make) -> None:
    folder = str(mixed(lake_of).workspace)
    told = hakaru("show", "parallelism", "--min-run", "0", "-w", folder).output
    assert "c: 1 of 5 jobs" in told and "c: 3 jobs without GPUs are left out: --unit cpu" in told
    chosen = hakaru("show", "parallelism", "--min-run", "0", "--unit", "cpu", "-w", folder).output
    assert "c: 4 of 5 jobs" in chosen and "--unit" not in chosen
    compared = hakaru("compare", "--metric", "share_single_pe", "-w", folder).output
    assert "c: 3 jobs without GPUs are left out" in " ".join(compared.split())


def test_nothing_is_left(tmp_path: Path) -> None:
    """The log of processors whose settings say GPUs: the reason tells the way out."""
    lake = put_jobs(Lake.create(tmp_path / "w"), [cpu(1, 1), cpu(2, 2)], '{"unit": "gpu"}')
    told = hakaru("compare", "--metric", "share_single_pe", "-w", str(lake.workspace)).output
    assert "no job counts of 2; left out 2" in told
    assert "--unit cpu" in told.partition("Jobs counted")[0]
