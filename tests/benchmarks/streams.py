"""Overhead of recording streams: for a launch, and for a whole workload.

Needs a GPU. Each pair, without and with recording, is measured in a separate process, because CUPTI
has lasting effects on a process. Figures are medians of alternating rounds.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tests.benchmarks.cupy_allocation import Row, kmeans_seconds, ratio_row

NEEDS_GPU = True
ROUNDS = 5
ELEMENTS = 1000
LAUNCHES = 20_000
REPEATS = 5
TIMEOUT_S = 120
KERNELS = 10  # CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL


@contextmanager
def bare_cupti(*kinds: int, everything: bool = False, callbacks: bool = False):
    """CUPTI records these kinds, or those that gpuviz records, and drops its buffers unread.

    With ``callbacks`` it also calls a function that does nothing around the calls that gpuviz
    follows.
    """
    import cupy

    from gpuviz import _testing
    from gpuviz.recorder.cupti_library import find_cupti

    major = cupy.cuda.runtime.runtimeGetVersion() // 1000
    wanted = None if everything else list(kinds)
    tool = _testing.BareCupti(str(find_cupti(major)), wanted, callbacks)
    tool.start()
    try:
        yield
    finally:
        cupy.cuda.Device().synchronize()
        tool.stop()


def everything_bare() -> AbstractContextManager[Any]:
    return bare_cupti(everything=True)


@contextmanager
def recording(**switches: Any):
    """Record with options of `gpuviz.record`, and check that activities were recorded."""
    import gpuviz

    with gpuviz.record(**switches) as recorder:
        yield
    status = recorder.status()
    assert status.streams, status.notes
    assert recorder.recording.table("activities").num_rows > 0
    assert status.dropped_activities == 0, status.dropped_activities


def activities_only() -> AbstractContextManager[Any]:
    """Record activities without their calls."""
    return recording(launch_sites=False, launch_blocks=False)


@contextmanager
def after_a_recording():
    """Record something before measuring without a recording."""
    import cupy

    with recording():
        cupy.zeros(ELEMENTS, cupy.float32).sum()
        cupy.cuda.Device().synchronize()
    yield


def launch_seconds() -> float:
    """Return the seconds of one elementwise launch in a tight loop."""
    import cupy

    device = cupy.cuda.Device()
    array = cupy.zeros(ELEMENTS, cupy.float32)
    out = cupy.empty_like(array)
    seconds = []
    for _ in range(1 + REPEATS):  # the first to warm up
        device.synchronize()
        began = time.perf_counter()
        for _ in range(LAUNCHES):
            cupy.add(array, array, out=out)
        seconds.append((time.perf_counter() - began) / LAUNCHES)
    return statistics.median(seconds[1:])


# Functions to measure, with their contexts.
PAIRS: dict[str, tuple[Callable[[], AbstractContextManager[Any]], Callable[[], float]]] = {
    "bare": (everything_bare, launch_seconds),
    "activities": (activities_only, launch_seconds),
    "everything": (recording, launch_seconds),
    "after": (after_a_recording, launch_seconds),
    "bare kmeans": (everything_bare, kmeans_seconds),
    "kmeans": (recording, kmeans_seconds),
}


def measure_pair(name: str) -> tuple[float, float]:
    """Return the seconds without and with, both after a warm-up; for a fresh process."""
    context, measure = PAIRS[name]
    measure()
    without = measure()
    with context():
        return without, measure()


def medians() -> dict[str, tuple[float, float]]:
    """Return the median seconds without and with, of each pair."""
    measured: dict[str, list[list[float]]] = {name: [] for name in PAIRS}
    for _ in range(ROUNDS):
        for name, rounds in measured.items():
            command = [sys.executable, "-m", "tests.benchmarks.streams", name]
            ran = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S
            )
            rounds.append(json.loads(ran.stdout.splitlines()[-1]))
    return {
        name: (statistics.median(a for a, _ in rounds), statistics.median(b for _, b in rounds))
        for name, rounds in measured.items()
    }


def rows() -> list[Row]:
    """Measure everything; return the rows of the table."""
    found = medians()
    untraced, bare = found["bare"]
    activities = found["activities"][1]
    text = f"{activities * 1e9:.4g} ns against {bare * 1e9:.4g} ns: {activities / bare:.3f}x"
    return [
        ratio_row("a launch, CUPTI alone, nothing read", None, bare, untraced),
        ("a launch, activities recorded", "bare + 10 %", text, activities <= 1.1 * bare),
        ratio_row("the same against no CUPTI", None, activities, found["activities"][0]),
        ratio_row("a launch, everything on", 1.5, *reversed(found["everything"])),
        ratio_row("a launch after a recording", 1.08, *reversed(found["after"])),
        ratio_row("k-means, CUPTI alone", None, *reversed(found["bare kmeans"]), unit="s"),
        ratio_row("k-means, everything on", 1.01, *reversed(found["kmeans"]), unit="s"),
    ]


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(measure_pair(sys.argv[1]))}\n")
