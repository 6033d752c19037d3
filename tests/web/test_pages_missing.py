"""A log of which many rows could not be read: every page of the cluster says so, and so does the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.lake import Lake
from hakaru.sources import ingest
from hakaru.web.app import create_app
from tests.cli.test_rejected import log
from tests.web._site import running


@pytest.mark.parametrize(("num_bad", "share"), [(56, "56.0"), (1, None)])
def test_pages_and_api_say_what_is_missing(tmp_path: Path, num_bad: int, share: str | None) -> None:
    lake = Lake.create(tmp_path / "w")
    ingest(lake, [log(tmp_path / "a.csv", 100 - num_bad, num_bad)], "c")
    with running(create_app(lake)) as server, server.client() as client:
        for page in ("/", "/jobs", "/data"):
            text = client.get(page, headers={"Accept": "text/html"}).text
            assert ("Rows are missing." in text) == (share is not None), page
            assert share is None or f"{share} % of the rows of this log could not be read" in text
        figure = client.get("/workload/states", headers={"Accept": "text/html"}).text
        assert ("<code>hakaru lake status</code>" in figure) == (share is not None)
        (cluster,) = client.get("/api/v1/clusters").json()["clusters"]
        assert cluster["missing"] == (0.56 if share else None)
        for path in ("overview", "findings"):
            (told,) = client.get(f"/api/v1/{path}").json()["clusters"]
            assert told["missing"] == cluster["missing"], path
        table = client.get("/api/v1/analyses/queues").json()
        assert table["missing"] == ({"c": 0.56} if share else {})


@pytest.mark.parametrize("path", ["/", "/jobs", "/compare", "/data"])
def test_a_page_of_several_clusters_says_it_of_each_once(tmp_path: Path, path: str) -> None:
    lake = Lake.create(tmp_path / "w")
    for name, num_bad in (("a", 20), ("b", 56), ("c", 0)):
        ingest(lake, [log(tmp_path / f"{name}.csv", 100 - num_bad, num_bad)], name)
    with running(create_app(lake)) as server, server.client() as client:
        page = client.get(path, headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert page.text.count("Rows are missing.") == 2
    assert "20.0 % of the rows of the log of a could not be read" in page.text
    assert "56.0 % of the rows of the log of b could not be read" in page.text
