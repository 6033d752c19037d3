"""What stands out, in plain sentences that are computed from the numbers of analyses.

`gather(session, selection)` runs what the findings need and `find(results, ...)` tells, without a session,
what of it is worth saying; `stand_out(session, selection, lang)` does both. A `Finding` has its id, its text
in English, Japanese or Korean, the analysis that it comes from, and the numbers behind the text.
"""

from hakaru.findings._base import FINDINGS, Finding, Numbers
from hakaru.findings._find import ANALYSES, BESIDE, find, gather, stand_out

__all__ = [
    "ANALYSES",
    "BESIDE",
    "FINDINGS",
    "Finding",
    "Numbers",
    "find",
    "gather",
    "stand_out",
]
