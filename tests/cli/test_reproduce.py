"""`hakaru reproduce`: a paper's numbers from its log, a log that is no longer the paper's, experiments."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hakaru.cli import main
from hakaru.cli import reproduce as verb
from hakaru.lake import Lake
from hakaru.measure.record import Measurement
from hakaru.measure.store import save
from hakaru.reference.claims import Claim
from tests.cli._log import HEADER, ROWS
from tests.measure._runs import run_of
from tests.measure.reproduce._rows import contaminated, scaling


def reproduce(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["reproduce", "aaic", *(str(a) for a in arguments)])


def test_every_number_of_the_paper_is_found_again(aaic_files: list[Path]) -> None:
    result = reproduce(*aaic_files, "--format", "json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.output)
    verdicts = Counter(row["verdict"] for row in rows)
    assert verdicts["differs"] == 0
    assert verdicts["same"] >= 60
    computed = {row["what"]: row["computed"] for row in rows}
    assert computed["jobs in the log"] == "459,545"
    users = next(row for row in rows if row["what"] == "users in all")
    assert users["verdict"] == "not in the log" and "renumbered" in users["computed"]


def test_a_changed_log_differs_and_fails(aaic_files: list[Path], tmp_path: Path) -> None:
    """The last quarter without its last job: one number less in many places."""
    *whole, last = aaic_files
    damaged = tmp_path / last.name
    with gzip.open(last, "rt") as given, gzip.open(damaged, "wt") as copy:
        copy.writelines(given.readlines()[:-1])
    result = reproduce(*whole, damaged, "--format", "json")
    assert result.exit_code == 1
    assert "this log has 459,544 of 459,545 jobs: the rest cannot agree" in result.stderr
    rows = {row["what"]: row for row in json.loads(result.stdout)}
    assert rows["jobs in the log"]["verdict"] == "differs"
    assert rows["jobs in the log"]["computed"] == "459,544"
    assert rows["successful jobs, %"]["verdict"] == "same"


def test_a_broken_line_is_named_and_nothing_is_judged(
    aaic_files: list[Path], tmp_path: Path
) -> None:
    damaged = tmp_path / aaic_files[0].name
    with gzip.open(aaic_files[0], "rt") as given, gzip.open(damaged, "wt") as copy:
        lines = given.readlines()
        lines[41] = "not a job\n"
        copy.writelines(lines)
    result = reproduce(damaged)
    assert result.exit_code == 1
    assert f"{damaged}, line 42: expected 13 columns, found 1" in result.output
    assert "--strict" not in result.output


def test_a_cut_off_file_is_refused(aaic_files: list[Path], tmp_path: Path) -> None:
    damaged = tmp_path / aaic_files[0].name
    packed = aaic_files[0].read_bytes()
    damaged.write_bytes(packed[: len(packed) // 2])
    result = reproduce(damaged)
    assert result.exit_code == 1
    assert str(damaged) in result.output and "Traceback" not in result.output


def test_a_paper_that_is_not_known_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["reproduce", "nature", str(tmp_path)])
    assert result.exit_code == 2 and "'aaic'" in result.output


def test_a_part_of_the_paper_s_log_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    claims: Any = [SimpleNamespace(says="users", published="7"),
                   SimpleNamespace(says="jobs in the log", published="1,234")]  # fmt: skip
    assert verb._missing(claims, 1234) == []
    assert verb._missing(claims, 1233)[0].startswith("this log has 1,233 of 1,234 jobs")
    verdicts = ["same"] * 4 + ["differs"] * 3 + ["known difference"] * 2 + ["not in the log"]
    claim = SimpleNamespace(published="1", where="Table 1", says="jobs")
    judged: Any = [
        SimpleNamespace(verdict=each, computed="2: off", claim=claim) for each in verdicts
    ]
    verb._print_table(judged)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "4 the same, 3 different, 2 known to differ, 1 that the log cannot tell"


def entry(verdict: str, computed: str, **claim: Any) -> Any:
    told = {"published": "1,234", "where": "Table 1", "says": "jobs"} | claim
    return SimpleNamespace(verdict=verdict, computed=computed, claim=SimpleNamespace(**told))


def test_each_number_stands_beside_the_published_one(capsys: pytest.CaptureFixture[str]) -> None:
    verb._print_table([
        entry("same", "1,234"),
        entry("differs", "1,233", where="Fig. 2"),
        entry("known difference", "1,200: they count otherwise"),
        entry("not in the log", "users are renumbered: nobody knows", says="users"),
    ])  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert [re.split(r"\s{2,}", line) for line in (lines[0], *lines[2:6])] == [
        ["verdict", "published", "computed", "what"],
        ["same", "1,234", "1,234", "Table 1: jobs"],
        ["differs", "1,234", "1,233", "Fig. 2: jobs"],
        ["known difference", "1,234", "1,200", "Table 1: jobs (they count otherwise)"],
        ["not in the log", "1,234", "–", "Table 1: users (users are renumbered: nobody knows)"],
    ]


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    verb._print_json([entry("known difference", "1,200: they count otherwise")])
    assert json.loads(capsys.readouterr().out) == [
        {"where": "Table 1", "what": "jobs", "published": "1,234",
         "computed": "1,200: they count otherwise", "verdict": "known difference"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "code"),
    [("same", 0), ("differs", 1), ("known difference", 0), ("not in the log", 0)],
)
def test_only_a_number_that_differs_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, code: int
) -> None:
    log = tmp_path / "mini.csv"
    log.write_text("\n".join([HEADER, *ROWS]) + "\n")
    judged = [entry(verdict, "2"), entry("same", "1,234")]
    monkeypatch.setattr(verb, "judge_all", lambda session, claims: judged)
    done = reproduce(log)
    assert done.exit_code == code
    assert done.stderr == "this log has 3 of 459,545 jobs: the rest cannot agree\n\n"
    assert done.stdout.startswith("verdict ")


def test_an_analysis_runs_once_for_each_set_of_parameters() -> None:
    """Four claims on two analyses, one of them with two sets of parameters; one needs none."""
    asked: list[Any] = []

    def run(analysis: Any, **params: Any) -> Any:
        asked.append((analysis.id, params))
        return SimpleNamespace(rows=[{"num_jobs": 10 * len(asked)}])

    def claim(analysis: str, says: str, **params: Any) -> Claim:
        return Claim("here", says, "10", analysis, "num_jobs", params=params)

    claims = [
        claim("states", "a"), claim("states", "b"), claim("walltime", "c", short_h=1),
        claim("walltime", "d", short_h=2), Claim("here", "e", "1", why_not="unknown"),
    ]  # fmt: skip
    judged = verb.judge_all(SimpleNamespace(run=run), claims)
    assert asked == [("states", {}), ("walltime", {"short_h": 1}), ("walltime", {"short_h": 2})]
    assert [each.verdict for each in judged] == [
        "same", "same", "differs", "differs", "not in the log",
    ]  # fmt: skip


def test_options_may_stand_before_the_paper(tmp_path: Path) -> None:
    log = tmp_path / "mini.csv"
    log.write_text("\n".join([HEADER, *ROWS]) + "\n")
    before = CliRunner().invoke(main, ["reproduce", "--format", "json", "aaic", str(log)])
    after = reproduce(log, "--format", "json")
    assert before.exit_code == after.exit_code == 1
    assert before.stdout == after.stdout and json.loads(before.stdout)


def experiment(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["reproduce", *(str(each) for each in arguments)])


def steps(*milliseconds: float) -> list[Measurement]:
    return [
        scaling(num, each, facts={"verdict": "It stops at 2 ranks."})
        for num, each in enumerate(milliseconds, start=1)
    ]


def test_a_stored_run_is_judged_without_measuring(lake: Lake) -> None:
    save(lake, run_of(*steps(8, 5, 6, 4), id="r1", label="reproduce flow"))
    done = experiment("flow", "--run", "reproduce flow", "-w", lake.workspace, "--format", "json")
    told = json.loads(done.stdout)
    assert (told["paper"], told["run"], told["exit_code"]) == ("flow", "r1", done.exit_code)
    rows = {each["what"]: each for each in told["findings"]}
    three = rows["3 GPUs are slower than 2"]
    assert (three["where"], three["verdict"]) == ("§3.3, Fig. 1", "agrees")
    assert (three["measured"], three["why"]) == ("2 ranks 5 ms, 3 ranks 6 ms", None)
    assert rows["time on 4 nodes with 16 GPUs"]["why"] == "the run has 1 host, and this takes 4"
    assert done.exit_code == 1  # it has no strategies
    lacking = [
        each["what"] for each in told["findings"] if "has no strategies" in (each["why"] or "")
    ]
    assert lacking == ["a network is partitioned without changing its code"]


def test_the_table_says_it_in_words(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = {"plan": {"stages": [{}, {}]}, "loss_gap": 0.0}
    pipeline = replace(
        scaling(4, 3.0, strategy="1f1b", facts=plan), benchmark="strategies"
    )  # fmt: skip
    save(lake, run_of(*steps(8, 5, 4, 3), pipeline))
    done = experiment("flow", "--run", "latest", "-w", lake.workspace)
    assert done.exit_code == 0, done.output
    assert "There: Flow Type II: V100 × 4 a node" in done.stdout
    assert "Here: run r1 of c, V100 × 4, Xeon, 32 cores." in done.stdout
    (line,) = (each for each in done.stdout.splitlines() if "3 GPUs are slower" in each)
    assert re.split(r"\s{2,}", line) == [
        "differs", "§3.3, Fig. 1: 3 GPUs are slower than 2", "performance drops with 3 GPUs",
        "2 ranks 5 ms, 3 ranks 4 ms",
    ]  # fmt: skip
    assert "agrees: 2, differs: 1, not comparable: 2, not measured: 4" in done.stdout
    monkeypatch.setenv("COLUMNS", "80")
    narrow = experiment("flow", "--run", "latest", "-w", lake.workspace)
    # a path is not broken
    lines = narrow.stdout.replace(str(lake.workspace), "").splitlines()
    assert max(map(len, lines)) <= 80


def test_a_contaminated_run_fails(lake: Lake) -> None:
    save(lake, run_of(*map(contaminated, steps(8, 5, 6, 4))))
    done = experiment("flow", "--run", "r1", "-w", lake.workspace)
    assert done.exit_code == 1
    assert "agrees: 0, differs: 0, not comparable: 0, not measured: 9" in done.stdout
    assert "scaling contaminated: others used the machine" in done.stdout
    assert "measure again when it is idle" in done.stdout
    assert done.stdout.endswith(f"Every number: hakaru bench show r1 --all -w {lake.workspace}\n")


def test_a_run_judged_takes_no_options_of_measuring(lake: Lake) -> None:
    done = experiment("mn1", "--run", "r1", "--quick", "--nodes", 2, "-w", lake.workspace)
    assert done.exit_code == 1
    assert "--run judges a stored run as it is; leave out --quick, --nodes" in done.stderr
    nothing = experiment("mn1", "--run", "r1", "-w", lake.workspace)
    assert nothing.exit_code == 1 and "holds no runs" in nothing.stderr


def test_measuring_is_that_of_bench_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan of the experiment goes to the same harness, and its run is judged."""
    jobs: list[Any] = []

    def measured(lake: Any, job: Any) -> Any:
        jobs.append(job)
        return run_of(*steps(8, 5, 6, 4), id=job.id, label=job.plan.label)

    monkeypatch.setattr("hakaru.cli.bench.run.measure_and_store", measured)
    words = ("--quick", "--cluster", "mine", "--device", "cpu", "--param", "batch=96")
    done = experiment("flow", *words, "-w", tmp_path, "--format", "json")
    (job,) = jobs
    assert json.loads(done.stdout)["run"] == job.id
    assert (job.cluster, job.plan.label, job.plan.quick) == ("mine", "reproduce flow", True)
    assert job.plan.names == ("scaling", "strategies")
    assert job.plan.chosen["scaling"] == {
        "model": ["mlp"], "scaling": ["strong"], "strategy": ["ddp"], "compression": ["none"],
        "batch": [96],
    }  # fmt: skip


def test_an_interrupted_run_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(job: Any, **more: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("hakaru.measure.run.measure", stopped)
    done = experiment("tsubame3", "--quick", "-w", tmp_path)
    assert done.exit_code == 130
    (first, second) = done.stderr.splitlines()[-2:]
    assert first.startswith("go on with: hakaru bench run --resume ")
    assert second == f"then: hakaru reproduce tsubame3 --run {first.split()[7]} -w {tmp_path}"
    assert "nothing was stored" not in done.stderr


def test_help_lists_the_papers_without_torch() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from hakaru.cli import main\n"
        "told = [CliRunner().invoke(main, ['reproduce', *words]).output for words in"
        " (['--help'], ['mn1', '--help'])]\n"
        "print(*told); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for words in ("aaic", "flow", "tsubame3", "Exit code 0 if the experiment ran", "--nodes 128"):
        assert words in done.stdout
