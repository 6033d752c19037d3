"""What the log itself shows of a machine: how large it must be, and whether jobs exceed the size set."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hakaru.analyses._unit import Unit

if TYPE_CHECKING:
    from hakaru.engine import Engine

ROUNDING = 1 + 1e-9


@dataclass(frozen=True)
class Seen:
    """The nodes that jobs ran on, and the most PEs that one job had on each, summed: at least so large."""

    num_nodes: int
    num_pes: int
    most_on_a_node: int


@dataclass(frozen=True)
class Over:
    """More PEs busy than there are: for which share of the time, and the most, of how many."""

    share: float
    most: float
    size: float


def seen(
    engine: Engine, stored: Callable[[Collection[str]], str], cluster: str, unit: Unit
) -> Seen | None:
    """From the nodes that the log names; None where it names none."""
    size = f"num_{unit}s"
    (row,) = engine.query(
        f"""
        SELECT count(*) AS num_nodes, sum(most) AS num_pes, max(most) AS most_on_a_node FROM (
            SELECT node, max(pes) AS most FROM (
                SELECT explode(nodes) AS node, CAST(ceil({size} / num_nodes) AS BIGINT) AS pes
                FROM {stored(["cluster", "nodes", "num_nodes", size])} AS stored
                WHERE cluster = '{cluster}' AND {size} >= 1 AND num_nodes >= 1) AS held
            GROUP BY node) AS named
        """
    ).to_pylist()
    if not row["num_nodes"]:
        return None
    return Seen(row["num_nodes"], int(row["num_pes"]), int(row["most_on_a_node"]))


def over_sql(levels: str) -> str:
    """From common tables up to `levels`: when more was busy than installed, by group."""
    busy = "(pes_busy_before * span_s + pes_busy_area) / span_s"
    return f"""
        WITH {levels}, used AS (
            SELECT grp, span_s, {busy} AS busy, installed_pe_s / span_s AS size FROM levels
        ), marked AS (
            SELECT used.*, busy > size * {ROUNDING!r} AS is_over FROM used WHERE size IS NOT NULL
        )
        SELECT grp, sum(CASE WHEN is_over THEN span_s ELSE 0 END) / sum(span_s) AS share,
               max(CASE WHEN is_over THEN busy END) AS most,
               max_by(size, CASE WHEN is_over THEN busy END) AS size
        FROM marked GROUP BY grp
    """
