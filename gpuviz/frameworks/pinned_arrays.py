"""NumPy's arrays in pinned memory, so that a program copies them faster without a change."""

import ctypes
from collections.abc import Callable
from importlib import import_module
from typing import Any

# NumPy's data memory handlers (NEP 49): `PyDataMem_SetHandler` in the table of its C interface,
# and the name of their capsules.
_SET_HANDLER, _CAPSULE = 304, b"mem_handler"
# CUDA copies less from pageable memory without blocking the host.
_LEAST_BYTES = 64 << 10

_Malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_Calloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_Realloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class _Handler(ctypes.Structure):
    """``PyDataMem_Handler``, with its ``PyDataMemAllocator``."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", _Malloc),
        ("calloc", _Calloc),
        ("realloc", _Realloc),
        ("free", _Free),
    )


class PinnedArrays:
    """Lets NumPy allocate arrays of 64 KiB and more of the calling thread with a function.

    Others, and those that the function refuses, are allocated as before. Arrays keep the memory
    that they have, so that NumPy may free some with this object until the process ends.

    Args:
        allocate: Returns memory of some bytes: an object with its address as ``ptr``, which keeps
            it.
    """

    def __init__(self, allocate: Callable[[int], Any]) -> None:
        self._allocate = allocate
        self._pinned: dict[int, tuple[Any, int]] = {}
        libc = ctypes.CDLL(None)
        self._libc: dict[str, Any] = {}
        for name, count in (("malloc", 1), ("calloc", 2), ("realloc", 2), ("free", 1)):
            function = getattr(libc, name)
            function.restype = None if name == "free" else ctypes.c_void_p
            function.argtypes = [ctypes.c_size_t] * count
            self._libc[name] = function
        self._handler = _Handler(
            name=b"gpuviz",
            version=1,
            malloc=_Malloc(self._malloc),
            calloc=_Calloc(self._calloc),
            realloc=_Realloc(self._realloc),
            free=_Free(self._free),
        )
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self._capsule = new(ctypes.addressof(self._handler), _CAPSULE, None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        self._previous = _set_handler(self._capsule)

    def end(self) -> None:
        """Let NumPy allocate as before."""
        _set_handler(self._previous)

    def _malloc(self, _: int | None, size: int) -> int | None:
        if size >= _LEAST_BYTES:
            try:
                memory = self._allocate(size)
            except Exception:  # noqa: BLE001 - what cannot be pinned is pageable
                memory = None
            if memory is not None:
                self._pinned[memory.ptr] = memory, size
                return int(memory.ptr)
        address: int | None = self._libc["malloc"](max(size, 1))
        return address

    def _calloc(self, _: int | None, count: int, size: int) -> int | None:
        if count * size < _LEAST_BYTES:
            address: int | None = self._libc["calloc"](max(count, 1), max(size, 1))
            return address
        found = self._malloc(None, count * size)
        if found is not None:
            ctypes.memset(found, 0, count * size)
        return found

    def _realloc(self, _: int | None, address: int | None, size: int) -> int | None:
        if address not in self._pinned:
            moved: int | None = self._libc["realloc"](address or 0, max(size, 1))
            return moved
        found = self._malloc(None, size)
        if found is not None and address is not None:
            ctypes.memmove(found, address, min(size, self._pinned[address][1]))
            del self._pinned[address]
        return found

    def _free(self, _: int | None, address: int | None, size: int) -> None:
        del size
        if address is not None and self._pinned.pop(address, None) is None:
            self._libc["free"](address)


def _set_handler(capsule: Any) -> Any:
    """Make a capsule's handler that of the calling thread, and return the one before."""
    try:
        module = import_module("numpy._core._multiarray_umath")
    except ModuleNotFoundError:
        module = import_module("numpy.core._multiarray_umath")  # NumPy 1
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer_of(module._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))  # noqa: SLF001 - the C interface
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER] or 0)
    return set_handler(capsule)
