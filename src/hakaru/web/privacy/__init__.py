"""What the role user may see: their own jobs whole, and others only in aggregates of five or more people.

The one place where it is decided; docs/web.md and docs/decisions tell the rules and their reasons.
"""

from hakaru.web.privacy._look import View, look, own_only
from hakaru.web.privacy._mask import Guarded, guard_result, rule_of
from hakaru.web.privacy._people import FEWEST, num_people
from hakaru.web.privacy._rows import RULES

__all__ = [
    "FEWEST",
    "RULES",
    "Guarded",
    "View",
    "guard_result",
    "look",
    "num_people",
    "own_only",
    "rule_of",
]
