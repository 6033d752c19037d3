"""Which number types a device can multiply: tried in a child, as an illegal instruction kills the process.

One child a device tries all types and reports each as soon as it is known. Where it dies, only that type is
lost: another child tries those that are left. Children are new processes, not forks: a fork of a process in
which ROCm or CUDA is awake cannot use the cards.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from hakaru.measure.context import torch
from hakaru.measure.device._types import TYPES, prepare_type
from hakaru.measure.launch._base import ended
from hakaru.measure.task import Item
from hakaru.safety.processes import module_command

MODULE = "hakaru.measure.device._probe"
# some processors advertise AMX and may not use it: oneDNN dies unless this forbids it
WITHOUT_AMX = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16"}
UNKNOWN_TYPE = ("not implemented", "not supported", "unsupported", "no kernel", "invalid dtype")
MOST_S = 180  # to wake a card and multiply; importing torch from a slow disk takes a minute
MOST_CHILDREN = 16  # at once
SIZE = 64


@dataclass(frozen=True)
class Unusable:
    """Why a type cannot be measured on a device; `is_broken` where it should work and does not."""

    reason: str
    is_broken: bool = False


@dataclass
class Answers:
    """What the children of one device found: its model, the types that work, and why others do not."""

    model: str = ""
    usable: set[str] = field(default_factory=set)
    unusable: dict[str, Unusable] = field(default_factory=dict)


def probe_types(names: Iterable[str], items: Iterable[Item]) -> dict[tuple[str, str], Unusable]:
    """What cannot be measured, by torch's name of the device and the type; what can is absent.

    Must be called before this process has computed anything: a variable that makes a type usable is set for
    what follows.
    """
    wanted = {str(item.parameters["dtype"]) for item in items if "dtype" in item.parameters}
    devices, types = sorted(set(names)), sorted(wanted & TYPES.keys())
    if not devices or not types:
        return {}
    with ThreadPoolExecutor(min(len(devices), MOST_CHILDREN)) as pool:
        answers = dict(
            zip(devices, pool.map(lambda each: _probe(each, types), devices), strict=True)
        )
    return compare_peers(answers)


def compare_peers(answers: Mapping[str, Answers]) -> dict[tuple[str, str], Unusable]:
    """What is unusable on each device; a card that lacks what another of its model can do is broken."""
    found = {}
    for device, own in answers.items():
        for dtype, why in own.unusable.items():
            able = [name for name, each in answers.items()
                    if each.model == own.model and dtype in each.usable]  # fmt: skip
            if able and not why.is_broken:
                why = Unusable(f"{why.reason}, but works on {able[0]}, of the same model", True)
            found[device, dtype] = why
    return found


def _probe(device: str, types: Sequence[str]) -> Answers:
    if device != "cpu":
        return _ask(device, types, {})
    answers = _ask(device, [each for each in types if each != "tf32"], {})
    if "tf32" in types:
        answers.unusable["tf32"] = Unusable("tf32 is a mode of GPUs")
    illegal = [name for name, why in answers.unusable.items() if "SIGILL" in why.reason]
    if illegal and not WITHOUT_AMX.keys() & os.environ.keys():
        again = _ask(device, illegal, WITHOUT_AMX)
        if again.usable:
            os.environ.update(WITHOUT_AMX)
            answers.usable |= again.usable
            for name in again.usable:
                del answers.unusable[name]
    return answers


def _ask(device: str, types: Sequence[str], variables: Mapping[str, str]) -> Answers:
    """Try the types in children until there is an answer for each."""
    answers, left = Answers(), list(types)
    while left:
        code, lines = _run_child(device, left, variables)
        for line in lines:
            _take(answers, device, line)
        left = [each for each in left if each not in answers.usable | answers.unusable.keys()]
        if code is None or not answers.model:  # it hangs or cannot be opened, and will again
            reason = f"a child that opens {device} {_how(code)}"
            answers.unusable |= dict.fromkeys(left, Unusable(reason, is_broken=True))
            break
        if left:
            illegal = code == -signal.SIGILL
            reason = f"a small {left[0]} product on {device} {_how(code)}"
            answers.unusable[left.pop(0)] = Unusable(reason, is_broken=not illegal)
    return answers


def _take(answers: Answers, device: str, line: Mapping[str, Any]) -> None:
    dtype = str(line.get("dtype"))
    if "model" in line:
        answers.model = str(line["model"])
    elif line["status"] == "works":
        answers.usable.add(dtype)
    elif line["status"] == "unsupported":
        answers.unusable[dtype] = Unusable(f"{dtype} is not supported on {device}")
    else:
        reason = f"a small {dtype} product on {device} {line['status']}"
        answers.unusable[dtype] = Unusable(reason, is_broken=True)


def _how(code: int | None) -> str:
    return f"did not answer within {MOST_S} s" if code is None else ended(code)


def _run_child(
    device: str, types: Sequence[str], variables: Mapping[str, str]
) -> tuple[int | None, list[dict[str, Any]]]:
    """How the child ended (minus a signal, None where it hung) and the lines that it wrote before."""
    process = subprocess.Popen(
        module_command(MODULE, device, *types),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | variables,
        text=True,
    )
    code: int | None
    try:
        text, _ = process.communicate(timeout=MOST_S)
        code = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
        code = None
    # the last line of a killed child may be cut off
    return code, [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def main(device: str, types: Sequence[str]) -> None:
    """The child: a line for the device's model, and one for each type as soon as it is known."""
    signal.alarm(MOST_S)  # it ends by itself where its parent is gone
    model = "processor" if device == "cpu" else str(torch().cuda.get_device_name(device))
    print(json.dumps({"model": model}), flush=True)
    for dtype in types:
        print(json.dumps({"dtype": dtype, "status": _try(device, dtype)}), flush=True)


def _try(device: str, dtype: str) -> str:
    if dtype == "tf32" and not has_tf32(torch(), device):
        return "unsupported"
    try:
        a = prepare_type(torch().ones(SIZE, SIZE), dtype).to(device)
        is_right = bool(((a @ a).float().cpu() == SIZE).all())
    except Exception as error:
        text = str(error).lower()
        if isinstance(error, NotImplementedError) or any(word in text for word in UNKNOWN_TYPE):
            return "unsupported"
        return f"failed: {' '.join(str(error).split())[:200]}"
    return "works" if is_right else "is wrong"


def has_tf32(found: Any, device: str) -> bool:
    """Whether the card has the mode, as NVIDIA's do from Ampere on: torch asks others too, who use fp32."""
    return found.version.hip is None and found.cuda.get_device_capability(device) >= (8, 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
