"""Bounds of packings, and the time of the search."""

import time
from pathlib import Path

import gpuviz
from tests.benchmarks.recording import Row

SHIPPED = Path(gpuviz.__file__).parent / "commands" / "recordings"
GAP = 0.035


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    found: list[Row] = []
    for path in sorted(SHIPPED.glob("*.gpuviz")):
        recording = gpuviz.load(path)
        begin = time.perf_counter()
        packing = recording.packing()
        seconds = time.perf_counter() - begin
        what = f"packing of {packing.blocks.num_rows} blocks ({path.stem}): gap"
        measured = f"{packing.gap:.2%} in {seconds:.2f} s"
        found.append((what, f"{GAP:.1%}", measured, packing.gap <= GAP))
    return found
