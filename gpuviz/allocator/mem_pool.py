"""Private memory pools."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpuviz.allocator.arguments import flag
from gpuviz.allocator.memory import caching_allocator, chosen_device, memory_snapshot
from gpuviz.allocator.non_copyable import NonCopyable


class MemPool(NonCopyable):
    """A private pool for the allocations on one device inside `use_mem_pool`.

    Its memory is released when the pool is deleted and no array uses it.

    Args:
        device: Its ordinal; CuPy's current device by default.
        use_on_oom: Let other allocations use this memory before they fail.
        no_split: Serve each request from its own segment.

    Raises:
        DeviceUnavailableError: A usable driver is missing.
        TypeError: ``device`` is neither an integer nor None, or another argument no bool.
        ValueError: There is no such device.
    """

    def __init__(
        self,
        device: int | None = None,
        *,
        use_on_oom: bool = False,
        no_split: bool = False,
    ) -> None:
        flag("use_on_oom", use_on_oom)
        flag("no_split", no_split)
        self.device = chosen_device(device)
        self._allocator = caching_allocator(self.device)
        self._number = self._allocator.create_pool(use_on_oom=use_on_oom, no_split=no_split)

    @property
    def id(self) -> tuple[int, int]:
        """``(0, n)``; n counts the device's pools from 1."""
        return (0, self._number)

    def snapshot(self) -> list[dict[str, Any]]:
        """Return this pool's segments, in the shape of `memory_snapshot`."""
        return [s for s in memory_snapshot(self.device) if s["segment_pool_id"] == self.id]

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self._allocator.release_pool(self._number)


@contextmanager
def use_mem_pool(pool: MemPool) -> Iterator[None]:
    """Serve this thread's allocations on the pool's device from the pool in a ``with`` block.

    Pools nest; the innermost is used. Arrays may outlive the block.

    Raises:
        TypeError: ``pool`` is no `MemPool`.
    """
    if not isinstance(pool, MemPool):
        raise TypeError(f"pool must be a gpuviz.MemPool, got {type(pool).__name__}")
    allocator = caching_allocator(pool.device)
    _, number = pool.id
    allocator.begin_pool(number)
    try:
        yield
    finally:
        allocator.end_pool(number)
