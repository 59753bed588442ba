"""The GPU memory that this process uses now, by allocator."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gpuviz import _core
from gpuviz.allocator.memory import caching_allocators
from gpuviz.frameworks.torch_holders import TensorBlock, own_segments
from gpuviz.simulation.arrays import SimulatedArray
from gpuviz.simulation.known_gpus import simulated_allocators

_ALLOCATED = "active_allocated"
_SIMULATED = vars(SimulatedArray)
CUDA = -1
_CUPY = "cupy.cuda.memory"


@dataclass(frozen=True, slots=True)
class LiveMemory:
    """Memory in use.

    Attributes:
        blocks: Size in bytes and device ordinal, by place and address. All of CUDA is one place;
            each simulated GPU is another, because their addresses are the same.
        cached: Bytes in pools that no block uses.
        releasable: Those that emptying the pools releases to the device: whole segments, and whole
            pages of expandable ones.
        is_complete: Whether `blocks` has all memory that Python objects own.
    """

    blocks: dict[tuple[int, int], tuple[int, int]]
    cached: int
    releasable: int
    is_complete: bool


def _allocators() -> Iterator[tuple[int, int, _core.CachingAllocator]]:
    """Yield the place, the device's ordinal and the allocator, of all in this process."""
    for device, allocator in caching_allocators().items():
        yield CUDA, device, allocator
    for allocator in simulated_allocators():
        yield id(allocator), 0, allocator


def _segments(of_torch: list[dict[str, Any]]) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield the place, the device's ordinal and each segment of the allocators and of torch's."""
    for place, device, allocator in _allocators():
        for segment in allocator.memory_snapshot():
            yield place, device, segment
    for segment in of_torch:
        yield CUDA, segment["device"], segment


def place_of(owner: Any) -> int:
    """Return the place of the memory of an instance of one of `owner_types`."""
    if issubclass(type(owner), SimulatedArray):
        return id(_SIMULATED["_allocator"].__get__(owner))
    return CUDA


def live_memory() -> LiveMemory:
    """Return the memory that this process uses now."""
    blocks: dict[tuple[int, int], tuple[int, int]] = {}
    of_torch = own_segments()
    # torch, too, waits for the streams that a free waits for; its pages are not known.
    releasable = sum(each["total_size"] for each in of_torch if not each["allocated_size"])
    releasable += sum(allocator.releasable_bytes() for _, _, allocator in _allocators())
    cached = 0
    for place, device, segment in _segments(of_torch):
        cached += segment["total_size"] - segment["active_size"]
        for block in segment["blocks"]:
            if block["state"] == _ALLOCATED:
                blocks[place, block["address"]] = block["size"], device
    used, free = cupy_pool_bytes()
    return LiveMemory(blocks, cached + free, releasable + free, is_complete=not used)


def used_bytes() -> int:
    """Return the bytes of all blocks in use."""
    return _total("allocated_size") + cupy_pool_bytes()[0]


def reserved_bytes() -> int:
    """Return the bytes that the pools hold."""
    return _total("total_size") + sum(cupy_pool_bytes())


def _total(key: str) -> int:
    return sum(segment[key] for _, _, segment in _segments(own_segments()))


def cupy_pool_bytes() -> tuple[int, int]:
    """Return the used and the cached bytes of CuPy's own pool; nothing if it is not in use."""
    if _CUPY not in sys.modules:
        return 0, 0
    from gpuviz.frameworks.cupy import default_pool_bytes

    # There may be no GPU, or the device may have failed.
    with suppress(Exception):
        return default_pool_bytes()
    return 0, 0


def owner_types() -> list[tuple[type, Any, Any]]:
    """Return the classes whose instances own memory, with their fields for address and size."""
    tensors = vars(TensorBlock)
    types: list[tuple[type, Any, Any]] = [
        (SimulatedArray, _SIMULATED["ptr"], _SIMULATED["nbytes"]),
        (TensorBlock, tensors["address"], tensors["nbytes"]),
    ]
    if _CUPY in sys.modules:
        from gpuviz.frameworks.cupy import memory_types

        types += memory_types()
    return types
