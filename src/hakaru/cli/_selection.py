"""Options that choose jobs, the same in every command: filters, clusters, groups; and their checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hakaru.cli._options import DEFAULT_WORKSPACE
from hakaru.errors import HakaruError
from hakaru.registry import hint, listed

if TYPE_CHECKING:
    from hakaru.analyses import Selection, Session

MOST_VALUES = 12  # of a column, in a warning
F = TypeVar("F", bound=Callable[..., Any])


def complete_states(ctx: click.Context, param: click.Parameter, start: str) -> list[str]:
    from hakaru.schema import STATES

    return [state for state in (*STATES, "any") if state.startswith(start)]


def complete_clusters(ctx: click.Context, param: click.Parameter, start: str) -> list[str]:
    from hakaru.lake import Lake

    workspace = Path(ctx.params.get("workspace") or DEFAULT_WORKSPACE)
    return [name for name in Lake(workspace).clusters() if name.startswith(start)]


cluster_option = click.option(
    "--cluster", multiple=True, shell_complete=complete_clusters, help="Only this cluster."
)


def _complete_groups(ctx: click.Context, param: click.Parameter, start: str) -> list[str]:
    from hakaru.analyses._select import GROUPS

    return [name for name in GROUPS if name.startswith(start)]


def complete_params(ctx: click.Context, param: click.Parameter, start: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from hakaru.analyses import load_all

    chosen = [each for each in load_all() if each.id == ctx.params.get("id")] or load_all()
    named = {p.name: p.help for each in chosen for p in each.params}
    return [CompletionItem(f"{n}=", help=h) for n, h in named.items() if n.startswith(start)]


def _only_one(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> str | None:
    if len(given) > 1:
        raise HakaruError(f"one {param.opts[0]} only, found {' and '.join(given)}")
    return given[0] if given else None


def filter_options(function: F) -> F:
    """Which jobs: the same filters, in the same words, for every command that reads jobs."""
    options = [
        click.option(
            "--where", help="Condition on columns, e.g. \"num_gpus >= 8 AND queue = 'long'\"."
        ),
        period_options,
        click.option(
            "--min-run", type=float, metavar="SECONDS", help="Least run time; 0 for none."
        ),
        click.option(
            "--state",
            "states",
            multiple=True,
            shell_complete=complete_states,
            help="Only jobs in this state; `any` for all.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def period_options(function: F) -> F:
    """When they were submitted."""
    until = "Submitted on or before (a date) or before (a time)."
    since = "Submitted on or after, in the site's zone."
    function = click.option("--until", metavar="DATE", help=until)(function)
    return click.option("--since", metavar="DATE", help=since)(function)


def selection_options(function: F) -> F:
    """The filters that every analysis takes, and how it counts."""
    options = [
        cluster_option,
        filter_options,
        click.option(
            "--by",
            multiple=True,
            callback=_only_one,
            shell_complete=_complete_groups,
            help="Group by a column, e.g. queue, user, account, quarter.",
        ),
        click.option(
            "--weight",
            type=click.Choice(["jobs", "gpu-hours"]),
            default="jobs",
            show_default=True,
            help="Count jobs, or the GPU-hours they used.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def make_selection(
    where: str | None,
    since: str | None,
    until: str | None,
    min_run: float | None,
    states: Sequence[str],
    cluster: Sequence[str] = (),
    by: str | None = None,
    weight: str = "jobs",
) -> Selection:
    from hakaru.analyses import Selection
    from hakaru.analyses._select import GROUPS
    from hakaru.schema import STATES

    if by is not None and by not in GROUPS:
        raise HakaruError(f"cannot group by {by!r}; {hint(by, GROUPS)}")
    states = tuple(state.lower() for state in states)
    for state in states:
        if state not in (*STATES, "any"):
            raise HakaruError(f"there is no state {state!r}; {hint(state, (*STATES, 'any'))}")
    _check_period(since, until)
    return Selection(
        clusters=tuple(cluster),
        where=where,
        since=since,
        until=until,
        min_run_s=min_run,
        states=states,
        by=by,
        weight=weight,
    )


def _check_period(since: str | None, until: str | None) -> None:
    """Refuse a period that ends before it begins, whatever the log holds."""
    from hakaru.engine.where import end_of, parse_moment

    if since and until and parse_moment(since, "UTC") >= end_of(until, "UTC"):
        raise HakaruError(f"the period ends before it begins: --since {since} --until {until}")


def check_clusters(session: Session, names: Sequence[str]) -> None:
    """Refuse a cluster that the lake does not hold, and say which it may have meant."""
    for name in names:
        if name not in session.known_clusters:
            raise HakaruError(
                f"there is no cluster {name!r} in {session.lake.workspace}; "
                f"{hint(name, session.known_clusters)}"
            )


def check_selection(session: Session, selection: Selection) -> None:
    """Refuse unknown clusters, and warn of a filter that looks for what no job has."""
    check_clusters(session, selection.clusters)
    empty = session.empty_columns(selection)
    told = [f"no job of the log has {'an' if name[0] == 'a' else 'a'} {name}" for name in empty]
    told += [
        f"no job has {column} = {value!r}; it is one of: {listed(known, MOST_VALUES)}"
        for column, value, known in session.absent_values(selection)
        if column not in empty
    ]
    for line in told:
        click.secho(f"warning: {line}", fg="yellow", err=True)


def period_of(session: Session, cluster: str) -> str:
    """The first and the last submission, in the site's zone, for a selection that found nothing."""
    from hakaru.comparison import period_of as told

    return told(session, cluster)
