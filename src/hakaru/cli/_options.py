"""Options that several verbs share: the workspace or the log files, the engine, parameters."""

from __future__ import annotations

import functools
import glob
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import click

from hakaru.errors import HakaruError, SourceError
from hakaru.safety.text import plain

if TYPE_CHECKING:
    from hakaru.analyses import Unit
    from hakaru.lake import Lake

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_WORKSPACE = "hakaru-workspace"
LANGUAGES = ("en", "ja", "ko")
LOG_OPTIONS = ("mapping", "zone", "start", "fields")
READ_AGAIN = "for a workspace, give it to `hakaru ingest`"
IN_A_WORKSPACE = {
    "log_format": "for a workspace, give `hakaru ingest` --format",
    "zone": "for a workspace, set clusters.NAME.zone in its hakaru.toml",
}
QUOTE_IT = "quote the pattern: --from '*.gz'"


class Folder(click.Path):
    """A folder's path; an empty one, as of a shell's variable that is not set, is no folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name of the folder is empty", param, ctx)
        if any(not character.isprintable() for character in str(value)):
            self.fail(f"{str(value)!r} holds a character that cannot be printed", param, ctx)
        return super().convert(value, param, ctx)


def workspace_option(function: F) -> F:
    return click.option(
        "--workspace",
        "-w",
        envvar="HAKARU_WORKSPACE",
        default=DEFAULT_WORKSPACE,
        show_default=True,
        type=Folder(path_type=Path, file_okay=False),
        help="Folder of the workspace (or set HAKARU_WORKSPACE).",
    )(function)


@dataclass(frozen=True)
class Data:
    """Where a reading command takes its jobs from: a workspace, or logs in place of one."""

    workspace: Path
    logs: tuple[str, ...] = ()
    log_format: str | None = None
    mapping: Path | None = None
    zone: str | None = None
    start: str | None = None
    fields: str | None = None
    unit: Unit | None = None


def data_options(function: F) -> F:
    """`--workspace`, or log files instead of one, and the unit of sizes; the command gets them as `data`."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        names = [field.name for field in fields(Data)]
        data = Data(**{name: options.pop(name) for name in names})
        return function(*arguments, data=data, **options)

    for option in (
        click.option(
            "--unit",
            type=click.Choice(["gpu", "cpu"]),
            help="A job's size is its GPUs or its processors; jobs without any are left out. Else the unit "
            "in hakaru.toml, or the one with more hours.",
        ),
        click.option("--fields", help="With --from: fields of sacct -n, which has no header."),
        click.option("--start", help="With --from: first day of a log with relative dates (swf)."),
        click.option("--zone", help="With --from: the site's time zone, e.g. Asia/Tokyo."),
        click.option(
            "--mapping",
            type=click.Path(path_type=Path, dir_okay=False),
            help="With --from: TOML that maps the columns of a CSV or Parquet file.",
        ),
        click.option(
            "--log-format", help="With --from: the logs' format, if it is not recognised."
        ),
        click.option(
            "--from",
            "logs",
            multiple=True,
            metavar="[NAME=]FILE",
            help="Read this log (- for standard input) instead of a workspace; quote a pattern, "
            "repeat for more.",
        ),
        workspace_option,
    ):
        call = option(call)
    return cast(F, call)


def engine_option(function: F) -> F:
    return click.option(
        "--engine",
        type=click.Choice(["duckdb", "spark"]),
        default="duckdb",
        show_default=True,
        help="Where the queries run.",
    )(function)


def output_options(formats: Sequence[str]) -> Callable[[F], F]:
    """`--format` and `--output`, for what may be a table on the terminal or a file."""
    format = click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        help="Else by the file's ending; a table without a file.",
    )
    path = click.Path(path_type=Path, dir_okay=False)
    output = click.option("-o", "--output", type=path, help="Write to a file.")
    return lambda function: format(output(function))


def lang_option(what: str) -> Callable[[F], F]:
    """`--lang`; `what` is that which is written in the language."""
    return click.option(
        "--lang",
        type=click.Choice(LANGUAGES),
        default="en",
        show_default=True,
        help=f"Language of {what}: English, Japanese or Korean.",
    )


def parse_params(
    pairs: Sequence[str],
    option: str = "--param",
    repeated: Literal["last", "join", "refuse"] = "last",
) -> dict[str, str]:
    """NAME=VALUE by name; of a name given twice the last counts, or all do (a,b), or it is an error."""
    params: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator:
            raise HakaruError(f"{option} takes NAME=VALUE, found {pair!r}")
        if name in params and repeated == "refuse":
            raise HakaruError(f"{option} {name} is given twice: {params[name]!r} and {value!r}")
        joined = name in params and repeated == "join"
        params[name] = f"{params[name]},{value}" if joined else value
    return params


