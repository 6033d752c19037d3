"""What the role user may see: their own jobs whole, and others only in groups of six or more people.

The one place where it is decided; docs/web.md and docs/decisions explain the rules and their reasons.
"""

from hakaru.web.privacy._look import GROUPS, View, is_whole, look, look_at, own_only
from hakaru.web.privacy._mask import Guarded, guard_result, is_of_many
from hakaru.web.privacy._partition import partition_of
from hakaru.web.privacy._people import FEWEST
from hakaru.web.privacy._place import place_among
from hakaru.web.privacy._rounded import to_digits, without_spread
from hakaru.web.privacy._rows import RULES

__all__ = [
    "FEWEST",
    "GROUPS",
    "RULES",
    "Guarded",
    "View",
    "guard_result",
    "is_of_many",
    "is_whole",
    "look",
    "look_at",
    "own_only",
    "partition_of",
    "place_among",
    "to_digits",
    "without_spread",
]
