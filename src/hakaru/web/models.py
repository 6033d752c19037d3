"""The shape of every answer, for the API and for the pages alike. Unknown or withheld is null."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

Row = dict[str, Any]
ZoneKnown = Annotated[
    bool, Field(description="False where the site's time zone is unknown, and `zone` UTC.")
]
RelativeDates = Annotated[
    bool,
    Field(
        description="Whether dates count from an unknown day: the log does not say when it began."
    ),
]
Missing = Annotated[
    float | None,
    Field(description="Share of the log's rows that could not be read; null where it is small."),
]


class Cluster(BaseModel):
    name: str
    zone: str
    zone_known: ZoneKnown
    relative_dates: RelativeDates
    unit: str = Field(description="What a job's size counts: gpu or cpu.")
    synthetic: bool
    missing: Missing
    num_jobs: int | None
    num_users: int | None = Field(
        description="Null where the log numbers its users anew in every file, or names none."
    )
    first_submit: datetime | None
    last_submit: datetime | None
    queues: list[str] = Field(description="For a user, those that can be asked for.")
    applications: list[str]


class Clusters(BaseModel):
    clusters: list[Cluster]
    hint: str | None = Field(default=None, description="The command to run, where there are none.")


class Parameter(BaseModel):
    name: str
    default: int | float | str
    help: str
    choices: list[str]
    low: float | None
    high: float | None


class AnalysisInfo(BaseModel):
    """An entry of the registry."""

    id: str
    title: str
    question: str
    description: str
    subject: str
    figure: str
    reproduces: str
    params: list[Parameter]
    groups: bool = Field(description="Whether it takes `by`.")
    weighted: bool = Field(description="Whether it takes `weight=gpu-hours`.")
    for_users: bool = Field(description="Whether the role user may ask it of others' jobs.")


class Analyses(BaseModel):
    analyses: list[AnalysisInfo]


class LeftOut(BaseModel):
    rule: str
    num_jobs: int | None


class Withheld(BaseModel):
    """What the role user does not see of the answer, and why."""

    num_rows: int = Field(description="Rows that a user does not see.")
    columns: list[str] = Field(
        description="Columns that show one job, such as the longest, or that count too finely."
    )
    why: str


class Period(BaseModel):
    """The period that was really used; for the role user it may be wider than what was asked for."""

    since: str | None
    until: str | None


class Table(BaseModel):
    """An analysis' answer."""

    id: str
    title: str
    question: str
    clusters: list[str]
    period: Period
    columns: list[str]
    rows: list[Row]
    num_selected: int | None
    num_used: int | None
    left_out: list[LeftOut]
    synthetic: bool
    missing: dict[str, float] = Field(
        default={}, description="Clusters with a large share of rows that could not be read."
    )
    withheld: Withheld | None = None


class Drawing(BaseModel):
    """A figure: an ECharts option and what must be said beside it."""

    id: str
    kind: str
    title: str
    question: str
    option: dict[str, Any]
    notes: list[str]
    height: int = Field(description="Pixels at which it is best drawn, at any width.")
    where: str | None = Field(
        default=None, description="The analysis' own rules as a filter, for the jobs behind it."
    )
    withheld: Withheld | None = None


class Measures(BaseModel):
    """A cluster over a period."""

    num_jobs: int | None = None
    num_users: int | None = Field(
        default=None,
        description="Who submitted a job; null where the log numbers users anew in every file or names none.",
    )
    pe_hours: float | None = Field(default=None, description="Size times run time, summed.")
    wait_median_s: float | None = Field(default=None, description="Of the jobs that started.")
    wait_p95_s: float | None = Field(default=None, description="Of the jobs that started.")
    share_started: float | None = Field(
        default=None, description="Of all jobs: those that the waits are of."
    )
    run_median_s: float | None = Field(default=None, description="Of all jobs that ran.")
    share_completed: float | None = Field(default=None, description="Of the jobs that ended.")
    num_by_state: int | None = Field(
        default=None,
        description="For a user: the jobs that share_completed is of, in groups of six or more people.",
    )
    busy_pes: float | None = Field(
        default=None, description="PEs (GPUs or processors) in use, mean over the period."
    )
    jobs_waiting: float | None = Field(
        default=None, description="Queue length, mean over the period."
    )
    utilisation: float | None = Field(default=None, description="Busy over installed, 0 to 1.")


