"""Which months of a log a what-if compares."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hakaru.sim.whatif.fidelity import Fidelity
from tests.sim._jobs import workload


@pytest.mark.parametrize(
    ("zone", "kept"), [("UTC", [True, True, False]), ("Asia/Tokyo", [True, False, False])]
)
def test_months_are_those_of_the_site_s_clock(zone: str, kept: list[bool]) -> None:
    """20:00 UTC on 31 March is 05:00 on 1 April in Tokyo."""
    moments = [(3, 31, 12), (3, 31, 20), (4, 1, 0)]
    seconds = [datetime(2018, *moment, tzinfo=UTC).timestamp() for moment in moments]
    jobs = workload(*((at, 10, 1) for at in seconds))
    compared = Fidelity(frozenset({"2018-03"}), "", (), zone).keep(jobs)
    assert compared.tolist() == kept
    assert Fidelity(None, "", (), zone).keep(jobs).tolist() == [True] * 3
