"""A slow, obvious simulator: lists, loops, everything found anew; what the kernels must agree with.

One event at a time in the order (time, rank, sequence). A pass goes through the queue from the front: who
fits begins, who is held by a limit is passed over, the first that does not fit is the head. Behind it a job
begins if it fits now and either ends by the head's moment or lies on what the head leaves free. The head's
reservation is found anew at every pass, but for one after a job that came in behind the head. After a pass
everybody who waits is told why; after one for a job that came in behind the head, only that job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from hakaru import sim

OVER, SUBMIT, END, CHANGE, HOUR = range(5)
NEVER = math.inf


@dataclass(eq=False)
class Job:
    number: int
    submit: int
    run: int
    request: int
    given: int  # estimate
    key: Any
    pes: int  # on each node
    all_pes: int
    num_nodes: int
    model: str | None
    user: str | None
    account: str | None
    queue: str | None
    qos: str | None
    start: int = -1
    end: int = -1
    expected: float = -1
    seq: int = -1
    restarts: int = 0
    nodes: list[int] = field(default_factory=list)
    is_released: bool = False
    why: str = "none"


class Slow:
    def __init__(
        self, workload: sim.Workload, machine: sim.Machine, policy: sim.Policy, options: sim.Options
    ) -> None:
        self.machine, self.policy, self.options = machine, policy, options
        self.sizes = [group.size for group in machine.groups for _ in range(group.count)]
        self.models = [group.model for group in machine.groups for _ in range(group.count)]
        self.free = list(self.sizes)
        self.open = [x not in machine.closed for x in range(len(self.sizes))]
        self.jobs = [self.job_of(workload, j) for j in range(len(workload))]
        self.users = {job.user for job in self.jobs if job.user is not None}
        self.waiting: list[Job] = []
        self.gated: list[Job] = []
        self.active: list[Job] = []  # begun and not ended
        self.history: dict[str | None, list[int]] = {}
        self.uses: list[tuple[str | None, int, int, int]] = []  # user, PEs, from, to
        self.usage = dict.fromkeys(self.users, 0.0)
        self.now = self.counted_at = self.jobs[0].submit if self.jobs else 0
        self.hour_at = self.now
        self.seq = self.lost = 0
        self.totals = dict.fromkeys(
            ("capacity_s", "busy_s", "idle_while_waiting_s", "fragmented_s"), 0
        )
        self.totals_at_end = dict(self.totals)
        self.down: set[int] = set()
        self.kept: Any = None
        self.is_dirty = False  # whether more happened since the last pass than that a job came
        self.head: Job | None = None
        self.promises: list[tuple[int, float]] = []  # head, and when it begins at the latest
        self.events: list[Any] = [(job.submit, SUBMIT, job.number, job) for job in self.jobs]
        self.events += [
            (c.time, CHANGE, x, c)
            for x, c in enumerate(sorted(machine.changes, key=lambda c: c.time))
        ]
        self.events += [(moment, HOUR, 0, None) for moment in self.hours()]

    def job_of(self, w: sim.Workload, j: int) -> Job:
        names = {
            name: w.names[name][codes[j]] if codes[j] >= 0 else None
            for name, codes in (
                ("user", w.user),
                ("account", w.account),
                ("queue", w.queue),
                ("qos", w.qos),
                ("gpu_model", w.model),
            )
        }
        estimates = self.options.estimates
        thought = w.request if estimates is None else estimates(w)
        given = int(thought[j])
        key = int(self.policy.order(w, thought)[j]) if self.policy.order else 0
        yields = self.policy.preempts and names["queue"] in self.options.low_queues
        model = names.pop("gpu_model")
        pes, num_nodes = int(w.pes[j]), 1
        mine = [
            size
            for size, each in zip(self.sizes, self.models, strict=True)
            if each and each == model
        ]
        if not self.machine.is_flat:
            for size in sorted(set(self.sizes), reverse=True):
                num_nodes = max(int(w.num_nodes[j]), math.ceil(int(w.pes[j]) / size))
                pes = math.ceil(int(w.pes[j]) / num_nodes)
                if sum(each >= pes for each in mine or self.sizes) >= num_nodes:
                    break
        model = model if any(self.models) else None
        submit, run, request = int(w.submit[j]), int(w.run[j]), int(w.request[j])
        return Job(
            j, submit, run, request, given, (yields, key), pes, int(w.pes[j]), num_nodes, model,
            names["user"], names["account"], names["queue"], names["qos"],
        )  # fmt: skip

    # ---- events

    def play(self) -> Slow:
        while (event := self.next_event()) is not None:
            self.events.remove(event)
            time, rank, _, what = event
            self.pass_time(max(0, time - self.now))
            self.now = max(self.now, time)
            keeps = self.happen(rank, what)
            if not keeps:
                self.kept, self.is_dirty = None, True
            if keeps and self.head and self.is_held(self.head):
                self.is_dirty = True
            upcoming = self.next_event()
            is_last = upcoming is None or upcoming[0] > self.now
            if rank != OVER and (is_last or self.options.events == "one-by-one"):
                self.open_gate()
                self.reprioritise()
                self.look([what] if keeps else [])
                while self.open_gate():
                    self.look([])
        return self

    def pass_time(self, seconds: int) -> None:
        """What goes on meanwhile: nothing runs on a node that is down, or on more of one than it has."""
        assert all(0 <= free <= size for free, size in zip(self.free, self.sizes, strict=True))
        assert not any(self.down & set(job.nodes) for job in self.active)
        nodes = range(len(self.sizes))
        free = sum(self.free[x] for x in nodes if self.open[x])
        busy = sum(self.sizes[x] - self.free[x] for x in nodes)
        self.totals["capacity_s"] += seconds * (free + busy)
        self.totals["busy_s"] += seconds * busy
        self.totals["idle_while_waiting_s"] += seconds * free * bool(self.waiting)
        if self.head:
            pieces = sum(self.free[x] for x in self.usable(self.head))
            enough = pieces >= self.head.num_nodes * self.head.pes
            self.totals["fragmented_s"] += seconds * pieces * enough

    def look(self, came: list[Job]) -> None:
        """A pass, and who waits after it learns why."""
        told = self.waiting if self.is_dirty else came
        self.schedule()
        for job in self.waiting:
            if job in told and job.why not in ("preempted", "node lost"):
                job.why = self.reason(job)
        self.is_dirty = False

    def next_event(self) -> Any:
        """None where all is over, or nothing can happen any more."""
        is_over = not self.waiting and not self.gated and not self.active
        if is_over and not any(rank == SUBMIT for _, rank, _, _ in self.events):
            return None
        return min(self.events, key=lambda event: event[:3], default=None)

    def happen(self, rank: int, what: Any) -> bool:
        """Whether the head's reservation stays as it is."""
        if rank == OVER:
            what.expected = what.start + what.request
            return False
        is_quiet = not self.release_expected()
        if rank == SUBMIT:
            held = self.is_held(what, at_gate=True)
            (self.gated if held else self.waiting).append(what)
            what.why = "queue limit" if held else "none"
            if self.policy.preempts or self.options.events == "batched":
                return False
            overtakes = self.head and self.place(what) < self.place(self.head)
            return is_quiet and (held or not overtakes)
        if rank == END:
            self.leave(what)
            what.end = self.now
            self.history.setdefault(what.user, []).append(what.run)
        elif rank == HOUR:
            self.hour_at = self.now
        else:
            for job in list(self.active) if what.kind == "down" else ():
                if what.node in job.nodes:
                    self.put_back(job, "node lost")
            self.open[what.node] = what.kind == "up"
            if what.kind != "drain":
                (self.down.add if what.kind == "down" else self.down.discard)(what.node)
        return False

    def release_expected(self) -> bool:
        """A job whose estimate ends at t is free at t."""
        over = [job for job in self.active if not job.is_released and job.expected <= self.now]
        for job in over:
            self.release(job)
        return bool(over)

    def takes(self, job: Job, x: int) -> int:
        """A job of several nodes takes them whole, where the machine says so."""
        return self.sizes[x] if self.is_whole(job) else job.pes

    def is_whole(self, job: Job) -> bool:
        return job.num_nodes > 1 and self.machine.placement.whole_nodes

    def release(self, job: Job) -> None:
        if not job.is_released:
            job.is_released = True
            for x in job.nodes:
                self.free[x] += self.takes(job, x)

    def leave(self, job: Job) -> None:
        self.release(job)
        self.active.remove(job)
        self.totals_at_end = dict(self.totals)
        self.uses.append((job.user, job.all_pes, job.start, self.now))

    def put_back(self, job: Job, why: str) -> None:
        self.leave(job)
        job.why = why
        self.events = [event for event in self.events if event[3] is not job]
        self.lost += (self.now - job.start) * job.all_pes
        job.restarts += 1
        job.start = -1
        self.waiting.append(job)

    def begin(self, job: Job, nodes: list[int]) -> None:
        self.waiting.remove(job)
        self.active.append(job)
        self.seq += 1
        job.start, job.nodes, job.is_released, job.seq = self.now, nodes, False, self.seq
        for x in nodes:
            self.free[x] -= self.takes(job, x)
        estimate = self.estimate(job)
        job.expected = self.now + estimate
        self.events.append((self.now + job.run, END, self.seq, job))
        if estimate < job.run:
            self.events.append((self.now + estimate, OVER, self.seq, job))

    # ---- estimates, limits, priorities

    def estimate(self, job: Job) -> int:
        past = self.history.get(job.user, []) if job.user is not None else []
        if self.policy.predictor == "last-two" and len(past) >= 2:
            return min(job.request, sum(past[-2:]) // 2)
        return job.given

    def hours(self) -> list[int]:
        """When a limit by hour begins or ceases to hold."""
        if not any(limit.hours for limit in self.options.limits) or not self.jobs:
            return []
        first = self.jobs[0].submit // 1800 * 1800
        moments = range(first, self.jobs[-1].submit + 40 * 86400, 1800)
        states = [[self.holds(limit, at) for limit in self.options.limits] for at in moments]
        return [moments[x] for x in range(1, len(states)) if states[x] != states[x - 1]]

    def holds(self, limit: sim.Limit, at: int) -> bool:
        if limit.hours is None:
            return True
        begin, end = limit.hours
        hour = datetime.fromtimestamp(at, ZoneInfo(self.options.zone)).hour
        return hour in {(begin + x) % 24 for x in range((end - begin - 1) % 24 + 1)}

    def is_held(self, job: Job, at_gate: bool = False) -> bool:
        return any(
            self.exceeds(limit, job)
            for limit in self.options.limits
            if (limit.what == "queued-jobs") == at_gate and self.holds(limit, self.hour_at)
        )

    def exceeds(self, limit: sim.Limit, job: Job) -> bool:
        def who(each: Job) -> Any:
            if limit.queue is not None and each.queue != limit.queue:
                return None
            return "all" if limit.scope == "all" else getattr(each, limit.scope)

        if who(job) is None or (limit.only is not None and who(job) != limit.only):
            return False
        others = self.waiting if limit.what == "queued-jobs" else self.active
        counted = [each for each in (*others, job) if who(each) == who(job)]
        if limit.what == "running-gpus":
            return sum(each.all_pes for each in counted) > limit.value
        return len(counted) > limit.value

    def open_gate(self) -> bool:
        came = False
        for job in list(self.gated):
            if not self.is_held(job, at_gate=True):
                self.gated.remove(job)
                self.waiting.append(job)
                self.kept, self.is_dirty, came = None, True, True
        return came

    def place(self, job: Job) -> Any:
        return self.priority(job) if self.policy.weights else job.key, job.number

    def priority(self, job: Job) -> Any:
        weights = self.policy.weights
        num_open = sum(size for size, is_open in zip(self.sizes, self.open, strict=True) if is_open)
        age = max(0, self.counted_at - job.submit)
        points = weights.age * min(1, age / weights.max_age_s)
        points += weights.size * job.all_pes / max(1, num_open)
        total = sum(self.usage[user] for user in self.users)
        if job.user is not None:
            ratio = self.usage[job.user] / total * len(self.users) if total > 0 else 0
            points += weights.fair_share * 2.0**-ratio
        points += weights.queue.get(job.queue, 0) + weights.qos.get(job.qos, 0)
        yields = self.policy.preempts and job.queue in self.options.low_queues
        return yields, -math.floor(points * 2**20 + 0.5)

    def reprioritise(self) -> None:
        weights = self.policy.weights
        if weights is None or self.now - self.counted_at < weights.period_s:
            return
        uses = self.uses + [(j.user, j.all_pes, j.start, self.now) for j in self.active]
        rate = math.log(2) / weights.half_life_s  # what was used at a moment halves from there on
        for user in self.users:
            self.usage[user] = sum(
                pes
                / rate
                * (math.exp(-rate * (self.now - end)) - math.exp(-rate * (self.now - begin)))
                for person, pes, begin, end in uses
                if person == user
            )
        self.counted_at, self.kept, self.is_dirty = self.now, None, True

    # ---- nodes

    def choose(self, job: Job, has: list[int], spare: list[int] | None = None) -> list[int] | None:
        """The nodes for a job: the fullest first or the emptiest, equals in order; None if too few fit."""
        placement = self.machine.placement
        fits = [
            x
            for x in range(len(has))
            if self.open[x]
            and has[x] >= job.pes
            and (job.model is None or self.models[x] == job.model)
            and not (job.num_nodes > 1 and placement.whole_nodes and has[x] < self.sizes[x])
            and (spare is None or spare[x] >= self.takes(job, x))
        ]
        fits.sort(key=lambda x: (has[x] if placement.packing == "best-fit" else -has[x], x))
        if len(fits) < job.num_nodes:
            return None
        if job.num_nodes == 1 or placement.locality == "anywhere":
            return fits[: job.num_nodes]
        under: dict[int, list[int]] = {}
        for x in fits:
            under.setdefault(x // (self.machine.switch_size or len(has)), []).append(x)
        enough = [w for w in under if len(under[w]) >= job.num_nodes]
        if enough:
            return under[min(enough, key=lambda w: (len(under[w]), w))][: job.num_nodes]
        if placement.locality == "required":
            return None
        most_first = sorted(under, key=lambda w: (-len(under[w]), w))
        return [x for w in most_first for x in under[w]][: job.num_nodes]

    # ---- a pass

    def schedule(self) -> None:
        self.head = None
        for job in sorted(self.waiting, key=self.place):
            if self.is_held(job):
                continue
            nodes = self.choose(job, self.free)
            if nodes is not None:
                self.begin(job, nodes)
            elif self.policy.preempts and (victims := self.victims(job)):
                for each in victims:
                    self.put_back(each, "preempted")
                self.begin(job, self.choose(job, self.free) or [])
                self.schedule()
                return
            else:
                self.head = job
                break
        if self.head and self.policy.backfill == "easy":
            self.backfill(self.head)

    def backfill(self, head: Job) -> None:
        if self.kept is None or self.kept[0] is not head:
            self.kept = (head, *self.reservation(head))
            self.promises.append((head.number, self.kept[1]))
        _, moment, spare = self.kept
        behind = [job for job in self.waiting if self.place(job) > self.place(head)]
        behind.sort(key=self.place)
        if self.policy.scan == "shortest-first":
            behind.sort(key=self.estimate)
        for job in behind:
            outlasts = self.now + self.estimate(job) > moment
            nodes = self.choose(job, self.free, spare if outlasts else None)
            if nodes is None or self.is_held(job):
                continue
            self.begin(job, nodes)
            for x in nodes if outlasts else ():
                spare[x] -= self.takes(job, x)

    def reservation(self, head: Job) -> tuple[float, list[int]]:
        """When the head can begin by the estimates, and what is free then beside it."""
        then = list(self.free)
        running = [job for job in self.active if not job.is_released]
        for moment in sorted({job.expected for job in running}):
            for job in running:
                for x in job.nodes if job.expected == moment else ():
                    then[x] += self.takes(job, x)
            nodes = self.choose(head, then)
            if nodes is not None:
                for x in nodes:
                    then[x] -= self.takes(head, x)
                return moment, then
        return NEVER, then

    def victims(self, job: Job) -> list[Job]:
        """Whom to stop so that it fits: low jobs, the latest; of these nobody who may as well go on."""
        low = self.options.low_queues
        if job.queue is None or job.queue in low:
            return []
        running = [each for each in self.active if each.queue in low and not each.is_released]
        stopped: list[Job] = []
        for victim in sorted(running, key=lambda each: -each.seq):
            stopped.append(victim)
            if self.fits_without(job, stopped):
                break
        else:
            return []
        for victim in stopped[::-1]:
            others = [each for each in stopped if each is not victim]
            stopped = others if self.fits_without(job, others) else stopped
        return stopped

    def fits_without(self, job: Job, stopped: list[Job]) -> bool:
        then = list(self.free)
        for each in stopped:
            for x in each.nodes:
                then[x] += self.takes(each, x)
        return self.choose(job, then) is not None

    # ---- why a job waits

    def reason(self, job: Job) -> str:
        if self.is_held(job):
            return "limit"
        if sum(self.free[x] for x in self.usable(job)) < job.num_nodes * job.pes:
            return "resources"
        if self.choose(job, self.free) is None:
            return "fragmentation"
        return "reservation" if self.policy.backfill == "easy" else "behind others"

    def usable(self, job: Job) -> list[int]:
        """The open nodes of the model that it asks for."""
        return [
            x
            for x in range(len(self.free))
            if self.open[x] and (job.model is None or self.models[x] == job.model)
        ]
