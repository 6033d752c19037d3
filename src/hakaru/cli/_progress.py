"""An ingest with a progress bar of bytes, rows and rejects, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.safety.text import bare

if TYPE_CHECKING:
    from rich.console import Console

    from hakaru.lake import Lake
    from hakaru.sources import Summary


def bar_console() -> Console:
    """Where a bar moves the cursor; nothing that others chose is written there as it is."""
    from rich.console import Console

    return Console(file=bare(sys.stderr))


def ingest_with_progress(
    lake: Lake, paths: Sequence[Path], cluster: str, **options: Any
) -> Summary:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    from hakaru.settings import load
    from hakaru.sources import ingest

    options["engine"] = load(lake.workspace, lake.facts()).engine
    if not sys.stderr.isatty():
        return ingest(lake, paths, cluster, **options)
    columns = (
        TextColumn("reading {task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rows]:,} rows, {task.fields[bad]:,} rejected"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=bar_console(), transient=True) as bar:
        task = bar.add_task(cluster, total=None, rows=0, bad=0)

        def tell(done: int, total: int, rows: int, bad: int) -> None:
            bar.update(task, completed=done, total=total, rows=rows, bad=bad)

        return ingest(lake, paths, cluster, progress=tell, **options)
