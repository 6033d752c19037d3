"""Conservative backfilling as one would explain it: second by second, every free PE counted anew."""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER = 10**9


@dataclass
class Job:
    submit: int
    run: int
    request: int
    estimate: int
    pes: int  # on each node
    num_nodes: int = 1
    start: int | None = None
    until: int = NEVER  # what the profile holds for it ends here
    nodes: tuple[int, ...] = ()
    stage: str = "unseen"
    number: int = 0
    began: int = 0  # counts those who began

    @property
    def holds(self) -> bool:
        return self.stage == "running" or (self.stage == "planned" and self.start is not None)


@dataclass
class Slow:
    jobs: list[Job]
    sizes: list[int]
    changes: list[tuple[int, int, str]] = field(default_factory=list)
    packing: str = "best-fit"
    whole_nodes: bool = True
    locality: str = "anywhere"
    switch_size: int = NEVER
    batched: bool = False
    depth: int = NEVER

    def __post_init__(self) -> None:
        for number, job in enumerate(self.jobs):
            job.number, job.estimate = number, max(1, job.estimate)
        self.open = set(range(len(self.sizes)))
        self.waiting: list[Job] = []
        self.num_begun = 0
        self.changes.sort(key=lambda change: change[0])

    def play(self) -> list[int | None]:
        last = sum(job.request + job.estimate for job in self.jobs) * (2 + len(self.changes))
        for now in range(max((job.submit for job in self.jobs), default=0) + last + 50):
            self.second(now)
        return [job.start if job.stage == "done" else None for job in self.jobs]

    def second(self, now: int) -> None:
        rebuild = self.outlive(now)
        if rebuild and not self.batched:
            self.rebuild(now)
        begins = [] if rebuild else [job for job in self.waiting if job.start == now]
        for job in begins:
            self.begin(job, now)
        if not self.batched:
            self.fill(now)
        for job in self.jobs:
            if job.submit == now and job.stage == "unseen":
                job.stage = "waiting"
                self.waiting.append(job)
                if not self.batched:
                    self.fill(now)
        if self.batched and rebuild:
            self.ends_and_changes(now, quietly=True)
            self.rebuild(now)
        self.ends_and_changes(now)

    def outlive(self, now: int) -> bool:
        over = [
            job for job in self.jobs
            if job.stage == "running" and job.until == now and job.start + job.run > now
        ]  # fmt: skip
        for job in over:
            job.until = job.start + job.request
        return bool(over)

    def ends_and_changes(self, now: int, quietly: bool = False) -> None:
        """One by one, or all of a second and then one pass; a run of no time ends in the second it began."""
        happened = set()
        while what := self.end_or_change(now):
            happened.add(what)
            if not self.batched:
                self.rebuild(now) if what == "change" else self.compress(now)
        if not self.batched or quietly:
            return
        if happened:
            self.rebuild(now) if "change" in happened else self.compress(now)
        self.fill(now)
        if self.ending(now):
            self.ends_and_changes(now)

    def ending(self, now: int) -> list[Job]:
        return [job for job in self.jobs if job.stage == "running" and job.start + job.run == now]

    def end_or_change(self, now: int) -> str | None:
        if ending := self.ending(now):
            min(ending, key=lambda job: job.began).stage = "done"
            return "end"
        if self.changes and self.changes[0][0] == now:
            self.change(now, *self.changes.pop(0)[1:])
            return "change"
        return None

    def change(self, now: int, node: int, kind: str) -> None:
        for job in self.jobs:
            if kind == "down" and job.stage == "running" and node in job.nodes:
                job.stage, job.start = "waiting", None
                self.waiting.append(job)
        self.waiting.sort(key=lambda job: job.number)
        (self.open.add if kind == "up" else self.open.discard)(node)

    def begin(self, job: Job, now: int) -> None:
        self.waiting.remove(job)
        self.num_begun += 1
        job.stage, job.began = "running", self.num_begun

    def plan(self, job: Job, now: int, before: int = NEVER) -> None:
        """The earliest place before a time; it stays where it is when there is none."""
        held, job.stage = job.start, "waiting"
        found = self.earliest(job, now, before)
        job.stage = "planned"
        if found is None:
            job.start = held
            return
        job.start, job.nodes = found
        job.until = job.start + job.estimate
        if job.start == now:
            self.begin(job, now)

    def fill(self, now: int) -> None:
        for job in list(self.waiting):
            if (
                job.stage == "waiting"
                and sum(j.stage == "planned" for j in self.waiting) < self.depth
            ):
                job.start = None
                self.plan(job, now)

    def compress(self, now: int) -> None:
        for job in list(self.waiting):
            if job.stage == "planned" and job.start is not None:
                self.plan(job, now, job.start)
        self.fill(now)

    def rebuild(self, now: int) -> None:
        for job in self.waiting:
            job.stage, job.start = "waiting", None
        self.fill(now)

    def earliest(self, job: Job, now: int, before: int) -> tuple[int, tuple[int, ...]] | None:
        holding = [other for other in self.jobs if other.holds]
        ends = {now} | {other.until for other in holding if other.until > now}
        for t in sorted(end for end in ends if end < before):
            free = {
                x: min(self.free(holding, x, s) for s in range(t, t + job.estimate))
                for x in self.open
            }
            nodes = self.pick(job, free)
            if nodes:
                return t, nodes
        return None

    def free(self, holding: list[Job], x: int, t: int) -> int:
        return self.sizes[x] - sum(
            self.sizes[x] if self.whole_nodes and job.num_nodes > 1 else job.pes
            for job in holding
            if x in job.nodes and job.start <= t < job.until
        )

    def pick(self, job: Job, free: dict[int, int]) -> tuple[int, ...] | None:
        whole = self.whole_nodes and job.num_nodes > 1
        fit = [
            x
            for x in sorted(free)
            if free[x] >= (max(self.sizes[x], job.pes) if whole else job.pes)
        ]
        sign = 1 if self.packing == "best-fit" else -1
        fit.sort(key=lambda x: (sign * free[x], x))
        if len(fit) < job.num_nodes:
            return None
        if self.locality == "anywhere" or job.num_nodes == 1:
            return tuple(fit[: job.num_nodes])
        switches: dict[int, list[int]] = {}
        for x in fit:
            switches.setdefault(x // self.switch_size, []).append(x)
        enough = [(len(nodes), w) for w, nodes in switches.items() if len(nodes) >= job.num_nodes]
        if enough:
            return tuple(switches[min(enough)[1]][: job.num_nodes])
        if self.locality == "required":
            return None
        largest = sorted(switches, key=lambda w: (-len(switches[w]), w))
        return tuple([x for w in largest for x in switches[w]][: job.num_nodes])
