"""What the API answers, worked by hand on a site of eight people."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest

from hakaru.analyses import load_all, open_session
from hakaru.lake import Lake
from hakaru.web.app import create_app
from tests.conftest import job, put_jobs
from tests.web._site import Running, running

API = "/api/v1"


def get(client: httpx.Client, path: str, **params: object) -> dict:  # type: ignore[type-arg]
    answer = client.get(f"{API}/{path}", params=params)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def test_clusters(ask: httpx.Client) -> None:
    first, tiny = get(ask, "clusters")["clusters"]
    assert (first["name"], first["num_jobs"], first["num_users"]) == ("c", 43, 8)
    assert first["queues"] == ["normal", "rare", "short"]
    assert (first["first_submit"], first["unit"]) == ("2018-01-10T09:00:00Z", "gpu")
    assert (tiny["name"], tiny["num_users"]) == ("tiny", 2)


def test_the_registry_is_listed_whole(ask: httpx.Client) -> None:
    listed = get(ask, "analyses")["analyses"]
    assert {each["id"] for each in listed} == set(load_all().ids())
    subjects = list(dict.fromkeys(each["subject"] for each in listed))
    assert subjects[:3] == ["overview", "parallelism", "requests"]  # as the paper tells it
    walltime = next(each for each in listed if each["id"] == "walltime")
    assert walltime["question"] == load_all().get("walltime").answers
    assert walltime["params"][0] == {
        "name": "short_h",
        "default": 3.0,
        "help": "Share of jobs that ran for at most this many hours.",
        "choices": [],
        "low": 0.0,
        "high": None,
    }


@pytest.mark.parametrize("analysis", load_all().ids())
def test_every_analysis_answers_as_the_session_does(
    ask: httpx.Client, site: Lake, analysis: str
) -> None:
    from hakaru.analyses import Selection

    answer = get(ask, f"analyses/{analysis}", cluster="c")
    with open_session(site) as session:
        result = session.run(load_all().get(analysis), Selection(clusters=("c",)))
    assert answer["columns"] == result.table.column_names
    assert len(answer["rows"]) == result.table.num_rows
    assert answer["num_selected"] == 43
    assert answer["num_used"] == result.num_used


@pytest.mark.parametrize("analysis", load_all().ids())
@pytest.mark.parametrize("dark", [False, True])
def test_every_analysis_has_a_figure(ask: httpx.Client, analysis: str, dark: bool) -> None:
    answer = get(ask, f"figures/{analysis}", cluster="c", dark=dark)
    assert answer["title"] == load_all().get(analysis).title
    assert answer["option"]


def test_filters_narrow_alike(ask: httpx.Client) -> None:
    def num(**filters: object) -> int:
        return int(get(ask, "jobs", cluster="c", **filters)["num_rows"])

    assert num() == 43
    assert num(queue="short") == 18
    assert num(user="u1") == 7
    assert num(account="other") == 1
    assert num(min_gpus=2) == 18
    assert num(max_gpus=1) == 25
    assert num(max_gpus=0) == 0
    assert num(min_gpus=0) == 43
    assert num(state="failed") == 18
    assert num(state=["failed", "completed"]) == 43
    assert num(since="2018-02-01", until="2018-02-28") == 15
    assert num(min_run=3600) == 25
    assert num(where="queue = 'rare' OR num_gpus = 2") == 19
    assert num(queue="short", user="u8") == 0


def test_jobs_are_sorted_and_paged_in_the_engine(ask: httpx.Client) -> None:
    query = {"cluster": "c", "sort": "run_s", "order": "asc", "size": 10}
    pages = [get(ask, "jobs", page=page, **query) for page in range(1, 6)]
    assert [len(page["rows"]) for page in pages] == [10, 10, 10, 10, 3]
    runs = [row["run_s"] for page in pages for row in page["rows"]]
    assert runs == sorted(runs)
    ids = {row["job_id"] for page in pages for row in page["rows"]}
    assert len(ids) == pages[0]["num_rows"] == 43
    assert pages[0]["num_pages"] == 5
    assert get(ask, "jobs", page=6, **query)["rows"] == []


def test_jobs_of_all_clusters_stand_together(ask: httpx.Client) -> None:
    assert get(ask, "jobs")["num_rows"] == 45


@pytest.mark.parametrize(("q", "num"), [("900", 1), ("TRAIN U3", 3), ("u2", 6), ("%", 0), ("'", 0)])
def test_search_is_a_part_of_id_name_or_user(ask: httpx.Client, q: str, num: int) -> None:
    assert get(ask, "jobs", cluster="c", q=q)["num_rows"] == num


def test_a_job_has_its_place_among_others(ask: httpx.Client) -> None:
    found = get(ask, "job", cluster="c", job_id="900", submitted_at="2018-02-20T12:00:00Z")
    assert found["record"]["queue"] == "rare"
    assert found["record"]["pe_hours"] == 1.0
    assert found["units"]["wait_s"] == "s"
    # of u1's seven jobs three waited longer, and four, itself among them, as long: 4 × ½ of 7
    assert found["among_user"]["num_jobs"] == 7
    assert found["among_user"]["wait"] == pytest.approx(2 / 7)
    # of all 43, 18 ran for half as long and 25 as long: (18 + 12.5) of 43
    assert found["among_cluster"]["run"] == pytest.approx(30.5 / 43)
    assert found["among_cluster"]["request_accuracy"] == pytest.approx(30.5 / 43)


def test_a_job_that_is_not_there(ask: httpx.Client) -> None:
    answer = ask.get(f"{API}/job", params={"cluster": "c", "job_id": "901"})
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["fix"] == "Search for it in the list of jobs."


def test_people(ask: httpx.Client) -> None:
    answer = get(ask, "people", cluster="c", sort="num_jobs", size=3)
    assert [row["user"] for row in answer["rows"]] == ["u1", "u2", "u3"]
    assert (answer["num_rows"], answer["num_pages"]) == (8, 3)
    first = answer["rows"][0]
    # three and one of an hour on one GPU, three of half an hour on two
    assert (first["num_jobs"], first["pe_hours"]) == (7, 7.0)
    assert first["median_request_accuracy"] == 0.5
    assert first["share_failed"] == pytest.approx(3 / 7)
    beyond = get(ask, "people", cluster="c", page=9, size=3)
    assert (beyond["rows"], beyond["num_rows"]) == ([], 8)
    named = get(ask, "people", cluster="c", kind="accounts", sort="name", order="asc")
    assert [row["account"] for row in named["rows"]] == ["lab", "other"]
    assert get(ask, "people", cluster="c", q="U7")["num_rows"] == 1


@pytest.mark.parametrize("narrowed", [{}, {"q": "u1"}, {"user": "u1"}, {"account": "lab"}])
def test_a_share_of_hours_is_of_the_cluster_s(ask: httpx.Client, narrowed: dict[str, str]) -> None:
    """Three months of 14 GPU-hours, and one of u1's alone; in March u1 has 2 of 14."""
    first = get(ask, "people", cluster="c", sort="name", order="asc", **narrowed)["rows"][0]
    hours = 6 if "account" in narrowed else 7
    assert (first["user"], first["pe_hours"]) == ("u1", hours)
    assert first["share_pe_hours"] == pytest.approx(hours / 43)
    march = get(ask, "people", cluster="c", since="2018-03-01", **narrowed)["rows"]
    shares = {row["user"]: row["share_pe_hours"] for row in march}
    assert shares["u1"] == pytest.approx(2 / 14)


