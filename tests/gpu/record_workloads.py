"""Record every workload: ``python tests/gpu/record_workloads.py [FOLDER]``, default ``$OUT``.

The files are what the demo replays. An event takes about 16 bytes, so the scales keep the number
of events low; block sizes still reach the large pool.
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import gpuviz
from gpuviz.commands.workloads import WORKLOADS

SCALES = {
    "kmeans": 0.05,
    "conjugate_gradient": 0.05,
    "fft_filter": 0.1,
    "monte_carlo": 0.05,
    "image_pipeline": 0.05,
}
LARGEST_EVENTS = 20_000
LARGEST_BYTES = 300_000


def record(name: str, path: Path) -> tuple[int, int, int, float]:
    """Return events, peak of allocated bytes, bytes of the file, and seconds."""
    workload = WORKLOADS[name]
    workload.run(SCALES[name])  # compiles the kernels, which would look like idle time
    sys.argv = [f"{name}.py"]  # what the recording names as the program
    start = time.perf_counter()
    with gpuviz.record(path) as recorder:
        workload.run(SCALES[name])
    seconds = time.perf_counter() - start
    recording = recorder.recording
    peak = int(recording.memory_stats()["allocated_bytes.all.peak"])
    return recording.table("memory_events").num_rows, peak, path.stat().st_size, seconds


def rows(folder: Path) -> Iterator[str]:
    yield f"{'workload':20}{'events':>8}{'peak MiB':>10}{'file kB':>9}{'seconds':>9}"
    for name in WORKLOADS:
        events, peak, size, seconds = record(name, folder / f"{name}.gpuviz")
        over = " too large" if events > LARGEST_EVENTS or size > LARGEST_BYTES else ""
        yield f"{name:20}{events:8}{peak / 2**20:10.1f}{size / 1000:9.1f}{seconds:9.2f}{over}"


if __name__ == "__main__":
    for row in rows(Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["OUT"])):
        print(row, flush=True)
