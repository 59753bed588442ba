"""Bounds of packings, and the time until the smaller ones are proved optimal."""

import time
from pathlib import Path

import gpuviz
from gpuviz.recording import Recording
from tests.benchmarks.recording import Row

SHIPPED = Path(gpuviz.__file__).parent / "commands" / "recordings"
GAP, FEW, EXACT_S = 0.035, 500, 10.0


def windows(recording: Recording, blocks: int) -> list[Recording]:
    """Return consecutive parts of a recording with about this number of blocks each."""
    found = recording.packing(seconds=0)
    times = sorted(found.blocks["time"].to_pylist())
    starts = [0, *(time for time in times[blocks:-blocks:blocks] if time > 0)]
    ends = [*starts[1:], recording.duration_ns]
    return [recording.window(a, b) for a, b in zip(starts, ends, strict=True) if a < b]


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    found: list[Row] = []
    slowest, parts, exact = 0.0, 0, 0
    for path in sorted(SHIPPED.glob("*.gpuviz")):
        recording = gpuviz.load(path)
        begin = time.perf_counter()
        packing = recording.packing()
        seconds = time.perf_counter() - begin
        what = f"packing of {packing.blocks.num_rows} blocks ({path.stem}): gap"
        measured = f"{packing.gap:.2%} in {seconds:.2f} s"
        found.append((what, f"{GAP:.1%}", measured, packing.gap <= GAP))
        for part in windows(recording, FEW // 2):
            begin = time.perf_counter()
            packing = part.packing()
            if packing.blocks.num_rows > FEW:
                continue
            slowest = max(slowest, time.perf_counter() - begin)
            parts += 1
            exact += packing.is_optimal
    what = f"exact packing of at most {FEW} blocks: slowest of {parts} windows"
    is_reached = exact == parts > 0 and slowest <= EXACT_S
    found.append((what, f"{EXACT_S:.0f} s", f"{slowest:.2f} s, {exact} exact", is_reached))
    return found
