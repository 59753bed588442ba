"""The caching allocators of this process for libraries other than CuPy."""

import ctypes
import importlib
import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from gpuviz import _core
from gpuviz.allocator.failure_report import explain_error
from gpuviz.allocator.memory import caching_allocator
from gpuviz.errors import DeviceUnavailableError
from gpuviz.installation import pip_install


class _Process:
    """The pool of this process, and the session that records its calls."""

    lock = threading.RLock()
    pool: _core.SharedPool | None = None
    session: _core.Session | None = None
    stacks = True
    before_first_allocation: Callable[[], None] | None = None


def shared_pool() -> _core.SharedPool:
    """Return the pool of this process, which starts CUDA at its first allocation.

    Raises:
        DeviceUnavailableError: There is no driver.
    """
    with _Process.lock:
        if _Process.pool is None:
            if not has_driver():
                raise DeviceUnavailableError("No NVIDIA driver found (libcuda.so.1 is missing).")
            pool = _core.SharedPool(_opened, explained)
            pool.set_session(_Process.session, _Process.stacks)
            os.register_at_fork(after_in_child=pool.abandon_after_fork)
            _Process.pool = pool
        return _Process.pool


def _opened(device: int) -> _core.CachingAllocator:
    begin, _Process.before_first_allocation = _Process.before_first_allocation, None
    if begin is not None:
        begin()
    return caching_allocator(device)


def call_before_first_allocation(begin: Callable[[], None] | None) -> None:
    """Call a function once, before the next device is used for the first time; None ends this.

    Args:
        begin: Called on the allocating thread; it must not raise.
    """
    _Process.before_first_allocation = begin


def has_driver() -> bool:
    """Return whether there is a CUDA driver, without initializing it."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _renew_lock() -> None:
    _Process.lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def record_calls(session: _core.Session | None, *, stacks: bool = True) -> None:
    """Capture the origins of allocations and frees for a session; None ends this."""
    with _Process.lock:
        _Process.session, _Process.stacks = session, stacks
        if _Process.pool is not None:
            _Process.pool.set_session(session, stacks)


def lost_frees() -> int:
    """Return how many frees have failed, whose memory stays allocated."""
    return 0 if _Process.pool is None else _Process.pool.lost_frees


def explained(error: Any) -> str:
    """Return the text of a `gpuviz._core.OutOfMemoryError`, explained if a recording runs."""
    explain_error(error)
    return str(error)


def import_library(name: str, install: str) -> ModuleType:
    """Return the module of a library.

    Args:
        name: The module.
        install: The package that contains it.

    Raises:
        DeviceUnavailableError: It cannot be imported.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        _cannot_import(name, install, error)


def _cannot_import(name: str, install: str, error: ImportError) -> NoReturn:
    raise DeviceUnavailableError(
        f"{name} cannot be imported ({error}): `{pip_install(install)}`."
    ) from error
