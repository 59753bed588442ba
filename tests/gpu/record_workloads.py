"""Record every workload: ``python tests/gpu/record_workloads.py [FOLDER]``, default ``$OUT``.

The demo replays these files. Rows take 10 to 20 bytes each, so the scales keep their number low;
block sizes still reach the large pool, and copies last long enough to overlap.
"""

import os
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import gpuviz
from gpuviz.commands.workloads import WORKLOADS
from gpuviz.recording import Recording

SCALES = {
    "kmeans": 0.05,
    "conjugate_gradient": 0.05,
    "fft_filter": 0.1,
    "monte_carlo": 0.05,
    "image_pipeline": 0.25,
}
LARGEST_ROWS = 20_000
LARGEST_BYTES = 300_000


def record(name: str, path: Path | None = None) -> tuple[Recording, float]:
    """Return a recording of a workload, with streams, and the seconds that the run took."""
    workload = WORKLOADS[name]
    workload.run(SCALES[name])  # compiles the kernels, which would look like idle time
    start = time.perf_counter()
    with gpuviz.record(path) as recorder:
        workload.run(SCALES[name])
    return recorder.recording, time.perf_counter() - start


def rows(folder: Path) -> Iterator[str]:
    yield (
        f"{'workload':20}{'events':>8}{'peak MiB':>10}{'activities':>11}{'overlap':>9}"
        f"{'file kB':>9}{'seconds':>9}"
    )
    for name in WORKLOADS:
        path = folder / f"{name}.gpuviz"
        sys.argv = [f"{name}.py"]  # the program's name in the recording
        recording, seconds = record(name, path)
        peak = int(recording.memory_stats()["allocated_bytes.all.peak"])
        events, activities = (
            recording.table(table).num_rows for table in ("memory_events", "activities")
        )
        overlap = sum(one.kernel_copy_overlap for one in recording.overlap().devices)
        size = path.stat().st_size
        is_small = max(events, activities) <= LARGEST_ROWS and size <= LARGEST_BYTES
        yield (
            f"{name:20}{events:8}{peak / 2**20:10.1f}{activities:11}{overlap:9.2f}"
            f"{size / 1000:9.1f}{seconds:9.2f}{'' if is_small else ' too large'}"
        )
        yield from () if is_small else tables(path)


def tables(path: Path) -> Iterator[str]:
    """Yield the size of each table in a file."""
    with zipfile.ZipFile(path) as archive:
        for member in sorted(archive.infolist(), key=lambda each: -each.compress_size):
            yield f"    {member.filename:32}{member.compress_size / 1000:9.1f} kB"


if __name__ == "__main__":
    for row in rows(Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["OUT"])):
        print(row, flush=True)
