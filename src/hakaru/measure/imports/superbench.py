"""SuperBench: `results-summary.jsonl` of a run, and `diagnosis_summary.json` of `sb result diagnosis`.

A line is a node; a key is `benchmark[:annotation]/[run count/]metric[:rank]`, as microsoft/superbenchmark
writes them in superbench/runner/runner.py; units are those of docs/user-tutorial/benchmarks (0.10).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure.imports._base import (
    CHECK,
    CHECK_UNIT,
    UNKNOWN_HOST,
    UNKNOWN_RANKS,
    Collected,
    Content,
    Found,
    Importer,
    Key,
    ResultFile,
    clip,
    noted,
    number,
    own_key,
    parse_json,
    where,
)
from hakaru.measure.imports._superbench_metrics import Kind, Own, kind_of, own_of
from hakaru.measure.verdict import Verdict

TITLE = "SuperBench"
NODE = "node"  # the device of a metric without a rank
METRIC = re.compile(r'"[^"/]{1,200}/[^"]{1,400}"\s*:\s*(?:-?\d|null|"")')
RANK = re.compile(r"(.+):(\d{1,6})")
DETAILS = ("diagnosis/issue_details", "Defective Details", "Issue Details")
CATEGORIES = ("diagnosis/category", "Category")
ACCEPTS = ("diagnosis/accept", "Accept")
NAMES = ("node", "index", "Index")
COUNTS = ("diagnosis/issue_num", "Number Of Issues")
MOST_CODE = 2**31
MOST_MISSING = 200  # rows of one node
NO_CODE = "SuperBench gives no return code for it, so it is not known whether it succeeded"
NO_RESULTS = "the file names the node, and holds no result of it"
# benchmarks that may run among nodes, of which one alone reports
AMONG = re.compile(
    r"(nccl-bw|rccl-bw|ib-traffic|ib-validation|gpcnet-.*|cpu-hpl|dist-inference)(:.*)?"
)

# benchmarks whose processes are not one a GPU, but one a network adapter, disk or part of the processor
NOT_OF_GPUS = re.compile(r"(ib-.*|cpu-.*|disk-benchmark|tcp-connectivity)(:.*)?")
NO_RANK = "SuperBench has no result of this rank, and has one of others of the node"

Node = dict[str, Any]
Seen = dict[str, dict[Key, None]]  # by SuperBench's name of a benchmark; keys without their host
Codes = dict[tuple[str, str], float | None]  # by benchmark and rank
Ranks = dict[tuple[str, str], dict[int, Key]]  # by benchmark and metric
Metrics = dict[tuple[str, str, str], list[float | None]]  # by benchmark, metric and rank


def recognises(content: Content) -> bool:
    return content.begins_as_json and bool(METRIC.search(content.looks))


def read(file: ResultFile, content: Content) -> Found:
    nodes = _nodes(file.path, content)
    collected = Collected(TITLE)
    left_out: list[str] = []
    notes: list[str] = []
    if any(name in node for node in nodes for name in (*DETAILS, *ACCEPTS)):
        for node in nodes:
            _add_diagnosis(collected, node, _host(node, file))
        left_out.append(
            "metrics of a diagnosis, which may be variances: import results-summary.jsonl"
        )
    else:
        _add_results(collected, nodes, file, left_out, notes)
    place = {"imported_from": file.name}
    moment = file.modified_at
    found = collected.measurements(moment, moment, place)
    return Found(found, noted(left_out), noted(notes))


IMPORTER = Importer(
    id="superbench",
    title=TITLE,
    looks="results-summary.jsonl, results-summary.json or diagnosis_summary.json:"
    ' objects with keys such as "gemm-flops/fp64_flops:0"',
    recognises=recognises,
    read=read,
)


def _nodes(path: Path, content: Content) -> list[Node]:
    """A line a node, one object, or a list of objects."""
    whole = content.document
    found = content.lines if whole is None else whole if isinstance(whole, list) else [whole]
    if found is None:  # to say in which line
        lines = enumerate(content.text.splitlines(), start=1)
        found = [parse_json(path, line, at) for at, line in lines if line.strip()]
    for at, node in enumerate(found, start=1):
        if not isinstance(node, dict):
            raise HakaruError(f"{where(path)}: entry {at:,} is not an object of metrics and values")
    return found


def _host(node: Node, file: ResultFile) -> str:
    named = next((node[name] for name in NAMES if isinstance(node.get(name), str)), "")
    if named:
        return clip(named)
    # the summary of one node does not name it, but its folder does: nodes/NAME/results-summary.json
    folder = file.path.absolute().parent
    is_in_nodes = file.host == UNKNOWN_HOST and folder.parent.name == "nodes"
    return clip(folder.name) if is_in_nodes else file.host


def _add_diagnosis(collected: Collected, node: Node, host: str) -> None:
    """A node without `accept` is in the file because it is defective; an issue counts more than `accept`."""
    accepts = [node[name] for name in ACCEPTS if name in node]
    category, details = (
        next((clip(node[name], 400) for name in names if node.get(name)), "")
        for names in (CATEGORIES, DETAILS)
    )
    counts = [node[name] for name in COUNTS if name in node and number(node[name]) != 0]
    issues = f"its number of issues is {clip(counts[0])}" if counts else ""
    why = ": ".join(each for each in (category, details, issues) if each)
    is_good = bool(accepts) and all(each is True for each in accepts) and not why
    key = Key("superbench-diagnosis", CHECK, CHECK_UNIT, "higher", host, NODE)
    reason = (
        "" if is_good else f"SuperBench calls the node defective: {why or 'no reason is given'}"
    )
    collected.add(key, float(is_good), Verdict.GOOD if is_good else Verdict.FAILED, reason)


def _add_results(
    collected: Collected, nodes: list[Node], file: ResultFile, left_out: list[str], notes: list[str]
) -> None:
    seen: list[tuple[str, Seen]] = []
    for node in nodes:
        host = _host(node, file)
        seen.append((host, _add_node(collected, node, host, left_out, notes)))
    if any(benchmarks for _, benchmarks in seen):
        notes += _add_missing(collected, seen)
    if any(name.startswith("monitor/") for node in nodes for name in node):
        left_out.append("monitor/…, which holds no results")


def _add_node(
    collected: Collected, node: Node, host: str, left_out: list[str], notes: list[str]
) -> Seen:
    codes, metrics = _sorted_out(node)
    seen: Seen = {benchmark: {} for benchmark, _ in codes}
    worst_codes = _worst_codes(codes)
    measured = set()
    ranks: Ranks = {}
    for (benchmark, metric, rank), values in metrics.items():
        kind, own = kind_of(benchmark, metric), own_of(benchmark, metric)
        if kind is None:
            left_out.append(
                f"{benchmark}/{metric}, whose name does not show whether more is better"
            )
            continue
        if own is not None:
            notes.append(_lacking(own))
        key = _key(benchmark, metric, rank, host, kind, own)
        seen.setdefault(benchmark, {})[key._replace(host="")] = None
        measured.add((benchmark, rank))
        if rank and not AMONG.fullmatch(benchmark):
            ranks.setdefault((benchmark, metric), {})[int(rank)] = key
        outcome = _outcome(codes, worst_codes, benchmark, rank)
        for value in values:
            scaled = value * own.scale if own and value is not None else value
            collected.add(key, scaled, *_judged(kind, value, outcome))
    for (benchmark, rank), code in codes.items():
        _add_code(collected, (benchmark, host, rank), code, measured)
    for key in islice(_lost_ranks(ranks), MOST_MISSING):
        collected.add(key, None, Verdict.NOT_MEASURED, NO_RANK)
    return seen


def _lost_ranks(ranks: Ranks) -> Iterator[Key]:
    """Of the numbers with several ranks, those of ranks that another such number of the node has.

    Many benchmarks run in one process a node; a number of one rank lacks no other.
    """
    several = {of: keys for of, keys in ranks.items() if len(keys) > 1}
    every: dict[str, set[int]] = {}
    for (benchmark, _), keys in several.items():
        every.setdefault(_processes(benchmark), set()).update(keys)
    for (benchmark, _), keys in several.items():
        key = next(iter(keys.values()))
        for rank in sorted(every[_processes(benchmark)] - keys.keys()):
            yield key._replace(device=_device(str(rank)))


def _processes(benchmark: str) -> str:
    """What its ranks are shared with: those of all benchmarks of GPUs, or its own alone."""
    return benchmark if NOT_OF_GPUS.fullmatch(benchmark) else ""


def _worst_codes(codes: Codes) -> dict[str, float | None]:
    """Of each benchmark the first return code that is not 0, or 0."""
    found: dict[str, float | None] = {}
    for (benchmark, _), code in codes.items():
        if found.get(benchmark, 0.0) == 0:
            found[benchmark] = code
    return found


def _outcome(
    codes: Codes, worst_codes: dict[str, float | None], benchmark: str, rank: str
) -> tuple[Verdict, str]:
    """By the return codes of the rank and of the benchmark; a number without a rank goes by all of them."""
    found = [codes[benchmark, at] for at in (rank, "") if (benchmark, at) in codes]
    if not rank and benchmark in worst_codes:
        found = [worst_codes[benchmark]]
    bad = [code for code in found if code != 0]
    if bad:
        return Verdict.FAILED, _code_text(bad[0])
    return (Verdict.GOOD, "") if found else (Verdict.NOT_MEASURED, NO_CODE)


def _key(benchmark: str, metric: str, rank: str, host: str, kind: Kind, own: Own | None) -> Key:
    """By our own names where we measure the same."""
    if own is None:
        return Key(benchmark, metric, kind.unit, kind.better, host, _device(rank))
    device = UNKNOWN_RANKS if own.is_of_ranks else _device(rank)
    return own_key(own.benchmark, own.quantity, host, device, own.parameters)


def _lacking(own: Own) -> str:
    return (
        f"SuperBench's files do not hold the {own.lacks} of {own.benchmark}: it is not compared "
        "with own runs"
    )


def _sorted_out(node: Node) -> tuple[Codes, Metrics]:
    """Return codes and values; those of repeated runs come together."""
    codes: Codes = {}
    metrics: Metrics = {}
    for name, value in node.items():
        path, _, metric = name.rpartition("/")
        if not path or path.partition("/")[0] in ("monitor", "diagnosis"):
            continue
        ranked = RANK.fullmatch(metric)
        metric, rank = (ranked[1], ranked[2]) if ranked else (metric, "")
        benchmark = clip(re.sub(r"/\d+$", "", path))
        if metric == "return_code":
            worse = [codes.get((benchmark, rank), 0.0), number(value)]
            codes[benchmark, rank] = next((code for code in worse if code != 0), 0.0)
        else:
            metrics.setdefault((benchmark, clip(metric), rank), []).append(number(value))
    return codes, metrics


def _judged(kind: Kind, value: float | None, outcome: tuple[Verdict, str]) -> tuple[Verdict, str]:
    if outcome[0] is Verdict.FAILED:
        return outcome
    if value is None:
        return Verdict.NOT_MEASURED, "SuperBench has no value for it"
    if kind.passes is not None and value != kind.passes:
        return Verdict.FAILED, f"the check's value is {value:g}, and {kind.passes:g} is a pass"
    return outcome


def _add_code(
    collected: Collected,
    of: tuple[str, str, str],
    code: float | None,
    measured: set[tuple[str, str]],
) -> None:
    """A row of its own for a benchmark that failed, or that reports success without a number."""
    benchmark, host, rank = of
    key = Key(benchmark, "return_code", "", "lower", host, _device(rank))
    if code != 0:
        usable = code is not None and abs(code) < MOST_CODE
        collected.add(key, code if usable else None, Verdict.FAILED, _code_text(code))
    elif not any(name == benchmark and rank in ("", at) for name, at in measured):
        reason = "SuperBench reports success, and no number that can be used"
        collected.add(key, None, Verdict.NOT_MEASURED, reason)


def _code_text(code: float | None) -> str:
    return f"SuperBench's return code is {'missing' if code is None else f'{code:g}'}, not 0"


def _add_missing(collected: Collected, seen: list[tuple[str, Seen]]) -> list[str]:
    """A row for each benchmark and number that another node has and this one has not."""
    owners = Counter(name for _, benchmarks in seen for name in benchmarks)
    counts = Counter(key for _, benchmarks in seen for keys in benchmarks.values() for key in keys)
    every: Seen = {}
    for _, benchmarks in seen:
        for name, keys in benchmarks.items():
            every.setdefault(name, {}).update(keys)
    among = {name for name, count in owners.items() if count == 1 and AMONG.fullmatch(name)}
    for host, benchmarks in seen:
        if not benchmarks:
            key = Key("superbench", CHECK, CHECK_UNIT, "higher", host, NODE)
            collected.add(key, None, Verdict.NOT_MEASURED, NO_RESULTS)
        lacking = _lacking_rows(benchmarks, every, counts, among)
        for key, num_nodes in islice(lacking, MOST_MISSING):
            reason = f"{num_nodes:,} of {len(seen):,} nodes have this result, and this one does not"
            collected.add(key._replace(host=host), None, Verdict.NOT_MEASURED, reason)
    return [f"only one node reports {name}, as expected for a multi-node benchmark"
            for name in sorted(among) if len(seen) > 1]  # fmt: skip


def _lacking_rows(
    own: Seen, every: Seen, counts: Counter[Key], among: set[str]
) -> Iterator[tuple[Key, int]]:
    """A benchmark that is missing as a whole is one row; of others, each number that is missing."""
    for name, keys in every.items():
        if name in among:
            continue
        if name not in own:
            num_nodes = max((counts[key] for key in keys), default=1)
            yield Key(name, "return_code", "", "lower", "", NODE), num_nodes
        elif own[name]:  # else its return code has a row
            yield from ((key, counts[key]) for key in keys if key not in own[name])


def _device(rank: str) -> str:
    return f"rank:{rank}" if rank else NODE
