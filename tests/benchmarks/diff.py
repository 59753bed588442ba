"""Time of the differences of two recordings of a million events and as many activities."""

import tempfile
import time
from pathlib import Path

import gpuviz
from gpuviz.recording import Recording
from tests.benchmarks._large_recording import recorded
from tests.benchmarks.recording import Row, fastest_s

MANY = 1_000_000
BOUND_S = 3.0
PAGE_MB = 20.0


def rows() -> list[Row]:
    """Measure it; return the line of the table."""
    before, after = recorded(MANY, MANY), recorded(MANY + MANY // 10, MANY)

    def compare() -> None:
        # Copies, because a recording keeps what it has computed.
        found = gpuviz.diff(*(Recording(each.tables, each.manifest) for each in (before, after)))
        assert not found.is_empty

    seconds = fastest_s(compare)
    name = "diff of two recordings of a million events and activities"
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        page = gpuviz.diff(before, after).report(Path(folder, "diff.html"))
        page_mb = page.stat().st_size / 1e6
    written = time.perf_counter() - begun
    return [
        (name, f"{BOUND_S} s", f"{seconds:.2f} s", seconds <= BOUND_S),
        ("its page, with both timelines: written", "no bound", f"{written:.1f} s", True),
        ("its page: size", f"{PAGE_MB} MB", f"{page_mb:.1f} MB", page_mb <= PAGE_MB),
    ]
