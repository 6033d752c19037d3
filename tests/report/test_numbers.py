"""The report's own numbers, worked by hand on a log whose columns, counts and times are all different."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hakaru.analyses import Selection, open_session
from hakaru.lake import Lake
from hakaru.report import tell
from hakaru.report._view import _capital, view_of
from hakaru.schema import INGESTS, REJECTS
from tests.conftest import job, put, put_jobs, utc

FACTS = """{"zone": "Asia/Tokyo", "gpus_per_node": 8,
            "nodes": [{"since": "2017-01-01", "count": 2}, {"since": "2018-02-01", "count": 3}]}"""
NEVER = {"run_s": None, "wait_s": None, "started_at": None}


def log() -> list[dict[str, Any]]:
    """Five jobs of three users of one account, and what is not known of them.

    GPU-hours: 1/6, 1/2, 4 × 10 and 1/120; the cancelled job never ran and nobody knows whose it is.
    """
    return [
        job(0, user="ann", application="pytorch", run_s=600.0, requested_s=6000.0, wait_s=0.0),
        job(1, user="bob", run_s=1800.0, requested_s=6000.0),
        job(
            2,
            user="bob",
            queue="long",
            num_gpus=4,
            run_s=36000.0,
            requested_s=36000.0,
            wait_s=3600.0,
        ),
        job(3, user="cat", queue="long", state="failed", run_s=30.0, requested_s=None),
        job(4, user=None, account=None, state="cancelled", **NEVER)
        | {"submitted_at": utc("2018-03-31T16:00:00"), "ended_at": utc("2018-03-31T17:00:00")},
    ]


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = put_jobs(Lake.create(tmp_path_factory.mktemp("logged")), log(), FACTS)
    at = {"started_at": utc("2018-05-01T00:00:00"), "ended_at": utc("2018-05-01T10:30:00")}
    counts = {"num_read": 1100, "num_new": 90, "num_repeated": 7}
    counts |= {"num_conflicts": 5, "num_rejected": 3}
    ingest = {"cluster": "c", "source": "sacct", "synthetic": False} | at | counts
    put(made, INGESTS.name, [ingest | {"ingest_id": "i", "inputs": ["/in/b.csv", "/in/a.csv"]}])
    seen = [
        ("b.csv", 7, "no end"),
        ("b.csv", 3, "no end"),
        ("a.csv", 9, "no end"),
        ("b.csv", 1, "a date"),
    ]
    bad = {"cluster": "c", "source": "sacct", "text": "…"}
    rows = [bad | {"file": f"/in/{file}", "line": line, "reason": why} for file, line, why in seen]
    # another cluster's, of which the report says nothing
    rows.append(rows[0] | {"cluster": "d", "reason": "no start"})
    put(made, INGESTS.name, [ingest | {"ingest_id": "d", "cluster": "d", "source": "swf"}])
    put(made, REJECTS.name, rows)
    return made


@pytest.fixture(scope="module")
def seen(logged: Lake) -> dict[str, Any]:
    return view(logged)


def view(lake: Lake, **selection: Any) -> dict[str, Any]:
    with open_session(lake) as session:
        return view_of(tell(session, Selection(clusters=("c",), **selection)))


def figure(view: dict[str, Any], id: str) -> dict[str, Any]:
    (found,) = [each for each in view["figures"] if each["id"] == id]
    return dict(found)


def test_a_term_begins_with_a_capital() -> None:
    assert _capital("processors per node") == "Processors per node"
    assert (_capital("GPU-hours"), _capital("")) == ("GPU-hours", "")


def test_the_machine_and_the_log(seen: dict[str, Any]) -> None:
    """Midnight in UTC is nine in Tokyo, and the last job is of the first of April there."""
    machine = dict(seen["machine"])
    assert machine["Submitted"] == "2018-01-01 09:00 – 2018-04-01 01:00"
    assert (machine["Jobs"], machine["Users"], machine["Accounts"]) == ("5", "3", "1")
    assert machine["GPU-hours"] == "41"  # 40.675
    assert machine["GPUs per node"] == "8"
    assert machine["Nodes"] == "2 from 2017-01-01, 3 from 2018-02-01"
    assert machine["Read from"] == "sacct: b.csv, a.csv; test"
    assert "2018-01-01 to 2018-04-01" in seen["subtitle"] and "5 jobs" in seen["subtitle"]
    assert seen["title"].endswith(" c") and not seen["synthetic"]


def test_relative_dates_stand_in_the_header(tmp_path: Path) -> None:
    rows = [job(i, submitted_at=utc("1970-01-02")) for i in range(2)]
    relative = put_jobs(Lake.create(tmp_path / "r"), rows, '{"relative_dates": true}')
    assert view(relative)["subtitle"] == "1970-01-02 to 1970-01-02 · 2 jobs · dates are relative"
    dated = put_jobs(Lake.create(tmp_path / "d"), rows)
    assert "relative" not in view(dated)["subtitle"]


def test_filters_are_told_as_one_types_them(logged: Lake, seen: dict[str, Any]) -> None:
    chosen = view(logged, where="queue = 'long'", min_run_s=60.0, states=("completed", "failed"))
    machine = dict(chosen["machine"])
    assert machine["Only jobs"] == (
        "--where queue = 'long'  --min-run 60  --state completed  --state failed"
    )
    assert machine["Jobs"] == "2"
    assert "Only jobs" not in dict(seen["machine"])


def test_coverage_is_each_column_s_own(logged: Lake, seen: dict[str, Any]) -> None:
    coverage = {name: share for name, _, share in seen["quality"]["coverage"]}
    expected = {
        "job_id": "100.0 %", "user": "80.0 %", "account": "80.0 %", "queue": "100.0 %",
        "application": "20.0 %", "requested_s": "80.0 %", "run_s": "80.0 %", "qos": "0.0 %",
        "started_at": "80.0 %", "ended_at": "100.0 %", "num_gpus": "100.0 %",
    }  # fmt: skip
    assert {name: coverage[name] for name in expected} == expected
    long = {
        name: share
        for name, _, share in view(logged, where="queue = 'long'")["quality"]["coverage"]
    }
    assert (long["requested_s"], long["application"], long["user"]) == (
        "50.0 %",
        "0.0 %",
        "100.0 %",
    )


def test_rejects_with_the_first_place_of_each_reason(seen: dict[str, Any]) -> None:
    assert seen["quality"]["rejects"] == [("no end", "3", "a.csv:9"), ("a date", "1", "b.csv:1")]


def test_ingests_in_their_columns(seen: dict[str, Any]) -> None:
    rows = seen["quality"]["ingests"]
    assert ["2018-05-01 10:30", "sacct", "b.csv, a.csv", "1,100", "90", "7", "5", "3"] in rows
    assert {row[1] for row in rows} == {"sacct", "test"}
    (other,) = [row for row in rows if row[1] == "test"]
    assert other[3:] == ["–"] * 5, "what an ingest did not count is unknown, not 0"


def test_the_last_twelve_ingests(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(1)])
    at = [utc(f"2099-05-{day:02}T00:00:00") for day in range(1, 14)]
    base = {"cluster": "c", "source": "s", "synthetic": False, "num_new": 1, "inputs": list("abcd")}
    rows = [base | {"ingest_id": str(n), "started_at": t, "ended_at": t} for n, t in enumerate(at)]
    put(lake, INGESTS.name, rows)
    listed = view(lake)["quality"]["ingests"]
    assert [row[0][:10] for row in listed] == [f"2099-05-{day:02}" for day in range(2, 14)]
    assert {row[2] for row in listed} == {"4 files"}


def test_who_was_left_out_of_which_figure(lake_of: Callable[..., Lake]) -> None:
    """Of 10 jobs the run time of 3 is not known, 2 ran for less than a minute, 1 failed; 4 are left."""
    rows = [job(n, **NEVER) for n in range(3)] + [job(n, run_s=59.0) for n in (3, 4)]
    rows += [job(5, state="failed")] + [job(n, run_s=60.0) for n in range(6, 10)]
    seen = view(lake_of(rows))
    assert figure(seen, "walltime")["notes"] == [
        "4 of 10 selected jobs.",
        "Left out 3: only jobs with a known run time.",
        "Left out 2: only jobs that ran for at least 60 s.",
        "Left out 1: only jobs that are completed.",
    ]
    assert figure(seen, "queues")["notes"] == ["All 10 selected jobs."]
    rules = [
        (rule, count, [id for id, _ in ids]) for rule, count, ids in seen["quality"]["left_out"]
    ]
    counts = [int(count) for _, count, _ in rules]
    assert counts == sorted(counts, reverse=True) and min(counts) >= 1
    of_walltime = [(rule, count) for rule, count, ids in rules if "walltime" in ids]
    assert of_walltime == [
        ("with a known run time", "3"),
        ("that ran for at least 60 s", "2"),
        ("that are completed", "1"),
    ]
    assert "queues" not in [id for _, _, ids in rules for id in ids]


def test_few_users_are_told_by_their_hours(lake_of: Callable[..., Lake]) -> None:
    """Of 20 users with a job each, two take 60 and 22 of 100 hours; by jobs nobody stands out."""
    hours = [60, 22, *[1] * 18]
    rows = [job(n, user=f"u{n}", run_s=3600.0 * each) for n, each in enumerate(hours)]
    with open_session(lake_of(rows)) as session:
        found = {each.id: each.values for each in tell(session).findings}
    assert found["few-users"] == {
        "num_users": 20, "share_hours": pytest.approx(0.82), "share_top1": pytest.approx(0.6),
    }  # fmt: skip


def test_a_selection_that_no_job_passes(logged: Lake) -> None:
    chosen = view(logged, where="state = 'cancelled'")
    first, *left = figure(chosen, "walltime")["notes"]
    assert "1 selected" in first and first.startswith("None")
    assert left == ["Left out 1: only jobs with a known run time."]
    assert figure(chosen, "walltime")["table"]["rows"] == []


def test_tables_hold_the_numbers_of_their_columns(seen: dict[str, Any]) -> None:
    """Of 5 jobs 3 are normal; hours 2/3 of 40.675. Accuracies 0.1, 0.3 and 1: median 0.3, mean 0.467."""
    queues = figure(seen, "queues")["table"]
    rows = [dict(zip(queues["head"], row, strict=True)) for row in queues["rows"]]
    assert [(row["Queue"], row["Jobs"], row["GPU-hours"]) for row in rows] == [
        ("normal", "3", "0.667"),
        ("long", "2", "40.008"),
    ]
    assert rows[0]["Share"] == "60.0 %"
    accuracy = figure(seen, "request-accuracy")["table"]
    (row,) = [dict(zip(accuracy["head"], each, strict=True)) for each in accuracy["rows"]]
    assert (row["Least"], row["Median"], row["Most"]) == ("0.100", "0.300", "1.000")
    assert row["Mean"] == "0.467"
    assert queues["is_text"][:2] == [True, False]
    waits = figure(seen, "waits")["table"]
    (start,) = [
        dict(zip(waits["head"], each, strict=True))
        for each in waits["rows"]
        if each[0] == "submit to start"
    ]
    # waits of 0, 10, 10 and 3600 s
    assert (start["Jobs"], start["Mean (s)"], start["Median (s)"]) == ("4", "905.0", "10.000")
    assert start["Longest (s)"] == "3,600"


def test_long_tables_say_how_many_rows_more_there_are(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(n, user=f"u{n:02}", queue=f"q{n:02}") for n in range(50)])
    long = view(lake)
    users, queues = (figure(long, id)["table"] for id in ("users", "queues"))
    assert (len(users["rows"]), users["num_more"]) == (16, 34)
    assert (len(queues["rows"]), queues["num_more"]) == (48, 2)
    assert users["is_wide"] and not queues["is_wide"]
    small = figure(view(lake, where="queue < 'q03'"), "users")["table"]
    assert (len(small["rows"]), small["num_more"]) == (3, 0)


def test_a_long_table_counts_all_rows_and_names_the_command_for_them(lake: Lake) -> None:
    """The analysis itself keeps 100 of the 105 users."""
    put_jobs(lake, [job(n, user=f"u{n}") for n in range(105)])
    users = figure(view(lake, since="2017-01-01", where="queue = 'normal'"), "users")["table"]
    assert (len(users["rows"]), users["num_more"]) == (16, 89)
    assert users["command"] == (
        "hakaru show users --cluster c --since 2017-01-01 "
        """--where 'queue = '"'"'normal'"'"'' -w WORKSPACE"""
    )


def test_figures_in_a_report_carry_no_filters_and_no_markup(seen: dict[str, Any]) -> None:
    for each in seen["figures"]:
        if each["option"] is not None:
            assert "'where'" not in repr(each["option"]), each["id"]
            assert each["option"]["tooltip"]["renderMode"] == "richText"


def test_what_was_made_and_by_which_rules(seen: dict[str, Any]) -> None:
    made = {each["id"]: each for each in seen["made"]}
    assert made["queues"]["rules"] == "All jobs."
    assert "that ran for at least 60 s; that are completed" in made["walltime"]["rules"]


def test_people_whom_the_log_does_not_name_are_unknown(lake_of: Callable[..., Lake]) -> None:
    machine = dict(view(lake_of([job(1, user=None, account=None)]))["machine"])
    assert machine["Users"] == "– (the log names no users)"
    assert machine["Accounts"] == "– (the log names no accounts)"


def test_users_of_several_logs_are_not_counted(lake_of: Callable[..., Lake]) -> None:
    rows = [job(n, user=f"{log}/7") | {"job_id": f"{log}/{n}"} for n in range(2) for log in "ab"]
    machine = dict(view(lake_of(rows))["machine"])
    for term, ids in (("Users", "user"), ("Accounts", "account")):
        assert machine[term] == f"not counted: {ids} ids hold within one log file only"
    assert machine["Jobs"] == "4"


def test_the_report_compares_with_all_that_is_published_or_the_chosen(logged: Lake) -> None:
    with open_session(logged) as session:
        every = view_of(tell(session, Selection(clusters=("c",))))
        some = view_of(tell(session, Selection(clusters=("c",)), ["Philly", "Kraken"]))
    assert every["compared"]["heads"] == ["c", "Published"]
    assert some["compared"]["heads"] == ["c", "Philly", "Kraken"]
    (row,) = [
        row
        for row in some["compared"]["rows"]
        if row["label"].startswith("Walltime request accuracy, mean")
    ]
    assert row["own"] == ["46.7 %"]
    philly, kraken = row["beside"]
    assert philly == [] and kraken[0]["value"] == "~33.0 %" and kraken[0]["cluster"] == ""
    sources = {each["number"]: each["source"] for each in some["citations"]}
    assert list(sources) == list(range(1, len(sources) + 1))
    assert "JSSPP 2012" in sources[int(kraken[0]["citation"])], "where Kraken's figures are from"
    lines = figure(every, "request-accuracy")["published"]
    (mean,) = [
        line for line in lines if line["label"].startswith("Walltime request accuracy, mean")
    ]
    assert mean["own"] == "46.7 %" and "Kraken" in [each["cluster"] for each in mean["others"]]
    # sizes of jobs are read from the analysis of states, and stand beside the jobs' parallelism
    sizes = [line["label"] for line in figure(every, "parallelism")["published"]]
    assert "GPUs of a GPU job, most" in sizes
    assert not [line for line in figure(every, "states")["published"] if "GPU job" in line["label"]]
