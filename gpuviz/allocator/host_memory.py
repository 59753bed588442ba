"""torch.cuda's functions about pinned host memory, over the host allocator of this process."""

from typing import Any

from gpuviz.allocator.memory import existing_host_allocator
from gpuviz.allocator.nested_stats import nested_stats


def host_memory_stats() -> dict[str, int]:
    """Return the statistics of pinned memory under the keys of ``torch.cuda.host_memory_stats``.

    Empty before the first allocation.

    - ``allocations.<current|peak|allocated|freed>`` and ``allocated_bytes.<...>``: blocks from the
      driver, in use or cached, and their bytes.
    - ``active_requests.<...>`` and ``active_bytes.<...>``: blocks in use, or freed while a copy
      from or to them is pending.
    - ``num_host_alloc``, ``num_host_free``: calls of the driver; ``host_alloc_time`` and
      ``host_free_time``, each ``.<total|max|min|count|avg>``: how long these took, in microseconds.
    """
    allocator = existing_host_allocator()
    return {} if allocator is None else allocator.memory_stats()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Return `host_memory_stats` with a dictionary for each part of a key."""
    return nested_stats(host_memory_stats())


def empty_host_cache() -> None:
    """Return all pinned memory that is neither in use nor waited for to the driver."""
    allocator = existing_host_allocator()
    if allocator is not None:
        allocator.empty_cache()


def reset_accumulated_host_memory_stats() -> None:
    """Set ``allocated``, ``freed``, the counts of calls and their total times to 0."""
    allocator = existing_host_allocator()
    if allocator is not None:
        allocator.reset_accumulated_stats()


def reset_peak_host_memory_stats() -> None:
    """Reset every peak to the current value, and the longest and shortest times to 0."""
    allocator = existing_host_allocator()
    if allocator is not None:
        allocator.reset_peak_stats()
