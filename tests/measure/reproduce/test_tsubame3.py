"""TSUBAME3's findings against rows written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakaru.measure.record import Measurement
from hakaru.measure.reproduce import Answer
from hakaru.measure.reproduce.tsubame3 import MODELS, TSUBAME3
from tests.measure.reproduce._rows import ON_CORES, answer, contaminated, epoch, failed

PROPORTION = "AlexNet: time grows in proportion"
ALIKE = "AlexNet: time grows alike"
COPIES = "copies to the GPU"
LOADING = "reading from storage"


def told(found: Answer) -> tuple[str, bool]:
    return found.verdict.value, found.is_lacking


def line(*seconds: float, **more: Any) -> list[Measurement]:
    """Epochs of 16, 32, 64 and 128 MiB."""
    return [
        epoch("alexnet", 16 << at, 0.99 * s, s, 1.01 * s, **more) for at, s in enumerate(seconds)
    ]


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        ((1, 2, 4, 8), "agrees"),
        ((1.2, 2.1, 4.2, 8), "agrees"),
        ((1, 2, 4, 24), "differs"),  # a knee
        ((5, 6, 8, 12), "differs"),  # a large constant part
        ((4, 8), "agrees"),
    ],
)
def test_time_in_proportion_to_the_data(seconds: tuple[float, ...], verdict: str) -> None:
    found = answer(TSUBAME3, PROPORTION, *line(*seconds))
    assert told(found) == (verdict, False)
    assert found.measured.startswith(f"16 MiB {seconds[0]:.3g} s to")


def test_noise_leaves_the_line_open() -> None:
    rows = line(1, 2, 4, 8)
    noisy = [*rows[:3], replace(rows[3], samples=(7.0, 8.0, 11.5))]
    assert told(answer(TSUBAME3, PROPORTION, *noisy)) == ("not measured", False)
    one = answer(TSUBAME3, PROPORTION, rows[0])
    assert told(one) == ("not measured", False) and one.why == "one size has no line."


@pytest.mark.parametrize("spoil", [contaminated, failed])
@pytest.mark.parametrize("says", [PROPORTION, ALIKE, COPIES, LOADING])
def test_a_bad_number_never_counts(spoil: Any, says: str) -> None:
    assert told(answer(TSUBAME3, says, *good())) == ("agrees", False)
    for bad in (16, 128):
        rows = [spoil(e) if e.parameters["mib"] == bad else e for e in good()]
        found = answer(TSUBAME3, says, *rows)
        assert told(found) == ("not measured", True), (says, bad)


def test_one_bad_network_does_not_spoil_another() -> None:
    others = [contaminated(epoch("vgg16", mib, 9.0)) for mib in (16, 32)]
    assert told(answer(TSUBAME3, PROPORTION, *line(1, 2, 4, 8), *others)) == ("agrees", False)
    found = answer(TSUBAME3, "Vgg16: time grows in proportion", *line(1, 2, 4, 8), *others)
    assert told(found) == ("not measured", True)


def good() -> list[Measurement]:
    """As the paper found it, on a GPU."""
    facts = with_facts()
    rows = line(1, 2, 4, 8)
    stalls = line(0.01, 0.01, 0.01, 0.02, quantity="stall")
    return [
        replace(each, validity=facts) if each.parameters["mib"] == 128 else each
        for each in (*rows, *stalls)
    ]


def with_facts(
    state: str = "none", label: str = "from the device", **hidden: Any
) -> dict[str, Any]:
    shares = {"loading": 0.99, "copy": 1.0} | hidden
    return {
        "memory_mib": 64,
        "epochs": [
            {"label": "from the device", "state": "cold"},
            {"label": label, "state": "steady"},
        ],
        "fit": {"state": state, "sentence": "What the line does.", "knee_mib": None,
                "slope_above_s_per_gib": 64.0},
        "timeline": {"hidden": shares},
        "notes": ["512 MiB did not fit the time."],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("state", "verdict"),
    [("none", "agrees"), ("knee", "differs"), ("unsure", "not measured"), ("odd", "not measured")],
)
def test_the_line_at_the_size_of_memory(state: str, verdict: str) -> None:
    rows = line(1, 2, 4, 8)
    rows[-1] = replace(rows[-1], validity=with_facts(state))
    found = answer(TSUBAME3, ALIKE, *rows)
    assert told(found) == (verdict, False)
    why = "" if verdict != "not measured" else "What the line does. 512 MiB did not fit the time."
    assert found.why == why
    assert found.measured == ("16 MiB 1 s to 128 MiB 8 s" if why else "What the line does")


def test_without_a_size_above_memory_the_line_is_open() -> None:
    rows = line(1, 2, 4, 8)
    for state in ("below", "none", "knee"):
        rows[-1] = replace(rows[-1], validity=with_facts(state) | {"memory_mib": 128})
        found = answer(TSUBAME3, ALIKE, *rows)
        assert told(found) == ("not measured", False)
        assert found.why == "no data set was larger than memory. 512 MiB did not fit the time."
    rows[-1] = replace(rows[-1], validity=with_facts() | {"memory_mib": None})
    assert answer(TSUBAME3, ALIKE, *rows).why.startswith("the rows do not say how large memory was")


@pytest.mark.parametrize("state", ["few", "below"])
def test_too_few_sizes_are_no_lack_of_memory(state: str) -> None:
    """128 MiB are larger than memory; runs stored before `few` was known call them `below`."""
    rows = line(4, 8)
    rows = [replace(each, parameters={**each.parameters, "mib": 4 * each.parameters["mib"]})
            for each in rows]  # fmt: skip
    rows[-1] = replace(rows[-1], validity=with_facts(state))
    found = answer(TSUBAME3, ALIKE, *rows)
    assert told(found) == ("not measured", False)
    assert found.why == "What the line does. 512 MiB did not fit the time."
    assert found.measured == "64 MiB 4 s to 128 MiB 8 s"


@pytest.mark.parametrize("state", ["none", "knee"])
@pytest.mark.parametrize("label", ["cached", "partly cached", "unknown"])
def test_a_line_of_cached_epochs_says_nothing_of_storage(state: str, label: str) -> None:
    rows = [replace(each, validity=with_facts(state, label)) for each in line(1, 2, 4, 8)]
    found = answer(TSUBAME3, ALIKE, *rows)
    assert told(found) == ("not measured", False)
    assert found.why.startswith(f"above memory the epochs are {label}, so that storage is not seen")
    seen = replace(rows[-1], validity=with_facts(state, "over the network"))
    assert told(answer(TSUBAME3, ALIKE, *rows[:-1], seen))[0] != "not measured"


def test_most_epochs_of_a_size_decide() -> None:
    facts = with_facts()
    few = {"label": "partly cached", "state": "steady"}
    for num, verdict in ((1, "agrees"), (2, "not measured")):
        own = facts | {"epochs": [*facts["epochs"], {"label": "from the device"}, *[few] * num]}
        rows = [*line(1, 2, 4), epoch("alexnet", 128, 8.0, facts=own)]
        assert told(answer(TSUBAME3, ALIKE, *rows)) == (verdict, False)


def test_a_fit_without_a_state_is_read_by_its_numbers() -> None:
    for knee, above, verdict in (
        (96.0, 9.0, "differs"),
        (None, 9.0, "agrees"),
        (None, None, "not measured"),
    ):
        fit = {"knee_mib": knee, "slope_above_s_per_gib": above, "sentence": "So."}
        rows = line(1, 2, 4, 8)
        rows[-1] = replace(rows[-1], validity=with_facts() | {"fit": fit})
        assert told(answer(TSUBAME3, ALIKE, *rows)) == (verdict, False)
    assert told(answer(TSUBAME3, ALIKE, *line(1, 2, 4, 8))) == ("not measured", True)


def test_copies_need_a_card() -> None:
    rows = line(1, 2, 4, 8)
    for copy, place, verdict in (
        (0.99, {}, "agrees"),
        (0.5, {}, "differs"),
        (None, {}, "not measured"),
        (None, ON_CORES, "not comparable"),
    ):
        more = {"place": place} if place else {}
        rows[-1] = replace(rows[-1], validity=with_facts(copy=copy), **more)
        assert answer(TSUBAME3, COPIES, *rows).verdict.value == verdict


def stalls(*shares: float, label: str = "from the device") -> list[Measurement]:
    return [epoch("alexnet", 128, *shares, quantity="stall", facts=with_facts(label=label))]


def test_loading_hides_where_training_does_not_wait() -> None:
    found = answer(TSUBAME3, LOADING, *stalls(0.01, 0.02, 0.03))
    assert told(found) == ("agrees", False)
    assert found.measured == (
        "training waits for data 2.0 % of the time; 99.0 % of the loading hides behind compute"
    )
    assert told(answer(TSUBAME3, LOADING, *stalls(0.3, 0.4))) == ("differs", False)
    assert told(answer(TSUBAME3, LOADING, *stalls(0.01, 0.4))) == ("not measured", False)
    assert told(answer(TSUBAME3, LOADING, *stalls(0.0, 0.0))) == ("agrees", False)


def test_cached_epochs_say_nothing_of_storage() -> None:
    """The cold epoch is from the device in any case."""
    found = answer(TSUBAME3, LOADING, *stalls(0.01, 0.02, label="cached"))
    assert told(found) == ("not measured", False)
    assert found.why == "the epochs are cached, so that storage is not seen"
    partly = answer(TSUBAME3, LOADING, *stalls(0.01, 0.02, label="partly cached"))
    assert told(partly) == ("not measured", False)
    assert partly.why == "the epochs are partly cached, so that storage is not seen"


def test_what_was_counted_over_the_network_is_storage() -> None:
    (found,) = stalls(0.01, 0.02, label="over the network")
    assert told(answer(TSUBAME3, LOADING, found)) == ("agrees", False)


@pytest.mark.parametrize(
    ("filesystem", "problem", "verdict"),
    [
        ("lustre", "", "agrees"),
        ("fuse.sshfs", "", "agrees"),
        ("lustre", "30 % of the files stayed in the page cache", "not measured"),
        ("lustre", None, "not measured"),
        ("tmpfs", "", "not measured"),
        ("ramfs", "", "not measured"),
        ("ext4", "", "not measured"),
        (None, "", "not measured"),
        (7, "", "not measured"),
    ],
)
def test_what_is_larger_than_memory_came_over_the_network(
    filesystem: Any, problem: Any, verdict: str
) -> None:
    """Some network file systems do not say what they read; what lies in memory is never storage."""
    more = {"filesystem": filesystem, "cold_problem": problem}
    (found,) = stalls(0.01, 0.02, label="unknown")
    found = replace(found, validity={**found.validity, **more})
    assert told(answer(TSUBAME3, LOADING, found)) == (verdict, False)
    small = replace(found, parameters={**found.parameters, "mib": 64})
    assert told(answer(TSUBAME3, LOADING, small)) == ("not measured", False)


def test_the_set_up_is_shown() -> None:
    rows = [replace(each, validity=with_facts()) for each in line(1, 2, 4, 8)]
    loader = epoch("none", 512, 0.1)
    found = answer(TSUBAME3, "data sets around the size", *rows, loader)
    assert told(found) == ("not comparable", False)
    assert found.measured.startswith("16 to 128 MiB, memory for 64 MiB of files, 3 epochs")
    assert "Lustre" in found.why


def test_settings_are_not_mixed() -> None:
    """The setting with the most sizes is judged; memory is a part of it."""
    wider = [epoch("alexnet", 32, 90.0, memory=16), epoch("alexnet", 48, 91.0, memory=16)]
    assert told(answer(TSUBAME3, PROPORTION, *line(1, 2, 4, 8), *wider)) == ("agrees", False)


def test_each_network_has_its_rows() -> None:
    said = [each.says for each in TSUBAME3.findings]
    assert all(sum(title in each for each in said) >= 2 for title in MODELS.values())
    for finding in TSUBAME3.findings:
        assert told(answer(TSUBAME3, finding.says)) == ("not measured", True), finding.says
