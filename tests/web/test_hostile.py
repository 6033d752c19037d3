"""Every parameter is hostile: what cannot be meant well gets a 4xx and a word of help; nothing changes."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from hakaru.lake import Lake
from hakaru.web.app import create_app
from tests.web._site import Running, files_of

API = "/api/v1"
SQL = (
    "1=1; DROP TABLE jobs",
    "true) UNION SELECT * FROM jobs_stored --",
    "queue = 'a' OR read_csv('/etc/passwd') IS NOT NULL",
    "queue = (SELECT max(queue) FROM jobs)",
    "queue = getvariable('x')",
    "num_gpus = 1 ORDER BY 1",
    "COPY jobs TO '/tmp/x'",
    "(" * 500 + "num_gpus = 1" + ")" * 500,
    "num_gpus = " + "9" * 3900,
    "queue LIKE '%\\%'",
    "'; --",
    "$1",
    "{0}",
    "queue = '{0}' {1}",
    "num_gpus = 1e999",
    "submitted_at > 'yesterday'",
    "jobs.queue = 'a'",
    'queue = "a"',
    "NOT",
    "queue IN (",
    "\u202e\ufeff",
)
NAMES = ("../../etc/passwd", "c'; DROP", "..", "a/b", "c%00", "C" * 65, "-x", "c d", "")
RAW_PATHS = (
    "/api/v1/analyses/..%2f..%2fetc%2fpasswd",
    "/api/v1/analyses/%2e%2e",
    "/api/v1/analyses/queues/../jobs",
    "/static/..%2f..%2fsettings.py",
    "/static/%2e%2e/app.py",
    "//api/v1/jobs",
    "/api/v1/analyses/queues%00",
    "/api/v1/analyses/%ff",
    "/api/v1/analyses/" + "a" * 9000,
    "/api/v1/jobs?q=%00",
    "/api/v1/jobs?q=%ff%fe",
    "/api/v1/jobs?q=%C0%AE",
    "/api/v1/jobs?q=%0d%0aSet-Cookie:x",
    "/api/v1/jobs?" + "a=1&" * 3000,
    "/api/v1/jobs?q=" + "a" * 7000,
    "/api/v1/job?cluster=c&job_id=%00",
    "/api/v1/jobs?%00=1",
    "/api/v1/jobs?__proto__=1",
    "/api/v1/analyses/queues?param.=1",
    "/api/v1/analyses/walltime?cluster=c&param.short_h=nan",
    "/api/v1/analyses/walltime?cluster=c&param.short_h=1;DROP",
    "/api/v1/analyses/walltime?cluster=c&param.short_h=1&param.short_h=2",
    "/api/v1/analyses/load?cluster=c&param.bins=99999999999999999999",
    "/api/v1/analyses/users?cluster=c&param.sort=num_jobs;--",
)


@pytest.fixture(autouse=True)
def unchanged(site: Lake) -> object:
    before = files_of(site.root)
    yield
    assert files_of(site.root) == before


def raw(
    server: Running, target: str, method: str = "GET", body: bytes | None = None
) -> tuple[int, str]:
    """The target as it is written, which a polite client would tidy."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection.putrequest(method, target)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def assert_refused(status: int, text: str) -> None:
    assert 400 <= status < 500, (status, text[:500])
    problem = json.loads(text)
    assert problem["status"] == status and problem["detail"]
    assert "Traceback" not in text and "duckdb" not in text.lower() and ".py" not in text


@pytest.mark.parametrize("where", SQL, ids=range(len(SQL)))
@pytest.mark.parametrize("path", ["jobs", "analyses/queues", "overview", "people", "figures/waits"])
def test_a_filter_is_not_sql(open_site: Running, path: str, where: str) -> None:
    assert_refused(*raw(open_site, f"{API}/{path}?cluster=c&where={quote(where)}"))


@pytest.mark.parametrize("target", RAW_PATHS, ids=range(len(RAW_PATHS)))
def test_odd_addresses(open_site: Running, target: str) -> None:
    status, text = raw(open_site, target)
    assert 400 <= status < 500, (status, text[:300])
    assert "Traceback" not in text


@pytest.mark.parametrize("name", NAMES)
def test_names_of_clusters(open_site: Running, name: str) -> None:
    assert_refused(*raw(open_site, f"{API}/jobs?cluster={quote(name)}"))
    assert_refused(*raw(open_site, f"{API}/job?job_id=1&cluster={quote(name)}"))


