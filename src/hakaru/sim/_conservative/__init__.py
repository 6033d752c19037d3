"""The kernel of conservative backfilling: a profile of the future in which every job has its place.

On submission a job gets the earliest place that the profile has for its estimate. When a job ends, the tail
of its estimate is given back, and then everybody whose place lies ahead moves, in order of submission, to
the earliest one that is better than theirs. Jobs beyond `depth` wait without a place until there is room.
"""

from hakaru.sim._conservative._play import run

__all__ = ["run"]
