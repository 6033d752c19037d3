"""One launch of HPL: its input written, its processes started and watched, its results matched to the batch.

A launch has a folder of its own, in which input, output and standard streams stay for whoever wants to look.
"""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hakaru.errors import HakaruError
from hakaru.measure import validity
from hakaru.measure.hpl import orphan
from hakaru.measure.hpl.blas import VERBOSE, kernels_in
from hakaru.measure.hpl.dat import Batch, Config
from hakaru.measure.hpl.output import parse_output
from hakaru.measure.hpl.program import Program
from hakaru.measure.hpl.result import Output, ProblemKind, Result
from hakaru.measure.hpl.start import HERE, Start
from hakaru.measure.launch._base import ended
from hakaru.safety.text import plain

GRACE_S = 3.0
MOST_READ = 64 * 2**20
MOST_TAIL = 1200


class LaunchError(HakaruError):
    """A launch that gave no results that count; the message has command, exit code and the output's end."""

    def __init__(
        self,
        what: str,
        words: Sequence[str],
        wall_s: float,
        tail: str,
        timed_out: bool = False,
        disturbances: Sequence[str] = (),
    ) -> None:
        self.command, self.wall_s, self.timed_out = tuple(words), wall_s, timed_out
        self.disturbances = tuple(disturbances)
        shown = f"\nIts output ends with:\n{tail}" if tail else "\nIt printed nothing."
        super().__init__(f"{what} after {wall_s:.1f} s: {shlex.join(words)}{shown}")


@dataclass(frozen=True)
class Launched:
    """A launch that came to its end; `results` has None for a configuration that HPL skipped."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    wall_s: float
    output: Output
    results: tuple[tuple[Config, Result | None], ...]
    kernels: tuple[str, ...]
    disturbances: tuple[str, ...]  # what else used the machine, where all ranks ran on it


def launch(
    program: Program,
    batch: Batch,
    ranks: int,
    folder: Path,
    *,
    start: Start = HERE,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    started: Callable[[int], None] = lambda pid: None,
) -> Launched:
    """Run a batch in a fresh folder; raises `LaunchError` where any rank or result is not as it must be."""
    words, given = start.command(program, ranks), dict(environment or {})
    text = batch.text(ranks)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / program.input_name).write_text(text)
    before, own = validity.read_now(), _children_s()
    code, stopped = _run(words, folder, {**os.environ, **VERBOSE, **given}, timeout_s, started)
    after = validity.read_now()
    end = stopped or _End(after, 0.0)
    used_s = max(_children_s() - own, end.used_s)
    busy = _disturbances(end.at.since(before), used_s) if start.is_local else []
    wall_s = after.wall_s - before.wall_s
    fail = _Failure(words, wall_s, folder, program, busy)
    if stopped:
        raise fail.error(f"HPL did not finish within {timeout_s:.0f} s", timed_out=True)
    if code != 0:
        raise fail.error(f"HPL {ended(code)}")
    output = read_output(program, folder)
    results = _matched(batch.configs(), output, fail)
    kernels = kernels_in(_text(folder / "stderr.txt"))
    return Launched(tuple(words), given, wall_s, output, results, kernels, tuple(busy))


def read_output(program: Program, folder: Path) -> Output:
    """The results in a launch's folder, from the first file that has some."""
    outputs = [parse_output(_text(folder / name)) for name in program.output_names]
    return next((each for each in outputs if each.results), outputs[0])


def results_in(program: Program, folder: Path, configs: Sequence[Config]) -> list[Result | None]:
    """The results of a launch that nobody recorded, from its folder; None where they are not whole."""
    fail = _Failure([program.path], 0.0, folder, program)
    try:
        matched = _matched(configs, read_output(program, folder), fail)
    except LaunchError:
        return [None] * len(configs)
    return [result for _, result in matched]


@dataclass(frozen=True)
class _Failure:
    """What an error of this launch says besides its reason."""

    words: Sequence[str]
    wall_s: float
    folder: Path
    program: Program
    disturbances: Sequence[str] = ()

    def error(self, what: str, timed_out: bool = False) -> LaunchError:
        names = ("stderr.txt", "stdout.txt", *self.program.output_names)
        texts = [_lines(_text(self.folder / name)) for name in dict.fromkeys(names)]
        last = "\n".join(next((lines for lines in texts if lines), [])[-8:])[-MOST_TAIL:]
        return LaunchError(what, self.words, self.wall_s, plain(last), timed_out, self.disturbances)


@dataclass(frozen=True)
class _End:
    """When a launch was over, and the most that its ranks, which nobody waited for, had used by then."""

    at: validity.Reading
    used_s: float


def _matched(
    wanted: Sequence[Config], output: Output, fail: _Failure
) -> tuple[tuple[Config, Result | None], ...]:
    """Each configuration with its result, in HPL's order.

    hpcc runs its own default and exits with 0 where it does not like its input: results that nobody asked
    for are an error.
    """
    found: list[tuple[Config, Result | None]] = [(config, None) for config in wanted]
    at = 0
    for result in output.results:
        while at < len(found) and not _is_of(result, found[at][0]):
            at += 1
        if at == len(found):
            raise fail.error(
                f"HPL has a result that was not asked for (N {result.n}, NB {result.nb},"
                f" {result.p} × {result.q}, {result.variant})"
            )
        found[at] = (found[at][0], result)
        at += 1
    unsound = [each.text for each in output.problems if each.kind is not ProblemKind.MEMORY]
    if not output.results or not output.is_complete or unsound:
        why = "; ".join(unsound[:3]) or "no result"
        raise fail.error(f"HPL ended without a complete result ({why})")
    return tuple(found)


def _is_of(result: Result, config: Config) -> bool:
    sizes = (result.n, result.nb, result.p, result.q) == (config.n, config.nb, config.p, config.q)
    return sizes and (result.config is None or result.variant == config.variant)


def _run(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    timeout_s: float | None,
    started: Callable[[int], None],
) -> tuple[int, _End | None]:
    """The exit code and, where time ran out, what was used until then; no process is left behind."""
    with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:
        try:
            process = subprocess.Popen(
                list(words), cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, process_group=0,
            )  # fmt: skip
        except OSError as error:
            raise HakaruError(f"{words[0]} cannot be started: {error.strerror}") from None
    try:
        started(process.pid)
        return process.wait(timeout_s), None
    except subprocess.TimeoutExpired:
        # mpirun does not wait for its ranks, and ending hundreds of them keeps all cores busy: the machine is
        # read first, so that what is found to be its own covers all of that time
        at = validity.read_now()
        return -signal.SIGKILL, _End(at, orphan.most_used_s(process.pid))
    finally:
        end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a launch: mpirun ends its ranks when it is asked to; when it is killed, they end by themselves."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)


def _disturbances(span: validity.Reading, own_s: float) -> list[str]:
    num_cores = os.cpu_count() or 1
    quota = validity.stopped(span, num_cores)
    return [*validity.problems(span, num_cores, own_s), *([quota] if quota else [])]


def _lines(text: str) -> list[str]:
    """The lines that may say what went wrong; OpenBLAS names its kernel in every rank."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("Core: ")]


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_READ).decode("utf-8", errors="replace")
    except OSError:
        return ""
