"""The options of an ingest: checked first, the same for every source, and kept with the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.errors import HakaruError, SourceError
from hakaru.lake import Lake
from hakaru.settings import Cluster, load
from hakaru.sources.ingest import Summary, ingest
from tests._cli import hakaru

DATA = Path(__file__).resolve().parents[1] / "data"
SWF = "; UnixStartTime: 1500000000\n9 130 1 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n"
SACCT = "JobID|State|Submit\n7|FAILED|1514764800\n"
AAIC = (
    "id,user,group,queue,nodes,gpus,walltime_req,termcode,time_submit,time_start,time_end,waittime,walltime"
    "\n1,1,0,0,1,2,7200,0,1514764800,1514764810,1514768410,10,3600\n"
)
TABLE = "job_id,submitted_at,state\n1,2018-01-01 09:00:00,completed\n"
MAPPING = '[columns]\njob_id = "job_id"\nsubmitted_at = "submitted_at"\nstate = "state"\n'
TEXTS = {"log.swf": SWF, "sacct.txt": SACCT, "aaic.csv": AAIC, "table.csv": TABLE}


def read(lake: Lake, folder: Path, name: str, **options: str) -> Summary:
    path = folder / name
    path.write_text(TEXTS[name])
    given: dict[str, object] = dict(options)
    if name == "table.csv":
        given["mapping"] = folder / "mapping.toml"
        (folder / "mapping.toml").write_text(MAPPING)
    format = "table" if name == "table.csv" else None
    return ingest(lake, [path], "c", format=format, options=given)


def site(lake: Lake) -> Cluster:
    return load(lake.workspace, lake.facts()).cluster("c")


@pytest.mark.parametrize("name", TEXTS)
def test_the_zone_is_the_sites_whatever_the_source(name: str, lake: Lake, tmp_path: Path) -> None:
    summary = read(lake, tmp_path, name, zone="Europe/Paris")
    assert (site(lake).zone, site(lake).has_zone) == ("Europe/Paris", True)
    assert summary.warnings == []


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("zone", ["Asia/Tokio", "JST+9:00nonsense", "", "localtime", "posix/Japan"])
def test_a_wrong_zone_is_refused_before_anything_is_read(
    name: str, zone: str, lake: Lake, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match="--zone: expected an IANA time zone") as caught:
        read(lake, tmp_path, name, zone=zone)
    assert repr(zone) in str(caught.value)
    assert ("did you mean Asia/Tokyo" in str(caught.value)) == (zone == "Asia/Tokio")
    assert lake.clusters() == [] and lake.facts() == {}


def test_a_wrong_zone_is_refused_before_a_missing_file(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="--zone"):
        ingest(lake, [tmp_path / "none"], "c", options={"zone": "Mars/Base"})


@pytest.mark.parametrize("name", ["log.swf", "sacct.txt"])
def test_without_a_zone_the_ingest_says_how_to_set_it(
    name: str, lake: Lake, tmp_path: Path
) -> None:
    (warning,) = read(lake, tmp_path, name).warnings
    assert "the time zone of c is not known: hours, weekdays and days are shown in UTC" in warning
    assert f"Set it in {lake.workspace / 'hakaru.toml'}" in warning
    lines = [line.strip() for line in warning.splitlines()[-2:]]
    (lake.workspace / "hakaru.toml").write_text("\n".join(lines))  # as the warning has it
    assert (site(lake).zone, site(lake).has_zone) == ("Asia/Tokyo", True)
    assert read(lake, tmp_path, name).warnings == []


def test_aaic_knows_its_zone(lake: Lake, tmp_path: Path) -> None:
    assert read(lake, tmp_path, "aaic.csv").warnings == []
    assert site(lake).zone == "Asia/Tokyo"


def test_a_zone_given_once_stays(lake: Lake, tmp_path: Path) -> None:
    """Though the same file, and others with a zone in their header, are read without it later."""
    read(lake, tmp_path, "sacct.txt", zone="Europe/Paris")
    for name in ("sacct.txt", "log.swf", "aaic.csv"):
        assert read(lake, tmp_path, name).warnings == []
        assert site(lake).zone == "Europe/Paris"


@pytest.mark.parametrize("first", TEXTS)
def test_another_zone_is_refused_and_names_both(first: str, lake: Lake, tmp_path: Path) -> None:
    """It would move the hours of the jobs that are there, in whatever format the new ones come."""
    read(lake, tmp_path, first, zone="Asia/Tokyo")
    before = lake.version()
    for name in TEXTS:
        with pytest.raises(SourceError) as caught:
            read(lake, tmp_path, name, zone="America/New_York")
        told = str(caught.value)
        assert "the time zone of c is Asia/Tokyo: with --zone America/New_York the hours" in told
    assert lake.version() == before and site(lake).zone == "Asia/Tokyo"
    other = next(name for name in TEXTS if name != first)
    assert read(lake, tmp_path, other, zone="Asia/Tokyo").warnings == []
    assert read(lake, tmp_path, first).upsert.num_unchanged == 1


def refused(lake: Lake, tmp_path: Path) -> list[str]:
    """The lines of the message on a table of New York in a cluster of Tokyo."""
    read(lake, tmp_path, "sacct.txt", zone="Asia/Tokyo")
    with pytest.raises(SourceError) as caught:
        read(lake, tmp_path, "table.csv", zone="America/New_York")
    return str(caught.value).splitlines()


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_the_advised_setting_lets_the_log_be_read_in_its_zone(
    zone: str, lake: Lake, tmp_path: Path
) -> None:
    lines = [line.strip() for line in refused(lake, tmp_path) if line.startswith("      ")]
    assert lines == ["[clusters.c]", 'zone = "Asia/Tokyo"']
    toml = "\n".join(lines).replace("Asia/Tokyo", zone)
    (lake.workspace / "hakaru.toml").write_text(toml)
    summary = read(lake, tmp_path, "table.csv", zone="America/New_York")
    assert summary.since is not None and summary.since.isoformat() == "2018-01-01T14:00:00+00:00"
    assert summary.upsert.num_new == 1 and site(lake).zone == zone


def test_the_advised_command_lets_the_logs_be_read_in_another_zone(
    lake: Lake, tmp_path: Path
) -> None:
    command = refused(lake, tmp_path)[-1].split()
    assert command[:3] == ["hakaru", "lake", "forget"]
    assert hakaru(*command[1:], "--yes").exit_code == 0
    for name in ("sacct.txt", "table.csv"):
        assert read(lake, tmp_path, name, zone="America/New_York").warnings == []
    assert site(lake).zone == "America/New_York"


def test_a_zone_that_a_header_gave_is_not_moved_by_an_option(lake: Lake, tmp_path: Path) -> None:
    read(lake, tmp_path, "aaic.csv")
    with pytest.raises(SourceError, match="the time zone of c is Asia/Tokyo: with --zone Europe/"):
        read(lake, tmp_path, "sacct.txt", zone="Europe/Paris")


def test_a_zone_may_be_given_later_where_none_is_known(lake: Lake, tmp_path: Path) -> None:
    read(lake, tmp_path, "sacct.txt")
    assert read(lake, tmp_path, "sacct.txt", zone="Europe/Paris").warnings == []
    assert site(lake).zone == "Europe/Paris"


def test_relative_dates_have_no_hours_that_a_zone_could_move(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "old.swf"
    path.write_text(SWF.splitlines()[1] + "\n")
    ingest(lake, [path], "c", options={"zone": "Asia/Tokyo"})
    ingest(lake, [path], "c", options={"zone": "Europe/Paris", "start": "2014-03-01"})
    assert site(lake).zone == "Europe/Paris"


def swf_of(lake: Lake, path: Path, zone: str) -> list[str]:
    path.write_text(f"; TimeZoneString: {zone}\n{SWF}")
    return ingest(lake, [path], "c").warnings


@pytest.mark.parametrize(
    ("first", "then", "shown"),
    [
        ("1.swf", "2.swf", "Europe/Paris"),  # the new zone is taken, and hours move
        ("2.swf", "1.swf", "Asia/Tokyo"),  # the stored one stays
        ("1.swf", "1.swf", "Europe/Paris"),
    ],
)
def test_headers_of_several_zones_are_warned_of(
    lake: Lake, tmp_path: Path, first: str, then: str, shown: str
) -> None:
    assert swf_of(lake, tmp_path / first, "Asia/Tokyo") == []
    (warning,) = swf_of(lake, tmp_path / then, "Europe/Paris")
    assert site(lake).zone == shown
    (other,) = {"Asia/Tokyo", "Europe/Paris"} - {shown}
    assert f"the logs of c are of several time zones ({shown}, {other})" in warning
    assert f"of all its jobs are shown in {shown}" in warning
    lines = [line.strip() for line in warning.splitlines()[-2:]]
    (lake.workspace / "hakaru.toml").write_text("\n".join(lines))  # as the warning has it
    assert site(lake).zone == other
    assert swf_of(lake, tmp_path / then, "Europe/Paris") == []


def test_hakaru_toml_has_the_last_word_and_the_ingest_says_so(lake: Lake, tmp_path: Path) -> None:
    (lake.workspace / "hakaru.toml").write_text('[clusters.c]\nzone = "Asia/Tokyo"\n')
    (warning,) = read(lake, tmp_path, "sacct.txt", zone="Europe/Paris").warnings
    assert "hakaru.toml sets the zone of c to Asia/Tokyo" in warning


def test_a_table_without_a_zone_has_that_of_the_site(lake: Lake, tmp_path: Path) -> None:
    (lake.workspace / "hakaru.toml").write_text('[clusters.c]\nzone = "Asia/Tokyo"\n')
    summary = read(lake, tmp_path, "table.csv")
    assert summary.since is not None and summary.since.isoformat() == "2018-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("sacct.txt", "start", "2014-03-01"),
        ("aaic.csv", "start", "2014-03-01"),
        ("aaic.csv", "fields", "JobID,State,Submit"),
        ("log.swf", "mapping", "x.toml"),
    ],
)
def test_an_option_that_no_file_needs_is_refused(
    name: str, option: str, value: str, lake: Lake, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(TEXTS[name])
    source = {"sacct.txt": "sacct", "aaic.csv": "aaic", "log.swf": "swf"}[name]
    with pytest.raises(SourceError, match=f"--{option} does not apply to {source}"):
        ingest(lake, [path], "c", format=source, options={option: value})


def test_a_start_that_is_no_date_is_refused_first(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="--start: 'March' is not a date or time"):
        ingest(lake, [tmp_path / "none"], "c", options={"start": "March"})


def test_a_setting_in_a_header_that_is_none_does_not_reach_the_lake(
    lake: Lake, tmp_path: Path
) -> None:
    path = tmp_path / "log.swf"
    path.write_text('; Note: hakaru.facts {"zone": "Asia/Tokio"}\n' + SWF)
    with pytest.raises(HakaruError, match="Asia/Tokio"):
        ingest(lake, [path], "c")
    assert lake.facts() == {} and load(lake.workspace, lake.facts()).cluster("c") == Cluster()
