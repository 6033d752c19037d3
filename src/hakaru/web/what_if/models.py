"""The shape of what-if's questions and answers; all of it is for operators."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from hakaru.web.filters import Moment, Name
from hakaru.web.what_if.bounds import MAX_TEXT

State = Literal["queued", "running", "done", "failed", "cancelled"]
Measure = Literal["mean_wait_s", "median_wait_s", "p95_wait_s"]
FigureId = Literal["waits-by-class", "waits", "busy", "nodes"]


class Wanted(BaseModel):
    """A scenario over the jobs of one cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster: Name = Field(description="Whose jobs are replayed.")
    since: Moment | None = Field(default=None, description="Submitted on or after.")
    until: Moment | None = Field(default=None, description="Submitted on or before.")
    scenario: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)] = Field(
        description="The scenario as TOML: what `hakaru whatif` reads."
    )


class PolicyInfo(BaseModel):
    id: str
    title: str
    needs_queues: bool = Field(description="Whether it needs `low_queues`, those that yield.")


class Run(BaseModel):
    """A scenario that was asked for: how far it is."""

    id: str
    state: State
    cluster: str
    since: str | None
    until: str | None
    names: list[str] = Field(description="The baseline, then the variants.")
    num_jobs: int
    asked_at: datetime
    began_at: datetime | None
    ended_at: datetime | None
    num_ahead: int = Field(description="Runs that are played before it.")
    num_done: int = Field(description="Of `names`, how many have been played.")
    doing: str = Field(description="What is being done, in a few words.")
    problem: str | None = Field(description="Why it failed.")


class WhatIf(BaseModel):
    """What can be played here, and the last runs, the newest first."""

    install: str | None = Field(description="The command to run, where the simulator is missing.")
    policies: list[PolicyInfo]
    max_jobs: int = Field(description="Jobs of all runs of a scenario together.")
    max_variants: int
    max_seconds: float
    runs: list[Run]


class Change(BaseModel):
    """A variant's value less the baseline's; the interval holds 95 % of the resampled weeks."""

    before: float | None
    after: float | None
    change: float | None
    relative: float | None
    low: float | None
    high: float | None
    is_sure: bool = Field(description="Whether the interval leaves zero out.")
    error: float | None = Field(default=None, description="The replay's own, where it is known.")
    is_within_error: bool = Field(default=False, description="Whether the change is smaller.")
    has_too_few_weeks: bool = Field(
        default=False, description="Whether the weeks are too few for an interval."
    )


class GroupChange(BaseModel):
    by: str
    group: str
    num_jobs: int
    changes: dict[str, Change]


class Variant(BaseModel):
    """`changes` and `groups` are empty for the baseline."""

    name: str
    metrics: dict[str, float | None]
    changes: dict[str, Change]
    groups: list[GroupChange]
    notes: list[str]
    waits: list[tuple[float, float]] = Field(description="Seconds; share that waited no longer.")
    busy: list[tuple[int, float]] = Field(description="Seconds since 1970; mean busy from then on.")


class MachineFacts(BaseModel):
    num_nodes: int
    node_size: int = Field(description="PEs of the largest node.")
    num_pes: int
    is_flat: bool = Field(description="One pool without nodes.")
    names: list[str] = Field(default=[], description="Of the nodes, where the lake knows them.")


class Outcome(BaseModel):
    """Who gains, who loses, by how much; `machines` are those of the baseline and the variants."""

    baseline: Variant
    variants: list[Variant]
    headlines: list[str] = Field(default_factory=list, description="A sentence a variant.")
    sentences: list[str]
    known_error: str
    notes: list[str]
    num_weeks: int
    num_resamples: int
    seed: int
    unit: str
    zone: str
    machines: list[MachineFacts]
    recorded_busy: list[tuple[int, float]] = Field(description="As `busy`, of the log itself.")
    classes: list[str]
    first_day: date
    last_day: date
    day: date = Field(description="The day whose jobs waited longest together in the baseline.")

    @property
    def runs(self) -> list[Variant]:
        return [self.baseline, *self.variants]


class RunResult(Run):
    scenario: str
    outcome: Outcome | None


class DayQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    variant: int = Field(default=0, ge=0, le=100, description="0 is the baseline.")
    day: date | None = Field(default=None, description="A day of the site's calendar.")


class FigureQuery(DayQuery):
    measure: Measure = Field(default="mean_wait_s", description="Of the waits by class.")
    dark: bool = Field(default=False, description="Colours for a dark page.")


class Bar(BaseModel):
    """A job on some lanes of a node; a lane is one GPU (or CPU)."""

    node: int
    lane: int
    num_lanes: int
    start: int = Field(description="Seconds since 1970, as `end`; cut at the day's bounds.")
    end: int
    job_id: str | None
    user: str | None
    queue: str | None
    num_pes: int
    parallelism: str


class NodesOfDay(BaseModel):
    """What ran where on a day; a flat pool has no nodes, and no bars."""

    variant: str
    day: date
    zone: str
    machine: MachineFacts
    num_jobs: int = Field(description="Jobs that ran on this day.")
    num_left_out: int = Field(description="Jobs that are too short to be listed.")
    bars: list[Bar]
