"""What the role user sees: their own jobs whole, and others only where five or more stand together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from hakaru.analyses import load_all
from hakaru.lake import Lake
from hakaru.web.access import Viewer
from hakaru.web.filters import AnalysisQuery, FigureQuery, Filters
from hakaru.web.models import Table
from hakaru.web.privacy import RULES, look
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from hakaru.web.service import Asker, Service
from tests.conftest import job, put_jobs, utc
from tests.web.conftest import Running

API = "/api/v1"
Asked = tuple[str | None, str | None]
Params = dict[str, Any]


@pytest.fixture
def u1(closed_site: Running) -> Iterator[httpx.Client]:
    with closed_site.client("u1") as client:
        yield client


@pytest.fixture
def boss(closed_site: Running) -> Iterator[httpx.Client]:
    with closed_site.client("operator") as client:
        yield client


def get(client: httpx.Client, path: str, **params: Any) -> Params:
    answer = client.get(f"{API}/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def refused(client: httpx.Client, path: str, **params: Any) -> str:
    answer = client.get(f"{API}/{path}", params=params)
    assert answer.status_code == 403, (path, params, answer.text[:300])
    return str(answer.json()["detail"])


# ---- jobs and people


def test_only_own_jobs_are_listed(u1: httpx.Client) -> None:
    answer = get(u1, "jobs", cluster="c", size=200)
    assert {row["user"] for row in answer["rows"]} == {"u1"}
    assert (answer["num_rows"], answer["only_own"]) == (7, True)
    assert get(u1, "jobs", cluster="c", q="u2")["num_rows"] == 0
    everything = "user <> 'u1' OR user = 'u1' OR user IS NULL"
    assert get(u1, "jobs", cluster="c", where=everything)["num_rows"] == 7
    refused(u1, "jobs", cluster="c", user="u2")


def test_others_jobs_are_as_if_they_were_not_there(u1: httpx.Client, boss: httpx.Client) -> None:
    others = get(boss, "jobs", cluster="c", user="u2")["rows"][0]
    params = {"cluster": "c", "job_id": others["job_id"], "submitted_at": others["submitted_at"]}
    there = u1.get(f"{API}/job", params=params)
    absent = u1.get(f"{API}/job", params=params | {"job_id": "12345"})
    assert there.status_code == absent.status_code == 404
    assert there.json()["detail"].replace(others["job_id"], "12345") == absent.json()["detail"]


def test_an_own_job_has_its_place_among_many_but_not_among_few(u1: httpx.Client) -> None:
    found = get(u1, "job", cluster="c", job_id="900")
    assert found["among_cluster"]["num_jobs"] == 43
    assert get(u1, "job", cluster="tiny", job_id="0")["among_cluster"] is None


def test_people_are_oneself(u1: httpx.Client, closed_site: Running) -> None:
    assert [row["user"] for row in get(u1, "people", cluster="c")["rows"]] == ["u1"]
    assert get(u1, "people", cluster="c", q="u2")["rows"] == []
    refused(u1, "people", cluster="c", user="u2")
    accounts = get(u1, "people", cluster="c", kind="accounts")["rows"]
    assert {row["account"]: row["num_jobs"] for row in accounts} == {"lab": 6, "other": 1}
    with closed_site.client("nobody") as client:
        assert get(client, "people", cluster="c")["num_rows"] == 0


def test_rejects_and_names_of_files_are_for_operators(u1: httpx.Client, boss: httpx.Client) -> None:
    assert get(boss, "lake")["rejects"] and get(boss, "lake")["workspace"]
    answer = get(u1, "lake")
    assert (answer["rejects"], answer["workspace"]) == (None, None)
    assert all(ingest["inputs"] is None for ingest in answer["ingests"])
    refused(u1, "lake/rejects")


# ---- aggregates


def test_rows_of_few_people_are_withheld_with_one_more(
    u1: httpx.Client, boss: httpx.Client
) -> None:
    """`rare` is u1's alone; without `short` too, the sum of all would give it away."""
    assert [row["queue"] for row in get(boss, "analyses/queues", cluster="c")["rows"]] == [
        "normal",
        "short",
        "rare",
    ]
    answer = get(u1, "analyses/queues", cluster="c")
    assert [row["queue"] for row in answer["rows"]] == ["normal"]
    assert answer["withheld"]["num_rows"] == 2
    assert answer["rows"][0]["max_nodes"] is None  # one job's
    assert answer["withheld"]["columns"] == ["max_requested_h", "max_nodes", "max_pes"]
    clusters = {each["name"]: each for each in get(u1, "clusters")["clusters"]}
    assert clusters["c"]["queues"] == ["normal", "short"]
    assert clusters["tiny"]["num_jobs"] is None


