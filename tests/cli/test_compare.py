"""Clusters side by side: numbers worked by hand, unknown ones with their reason, and the real logs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hakaru.lake import Lake
from hakaru.reference.metrics import load_metrics
from hakaru.schema import INGESTS
from tests._cli import hakaru
from tests.conftest import job, put, put_jobs, utc


def compare(lake: Lake, *arguments: object) -> dict[str, Any]:
    every = [] if "--metric" in arguments else ["--all"]
    result = hakaru("compare", *arguments, *every, "-w", lake.workspace, "--format", "json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.output)
    return document


def values(document: dict[str, Any], cluster: str) -> dict[str, Any]:
    return {m["id"]: m["computed"][cluster]["value"] for m in document["metrics"]}


@pytest.fixture
def two(lake: Lake) -> Lake:
    """`c`: 3 one-GPU jobs and 1 of two; `d`: a CPU machine with 1 one-processor job of 4, no request."""
    monday, tuesday = utc("2018-01-01T09:00:00"), utc("2018-01-02T10:00:00")
    c = [
        job(1, submitted_at=monday, run_s=720.0, wait_s=0.0),
        job(2, submitted_at=monday, run_s=1440.0, wait_s=10.0, user="bob"),
        job(3, submitted_at=tuesday, run_s=30.0, state="failed", user="bob"),
        job(4, submitted_at=tuesday, run_s=3600.0, num_gpus=2, user="bob", wait_s=80.0),
    ]
    cpu = {"cluster": "d", "num_gpus": None, "requested_s": None, "submitted_at": monday}
    d = [
        job(n, num_cpus=size, num_nodes=max(1, size // 4), wait_s=None, **cpu)
        for n, size in enumerate([1, 4, 8, 16])
    ]
    return put_jobs(lake, c + d, facts='{"gpus_per_node": 4, "nodes": 2}')


def test_numbers_worked_by_hand(two: Lake) -> None:
    c = values(compare(two, "c"), "c")
    assert (c["num_jobs"], c["num_gpu_jobs"], c["num_cpu_jobs"], c["num_failed_jobs"]) == (
        4,
        4,
        0,
        1,
    )
    assert (c["num_users"], c["num_days"], c["jobs_per_user_mean"]) == (2, 2, 2.0)
    assert (c["num_nodes"], c["num_gpus"], c["gpus_per_node"]) == (2, 8, 4)
    # of the three that ran for 60 s two are on one GPU
    assert c["share_single_pe"] == pytest.approx(2 / 3)
    assert (c["share_one_node"], c["share_multi_node"]) == (1.0, 0.0)
    # 0.2 h + 0.4 h of 0.2 + 0.4 + 2·1 GPU-hours
    assert c["share_gpu_time_single_pe"] == pytest.approx(0.6 / 2.6)
    assert (c["gpus_per_job_mean"], c["gpus_per_job_median"], c["gpus_per_job_max"]) == (1.25, 1, 2)
    assert (c["share_2_gpus"], c["share_3_to_8_gpus"]) == (0.25, 0.0)
    # 720, 1440 and 3600 s of 7200 s each
    assert c["wra_mean"] == pytest.approx((0.1 + 0.2 + 0.5) / 3)
    assert c["wra_median"] == pytest.approx(0.2)
    assert c["run_mean_s"] == pytest.approx((720 + 1440 + 30 + 3600) / 4)
    assert c["run_mean_completed_s"] == pytest.approx(1920)
    assert (c["wait_median_s"], c["wait_mean_s"]) == (10.0, 25.0)
    assert (c["share_completed"], c["share_failed"], c["share_cancelled"]) == (0.75, 0.25, 0.0)


def test_jobs_without_a_gpu_are_counted_and_not_unknown(lake: Lake) -> None:
    put_jobs(lake, [job(1), job(2, num_gpus=4), job(3, num_gpus=0, num_cpus=8)])
    c = values(compare(lake, "c"), "c")
    assert (c["num_gpu_jobs"], c["num_cpu_jobs"], c["gpus_per_job_mean"]) == (2, 1, 2.5)


@pytest.mark.parametrize(
    ("columns", "subject", "verdict"),
    [
        (
            {"wait_s": 600.0},
            "Wait",
            "1/60 as long by the median, 1/60 as long by the mean.",
        ),
        ({"state": "failed"}, "Ends", "2.0 times as many."),
    ],
)
def test_what_differs_comes_first(
    lake: Lake, columns: dict[str, Any], subject: str, verdict: str
) -> None:
    """Two clusters that are alike but for one thing, which stands at the top everywhere."""
    rows = [job(n, user=f"u{n}") for n in range(4)]
    others = [row | {"cluster": "d"} | (columns if n % 2 else {}) for n, row in enumerate(rows)]
    if subject == "Wait":
        others = [row | {"cluster": "d"} | columns for row in rows]
    put_jobs(lake, rows + others)
    first, *rest = compare(lake, "c", "d")["contrasts"]
    assert (first["subject"], first["differs"]) == (subject, True)
    assert first["sentences"][0].endswith(verdict)
    assert rest and not any(each["differs"] for each in rest)
    assert "Single PE" in [each["subject"] for each in rest]
    told = hakaru("compare", "c", "d", "-w", lake.workspace, "--published", "none").output
    assert " ".join(told.split()).startswith(f"• {first['sentences'][0]}")


def test_every_metric_of_the_table_is_shown_in_its_order(two: Lake) -> None:
    assert [m["id"] for m in compare(two, "c", "d")["metrics"]] == list(load_metrics())


def test_unknown_is_null_with_its_reason(two: Lake) -> None:
    computed = {m["id"]: m["computed"]["d"] for m in compare(two, "d")["metrics"]}
    assert computed["wait_median_s"] == {
        "value": None,
        "reason": "no job counts of 4; left out 4: only jobs with a known wait (they started)",
    }
    assert "known requested walltime" in computed["wra_mean"]["reason"]
    assert computed["gpus_per_job_mean"]["reason"] == (
        "100 % of the jobs: the log does not count their GPUs"
    )
    assert computed["num_cpus"]["reason"] == "neither the log's header nor hakaru.toml says it"


def test_contrasts_are_sentences_of_computed_numbers(two: Lake) -> None:
    told = {c["subject"]: c["sentences"] for c in compare(two, "c", "d")["contrasts"]}
    assert told["Single PE"] == [
        "c: 66.7 % of jobs that ran for at least 60 s use one GPU (3 of 4 jobs); d: 25.0 % of jobs that "
        "ran for at least 60 s use one processor: 2.7 times as many."
    ]
    # d's requests and waits are not known: the sentence speaks of c alone
    assert told["Requests"] == [
        "c: completed jobs that ran for at least 60 s run for 26.7 % (mean) and 20.0 % (median) of the "
        "time they ask for (3 of 4 jobs)."
    ]
    assert told["Wait"] == ["c: jobs wait for 10 s (median) and 25 s (mean)."]
    of_d = {c["subject"] for c in compare(two, "d", "c")["contrasts"]}
    assert "Single PE" in of_d and not {"Requests", "Wait"} & of_d


def test_a_state_that_a_log_never_records_is_unknown(lake: Lake) -> None:
    """30 completed and 10 cancelled, as in RICC: nothing says that none failed. Of d's jobs one did."""
    rows = [job(n, state="cancelled" if n % 4 == 0 else "completed") for n in range(40)]
    put_jobs(
        lake,
        rows + [row | {"cluster": "d"} for row in rows] + [job(40, cluster="d", state="failed")],
    )
    document = compare(lake, "c", "d")
    c, d = (values(document, name) for name in "cd")
    assert (c["share_failed"], c["num_failed_jobs"], c["share_gpu_time_failed"]) == (None,) * 3
    assert (c["share_cancelled"], d["share_failed"], d["num_failed_jobs"]) == (0.25, 1 / 41, 1)
    (failed,) = [m["computed"]["c"] for m in document["metrics"] if m["id"] == "share_failed"]
    assert failed["reason"] == (
        "no job of the log is failed or out_of_memory or node_failed: it may not record that"
    )
    # a log that records failures may have a queue without one
    shown = hakaru(
        *("compare", "d", "-w", lake.workspace, "--metric", "share_failed", "--format", "json"),
        *("--where", "job_id < '2'"),
    )
    assert values(json.loads(shown.stdout), "d")["share_failed"] == 0


