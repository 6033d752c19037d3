"""The meter proves itself: it measures things of known truth and reports its own error.

A sleep checks the clock, a core under a quota checks rates, a shaped link checks bandwidths. What a machine
cannot make (no root, no cgroups) is not measured, and never counts as right.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hakaru.errors import HakaruError, MissingExtraError
from hakaru.measure import validity
from hakaru.measure._base import Case, load_all
from hakaru.measure.collect import gather, measurements
from hakaru.measure.context import EXTRA, Alone
from hakaru.measure.launch import Layout
from hakaru.measure.launch.namespaces import Namespaces
from hakaru.measure.meter import Meter
from hakaru.measure.place import gather as gather_place
from hakaru.measure.place import host_name
from hakaru.measure.protocol import Rule, Timed, repeat
from hakaru.measure.record import OWN, Measurement, Run, new_run_id
from hakaru.measure.store import SELFTEST, load_runs
from hakaru.measure.task import Item, Task
from hakaru.measure.truth import Unavailable, links, throttle
from hakaru.measure.verdict import Verdict
from hakaru.safety.processes import module_command

if TYPE_CHECKING:
    from hakaru.lake import Lake

MOST_ERROR = 0.10
SLEEP_S = 0.05
QUOTA = 0.5
RATE_MBIT = 200.0
SPIN_S = 1.5
SPIN = "hakaru.measure.truth.spin"
Progress = Callable[[float, str], None]


def self_test(cluster: str, progress: Progress = lambda share, text: None) -> Run:
    """Measure what is known; each row has the truth as its reference and the error in its record."""
    started = datetime.now(UTC)
    found = []
    for at, (name, test) in enumerate(TRUTHS.items()):
        progress(at / len(TRUTHS), name)
        found.append(_tested(name, test))
    place = gather_place()
    rows = tuple(replace(each, place=place | {"model": "meter"}) for each in found)
    return Run(new_run_id(started), cluster, started, rows, label="selftest")


def last_tests(lake: Lake) -> dict[str, Meter]:
    """What each host's self-tests say of its meter; of each truth the last reading that is good or wrong.

    A truth that was read wrong stays so until it is read right: a later test may not have reached it.
    """
    readings: dict[str, dict[str, Measurement]] = {}
    for run in load_runs(lake, benchmark=SELFTEST):  # the oldest first
        for each in run.measurements if run.source == OWN else ():
            own = readings.setdefault(each.host, {})
            truth = str(each.parameters.get("truth"))
            if each.verdict in (Verdict.GOOD, Verdict.FAILED) or truth not in own:
                own[truth] = each
    found = {host: _meter(host, own) for host, own in readings.items()}
    return {host: meter for host, meter in found.items() if meter is not None}


def _meter(host: str, readings: Mapping[str, Measurement]) -> Meter | None:
    """The largest error, or that it was wrong; None where nothing could be tested."""
    newest = max(each.started_at for each in readings.values())
    if wrong := [each for each in readings.values() if each.verdict is Verdict.FAILED]:
        when = f"{wrong[0].started_at:%Y-%m-%d}"
        reason = (
            f"the meter was wrong on {when} ({wrong[0].reason}): hakaru bench selftest on {host}"
        )
        return Meter(tested_at=when, problem=reason)
    good = {truth: float(each.validity["error"]) for truth, each in readings.items()
            if each.verdict is Verdict.GOOD and "error" in each.validity}  # fmt: skip
    if not good:
        return None
    left = tuple(truth for truth in readings if truth not in good)
    return Meter(max(map(abs, good.values())), f"{newest:%Y-%m-%d}", untested=left)


def _tested(name: str, test: Callable[[], tuple[float, list[float], str]]) -> Measurement:
    started, before = datetime.now(UTC), validity.read_now()
    children = _children_s()
    row = Measurement(
        SELFTEST, "reading", "", "higher", host_name(), "meter", started, started,
        parameters={"truth": name},
    )  # fmt: skip
    try:
        truth, samples, unit = test()
    except Unavailable as why:
        return row.judged(Verdict.NOT_MEASURED, str(why))
    except HakaruError as why:
        return row.judged(Verdict.FAILED, str(why))
    span = validity.read_now().since(before)
    row = replace(row, samples=tuple(samples), unit=unit, ended_at=datetime.now(UTC), reference=truth,
                  compared_with="the truth")  # fmt: skip
    own_s = span.own_s + _children_s() - children
    busy = validity.problems(span, os.cpu_count() or 1, own_s)
    error = (row.median or 0.0) / truth - 1
    row = replace(row, validity={"error": error, "machine": span.to_json()})
    reading = f"reads {row.median:.4g} where the truth is {truth:.4g} {unit}: {error:+.1%}"
    if abs(error) <= MOST_ERROR:
        return row.judged(Verdict.GOOD, reading)
    if busy:
        return row.judged(Verdict.CONTAMINATED, f"{reading}; {'; '.join(busy)}")
    return row.judged(Verdict.FAILED, f"{reading}; {MOST_ERROR:.0%} is the most allowed")


def _children_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _sleep() -> tuple[float, list[float], str]:
    """The protocol times a sleep; the kernel may only add to it."""
    case = Case(lambda: time.sleep(SLEEP_S), lambda s: {"time": s * 1e3}, lambda: None)
    timed = Timed(case)
    repeat({"sleep": timed}, Rule(least=10, most=10, budget_s=5.0), Alone())
    return SLEEP_S * 1e3, timed.samples()["time"], "ms"


def _quota() -> tuple[float, list[float], str]:
    """The rate under a quota over the rate without one, measured in turn."""
    ratios = []
    with throttle.cpu_quota(QUOTA) as group:
        for _ in range(3):
            free, bound = _spin([]), _spin(group.prefix)
            ratios.append(bound / free)
    return QUOTA, ratios, "of a core"


def _spin(prefix: list[str]) -> float:
    command = [*prefix, *module_command(SPIN, str(SPIN_S))]
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environ = os.environ | dict.fromkeys(threads, "1")
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environ
    )
    if done.returncode != 0:
        raise HakaruError(f"the computing process ended with exit code {done.returncode}")
    return float(json.loads(done.stdout)["rate"])


def _link() -> tuple[float, list[float], str]:
    """The pair probe between two hosts whose link is shaped; headers take their part of its rate."""
    if find_spec("torch") is None:
        raise Unavailable(str(MissingExtraError("torch", EXTRA)))
    load_all()
    with (
        links.hosts(2, RATE_MBIT) as hosts,
        tempfile.TemporaryDirectory(prefix="hakaru-") as folder,
    ):
        task = Task("ranks", (Item("pairs", {"bytes": 4 << 20}),))
        path = task.write(Path(folder))
        problems = Namespaces(hosts, {}).run(path, Layout(), 120.0, lambda: None)
        rows = measurements(task, gather(Path(folder), 2, problems))
        payload = hosts[0].payload_mbit
    samples = [value * 8e3 for each in rows for value in each.samples]
    if not samples or payload is None or any(each.verdict is Verdict.FAILED for each in rows):
        raise HakaruError(f"the pair probe gave no rate: {rows[0].reason}")
    return payload, samples, "Mbit/s"


TRUTHS: dict[str, Callable[[], tuple[float, list[float], str]]] = {
    "a sleep": _sleep,
    "a core under a quota": _quota,
    "a shaped link": _link,
}
