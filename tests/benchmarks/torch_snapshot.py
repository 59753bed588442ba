"""Time and memory of reading and writing files of PyTorch."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gpuviz.exports import torch_export
from gpuviz.formats import torch_snapshot
from tests.benchmarks import recording as made

FEW, MANY, HUGE = 200_000, 1_000_000, 13_100_000
GIB = 1 << 30
ROUNDS = 3

Row = tuple[str, str, str, bool]

# In a separate process, so that its peak is that of reading alone.
_READ = """
import resource, sys
from pathlib import Path
from gpuviz.formats import torch_snapshot
calls = []
torch_snapshot.read(Path(sys.argv[1]), lambda done, total: calls.append(done))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, len(calls))
"""


def write(path: Path, events: int) -> float:
    """Write a snapshot with this number of events with stacks; return the duration in s."""
    made.EVENTS, made.PAIRS = events, events * 34 // 100
    recording = made.recorded()
    begin = time.perf_counter()
    torch_export.write(recording, path, overwrite=True)
    return time.perf_counter() - begin


def fastest_s(measured: Callable[[], object]) -> float:
    """Return the seconds of the fastest of a few calls."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        measured()
        times.append(time.perf_counter() - begin)
    return min(times)


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        write(path, FEW)
        few = fastest_s(lambda: torch_snapshot.read(path))
        written = min(write(path, MANY) for _ in range(ROUNDS))
        write(path, HUGE)
        size = path.stat().st_size
        command = [sys.executable, "-c", _READ, str(path)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    peak, calls = map(int, output.split())
    return [
        ("torch snapshot of 200,000 events with stacks in", "5 s", f"{few:.2f} s", few <= 5),
        ("torch snapshot of 1 million events out", "5 s", f"{written:.2f} s", written <= 5),
        (
            f"torch snapshot of {size / GIB:.2f} GiB in, memory",
            "8 GiB, with progress",
            f"{peak / GIB:.2f} GiB, {calls} reports",
            peak <= 8 * GIB and calls > 10 and size >= 1_000_000_000,
        ),
    ]
