"""Play one saved run, as a process of its own: `python -m hakaru.sim.whatif._worker FOLDER NUMBER`."""

import sys
from pathlib import Path

from hakaru.sim.whatif.tasks import play

if __name__ == "__main__":
    play(Path(sys.argv[1]), int(sys.argv[2]))
