"""`hakaru bench pack`: convert an image folder to a layout that loads faster, verified."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli.bench._options import Size, format_option

if TYPE_CHECKING:
    from hakaru.measure.datasets.pack import Packed


@click.command(
    epilog="""\b
Examples:
  hakaru bench pack ILSVRC2012/train shards --layout tar
  hakaru bench pack shards one-file --layout packed     # from one layout to another
  hakaru bench pack photos photos-zip --layout zip --extensions jpg,heic
Layouts: files, tar (webdataset), hdf5, npz, zip, packed (one archive with offsets).
"""
)
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--layout", required=True, metavar="NAME", help="Layout to write, e.g. tar.")
@click.option(
    "--shard-size", type=Size(), help="Size of an archive of tar, zip and npz; else 512MiB."
)
@click.option(
    "--extensions",
    metavar="NAME[,NAME]",
    help="Endings of the files to pack, e.g. jpg,png, or * for all; else those of images.",
)
@format_option
def command(
    source: Path, target: Path, layout: str, shard_size: int | None, extensions: str | None,
    output_format: str,
) -> None:  # fmt: skip
    """Convert an image folder, or a data set of another layout, to a layout.

    SOURCE has a folder for each class, or images alone, or a data set of Hakaru. All is read back and
    compared with the source before TARGET appears.
    """
    from hakaru.measure.datasets.pack import pack

    chosen: dict[str, Any] = {}
    if extensions is not None:
        chosen["extensions"] = _extensions(extensions)
    with _progress_bar(layout) as progress:
        packed = pack(source, target, layout, shard_bytes=shard_size, progress=progress, **chosen)
    if output_format == "json":
        click.echo(json.dumps(_as_json(packed), indent=2, ensure_ascii=False))
    else:
        _print(packed)


def _extensions(text: str) -> list[str]:
    from hakaru.errors import HakaruError

    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise HakaruError(f"--extensions: {text!r} has no ending; write e.g. jpg,png, or * for all")
    return names


def _print(packed: Packed) -> None:
    from hakaru.measure.datasets._place import volume
    from hakaru.safety.text import one_line
    from hakaru.texts import language

    manifest, duration = packed.manifest, language("en").duration
    classes = f" of {len(manifest.classes):,} classes" if manifest.classes else ""
    files = "1 file" if packed.num_files == 1 else f"{packed.num_files:,} files"
    click.secho(f"{packed.target}: {manifest.num_samples:,} samples{classes}", bold=True)
    click.echo(
        f"  {volume(manifest.num_bytes)} of samples; {volume(packed.disk_bytes)} in {files} on the disk"
    )
    click.echo(
        f"  written in {duration(packed.write_s)}; all read back and compared with the source in "
        f"{duration(packed.compare_s)}"
    )
    for reason, skipped in packed.skipped.items():
        examples = ", ".join(map(one_line, skipped.examples))
        more = ", …" if skipped.count > len(skipped.examples) else ""
        click.echo(f"  skipped, {reason}: {skipped.count:,} ({examples}{more})")
    if packed.class_list is not None:
        click.echo(f"  classes by label: {one_line(str(packed.class_list))}")
    click.echo(f"\nMeasure it: {_next_command(packed)}")


def _next_command(packed: Packed) -> str:
    path = shlex.quote(f"path={packed.target}")
    return f"hakaru bench run loading --param {path}"


def _as_json(packed: Packed) -> dict[str, Any]:
    manifest = packed.manifest
    return {
        "target": str(packed.target),
        "layout": manifest.layout,
        "num_samples": manifest.num_samples,
        "num_classes": len(manifest.classes),
        "num_bytes": manifest.num_bytes,
        "num_files": packed.num_files,
        "disk_bytes": packed.disk_bytes,
        "checksum": manifest.checksum,
        "write_s": packed.write_s,
        "compare_s": packed.compare_s,
        "skipped": {
            reason: {"count": each.count, "examples": each.examples}
            for reason, each in packed.skipped.items()
        },
        "classes": str(packed.class_list) if packed.class_list else None,
        "next": _next_command(packed),
    }


@contextmanager
def _progress_bar(layout: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar of bytes, first written and then compared, on a terminal only."""
    from hakaru.cli._progress import bar_console

    if not sys.stderr.isatty():
        click.echo(f"writing and comparing {layout}", err=True)
        yield lambda what, done, total: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=bar_console(), transient=True) as bar:
        tasks = {what: bar.add_task(f"{what} {layout}", total=None, start=False, visible=False)
                 for what in ("writing", "comparing")}  # fmt: skip

        def show(what: str, done: int, total: int) -> None:
            if not bar.tasks[tasks[what]].started:
                bar.start_task(tasks[what])
            bar.update(tasks[what], completed=done, total=total, visible=True)

        yield show
