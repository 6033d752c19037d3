"""The web app on AAIC's log: what the API costs over the query behind it, and readers during an ingest.

    python -m benchmarks.web [--repetitions 5] [--seconds 10]

**Each analysis** is asked over HTTP, as JSON and as its page, each time with a limit of GPUs that nobody has
asked for yet and that all jobs keep, so that the answer must be computed; its bare query is run by an
open session's engine, in turns. The medians over the analyses of their ratios have the limit 3. Answers
that were kept are printed beside them. **Fifty readers** ask different questions while another process
ingests the log anew under another name: no error and no read that waits for the writer (longer than ten
seconds) is allowed, and the server's peak memory may not exceed what the engine is allowed and half a GiB.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from hakaru.analyses import Selection, load_all, open_session
from hakaru.lake import Lake
from hakaru.settings import load
from hakaru.sources import ingest

LIMIT = 3.0
NUM_READERS = 50
BLOCKED_S = 10.0
MEMORY_MIB = 2.0e9 / 2**20 + 512
AAIC = Path(__file__).resolve().parents[2] / "shared" / "data" / "aaic"
SERVER = """
import sys
from pathlib import Path
from hakaru.lake import Lake
from hakaru.web.app import create_app
from hakaru.web.server import listening, server_of, url_of
app = create_app(Lake(Path(sys.argv[1])))
with listening("127.0.0.1", 0) as bound:
    print(url_of("127.0.0.1", bound), flush=True)
    server_of(app).run(sockets=[bound])
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="The web app against its engine.")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="Least time of the readers.")
    options = parser.parse_args()
    files = sorted(AAIC.glob("*.csv.gz"))
    if not files:
        sys.exit(f"no files: put AAIC's CSV files into {AAIC}")
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.create(Path(folder))
        ingest(lake, files, "aaic")
        ratios = _answers(lake, options.repetitions)
        failed = _readers(lake, files, options.seconds)
    for name, ratio in ratios.items():
        print(f"median {name}: {ratio:.2f} × the bare query (limit {LIMIT:g})")
    return 1 if max(ratios.values()) > LIMIT or failed else 0


@contextmanager
def _serving(lake: Lake) -> Iterator[tuple[httpx.Client, int]]:
    command = [sys.executable, "-c", SERVER, str(lake.workspace)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        limits = httpx.Limits(max_connections=NUM_READERS + 5)
        url = process.stdout.readline().strip()
        with httpx.Client(base_url=url, timeout=120, limits=limits) as client:
            yield client, process.pid
    finally:
        process.kill()
        process.wait()


def _answers(lake: Lake, repetitions: int) -> dict[str, float]:
    """The median ratio of the API and of the pages; all sides warm, in turns."""
    ratios: dict[str, list[float]] = {"API answer": [], "page": []}
    new = itertools.count(1000)  # more GPUs than any job has
    with (
        _serving(lake) as (client, _),
        open_session(lake, settings=load(lake.workspace, lake.facts())) as session,
    ):
        for analysis in load_all():
            times: dict[str, list[float]] = {}
            api, page = (
                f"{at}/{analysis.id}?cluster=aaic" for at in ("api/v1/analyses", "workload")
            )
            session.run(analysis, Selection(clusters=("aaic",)))
            sql = analysis.sql()
            for _ in range(repetitions + 1):
                for name, way in (
                    ("bare", lambda sql=sql: session.engine.query(sql)),
                    ("api", lambda at=api: client.get(f"{at}&max_gpus={next(new)}")),
                    ("page", lambda at=page: client.get(f"{at}&max_gpus={next(new)}")),
                    ("kept", lambda at=api: client.get(at)),
                ):
                    begin = time.perf_counter()
                    answer = way()
                    assert name == "bare" or answer.status_code == 200, answer.text
                    times.setdefault(name, []).append(time.perf_counter() - begin)
            bare, json, html, warm = (
                statistics.median(times[name][1:]) for name in ("bare", "api", "page", "kept")
            )
            ratios["API answer"].append(json / bare)
            ratios["page"].append(html / bare)
            print(
                f"{analysis.id:28} bare {bare * 1000:7.1f} ms   API {json / bare:5.2f} ×   "
                f"page {html / bare:5.2f} ×   kept {warm / bare:5.2f} ×",
                flush=True,
            )
    return {name: statistics.median(each) for name, each in ratios.items()}


def _readers(lake: Lake, files: list[Path], seconds: float) -> bool:
    """Fifty at once, first alone and then beside an ingest; whether any failed or was held up."""
    failed = False
    with _serving(lake) as (client, process):
        _read(client, time.monotonic() + 1)
        before = _memory_mib(process, "VmRSS")
        alone = _read(client, time.monotonic() + seconds)
        command = [sys.executable, "-m", "hakaru", "ingest", *map(str, files)]
        command += ["--cluster", "again", "--workspace", str(lake.workspace)]
        writer = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        beside = _read(client, time.monotonic() + seconds, writer)
        peak = _memory_mib(process, "VmHWM")
        assert writer.wait() == 0, "the ingest failed"
    for name, (times, errors) in (("alone", alone), ("during an ingest", beside)):
        blocked = sum(spent > BLOCKED_S for spent in times)
        failed |= bool(errors or blocked)
        print(
            f"{NUM_READERS} readers {name}: {len(times)} reads, {len(errors)} errors, {blocked} blocked, "
            f"median {statistics.median(times) * 1000:.0f} ms, longest {max(times):.1f} s"
        )
        for error in errors[:3]:
            print(f"  {error}")
    slower = statistics.median(beside[0]) / statistics.median(alone[0])
    print(f"a read during the ingest: {slower:.2f} × one without")
    print(
        f"peak memory: {peak:.0f} MiB (at most {MEMORY_MIB:.0f}), {peak / before:.2f} × that before the load"
    )
    return failed or peak > MEMORY_MIB


def _read(
    client: httpx.Client, until: float, writer: subprocess.Popen[bytes] | None = None
) -> tuple[list[float], list[str]]:
    """Read on until the time is over and the writer, if there is one, has ended."""
    times: list[float] = []
    errors: list[str] = []

    def reader(seed: int) -> None:
        chance = random.Random(seed)
        while time.monotonic() < until or (writer is not None and writer.poll() is None):
            begin = time.perf_counter()
            try:
                answer = client.get(_question(chance))
                if answer.status_code != 200:
                    errors.append(f"{answer.status_code} {answer.text[:200]}")
            except httpx.HTTPError as error:
                errors.append(repr(error))
            times.append(time.perf_counter() - begin)

    threads = [threading.Thread(target=reader, args=(seed,)) for seed in range(NUM_READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, errors


def _question(chance: random.Random) -> str:
    """One of many views that people have open; few ask the very same."""
    since = f"{chance.choice((2017, 2018))}-{chance.randint(8, 12):02}-01"
    page = chance.randint(1, 50)
    return chance.choice(
        (
            f"api/v1/analyses/queues?cluster=aaic&since={since}",
            f"api/v1/analyses/walltime?cluster=aaic&since={since}",
            f"api/v1/analyses/states?cluster=aaic&by=queue&since={since}",
            f"api/v1/jobs?cluster=aaic&page={page}",
            f"api/v1/jobs?cluster=aaic&sort=run_s&since={since}&page={page}",
            f"api/v1/people?cluster=aaic&since={since}",
            f"api/v1/overview?cluster=aaic&since={since}",
        )
    )


def _memory_mib(process: int, name: str) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(name)


if __name__ == "__main__":
    sys.exit(main())
