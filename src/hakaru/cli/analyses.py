"""`hakaru analyses`: the list, with the question that each answers."""

from __future__ import annotations

import click


@click.command(epilog="Example: hakaru analyses --verbose")
@click.option("-v", "--verbose", is_flag=True, help="Also the description, rules and parameters.")
def command(verbose: bool) -> None:
    """List the analyses and the question that each answers."""
    from rich.console import Console
    from rich.table import Table

    from hakaru.analyses import load_all

    console = Console()
    table = Table(header_style="bold")
    for name in ("id", "question", "reproduces"):
        table.add_column(name, no_wrap=name == "id")
    for analysis in load_all():
        question = analysis.answers
        if verbose:
            question += f"\n[dim]{analysis.description}[/dim]"
            for param in analysis.params:
                question += f"\n[dim]--param {param.name}={param.default}: {param.help}[/dim]"
        table.add_row(analysis.id, question, analysis.reproduces)
    console.print(table)
    console.print("Show one with: hakaru show ID --from LOGFILE", style="dim")