def test_what_a_number_is_not_stands_beside_it(lake: Lake) -> None:
    """Three jobs of one GPU at once on a machine of two; nobody knows the queue's limit."""
    put_jobs(lake, [job(n) for n in range(3)], '{"nodes": 1, "gpus_per_node": 2}')
    document = compare(lake, "c")
    computed = {m["id"]: m["computed"]["c"] for m in document["metrics"]}
    share = computed["utilisation_mean"]["caveat"].partition("for ")[2]
    assert share.endswith(" % of this time") and float(share.split()[0]) > 90
    seen = "where no limit is known, it is the longest request seen in the queue"
    assert computed["share_at_max"]["caveat"] == seen
    told = {c["subject"]: c["sentences"][0] for c in document["contrasts"]}
    assert f"(jobs exceed the machine's size for {share})." in told["Utilisation"]
    assert told["Maximum"].endswith(f"ask for their queue's maximum ({seen}).")
    page = hakaru("compare", "c", "-w", lake.workspace, "--published", "none").output
    assert f"c: jobs exceed the machine's size for {share}\n" in page
    assert "Utilisation" in page and " % (a)" in page


def test_five_days_have_no_busiest_weekday(lake: Lake) -> None:
    """Monday to Friday, most of them on a Wednesday."""
    days = [1, 2, 3, 3, 3, 4, 5]
    times = [{"submitted_at": utc(f"2018-01-0{day}T00:00:00")} for day in days]
    put_jobs(lake, [job(n, **each) for n, each in enumerate(times)])
    c = values(compare(lake, "c"), "c")
    assert (c["peak_weekday"], c["weekday_peak_ratio"]) == (None, None)
    assert c["peak_hour"] == 0
    put_jobs(lake, [job(n, submitted_at=utc(f"2018-01-0{n}T00:00:00")) for n in (6, 7)])
    c = values(compare(lake, "c"), "c")
    assert (c["peak_weekday"], c["weekday_peak_ratio"]) == (2, 3.0)


