"""A workspace's settings: `hakaru.toml`, what each key means, its default and its check.

What a source's header says of a cluster has the same shape; `hakaru.toml` has the last word. A machine's
size is a total, or nodes times what one has: either of them in the file overrules the other in a header.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

from hakaru import _values
from hakaru._values import check_zone as check_zone
from hakaru._values import is_zone as is_zone
from hakaru.errors import SettingsError, list_problems

FILE_NAME = "hakaru.toml"
CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Queue:
    max_walltime_h: float | None = None
    max_gpus: int | None = None
    max_nodes: int | None = None


@dataclass(frozen=True)
class Capacity:
    """From `since` on (null: from the beginning) the scheduler manages `count` nodes (or GPUs, or CPUs)."""

    count: int
    since: datetime | None = None


@dataclass(frozen=True)
class Cluster:
    zone: str = "UTC"
    unit: Literal["gpu", "cpu"] | None = None
    gpus_per_node: int | None = None
    cpus_per_node: int | None = None
    working_hours: tuple[int, int] = (9, 18)
    nodes: tuple[Capacity, ...] = ()
    gpus: tuple[Capacity, ...] = ()
    cpus: tuple[Capacity, ...] = ()
    queues: Mapping[str, Queue] = field(default_factory=dict)
    users_per_file: bool = False
    relative_dates: bool = False
    has_zone: bool = False  # whether `zone` was said by anyone, or is the default

    def per_node(self, unit: str) -> int | None:
        """GPUs (or CPUs) in a node."""
        return self.gpus_per_node if unit == "gpu" else self.cpus_per_node

    def size(self, unit: str) -> tuple[Capacity, ...]:
        """GPUs (or CPUs) of the whole machine over time; empty where they are unknown."""
        return (self.gpus if unit == "gpu" else self.cpus) or self._of_nodes(unit)

    def is_of_equal_nodes(self, unit: str) -> bool:
        """Whether the nodes are known, and make up the whole machine with the one size that they have."""
        of_nodes = self._of_nodes(unit)
        return bool(of_nodes) and of_nodes == self.size(unit)

    def _of_nodes(self, unit: str) -> tuple[Capacity, ...]:
        per_node = self.per_node(unit)
        return tuple(
            replace(span, count=span.count * (per_node or 0)) for span in self.nodes if per_node
        )


@dataclass(frozen=True)
class Engine:
    threads: int | None = None
    memory: str = "2GB"
    spark_master: str = "local[*]"


@dataclass(frozen=True)
class Ingest:
    """What an ingest may take: rows that cannot be read, and what a packed file may unpack to."""

    max_missing: float = 0.01
    max_unpacked: int = 100 * 10**9
    max_ratio: float = 250.0


@dataclass(frozen=True)
class Web:
    """How `hakaru serve` runs; a person is known by a token, or by a proxy's header."""

    sessions: int = 4
    query_seconds: float = 30.0
    cache_mb: int = 64
    hosts: tuple[str, ...] = ()
    proxy_header: str | None = None
    proxy_address: str | None = None
    operators: tuple[str, ...] = ()
    address_connections: int = 64


@dataclass(frozen=True)
class Workspace:
    """Who may read it beside its owner."""

    group: str | None = None


@dataclass(frozen=True)
class Settings:
    workspace: Workspace = Workspace()
    engine: Engine = Engine()
    ingest: Ingest = Ingest()
    web: Web = Web()
    clusters: Mapping[str, Cluster] = field(default_factory=dict)

    def cluster(self, name: str) -> Cluster:
        return self.clusters.get(name, Cluster())


