"""The filters that live in the URL, the same names everywhere; they become data and never SQL text."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from hakaru.analyses import COLUMNS, GROUPS, Check, Selection
from hakaru.analyses.people import Sort as PeopleSort
from hakaru.engine.where import end_of, parse_moment, parse_where
from hakaru.errors import FilterError, HakaruError
from hakaru.web.problems import WebError

MAX_PAGE_SIZE = 200
MAX_PAGE = 100_000
MAX_COUNT = 1_000_000_000
CONTROL = r"^[^\x00-\x1f\x7f]*$"

Text = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=CONTROL)]
Moment = Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=CONTROL)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
State = Literal[
    "pending", "running", "completed", "failed", "timeout", "cancelled", "killed",
    "out_of_memory", "node_failed", "preempted", "any",
]  # fmt: skip
Group = Literal[
    "cluster", "user", "account", "queue", "qos", "application", "state", "gpu_model", "num_gpus",
    "num_nodes", "num_cpus", "num_pes", "parallelism", "quarter",
]  # fmt: skip
assert set(Group.__args__) == set(GROUPS)  # type: ignore[attr-defined]


class Filters(BaseModel):
    """Which jobs: every endpoint and page takes these."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster: tuple[Name, ...] = Field(default=(), max_length=20, description="Only these clusters.")
    since: Moment | None = Field(
        default=None, description="Submitted on or after: a date, or a time, in the site's zone."
    )
    until: Moment | None = Field(
        default=None, description="Submitted on or before (a date) or before (a time)."
    )
    queue: Text | None = Field(default=None, description="Only this queue.")
    user: Text | None = Field(default=None, description="Only this user's jobs.")
    account: Text | None = Field(default=None, description="Only this account's jobs.")
    application: Text | None = Field(default=None, description="Only this application.")
    min_gpus: int | None = Field(
        default=None, ge=0, le=MAX_COUNT, description="At least this many GPUs (or processors)."
    )
    max_gpus: int | None = Field(
        default=None, ge=0, le=MAX_COUNT, description="At most this many GPUs (or processors)."
    )
    state: tuple[State, ...] = Field(
        default=(), max_length=11, description="Only jobs in these states; `any` for all."
    )
    min_run: float | None = Field(
        default=None, ge=0, le=MAX_COUNT, description="Least run time in seconds; 0 for none."
    )
    where: (
        Annotated[str, StringConstraints(min_length=1, max_length=4000, pattern=CONTROL)] | None
    ) = Field(
        default=None,
        description="Condition on columns, e.g. `num_gpus >= 8 AND queue = 'long'`.",
    )

    def selection(self, by: str | None = None, weight: str = "jobs") -> Selection:
        """The jobs that these filters choose, checked; an error says what is wrong with them."""
        self.check()
        return Selection(
            clusters=tuple(dict.fromkeys(self.cluster)),
            where=self.where,
            checks=self.checks(),
            since=self.since,
            until=self.until,
            min_run_s=self.min_run,
            states=tuple(dict.fromkeys(self.state)),
            by=by,
            weight=weight,
        )

    def checks(self) -> tuple[Check, ...]:
        named = [Check(name, value) for name in NAMED if (value := getattr(self, name)) is not None]
        if self.min_gpus is not None:
            named.append(Check("num_pes", self.min_gpus, ">="))
        if self.max_gpus is not None:
            named.append(Check("num_pes", self.max_gpus, "<="))
        return tuple(named)

    def check(self) -> None:
        """Refuse what the engine would stumble over, before it is asked."""
        if (
            self.since
            and self.until
            and parse_moment(self.since, "UTC") >= end_of(self.until, "UTC")
        ):
            raise FilterError(f"the period ends before it begins: {self.since} to {self.until}")
        if self.since:
            parse_moment(self.since, "UTC")
        if self.until:
            end_of(self.until, "UTC")
        if self.where:
            _check_where(self.where)


NAMED = ("queue", "user", "account", "application")


class AnalysisQuery(Filters):
    """The filters, and how an analysis counts; its own parameters are given as `param.NAME`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    by: Group | None = Field(default=None, description="Group by this column.")
    weight: Literal["jobs", "gpu-hours"] = Field(
        default="jobs", description="Count jobs, or the GPU-hours they used."
    )

    def params(self) -> dict[str, str]:
        """The analysis' own parameters; anything else that is not known is an error."""
        found = {}
        for name, value in (self.model_extra or {}).items():
            if not name.startswith("param."):
                known = ", ".join(type(self).model_fields)
                raise WebError(
                    f"there is no parameter {name!r}",
                    f"Use: {known}, or param.NAME for the analysis' own parameters.",
                )
            if not isinstance(value, str):
                raise WebError(f"the parameter {name!r} is given twice", "Give it once.")
            found[name.removeprefix("param.")] = value
        return found


class ResultQuery(AnalysisQuery):
    format: Literal["json", "csv", "parquet"] = Field(
        default="json", description="JSON, or a file to download."
    )


class FigureQuery(AnalysisQuery):
    dark: bool = Field(default=False, description="Colours for a dark page.")


class Paged(Filters):
    page: int = Field(default=1, ge=1, le=MAX_PAGE, description="From 1.")
    size: int = Field(default=50, ge=1, le=MAX_PAGE_SIZE, description="Rows on a page.")
    order: Literal["asc", "desc"] = Field(default="desc", description="Rising or falling.")


JobSort = Literal[
    "submitted_at", "started_at", "ended_at", "wait_s", "run_s", "requested_s", "num_pes",
    "num_nodes", "pe_hours", "job_id", "user", "account", "queue", "application", "state",
]  # fmt: skip


class JobsQuery(Paged):
    sort: JobSort = Field(default="submitted_at", description="Column to sort by.")
    q: Text | None = Field(default=None, description="Part of a job's id, name or user.")


class JobQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster: Name = Field(description="The job's cluster.")
    job_id: Text = Field(description="The scheduler's id, as the log has it.")
    submitted_at: Moment | None = Field(
        default=None, description="When it was submitted; without it, its last attempt."
    )


class PeopleQuery(Paged):
    kind: Literal["users", "accounts"] = Field(default="users", description="Users or accounts.")
    sort: PeopleSort = Field(default="pe_hours", description="Column to sort by.")
    q: Text | None = Field(default=None, description="Part of the name.")


class CompareQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster: tuple[Name, ...] = Field(default=(), max_length=20, description="Only these clusters.")
    since: Moment | None = Field(default=None, description="Submitted on or after.")
    until: Moment | None = Field(default=None, description="Submitted on or before.")
    published: tuple[Text, ...] = Field(
        default=(), max_length=40, description="Only these published clusters."
    )
    metrics: Literal["headline", "all"] = Field(
        default="headline", description="Few metrics, or (for operators) all."
    )


class RejectsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster: Name | None = Field(default=None, description="Only this cluster.")
    reason: (
        Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=CONTROL)] | None
    ) = Field(default=None, description="Only this reason.")
    page: int = Field(default=1, ge=1, le=MAX_PAGE, description="From 1.")
    size: int = Field(default=50, ge=1, le=MAX_PAGE_SIZE, description="Rows on a page.")


class Nothing(BaseModel):
    """An endpoint without parameters; one that is given all the same is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _check_where(text: str) -> None:
    try:
        parse_where(text, "jobs_all", COLUMNS)
    except HakaruError:
        raise
    except Exception:  # the parser of SQL has corners of its own; no text may lead there
        raise FilterError(
            "the filter cannot be read; e.g. num_gpus >= 8 AND queue = 'long'"
        ) from None
