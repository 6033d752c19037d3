"""What is wrong in hakaru.toml: every kind of wrong value is named, and all problems at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru._values import check_zone, is_zone
from hakaru.errors import SettingsError
from hakaru.settings import Settings, load
from tests._cli import hakaru


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        (tmp_path / "hakaru.toml").write_text(text, encoding="utf-8")
        load(tmp_path)
    first, *listed, last = str(caught.value).splitlines()
    count = "1 problem" if len(listed) == 1 else f"{len(listed)} problems"
    assert first == f"{tmp_path / 'hakaru.toml'} has {count}:"
    assert "docs/reference/settings.md" in last
    return [line.strip() for line in listed]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("colour = 1", "colour: unknown key; known: workspace, engine, ingest, web, clusters"),
        ("engine = 5", "engine: expected a table, found 5"),
        ("engine.thread = 5", "engine.thread: unknown key; known: threads, memory, spark_master"),
        ("engine.threads = 0", "engine.threads: expected a whole number of at least 1, found 0"),
        ("engine.threads = true", "engine.threads: expected a whole number"),
        ('engine.threads = "2"', "engine.threads: expected a whole number"),
        ("engine.threads = 1.5", "engine.threads: expected a whole number"),
        ("web.hosts = 'a'", "web.hosts: expected a list of texts, found 'a'"),
        ("web.hosts = ['a', 1]", "web.hosts: expected a text, found 1"),
        ("web.operators = ['']", "web.operators: expected a text, found ''"),
        ("web.sessions = 0", "web.sessions: expected a whole number of at least 1, found 0"),
        ("web.cache_mb = 0", "web.cache_mb: expected a whole number of at least 1, found 0"),
        ("web.query_seconds = 0", "web.query_seconds: expected a number above 0, found 0"),
        ("web.query_seconds = '5'", "web.query_seconds: expected a number above 0, found '5'"),
        ("web.address_connections = 0", "web.address_connections: expected a whole number"),
        ("web.host = 'a'", "web.host: unknown key; known: sessions, query_seconds, cache_mb"),
        ("ingest.max = 1", "ingest.max: unknown key; known: max_missing, max_unpacked, max_ratio"),
        ("workspace.groups = 'a'", "workspace.groups: unknown key; known: group"),
        ("workspace.group = ''", "workspace.group: expected a text, found ''"),
        ("web.proxy_header = 'X-User'", "web: proxy_header and proxy_address go together"),
        ("web.proxy_address = '10.0.0.5'", "web: proxy_header and proxy_address go together"),
        (
            "web.proxy_address = 'proxy'\nweb.proxy_header = 'X-User'",
            "web.proxy_address: expected an IP address",
        ),
        (
            "web.proxy_header = 'a:b'\nweb.proxy_address = '::1'",
            "web.proxy_header: expected a header's name",
        ),
        (
            f"web.proxy_header = '{'X' * 65}'\nweb.proxy_address = '::1'",
            "web.proxy_header: expected a header's name",
        ),
        ("clusters.a.users_per_file = 1", "clusters.a.users_per_file: expected true or false"),
        ("clusters.a.relative_dates = 'no'", "clusters.a.relative_dates: expected true or false"),
        ("engine.memory = 2", 'engine.memory: expected a size such as "2GB", found 2'),
        (
            'ingest.max_missing = "101%"',
            'ingest.max_missing: expected a share such as "1%" or 0.01',
        ),
        (
            "ingest.max_missing = 1",
            'ingest.max_missing: 1 could be "1%" or "100%": write it with %',
        ),
        ("ingest.max_missing = -0.1", "ingest.max_missing: expected a share"),
        ("ingest.max_missing = nan", "ingest.max_missing: expected a share"),
        ("ingest.max_missing = 1.0", "ingest.max_missing: 1.0 could be"),
        ("ingest.max_ratio = inf", "ingest.max_ratio: expected a number above 0, found inf"),
        ("ingest.max_missing = true", "ingest.max_missing: expected a share"),
        ('ingest.max_missing = "few"', "ingest.max_missing: expected a share"),
        ("ingest.max_unpacked = 5", "ingest.max_unpacked: expected a size"),
        ("ingest.max_ratio = 0", "ingest.max_ratio: expected a number above 0"),
        ('engine.memory = "lots"', "engine.memory: expected a size"),
        ('engine.memory = "2TB"', "engine.memory: expected a size"),
        ('engine.memory = "-2GB"', "engine.memory: expected a size"),
        ('engine.memory = "0GB"', "engine.memory: expected a size"),
        ('engine.memory = "2GB\'; DROP"', "engine.memory: expected a size"),
        ('engine.spark_master = ""', "engine.spark_master: expected a text, found ''"),
        ("engine.spark_master = 1", "engine.spark_master: expected a text"),
        ("clusters = []", "clusters: expected a table, found []"),
        ("clusters.c = 1", "clusters.c: expected a table, found 1"),
        ("clusters.c.sone = 1", "clusters.c.sone: unknown key; known: zone, unit"),
        ('clusters.c.zone = "Tokyo"', "clusters.c.zone: expected an IANA time zone"),
        ("clusters.c.zone = 9", "clusters.c.zone: expected an IANA time zone"),
        ('clusters.c.zone = "../../etc/passwd"', "clusters.c.zone: expected an IANA time zone"),
        (
            'clusters.c.zone = "Asia/Tokio"',
            "clusters.c.zone: expected an IANA time zone such as Asia/Tokyo, found 'Asia/Tokio'; "
            "did you mean Asia/Tokyo",
        ),
        ('clusters.c.zone = "localtime"', "clusters.c.zone: expected an IANA time zone"),
        ('clusters.c.zone = "Factory"', "clusters.c.zone: expected an IANA time zone"),
        ('clusters.c.zone = "right/Asia/Tokyo"', "clusters.c.zone: expected an IANA time zone"),
        ('clusters.c.zone = "posix/Asia/Tokyo"', "clusters.c.zone: expected an IANA time zone"),
        ('clusters.c.zone = ""', "clusters.c.zone: expected an IANA time zone"),
        ('clusters.c.unit = "node"', 'clusters.c.unit: expected "gpu" or "cpu", found \'node\''),
        ("clusters.c.gpus_per_node = -1", "clusters.c.gpus_per_node: expected a whole number"),
        ("clusters.c.cpus_per_node = 0", "clusters.c.cpus_per_node: expected a whole number"),
        ("clusters.c.working_hours = [18, 9]", "clusters.c.working_hours: expected two hours"),
        ("clusters.c.working_hours = [9]", "clusters.c.working_hours: expected two hours"),
        ("clusters.c.working_hours = [9, 9]", "clusters.c.working_hours: expected two hours"),
        ("clusters.c.working_hours = [-1, 9]", "clusters.c.working_hours: expected two hours"),
        ("clusters.c.working_hours = [9, 12, 18]", "clusters.c.working_hours: expected two hours"),
        ("clusters.c.working_hours = [9.5, 18]", "clusters.c.working_hours: expected two hours"),
        ("clusters.c.working_hours = [9, 25]", "clusters.c.working_hours: expected two hours"),
        ("clusters.c.working_hours = 9", "clusters.c.working_hours: expected two hours"),
        ("clusters.c.working_hours = [true, 9]", "clusters.c.working_hours: expected two hours"),
        ('clusters.c.nodes = "many"', "clusters.c.nodes: expected a number or a list"),
        ("clusters.c.nodes = 0", "clusters.c.nodes: expected a whole number"),
        ("clusters.c.nodes = true", "clusters.c.nodes: expected a whole number"),
        ("clusters.c.nodes = [1]", "clusters.c.nodes: expected {since = 2018-01-01, count = 38}"),
        ("clusters.c.nodes = [{since = 2018-01-01}]", "clusters.c.nodes: expected {since"),
        ("clusters.c.nodes = [{count = 1, x = 2}]", "clusters.c.nodes: expected {since"),
        ('clusters.c.nodes = [{since = "soon", count = 1}]', "clusters.c.nodes: expected a date"),
        ("clusters.c.nodes = [{since = 5, count = 1}]", "clusters.c.nodes: expected a date"),
        ("clusters.c.nodes = [{count = 1}, {count = 2}]", "clusters.c.nodes: the dates of `since`"),
        (
            "clusters.c.nodes = [{since = 2019-01-01, count = 1}, {since = 2018-01-01, count = 2}]",
            "clusters.c.nodes: the dates of `since` must rise",
        ),
        (
            "clusters.c.gpus = [{since = 2019-01-01, count = 1}, {since = 2019-01-01, count = 2}]",
            "clusters.c.gpus: the dates of `since` must rise",
        ),
        (
            "clusters.c.cpus = [{since = 2019-01-01, count = 1}, {count = 2}]",
            "clusters.c.cpus: the dates of `since` must rise",
        ),
        ("clusters.c.nodes = [{count = 0}]", "clusters.c.nodes: expected a whole number"),
        ("clusters.c.queues = 1", "clusters.c.queues: expected a table, found 1"),
        ("clusters.c.queues.q = 1", "clusters.c.queues.q: expected a table, found 1"),
        ("clusters.c.queues.q.max = 1", "clusters.c.queues.q.max: unknown key"),
        ("clusters.c.queues.q.max_gpus = 0", "clusters.c.queues.q.max_gpus: expected a whole"),
        ("clusters.c.queues.q.max_nodes = 1.5", "clusters.c.queues.q.max_nodes: expected a whole"),
        ("clusters.c.queues.q.max_walltime_h = 0", "clusters.c.queues.q.max_walltime_h: expected"),
        ("clusters.c.queues.q.max_walltime_h = inf", "clusters.c.queues.q.max_walltime_h: expe"),
        ("clusters.c.queues.q.max_walltime_h = nan", "clusters.c.queues.q.max_walltime_h: expe"),
        ("clusters.c.queues.q.max_walltime_h = true", "clusters.c.queues.q.max_walltime_h: exp"),
        ('clusters."a b".unit = "gpu"', "clusters.a b: a cluster's name has only letters"),
        ('clusters."".unit = "gpu"', "clusters.: a cluster's name must not be empty"),
        ('clusters." ".unit = "gpu"', "clusters. : a cluster's name must not be empty"),
        ('clusters."x\'y".nodes = 1', "clusters.x'y: a cluster's name has only letters"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(
    tmp_path: Path, text: str, problem: str
) -> None:
    (found,) = problems(tmp_path, text)
    assert found.startswith(problem)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        """
        colour = "red"
        [engine]
        threads = -1
        memory = "big"
        [clusters.c]
        zone = "Mars"
        queues.q.max_gpus = "all"
        [clusters.d]
        nodes = []
        working_hours = [5, 5]
        """,
    )
    assert [line.split(":")[0] for line in found] == [
        "colour",
        "engine.threads",
        "engine.memory",
        "clusters.c.zone",
        "clusters.c.queues.q.max_gpus",
        "clusters.d.working_hours",
    ]


@pytest.mark.parametrize("content", [b"[engine", b"a = ", b"\xff\xfe", b"a = 1\na = 2\n"])
def test_what_is_not_toml_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "hakaru.toml").write_bytes(content)
    with pytest.raises(SettingsError, match=r"hakaru\.toml: not valid TOML"):
        load(tmp_path)


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "hakaru.toml").mkdir()
    with pytest.raises(SettingsError, match=r"hakaru\.toml: cannot be read: Is a directory"):
        load(tmp_path)


@pytest.mark.parametrize(
    "name", ["localtime", "posixrules", "Factory", "right/Asia/Tokyo", "Tokyo"]
)
def test_a_zone_that_is_suggested_is_one(name: str) -> None:
    with pytest.raises(SettingsError) as told:
        check_zone(name)
    _, _, meant = str(told.value).partition("did you mean ")
    assert all(is_zone(each) for each in meant.rstrip("?").split(" or ") if meant)


def test_a_link_that_leads_nowhere_is_not_passed_over(tmp_path: Path) -> None:
    """Else the zone, the group and the limits of the file would be lost in silence."""
    (tmp_path / "hakaru.toml").symlink_to(tmp_path / "gone.toml")
    with pytest.raises(SettingsError, match=r"hakaru\.toml: .* is a link to .*gone\.toml, which"):
        load(tmp_path)
    (tmp_path / "gone.toml").write_text("clusters.c.nodes = 3")
    assert load(tmp_path).cluster("c").nodes[0].count == 3


def test_a_link_to_itself_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "hakaru.toml").symlink_to("hakaru.toml")
    with pytest.raises(SettingsError, match=r"hakaru\.toml: cannot be read: Too many levels"):
        load(tmp_path)


def test_a_workspace_that_is_not_there_has_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert load(tmp_path / "none") == load(tmp_path / "file") == Settings()


def test_a_broken_link_is_told_of_beside_a_bare_log_too(tmp_path: Path) -> None:
    (tmp_path / "hakaru.toml").symlink_to("gone.toml")
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 8\n1 0 5 60 4 -1 -1 4 90 -1 1 1 1 -1 1 -1 -1 -1\n")
    done = hakaru("show", "states", "--from", log, "-w", tmp_path)
    assert done.exit_code == 1 and "is a link to gone.toml" in done.output