class Now(BaseModel):
    """The machine at the end of the log (or of the period); null where no job's start and end are known.

    Numbers of PEs are null too where the size of a running (waiting) job is unknown.
    """

    at: datetime | None = None
    busy_pes: float | None = None
    installed_pes: float | None = None
    seen_pes: int | None = Field(
        default=None,
        description="Where the size is unknown: the least it can be, by the nodes named in the log.",
    )
    jobs_running: int | None = None
    jobs_waiting: int | None = None
    pes_waiting: float | None = None


class ClusterOverview(BaseModel):
    cluster: str
    zone: str
    zone_known: ZoneKnown
    relative_dates: RelativeDates
    unit: str
    synthetic: bool
    missing: Missing
    users_note: str | None = Field(
        description="What must be said beside the number of users, if it does not count people."
    )
    period: Period
    now: Now
    warnings: list[str] = Field(description="Where jobs exceed the machine's size; for operators.")
    measures: Measures
    before: Measures | None = Field(description="The period of the same length before this one.")
    before_period: Period | None
    change: dict[str, float | None] = Field(description="Relative change of each measure.")


class Overview(BaseModel):
    clusters: list[ClusterOverview]
    withheld: list[str] = Field(
        default=[], description="Clusters of too few people for the role user, left out."
    )
    hint: str | None = None


class Sentence(BaseModel):
    """Something that stands out, and the numbers behind it."""

    id: str
    text: str
    analysis: str = Field(description="The analysis that it was read from.")
    values: dict[str, float]


class ClusterFindings(BaseModel):
    cluster: str
    missing: Missing
    findings: list[Sentence]


class Findings(BaseModel):
    clusters: list[ClusterFindings]
    hint: str | None = None


class Page(BaseModel):
    """Some rows of many."""

    columns: list[str]
    rows: list[Row]
    page: int
    size: int
    num_rows: int
    num_pages: int


class Jobs(Page):
    only_own: bool = Field(description="Whether only one's own jobs are listed.")


class Place(BaseModel):
    """Where a job stands among others: the share that has less, counting equals half."""

    num_jobs: int | None = None
    wait: float | None = None
    run: float | None = None
    size: float | None = None
    request_accuracy: float | None = None


class Job(BaseModel):
    record: Row
    units: dict[str, str] = Field(description="Unit of each column that has one.")
    meanings: dict[str, str]
    attempts: list[datetime] = Field(description="When each attempt with this id was submitted.")
    among_user: Place | None
    among_cluster: Place | None = Field(description="Null where too few people ran jobs.")


class People(Page):
    """Users or accounts; the columns are those of the analyses `users` and `accounts`."""

    kind: str
    only_own: bool
    users_note: str | None = Field(
        description="What must be said beside the number of users, if it does not count people."
    )
    notes: list[str] = Field(default=[], description="What the log does not say of these people.")
    names_none: str | None = Field(
        default=None, description="Says so where the log names no users (or accounts) at all."
    )


class LakeTable(BaseModel):
    name: str
    meaning: str
    num_rows: int | None = Field(description="Null for the role user, as all sizes here.")
    num_files: int | None
    num_bytes: int | None
    version: int
    committed_at: datetime | None


class RejectReason(BaseModel):
    cluster: str
    reason: str
    num_rejects: int
    first_file: str
    first_line: int | None


class LakeContents(BaseModel):
    workspace: str | None
    tables: list[LakeTable]
    ingests: list[Row] = Field(description="The last 50, the newest first.")
    rejects: list[RejectReason] | None = Field(description="Null for the role user.")
    hint: str | None = None


class Rejects(Page):
    pass


class Comparison(BaseModel):
    """Clusters and published figures side by side; as `hakaru compare --format json`."""

    clusters: list[Row]
    metrics: list[Row] = Field(
        description="A metric: its value for each cluster, and as published."
    )
    contrasts: list[Row] = Field(description="What sets the first cluster apart, in sentences.")
    left_out: list[str]
    withheld: list[str] = Field(
        default=[], description="Clusters of too few people for the role user, left out."
    )
    period: Period


class Me(BaseModel):
    """Who asks."""

    name: str
    role: str
    user: str | None
    signed_in: bool = Field(description="False where the app is open without signing in.")
    sign_out: bool = Field(description="Whether there is a session to end.")
