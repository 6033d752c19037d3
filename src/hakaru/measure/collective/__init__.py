"""Collective: how fast ranks exchange data, what more ranks would take, and which host or link is slow."""
