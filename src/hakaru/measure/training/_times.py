"""When the phases of a training step ended on one rank, and when each bucket of gradients was ready."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepTimes:
    """Seconds of this rank's monotonic clock, which all processes of a kernel share.

    Where forward and backward take turns (accumulation, pipelines), `forward` is the end of the data phase
    plus all the time in forward, so that the phases' lengths are right.

    `waited` lies within forward and backward. Tensor parallel: its collectives. FSDP: on a processor its
    collectives, which block there; on a card the waits of the compute stream. A pipeline: all that its stage
    does not compute. What an all-reduce of DDP leaves exposed is no part of it: that is the time between the
    last `ready` and the end of backward.
    """

    begin: float
    data: float
    forward: float
    backward: float
    optimiser: float
    ready: tuple[float, ...] = ()  # a bucket: when this rank gave it to communication
    finished: tuple[float, ...] = ()  # a bucket: when its communication had finished
    bucket_bytes: tuple[int, ...] = ()  # a bucket, on the wire: after compression
    waited: float = 0.0  # blocked in communication other than the buckets', in this step