# key, default, meaning: the documentation of hakaru.toml is generated from this table
KEYS: tuple[tuple[str, str, str], ...] = (
    ("workspace.group", "none", "Group that may read and write the lake; else only its owner may."),
    ("engine.threads", "all cores", "Threads that DuckDB may use."),
    ("engine.memory", '"2GB"', "Memory that DuckDB may use before it spills to disk."),
    ("engine.spark_master", '"local[*]"', "Spark's master URL, with `--engine spark`."),
    (
        "ingest.max_missing",
        '"1%"',
        "Share of rows that may be missing (rejected, or in conflict inside an input); above it ingest "
        "ends with code 3.",
    ),
    ("ingest.max_unpacked", '"100GB"', "A packed file or a pipe that holds more is refused."),
    (
        "ingest.max_ratio",
        "250",
        "A file that unpacks to more than this many times its size is refused.",
    ),
    ("web.sessions", "4", "Queries of `hakaru serve` at a time; they share engine.memory."),
    ("web.query_seconds", "30", "A web query that takes longer is stopped."),
    ("web.cache_mb", "64", "Memory for answers that are kept until the lake changes."),
    ("web.hosts", "[]", "Names under which the app is reached, beside localhost."),
    ("web.proxy_header", "none", "Header in which a reverse proxy names who has signed in."),
    ("web.proxy_address", "none", "The proxy's address: from any other the header is ignored."),
    (
        "web.address_connections",
        "64",
        "Open connections from one address; raise it if many people share one address.",
    ),
    ("web.operators", "[]", "People, as the proxy names them, who see everything."),
    ("clusters.NAME.zone", '"UTC"', "Time zone of hours, weekdays and quarters (IANA name)."),
    (
        "clusters.NAME.unit",
        "what most hours are",
        'What a job\'s size counts: "gpu" or "cpu". Without it, GPUs where the jobs that hold some ran for '
        "at least half of all run hours.",
    ),
    ("clusters.NAME.gpus_per_node", "unknown", "GPUs in a node: for the machine's capacity."),
    ("clusters.NAME.cpus_per_node", "unknown", "CPUs in a node: for nodes where a log has none."),
    ("clusters.NAME.working_hours", "[9, 18]", "First hour of work and the hour after the last."),
    ("clusters.NAME.nodes", "unknown", "Nodes: a number, or a list of {since, count}."),
    (
        "clusters.NAME.gpus",
        "nodes × gpus_per_node",
        "GPUs of the whole machine, where its nodes differ: a number, or a list of {since, count}.",
    ),
    (
        "clusters.NAME.cpus",
        "nodes × cpus_per_node",
        "CPUs of the whole machine, where its nodes differ: a number, or a list of {since, count}.",
    ),
    (
        "clusters.NAME.users_per_file",
        "false",
        "Whether the log was made of files that number their users anew: nobody is counted then.",
    ),
    (
        "clusters.NAME.relative_dates",
        "false",
        "Whether the log's dates count from an unknown day, as in an SWF log without UnixStartTime.",
    ),
    ("clusters.NAME.queues.QUEUE.max_walltime_h", "unknown", "Longest walltime one may ask for."),
    ("clusters.NAME.queues.QUEUE.max_gpus", "unknown", "Most GPUs a job may have."),
    ("clusters.NAME.queues.QUEUE.max_nodes", "unknown", "Most nodes a job may have."),
)


def load(workspace: Path, facts: Mapping[str, Mapping[str, Any]] | None = None) -> Settings:
    """The settings of a workspace: defaults, then what the sources said, then `hakaru.toml`."""
    path = workspace / FILE_NAME
    try:
        raw = tomllib.loads(file_text(workspace) or "")
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: not valid TOML: {error}") from None
    return parse(raw, facts or {}, where=str(path))


def file_text(workspace: Path) -> str | None:
    """What stands in `hakaru.toml`; None where there is none, and an error where it is a broken link."""
    path = workspace / FILE_NAME
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not valid TOML: {error}") from None
    except (FileNotFoundError, NotADirectoryError):
        if not path.is_symlink():
            return None
        raise SettingsError(
            f"{path}: cannot be read: it is a link to {path.readlink()}, which does not exist. "
            "Mend the link, or remove it to use the defaults"
        ) from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None