def test_the_first_is_set_against_each_of_the_others(two: Lake) -> None:
    put_jobs(two, [job(1, cluster="e"), job(2, cluster="e", num_gpus=8)])
    told = {c["subject"]: c["sentences"] for c in compare(two, "d", "c", "e")["contrasts"]}
    assert [sentence.split("; ")[1][:7] for sentence in told["Single PE"]] == ["c: 66.7", "e: 50.0"]
    assert all(sentence.startswith("d: 25.0 %") for sentence in told["Single PE"])


def test_one_cluster_has_the_published_ones_beside_it(two: Lake) -> None:
    output = hakaru("compare", "c", "-w", two.workspace, "--metric", "wra_mean").output
    assert "Kraken ~33.0 % [1]" in output
    assert "[1] You & Zhang" in output and "p.261 sec.3.4" in output
    assert "Philly" not in output, "a citation that is not used is not printed"
    assert "c, request-accuracy: 3 of 4 jobs; left out 1: only jobs that ran for" in output


def test_without_a_name_all_clusters_are_compared(two: Lake) -> None:
    assert [c["name"] for c in compare(two)["clusters"]] == ["c", "d"]
    assert [c["name"] for c in compare(two, "d", "d")["clusters"]] == ["d"]


def test_chosen_published_clusters_are_columns(two: Lake) -> None:
    arguments = ("compare", "c", "-w", two.workspace, "--metric", "num_jobs", "--format", "md")
    output = hakaru(*arguments, "--published", "KRAKEN, mit supercloud").output
    assert output.splitlines()[0] == "| metric | c | Kraken | MIT Supercloud |"
    assert output.splitlines()[2] == "| Jobs | 4 | 693,829 [1] | 460,497 [2] |"
    output = hakaru(*arguments, "--published", "none").output
    assert output.splitlines()[0] == "| metric | c |"
    assert "[1]" not in output


