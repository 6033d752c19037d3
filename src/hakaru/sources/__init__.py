"""Adapters from the world's logs to the canonical tables; one file a format."""

from hakaru.sources._base import SOURCES, Records, Source, detect
from hakaru.sources._strangers import IN_ZONE
from hakaru.sources.ingest import Summary, ingest

__all__ = ["IN_ZONE", "SOURCES", "Records", "Source", "Summary", "detect", "ingest"]
