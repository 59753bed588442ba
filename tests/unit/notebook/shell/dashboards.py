"""The recordings that dashboards show, and a wait with a limit."""

import time
from pathlib import Path

import gpuviz

RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"


def wait_for(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()
