"""Time of analyses of ten million events or activities."""

import numpy as np

from gpuviz.analysis.classification import classify
from gpuviz.analysis.overlap import overlap
from gpuviz.data.manifest import Manifest
from gpuviz.recording import Recording
from tests.benchmarks._large_recording import memory_events
from tests.benchmarks.overlap import STACKS, dictionaries
from tests.benchmarks.overlap import recorded as of_activities
from tests.benchmarks.recording import Row, fastest_s

ROWS = 10_000_000
SITES_S, OVERLAP_S, KERNELS_S = 2.0, 0.7, 0.7


def of_events(count: int) -> Recording:
    """Return a recording with this number of memory events, of many call stacks."""
    generator = np.random.default_rng(2)
    events = memory_events(generator, count)
    stacks = (generator.geometric(0.005, count + 1) % STACKS + 1).astype(np.uint32)
    position = events.schema.get_field_index("stack")
    events = events.set_column(position, events.schema.field("stack"), [stacks])
    return Recording({"memory_events": events, **dictionaries()}, Manifest(initial_events=1))


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    found = [
        _row("sites()", SITES_S, fastest_s(of_events(ROWS).sites)),
    ]
    recording = of_activities(ROWS)
    return [
        *found,
        _row("overlap()", OVERLAP_S, fastest_s(lambda: overlap(recording))),
        _row("kernels()", KERNELS_S, fastest_s(recording.kernels)),
        (
            "classify() of 10 million",
            "no bound",
            f"{fastest_s(lambda: classify(recording.tables)):.2f} s",
            True,
        ),
    ]


def _row(name: str, bound: float, seconds: float) -> Row:
    return (f"{name} of 10 million", f"{bound} s", f"{seconds:.2f} s", seconds <= bound)
