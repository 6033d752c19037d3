"""The report: one self-contained HTML file that needs no network to be read, and prints to a clean PDF.

`tell(session, selection, ...)` gathers a `Story` (the paper's order: the machine and the log, what stands
out, every figure with the published clusters beside it, data quality, how each number was made), and
`to_html(story)` makes the page of it.
"""

from hakaru.report._measure import measure_to_html
from hakaru.report._page import to_html
from hakaru.report._story import Story, tell
from hakaru.report._whatif import whatif_to_html

__all__ = ["Story", "measure_to_html", "tell", "to_html", "whatif_to_html"]
