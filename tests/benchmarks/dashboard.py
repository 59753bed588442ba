"""Cost of a dashboard's numbers for the kernel, by length of the recording."""

import statistics
import time
from itertools import pairwise

import gpuviz
from gpuviz.notebook.control import Control
from gpuviz.notebook.dashboard import Dashboard

SIZES = (100_000, 1_000_000, 10_000_000)
REFRESH_MS, APART_S = 10.0, 1.0
ROUNDS = 15
# An allocation has one event, and its free two.
EVENTS = 3
LIVE = 64

Row = tuple[str, str, str, bool]


def allocate(gpu: gpuviz.SimulatedGPU, count: int) -> None:
    """Create events of blocks that each live for a fixed number of later allocations."""
    kept = [gpu.empty(512) for _ in range(LIVE)]
    for number in range(count // EVENTS):
        kept[number % LIVE] = gpu.empty(512 * (1 + number % 255))


def rows() -> list[Row]:
    found = []
    gpu = gpuviz.SimulatedGPU(memory=4 << 30)
    with gpuviz.record(device=gpu, streams=False, stacks=False) as recorder:
        dashboard = Dashboard(Control(), recorder)
        seen: list[float] = []
        end = recorder.follow_statistics(lambda: seen.append(time.monotonic()))
        events = 0
        for size in SIZES:
            seen.clear()
            allocate(gpu, size - events)
            events = size
            apart = max((later - before for before, later in pairwise(seen)), default=0.0)
            took = []
            for _ in range(ROUNDS):
                time.sleep(0.2)
                begun = time.perf_counter()
                dashboard.refresh()
                took.append(1000 * (time.perf_counter() - begun))
            reached = f"{statistics.median(took):.2f} ms (worst {max(took):.1f} ms)"
            ok = statistics.median(took) <= REFRESH_MS
            what = f"dashboard of {size:,} events"
            found.append((f"{what}: one refresh", f"{REFRESH_MS:.0f} ms", reached, ok))
            if size == SIZES[-1]:
                found.append(
                    (
                        f"{what}: numbers at most apart",
                        f"{APART_S} s",
                        f"{apart:.2f} s",
                        apart <= APART_S,
                    )
                )
        end()
        dashboard.close()
    return found