def test_csv_has_a_row_a_number_with_its_citation(two: Lake) -> None:
    result = hakaru("compare", "c", "d", "-w", two.workspace, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.output)))
    wait = {row["cluster"]: row for row in rows if row["metric"] == "wait_median_s"}
    assert (wait["c"]["kind"], float(wait["c"]["value"])) == ("computed", 10.0)
    assert wait["d"]["value"] == "" and "known wait" in wait["d"]["note"]
    assert (wait["Philly"]["kind"], float(wait["Philly"]["value"])) == ("published", 189.0)
    assert wait["Philly"]["note"] == "GPU jobs only" and "AcmeTrace" in wait["Philly"]["source"]
    bound = next(r for r in rows if (r["cluster"], r["metric"]) == ("PAI", "num_users"))
    assert (bound["bound"], bound["value"]) == (">", "1300.0")


def test_a_file_is_written_where_it_is_asked_for(two: Lake, tmp_path: Path) -> None:
    path = tmp_path / "out.md"
    result = hakaru("compare", "c", "-w", two.workspace, "--metric", "num_jobs", "-o", path)
    assert result.output == ""
    assert path.read_text(encoding="utf-8").startswith("| metric | c | published |")


def test_synthetic_clusters_are_marked(two: Lake) -> None:
    when = utc("2024-01-01T00:00:00")
    row = {"ingest_id": "s", "cluster": "d", "source": "synth", "synthetic": True}
    put(two, INGESTS.name, [row | {"started_at": when, "ended_at": when}])
    output = hakaru("compare", "c", "d", "-w", two.workspace, "--metric", "share_single_pe").output
    output = " ".join(output.split())  # wherever the terminal's width breaks it
    assert "d (SYNTHETIC): 25.0 % of jobs that ran for at least 60 s use one processor" in output
    assert [c["synthetic"] for c in compare(two, "c", "d")["clusters"]] == [False, True]
    rows = hakaru("compare", "d", "-w", two.workspace, "--format", "csv").output
    assert ",d,synthetic," in rows and ",d,computed," not in rows


def test_filters_replace_the_rules_but_not_those_of_all_that_ran(two: Lake) -> None:
    document = compare(two, "c", "--min-run", "0", "--state", "any", "--where", "user = 'bob'")
    c = values(document, "c")
    assert c["num_jobs"] == 3
    assert c["run_mean_completed_s"] == c["run_mean_s"] == pytest.approx((1440 + 30 + 3600) / 3)
    counting = {m["id"]: m["counting"] for m in document["metrics"]}
    assert (counting["run_mean_s"], counting["run_mean_completed_s"]) == ("all that ran", None)
    document = compare(two, "c", "--min-run", "1000")
    counting = {m["id"]: m["counting"] for m in document["metrics"]}
    assert (counting["run_mean_s"], counting["wra_mean"]) == ("all that ran", "completed, ≥ 1000 s")
    assert values(document, "c")["run_mean_completed_s"] == pytest.approx((1440 + 3600) / 2)


