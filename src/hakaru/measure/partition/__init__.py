"""Automatic partitioning of an unmodified network, as RaNNC does it: trace, cost, cut, run as a pipeline."""
