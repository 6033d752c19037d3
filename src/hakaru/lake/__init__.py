"""The store: Delta tables in a workspace folder; upsert, read, compact."""

from hakaru.lake._conflicts import Conflicts
from hakaru.lake._merge import Upsert
from hakaru.lake._store import Lake, TableStatus

__all__ = ["Conflicts", "Lake", "TableStatus", "Upsert"]
