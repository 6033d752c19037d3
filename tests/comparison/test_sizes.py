"""Sizes of the machine in a comparison: of the whole, or of nodes times what a node has."""

from __future__ import annotations

import pytest

from hakaru.comparison._compare import _size
from hakaru.settings import Capacity, Cluster


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (Cluster(nodes=(Capacity(2), Capacity(3)), gpus_per_node=4), {"nodes": 3, "gpus": 12}),
        (Cluster(nodes=(Capacity(2), Capacity(5), Capacity(3))), {"nodes": 5}),
        (Cluster(gpus=(Capacity(16), Capacity(8))), {"gpus": 16}),
        (Cluster(nodes=(Capacity(3),), gpus=(Capacity(8),)), {"nodes": 3, "gpus": 8}),
        (Cluster(nodes=(Capacity(3),), gpus_per_node=4, gpus=(Capacity(10),)), {"gpus": 10}),
        (Cluster(cpus=(Capacity(2004),)), {"cpus": 2004, "gpus": None, "nodes": None}),
        (Cluster(cpus_per_node=64), {"cpus_per_node": 64, "cpus": None}),
        (
            Cluster(gpus_per_node=4, cpus_per_node=64, nodes=(Capacity(2),)),
            {"gpus_per_node": 4, "cpus_per_node": 64, "gpus": 8, "cpus": 128},
        ),
    ],
)
def test_the_size_set_for_the_whole_comes_first(
    cluster: Cluster, expected: dict[str, float | None]
) -> None:
    assert {name: _size(cluster, name) for name in expected} == expected
