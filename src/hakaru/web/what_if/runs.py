"""The runs of one server: played one at a time in a process each, few waiting, the last ones kept.

Those that were done are kept in the workspace, and are there again when the server is.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.errors import HakaruError
from hakaru.safety.processes import module_command
from hakaru.web.problems import Busy, Unknown
from hakaru.web.what_if import models, player
from hakaru.web.what_if.bounds import Bounds
from hakaru.web.what_if.kept import keep, kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from hakaru.sim.site import Site

    Prepare = Callable[[Path], Site]

log = logging.getLogger("hakaru.web")
OVER = ("done", "failed", "cancelled")
TEMPORARY = "tmp"
CAUSE = "the cause is in the app's log, which hakaru serve writes to its standard error"
TIMES = ("asked_at", "began_at", "ended_at")


@dataclass
class Run:
    """One scenario; `prepare` writes its jobs into a folder and says whose they are."""

    wanted: models.Wanted
    names: list[str]
    num_jobs: int
    prepare: Prepare | None  # none of one that was done before
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: models.State = "queued"
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began_at: datetime | None = None
    ended_at: datetime | None = None
    num_done: int = 0
    doing: str = "waiting for its turn"
    problem: str | None = None
    outcome: models.Outcome | None = None
    folder: Path | None = None
    process: subprocess.Popen[str] | None = None


class Runs:
    def __init__(self, bounds: Bounds | None = None, workspace: Path | None = None) -> None:
        self.bounds = bounds or Bounds()
        self._workspace = workspace
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._waiting: deque[Run] = deque()
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._root: Path | None = None
        self._is_closed = False
        for run in _kept(workspace) if workspace else ():
            self._runs[run.id] = run
        self._forget()

    def start(self, run: Run) -> Run:
        """Put it in the queue; refused where too many wait."""
        with self._lock:
            if len(self._waiting) >= self.bounds.waiting or self._is_closed:
                raise Busy(
                    f"{len(self._waiting)} what-if runs wait already",
                    "Wait until one has ended, or cancel one.",
                )
            self._runs[run.id] = run
            self._waiting.append(run)
            self._forget()
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, daemon=True)
                self._worker.start()
        return run

    def find(self, id: str) -> Run:
        with self._lock:
            self._drop_removed()
            run = self._runs.get(id)
        if run is None:
            raise Unknown(
                "there is no such what-if run",
                f"The last {self.bounds.kept} are kept; begin a new one.",
            )
        return run

    def cancel(self, id: str) -> Run:
        """Stop it; one that has ended stays as it is."""
        run = self.find(id)
        with self._lock:
            if run.state in OVER:
                return run
            self._end(run, "cancelled")
            if run in self._waiting:
                self._waiting.remove(run)
            _kill(run.process)
        return run

    def all(self) -> list[Run]:
        with self._lock:
            self._drop_removed()
            return list(reversed(self._runs.values()))

    def num_ahead(self, run: Run) -> int:
        with self._lock:
            if run not in self._waiting:
                return 0
            playing = any(each.state == "running" for each in self._runs.values())
            return self._waiting.index(run) + playing

    def close(self) -> None:
        """End what is played; nothing of it is left on disk."""
        with self._lock:
            self._is_closed = True
            self._waiting.clear()
            for run in self._runs.values():
                if run.state not in OVER:
                    self._end(run, "cancelled")
                _kill(run.process)
            worker = self._worker
        if worker is not None:
            worker.join(10)
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._worker = None
                    return
                run = self._waiting.popleft()
                run.state, run.began_at = "running", datetime.now(UTC)
                run.doing = "asking for the jobs"
                run.folder = self._new_folder(run)
            self._play(run, run.folder)

    def _play(self, run: Run, folder: Path) -> None:
        assert run.prepare is not None
        try:
            site = run.prepare(folder)
            (folder / player.SITE).write_bytes(pickle.dumps(site))
            (folder / player.SCENARIO).write_text(run.wanted.scenario, encoding="utf-8")
            told = self._watch(run, folder)
            outcome = _outcome(folder) if told else None
            with self._lock:
                if run.state == "running":
                    run.outcome = outcome
                    self._end(run, "done" if outcome else "failed")
        except HakaruError as error:
            self._fail(run, str(error))
        except Exception:
            log.exception("a what-if run broke")
            self._fail(run, f"it failed by an internal error; {CAUSE}")
        finally:
            _tidy(folder, keep=run.state == "done")
        if run.state == "done" and self._workspace is not None:
            run.folder = keep(self._workspace, run.id, folder, _facts(run))
            if run.folder != folder:
                shutil.rmtree(folder, ignore_errors=True)

    def _watch(self, run: Run, folder: Path) -> bool:
        """Play it and follow what it says; whether it ended well."""
        (folder / TEMPORARY).mkdir()
        memory = str(self.bounds.memory_bytes)
        command = module_command(player.__name__, str(folder), memory)
        with open(folder / "stderr", "w+", encoding="utf-8") as errors:
            with self._lock:
                if run.state != "running":
                    return False
                run.process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    env=os.environ | {"TMPDIR": str(folder / TEMPORARY)},
                    start_new_session=True,  # so that what it starts ends with it
                )
            return self._follow(run, run.process, errors)

    def _follow(self, run: Run, process: subprocess.Popen[str], errors: Any) -> bool:
        begun = time.monotonic()
        timer = threading.Timer(self.bounds.seconds, _kill, [process])
        timer.daemon = True
        timer.start()
        assert process.stdout is not None
        try:
            with process.stdout:
                for line in process.stdout:
                    with suppress(ValueError):  # what a library may print of its own
                        self._hear(run, json.loads(line))
            code = process.wait()
        finally:
            timer.cancel()
            _kill(process)
        if code and run.state == "running":
            errors.seek(0)
            log.error("a what-if run ended with %d: %s", code, errors.read()[-2000:])
            late = time.monotonic() - begun >= self.bounds.seconds
            run.problem = (
                f"it was stopped after {self.bounds.seconds:g} s; choose a shorter period"
                if late
                else f"its process ended before it was done; {CAUSE}"
            )
        return run.problem is None and not code

    def _hear(self, run: Run, facts: dict[str, Any]) -> None:
        with self._lock:
            if run.state == "running":
                run.num_done = int(facts.get("num_done", run.num_done))
                run.doing = str(facts.get("doing", run.doing))
                run.problem = facts.get("problem", run.problem)

    def _fail(self, run: Run, problem: str) -> None:
        with self._lock:
            if run.state == "running":
                run.problem = problem
                self._end(run, "failed")

    def _end(self, run: Run, state: models.State) -> None:
        run.state, run.ended_at, run.doing = state, datetime.now(UTC), ""

    def _forget(self) -> None:
        """The oldest that are over leave, with what they left on disk."""
        over = [run for run in self._runs.values() if run.state in OVER]
        for run in over[: max(0, len(over) - self.bounds.kept)]:
            del self._runs[run.id]
            if run.folder is not None:
                shutil.rmtree(run.folder, ignore_errors=True)

    def _drop_removed(self) -> None:
        """What was removed from the workspace meanwhile, with its cluster, is shown no longer."""
        for run in [run for run in self._runs.values() if run.state == "done"]:
            if run.folder is not None and not run.folder.exists():
                del self._runs[run.id]

    def _new_folder(self, run: Run) -> Path:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="hakaru-what-if-"))  # mode 0700
        folder = self._root / run.id
        folder.mkdir()
        return folder


def _kill(process: subprocess.Popen[str] | None) -> None:
    """The process and all that it started."""
    if process is not None and process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _outcome(folder: Path) -> models.Outcome:
    return models.Outcome.model_validate_json((folder / player.OUTCOME).read_bytes())


def _tidy(folder: Path, keep: bool) -> None:
    """What is only needed to play is not kept."""
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
        return
    shutil.rmtree(folder / TEMPORARY, ignore_errors=True)
    for name in (player.JOBS, player.SITE, "stderr"):
        (folder / name).unlink(missing_ok=True)


def _facts(run: Run) -> dict[str, Any]:
    """What `_again` makes a run of, beside its outcome."""
    times = {name: _text(getattr(run, name)) for name in TIMES}
    plain = {name: getattr(run, name) for name in ("id", "names", "num_jobs", "num_done")}
    return times | plain | {"wanted": run.wanted.model_dump(mode="json")}


def _text(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _kept(workspace: Path) -> list[Run]:
    """Those of earlier servers, the oldest first; one that an older version left otherwise is passed over."""
    found = []
    for folder, facts in kept(workspace):
        try:
            found.append(_again(folder, facts))
        except (OSError, KeyError, TypeError, ValueError) as error:
            log.warning("%s: a kept what-if run cannot be shown: %s", folder, error)
    return sorted(found, key=lambda run: run.asked_at)


def _again(folder: Path, facts: dict[str, Any]) -> Run:
    times: dict[str, Any] = {name: datetime.fromisoformat(facts[name]) for name in TIMES}
    return Run(
        models.Wanted.model_validate(facts["wanted"]),
        list(facts["names"]),
        int(facts["num_jobs"]),
        None,
        id=folder.name,
        state="done",
        num_done=int(facts["num_done"]),
        doing="",
        outcome=_outcome(folder),
        folder=folder,
        **times,
    )