@pytest.mark.parametrize(
    "query",
    [
        "size=201", "size=0", "size=1e3", "page=0", "page=99999999999999999999", "page=-1",
        "sort=run_s;DROP", "sort=nodes", "order=up", "min_gpus=-1", "min_gpus=99999999999999999999",
        "min_run=nan", "min_run=inf", "min_run=-1", "state=lost", "state=", "since=yesterday",
        "since=0001-01-01", "until=9999-12-31", "since=2018-02-01&until=2018-01-01", "since=&until=",
        "user=", "queue=" + "q" * 257, "nope=1", "Cluster=c", "cluster[]=c", "q=", "queue=a&queue=b&x",
        "since=2018-01-01T00:00:00%2B99:99", "min_gpus=1.5", "max_gpus=true", "user=a%0ab",
        "&".join("cluster=c" for _ in range(21)), "sort=submitted_at&sort=;",
    ],
)  # fmt: skip
def test_parameters_out_of_their_bounds(open_site: Running, query: str) -> None:
    assert_refused(*raw(open_site, f"{API}/jobs?{query}"))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"])
def test_nothing_can_be_written(open_site: Running, method: str) -> None:
    for path in ("jobs", "analyses/queues", "lake", "lake/rejects", "job"):
        status, _ = raw(open_site, f"{API}/{path}", method, b"")
        assert status in (404, 405)


def test_large_bodies_are_not_read(open_site: Running) -> None:
    connection = http.client.HTTPConnection(urlsplit(open_site.url).netloc, timeout=60)
    connection.putrequest("POST", "/sign-in")
    connection.putheader("Content-Length", "99999999999")
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_odd_job_ids_are_only_ids(open_site: Running) -> None:
    for id in ("../../1", "1' OR '1'='1", "%", "_", "{0}", "1;", "\U0001f4a9", "a" * 256):
        status, text = raw(open_site, f"{API}/job?cluster=c&job_id={quote(id, safe='')}")
        assert status == 404, text


def test_values_are_bound(open_site: Running) -> None:
    for value in ("x' OR '1'='1", "{0}", "%", "getvariable('x')", "\\", '"'):
        for name in ("queue", "user", "account", "application", "q"):
            status, text = raw(open_site, f"{API}/jobs?cluster=c&{name}={quote(value, safe='')}")
            assert (status, json.loads(text)["num_rows"]) == (200, 0), (name, value)


DESCRIPTION = create_app(Lake(Path("no-such-workspace"))).openapi()
POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
# a row a class, a bin, an hour, a job, a person (which a user is refused): one of each shape
IDS = ("walltime", "load", "arrivals-by-week", "job-shapes", "users")


def parameters(path: str) -> set[str]:
    return {each["name"] for each in DESCRIPTION["paths"][path]["get"].get("parameters", [])}


OPERATIONS = [
    (role, path, mode, id)
    for role in ("operator", "u1")
    for path in DESCRIPTION["paths"]
    for mode in (POSITIVE, NEGATIVE)
    for id in (IDS if "id" in parameters(path) and mode is POSITIVE else ("",))
    # without a parameter nothing can be wrong, and what is wrong is refused before anybody is looked at
    if mode is POSITIVE or (parameters(path) and role == "operator")
]


@pytest.mark.parametrize(("role", "path", "mode", "id"), OPERATIONS, ids=str)
def test_the_api_is_as_described(
    closed_site: Running, role: str, path: str, mode: schemathesis.GenerationMode, id: str
) -> None:
    """Whatever fits the description, or just does not, is answered as described and never by a 5xx."""
    operation = schemathesis.openapi.from_dict(DESCRIPTION)[path]["GET"]
    named = "cluster" in parameters(path) and mode is POSITIVE
    known = {"query": {"cluster": "c"}} if named else {}
    if id:
        known["path_parameters"] = {"id": id}
    strategy = operation.as_strategy(generation_mode=mode, **known)
    headers = {"Authorization": f"Bearer {closed_site.secrets[role]}"}

    @given(case=strategy)
    @settings(
        max_examples=10 if id else 15,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def check(case: schemathesis.Case) -> None:
        case.call_and_validate(
            base_url=closed_site.url.rstrip("/"),
            headers=headers,
            checks=[not_a_server_error, status_code_conformance, response_schema_conformance],
        )

    check()
