"""DCGM's diagnostic: the JSON of `dcgmi diag -r LEVEL -j`, from version 1.7 to 4.

The object is named "DCGM GPU Diagnostic" up to 3.2 and "DCGM Diagnostic" after; results name a GPU by
`gpu_ids` or `gpu_id`, and since 4.0 by `entity_group` and `entity_id`. Seen in NVIDIA/DCGM, dcgmi/Diag.cpp
(3.3 and 4.x), nvvs/src/JsonOutput.cpp, nvvs/include/NvvsJsonStrings.h and nvvs/plugin_src/pcie/PcieMain.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure.imports._base import (
    CHECK,
    CHECK_UNIT,
    MOST_REASON,
    Collected,
    Content,
    Found,
    Importer,
    Key,
    ResultFile,
    clip,
    mapping,
    noted,
    number,
    own_key,
    parse_json,
    sequence,
    where,
    whole,
)
from hakaru.measure.verdict import ORDER, Verdict, worst

TITLE = "DCGM"
ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
MOST_INFO = 4000
NODE = "node"  # the device of a test that names none
MOST_ODD = 3
# a status by its first word; any other is not a pass, and a pass has no second word
VERDICTS = {
    "pass": Verdict.GOOD,
    "passed": Verdict.GOOD,
    "fail": Verdict.FAILED,
    "warn": Verdict.FAILED,
    "skip": Verdict.NOT_MEASURED,
    "skipped": Verdict.NOT_MEASURED,
}
LINK = re.compile(
    r"(?:GPU (\d+) )?(GPU to Host|Host to GPU|bidirectional) "
    r"(?:(bandwidth):\s*([\d.]+) GB/s|latency:\s*([\d.]+) us)"
)
RATE = re.compile(r"(?:GPU (\d+) )?calculated at approximately ([\d.]+) gigaflops")
PRECISION = re.compile(r"\b(FP64|FP32|FP16) 1\b")
OF_GPUS = re.compile(r"gpu:(\d{1,6}(?:\s?,\s?\d{1,6}){0,99})")
NO_RESULT = "DCGM has no result of this GPU in this test, and has one of others"
WAYS = {"GPU to Host": "to-host", "Host to GPU": "to-device"}
LACKING = (
    "DCGM does not print the sizes of copies and products: its host-copy and gemm are not compared "
    "with own runs"
)

Tested = dict[str, set[int]]  # of each test of a diagnostic, the GPUs that it has results of


def recognises(content: Content) -> bool:
    looks = content.looks
    return any(f'"{root}"' in looks for root in ROOTS)


def read(file: ResultFile, content: Content) -> Found:
    document = mapping(_document(file, content))
    odd: list[str] = []
    runs = _runs(document, odd)
    collected, notes = Collected(TITLE), []
    tested: list[Tested] = []
    for run in runs:
        notes += _add_run(collected, mapping(run), file, odd, tested)
    _add_missing(collected, runs, tested, file.host)
    if collected.has("host-copy", "gemm"):
        notes.append(LACKING)
    _add_overall(collected, document, file.host)
    left_out = _add_odd(collected, odd, file.host)
    place = _place(file, mapping(runs[0]))
    moment = file.modified_at
    return Found(collected.measurements(moment, moment, place), noted(left_out), noted(notes))


IMPORTER = Importer(
    id="dcgm",
    title=TITLE,
    looks='the output of `dcgmi diag -r 3 -j`: an object with "DCGM Diagnostic" or "DCGM GPU Diagnostic"',
    recognises=recognises,
    read=read,
)


def _document(file: ResultFile, content: Content) -> Any:
    """dcgmi may print a line or two before it."""
    if content.document is not None:
        return content.document
    return parse_json(file.path, content.text[max(content.text.find("{"), 0) :])


def _runs(document: dict[str, Any], odd: list[str]) -> list[Any]:
    """With --iterations there is one diagnostic after the other, and none beside them."""
    if "iterations" not in document:
        return [document]
    runs = sequence(document["iterations"])
    if not runs:
        odd.append("its iterations are not a list of diagnostics")
    beside = [document] if not runs or any(root in document for root in ROOTS) else []
    return [*runs, *beside]


def _add_run(
    collected: Collected,
    run: dict[str, Any],
    file: ResultFile,
    odd: list[str],
    tested: list[Tested],
) -> list[str]:
    bodies = [mapping(run[root]) for root in ROOTS if root in run]
    if not any(bodies):
        raise HakaruError(
            f'{where(file.path)}: expected an object with "{ROOTS[0]}" or "{ROOTS[1]}"'
        )
    errors = [each["runtime_error"] for each in (run, *map(mapping, run.values()))
              if each.get("runtime_error")]  # fmt: skip
    for error in errors:
        reason = f"the diagnostic could not run: {clip(error, 400)}"
        collected.add(_overall_key(file.host), None, Verdict.FAILED, reason)
    for body in bodies:
        tests = list(_tests(body, odd))
        if not tests and not body.get("runtime_error"):
            odd.append("a diagnostic, or one of its iterations, has no tests")
        gpus: Tested = {}
        for test in tests:
            benchmark, results = _add_test(collected, test, file.host, odd)
            gpus.setdefault(benchmark, set()).update(_gpus(results))
        tested.append(gpus)
    return [f"DCGM warns: {clip(body['Warning'], 400)}" for body in bodies if body.get("Warning")]


def _gpus(results: list[dict[str, Any]]) -> set[int]:
    """Those that a test has results of; none where it lists faults alone, as the tests of level 1 do."""
    found: set[int] = set()
    is_list_of_faults = True
    for result in results:
        if ids := OF_GPUS.fullmatch(_device(result)):
            found.update(int(each) for each in ids[1].split(","))
            is_list_of_faults &= _verdict(result)[0] is Verdict.FAILED
    return set() if is_list_of_faults else found


def _add_missing(collected: Collected, runs: list[Any], tested: list[Tested], host: str) -> None:
    """A row for each GPU that other tests have and a test of single GPUs has not."""
    every = {gpu for run in runs for gpu in _listed_gpus(mapping(run))}
    every.update(gpu for gpus in tested for found in gpus.values() for gpu in found)
    for benchmark, found in (each for gpus in tested for each in gpus.items() if each[1]):
        for gpu in sorted(every - found):
            key = Key(benchmark, CHECK, CHECK_UNIT, "higher", host, f"gpu:{gpu}")
            collected.add(key, None, Verdict.NOT_MEASURED, NO_RESULT)


def _listed_gpus(run: dict[str, Any]) -> set[int]:
    """Those that version 4 lists beside the tests."""
    holders = [run, *(mapping(run.get(root)) for root in ROOTS)]
    groups = [mapping(group) for each in holders for group in sequence(each.get("entity_groups"))]
    entities = [
        mapping(entity)
        for group in groups
        if str(group.get("entity_group")).lower() == "gpu"
        for entity in sequence(group.get("entities"))
    ]
    found = (whole(entity.get("entity_id")) for entity in entities)
    return {gpu for gpu in found if gpu is not None}


def _overall_key(host: str) -> Key:
    return Key("dcgm", CHECK, CHECK_UNIT, "higher", host, NODE)


def _add_odd(collected: Collected, odd: list[str], host: str) -> list[str]:
    """A row for what DCGM does not write; where there is nothing else, notes for the error."""
    found = list(dict.fromkeys(odd))
    if found and not collected.is_empty:
        more = f" and {len(found) - MOST_ODD:,} more" if len(found) > MOST_ODD else ""
        reason = f"the file has not the shape that DCGM writes: {'; '.join(found[:MOST_ODD])}{more}"
        collected.add(_overall_key(host), None, Verdict.NOT_MEASURED, reason)
    return found if collected.is_empty else []


def _add_overall(collected: Collected, document: dict[str, Any], host: str) -> None:
    """With --iterations the last one may have died without leaving a result."""
    overall = document.get("Overall Result")
    if overall is not None and clip(overall).lower() != "pass":
        reason = (
            f"DCGM reports {clip(overall)} for all iterations: {clip(document.get('warning', ''))}"
        )
        collected.add(_overall_key(host), 0.0, Verdict.FAILED, reason)


def _tests(body: dict[str, Any], odd: list[str]) -> Iterator[dict[str, Any]]:
    for category in _listed(body, "test_categories", "the diagnostic", odd):
        name = f"category {clip(mapping(category).get('category', 'without a name'))}"
        for test in _listed(mapping(category), "tests", name, odd):
            if isinstance(test, dict):
                yield test
            else:
                odd.append(f"a test of {name} is not an object: {clip(test)}")


def _listed(holder: dict[str, Any], name: str, of: str, odd: list[str]) -> list[Any]:
    if not isinstance(holder.get(name), list):
        odd.append(f"{name} of {of} is not a list")
    return sequence(holder.get(name))


def _add_test(
    collected: Collected, test: dict[str, Any], host: str, odd: list[str]
) -> tuple[str, list[dict[str, Any]]]:
    benchmark = "dcgm-" + (_kebab(clip(test.get("name") or "")) or "unnamed")
    results = _results(test, benchmark, odd)
    summary = mapping(test.get("test_summary"))
    if not isinstance(test.get("test_summary", {}), dict | None):
        odd.append(f"the summary of {benchmark} is not an object: {clip(test['test_summary'])}")
    found = worst(_verdict(each)[0] for each in results)
    # the summary counts where it is all there is, or worse than what it sums up
    if summary and (not results or ORDER.index(_verdict(summary)[0]) < ORDER.index(found)):
        results.append(summary)
    for result in results or [{}]:
        _add_result(collected, result, benchmark, host)
    return benchmark, results


def _results(test: dict[str, Any], benchmark: str, odd: list[str]) -> list[dict[str, Any]]:
    """One that is not in a list counts where it is bad, and is odd in any case."""
    found = test.get("results")
    if found is None or isinstance(found, list):
        return [mapping(each) for each in sequence(found)]
    odd.append(f"the results of {benchmark} are not a list")
    return [mapping(found)]


def _add_result(collected: Collected, result: dict[str, Any], benchmark: str, host: str) -> None:
    verdict, reason = _verdict(result)
    device = _device(result)
    key = Key(benchmark, CHECK, CHECK_UNIT, "higher", host, device)
    value = None if verdict is Verdict.NOT_MEASURED else float(verdict is Verdict.GOOD)
    collected.add(key, value, verdict, reason)
    for number_key, gpu, found in _numbers(_lines(result.get("info"), MOST_INFO), key):
        at = f"gpu:{gpu}" if gpu else device
        collected.add(number_key._replace(device=at), found, verdict, reason)


def _verdict(result: dict[str, Any]) -> tuple[Verdict, str]:
    status = result.get("status")
    words = status.lower().split() if isinstance(status, str) else []
    verdict = VERDICTS.get(words[0]) if words else None
    if verdict is Verdict.GOOD and len(words) > 1:  # "Pass (3 of 8 failed)"
        verdict = None
    warnings = "; ".join(_lines(result.get("warnings")))
    if verdict is None:
        shown = f"DCGM's status is {clip(status)!r}" if words else "DCGM gives no status"
        return Verdict.NOT_MEASURED, clip(f"{shown}, which is not a pass. {warnings}", MOST_REASON)
    if verdict is Verdict.GOOD:
        return verdict, ""
    return verdict, clip(f"DCGM reports {clip(status)}: {warnings or 'no reason'}", MOST_REASON)


def _device(result: dict[str, Any]) -> str:
    group, entity = result.get("entity_group"), result.get("entity_id")
    if entity is not None:
        return clip(f"{str(group or 'entity').lower()}:{entity}")
    gpu = result.get("gpu_id", result.get("gpu_ids"))
    if isinstance(gpu, int | str) and str(gpu).strip() not in ("", "-1"):
        return clip(f"gpu:{gpu}")
    cpu = result.get("cpu_id")
    return clip(f"cpu:{cpu}") if cpu is not None else NODE


def _lines(texts: object, most: int = MOST_REASON) -> list[str]:
    """`warnings` and `info` are texts, lists of texts, or lists of objects that hold them."""
    entries = texts if isinstance(texts, list) else [texts]
    found = [_text(each) for each in entries[:200]]
    return [clip(text, most) for text in found if text]


def _text(entry: object) -> str:
    if isinstance(entry, dict):
        # 3.3 names the text of a deployment test "warnings", and all others "warning"
        entry = entry.get("warning") or entry.get("warnings")
    return entry if isinstance(entry, str) else ""


def _numbers(lines: list[str], test: Key) -> Iterator[tuple[Key, str, float | None]]:
    """The numbers in the texts of a test: a key, the GPU where it is named, and the value."""
    text = "\n".join(lines)
    for gpu, way, is_bandwidth, bandwidth, latency in LINK.findall(text):
        yield _link_key(test, way, bool(is_bandwidth)), gpu, number(bandwidth or latency)
    precisions = [name.lower() for name in PRECISION.findall(text)]
    dtype: dict[str, int | str] = {"dtype": precisions[0]} if len(precisions) == 1 else {}
    for gpu, rate in RATE.findall(text):
        value = number(rate)
        # DCGM divides by 2**30 and calls it giga
        scaled = None if value is None else value * 2**30 / 1e9
        yield own_key("gemm", "rate", test.host, test.device, dtype), gpu, scaled


def _link_key(test: Key, way: str, is_bandwidth: bool) -> Key:
    """Copies one way are what our own host-copy measures."""
    if is_bandwidth and way in WAYS:
        return own_key("host-copy", "bandwidth", test.host, test.device, {"direction": WAYS[way]})
    if is_bandwidth:
        return test._replace(quantity=f"{_kebab(way)}-bandwidth", unit="GB/s", better="higher")
    return test._replace(quantity=f"{_kebab(way)}-latency", unit="µs", better="lower")


def _kebab(name: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", name.lower()))


def _place(file: ResultFile, run: dict[str, Any]) -> dict[str, Any]:
    """Versions stand in the root up to 3, in `metadata` since 4, and in the diagnostic's object before."""
    body = next((mapping(run[root]) for root in ROOTS if root in run), {})
    at = body | run | mapping(run.get("metadata"))
    named = {"dcgm": at.get("version"), "driver": at.get("Driver Version Detected")}
    versions = {name: clip(value) for name, value in named.items() if value}
    return {"imported_from": file.name, "versions": versions}
