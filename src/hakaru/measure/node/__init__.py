"""Node: the readers of a node's driver, PCI bus, control groups, memory and software.

The harness and preflight share them.
"""