def test_users_are_not_counted_across_files_that_number_them_anew(lake: Lake) -> None:
    rows = [job("q1/1", user="q1/0"), job("q2/1", user="q2/0")]
    put_jobs(lake, rows)
    users = compare(lake, "c", "--metric", "num_users")["metrics"][0]["computed"]["c"]
    assert users["value"] is None and "numbered anew in every log file" in users["reason"]
    chosen = compare(lake, "c", "--metric", "num_users", "--where", "user = 'q1/0'")
    assert values(chosen, "c") == {"num_users": 1}


def test_a_slash_in_a_name_is_not_a_log(lake: Lake) -> None:
    put_jobs(lake, [job(1, user="LAB/ann"), job(2, user="GUEST/bob")])
    assert values(compare(lake, "c", "--metric", "num_users"), "c") == {"num_users": 2}


def test_a_setting_says_that_users_were_numbered_anew(lake: Lake) -> None:
    put_jobs(lake, [job(1, user="1"), job(2, user="2")], facts='{"users_per_file": true}')
    assert values(compare(lake, "c", "--metric", "num_users"), "c") == {"num_users": None}


def test_logs_in_place_of_a_workspace(two: Lake, tmp_path: Path) -> None:
    swf = tmp_path / "small.swf"
    rows = [f"{n} {n * 100} 5 600 {n} -1 -1 {n} 1200 -1 1 1 1 1 1 1 -1 -1" for n in range(1, 5)]
    swf.write_text("; UnixStartTime: 1262304000\n" + "\n".join(rows) + "\n")
    result = hakaru("compare", "--from", f"one={swf}", "--from", f"two={swf}", "--format", "json")
    document = json.loads(result.stdout)
    assert [c["name"] for c in document["clusters"]] == ["one", "two"]
    told = {c["subject"]: c["sentences"] for c in document["contrasts"]}
    assert told["Requests"][0].endswith(": the same by the mean, the same by the median.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["c", "atlantis"], "there is no cluster 'atlantis' in"),
        (["c", "atlantis"], "known: c, d"),
        (["c", "--published", "atlantis"], "no published cluster 'atlantis'; known: Kraken"),
        (["c", "--published", "Krakn"], "did you mean Kraken?"),
        (["c", "--metric", "wra_men"], "did you mean wra_mean or wra_median"),
        (["c", "--metric", "num_jobs", "--all"], "--all or --metric, not both"),
        (
            ["c", "--since", "2019-01-01", "--until", "2018-01-01"],
            "the period ends before it begins",
        ),
        (["c", "-o", "a.parquet"], "a.parquet: cannot tell its format; end it in .csv"),
        (["c", "--metric", "speed"], "there is no metric 'speed'; known: num_jobs"),
        (["c", "--where", "nonsense > 3"], "nonsense"),
    ],
)
def test_mistakes_are_told(two: Lake, arguments: list[str], message: str) -> None:
    result = hakaru("compare", *arguments, "-w", two.workspace)
    assert result.exit_code == 1
    assert message in result.output
    assert "Traceback" not in result.output


def test_an_empty_workspace_says_how_to_begin(lake: Lake) -> None:
    result = hakaru("compare", "-w", lake.workspace)
    assert result.exit_code == 1 and "hakaru ingest FILE --cluster NAME" in result.output


