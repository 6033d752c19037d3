"""`hakaru token create|list|revoke`: who may use the web app."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import click

from hakaru.cli._options import workspace_option


@click.group(epilog="Example: hakaru token create --name ann --role user --user ann")
def command() -> None:
    """Make and revoke the tokens with which people and programs use `hakaru serve`.

    Once there is a token, the app asks everybody for one; also when the last is revoked.
    """


@command.command(epilog="Example: hakaru token create --name dashboard --role operator --days 90")
@workspace_option
@click.option("--name", required=True, help="Who or what uses it.")
@click.option(
    "--role",
    type=click.Choice(["operator", "user"]),
    required=True,
    help="An operator sees everything; a user their own jobs, and others in groups of six or more.",
)
@click.option("--user", help="With --role user: the user, as the logs name them.")
@click.option("--days", type=click.IntRange(1, 3650), help="Days until it expires; else never.")
def create(
    workspace: Path,
    name: str,
    role: Literal["operator", "user"],
    user: str | None,
    days: int | None,
) -> None:
    """Make a token and show it, once."""
    from hakaru.web.access.tokens import Tokens

    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(days=days) if days else None
    token, secret = Tokens(workspace).create(name, role, user, expires)
    click.echo(secret)
    until = f"until {token.expires:%Y-%m-%d}" if token.expires else "until it is revoked"
    click.echo(f"{name} ({role}) {until}. It is not shown again: keep it safe.", err=True)
    if user is not None and not _has_jobs(workspace, user):
        click.secho(
            f"warning: no log in {workspace} names the user {user!r}, so they see no jobs of their own. "
            f"Check the spelling with: hakaru show users -w {workspace}",
            fg="yellow",
            err=True,
        )


def _has_jobs(workspace: Path, user: str) -> bool:
    """Whether a stored job is of this user, named as the logs do."""
    from hakaru.engine.duckdb import connect
    from hakaru.lake import Lake
    from hakaru.schema import JOBS
    from hakaru.settings import Engine

    files = Lake(workspace).files(JOBS)
    if not files:
        return False
    find = 'SELECT 1 FROM read_parquet(?) WHERE "user" = ? LIMIT 1'
    return bool(connect(Engine()).execute(find, [files, user]).fetchall())


@command.command("list", epilog="Example: hakaru token list")
@workspace_option
def list_(workspace: Path) -> None:
    """The tokens, without their secrets."""
    from rich.table import Table

    from hakaru.cli._render import terminal
    from hakaru.web.access.tokens import Tokens

    shown = Table(header_style="bold")
    for name in ("id", "name", "role", "user", "created (UTC)", "expires (UTC)"):
        shown.add_column(name)
    now = datetime.now(UTC)
    tokens = Tokens(workspace).all()
    for token in tokens:
        expires = f"{token.expires:%Y-%m-%d %H:%M}" if token.expires else "never"
        over = "" if token.is_valid(now) else " (expired)"
        row = (
            token.id,
            token.name,
            token.role,
            token.user or "–",
            f"{token.created:%Y-%m-%d %H:%M}",
        )
        shown.add_row(*row, expires + over)
    if tokens:
        terminal().print(shown)
    else:
        click.echo("no tokens; make one with: hakaru token create")


@command.command(epilog="Example: hakaru token revoke ann")
@workspace_option
@click.argument("name")
def revoke(workspace: Path, name: str) -> None:
    """End a token, by its name or id, and every session that was begun with it."""
    from hakaru.web.access.tokens import Tokens

    gone = Tokens(workspace).revoke(name)
    click.echo(f"revoked {gone.name} ({gone.role})")