def test_one_s_own_share_of_hours_is_of_the_cluster_s(closed_site: Running) -> None:
    with closed_site.client("u1") as client:
        (own,) = get(client, "people", cluster="c")["rows"]
        assert (own["user"], own["pe_hours"]) == ("u1", 7)
        assert own["share_pe_hours"] == pytest.approx(7 / 43)
        (rare,) = get(client, "people", cluster="c", queue="rare")["rows"]
        assert rare["share_pe_hours"] is None, "of whoever else used that queue"


def test_overview_against_the_month_before(ask: httpx.Client) -> None:
    (found,) = get(ask, "overview", cluster="c", since="2018-03-01", until="2018-03-31")["clusters"]
    assert found["period"] == {"since": "2018-03-01", "until": "2018-03-31"}
    assert found["before_period"] == {"since": "2018-02-01", "until": "2018-02-28"}
    assert (found["measures"]["num_jobs"], found["before"]["num_jobs"]) == (14, 15)
    assert found["change"]["num_jobs"] == pytest.approx(-1 / 15)
    assert found["measures"]["wait_median_s"] == 10
    # eight GPU-hours and six of half an hour on two GPUs
    assert found["measures"]["pe_hours"] == 14
    assert found["measures"]["utilisation"] is None


@pytest.mark.parametrize("since", ["2018-02-01", "1900-01-01"])
def test_overview_is_not_compared_with_what_the_log_does_not_hold(
    ask: httpx.Client, since: str
) -> None:
    """The log begins on the tenth of January: it knows no whole month before February."""
    (found,) = get(ask, "overview", cluster="c", since=since, until="2018-02-28")["clusters"]
    assert (found["before"], found["before_period"], found["change"]) == (None, None, {})


