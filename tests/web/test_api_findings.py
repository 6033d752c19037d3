"""What stands out, through the API: computed sentences, and for a user only of what they may see."""

from __future__ import annotations

from typing import Any

from tests.web._site import Running


def told(server: Running, token: str, **params: Any) -> dict[str, Any]:
    with server.client(token) as client:
        answer = client.get("/api/v1/findings", params={"cluster": "c"} | params)
    assert answer.status_code == 200, answer.text
    (cluster,) = answer.json()["clusters"]
    return {each["id"]: each for each in cluster["findings"]}


def test_sentences_hold_the_numbers_behind_them(closed_site: Running) -> None:
    """25 of 43 jobs took one GPU for an hour, 18 took two for half an hour: 25 of 43 hours."""
    single = told(closed_site, "operator")["single-pe"]
    assert single["values"] == {"share": 25 / 43, "share_hours": 25 / 43}
    assert "58.1 %" in single["text"] and single["analysis"] == "parallelism"


def test_a_user_hears_only_what_hides_nobody(closed_site: Running) -> None:
    """Nothing of an answer that leaves jobs out, and no count of people; of their own jobs, everything."""
    mine, all_of_it = told(closed_site, "u1"), told(closed_site, "operator")
    assert {"waits"} <= set(mine) <= set(all_of_it)
    assert mine["waits"]["values"] == {"p90": 60.0}
    assert not {"single-pe", "over-request"} & set(
        mine
    )  # February's cell of two queues is left out
    assert not [id for id in mine if id.startswith("beside-") or id == "few-users"]
    assert told(closed_site, "u1", user="u1")["single-pe"]["values"]["share"] == 4 / 7


def test_too_few_people_are_no_finding(closed_site: Running) -> None:
    """`tiny` is a cluster of two people: a user hears nothing of it, an operator does."""
    assert told(closed_site, "u1", cluster="tiny") == {}
    assert "single-pe" in told(closed_site, "operator", cluster="tiny")
    with closed_site.client("u1") as client:
        answer = client.get("/api/v1/findings", params={"user": "u2"}).json()
        assert [each["findings"] for each in answer["clusters"]] == [[], []]
        assert client.get("/api/v1/findings", params={"x": "1"}).status_code == 422
