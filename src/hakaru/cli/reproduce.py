"""`hakaru reproduce PAPER FILES…`: every number a paper prints, computed again from its log."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import engine_option

if TYPE_CHECKING:
    from hakaru.reference.claims import Claim, Judged

STYLES = {
    "same": "green",
    "differs": "bold red",
    "known difference": "yellow",
    "not in the log": "dim",
}


@click.command(epilog="Example: hakaru reproduce aaic aaicwl-*.csv.gz")
@click.argument("paper", type=click.Choice(["aaic"]))
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", type=click.Choice(["table", "json"]), default="table", show_default=True)
@engine_option
def command(paper: str, paths: tuple[Path, ...], format: str, engine: str) -> None:
    """Check a paper against its log: published value, computed value, verdict.

    Exits with 1 if one number differs.
    """
    from hakaru.analyses import open_session
    from hakaru.cli._progress import ingest_with_progress
    from hakaru.lake import Lake
    from hakaru.reference.claims import load_claims

    claims = load_claims(paper)
    with tempfile.TemporaryDirectory(prefix="hakaru-") as folder:
        lake = Lake.create(Path(folder))
        ingest_with_progress(lake, paths, paper, format=paper, strict=True)
        with open_session(lake, engine) as session:
            judged = judge_all(session, claims)
    _print_json(judged) if format == "json" else _print_table(judged)
    if any(entry.verdict == "differs" for entry in judged):
        raise SystemExit(1)


def judge_all(session: Any, claims: Sequence[Claim]) -> list[Judged]:
    """Judge every claim, running each analysis once."""
    from hakaru.analyses import load_all
    from hakaru.reference.claims import judge

    analyses = load_all()
    tables: dict[str, list[dict[str, Any]]] = {"": []}
    judged = []
    for claim in claims:
        key = f"{claim.analysis} {dict(claim.params)}" if claim.analysis else ""
        if key not in tables:
            tables[key] = session.run(analyses.get(claim.analysis), **claim.params).rows
        judged.append(judge(claim, tables[key]))
    return judged


def _print_table(judged: Sequence[Judged]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from hakaru.cli._render import terminal

    table = Table(header_style="bold", box=SIMPLE_HEAD)
    for name, side in (
        ("where", "left"),
        ("what", "left"),
        ("published", "right"),
        ("computed", "right"),
    ):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    table.add_column("verdict", no_wrap=True)
    for entry in judged:
        style = STYLES[entry.verdict]
        verdict = f"[{style}]{entry.verdict}[/{style}]"
        claim = entry.claim
        table.add_row(claim.where, claim.says, claim.published, entry.computed, verdict)
    console = terminal()
    console.print(table)
    counts = {verdict: sum(e.verdict == verdict for e in judged) for verdict in STYLES}
    console.print(
        f"{counts['same']} the same, {counts['differs']} different, "
        f"{counts['known difference']} known to differ, "
        f"{counts['not in the log']} that the log cannot tell",
        style=STYLES["differs" if counts["differs"] else "same"],
    )


def _print_json(judged: Sequence[Judged]) -> None:
    rows = [
        {
            "where": entry.claim.where,
            "what": entry.claim.says,
            "published": entry.claim.published,
            "computed": entry.computed,
            "verdict": entry.verdict,
        }
        for entry in judged
    ]
    click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