def test_the_first_and_the_last_submission_are_told_by_the_day(
    u1: httpx.Client, boss: httpx.Client
) -> None:
    """Both are one person's."""
    ends = ("first_submit", "last_submit")
    c, tiny = get(u1, "clusters")["clusters"]
    assert [c[end] for end in ends] == ["2018-01-10T00:00:00Z", "2018-03-17T00:00:00Z"]
    assert [tiny[end] for end in ends] == [None, None]
    assert get(boss, "clusters")["clusters"][0]["last_submit"] == "2018-03-17T09:00:00Z"


def test_downloads_and_figures_withhold_the_same(u1: httpx.Client) -> None:
    text = u1.get(f"{API}/analyses/queues", params={"cluster": "c", "format": "csv"}).text
    assert "normal" in text and "rare" not in text and "short" not in text
    figure = u1.get(f"{API}/figures/queues", params={"cluster": "c"}).text
    assert "normal" in figure and "rare" not in figure


def test_groups_of_few_people_are_withheld(u1: httpx.Client) -> None:
    rows = get(u1, "analyses/states", cluster="c", by="queue")["rows"]
    assert {row["queue"] for row in rows} <= {"normal", "short"}
    rows = get(u1, "analyses/walltime", cluster="c", by="queue", state="any")["rows"]
    assert "rare" not in {row["queue"] for row in rows}
    assert all(row["max_h"] is None for row in rows)


@pytest.mark.parametrize(
    "params",
    [
        {"user": "u2"},
        {"user": "U1"},
        {"user": "u1 "},
        {"account": "other"},
        {"where": "user = 'u2'"},
        {"where": "user = 'u1'"},
        {"where": "true OR user = 'u2'"},
        {"where": "num_gpus = 2"},
        {"min_run": 10},
        {"min_run": 0},
        {"by": "user"},
        {"by": "account"},
        {"queue": "rare"},
        {"queue": "none such"},
        {"application": "secret"},
        {"min_gpus": 2, "max_gpus": 2, "queue": "rare"},
        {"min_gpus": 100},
    ],
    ids=str,
)
def test_what_could_pick_out_a_person_is_refused(u1: httpx.Client, params: Params) -> None:
    for path in ("analyses/states", "figures/states"):
        answer = u1.get(f"{API}/{path}", params={"cluster": "c", **params})
        assert answer.status_code in (403, 422), (path, answer.text[:200])
        assert "rows" not in answer.text
    if "by" not in params:
        assert u1.get(f"{API}/overview", params={"cluster": "c", **params}).status_code in (
            403,
            422,
        )


def test_a_cluster_of_few_people_is_refused(u1: httpx.Client) -> None:
    for path in ("analyses/states", "analyses/load", "overview", "compare", "figures/waits"):
        refused(u1, path, cluster="tiny")
    refused(u1, "analyses/states", by="cluster", cluster=["tiny"])


def test_a_small_cluster_takes_nothing_from_the_others(
    u1: httpx.Client, boss: httpx.Client
) -> None:
    both = get(u1, "overview")
    assert [each["cluster"] for each in both["clusters"]] == ["c"]
    assert both["withheld"] == ["tiny"]
    assert get(u1, "overview", cluster=["tiny", "c"])["withheld"] == ["tiny"]
    beside = get(u1, "compare")
    assert [each["name"] for each in beside["clusters"]] == ["c"]
    assert beside["withheld"] == ["tiny"]
    assert "tiny" not in beside["metrics"][0]["computed"]
    assert get(boss, "overview")["withheld"] == get(boss, "compare")["withheld"] == []


def test_side_by_side_a_small_cluster_is_refused(u1: httpx.Client) -> None:
    assert "of tiny" in refused(u1, "analyses/states", by="cluster")
    assert get(u1, "analyses/states", by="cluster", cluster="c")["rows"]


def test_the_difference_of_two_answers_is_of_many_people_too(u1: httpx.Client) -> None:
    """All but `rare`, which is one person's, cannot be had: normal and short are chosen one at a time."""
    assert get(u1, "analyses/states", cluster="c", queue="normal")["num_selected"] == 24
    # failed jobs are all in `short`; those in `short` that did not fail are nobody's
    assert get(u1, "analyses/states", cluster="c", queue="short", state="failed")["rows"]
    # without the queue, completed jobs gain only u1's in `rare`
    detail = refused(u1, "analyses/states", cluster="c", queue="normal", state="completed")
    assert "without queue" in detail
    # sizes from 1 to 1 leave out the six people with two GPUs: many
    assert get(u1, "analyses/states", cluster="c", max_gpus=1)["num_selected"] == 25


