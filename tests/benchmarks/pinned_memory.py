"""Cost of an allocation of pinned memory through CuPy: CuPy's own pool against gpuviz's allocator.

With a GPU, for 1 MiB. Without one, the part that is neither the driver's nor the GPU's: gpuviz's
allocator on a simulated device, against CuPy's pool over memory that does not exist.
"""

import time
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import cupy

import gpuviz
from gpuviz import _core
from gpuviz.frameworks.cupy import _pinned_memory_refused
from tests.benchmarks.__main__ import has_gpu
from tests.benchmarks.cupy_allocation import PAIRS, Row, interleaved, ratio_row

SIZE = 1 << 20


class NoMemory:
    """What `cupy.cuda.PinnedMemory` is without the driver."""

    def __init__(self, size: int) -> None:
        self.ptr = 1 << 20
        self.size = size


@contextmanager
def installed(malloc: Callable[[int], Any]):
    cupy.cuda.set_pinned_memory_allocator(malloc)
    try:
        yield
    finally:
        cupy.cuda.set_pinned_memory_allocator()


@contextmanager
def recorded(malloc: Callable[[int], Any]):
    with gpuviz.record(streams=False), installed(malloc):
        yield


def pair() -> float:
    """Return the seconds of one allocation and its free."""
    alloc = cupy.cuda.alloc_pinned_memory
    for _ in range(1000):
        alloc(SIZE)
    began = time.perf_counter()
    for _ in range(PAIRS):
        alloc(SIZE)
    return (time.perf_counter() - began) / PAIRS


def simulated_malloc() -> Callable[[int], Any]:
    """Return `gpuviz.malloc_pinned` over a simulated device, whose calls take no time."""
    settings = _core.AllocatorSettings.parse("")
    device = _core.SimulatedDevice(1 << 30)
    host = _core.HostAllocator(device, settings)
    caching = _core.CachingAllocator(device, settings)
    allocator = _core.PinnedAllocator(
        pointer_type=cupy.cuda.PinnedMemoryPointer,
        runtime_module=SimpleNamespace(),
        stream_module=SimpleNamespace(),
        current_device=lambda: 0,
        current_stream=lambda: 0,
        open_host=lambda _: host,
        open_device=lambda _: caching,
        refused=_pinned_memory_refused,
    )
    return _core.cupy_malloc_pinned(lambda: allocator)


def rows() -> list[Row]:
    """Measure everything; return the rows of the table."""
    if has_gpu():
        pool = cupy.cuda.PinnedMemoryPool().malloc
        cases = {
            "pool": (partial(installed, pool), pair),
            "gpuviz": (partial(installed, gpuviz.malloc_pinned), pair),
            "recording": (partial(recorded, gpuviz.malloc_pinned), pair),
        }
        seconds = interleaved(cases)
        recording = ratio_row(
            "1 MiB pinned, recording", None, seconds["recording"], seconds["pool"]
        )
        return [
            ratio_row("1 MiB pinned, not recording", 1.0, seconds["gpuviz"], seconds["pool"]),
            recording,
        ]
    pool = cupy.cuda.PinnedMemoryPool(
        lambda size: cupy.cuda.PinnedMemoryPointer(NoMemory(size), 0)
    ).malloc
    seconds = interleaved(
        {
            "pool": (partial(installed, pool), pair),
            "gpuviz": (partial(installed, simulated_malloc()), pair),
        }
    )
    return [ratio_row("pinned, without the driver", 1.0, seconds["gpuviz"], seconds["pool"])]