def test_a_period_of_thousands_of_years_has_none_before_it(ask: httpx.Client) -> None:
    for since, until in (("1900-01-01", "8999-12-31"), ("1900-01-02", "8999-12-31T01:00:00Z")):
        (found,) = get(ask, "overview", cluster="c", since=since, until=until)["clusters"]
        assert (found["before"], found["measures"]["num_jobs"] > 0) == (None, True)


def test_now_lies_within_the_period(ask: httpx.Client) -> None:
    """At the end of the sixteenth nothing runs; jobs of the seventeenth are not known to the selection."""
    (found,) = get(ask, "overview", cluster="c", until="2018-03-16T09:30:00Z")["clusters"]
    assert found["now"]["at"] == "2018-03-16T09:00:00Z"


def test_overview_of_an_open_period_has_nothing_before(ask: httpx.Client) -> None:
    first, tiny = get(ask, "overview")["clusters"]
    assert (first["before"], first["change"]) == (None, {})
    assert tiny["measures"]["num_jobs"] == 2
    # u8's last job has not begun to run when it is submitted
    assert first["now"] == {
        "at": "2018-03-17T09:00:00Z",
        "busy_pes": 0.0,
        "installed_pes": None,
        "seen_pes": None,
        "jobs_running": 0,
        "jobs_waiting": 1,
        "pes_waiting": 1.0,
    }


def test_compare(ask: httpx.Client) -> None:
    answer = get(ask, "compare", cluster="c", published="Kraken")
    jobs = answer["metrics"][0]
    assert (jobs["id"], jobs["computed"]["c"]["value"]) == ("num_jobs", 43)
    assert list(jobs["published"]) == ["Kraken"]


def test_lake(ask: httpx.Client) -> None:
    answer = get(ask, "lake")
    assert {table["name"]: table["num_rows"] for table in answer["tables"]}["jobs"] == 45
    assert {ingest["cluster"] for ingest in answer["ingests"]} == {"c", "tiny"}
    assert answer["rejects"] == [
        {
            "cluster": "c",
            "reason": "no end",
            "num_rejects": 3,
            "first_file": "a.csv",
            "first_line": 3,
        }
    ]
    page = get(ask, "lake/rejects", page=2, size=2, reason="no end")
    assert ([row["line"] for row in page["rows"]], page["num_rows"]) == ([9], 3)


def test_downloads_read_back(ask: httpx.Client) -> None:
    rows = get(ask, "analyses/queues", cluster="c")["rows"]
    path = f"{API}/analyses/queues?cluster=c&format="
    answer = ask.get(path + "parquet")
    assert answer.headers["content-disposition"] == 'attachment; filename="queues.parquet"'
    assert pq.read_table(io.BytesIO(answer.content)).to_pylist() == rows
    text = ask.get(path + "csv").text
    read = list(csv.DictReader(io.StringIO(text)))
    assert [(row["queue"], int(row["num_jobs"])) for row in read] == [
        ("normal", 24),
        ("short", 18),
        ("rare", 1),
    ]


def test_parameters_of_an_analysis(ask: httpx.Client) -> None:
    answer = get(ask, "analyses/walltime", cluster="c", **{"param.short_h": "0.5"}, state="any")
    assert answer["rows"][0]["share_short"] == pytest.approx(18 / 43)
    wrong = ask.get(f"{API}/analyses/walltime?cluster=c&param.short=1")
    assert wrong.status_code == 422
    assert wrong.json()["fix"] == "It takes: param.short_h, param.long_h."


