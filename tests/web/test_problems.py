"""Errors as a client hears of them: status, words and headers."""

from __future__ import annotations

import httpx
import pytest

from hakaru.errors import EngineError, FilterError, HakaruError, InterruptedQuery, LakeError
from hakaru.web.problems import Busy, Refused, problem_of
from tests.web._site import Running


@pytest.mark.parametrize(
    ("error", "status", "title"),
    [
        (HakaruError("x"), 422, "This cannot be answered"),
        (FilterError("x"), 422, "The filter is wrong"),
        (LakeError("x"), 503, "The lake cannot be read"),
        (EngineError("x"), 503, "The lake cannot be read"),
        (InterruptedQuery("x"), 504, "The query took too long"),
        (Refused("x"), 403, "Access denied"),
        (Busy("x"), 503, "Too busy just now"),
    ],
)
def test_an_error_has_its_status_and_title(error: HakaruError, status: int, title: str) -> None:
    found = problem_of(error)
    assert (found.status, found.title) == (status, title)


def test_names_of_files_are_for_the_log_only() -> None:
    for kind in (LakeError, EngineError):
        assert "/home/ann" not in str(problem_of(kind("/home/ann/lake: cannot be read")))


def test_options_of_the_command_line_become_parameters() -> None:
    said = HakaruError("--min-run is below 0: --since 2018 and --cluster-wide stay")
    assert problem_of(said).detail == "min_run is below 0: since 2018 and cluster-wide stay"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("since=2018-02-01T00:00&until=2018-02-01T00:00", 422),  # a period of no length
        ("since=2018-02-01T00:00&until=2018-02-01T00:01", 200),
        ("since=2018-02-01&until=2018-02-01", 200),  # a day
        ("until=never", 422),
    ],
)
def test_a_period_ends_after_it_begins(ask: httpx.Client, query: str, status: int) -> None:
    assert ask.get(f"/api/v1/jobs?cluster=c&{query}").status_code == status


def test_a_stranger_hears_how_to_sign_in(closed_site: Running) -> None:
    with closed_site.client() as client:
        assert client.get("/api/v1/me").headers["www-authenticate"] == "Bearer"
    with closed_site.client("u1") as client:
        assert "www-authenticate" not in client.get("/api/v1/lake/rejects").headers
    with closed_site.client() as client:
        page = client.get("/sign-in", params={"next": "/jobs?queue=short"}).text
        assert 'name="next" value="/jobs?queue=short"' in page


def test_a_wrong_token_is_told_on_the_form(fresh_closed_site: Running) -> None:
    with fresh_closed_site.client(headers={"Accept": "text/html"}) as client:
        answer = client.post("/sign-in", data={"token": "wrong"})
    assert answer.status_code == 401
    assert 'role="alert">The token is unknown, revoked or expired.' in answer.text


def test_without_a_token_one_is_asked_to_sign_in(closed_site: Running) -> None:
    with closed_site.client() as client:
        problem = client.get("/api/v1/me").json()
    assert (problem["title"], problem["detail"]) == ("Sign in first", "sign in to see this app")
    assert problem["fix"].startswith("Sign in at /sign-in, or send `Authorization: Bearer TOKEN`.")
