"""The shape of questions about measurements and of their answers; all of it is for operators."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from hakaru.figures.measure.chapters import PictureId
from hakaru.figures.measure.choice import Choice
from hakaru.web.filters import CONTROL, MAX_PAGE, Name, Text

FigureId = Literal["fleet", "cards", "collectives", "search", "history", PictureId]
Verdict = Literal["good", "slow", "failed", "contaminated", "not measured"]
RUN_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
RunId = Annotated[str, StringConstraints(pattern=RUN_ID)]
Long = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=CONTROL)]
MAX_ROWS = 1000


class RunsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster: Name | None = Field(default=None, description="Only this cluster.")


class RunQuery(RunsQuery):
    """Which of a run's measurements."""

    benchmark: Text | None = Field(default=None, description="Only this benchmark.")
    verdict: Verdict | None = Field(default=None, description="Only measurements of this verdict.")
    page: int = Field(default=1, ge=1, le=MAX_PAGE, description="From 1.")
    size: int = Field(default=200, ge=1, le=MAX_ROWS, description="Measurements on a page.")


class SubjectQuery(RunsQuery):
    """What to look at; what is left open is chosen."""

    benchmark: Text | None = Field(default=None, description="The benchmark, such as gemm.")
    parameters: Long | None = Field(
        default=None, description="Its parameters as they are shown, such as `fp64 size 1024`."
    )
    quantity: Text | None = Field(default=None, description="The quantity, such as rate.")
    model: Text | None = Field(default=None, description="The model of the devices.")
    host: Long | None = Field(default=None, description="History of this host's device alone.")
    device: Text | None = Field(default=None, description="History of this device alone.")

    @property
    def choice(self) -> Choice:
        return Choice(self.benchmark, self.parameters, self.quantity, self.model)


class FigureQuery(SubjectQuery):
    collective: Text | None = Field(default=None, description="Which collective is drawn.")
    of: Long | None = Field(
        default=None, description="Of which training or plan, by its name, where a run has several."
    )
    dark: bool = Field(default=False, description="Colours for a dark page.")


class RunInfo(BaseModel):
    """A run in a list."""

    id: str
    cluster: str
    label: str | None
    source: str = Field(description="hakaru, or the program that it was imported from.")
    started_at: datetime
    benchmarks: list[str]
    verdict: Verdict = Field(description="The worst of its measurements'.")
    counts: dict[str, int] = Field(description="Measurements of each verdict.")


class Runs(BaseModel):
    """The runs, the newest first."""

    runs: list[RunInfo]
    hint: str | None = Field(default=None, description="The command to run, where there are none.")


class Measurement(BaseModel):
    """One quantity of one device, link or group of ranks."""

    benchmark: str
    parameters: dict[str, Any]
    quantity: str
    unit: str
    better: str
    host: str
    device: str
    model: str
    verdict: Verdict
    reason: str
    num_repetitions: int
    median: float | None
    low: float | None = Field(description="Of the median's 95 % interval.")
    high: float | None
    reference: float | None = Field(description="The value that it was compared with.")
    compared_with: str = Field(description="What that is of: other devices, a baseline.")


class RunResult(RunInfo):
    """A run in words, and a page of its measurements."""

    sentence: str
    meter: str = Field(description="How far the numbers can be trusted.")
    left_out: list[str]
    page: int
    num_rows: int = Field(description="Measurements that fit the question.")
    measurements: list[Measurement]


class Point(BaseModel):
    run: str
    at: datetime
    median: float
    low: float
    high: float
    num_devices: int


class Change(BaseModel):
    """A step, or one that is only suspected and asks for a new measurement."""

    run: str = Field(description="The first run on the new level.")
    size: float = Field(description="As a share of the level before, with a sign.")
    worse: bool
    confirmed: bool


class History(BaseModel):
    """One quantity over the runs of a cluster."""

    title: str
    unit: str
    sentence: str
    points: list[Point]
    changes: list[Change]


class Value(BaseModel):
    """The median over the devices, with its interval where there are enough repetitions or devices."""

    median: float
    low: float | None
    high: float | None
    num_devices: int


class Line(BaseModel):
    """One quantity of the devices of a model in both runs."""

    benchmark: str
    parameters: str
    model: str
    quantity: str
    unit: str
    first: Value | None
    second: Value | None
    ratio: float | None = Field(description="The second over the first.")
    change: str = Field(description="Of the device that differs most.")
    devices: dict[str, int] = Field(description="Devices of each change.")
    most: str = Field(description="The device that changed most, and by how much.")


class Beside(BaseModel):
    """Two runs side by side, whichever was asked for first."""

    first: RunInfo = Field(description="The earlier one.")
    second: RunInfo = Field(description="The later one.")
    lines: list[Line]


class PreflightRow(BaseModel):
    check: str
    node: str
    status: str
    found: str
    wanted: str
    fix: str


class Preflight(BaseModel):
    """The last preflight of a cluster; no rows where none was made."""

    cluster: str | None = None
    made_at: datetime | None = None
    verdict: str | None = None
    summary: str = ""
    where: str = Field(default="", description="How many nodes were asked, and by which launcher.")
    counts: dict[str, int] = {}
    rows: list[PreflightRow] = []
    num_left_out: int = 0
    problem: str = ""
