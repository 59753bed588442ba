"""CuPy's pinned host memory in recordings, from the program's pool or gpuviz's allocator."""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from gpuviz import _core

PinnedMalloc = Callable[[int], Any]


_OWN = (_core.ObservedPinnedMemory, _core.PinnedMemory)


@cache
def _observer() -> _core.PinnedObserver:
    observer = _core.PinnedObserver()
    os.register_at_fork(after_in_child=observer.abandon)
    return observer


class RecordedPinnedPool:
    """The program's pool of pinned memory, from `begin` to `end` of a recording.

    Only a ``cupy.cuda.PinnedMemoryPool`` is replaced: CuPy does not tell which allocator is
    installed, and of others the memory does not tell either.

    Args:
        cuda: The module ``cupy.cuda``.
        instead: The allocator to install instead of observing the pool; None to observe it.
    """

    def __init__(self, cuda: Any, instead: PinnedMalloc | None = None) -> None:
        self._cuda = cuda
        self._instead = instead
        self._malloc: PinnedMalloc | None = None

    def begin(self, session: _core.Session, *, stacks: bool) -> None:
        """Install the allocator, or start to record what the pool does."""
        pool = self._installed_pool()
        if pool is None:
            return
        self._malloc = malloc = pool.malloc
        if self._instead is not None:
            self._cuda.set_pinned_memory_allocator(self._instead)
            return
        observer = _observer()
        observer.set_session(session, stacks=stacks)
        observed = _core.ObservedPinnedPool(observer, malloc, self._cuda.PinnedMemoryPointer)
        self._cuda.set_pinned_memory_allocator(_core.observed_pinned_malloc(lambda: observed))

    def end(self) -> None:
        """Install the program's pool again; memory that is still in use returns to it later.

        What the program has installed meanwhile stays.
        """
        _observer().set_session(None)
        malloc, self._malloc = self._malloc, None
        if malloc is not None and isinstance(self._memory(), _OWN):
            self._cuda.set_pinned_memory_allocator(malloc)

    def _memory(self) -> Any:
        """Return what holds one byte of the installed allocator; None if that fails."""
        try:
            return self._cuda.alloc_pinned_memory(1).mem
        except Exception:  # noqa: BLE001 - the program's own allocator, whatever it raises
            return None

    def _installed_pool(self) -> Any:
        """Return the pool that serves the program; None if it is no pool of CuPy's."""
        reference = getattr(self._memory(), "pool", None)
        pool = reference() if callable(reference) else None
        return pool if type(pool) is self._cuda.PinnedMemoryPool else None
