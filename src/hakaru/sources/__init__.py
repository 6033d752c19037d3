"""Adapters from the world's logs to the canonical tables; one file a format."""

from hakaru.sources._base import SOURCES, Records, Source, detect
from hakaru.sources.ingest import Summary, ingest

__all__ = ["SOURCES", "Records", "Source", "Summary", "detect", "ingest"]
