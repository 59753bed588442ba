"""Hook for CuPy's first allocation."""

import os
import threading
from collections.abc import Callable
from typing import Any

from gpuviz.frameworks.cupy import Allocator
from gpuviz.frameworks.cupy_current import import_cupy


class FirstAllocation:
    """Calls a function before CuPy's first allocation.

    Until then the GPU is not touched, so the program can still fork processes that use it, and
    choose its allocator.

    Args:
        begin: Called once, on the allocating thread, after CuPy's functions are restored; with True
            if the program has set an allocator, which is then installed in CuPy.
        follow_forks: Whether it is also called once in each process forked before.
    """

    def __init__(self, begin: Callable[[bool], None], *, follow_forks: bool = False) -> None:
        self._begin = begin
        self._follow_forks = follow_forks
        self._cuda = import_cupy().cuda
        self._set_allocator = self._cuda.set_allocator
        self._get_allocator = self._cuda.get_allocator
        self._chosen: Allocator = self._get_allocator()
        self._is_programs_choice = False
        self._is_awaited = True
        self._lock = threading.RLock()
        self._set_allocator(self._allocate)
        self._replace(self._choose, self._choice)
        os.register_at_fork(after_in_child=self._forget)

    def cancel(self) -> None:
        """Cancel the call, and restore CuPy's functions."""
        with self._lock:
            if self._is_awaited:
                self._restore()

    def _choose(self, allocator: Allocator | None = None) -> None:
        """Replace `cupy.cuda.set_allocator`."""
        self._set_allocator(allocator)
        with self._lock:
            if self._is_awaited:
                self._chosen, self._is_programs_choice = self._get_allocator(), True
                self._set_allocator(self._allocate)

    def _choice(self) -> Allocator:
        """Replace `cupy.cuda.get_allocator`."""
        current = self._get_allocator()
        return self._chosen if current == self._allocate else current

    def begin(self) -> None:
        """Call the function now, unless it has been called or cancelled."""
        with self._lock:
            if self._is_awaited:
                self._restore()
                self._begin(self._is_programs_choice)

    def _allocate(self, size: int) -> Any:
        self.begin()
        return self._choice()(size)

    def _restore(self) -> None:
        self._is_awaited = False
        self._replace(self._set_allocator, self._get_allocator)
        if self._get_allocator() != self._allocate:
            return
        try:
            self._set_allocator(self._chosen)
        except ValueError:
            # Inside `using_allocator` CuPy refuses; our allocator stays and forwards requests.
            return

    def _replace(self, setter: Callable[..., None], getter: Callable[[], Allocator]) -> None:
        for module in (self._cuda, self._cuda.memory):
            module.set_allocator, module.get_allocator = setter, getter

    def _forget(self) -> None:
        self._lock = threading.RLock()
        if not self._follow_forks:
            self.cancel()
