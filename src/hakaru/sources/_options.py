"""The options of an ingest, checked before anything is read, and what is said of a cluster by them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hakaru.engine.where import parse_moment
from hakaru.errors import FilterError, SettingsError, SourceError
from hakaru.lake import Lake
from hakaru.schema import OPTION
from hakaru.settings import FILE_NAME, check_zone, load, parse, toml_table
from hakaru.sources._base import RELATIVE, Source

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


def refuse_other_zone(lake: Lake, cluster: str, options: Mapping[str, Any]) -> None:
    """Another --zone would move the hours of all stored jobs, unless hakaru.toml says which they have."""
    given, facts = options.get("zone"), lake.facts().get(cluster, {})
    stored = facts.get("zone")
    if given in (None, stored) or stored is None or cluster not in lake.clusters():
        return
    if facts.get(RELATIVE) or load(lake.workspace).cluster(cluster).has_zone:
        return
    raise SourceError(
        f"the time zone of {cluster} is {stored}: with --zone {given} the hours and weekdays of all its jobs "
        f"would move. Nothing was stored. Leave --zone out, or give --zone {stored}.\n"
        f"If only the times in this log are of {given}, set the zone of hours and weekdays in "
        f"{lake.workspace / FILE_NAME} and run this again:\n{_zone_setting(cluster, stored)}\n"
        f"If the stored times are right (seconds since 1970, say) and the cluster is in {given}, set that "
        f"zone there.\nIf times were read with {stored} and are not of it, remove the cluster's jobs and "
        f"read its logs again:\n  {lake.forget_command(cluster)}"
    )


def check_facts(cluster: str, said: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    """A header with a setting that cannot be one must not reach the lake, which nobody could open then."""
    for (_, file), facts in said.items():
        parse({}, {cluster: facts}, where=f"{file}: the header")


def warnings_on_zone(
    lake: Lake, cluster: str, said: Mapping[tuple[str, str], Mapping[str, Any]], before: str | None
) -> list[str]:
    """Hours that nobody could place or that moved, and a --zone that hakaru.toml overrules.

    `before` is the zone of the jobs that were stored before, where one was known.
    """
    site = load(lake.workspace, lake.facts()).cluster(cluster)
    file, given = lake.workspace / FILE_NAME, said.get((OPTION, "--zone"), {}).get("zone")
    if given and site.zone != given:
        return [f"{file} sets the zone of {cluster} to {site.zone}: hours are shown in it"]
    if site.relative_dates:
        return []
    if site.has_zone:
        return _several_zones(lake, cluster, site.zone, said, before)
    return [
        f"the time zone of {cluster} is not known: hours, weekdays and days are shown in UTC. Set it "
        f"in {file} (with --from, --zone Asia/Tokyo will do):\n{_zone_setting(cluster, 'Asia/Tokyo')}"
    ]


def _several_zones(
    lake: Lake,
    cluster: str,
    zone: str,
    said: Mapping[tuple[str, str], Mapping[str, Any]],
    before: str | None,
) -> list[str]:
    """Headers that differ in the zone, where neither an option nor hakaru.toml has the last word."""
    if (OPTION, "--zone") in lake.spoken(cluster) or load(lake.workspace).cluster(cluster).has_zone:
        return []
    zones = {facts["zone"] for facts in said.values() if facts.get("zone")}
    others = sorted((zones | ({before} if before else set())) - {zone})
    if not others:
        return []
    return [
        f"the logs of {cluster} are of several time zones ({', '.join([zone, *others])}): hours and weekdays "
        f"of all its jobs are shown in {zone}. To choose another, set it in {lake.workspace / FILE_NAME}:\n"
        f"{_zone_setting(cluster, others[0])}"
    ]


def _zone_setting(cluster: str, zone: str) -> str:
    return f'      {toml_table(cluster)}\n      zone = "{zone}"'
