"""Data sets to train from: made or packed, in six layouts, each read by the same few methods.

`find_layout("tar").write(samples, folder)` writes one, `open_dataset(folder)` reads one of any layout,
`synthetic.ensure(…)` makes one of a wanted size, and `pack.pack(…)` converts an image folder.
"""

from hakaru.measure.datasets._layout import (
    LAYOUTS,
    Layout,
    Reader,
    find_layout,
    layout_names,
    load_all,
    open_dataset,
)
from hakaru.measure.datasets._manifest import Manifest
from hakaru.measure.datasets._sample import Sample

__all__ = [
    "LAYOUTS",
    "Layout",
    "Manifest",
    "Reader",
    "Sample",
    "find_layout",
    "layout_names",
    "load_all",
    "open_dataset",
]
