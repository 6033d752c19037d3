"""hakaru.toml: every default, every key, the values that are allowed, and what sources said."""

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
    for key in ("hosts", "operators"):
        assert (told[f"web.{key}"], getattr(Web(), key)) == ("[]", ())
    for key in ("users_per_file", "relative_dates"):
        assert (told[f"clusters.NAME.{key}"], getattr(Cluster(), key)) == ("false", False)
    assert (told["workspace.group"], Workspace().group) == ("none", None)
    assert (told["web.proxy_header"], Web().proxy_header) == ("none", None)
    assert len(told) == len(KEYS)


@pytest.mark.parametrize(
    ("text", "share"), [("0", 0.0), ("0.02", 0.02), ('"2 %"', 0.02), ('"100%"', 1.0)]
)
def test_a_share_is_a_number_or_a_percentage(tmp_path: Path, text: str, share: float) -> None:
    assert toml(tmp_path, f"ingest.max_missing = {text}").ingest.max_missing == share


def test_the_least_that_is_allowed(tmp_path: Path) -> None:
    settings = toml(
        tmp_path,
        f"""
        [engine]
        threads = 1
        [ingest]
        max_ratio = 0.5
        [web]
        sessions = 1
        hosts = []
        proxy_header = "{"X" * 64}"
        proxy_address = "0:0:0:0:0:0:0:1"
        [clusters.c]
        gpus_per_node = 1
        working_hours = [0, 1]
        nodes = []
        zone = "Asia/Kolkata"
        gpus = [{{since = "2018-01-01", count = 1}}, {{since = 2018-01-01T12:30:00, count = 2}}]
        users_per_file = false
        """,
    )
    assert (settings.engine.threads, settings.ingest.max_ratio) == (1, 0.5)
    web = settings.web
    assert (web.sessions, web.hosts, web.proxy_address) == (1, (), "::1")
    c = settings.cluster("c")
    assert (c.gpus_per_node, c.working_hours, c.nodes, c.users_per_file) == (1, (0, 1), (), False)
    assert [span.since.isoformat() for span in c.gpus if span.since] == [
        "2018-01-01T00:00:00+05:30",
        "2018-01-01T12:30:00+05:30",
    ]


def test_a_zone_is_known_where_somebody_said_it(tmp_path: Path) -> None:
    text = '[clusters.a]\nunit = "gpu"\n[clusters.b]\nzone = "UTC"'
    settings = toml(tmp_path, text, c={"zone": "UTC"}, d={"unit": "cpu"})
    assert [settings.cluster(name).has_zone for name in "abcd"] == [False, True, True, False]
    assert {settings.cluster(name).zone for name in "abcd"} == {"UTC"}


@pytest.mark.parametrize("half", ['proxy_header = "X-User"', 'proxy_address = "10.0.0.5"'])
def test_a_proxy_has_a_header_and_an_address(tmp_path: Path, half: str) -> None:
    with pytest.raises(SettingsError, match="proxy_header and proxy_address"):
        toml(tmp_path, f"[web]\n{half}")


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


GAIA = {"nodes": 151, "cpus": 2004}  # MaxNodes and MaxProcs, which do not divide
EQUAL = {"nodes": 20, "cpus_per_node": 4}


@pytest.mark.parametrize(
    ("facts", "text", "size", "of_equal_nodes"),
    [
        (GAIA, "nodes = 10\ncpus_per_node = 8", [80], True),
        (GAIA, "cpus_per_node = 8", [1208], True),
        (GAIA, "nodes = 10", [], False),  # 2004 is that of 151 nodes
        (GAIA, "nodes = 151", [2004], False),
        (GAIA, "gpus_per_node = 8", [2004], False),
        (GAIA, "cpus = 100", [100], False),
        ({"cpus": 64}, "cpus_per_node = 4", [64], False),  # how many nodes is not known
        ({"cpus": 64}, "nodes = 16", [64], False),
        (
            {"cpus": 64},
            "nodes = [{count = 4}, {since = 2018-01-01, count = 8}]\ncpus_per_node = 4",
            [16, 32],
            True,
        ),
        (EQUAL, "cpus = 100", [100], False),
        (EQUAL, "cpus = 80", [80], True),
        (EQUAL, "cpus = 100\nnodes = 25", [100], True),
        (EQUAL, "cpus = 100\nnodes = 10", [100], False),
        (EQUAL, "nodes = 10", [40], True),
        (EQUAL, "gpus = 100", [80], True),
        ({"nodes": [{"count": 20}], "cpus_per_node": 4}, "cpus = 81", [81], False),
    ],
)
def test_the_file_has_the_last_word_on_a_size_however_it_is_said(
    tmp_path: Path, facts: dict[str, object], text: str, size: list[int], of_equal_nodes: bool
) -> None:
    c = toml(tmp_path, f"[clusters.c]\n{text}", c=facts).cluster("c")
    assert [span.count for span in c.size("cpu")] == size
    assert c.is_of_equal_nodes("cpu") is of_equal_nodes


def test_a_total_in_the_file_leaves_no_size_of_a_node_that_it_contradicts(tmp_path: Path) -> None:
    facts: dict[str, object] = EQUAL | {"gpus_per_node": 2}
    c = toml(tmp_path, "clusters.c.cpus = 100", c=facts).cluster("c")
    assert (c.nodes, c.cpus_per_node, c.gpus_per_node) == ((Capacity(20),), None, 2)


@pytest.mark.parametrize("name", ["a", "abci-2.0", "A_1", "0", "x" * 64])
def test_cluster_names(name: str) -> None:
    assert check_cluster_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a'", "a/b", "計", "a\n", "x" * 65])
def test_names_that_are_not_allowed(name: str) -> None:
    with pytest.raises(SettingsError, match="use letters, digits"):
        check_cluster_name(name)