def test_periods_are_widened_to_months_of_many_people(u1: httpx.Client) -> None:
    asked = {"cluster": "c", "since": "2018-02-20", "until": "2018-02-20"}
    answer = get(u1, "analyses/states", **asked)
    assert answer["period"] == {"since": "2018-02-01", "until": "2018-02-28"}
    assert answer["num_selected"] == 15
    odd = asked | {"since": "2018-02-20T11:59:59", "until": "2018-02-20T12:00:01"}
    assert get(u1, "analyses/states", **odd)["period"] == answer["period"]
    late = get(u1, "analyses/states", cluster="c", since="2018-03-20")
    assert late["period"] == {"since": "2018-03-01", "until": None}
    after = get(u1, "analyses/states", cluster="c", since="2030-01-01")
    assert after["period"] == {"since": "2018-03-01", "until": None}


def test_one_self_may_be_asked_of_in_every_way(u1: httpx.Client) -> None:
    own = {"cluster": "c", "user": "u1"}
    assert get(u1, "analyses/queues", **own)["rows"][2]["queue"] == "rare"
    assert get(u1, "analyses/states", **own, where="queue = 'rare'")["num_selected"] == 1
    assert get(u1, "analyses/job-shapes", **own)["num_selected"] == 7
    assert get(u1, "analyses/users", **own)["rows"][0]["user"] == "u1"
    assert get(u1, "analyses/states", **own, by="account", since="2018-02-20")["num_selected"] == 3
    assert get(u1, "overview", cluster="c", user="u1")["clusters"][0]["measures"]["num_jobs"] == 7


def test_own_jobs_stay_own_whatever_the_filter_says(u1: httpx.Client) -> None:
    own = {"cluster": "c", "user": "u1", "where": "user = 'u2' OR user LIKE 'u%'"}
    assert get(u1, "analyses/states", **own)["num_selected"] == 7


def test_the_machine_is_seen_whole_or_not_at_all(u1: httpx.Client) -> None:
    assert get(u1, "analyses/load", cluster="c")["rows"]
    refused(u1, "analyses/load", cluster="c", queue="normal")
    refused(u1, "analyses/utilisation", cluster="c", by="queue")
    (narrowed,) = get(u1, "overview", cluster="c", queue="normal")["clusters"]
    assert narrowed["measures"]["num_jobs"] == 24
    assert (narrowed["measures"]["busy_pes"], narrowed["now"]["busy_pes"]) == (None, None)


def test_an_analysis_that_nobody_has_thought_about_is_refused(u1: httpx.Client) -> None:
    undecided = [id for id in load_all().ids() if id not in RULES]
    assert {"users", "accounts", "concentration", "job-shapes"} <= set(undecided)
    for id in undecided:
        refused(u1, f"analyses/{id}", cluster="c")


@pytest.mark.parametrize("id", sorted(RULES))
@pytest.mark.parametrize("by", [None, "queue", "state", "num_gpus", "quarter", "parallelism"])
def test_every_other_answers_without_small_rows(
    u1: httpx.Client, boss: httpx.Client, id: str, by: str | None
) -> None:
    """Whatever is shown is a row of the operator's answer, and no row is of u1's lonely queue."""
    params = {"cluster": "c", **({"by": by} if by else {})}
    answer = u1.get(f"{API}/analyses/{id}", params=params)
    if answer.status_code != 200:
        assert answer.status_code in (403, 422), answer.text
        return
    shown, single = answer.json(), (answer.json()["withheld"] or {"columns": []})["columns"]
    whole = get(boss, f"analyses/{id}", **params)["rows"]
    plain = [{k: v for k, v in row.items() if k not in single} for row in whole]
    for row in shown["rows"]:
        assert {k: v for k, v in row.items() if k not in single} in plain
        assert "rare" not in row.values()
        assert all(row[name] is None for name in single)


def test_overview_of_many(u1: httpx.Client, boss: httpx.Client) -> None:
    period = {"cluster": "c", "since": "2018-02-01", "until": "2018-02-28"}
    assert get(u1, "overview", **period) == get(boss, "overview", **period)
    (open_,) = get(u1, "overview", cluster="c")["clusters"]
    assert open_["measures"]["num_jobs"] == 43


