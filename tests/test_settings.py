"""hakaru.toml: every default, every kind of wrong value, all problems at once, and what sources said."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hakaru.errors import SettingsError
from hakaru.settings import (
    KEYS,
    Capacity,
    Cluster,
    Engine,
    Ingest,
    Queue,
    Settings,
    Web,
    Workspace,
    check_cluster_name,
    load,
    toml_table,
)


def toml(tmp_path: Path, text: str, **facts: dict[str, object]) -> Settings:
    (tmp_path / "hakaru.toml").write_text(text, encoding="utf-8")
    return load(tmp_path, facts)


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        toml(tmp_path, text)
    first, *listed, last = str(caught.value).splitlines()
    assert first.startswith(f"{tmp_path / 'hakaru.toml'} has {len(listed)} problem(s)")
    assert "docs/reference/settings.md" in last
    return [line.strip() for line in listed]


def test_defaults_without_a_file(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings == Settings()
    assert settings.engine == Engine(threads=None, memory="2GB", spark_master="local[*]")
    assert settings.cluster("any") == Cluster(
        zone="UTC",
        unit=None,
        gpus_per_node=None,
        cpus_per_node=None,
        working_hours=(9, 18),
        nodes=(),
        gpus=(),
        cpus=(),
        queues={},
        users_per_file=False,
        relative_dates=False,
        has_zone=False,
    )
    assert Queue() == Queue(max_walltime_h=None, max_gpus=None, max_nodes=None)


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    assert toml(tmp_path, "") == Settings()


def test_every_documented_key_is_read(tmp_path: Path) -> None:
    settings = toml(
        tmp_path,
        """
        [workspace]
        group = "ops"
        [engine]
        threads = 3
        memory = "1.5 GiB"
        spark_master = "spark://host:7077"
        [ingest]
        max_missing = "2.5%"
        max_unpacked = "3GB"
        max_ratio = 40
        [web]
        sessions = 2
        query_seconds = 1.5
        cache_mb = 8
        hosts = ["hakaru.example.org"]
        proxy_header = "X-Remote-User"
        proxy_address = "10.0.0.5"
        operators = ["ann"]
        address_connections = 9
        [clusters.abci]
        zone = "Asia/Tokyo"
        unit = "gpu"
        gpus_per_node = 4
        cpus_per_node = 40
        working_hours = [8, 20]
        users_per_file = true
        relative_dates = true
        gpus = 77
        cpus = [{since = 2018-01-01, count = 99}]
        nodes = [{count = 10}, {since = 2018-01-01, count = 20}, {since = "2019-01-01T00:00Z", count = 5}]
        [clusters.abci.queues.normal]
        max_walltime_h = 1.5
        max_gpus = 8
        max_nodes = 2
        """,
    )
    assert settings.workspace == Workspace("ops")
    assert settings.engine == Engine(3, "1.5 GiB", "spark://host:7077")
    assert settings.ingest == Ingest(0.025, 3_000_000_000, 40.0)
    assert settings.web == Web(
        2, 1.5, 8, ("hakaru.example.org",), "X-Remote-User", "10.0.0.5", ("ann",), 9
    )
    tokyo = ZoneInfo("Asia/Tokyo")
    assert settings.cluster("abci") == Cluster(
        zone="Asia/Tokyo",
        unit="gpu",
        gpus_per_node=4,
        cpus_per_node=40,
        working_hours=(8, 20),
        nodes=(
            Capacity(10),
            Capacity(20, datetime(2018, 1, 1, tzinfo=tokyo)),
            Capacity(5, datetime(2019, 1, 1, tzinfo=UTC)),
        ),
        queues={"normal": Queue(1.5, 8, 2)},
        users_per_file=True,
        relative_dates=True,
        gpus=(Capacity(77),),
        cpus=(Capacity(99, datetime(2018, 1, 1, tzinfo=tokyo)),),
        has_zone=True,
    )
    assert settings.cluster("other") == Cluster()
    text = (tmp_path / "hakaru.toml").read_text()
    assert all(f"{key.rsplit('.', 1)[1]} = " in text for key, _, _ in KEYS)


def test_the_documented_defaults_are_the_real_ones() -> None:
    told = {key: default for key, default, _ in KEYS}
    assert told["engine.memory"] == f'"{Engine().memory}"'
    assert (told["ingest.max_missing"], Ingest().max_missing) == ('"1%"', 0.01)
    assert (told["ingest.max_unpacked"], Ingest().max_unpacked) == ('"100GB"', 10**11)
    assert (told["ingest.max_ratio"], Ingest().max_ratio) == ("250", 250.0)
    assert told["engine.spark_master"] == f'"{Engine().spark_master}"'
    assert told["clusters.NAME.zone"] == f'"{Cluster().zone}"'
    assert told["clusters.NAME.working_hours"] == str(list(Cluster().working_hours))
    assert (told["web.sessions"], Web().sessions) == ("4", 4)
    assert (told["web.query_seconds"], Web().query_seconds) == ("30", 30.0)
    assert (told["web.cache_mb"], Web().cache_mb) == ("64", 64)
    assert (told["web.address_connections"], Web().address_connections) == ("64", 64)
    assert len(told) == len(KEYS)


@pytest.mark.parametrize(
    ("text", "share"), [("0", 0.0), ("0.02", 0.02), ('"2 %"', 0.02), ('"100%"', 1.0)]
)
def test_a_share_is_a_number_or_a_percentage(tmp_path: Path, text: str, share: float) -> None:
    assert toml(tmp_path, f"ingest.max_missing = {text}").ingest.max_missing == share


def test_a_number_of_nodes_may_stand_alone(tmp_path: Path) -> None:
    assert toml(tmp_path, "clusters.c.nodes = 38").cluster("c").nodes == (Capacity(38),)


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [("2MB", 2_000_000), ("2MiB", 2_097_152), ("1.5GB", 1_500_000_000), ("1 GiB", 1_073_741_824)],
)
def test_a_size_is_in_steps_of_1000_or_1024(tmp_path: Path, text: str, num_bytes: int) -> None:
    assert toml(tmp_path, f'ingest.max_unpacked = "{text}"').ingest.max_unpacked == num_bytes


def test_a_day_of_work_may_be_the_whole_day(tmp_path: Path) -> None:
    assert toml(tmp_path, "clusters.c.working_hours = [0, 24]").cluster("c").working_hours == (
        0,
        24,
    )


def test_the_machine_is_its_own_number_or_nodes_times_what_one_has() -> None:
    """Of one unit nothing follows for the other, and a number for the whole machine comes first."""
    moved = datetime(2018, 1, 1, tzinfo=UTC)
    nodes = (Capacity(10), Capacity(20, moved))
    gpus_only = Cluster(nodes=nodes, gpus_per_node=4)
    assert gpus_only.size("gpu") == (Capacity(40), Capacity(80, moved))
    assert (gpus_only.per_node("gpu"), gpus_only.per_node("cpu")) == (4, None)
    assert gpus_only.size("cpu") == ()
    cpus_only = Cluster(nodes=nodes, cpus_per_node=36)
    assert cpus_only.size("cpu")[0] == Capacity(360) and cpus_only.size("gpu") == ()
    both = Cluster(nodes=nodes, gpus_per_node=4, cpus_per_node=36, gpus=(Capacity(42),))
    assert both.size("gpu") == (Capacity(42),) and both.size("cpu")[1].count == 720


def test_a_name_with_a_dot_is_one_table_of_the_file(tmp_path: Path) -> None:
    """What a message advises to write must set the cluster of that name."""
    for name in ("abci-2.0", "a_1"):
        text = f'{toml_table(name)}\nzone = "Asia/Tokyo"'
        assert toml(tmp_path, text).cluster(name).zone == "Asia/Tokyo"


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
        ("clusters.a.users_per_file = 1", "clusters.a.users_per_file: expected true or false"),
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
        ("ingest.max_missing = true", "ingest.max_missing: expected a share"),
        ('ingest.max_missing = "few"', "ingest.max_missing: expected a share"),
        ("ingest.max_unpacked = 5", "ingest.max_unpacked: expected a size"),
        ("ingest.max_ratio = 0", "ingest.max_ratio: expected a number above 0"),
        ('engine.memory = "lots"', "engine.memory: expected a size"),
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
        ('clusters.c.unit = "node"', 'clusters.c.unit: expected "gpu" or "cpu", found \'node\''),
        ("clusters.c.gpus_per_node = -1", "clusters.c.gpus_per_node: expected a whole number"),
        ("clusters.c.cpus_per_node = 0", "clusters.c.cpus_per_node: expected a whole number"),
        ("clusters.c.working_hours = [18, 9]", "clusters.c.working_hours: expected two hours"),
        ("clusters.c.working_hours = [9]", "clusters.c.working_hours: expected two hours"),
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


def test_the_file_has_the_last_word_over_what_a_source_said(tmp_path: Path) -> None:
    facts: dict[str, object] = {
        "zone": "Asia/Tokyo",
        "gpus_per_node": 8,
        "nodes": 38,
        "queues": {"short": {"max_walltime_h": 3, "max_gpus": 1}, "long": {"max_walltime_h": 336}},
    }
    text = """
    [clusters.c]
    gpus_per_node = 4
    nodes = [{since = 2018-01-01, count = 40}]
    queues.short.max_walltime_h = 6
    queues.new.max_nodes = 2
    [clusters.mine]
    zone = "Europe/Berlin"
    """
    settings = toml(tmp_path, text, c=facts, other={"unit": "cpu"})
    c = settings.cluster("c")
    assert (c.zone, c.gpus_per_node) == ("Asia/Tokyo", 4)
    assert c.nodes == (Capacity(40, datetime(2018, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo"))),)
    assert c.queues == {
        "short": Queue(6.0, 1),
        "long": Queue(336.0),
        "new": Queue(max_nodes=2),
    }
    assert settings.cluster("other").unit == "cpu"
    assert settings.cluster("mine").zone == "Europe/Berlin"


@pytest.mark.parametrize("name", ["a", "abci-2.0", "A_1", "0", "x" * 64])
def test_cluster_names(name: str) -> None:
    assert check_cluster_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a'", "a/b", "計", "a\n", "x" * 65])
def test_names_that_are_not_allowed(name: str) -> None:
    with pytest.raises(SettingsError, match="use letters, digits"):
        check_cluster_name(name)
