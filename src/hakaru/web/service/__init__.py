"""The questions that the API and the pages ask: in-process, and answered for one viewer.

`Service.of(viewer)` gives an `Asker`, whose methods return the models of `hakaru.web.models`. Whatever the
viewer may not see is refused or withheld here, so that a page cannot show more than the API gives.
"""

from hakaru.web.service._asker import Asker, Service
from hakaru.web.service._clusters import MAX_NAMES

__all__ = ["MAX_NAMES", "Asker", "Service"]
