"""AAIC's log in pandas: the columns of `jobs`, each made of the columns of the CSV files that it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

ZONE = "Asia/Tokyo"
QUEUES = ("normal", "short", "middle", "long")
STATES = ("completed", "failed", "timeout", "cancelled", "killed")

# a column of `jobs`: the columns of the CSV files it needs, and how it is made of them
COLUMNS: dict[str, tuple[list[str], Callable[[pd.DataFrame], pd.Series]]] = {
    "user": (["user"], lambda raw: raw["log"] * 1000 + raw["user"]),
    "account": (["group"], lambda raw: raw["log"] * 1000 + raw["group"]),
    "queue": (["queue"], lambda raw: pd.Categorical.from_codes(raw["queue"], QUEUES)),
    "state": (["termcode"], lambda raw: pd.Categorical.from_codes(raw["termcode"], STATES)),
    "num_nodes": (["nodes"], lambda raw: raw["nodes"]),
    "num_gpus": (["nodes", "gpus"], lambda raw: raw["nodes"] * raw["gpus"]),
    "requested_s": (["walltime_req"], lambda raw: raw["walltime_req"]),
    "submitted_s": (["time_submit"], lambda raw: raw["time_submit"]),
    "started_s": (["time_start"], lambda raw: raw["time_start"]),
    "ended_s": (["time_end"], lambda raw: raw["time_end"]),
    "wait_s": (["waittime"], lambda raw: raw["waittime"]),
    "run_s": (["walltime"], lambda raw: raw["walltime"]),
    "pe_hours": (
        ["nodes", "gpus", "walltime"],
        lambda raw: raw["nodes"] * raw["gpus"] * raw["walltime"] / 3600,
    ),
    "parallelism": (
        ["nodes", "gpus"],
        lambda raw: np.where(
            raw["nodes"] > 1, "multi-node", np.where(raw["gpus"] > 1, "single-node", "single-pe")
        ),
    ),
    "local": (["time_submit"], lambda raw: local_time(raw["time_submit"])),
    "quarter": (
        ["time_submit"],
        lambda raw: local_time(raw["time_submit"]).dt.to_period("Q").astype(str),
    ),
}


class Log:
    """AAIC's CSV files; with `keep`, what was read and derived is kept for the next table."""

    def __init__(self, files: Sequence[Path], keep: bool) -> None:
        self.files = files
        self.keep = keep
        self._raw: pd.DataFrame | None = None
        self._made: dict[str, pd.Series] = {}

    def jobs(self, *names: str) -> pd.DataFrame:
        raw = self._read(sorted({column for name in names for column in COLUMNS[name][0]}))
        made = self._made if self.keep else {}
        for name in names:
            if name not in made:
                made[name] = pd.Series(COLUMNS[name][1](raw))
        return pd.DataFrame({name: made[name] for name in names})

    def _read(self, columns: list[str]) -> pd.DataFrame:
        if self._raw is not None:
            return self._raw
        wanted = None if self.keep else columns
        raw = pd.concat(
            [
                pd.read_csv(path, skipinitialspace=True, usecols=wanted).assign(log=number)
                for number, path in enumerate(self.files)
            ],
            ignore_index=True,
        )
        if self.keep:
            self._raw = raw
        return raw


def local_time(seconds: pd.Series) -> pd.Series:
    moments = pd.to_datetime(seconds, unit="s", utc=True)
    return moments.dt.tz_convert(ZONE).dt.tz_localize(None)
