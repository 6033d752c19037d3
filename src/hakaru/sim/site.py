"""Whose log is replayed, and so its jobs and its machine: one way to both, for every verb and the web."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from hakaru.errors import HakaruError
from hakaru.settings import Cluster, Settings
from hakaru.sim.inventory import Inventory
from hakaru.sim.machine import Group, Machine, Placement
from hakaru.sim.workload import COLUMNS, LEAST_RUN_S, ORDER, NoRequest, Workload
from hakaru.texts import language

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.lake import Lake

MAX_REASONS = 5
ASKED, TABLE, SETTINGS, HEADER = (
    "as it was asked for",
    "as the lake's nodes table has it",
    "as hakaru.toml or the log says",
    "as the log's header says",
)
REASON = """regexp_replace(reason, '''[^'']*''|"[^"]*"', '…', 'g')"""  # without the values that it quotes


class Session(Protocol):
    """What is asked of a session of the analyses."""

    lake: Lake
    settings: Settings

    def ask(self, sql: str, selection: Any) -> pa.Table: ...

    def unit(self, cluster: str) -> str: ...


@dataclass(frozen=True)
class MachineSpec:
    """What is said of the machine; what is not is the cluster's own.

    `groups` are nodes of several kinds, `nodes` of `size` are of one. `on_nodes` asks for nodes even where
    the log knows none.
    """

    nodes: int | None = None
    size: int | None = None
    processors: int | None = None
    packing: str | None = None
    whole_nodes: bool | None = None
    locality: str | None = None
    switch_size: int | None = None
    groups: tuple[Group, ...] = ()
    on_nodes: bool = False

    @property
    def is_said(self) -> bool:
        return self != MachineSpec()

    @property
    def speaks_of_nodes(self) -> bool:
        said = [getattr(self, each.name) for each in fields(self) if each.name != "processors"]
        return any(value not in (None, (), False) for value in said) or self.whole_nodes is False

    @property
    def options(self) -> dict[str, Any]:
        names = ("packing", "whole_nodes", "locality")
        said = {name: value for name in names if (value := getattr(self, name)) is not None}
        return {"switch_size": self.switch_size, "placement": Placement(**said)}


@dataclass(frozen=True)
class Taken:
    """A machine, where it comes from, and what must be said of it."""

    machine: Machine
    whence: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Site:
    """A cluster as the lake and the settings know it; plain data, for another process too.

    `processors` are those of a log's header, `rejected` the records that could not be read, by reason, and
    `inventory` the nodes that the lake knows of.
    """

    name: str = "the cluster"
    cluster: Cluster = field(default_factory=Cluster)
    unit: str = "gpu"
    is_swf: bool = False
    processors: int | None = None
    rejected: Mapping[str, int] = field(default_factory=dict)
    inventory: Inventory | None = None

    @classmethod
    def of(cls, session: Session, name: str, processors: int | None = None) -> Site:
        sources = {row["source"] for row in session.lake.ingests() if row["cluster"] == name}
        return cls(
            name,
            session.settings.cluster(name),
            session.unit(name),
            sources == {"swf"},
            processors,
            _rejected(session.lake, name),
            Inventory.of(session.lake, name),
        )

    @property
    def size(self) -> int | None:
        """GPUs (or CPUs) in a node, where the settings say."""
        return self.cluster.per_node(self.unit)

    @property
    def date_notes(self) -> list[str]:
        """What must be said where months are named: the log may not know when it began."""
        if not self.cluster.relative_dates:
            return []
        return [language("en").say("remark", "dates_relative", cluster=self.name)]

    def workload(
        self,
        jobs: pa.Table,
        no_request: NoRequest | None = None,
        least_run_s: int = LEAST_RUN_S,
    ) -> Workload:
        """The jobs that can be simulated.

        Of a log in the Standard Workload Format, jobs without a request know their run time: there is often
        one queue for all, and the longest request in it says little.
        """
        queues = self.cluster.queues.items()
        walltimes = {
            name: each.max_walltime_h * 3600 for name, each in queues if each.max_walltime_h
        }
        known: NoRequest = "run" if self.is_swf else "queue-limit"
        workload = Workload.of(jobs, no_request or known, walltimes, least_run_s)
        workload = replace(workload, left_out=dict(self.rejected) | dict(workload.left_out))
        if not len(workload):
            why = "; ".join(f"{number:,}: {reason}" for reason, number in workload.left_out.items())
            raise HakaruError(
                f"no job of {self.name} can be simulated"
                + (f": {why}" if jobs.num_rows else ": none is selected")
            )
        return workload

    def machine(self, said: MachineSpec | None = None, workload: Workload | None = None) -> Taken:
        """What is said, else what the lake's `nodes` table has, else what the settings or a header know.

        A log in the Standard Workload Format knows no nodes: it runs on one pool, unless nodes are spoken of
        or the table has some. The workload tells which models are asked for, and when.
        """
        taken = self._found(said or MachineSpec(), workload)
        split = _split(taken.machine, workload, self.unit)
        return replace(taken, notes=(*taken.notes, *split))

    def _found(self, said: MachineSpec, workload: Workload | None) -> Taken:
        if said.processors is not None:
            return Taken(Machine.flat(said.processors), ASKED)
        if said.groups:
            return Taken(Machine(said.groups, **said.options), ASKED)
        if said.nodes is not None:
            return Taken(Machine.of_nodes(said.nodes, self._size(said), **said.options), ASKED)
        if self.inventory is None:
            return self._pool(said) or Taken(self._own(said), SETTINGS)
        machine, notes = self.inventory.machine(self.unit, workload, said.size, **said.options)
        if machine is None:  # it does not say how large the nodes are
            return replace(replace(self, inventory=None)._found(said, None), notes=notes)
        return Taken(machine, TABLE, notes)

    def _size(self, said: MachineSpec) -> int:
        size = said.size or self.size
        if not size:
            raise HakaruError("[machine] says nodes but not their size: add size = 8")
        return size

    def _own(self, said: MachineSpec) -> Machine:
        """As the settings describe it, with another size of the nodes where one is said."""
        # a total of the settings is that of nodes of their own size
        size: dict[str, Any] = {f"{self.unit}s_per_node": said.size, f"{self.unit}s": ()}
        cluster = replace(self.cluster, **size) if said.size else self.cluster
        return Machine.of_cluster(self.name, cluster, self.unit, **said.options)

    def _pool(self, said: MachineSpec) -> Taken | None:
        if not self.is_swf or said.speaks_of_nodes:
            return None
        if self.cluster.is_of_equal_nodes(self.unit):
            known = self._own(said)
            pool = None if known.changes else known.num_pes
            return Taken(Machine.flat(pool), SETTINGS) if pool else None
        sizes = {span.count for span in self.cluster.size(self.unit)}
        size = sizes.pop() if len(sizes) == 1 else None if sizes else self.processors
        whence = HEADER if size == self.processors else SETTINGS
        return Taken(Machine.flat(size), whence) if size else None


def _split(machine: Machine, workload: Workload | None, unit: str) -> list[str]:
    """Of jobs that were recorded on fewer nodes than could hold them here."""
    if machine.is_flat or workload is None:
        return []
    recorded = workload.table["span_nodes"].fill_null(0).to_numpy(zero_copy_only=False)
    per_node = -(-workload.pes // workload.num_nodes)
    is_split = (recorded == workload.num_nodes) & (per_node > machine.sizes.max())
    number = int((is_split & (workload.pes <= machine.num_pes)).sum())
    noun = "GPUs" if unit == "gpu" else "processors"
    jobs = "1 job asks" if number == 1 else f"{number:,} jobs ask"
    return [f"{jobs} for more {noun} on a node than a node has: taken as several nodes"] * (
        number > 0
    )


def jobs_of(session: Session, selection: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """The chosen jobs of one cluster, with more columns than are simulated where they are asked for."""
    listed = ", ".join(f'"{name}"' if name == "user" else name for name in columns or COLUMNS)
    return session.ask(f"SELECT {listed} FROM jobs ORDER BY {ORDER}", selection)


def _rejected(lake: Lake, cluster: str) -> dict[str, int]:
    """The records of the log that could not be read or kept, and so are no jobs at all, by reason."""
    from hakaru.engine.duckdb import connect, select_files
    from hakaru.schema import REJECTS
    from hakaru.settings import Engine

    with closing(connect(Engine())) as con:
        found = con.execute(
            f"SELECT {REASON} AS why, count(*) FROM ({select_files(REJECTS, lake.files(REJECTS))}) "
            "WHERE cluster = ? GROUP BY why ORDER BY count(*) DESC, why",
            [cluster],
        ).fetchall()
    kept, others = found[:MAX_REASONS], sum(number for _, number in found[MAX_REASONS:])
    told = {f"rejected when the log was read: {why}": number for why, number in kept}
    told |= {"rejected when the log was read, for other reasons": others} if others else {}
    dropped = lake.num_dropped(cluster)
    return told | ({"contradicts another row of its job in the log": dropped} if dropped else {})
