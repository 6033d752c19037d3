"""`hakaru reproduce PAPER`: a paper's numbers again, from its log or from this machine.

`hakaru reproduce aaic FILES…` computes every number that the paper prints from its log. The papers that
measure a machine are repeated on this one: `_experiment.py`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import engine_option
from hakaru.errors import SourceError

if TYPE_CHECKING:
    from hakaru.cli._table import Style
    from hakaru.lake import Lake
    from hakaru.reference.claims import Claim, Judged

VERDICTS = ("same", "differs", "known difference", "not in the log")
WHOLE = "jobs in the log"  # the claim that tells whether the log is the paper's


PAPERS = ("aaic", "flow", "mn1", "tsubame3")
EPILOG = """\b
Examples:
  hakaru reproduce aaic aaicwl-*.csv.gz
  hakaru reproduce flow --quick
"""


class Papers(click.Group):
    """A command a paper; those that measure are made when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(PAPERS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in PAPERS:
            return None
        if name == "aaic":
            return aaic
        from hakaru.cli._experiment import experiment_command

        return experiment_command(name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options of aaic may also stand before its name."""
        if "aaic" in args and args[0].startswith(("--format", "--engine")):
            at = args.index("aaic")
            args = [args[at], *args[:at], *args[at + 1 :]]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in PAPERS:
            known = ", ".join(repr(each) for each in PAPERS)
            ctx.fail(f"{args[0]!r} is not one of {known}.")
        return super().resolve_command(ctx, args)


@click.group(cls=Papers, epilog=EPILOG)
def command() -> None:
    """Repeat a paper: its numbers from its log, or its experiment on this machine."""


@click.command("aaic", epilog="Example: hakaru reproduce aaic aaicwl-*.csv.gz")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", type=click.Choice(["table", "json"]), default="table", show_default=True)
@engine_option
def aaic(paths: tuple[Path, ...], format: str, engine: str) -> None:
    """Check the AAIC paper against its log: published value, computed value, verdict.

    Exits with 1 if one number differs.
    """
    from hakaru.analyses import open_session
    from hakaru.lake import Lake
    from hakaru.reference.claims import load_claims

    claims = load_claims("aaic")
    with tempfile.TemporaryDirectory(prefix="hakaru-") as folder:
        lake = Lake.create(Path(folder))
        num_jobs = _read(lake, paths, "aaic")
        with open_session(lake, engine) as session:
            judged = judge_all(session, claims)
    for line in _missing(claims, num_jobs):
        click.echo(line, err=True)
    _print_json(judged) if format == "json" else _print_table(judged)
    if any(entry.verdict == "differs" for entry in judged):
        raise SystemExit(1)


def _read(lake: Lake, paths: Sequence[Path], paper: str) -> int:
    from hakaru.cli._progress import ingest_with_progress

    try:
        return ingest_with_progress(lake, paths, paper, format=paper, strict=True).num_read
    except SourceError as error:
        # nothing is ever stored here, and there is no option to change that
        raise SourceError(str(error).replace("; nothing was stored (--strict)", "")) from None


def _missing(claims: Sequence[Claim], num_jobs: int) -> list[str]:
    """A word of warning where the log is only a part of the paper's."""
    whole = next((claim.published for claim in claims if claim.says == WHOLE), "0")
    if num_jobs >= int(whole.replace(",", "")):
        return []
    return [f"this log has {num_jobs:,} of {whole} jobs: the rest cannot agree", ""]


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
    from hakaru.cli._table import Column, emit, page_width, table_lines

    claims = [entry.claim for entry in judged]
    columns = [
        Column("verdict", [entry.verdict for entry in judged], False),
        Column("published", [claim.published for claim in claims]),
        Column("computed", [_number(entry) for entry in judged]),
        Column("what", [_what(entry) for entry in judged], False, wraps=True),
    ]
    emit(table_lines(columns, 1, page_width()))
    counts = {verdict: sum(e.verdict == verdict for e in judged) for verdict in VERDICTS}
    style: Style = "bold" if counts["differs"] else ""
    told = (
        f"{counts['same']} the same, {counts['differs']} different, "
        f"{counts['known difference']} known to differ, "
        f"{counts['not in the log']} that the log cannot tell"
    )
    emit([("", ""), (told, style)])


def _number(entry: Judged) -> str:
    """The computed value alone; a reason stands with the words."""
    return "–" if entry.verdict == "not in the log" else entry.computed.split(": ")[0]


def _what(entry: Judged) -> str:
    reason = entry.computed.partition(": ")[2]
    if entry.verdict == "not in the log":
        reason = entry.computed
    told = f"{entry.claim.where}: {entry.claim.says}"
    return f"{told} ({reason})" if reason else told


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
