"""What a loader delivers from each layout, cold and warm, with nothing that takes time behind it.

MN-1 opened an image file for each sample, then one archive with fseek, and found the archive faster; here are
both, and the usual formats between them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hakaru.measure._base import Parameter, Part, Procedure, Quantity, benchmark
from hakaru.measure.context import Context
from hakaru.measure.datasets import layout_names
from hakaru.measure.storage._folder import TEMPORARY
from hakaru.measure.storage._layouts import Comparison, Settings
from hakaru.measure.storage._samples import DECODE


@benchmark(
    "loading",
    title="Loading from each layout",
    answers="How fast do samples arrive, and what does one file a sample cost?",
    family="storage",
    scope="ranks",
    reproduces="MN-1 §5 (one archive in place of one file a sample)",
    parameters=[
        Parameter("layout", ("+".join(layout_names()),),
                  "How the samples lie in files; layouts joined by + are measured in turn."),
        Parameter("workers", (1, 2), "Loader workers of each rank.", quick=(2,), on_gpu=(4, 8, 16),
                  quick_on_gpu=(8,)),
        Parameter("prefetch", (2,), "Batches that each worker holds ready."),
        Parameter("mib", (32,), "Size of the data set.", quick=(16,), on_gpu=(1024,), quick_on_gpu=(256,)),
        Parameter("path", (TEMPORARY,), "A folder for the data sets, which stay there, or a packed data "
                  "set; temporary: a new one on a local disk.", is_path=True),
        Parameter("decode", ("raw",), "raw takes bytes as pixels; jpeg decodes images.", choices=DECODE),
        Parameter("image", (64,), "Sides of the images that are made of the samples.", on_gpu=(224,)),
        Parameter("batch", (16,), "Samples of a batch.", on_gpu=(64,)),
    ],
    quantities=[
        Quantity("rate", "samples/s", "higher", "Samples"),
        Quantity("bandwidth", "MB/s", "higher", "Bandwidth delivered"),
        Quantity("from_device", "0–1", "higher", "Share read from the device"),
    ],
    check="Every sample of an epoch arrives once and whole; some are compared with their checksums.",
    judged="Not by itself; layouts are compared in turn, and a cached epoch never counts as storage.",
)  # fmt: skip
def loading(
    context: Context,
    layout: str,
    workers: int,
    prefetch: int,
    mib: int,
    path: str,
    decode: str,
    image: int,
    batch: int,
) -> Procedure:
    """Reads the same samples from each layout in turn: an epoch after the files were dropped from memory, and
    one right after it."""
    settings = Settings(
        layouts=tuple(layout.split("+")),
        workers=workers,
        prefetch=prefetch,
        mib=mib,
        path=path,
        decode=decode,
        image=image,
        batch=batch,
    )
    comparison = Comparison(context, settings)

    def run(budget_s: float) -> Sequence[Part]:
        return comparison.run(budget_s)

    return Procedure(run)
