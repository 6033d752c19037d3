"""Figures of measurements: the fleet, the card curve, collectives with their fit, a search, a history."""
