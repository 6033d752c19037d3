"""`hakaru show ID`: one analysis, as a table, a file or a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import (
    Data,
    data_options,
    engine_option,
    lang_option,
    open_lake,
    output_options,
    parse_params,
)
from hakaru.cli._output import choose_format, writing
from hakaru.cli._render import FORMATS, unit_of, write_result
from hakaru.cli._selection import (
    check_selection,
    complete_params,
    make_selection,
    period_of,
    selection_options,
)
from hakaru.errors import HakaruError

if TYPE_CHECKING:
    from hakaru.analyses import Analysis, Param, Result, Session

EPILOG = """\b
Examples:
  hakaru show walltime --from my.swf.gz --by queue --since 2018-04-01
  hakaru show states --by user --top 10 --weight gpu-hours
  hakaru show waits --cluster mine -o waits.csv
  hakaru show walltime-cdf --by queue --figure walltime.html
"""


def _complete_ids(ctx: click.Context, param: click.Parameter, start: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from hakaru.analyses import load_all

    return [CompletionItem(a.id, help=a.answers) for a in load_all() if a.id.startswith(start)]


@click.command(epilog=EPILOG)
@click.argument("id", shell_complete=_complete_ids)
@data_options
@selection_options
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only the N largest groups (rows without --by), the largest first; of users and accounts the "
    "first N, by --param sort.",
)
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=complete_params,
    help="Parameter of the analysis.",
)
@output_options(FORMATS)
@click.option(
    "--figure",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw it: .html, or .png, .svg, .pdf through the system's Chromium.",
)
@lang_option("the figure")
@engine_option
def command(
    id: str,
    data: Data,
    top: int | None,
    params: tuple[str, ...],
    output_format: str | None,
    output: Path | None,
    figure: Path | None,
    lang: str,
    engine: str,
    **selection: Any,
) -> None:
    """Show one analysis; `hakaru analyses` lists their ids and questions."""
    from hakaru.analyses import load_all, open_session
    from hakaru.cli._groups import in_order, largest
    from hakaru.comparison import notes_on_users

    analysis = load_all().get(id)
    format = choose_format(output_format, output, FORMATS)
    chosen = make_selection(**selection)
    with open_lake(data) as lake, open_session(lake, engine, unit=data.unit) as session:
        check_selection(session, chosen)
        is_export = output is not None or format != "table"
        asked = _with_limit(analysis, parse_params(params), top, is_export)
        result = session.run(analysis, chosen, **asked)
        more = [*_why_empty(session, result), *notes_on_users(session, result)]
    _refuse_its_own_group(result)
    result = in_order(result)
    if top is not None and not _limit(analysis):
        result, rest = largest(result, top)
        more += rest
    more += _rows_of_all(result, top)
    if figure is not None:
        _draw(result, figure, more, lang)
    if figure is None or output is not None:
        write_result(result, format, output, [*_remarks(result), *more])


def _limit(analysis: Analysis) -> Param | None:
    """The parameter of an analysis that sorts its rows itself and keeps the first ones."""
    return next((param for param in analysis.params if param.name == "limit"), None)


def _with_limit(
    analysis: Analysis, params: dict[str, str], top: int | None, is_export: bool
) -> dict[str, Any]:
    """--top sets the limit; an export without either has all rows."""
    limit = _limit(analysis)
    if limit is None or (top is None and ("limit" in params or not is_export)):
        return {**params}
    if top is not None and "limit" in params:
        raise HakaruError("give --top or --param limit, not both")
    return params | {"limit": int(limit.high) if top is None else top}


def _rows_of_all(result: Result, top: int | None) -> list[str]:
    """Which rows these are, where a limit or an offset leaves others out."""
    rows = result.table.num_rows
    if not _limit(result.analysis) or not rows:
        return []
    num_all = result.table["num_all"][0].as_py()
    if rows == num_all:
        return []
    values = {param.name: param.default for param in result.analysis.params} | {**result.params}
    before = int(values["offset"])
    hint = "" if top or before else f"; --top {num_all} shows all"
    return [
        f"rows {before + 1:,} to {before + rows:,} of {num_all:,}, sorted by {values['sort']}{hint}"
    ]


def _remarks(result: Result) -> list[str]:
    """What a figure says itself."""
    from hakaru.analyses import remarks
    from hakaru.texts import language

    return [f"  {line}" for line in remarks(result, language("en", unit_of(result)))]


def _draw(result: Result, path: Path, more: Sequence[str], lang: str) -> None:
    from hakaru.figures import draw, save

    drawn = draw(result, unit=unit_of(result), lang=lang)
    drawn = replace(drawn, notes=(*drawn.notes, *(line.strip() for line in more)))
    with writing(path):
        save(drawn, path)
    click.echo(f"wrote {path}", err=True)


def _why_empty(session: Session, result: Result) -> list[str]:
    if result.num_selected:
        return []
    return [f"  {period_of(session, name)}" for name in result.selection.clusters]


def _refuse_its_own_group(result: Result) -> None:
    by = result.selection.by
    if by is not None and result.table.column_names[1:2] == [by]:
        raise HakaruError(
            f"{result.analysis.id} has a row for each {by} already: leave out --by {by}"
        )
