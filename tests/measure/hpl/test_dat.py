"""HPL.dat: what is legal, and that a reader by HPL's own rules finds what was meant."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hakaru.errors import HakaruError
from hakaru.measure.hpl import DEFAULT, Batch, Config, default_for
from hakaru.measure.hpl.dat import LISTED, RANGES, grids
from tests.measure.hpl._xhpl import read_dat

LEGAL = {name: st.integers(low, min(high, low + 400)) for name, (low, high) in RANGES.items()}


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    ranks = draw(st.sampled_from([1, 2, 6, 12]))
    listed = {
        name: tuple(draw(st.lists(LEGAL[name], min_size=1, max_size=2)))
        for name in LISTED
        if name != "grid"
    }
    found = tuple(draw(st.lists(st.sampled_from(grids(ranks)), min_size=1, max_size=2)))
    return Batch(default_for(ranks), {"grid": found} | listed)


@settings(deadline=None, max_examples=40)
@given(batches())
def test_a_reader_finds_the_configurations_in_hpls_order(batch: Batch) -> None:
    ranks = batch.configs()[0].ranks
    found = read_dat(batch.text(ranks))
    assert [{name: getattr(c, name) for name in found[0]} for c in batch.configs()] == found
    assert len(found) == len(batch)


@given(st.fixed_dictionaries({name: st.integers(-3, 12) for name in RANGES}))
def test_a_configuration_is_legal_or_refused_with_every_reason(values: dict[str, int]) -> None:
    wrong = {
        name for name, value in values.items() if not RANGES[name][0] <= value <= RANGES[name][1]
    }
    if not wrong:
        assert Config(**values).to_json() == values
        return
    with pytest.raises(HakaruError) as caught:
        Config(**values)
    assert {line.split()[0] for line in str(caught.value).splitlines()[1:]} == wrong


@given(st.integers(1, 600))
def test_every_grid_takes_all_ranks_and_the_first_is_the_squarest(ranks: int) -> None:
    found = grids(ranks)
    assert all(p * q == ranks for p, q in found) and len(set(found)) == len(found)
    assert found[0] == min(found, key=lambda grid: (abs(grid[1] - grid[0]), grid[0]))


def test_the_default_is_hpccs_file_with_another_grid() -> None:
    assert default_for(4) == DEFAULT
    assert (default_for(2).p, default_for(2).q) == (1, 2)
    assert DEFAULT.variant == "WR11C2R4"


def test_what_one_file_cannot_hold_is_refused() -> None:
    two = default_for(2)
    with pytest.raises(HakaruError, match="takes 2 ranks, but there are 3"):
        Batch.of([two]).text(3)
    with pytest.raises(HakaruError, match="several values of swap"):
        Batch.of([two, Config(1000, 80, 1, 2, swap=0)])
    with pytest.raises(HakaruError, match="80 characters a line"):
        Batch.of([two]).repeated([100_000] * 12).text(2)
