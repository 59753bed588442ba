"""Pinned host memory for ``cupy.cuda.PinnedMemoryPointer``."""

import os
import sys
from collections.abc import Callable

from gpuviz.allocator.memory import caching_allocator, host_allocator
from gpuviz.allocator.non_copyable import NonCopyable
from gpuviz.recording.stream_handle import known_handle

_LEGACY_STREAM = 0


class PinnedMemory(NonCopyable):
    """Pinned memory of the host allocator, freed with the last reference to it.

    CuPy does not report which streams use it. Its reuse waits for the work queued until the free on
    the current stream of the freeing thread, and through the legacy default stream for that of all
    blocking streams; and for the copies that a recording has seen.

    Attributes:
        ptr: Address.
        size: Size in bytes.
    """

    __slots__ = ("__weakref__", "_allocator", "_current", "ptr", "size")
    _is_abandoned = False

    def __init__(self, size: int, current: Callable[[], tuple[int, int]]) -> None:
        """Allocate memory.

        Args:
            size: Bytes.
            current: Returns the device and the handle of the stream that are current.

        Raises:
            MemoryError: The driver has no more pinned memory.
        """
        self.ptr = 0
        self.size = size
        self._current = current
        self._allocator = host_allocator(current()[0])
        self.ptr = self._allocator.allocate(size)

    def __del__(self) -> None:
        if not self.ptr or self._is_abandoned or sys.is_finalizing():
            return
        ordinal, stream = self._current()
        device = caching_allocator(ordinal).device
        for user in {known_handle(stream), _LEGACY_STREAM}:
            self._allocator.record_event(self.ptr, device, user)
        self._allocator.free(self.ptr)

    @classmethod
    def abandon(cls) -> None:
        """Free nothing from now on: CUDA is unusable in the child of a fork."""
        cls._is_abandoned = True


os.register_at_fork(after_in_child=PinnedMemory.abandon)
