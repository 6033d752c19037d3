"""Pseudonyms that only the salt can link to names, and times moved by whole weeks.

A pseudonym is the beginning of HMAC-SHA256(key, kind:name), the key being the salt stretched by PBKDF2. The
same name and salt give the same pseudonym in every export, and no list of likely names can be
tried against it without the salt.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from hakaru.engine.dialect import DUCKDB_TYPES, quote
from hakaru.engine.duckdb import one_row
from hakaru.errors import HakaruError
from hakaru.export._base import Site
from hakaru.formats.logs import SEPARATOR, is_of_log, log_of
from hakaru.schema import JOBS
from hakaru.settings import Capacity

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LEAST_SALT = 8
ROUNDS = 200_000
BLOCK = 64  # of SHA-256, as HMAC defines it
CODE_DIGITS = 16  # 64 bits: two of 46 million jobs meet once in some 17,000 exports
MOST_WEEKS = 520
MOST_DAYS = 36_500
VIEW = "jobs_disguised"
TIMES = ("submitted_at", "eligible_at", "started_at", "ended_at")

PSEUDONYMS = {
    "job_id": "pseudonym; LOG/ID keeps its two parts",
    "array_id": "pseudonym: an array's tasks still share it",
    "user": "pseudonym; LOG/USER keeps its two parts",
    "account": "pseudonym; LOG/ACCOUNT keeps its two parts",
    "qos": "pseudonym",
    "nodes": "a pseudonym for each node",
    "gpu_ids": "NODE:INDEX with the node's pseudonym, a pseudonym for each UUID",
}
KINDS = {"job_id": "j", "array_id": "a", "user": "u", "account": "g", "qos": "q"}
REMOVED = {"name": "free text", "modules": "free text"}


@dataclass(frozen=True)
class Disguise:
    """The key of the pseudonyms, and the days by which times are moved. Never stored."""

    key: bytes
    shift_days: int = 0
    random_salt: bool = False

    def code(self, kind: str, text: str) -> str:
        """SQL for the pseudonym of a text: a letter for its kind, then hexadecimal digits."""
        inner = f"sha256(getvariable('export_inner') || encode({quote(kind + ':')} || {text}))"
        outer = f"sha256(getvariable('export_outer') || unhex({inner}))"
        return f"{quote(kind)} || left({outer}, {CODE_DIGITS})"

    def apply(
        self, con: DuckDBPyConnection, jobs: str, site: Site, folder: Path
    ) -> tuple[str, Site]:
        """A view of the jobs without what names anyone, and the site's settings to go with it.

        They are kept as Parquet in `folder` meanwhile, as a format reads them more than once.
        """
        padded = self.key.ljust(BLOCK, b"\0")
        # bound, so that no message can quote them
        con.execute("SET VARIABLE export_inner = ?", [bytes(byte ^ 0x36 for byte in padded)])
        con.execute("SET VARIABLE export_outer = ?", [bytes(byte ^ 0x5C for byte in padded)])
        self._check_shift(con, jobs)
        columns = ", ".join(f'{self._column(name, site)} AS "{name}"' for name in JOBS.names)
        file = quote(str(folder / f"{VIEW}.parquet"))
        con.execute(f"COPY (SELECT {columns} FROM {jobs} AS named) TO {file} (FORMAT parquet)")
        con.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS SELECT * FROM read_parquet({file})")
        return VIEW, self._moved_site(site)

    def _column(self, name: str, site: Site) -> str:
        column = f'named."{name}"'
        if name in REMOVED:
            return f"CAST(NULL AS {DUCKDB_TYPES[JOBS.column(name).type]})"
        if name in TIMES and self.shift_days:
            return f"{column} + to_microseconds({self._shift_us(site)})"
        if name == "job_id":
            return self._after_log(name, column, f"contains({column}, '{SEPARATOR}')")
        if name in ("user", "account"):
            return self._after_log(name, column, is_of_log(column, 'named."job_id"'))
        if name == "nodes":
            return f"list_transform({column}, lambda node: {self.code('n', 'node')})"
        if name == "gpu_ids":
            node, index = "regexp_replace(gpu, ':[0-9]+$', '')", "regexp_extract(gpu, ':[0-9]+$')"
            return (
                f"list_transform({column}, lambda gpu: CASE WHEN {index} <> '' "
                f"THEN {self.code('n', node)} || {index} ELSE {self.code('d', 'gpu')} END)"
            )
        return self.code(KINDS[name], column) if name in KINDS else column

    def _after_log(self, name: str, column: str, has_log: str) -> str:
        """A pseudonym that keeps its log's before it: such ids hold within one log only."""
        log = f"{self.code('x', log_of(column))} || '{SEPARATOR}'"
        return f"CASE WHEN {has_log} THEN {log} ELSE '' END || {self.code(KINDS[name], column)}"

    def _shift_us(self, site: Site) -> str:
        """How far a job moves: whole weeks on the site's clock, at its submission.

        All times of a job move alike, so that waits and run times stay; where summer time begins or ends
        between the old date and the new one, that is an hour more or less than so many weeks.
        """
        zone = quote(site.settings.zone)
        local = f"(named.submitted_at AT TIME ZONE {zone}) + to_days({self.shift_days})"
        return f"epoch_us(({local}) AT TIME ZONE {zone}) - epoch_us(named.submitted_at)"

    def _check_shift(self, con: DuckDBPyConnection, jobs: str) -> None:
        (first_s,) = one_row(con, f"SELECT epoch(min(submitted_at)) FROM {jobs}")
        if (
            first_s is not None
            and self.shift_days < 0
            and first_s + self.shift_days * 86400 < 86400
        ):
            raise HakaruError(
                f"--shift-times {self.shift_days} would move the first job to before 1970; "
                "take fewer days, or a positive number"
            )

    def _moved_site(self, site: Site) -> Site:
        zone = ZoneInfo(site.settings.zone)

        def moved(span: Capacity) -> Capacity:
            if span.since is None:
                return span
            clock = span.since.astimezone(zone).replace(tzinfo=None)
            later = clock + timedelta(days=self.shift_days)
            return replace(span, since=later.replace(tzinfo=zone))

        own = site.settings
        nodes, gpus, cpus = (tuple(map(moved, each)) for each in (own.nodes, own.gpus, own.cpus))
        return replace(site, settings=replace(own, nodes=nodes, gpus=gpus, cpus=cpus))


def make_disguise(salt: str | None, shift: str | None) -> Disguise:
    """A disguise from a salt (none: a random one) and `--shift-times` (none, days, or random)."""
    if salt is not None and len(salt) < LEAST_SALT:
        raise HakaruError(f"the salt has {len(salt)} characters; it needs at least {LEAST_SALT}")
    key = (
        secrets.token_bytes(32)
        if salt is None
        else hashlib.pbkdf2_hmac("sha256", salt.encode(), b"hakaru export", ROUNDS)
    )
    return Disguise(key, _days(key, shift), random_salt=salt is None)


def _days(key: bytes, shift: str | None) -> int:
    """Days to move by; a random number of weeks follows from the key, so that exports stay joined."""
    if shift is None:
        return 0
    if shift == "random":
        drawn = int.from_bytes(hmac.digest(key, b"shift", "sha256")[:8])
        return 7 * (1 + drawn % MOST_WEEKS)
    try:
        days = int(shift)
    except ValueError:
        days = 1
    if days % 7 or not days or abs(days) > MOST_DAYS:
        raise HakaruError(
            f"--shift-times {shift}: expected `random` or whole weeks in days such as 364 or -728 "
            f"(at most {MOST_DAYS}), so that days of the week stay the same"
        )
    return days
