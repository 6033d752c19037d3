"""`hakaru show ID`: one analysis, as a table or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hakaru.cli._options import (
    Data,
    data_options,
    engine_option,
    make_selection,
    open_lake,
    parse_params,
    selection_options,
)
from hakaru.cli._render import FORMATS, write_result


def _complete_ids(ctx: click.Context, param: click.Parameter, start: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from hakaru.analyses import load_all

    return [CompletionItem(a.id, help=a.answers) for a in load_all() if a.id.startswith(start)]


@click.command(
    epilog="Example: hakaru show walltime --from my.swf.gz --by queue --since 2018-04-01"
)
@click.argument("id", shell_complete=_complete_ids)
@data_options
@selection_options
@click.option(
    "--param", "params", multiple=True, metavar="NAME=VALUE", help="Parameter of the analysis."
)
@click.option(
    "--format", "output_format", type=click.Choice(FORMATS), default="table", show_default=True
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file."
)
@engine_option
def command(
    id: str,
    data: Data,
    params: tuple[str, ...],
    output_format: str,
    output: Path | None,
    engine: str,
    **selection: Any,
) -> None:
    """Show one analysis; `hakaru analyses` lists their ids and questions."""
    from hakaru.analyses import load_all, open_session

    analysis = load_all().get(id)
    with open_lake(data) as lake, open_session(lake, engine) as session:
        result = session.run(analysis, make_selection(**selection), **parse_params(params))
    write_result(result, output_format, output)