def test_an_unknown_parameter_and_one_given_twice_are_told_apart(ask: httpx.Client) -> None:
    unknown = ask.get(f"{API}/analyses/walltime?cluster=c&foo=1").json()
    assert unknown["detail"] == "there is no parameter 'foo'"
    assert unknown["fix"].startswith("Use: cluster, ") and "param.NAME" in unknown["fix"]
    twice = ask.get(f"{API}/analyses/walltime?cluster=c&param.short_h=1&param.short_h=2")
    assert twice.status_code == 422
    assert twice.json()["detail"] == "the parameter 'param.short_h' is given twice"
    assert twice.json()["fix"] == "Give it once."


def test_several_clusters_are_put_side_by_side(ask: httpx.Client) -> None:
    answer = get(ask, "analyses/states", by="cluster")
    assert {row["cluster"] for row in answer["rows"]} == {"c", "tiny"}
    wrong = ask.get(f"{API}/analyses/states")
    assert wrong.status_code == 422
    assert "by=cluster" in wrong.json()["fix"]


@pytest.mark.parametrize("name", ["", "%20"])
@pytest.mark.parametrize("path", ["overview", "jobs", "analyses/states", "job", "lake/rejects"])
def test_a_cluster_without_a_name_is_refused(ask: httpx.Client, path: str, name: str) -> None:
    wrong = ask.get(f"{API}/{path}?cluster={name}&job_id=1")
    assert wrong.status_code == 422
    assert "cluster" in wrong.text


def test_an_empty_lake_says_which_command_to_run(tmp_path: object) -> None:
    from pathlib import Path

    with (
        running(create_app(Lake(Path(str(tmp_path), "none")))) as server,
        server.client() as client,
    ):
        assert get(client, "overview") == {
            "clusters": [],
            "withheld": [],
            "hint": "Begin with: hakaru ingest FILE --cluster NAME",
        }
        assert get(client, "clusters")["hint"] == get(client, "lake")["hint"] is not None
        for path in ("analyses/queues", "jobs", "people", "compare", "figures/queues"):
            answer = client.get(f"{API}/{path}")
            assert answer.status_code == 404
            assert "hakaru ingest" in answer.json()["fix"]


def test_the_page_of_the_api_needs_no_script(ask: httpx.Client) -> None:
    page = ask.get(f"{API}/docs").text
    assert "<script" not in page
    assert "GET /api/v1/analyses/{id}" in page
    (job,) = re.findall(r"<code>GET /api/v1/job</code>.*?</section>", page, re.S)
    needed = dict(re.findall(r"<tr><td><code>(\w+)</code>([^<]*)</td>", job))
    assert needed == {"cluster": " (required)", "job_id": " (required)", "submitted_at": ""}
    assert "<td><code>order</code></td><td>one of asc, desc</td><td>Rising or falling.</td>" in page


def test_a_new_commit_is_seen_at_once(tmp_path: object) -> None:
    from pathlib import Path

    from tests.conftest import job, put_jobs

    lake = put_jobs(Lake.create(Path(str(tmp_path))), [job(1)])
    with running(create_app(lake)) as server, server.client() as client:
        assert get(client, "jobs")["num_rows"] == 1
        put_jobs(lake, [job(2)])
        assert get(client, "jobs")["num_rows"] == 2
        lake.forget("c")
        assert client.get(f"{API}/jobs").status_code == 404


def test_openapi_describes_every_route(ask: httpx.Client) -> None:
    paths = ask.get(f"{API}/openapi.json").json()["paths"]
    assert len(paths) == 23
    written = {path: set(item) - {"get"} for path, item in paths.items() if set(item) != {"get"}}
    assert written == {f"{API}/what-if": {"post"}, f"{API}/what-if/{{run}}": {"delete"}}


def test_names_in_a_download_are_no_formulas(tmp_path: Path) -> None:
    lake = put_jobs(Lake.create(tmp_path), [job(1, queue="=1+2"), job(2, queue="plain")])
    with running(create_app(lake)) as server, server.client() as client:
        text = client.get("/api/v1/analyses/queues", params={"format": "csv"}).text
    names = {row["queue"] for row in csv.DictReader(io.StringIO(text))}
    assert names == {"'=1+2", "plain"}