def parse(raw: Mapping[str, Any], facts: Mapping[str, Mapping[str, Any]], where: str) -> Settings:
    check = _Checker()
    check.known(raw, ("workspace", "engine", "ingest", "web", "clusters"), "")
    workspace = check.table(raw, "workspace", "workspace")
    check.known(workspace, ("group",), "workspace.")
    engine = check.table(raw, "engine", "engine")
    check.known(engine, ("threads", "memory", "spark_master"), "engine.")
    clusters = check.table(raw, "clusters", "clusters")
    merged = {
        name: _overlay(not_overruled(facts.get(name, {}), said), said)
        for name in [*facts, *(n for n in clusters if n not in facts)]
        for said in [check.table(clusters, name, f"clusters.{name}")]
    }
    settings = Settings(
        workspace=Workspace(check.value(workspace, "group", "workspace", _values.text)),
        engine=Engine(
            threads=check.value(engine, "threads", "engine", _values.positive),
            memory=check.value(engine, "memory", "engine", _values.memory) or Engine.memory,
            spark_master=check.value(engine, "spark_master", "engine", _values.text)
            or Engine.spark_master,
        ),
        ingest=_ingest(check, check.table(raw, "ingest", "ingest")),
        web=_web(check, check.table(raw, "web", "web")),
        clusters={name: _cluster(check, name, table) for name, table in merged.items()},
    )
    if check.problems:
        raise SettingsError(
            f"{list_problems(where, check.problems)}\n"
            "The settings and their defaults are listed in docs/reference/settings.md."
        )
    return settings


def check_cluster_name(name: str) -> str:
    if not CLUSTER_NAME.fullmatch(name):
        raise SettingsError(
            f"cluster name {name!r} is not allowed: use letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit, 64 at most"
        )
    return name


def toml_table(name: str) -> str:
    """The table of hakaru.toml that sets something of a cluster."""
    return f"[clusters.{name}]" if re.fullmatch(r"[\w-]+", name) else f'[clusters."{name}"]'


def _ingest(check: _Checker, raw: Mapping[str, Any]) -> Ingest:
    check.known(raw, tuple(Ingest.__dataclass_fields__), "ingest.")
    share = check.value(raw, "max_missing", "ingest", _values.share)
    return Ingest(
        max_missing=Ingest.max_missing if share is None else share,
        max_unpacked=check.value(raw, "max_unpacked", "ingest", _values.num_bytes)
        or Ingest.max_unpacked,
        max_ratio=check.value(raw, "max_ratio", "ingest", _values.positive_number)
        or Ingest.max_ratio,
    )


def _web(check: _Checker, raw: Mapping[str, Any]) -> Web:
    check.known(raw, tuple(Web.__dataclass_fields__), "web.")
    header = check.value(raw, "proxy_header", "web", _values.header)
    address = check.value(raw, "proxy_address", "web", _values.address)
    if (raw.get("proxy_header") is None) != (raw.get("proxy_address") is None):
        check.problems.append(
            "web: proxy_header and proxy_address go together, so that nobody else can send it"
        )
    return Web(
        sessions=check.value(raw, "sessions", "web", _values.positive) or Web.sessions,
        query_seconds=check.value(raw, "query_seconds", "web", _values.positive_number)
        or Web.query_seconds,
        cache_mb=check.value(raw, "cache_mb", "web", _values.positive) or Web.cache_mb,
        hosts=check.value(raw, "hosts", "web", _values.texts) or (),
        proxy_header=header,
        proxy_address=address,
        operators=check.value(raw, "operators", "web", _values.texts) or (),
        address_connections=check.value(raw, "address_connections", "web", _values.positive)
        or Web.address_connections,
    )


def _cluster(check: _Checker, name: str, raw: Mapping[str, Any]) -> Cluster:
    where = f"clusters.{name}"
    if not CLUSTER_NAME.fullmatch(name):
        rule = "has only letters, digits, '.', '_', '-'" if name.strip() else "must not be empty"
        check.problems.append(f"{where}: a cluster's name {rule}")
    keys = (
        *("zone", "unit", "gpus_per_node", "cpus_per_node", "working_hours", "nodes", "queues"),
        *("gpus", "cpus", "users_per_file", "relative_dates"),
    )
    check.known(raw, keys, where + ".")
    queues = check.table(raw, "queues", f"{where}.queues")
    zone = check.value(raw, "zone", where, _values.zone) or Cluster.zone
    return Cluster(
        zone=zone,
        unit=check.value(raw, "unit", where, _values.unit),
        gpus_per_node=check.value(raw, "gpus_per_node", where, _values.positive),
        cpus_per_node=check.value(raw, "cpus_per_node", where, _values.positive),
        working_hours=check.value(raw, "working_hours", where, _values.hours)
        or Cluster.working_hours,
        nodes=check.value(raw, "nodes", where, lambda v: _capacities(v, zone)) or (),
        gpus=check.value(raw, "gpus", where, lambda v: _capacities(v, zone)) or (),
        cpus=check.value(raw, "cpus", where, lambda v: _capacities(v, zone)) or (),
        queues={
            queue: _queue(check, at, check.table(queues, queue, at))
            for queue in queues
            for at in [f"{where}.queues.{queue}"]
        },
        users_per_file=check.value(raw, "users_per_file", where, _values.flag) or False,
        relative_dates=check.value(raw, "relative_dates", where, _values.flag) or False,
        has_zone=raw.get("zone") is not None,
    )


