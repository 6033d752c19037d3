"""A run in a process of its own: `python -m hakaru.web.what_if.player FOLDER BYTES`.

The folder holds the jobs, the scenario and the site; how far it is goes to stdout, a line of JSON each. It
leaves the outcome, the schedules as plain arrays (which are mapped, not read), and the jobs' names.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from hakaru.errors import HakaruError
from hakaru.sim import whatif
from hakaru.sim.metrics import groups_of
from hakaru.sim.schedule import Schedule
from hakaru.sim.site import Site
from hakaru.sim.whatif.curves import busy_of
from hakaru.sim.whatif.variants import ORIGIN
from hakaru.sim.workload import Workload

JOBS, SCENARIO, SITE, OUTCOME, NAMES = (
    "jobs.arrow", "scenario.toml", "site.pickle", "outcome.json", "names.arrow",
)  # fmt: skip
ROW = np.dtype(
    [("job", "i4"), ("start", "i8"), ("end", "i8"), ("num_nodes", "i4"), ("offset", "i8")]
)
DAY_S = 86400


def main(folder: Path, memory_bytes: int) -> int:
    os.nice(5)  # readers come first
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    try:
        _play(folder)
    except HakaruError as error:
        _tell(problem=str(error))
    except MemoryError:
        _tell(problem="it needs more memory than a run may have; choose a shorter period")
    return 0


def _play(folder: Path) -> None:
    _tell(doing="reading the jobs")
    site: Site = pickle.loads((folder / SITE).read_bytes())
    with pa.memory_map(str(folder / JOBS)) as source:
        workload = site.workload(pa.ipc.open_file(source).read_all())
        scenario = whatif.read((folder / SCENARIO).read_text(encoding="utf-8"))
        _tell(doing=f"playing {scenario.baseline.name} (the first time, compiling)")
        names = [plan.name for plan in scenario.plans]

        def progress(done: int, total: int, name: str) -> None:
            _tell(num_done=done, doing=f"playing {names[done]}" if done < total else "comparing")

        outcome = whatif.run(scenario, workload, site, num_processes=1, progress=progress)
        _write(folder, outcome, workload)


def _write(folder: Path, outcome: whatif.Outcome, workload: Workload) -> None:
    schedules = [run.schedule for run in outcome.runs if run.schedule is not None]
    for number, schedule in enumerate(schedules):
        np.save(folder / f"rows-{number}.npy", _rows(schedule))
        np.save(folder / f"nodes-{number}.npy", schedule.node.astype(np.int32))
    classes = _write_names(folder, workload)
    days = _days(workload, schedules[0], outcome.zone)
    facts = {"machines": [_machine(schedule) for schedule in schedules], "classes": classes} | days
    recorded = {"recorded_busy": _recorded(workload, schedules[0])}
    text = json.dumps(outcome.as_dict() | facts | recorded)
    (folder / OUTCOME).write_text(text, encoding="utf-8")


def _rows(schedule: Schedule) -> Any:
    rows = np.zeros(len(schedule.start), ROW)
    rows["job"] = schedule.workload.table[ORIGIN].to_numpy()
    for name in ("start", "end", "num_nodes", "offset"):
        rows[name] = getattr(schedule, name)
    return rows[schedule.start >= 0]


def _write_names(folder: Path, workload: Workload) -> Sequence[str]:
    codes, classes = groups_of(workload, "class")
    columns = {name: workload.table[name] for name in ("job_id", "user", "queue")}
    more = {"num_pes": pa.array(workload.pes), "class": pa.array(codes.astype(np.int8))}
    table = pa.table(columns | more)
    with pa.ipc.new_file(str(folder / NAMES), table.schema) as sink:
        sink.write_table(table)
    return list(classes)


def _machine(schedule: Schedule) -> dict[str, Any]:
    machine = schedule.machine
    return {
        "num_nodes": 0 if machine.is_flat else machine.num_nodes,
        "node_size": int(machine.sizes.max()),
        "num_pes": machine.num_pes,
        "is_flat": machine.is_flat,
        "names": list(machine.names),
    }


def _recorded(workload: Workload, like: Schedule) -> list[tuple[int, float]]:
    """Busy PEs as the log has them; a job of unknown start is nowhere."""
    stamps = workload.table["started_at"].cast(pa.timestamp("s", "UTC"), safe=False)
    start = np.asarray(stamps.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False))
    log = replace(like, workload=workload, start=start, end=start + workload.run)
    return list(busy_of(log, int(workload.submit.min()), int(workload.submit.max())))


def _days(workload: Workload, baseline: Schedule, zone: str) -> dict[str, str]:
    """The first and the last day of submission on the site's clock, and that of the longest waits."""
    first, last = (
        datetime.fromtimestamp(int(moment), ZoneInfo(zone))
        for moment in (workload.submit.min(), workload.submit.max())
    )
    midnight = int(first.replace(hour=0, minute=0, second=0, microsecond=0).timestamp())
    began = baseline.start >= 0
    day = np.maximum((baseline.workload.submit[began] - midnight) // DAY_S, 0)
    waited = np.bincount(day, weights=baseline.wait[began].astype(float), minlength=1)
    worst = min(first.date() + timedelta(days=int(waited.argmax())), last.date())
    return {"first_day": str(first.date()), "last_day": str(last.date()), "day": str(worst)}


def _tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    # under its own name, so that what was pickled by the server is found here too
    from hakaru.web.what_if import player

    sys.exit(player.main(Path(sys.argv[1]), int(sys.argv[2])))