def test_sentences_then_the_headline_then_notes(two: Lake) -> None:
    lines = hakaru("compare", "c", "d", "-w", two.workspace).output.splitlines()
    table = next(i for i, line in enumerate(lines) if line.startswith("metric"))
    notes = next(i for i, line in enumerate(lines) if line.startswith("(a) "))
    assert lines[0].startswith("• c: 66.7 % of jobs that ran") and 0 < table < notes
    assert not any("Processors of a node" in line for line in lines)
    every = hakaru("compare", "c", "d", "-w", two.workspace, "--all").output
    assert "Processors of a node" in every
    assert not any(line.endswith(" ") for line in (*lines, *every.splitlines()))


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_no_number_is_broken_or_cut_off(two: Lake, width: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", width)
    output = hakaru("compare", "c", "d", "-w", two.workspace).output
    lines = [line for line in output.splitlines() if "https://" not in line]
    assert max(map(len, lines)) <= int(width)
    assert "Kraken 693,829 [" in output and "Helios 3,362,981 [" in output
    chosen = hakaru("compare", "c", "-w", two.workspace, "--published", "Kraken,Helios").output
    assert "693,829 [" in chosen and "3,362,981 [" in chosen


def test_citations_are_short_unless_sources_are_asked_for(two: Lake) -> None:
    arguments = ("compare", "c", "-w", two.workspace, "--metric", "wra_mean")
    assert "[1] You & Zhang, JSSPP 2012: p.261 sec.3.4" in hakaru(*arguments).output
    for more in (["--sources"], ["--format", "md"]):
        assert "Comprehensive Workload Analysis" in hakaru(*arguments, *more).output


def test_a_selection_of_nothing_says_which_period_there_is(two: Lake) -> None:
    output = hakaru("compare", "c", "-w", two.workspace, "--since", "2030-01-01").output
    assert "no job is selected; the jobs of c were submitted from 2018-01-01 09:00 to" in output
    assert "•" not in output


def test_an_unquoted_pattern_is_told(two: Lake, tmp_path: Path) -> None:
    files = [tmp_path / "a.swf", tmp_path / "b.swf"]
    for file in files:
        file.write_text("x")
    output = hakaru("compare", "--from", *files).output
    assert "b.swf is a file, not the name of a cluster: quote the pattern: --from" in output


# ---- the words of the sentences


@pytest.fixture(scope="module")
def real(shared: Path, aaic_files: list[Path], tmp_path_factory: Any) -> Callable[..., Any]:
    from hakaru.sources import ingest

    lake = Lake.create(tmp_path_factory.mktemp("real"))
    ingest(lake, aaic_files, "aaic")
    for name, pattern in (("ricc", "RICC*"), ("nasa", "NASA*"), ("gaia", "UniLu*")):
        ingest(lake, sorted((shared / "data" / "swf").glob(pattern)), name)
    return lambda *arguments: compare(lake, *arguments)


def test_the_contrasts_of_the_paper(real: Callable[..., Any]) -> None:
    """AAIC as the paper prints it; the others as their logs give it under the same rules."""
    document = real("aaic", "ricc", "nasa", "gaia")
    aaic, ricc, nasa, gaia = (values(document, name) for name in ("aaic", "ricc", "nasa", "gaia"))
    assert (aaic["num_jobs"], ricc["num_jobs"]) == (459_545, 447_794)
    assert (ricc["num_nodes"], ricc["num_cpus"]) == (1024, 8192)
    shares = [round(each["share_single_pe"], 3) for each in (aaic, ricc, nasa, gaia)]
    assert shares == [0.962, 0.774, 0.110, 0.360]
    assert [round(each["wra_mean"], 3) for each in (aaic, ricc, gaia)] == [0.107, 0.141, 0.186]
    assert [nasa[m] for m in ("wra_mean", "wait_median_s", "share_completed")] == [None] * 3
    assert gaia["share_multi_node"] is None and aaic["num_users"] is None
    told = {c["subject"]: c["sentences"] for c in document["contrasts"]}
    assert told["Single PE"][0] == (
        "aaic: 96.2 % of jobs that ran for at least 60 s use one GPU (360,756 of 459,545 jobs); ricc: "
        "77.4 % of jobs that ran for at least 60 s use one processor (356,072 of 447,794 jobs): 1.2 times "
        "as many."
    )
    assert "aaic: weak scaling" in told["Scaling"][0] and "gaia: strong" in told["Scaling"][0]
    assert told["Scaling"][0].endswith("opposite signs."), "what differs comes first"
    assert told["Scaling"][-1].endswith("same sign.")
    assert not any("nasa" in sentence for sentence in told["Scaling"]), "its states are unknown"
