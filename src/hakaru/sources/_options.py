"""The options of an ingest, checked before anything is read, and what is said of a cluster by them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hakaru.engine.where import parse_moment
from hakaru.errors import FilterError, SettingsError, SourceError
from hakaru.lake import Lake
from hakaru.schema import OPTION
from hakaru.settings import FILE_NAME, check_zone, load, parse, toml_table
from hakaru.sources._base import Source

EVERYWHERE = ("zone", "site_zone")


def checked(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options that were given, each of a right form."""
    given = {name: value for name, value in (options or {}).items() if value is not None}
    try:
        if "zone" in given:
            check_zone(given["zone"])
        if "start" in given:
            parse_moment(given["start"], "UTC")
    except (SettingsError, FilterError) as error:
        name = "zone" if isinstance(error, SettingsError) else "start"
        raise SourceError(f"--{name}: {error}") from None
    return given


def refuse_unused(options: Mapping[str, Any], sources: Collection[Source]) -> None:
    """An option that no file needs is a mistake, such as --start for a log that has its own dates."""
    taken = {*EVERYWHERE, *(name for source in sources for name in source.takes)}
    for name in options:
        if name not in taken:
            formats = ", ".join(sorted({source.id for source in sources}))
            raise SourceError(f"--{name} does not apply to {formats}: leave it out")


def said_by(options: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """What the options say of the cluster: --zone is the site's, whichever file it came with."""
    zone = options.get("zone")
    return {(OPTION, "--zone"): {"zone": zone}} if zone else {}


def check_facts(cluster: str, said: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    """A header with a setting that cannot be one must not reach the lake, which nobody could open then."""
    for (_, file), facts in said.items():
        parse({}, {cluster: facts}, where=f"{file}: the header")


def warnings_on_zone(
    lake: Lake, cluster: str, said: Mapping[tuple[str, str], Mapping[str, Any]]
) -> list[str]:
    """Hours that nobody could place, and a --zone that hakaru.toml overrules."""
    site = load(lake.workspace, lake.facts()).cluster(cluster)
    file, given = lake.workspace / FILE_NAME, said.get((OPTION, "--zone"), {}).get("zone")
    if given and site.zone != given:
        return [f"{file} sets the zone of {cluster} to {site.zone}: hours are shown in it"]
    if site.has_zone or site.relative_dates:
        return []
    return [
        f"the time zone of {cluster} is not known: hours, weekdays and days are shown in UTC. Set it "
        f"in {file} (with --from, --zone Asia/Tokyo will do):\n"
        f'      {toml_table(cluster)}\n      zone = "Asia/Tokyo"'
    ]
