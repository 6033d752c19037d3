"""Mappings that are wrong, told all at once with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.errors import SettingsError, SourceError
from tests.sources.table._site import MINIMAL, Site


def test_every_problem_of_a_mapping_is_told_at_once(site: Site) -> None:
    mapping = """
        [columns]
        jobid = "id"
        user = "ownr"
        num_gpus = { column = "gpus", unit = "h" }
        requested_s = { column = "limit", unit = "hours" }
        ended_at = { column = "at", format = "%Q" }
        queue = { value = 3 }
        memory_mib = 5
        cluster = "id"
        [states]
        done = "complete"
        [time]
        zone = "Tokyo"
        [csv]
        delimiter = ";;"
        [cluster]
        gpus_per_node = 0
        [extra]
    """
    with pytest.raises(SettingsError) as caught:
        site.read("id,at,owner,gpus,limit\n", mapping)
    told = str(caught.value)
    assert "mapping.toml (for log.csv) has 15 problems:" in told
    for problem in (
        "[columns] jobid: there is no canonical column 'jobid'; did you mean 'job_id'",
        "[columns] user: there is no source column 'ownr'; did you mean 'owner'",
        "known: id, at, owner, gpus, limit",
        "[columns] num_gpus: there is no key 'unit'; ",
        "[columns] requested_s: unknown unit 'hours'; known: ns, us, ms, s, min, h, d, duration",
        "[columns] ended_at: format %Q in '%Q' is not known; write e.g. %Y/%m/%d",
        "[columns] queue: value: expected a text, found 3",
        '[columns] memory_mib: expected "column" or { column = … }, found 5',
        "[columns] cluster: the cluster's name is given by --cluster",
        "[columns] job_id: missing; ",
        "[columns] submitted_at: missing; ",
        "[states]: no column holds the state",
        "[time] zone: expected an IANA time zone such as Asia/Tokyo, found 'Tokyo'",
        "[csv] delimiter: expected one character, found ';;'",
        "[cluster] gpus_per_node: expected a whole number of at least 1, found 0",
        "[extra]: unknown section; known: columns, time",
    ):
        assert problem in told
    assert site.lake.status()[0].num_rows == 0


@pytest.mark.parametrize(
    ("addition", "problem"),
    [
        (
            'state = "x"\n[states]\ndone = "complete"',
            "no state 'complete'; did you mean 'completed'",
        ),
        ('state = "x"\n[states]\nok = "failed"\nOK = "completed"', "OK: given twice"),
        ('state = { value = "done" }', "no state 'done'"),
        ('user = { column = "x", value = "me" }', "either `column` or a constant `value`"),
        ("user = {}", "either `column` or a constant `value`"),
        ('num_gpus = { column = ["x", "id"] }', "expected the name of one column"),
        ('num_gpus = { column = "x", times = "nope" }', "times: there is no source column 'nope'"),
        ('num_gpus = { column = "x", times = 0 }', "times: expected a column or a number, found 0"),
        ('num_gpus = { value = "two" }', "value: expected a whole number"),
        ('run_s = { value = "long" }', "value: expected a number"),
        ("user = { line = true }", "there is no key 'line'"),
        ('ended_at = { column = "x", unit = "s", format = "%Y" }', "not both"),
        (
            'ended_at = { column = "x", unit = "week" }',
            "unknown unit 'week'; known: ns, us, ms, s, min",
        ),
        ('[time]\nstart = "May"', "[time] start: expected e.g. \"2018-04-01\", found 'May'"),
        ("[time]\nstart = 5", "[time] start: expected e.g."),
        ('nodes = { column = "x", separator = "" }', "separator: expected a text"),
        ('queue = { column = "x", words = [1] }', "words: expected"),
        ('queue = { column = "x", missing = "-1" }', "missing: expected words"),
        ('user = "twin"', "2 columns of the file are called 'twin'"),
        ("[values]\nmissing = 3", "[values]: missing: expected words"),
        ("[time]\nzones = 1", "[time] zones: there is no key 'zones'; did you mean 'zone'"),
        ("[csv]\nskip = -1", "[csv] skip: expected a number of lines"),
        ("[csv]\nnames = 'a'", "[csv] names: expected a list of column names"),
    ],
)
def test_a_problem_of_a_mapping(site: Site, addition: str, problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        site.read("id,at,x,twin,twin\n1,2,3,4,5\n", MINIMAL + addition)
    assert "has 1 problem:" in str(caught.value)
    assert problem in str(caught.value)


def test_a_mapping_that_is_no_toml_or_no_file(site: Site, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"mapping\.toml: the mapping is not valid TOML"):
        site.read("id,at\n1,2\n", "[columns\n")
    with pytest.raises(SettingsError, match=r"none\.toml: the mapping cannot be read: No such"):
        site.read("id,at\n1,2\n", tmp_path / "none.toml")


def test_a_log_without_a_mapping_says_how_to_get_one(site: Site) -> None:
    with pytest.raises(SourceError, match="needs a mapping") as caught:
        site.read("id,at\n1,2\n", None)
    assert "--format table --guess" in str(caught.value)