def test_compare_of_many(u1: httpx.Client) -> None:
    answer = get(u1, "compare", cluster="c")
    assert answer["metrics"][0]["computed"]["c"]["value"] == 43
    assert answer["left_out"] == []


# ---- periods


@pytest.mark.parametrize(
    ("people", "asked", "used"),
    [
        # February has two people: it is shown together with its neighbours
        ((6, 2, 6), ("2018-02-01", "2018-02-28"), ("2018-01-01", "2018-03-31")),
        # after March comes one person, whom the difference to an open end would show
        ((6, 6, 6, 1), ("2018-02-01", "2018-03-31"), ("2018-02-01", None)),
        ((1, 6, 6, 6), ("2018-02-01", "2018-03-31"), (None, "2018-03-31")),
        ((6, 6, 6, 6), ("2018-02-01", "2018-03-31"), ("2018-02-01", "2018-03-31")),
        # no month has enough: the whole log it is
        ((4, 4, 4), ("2018-02-01", "2018-02-28"), (None, None)),
    ],
)
def test_what_lies_outside_a_period_is_of_many_or_nobody(
    tmp_path: Path, people: tuple[int, ...], asked: Asked, used: Asked
) -> None:
    rows = [
        job(
            100 * month + i,
            user=f"u{i + 4 * (month % 2)}",
            submitted_at=utc(f"2018-0{month}-10T00:00:00"),
        )
        for month, num in enumerate(people, 1)
        for i in range(num)
    ]
    readers = Readers(put_jobs(Lake.create(tmp_path), rows))
    filters = Filters(since=asked[0], until=asked[1])
    selection = replace(filters.selection(), clusters=("c",))
    found = look(readers, Viewer("user", "u0", "u0"), filters, selection).selection
    assert (found.since, found.until) == used


# ---- parameters


@pytest.mark.parametrize(
    ("id", "name", "value"),
    [
        ("walltime", "short_h", "1"),
        ("walltime", "long_h", "0.99"),
        ("think-time", "max_h", "7.5"),
        ("size-vs-walltime", "sample", "10"),
        ("size-vs-walltime", "draws", "1"),
        ("size-vs-walltime", "seed", "2"),
    ],
)
def test_a_threshold_is_not_moved_over_others_jobs(
    u1: httpx.Client, id: str, name: str, value: str
) -> None:
    """`share_short` is 1 from the longest run on: halving would find it though `max_h` is null."""
    chosen = {"cluster": "c", f"param.{name}": value}
    assert name in refused(u1, f"analyses/{id}", **chosen)
    refused(u1, f"figures/{id}", **chosen)
    assert get(u1, f"analyses/{id}", **chosen, user="u1")["columns"]


@pytest.mark.parametrize(
    ("id", "name", "value"),
    [
        ("walltime", "short_h", "3"),
        ("jobs-by-quarter", "quarter", "ended"),
        ("users-by-quarter", "quarter", "submitted"),
        ("arrivals-by-hour", "days", "active"),
        ("arrivals-by-weekday", "days", "active"),
        ("load", "bins", "10"),
    ],
)
def test_defaults_and_choices_stay(u1: httpx.Client, id: str, name: str, value: str) -> None:
    assert get(u1, f"analyses/{id}", cluster="c", **{f"param.{name}": value})["columns"]


# ---- small lakes: what is withheld cannot be summed up from what is shown

U0 = Viewer("user", "u0", "u0")


def asker_of(tmp_path: Path, rows: list[dict[str, Any]]) -> Asker:
    return Service(Readers(put_jobs(Lake.create(tmp_path), rows))).of(U0)


def jobs_of(users: str, first: int, **columns: Any) -> list[dict[str, Any]]:
    """A job for each letter."""
    return [job(first + i, user=f"u{user}", **columns) for i, user in enumerate(users)]


def answered(asker: Asker, id: str, **query: Any) -> Table:
    return asker.table(id, AnalysisQuery(cluster=("c",), **query))


def test_a_curve_tells_no_counts_and_ends_before_few_people(tmp_path: Path) -> None:
    """The last step is one person's: without the one before it, the rest of the curve is of six."""
    rows = (
        jobs_of("012345", 0, run_s=600.0, application="a")
        + jobs_of("012345", 10, run_s=3600.0, application="a")
        + jobs_of("012345", 20, run_s=36000.0, application="a")
        + jobs_of("6", 30, run_s=360000.0, application="a")
    )
    asker = asker_of(tmp_path, rows)
    for id, curves in (
        ("walltime-cdf", ("all", "single-pe")),
        ("walltime-by-application", ("a",)),
    ):
        table = answered(asker, id)
        name = table.columns[0]
        shown = [(row[name], round(row["run_h"] * 60)) for row in table.rows]
        assert shown == [(curve, minutes) for curve in curves for minutes in (11, 66)]
        assert {row["num_jobs"] for row in table.rows} == {None}
        assert table.withheld is not None and table.withheld.columns == ["num_jobs"]
        assert (table.num_used, table.num_selected) == (None, None)
        figure = asker.figure(id, FigureQuery(cluster=("c",)))
        assert figure.notes == [] and figure.withheld == table.withheld
        assert not any("(" in each["name"] for each in figure.option["series"])


