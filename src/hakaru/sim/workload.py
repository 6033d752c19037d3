"""The jobs of one cluster as the simulator sees them: whole seconds, codes, in order of submission."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hakaru.errors import HakaruError

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.sim.machine import Machine

    Ints = np.ndarray[Any, np.dtype[np.int64]]

# What a table of jobs must hold (canonical columns, and num_pes and span_nodes as analyses derive them),
# and in which order, so that jobs submitted in one second keep the log's order.
COLUMNS = (
    "cluster", "job_id", "user", "account", "queue", "qos", "gpu_model", "num_pes", "span_nodes",
    "requested_s", "submitted_at", "started_at", "run_s", "wait_s", "state",
)  # fmt: skip
ARRAYS = (
    "submit", "run", "request", "pes", "num_nodes", "user", "account", "queue", "qos", "model",
)  # fmt: skip
ORDER = "submitted_at, length(job_id), job_id"
LEAST_RUN_S = 1  # the reference simulators give a job of no length one second
LONGEST_S = 2**33  # 272 years stand for "no limit": the kernels pack a time and a job into one word

Estimator = Callable[["Workload"], "Ints"]
NoRequest = Literal["queue-limit", "run"]
NODE_A_PROCESSOR = "are recorded with a node a processor: on nodes, placed on as few as hold them"
UNASKED = "ask for no time: "


@dataclass(frozen=True)
class Workload:
    """One entry a job in every array. A code of -1 stands for an unknown user, account, queue, QOS or model.

    `table` holds the same jobs as rows; `left_out` says how many could not be simulated, by reason, and
    `notes` what was assumed. `request` is never below `run`: a job is killed at what it asked for.
    """

    table: pa.Table
    submit: Ints
    run: Ints
    request: Ints
    pes: Ints  # all of a job's
    num_nodes: Ints
    user: Ints
    account: Ints
    queue: Ints
    qos: Ints
    model: Ints
    names: Mapping[str, tuple[str, ...]]  # of users, accounts, queues, QOS and models, by code
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.submit)

    @classmethod
    def of(
        cls,
        table: pa.Table,
        no_request: NoRequest = "queue-limit",
        walltimes: Mapping[str, float] | None = None,
        least_run_s: int = LEAST_RUN_S,
    ) -> Workload:
        """The jobs of one cluster that ran; ordered by `ORDER`.

        A job that asks for no time is thought to take its queue's walltime (in seconds, by the queue's
        name), else the longest request that is seen in the queue, else its run time; or always the last.
        What is recorded to run for less than `least_run_s` runs so long, as in pyss.
        """
        _check(table)
        values = {
            name: _numbers(table, name)
            for name in ("num_pes", "span_nodes", "requested_s", "run_s")
        }
        submit = _seconds(table, "submitted_at")
        reasons = {
            "no submission time": np.isnan(submit),
            "no run time (never started, or still running)": np.isnan(values["run_s"]),
            "submitted before 1970": submit < 0,
            "a negative run time": values["run_s"] < 0,
            "no size": ~(values["num_pes"] >= 1),
        }
        keep = np.ones(len(submit), bool)
        left_out = {}
        for reason, applies in reasons.items():
            left_out[reason] = int((keep & applies).sum())
            keep &= ~applies
        told = {reason: number for reason, number in left_out.items() if number}
        limits = None if no_request == "run" else walltimes or {}
        return cls._kept(table, keep, submit, values, told, limits, least_run_s)

    @classmethod
    def _kept(
        cls,
        table: pa.Table,
        keep: Any,
        submit: Any,
        values: Mapping[str, Any],
        left_out: dict[str, int],
        walltimes: Mapping[str, float] | None,
        least_run_s: int,
    ) -> Workload:
        import pyarrow as pa

        table = table.filter(pa.array(keep))
        run = np.round(np.minimum(values["run_s"][keep], LONGEST_S)).astype(np.int64)
        codes, names = _codes(table)
        queue = codes["queue"], names["queue"]
        request, unasked = _requests(values["requested_s"][keep], run, queue, walltimes)
        longer = int((run > request).sum())
        pes, num_nodes = _sizes(values["num_pes"][keep], values["span_nodes"][keep])
        played = np.minimum(run, request)
        short = f"run for less than {least_run_s} s: taken as {least_run_s} s"
        notes = unasked | {
            NODE_A_PROCESSOR: int((num_nodes < np.nan_to_num(values["span_nodes"][keep])).sum()),
            "ran longer than they asked: ended at what they asked for": longer,
            short if least_run_s else "run for no time at all": int(
                (played < max(least_run_s, 1)).sum()
            ),
            "have no user: no limit of a user holds them": int(table["user"].null_count),
        }
        return cls(
            table,
            np.ceil(submit[keep]).astype(np.int64),  # nobody begins before submission
            np.maximum(played, least_run_s),
            np.maximum(request, least_run_s),
            pes,
            num_nodes,
            codes["user"],
            codes["account"],
            codes["queue"],
            codes["qos"],
            codes["gpu_model"],
            names,
            left_out,
            {note: number for note, number in notes.items() if number},
        )

    def take(self, keep: Any, reason: str | None = None) -> Workload:
        """Only these jobs; `reason` says why the others are left out."""
        import pyarrow as pa

        if keep.dtype == bool and keep.all():
            return self
        arrays = {name: getattr(self, name)[keep] for name in ARRAYS}
        table = self.table.filter(pa.array(keep)) if keep.dtype == bool else self.table.take(keep)
        gone = int(len(self) - (keep.sum() if keep.dtype == bool else len(keep)))
        left_out = dict(self.left_out) | ({reason: gone} if reason and gone else {})
        return replace(self, table=table, **arrays, left_out=left_out)


def estimates_of(text: str) -> Estimator:
    """What `--estimates` means: `request`, `perfect`, or the request times a number as `scaled:2`."""
    if text == "request":
        return lambda workload: workload.request
    if text == "perfect":
        return lambda workload: workload.run
    kind, _, factor = text.partition(":")
    if kind == "scaled" and _is_positive(factor):
        return lambda workload: np.maximum(1, np.round(workload.request * float(factor))).astype(
            np.int64
        )
    raise HakaruError(
        f"estimates {text!r} are not known: use request, perfect, or scaled:FACTOR, e.g. scaled:2"
    )


def _sizes(num_pes: Any, span_nodes: Any) -> tuple[Ints, Ints]:
    """PEs, and nodes. A log in which every job has as many nodes as PEs counts processors, not nodes."""
    pes = num_pes.astype(np.int64)
    num_nodes = np.maximum(np.nan_to_num(span_nodes, nan=1), 1).astype(np.int64)
    if len(pes) and pes.max() > 1 and (num_nodes == pes).all():
        return pes, np.ones_like(pes)
    return pes, num_nodes


def _requests(
    asked: Any,
    run: Ints,
    queue: tuple[Ints, tuple[str, ...]],
    walltimes: Mapping[str, float] | None,
) -> tuple[Ints, dict[str, int]]:
    """What each job asks for, and how many of those who do not are thought to ask for what."""
    codes, names = queue
    unknown = ~(asked >= 0)
    asked = np.minimum(np.round(np.nan_to_num(asked)), LONGEST_S)
    request = np.where(unknown, run, asked).astype(np.int64)
    # One more for jobs of no queue, which the code -1 finds at the end: nothing is known of them.
    limit, longest = np.full(len(names) + 1, -1.0), np.full(len(names) + 1, -1.0)
    if walltimes is not None:
        limit[:-1] = [walltimes.get(name, -1) for name in names]
        np.maximum.at(longest, codes[~unknown], asked[~unknown])
        longest[-1] = -1
    by_limit = unknown & (limit[codes] >= 0)
    by_longest = unknown & ~by_limit & (longest[codes] >= 0)
    thought = np.where(by_limit, limit[codes], np.where(by_longest, longest[codes], request))
    notes = {
        UNASKED + "taken to ask for their queue's longest walltime": by_limit,
        UNASKED + "taken to ask for the most that is asked for in their queue": by_longest,
        UNASKED + "taken to know their run time": unknown & ~by_limit & ~by_longest,
    }
    request = np.where(unknown, np.maximum(request, np.minimum(thought, LONGEST_S)), request)
    return request.astype(np.int64), {note: int(chosen.sum()) for note, chosen in notes.items()}


def _is_positive(text: str) -> bool:
    try:
        return 0 < float(text) < 1e6
    except ValueError:
        return False


def notes_on(workload: Workload, machine: Machine) -> dict[str, int]:
    """What was assumed, as far as it matters on this machine: in one pool no job is placed on nodes."""
    pooled = (NODE_A_PROCESSOR,) if machine.is_flat else ()
    return {note: number for note, number in workload.notes.items() if note not in pooled}


def _check(table: pa.Table) -> None:
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise HakaruError(f"a table of jobs to simulate lacks the columns {', '.join(missing)}")
    clusters = table["cluster"].unique().to_pylist()
    if len(clusters) > 1:
        raise HakaruError(
            f"one cluster is simulated at a time, found {', '.join(map(str, clusters))}: "
            "choose with --cluster NAME"
        )


def _numbers(table: pa.Table, name: str) -> Any:
    import pyarrow as pa

    return np.array(table[name].cast(pa.float64()).to_numpy(zero_copy_only=False), float)


def _seconds(table: pa.Table, name: str) -> Any:
    import pyarrow as pa

    stamps = (
        table[name].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).cast(pa.float64(), safe=False)
    )
    return np.array(stamps.to_numpy(zero_copy_only=False), float) / 1e6


def _codes(table: pa.Table) -> tuple[dict[str, Ints], dict[str, tuple[str, ...]]]:
    """Codes by order of appearance for each kind of name."""
    import pyarrow as pa

    codes, names = {}, {}
    for name in ("user", "account", "queue", "qos", "gpu_model"):
        encoded = table[name].cast(pa.string()).combine_chunks().dictionary_encode()
        numbers = encoded.indices.cast(pa.int64()).fill_null(-1)
        codes[name] = np.array(numbers.to_numpy(zero_copy_only=False), np.int64)
        names[name] = tuple(encoded.dictionary.to_pylist())
    return codes, names
