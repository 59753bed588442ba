"""Cost of an allocation through CuPy: CuPy's own pool against gpuviz's allocator, in one run.

Needs a GPU. Every figure is the median of interleaved rounds, so that variations of the machine
affect all equally.
"""

import gc
import random
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

NEEDS_GPU = True
ROUNDS = 9
PAIRS = 20_000
DEPTH = 30
LIVE_BLOCKS = 64

Row = tuple[str, str, str, bool]


@contextmanager
def cupy_pool():
    """CuPy's default memory pool."""
    import cupy

    pool = cupy.cuda.MemoryPool()
    previous = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(pool.malloc)
    try:
        yield
    finally:
        cupy.cuda.set_allocator(previous)


@contextmanager
def gpuviz_allocator():
    """Install gpuviz's allocator in CuPy, without recording."""
    import cupy

    import gpuviz

    previous = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(gpuviz.malloc)
    try:
        yield
    finally:
        cupy.cuda.set_allocator(previous)


def recording() -> AbstractContextManager[Any]:
    """Install gpuviz's allocator in CuPy, recording with call stacks."""
    import gpuviz

    return gpuviz.record(streams=False)


def observing() -> AbstractContextManager[Any]:
    """CuPy's own pool, observed."""
    import gpuviz

    return gpuviz.record(allocator="observe", streams=False)


def at_depth(depth: int, function: Callable[[], float]) -> float:
    """Call a function below this number of Python frames."""
    return function() if depth <= 0 else at_depth(depth - 1, function)


def pair_of_1_kib() -> float:
    """Return the seconds of one alloc and free."""
    import cupy

    alloc = cupy.cuda.alloc
    for _ in range(1000):
        alloc(1024)
    began = time.perf_counter()
    for _ in range(PAIRS):
        alloc(1024)
    return (time.perf_counter() - began) / PAIRS


def pair_of_mixed_sizes() -> float:
    """Return the seconds of one alloc and free among blocks of 1 KiB to 64 MiB."""
    import cupy

    alloc = cupy.cuda.alloc
    choose = random.Random(1)
    sizes = [int(2 ** choose.uniform(10, 26)) for _ in range(PAIRS)]
    slots = [choose.randrange(LIVE_BLOCKS) for _ in range(PAIRS)]
    live: list[Any] = [None] * LIVE_BLOCKS
    for size, slot in zip(sizes, slots, strict=True):
        live[slot] = None
        live[slot] = alloc(size)
    began = time.perf_counter()
    for size, slot in zip(sizes, slots, strict=True):
        live[slot] = None
        live[slot] = alloc(size)
    return (time.perf_counter() - began) / PAIRS


def interleaved(
    cases: dict[str, tuple[Callable[[], AbstractContextManager[Any]], Callable[[], float]]],
    rounds: int = ROUNDS,
) -> dict[str, float]:
    """Return the median seconds of each case."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, (context, measure) in cases.items():
            gc.collect()
            with context():
                seconds[name].append(measure())
    return {name: statistics.median(values) for name, values in seconds.items()}


def kmeans_seconds() -> float:
    """Return the seconds of the k-means workload."""
    import cupy

    from gpuviz.commands.workloads import kmeans

    cupy.cuda.Device().synchronize()
    began = time.perf_counter()
    kmeans.main()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - began


def ratio_row(
    what: str,
    limit: float | None,
    measured: float,
    base: float,
    unit: str = "ns",
) -> Row:
    """Return a row of the table: a cost against CuPy's pool."""
    scale = {"ns": 1e9, "s": 1.0}[unit]
    text = (
        f"{measured * scale:.4g} {unit} against {base * scale:.4g} {unit}: {measured / base:.3f}x"
    )
    if limit is None:
        return what, "no bound", text, True
    return what, f"at most {limit}x", text, measured <= limit * base


def pairs_of_1_kib() -> dict[str, float]:
    """Return the cost of a pair by kind of recording, at two depths of the call stack."""

    def deep() -> float:
        return at_depth(DEPTH, pair_of_1_kib)

    return interleaved(
        {
            "pool": (cupy_pool, pair_of_1_kib),
            "gpuviz": (gpuviz_allocator, pair_of_1_kib),
            "pool deep": (cupy_pool, deep),
            "recording deep": (recording, deep),
            "recording": (recording, pair_of_1_kib),
            "observing": (lambda: nested(cupy_pool, observing), pair_of_1_kib),
        },
    )


def rows() -> list[Row]:
    """Measure everything; return the rows of the table."""
    small = pairs_of_1_kib()
    mixed = interleaved(
        {
            "pool": (cupy_pool, pair_of_mixed_sizes),
            "gpuviz": (gpuviz_allocator, pair_of_mixed_sizes),
            "recording": (recording, pair_of_mixed_sizes),
        },
    )
    kmeans = interleaved(
        {"pool": (cupy_pool, kmeans_seconds), "recording": (recording, kmeans_seconds)},
        rounds=5,
    )
    return [
        ratio_row("1 KiB through CuPy, not recording", 1.0, small["gpuviz"], small["pool"]),
        ratio_row(
            "1 KiB, recording, stacks 30 deep",
            1.5,
            small["recording deep"],
            small["pool deep"],
        ),
        ratio_row("mixed sizes, 64 live, recording", 1.5, mixed["recording"], mixed["pool"]),
        ratio_row("mixed sizes, 64 live, not recording", None, mixed["gpuviz"], mixed["pool"]),
        ratio_row("k-means, recording", 1.01, kmeans["recording"], kmeans["pool"], unit="s"),
        ratio_row("1 KiB, recording, 2 frames", None, small["recording"], small["pool"]),
        ratio_row("1 KiB, observing CuPy's pool", None, small["observing"], small["pool"]),
    ]


@contextmanager
def nested(*contexts: Callable[[], AbstractContextManager[Any]]):
    """Enter one context inside another."""
    with contexts[0](), contexts[1]() if len(contexts) > 1 else nullcontext():
        yield