def test_groups_that_are_withheld_whole_are_of_many_people(tmp_path: Path) -> None:
    """Two people use eight GPUs; the sum of all less one and two GPUs would be theirs."""
    rows = (
        jobs_of("0123456", 0, num_gpus=1, state="completed")
        + jobs_of("0123456", 10, num_gpus=1, state="failed")
        + jobs_of("0", 20, num_gpus=1, state="timeout")
        + jobs_of("12345", 30, num_gpus=2, state="completed")
        + jobs_of("67", 40, num_gpus=8, state="completed")
    )
    table = answered(asker_of(tmp_path, rows), "states", by="num_gpus")
    assert {row["num_gpus"] for row in table.rows} == {1}
    assert (table.num_used, table.num_selected) == (None, None)
    assert all(entry.num_jobs is None for entry in table.left_out)
    assert table.withheld is not None and "withheld" in table.withheld.why


def test_one_person_in_many_rows_is_one_person(tmp_path: Path) -> None:
    """u0 alone uses ten queues: as ten people they would seem many enough."""
    rows = jobs_of("0123456", 0, queue="wide") + jobs_of("123456", 10, queue="short")
    rows += [job(20 + i, user="u0", queue=f"own{i}") for i in range(10)]
    table = answered(asker_of(tmp_path, rows), "queues")
    assert [row["queue"] for row in table.rows] == ["wide"]


def test_a_state_withheld_in_one_group_is_withheld_in_another(tmp_path: Path) -> None:
    """Failed jobs of all queues are known from another answer: less those of `wide` they are u0's."""
    rows = (
        jobs_of("0123456", 0, queue="wide")
        + jobs_of("123456", 10, queue="wide", state="failed")
        + jobs_of("0123456", 20, queue="short")
        + jobs_of("0", 30, queue="short", state="failed")
        + jobs_of("123456", 40, queue="short", state="timeout")
    )
    table = answered(asker_of(tmp_path, rows), "states", by="queue")
    assert "failed" not in {row["state"] for row in table.rows}


def test_a_queue_called_all_is_a_queue(tmp_path: Path) -> None:
    rows = jobs_of("0123456", 0, queue="wide") + jobs_of("0", 10, queue="all")
    assert answered(asker_of(tmp_path, rows), "queues").rows == []


def test_what_each_rule_leaves_out_is_of_many_people(tmp_path: Path) -> None:
    """Seven people failed, and one ran for less than a minute: together eight, apart not."""
    rows = (
        jobs_of("0123456", 0)
        + jobs_of("0123456", 10, state="failed")
        + jobs_of("7", 20, run_s=30.0)
    )
    table = answered(asker_of(tmp_path, rows), "request-accuracy")
    assert table.rows and (table.num_used, table.num_selected) == (None, None)
    assert table.left_out and all(entry.num_jobs is None for entry in table.left_out)
    assert table.withheld is not None and "numbers of jobs" in table.withheld.why


def test_side_by_side_a_period_is_widened_for_each_cluster(tmp_path: Path) -> None:
    """In b one person is there in February, whom the six of c would hide from a count over both."""
    rows = [
        job(100 * month + i, cluster=cluster, user=f"u{i}", submitted_at=utc(f"2018-0{month}-10"))
        for cluster, people in (("b", (6, 1, 6)), ("c", (6, 6, 6)))
        for month, num in enumerate(people, 1)
        for i in range(num)
    ]
    asker = asker_of(tmp_path, rows)
    february: Params = {"since": "2018-02-01", "until": "2018-02-28"}
    with pytest.raises(Refused, match="different months") as error:
        asker.table("states", AnalysisQuery(by="cluster", **february))
    assert "one cluster" in str(error.value.fix)
    assert answered(asker, "states", **february).num_selected == 6
    both = asker.table("states", AnalysisQuery(by="cluster"))
    assert [(row["cluster"], row["num_jobs"]) for row in both.rows] == [("b", 13), ("c", 18)]