def create_lake(workspace: Path) -> Lake:
    """The workspace's lake, made if it is not there; says so where an open one was closed to others."""
    from hakaru.lake import Lake

    lake = Lake.create(workspace)
    if lake.mode_before is not None:
        click.echo(
            f"{lake.root} had the mode {lake.mode_before:04o}; only its owner may read it now, and the "
            "group that workspace.group in hakaru.toml names",
            err=True,
        )
    return lake


@contextmanager
def open_lake(data: Data) -> Iterator[Lake]:
    """The workspace's lake or, with `--from`, a temporary one of the given logs.

    The workspace's `hakaru.toml`, where there is one, holds for the logs too.
    """
    from hakaru.lake import Lake
    from hakaru.settings import FILE_NAME, file_text

    if not data.logs:
        _refuse_without_logs(data)
        yield Lake.open(data.workspace)
        return
    with tempfile.TemporaryDirectory(prefix="hakaru-") as folder:
        lake = Lake.create(Path(folder, "workspace"))
        if (settings := file_text(data.workspace)) is not None:
            (lake.workspace / FILE_NAME).write_text(settings, encoding="utf-8")
        for name, paths in group_logs(data.logs).items():
            _read_logs(lake, name, {_unpiped(path, Path(folder)): path for path in paths}, data)
        yield lake


def _refuse_without_logs(data: Data) -> None:
    """A workspace was read already: an option that says how to read a log would change nothing."""
    for name in ("log_format", *LOG_OPTIONS):
        if getattr(data, name) is not None:
            option = "--" + name.replace("_", "-")
            raise HakaruError(f"{option} needs --from; {IN_A_WORKSPACE.get(name, READ_AGAIN)}")


def _read_logs(lake: Lake, cluster: str, paths: Mapping[Path, Path], data: Data) -> None:
    """Read files, some of them copies of the pipes that were given."""
    from hakaru.cli._progress import ingest_with_progress
    from hakaru.cli.ingest import missing_line

    options = {name: getattr(data, name) for name in LOG_OPTIONS}
    names = {copy: str(given) for copy, given in paths.items() if copy != given}
    try:
        summary = ingest_with_progress(
            lake, [*paths], cluster, format=data.log_format, options=options, names=names
        )
    except SourceError as error:
        # a source names the option of `ingest`; here --format is that of the output
        raise SourceError(str(error).replace("with --format", "with --log-format")) from None
    line = missing_line(summary)
    for warning in [*([line] if line else []), *summary.warnings]:
        # the lake is a temporary one, and takes its settings from the workspace
        told = warning.replace(str(lake.workspace), str(data.workspace))
        click.secho(f"warning: {plain(told)}", fg="yellow", err=True)


def _unpiped(path: Path, folder: Path) -> Path:
    """The file itself, or the copy of a pipe, which can be read once only."""
    from hakaru.settings import load
    from hakaru.sources._inputs import copy_pipe, is_pipe

    kept = folder / "pipes" / hashlib.sha256(os.fsencode(path)).hexdigest()
    if kept.exists():
        return next(kept.glob("*/*"))
    return copy_pipe(path, kept, load(folder / "workspace").ingest) if is_pipe(path) else path


def group_logs(logs: Sequence[str]) -> dict[str, list[Path]]:
    """Files by the cluster that they are of: NAME=FILE, else all that have no name together."""
    named: dict[str, list[Path]] = {}
    plain: list[Path] = []
    for log in logs:
        name, separator, pattern = log.partition("=")
        if separator and not Path(log).exists():
            named.setdefault(name, []).extend(expand(pattern))
        else:
            plain.extend(expand(log))
    if plain:
        named.setdefault(cluster_name(plain), []).extend(plain)
    return named


def expand(pattern: str) -> list[Path]:
    """The files of a pattern; a name without wildcards stands for itself, there or not."""
    found = sorted(glob.glob(pattern))  # noqa: PTH207 — patterns may be absolute
    if not found and glob.has_magic(pattern):
        raise HakaruError(f"no file matches {pattern!r}")
    return [Path(path) for path in found or [pattern]]


def cluster_name(paths: Sequence[Path]) -> str:
    """A name for the cluster from what its files' names share: `RICC-2010-2.swf.gz` is `ricc`."""
    names = [path.name.lower() for path in paths if not is_nameless(path)]
    words = {word.group() for name in names if (word := re.match(r"[a-z0-9]+", name))}
    if len(words) > 1:
        raise HakaruError(
            f"the files' names begin with {' and '.join(sorted(words))}: name the cluster with "
            "--cluster NAME (or, with --from, NAME=FILE for each)"
        )
    return words.pop() if words else "log"


def is_nameless(path: Path) -> bool:
    """Standard input, and what the shell makes of `<(…)`, such as /dev/fd/63."""
    return str(path).startswith(("/dev/", "/proc/")) or str(path) == "-"
