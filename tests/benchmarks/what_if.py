"""Time of one row of `Recording.what_if`, by setting."""

import time

import numpy as np

from gpuviz.analysis.what_if import ASYNC, what_if
from gpuviz.recorder.recorder import Recorder
from gpuviz.recording import Recording
from tests.benchmarks.allocator import Row, mixed_sizes
from tests.unit.recorder.simulated_source import SimulatedSource

OPERATIONS, LIVE_BLOCKS, BOUND_S, ROUNDS = 1_000_000, 2_000, 0.6, 3
SETTINGS = ("", "expandable_segments:True", "max_split_size_mb:128", "cupy", ASYNC)


def recorded() -> Recording:
    """Return a recording of `OPERATIONS` allocations and frees of random sizes."""
    generator = np.random.default_rng(1)
    pairs = OPERATIONS // 2
    sizes = mixed_sizes(generator, LIVE_BLOCKS + pairs)
    victims = generator.integers(0, LIVE_BLOCKS, pairs).tolist()
    source = SimulatedSource(1)
    allocator = source.allocators[0]
    with Recorder(source, None, stacks=False, max_events=4 * OPERATIONS) as recorder:
        blocks = [allocator.allocate(size) for size in sizes[:LIVE_BLOCKS]]
        for victim, size in zip(victims, sizes[LIVE_BLOCKS:], strict=True):
            allocator.free(blocks[victim])
            blocks[victim] = allocator.allocate(size)
    return recorder.recording


def seconds(recording: Recording, settings: list[str]) -> float:
    """Return the seconds of the fastest of a few calls."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        what_if(recording, settings)
        times.append(time.perf_counter() - began)
    return min(times)


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    recording = recorded()
    own = seconds(recording, [])
    found: list[Row] = [
        (f"what_if of {OPERATIONS:,} operations: recorded", "no bound", f"{own:.2f} s", True)
    ]
    for settings in SETTINGS:
        each = seconds(recording, [settings]) - own
        name = settings or "defaults"
        found.append((f"what_if: {name}", f"{BOUND_S} s", f"{each:.2f} s", each <= BOUND_S))
    return found
