"""Jobs in the formats that others read, with a manifest of what each format or `--anonymise` took away."""

from hakaru.export._base import FORMATS, Site, load_all
from hakaru.export._write import Export, export
from hakaru.export.anonymise import Disguise, make_disguise

__all__ = ["FORMATS", "Disguise", "Export", "Site", "export", "load_all", "make_disguise"]
