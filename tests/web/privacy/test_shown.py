"""What the role user is shown of others: only rows of five or more people together."""

from __future__ import annotations

import httpx
import pytest

from hakaru.web.privacy import RULES
from tests.web.privacy._ask import API, get


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
