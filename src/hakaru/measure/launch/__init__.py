"""Launchers: how the worker's processes are started on this machine, on others, or through Slurm."""

from hakaru.measure.launch._base import (
    LAUNCHERS,
    Launcher,
    Layout,
    check_hosts,
    check_options,
    load_all,
    split_hosts,
)

__all__ = [
    "LAUNCHERS",
    "Launcher",
    "Layout",
    "check_hosts",
    "check_options",
    "load_all",
    "split_hosts",
]
