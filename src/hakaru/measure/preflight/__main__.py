"""`python -m hakaru.measure.preflight [NAME...]` prints this node's facts as one line of JSON.

NAME is another node, which this one must be able to resolve.
"""

from __future__ import annotations

import json
import sys

from hakaru.errors import HakaruError
from hakaru.measure.preflight import Machine, gather


def main(names: list[str]) -> int:
    try:
        facts = gather(Machine(peers=tuple(names)))
    except HakaruError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(facts, allow_nan=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
