"""Training time against the size of the data, below and above memory (TSUBAME's Fig. 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence

from hakaru.measure._base import AUTO, Parameter, Part, Procedure, Quantity, Value, benchmark
from hakaru.measure.context import Context
from hakaru.measure.storage._consumer import MODELS, NONE
from hakaru.measure.storage._folder import TEMPORARY
from hakaru.measure.storage._limits import MACHINE
from hakaru.measure.storage._outcome import Settings
from hakaru.measure.storage._sweep import Sweep


@benchmark(
    "data-size",
    title="Training time against data size",
    answers="Does data arrive in time, also when the data set is larger than memory?",
    family="storage",
    scope="ranks",
    reproduces="TSUBAME3.0 TensorFlow I/O, Fig. 1 and 2",
    parameters=[
        Parameter("model", (NONE, "alexnet", "vgg16", "resnet50", "inception-v3"),
                  "What is trained; none only loads.", quick=("alexnet",), choices=MODELS),
        Parameter("layout", ("packed",), "How the samples lie in files; null reads nothing."),
        Parameter("workers", (2,), "Loader workers of each rank.", on_gpu=(8,)),
        Parameter("memory", (AUTO,), "MiB of memory that cache the files of a host, for the loader's workers "
                  "alone; machine: all of its memory; auto: the machine's for sizes in MiB or GiB, else 32 "
                  "(4,096 beside GPUs).", choices=(MACHINE,)),
        Parameter("sizes", ("1/4+1/2+1+2",), "Data sets as shares of that memory, or as 64MiB+1GiB.",
                  quick=("1/4+1/2+2",)),
        Parameter("path", (TEMPORARY,), "A folder for the data sets, which stay there; temporary: a new one "
                  "on a local disk.", is_path=True),
        Parameter("image", (64,), "Sides of the images that the network gets.", on_gpu=(224,)),
        Parameter("batch", (16,), "Samples of a step and rank.", on_gpu=(64,)),
        Parameter("prefetch", (2,), "Batches that each worker holds ready."),
    ],
    quantities=[
        Quantity("epoch", "s", "lower", "Time of an epoch"),
        Quantity("stall", "0–1", "lower", "Share of time waiting for data"),
        Quantity("au", "0–1", "higher", "Accelerator utilisation"),
    ],
    check="Every sample of an epoch arrives once and whole; some are compared with their checksums.",
    judged="Not by itself; it says whether storage keeps up, and the labels say where the bytes came from.",
)  # fmt: skip
def data_size(
    context: Context,
    model: str,
    layout: str,
    workers: int,
    memory: Value,
    sizes: str,
    path: str,
    image: int,
    batch: int,
    prefetch: int,
) -> Procedure:
    """Trains on data sets of several sizes: a cold epoch, then epochs that find in memory what fits
    there. The memory of the loader's workers is limited, so that a small data set is larger than it."""
    settings = Settings(
        model=model,
        layout=layout,
        workers=workers,
        memory=memory,
        sizes=sizes,
        path=path,
        image=image,
        batch=batch,
        prefetch=prefetch,
    )
    sweep = Sweep(context, settings)

    def run(budget_s: float) -> Sequence[Part]:
        return sweep.run(budget_s)

    return Procedure(run, fills_memory=True)