def _queue(check: _Checker, where: str, raw: Mapping[str, Any]) -> Queue:
    check.known(raw, ("max_walltime_h", "max_gpus", "max_nodes"), where + ".")
    return Queue(
        max_walltime_h=check.value(raw, "max_walltime_h", where, _values.positive_number),
        max_gpus=check.value(raw, "max_gpus", where, _values.positive),
        max_nodes=check.value(raw, "max_nodes", where, _values.positive),
    )


def not_overruled(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a cluster, without the sizes that `top`, which has the last word, says otherwise."""
    gone = {key for unit in ("gpu", "cpu") for key in _overruled(unit, base, top)}
    return {key: value for key, value in base.items() if key not in gone}


def _overruled(unit: str, base: Mapping[str, Any], top: Mapping[str, Any]) -> Iterator[str]:
    """The keys of the base that give the machine another size than the top does."""
    total, per_node = f"{unit}s", f"{unit}s_per_node"
    of_nodes, own = {"nodes", per_node}, {"nodes", per_node} & top.keys()
    if total in top:
        if not own and of_nodes <= base.keys() and not _is_product(base, per_node, top[total]):
            yield per_node  # the nodes differ, and no one number is true of all
    elif own and of_nodes <= base.keys() | top.keys():
        yield total
    elif "nodes" in top and base.get("nodes", top["nodes"]) != top["nodes"]:
        yield total  # it was that of other nodes


def _is_product(base: Mapping[str, Any], per_node: str, total: Any) -> bool:
    factors = base["nodes"], base[per_node]
    return all(isinstance(each, int) for each in factors) and factors[0] * factors[1] == total


def _overlay(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in top.items():
        below = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        merged[key] = _overlay(below, value) if both and below is not None else value
    return merged


class _Checker:
    """Collects every problem, so that a file is mended in one go."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def known(self, raw: Mapping[str, Any], keys: tuple[str, ...], prefix: str) -> None:
        for key in raw:
            if key not in keys:
                self.problems.append(f"{prefix}{key}: unknown key; known: {', '.join(keys)}")

    def table(self, raw: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
        value = raw.get(key, {})
        if isinstance(value, Mapping):
            return value
        self.problems.append(f"{where}: expected a table, found {value!r}")
        return {}

    def value(
        self, raw: Mapping[str, Any], key: str, where: str, parse: Callable[[Any], Any]
    ) -> Any:
        if raw.get(key) is None:
            return None
        try:
            return parse(raw[key])
        except ValueError as error:
            self.problems.append(f"{where}.{key}: {error}")
            return None


def _capacities(value: Any, zone: str) -> tuple[Capacity, ...]:
    if isinstance(value, int):
        return (Capacity(count=_values.positive(value)),)
    if not isinstance(value, list):
        raise ValueError(f"expected a number or a list of {{since, count}}, found {value!r}")
    spans = tuple(_capacity(item, zone) for item in value)
    since = [span.since or datetime.min.replace(tzinfo=UTC) for span in spans]
    if since != sorted(set(since)):
        raise ValueError("the dates of `since` must rise from one entry to the next")
    return spans


def _capacity(item: Any, zone: str) -> Capacity:
    if not isinstance(item, Mapping) or not {"count"} <= set(item) <= {"since", "count"}:
        raise ValueError(f"expected {{since = 2018-01-01, count = 38}}, found {item!r}")
    return Capacity(count=_values.positive(item["count"]), since=_moment(item.get("since"), zone))


def _moment(value: Any, zone: str) -> datetime | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"expected a date such as 2018-01-01, found {value!r}") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise ValueError(f"expected a date such as 2018-01-01, found {value!r}")
    return value if value.tzinfo else value.replace(tzinfo=ZoneInfo(zone))
