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

    __slots__ = ("__weakref__", "_allocator", "_current", "_process", "ptr", "size")

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
        self._process = os.getpid()
        self._allocator = host_allocator(current()[0])
        self.ptr = self._allocator.allocate(size)

    def __del__(self) -> None:
        # CUDA is unusable in a forked child, and its memory ends with the process.
        if not self.ptr or sys.is_finalizing() or os.getpid() != self._process:
            return
        ordinal, stream = self._current()
        device = caching_allocator(ordinal).device
        for user in {known_handle(stream), _LEGACY_STREAM}:
            self._allocator.record_event(self.ptr, device, user)
        self._allocator.free(self.ptr)
