"""Hakaru: the instrument panel of a shared GPU cluster."""
