"""Ranges around Numba's compilations of kernels, and what the kernels do with their arrays."""

import sys
from functools import cache
from types import MethodType, ModuleType
from typing import Any, NamedTuple

from gpuviz import _core
from gpuviz.commands.startup.sitecustomize import ImportWatcher
from gpuviz.frameworks.numba_kernels import declare_kernels
from gpuviz.recorder import ranges

# The modules with the dispatcher: that of numba-cuda and that of numba-cuda-mlir.
_DISPATCHERS = ("numba.cuda.dispatcher", "numba_cuda_mlir.numba_cuda.dispatcher")
# By which `gpuviz.analysis.compilations` tells Numba's compiler from CuPy's.
_COMPILER = b"Numba"


@cache
def watch_numba_compilations() -> None:
    """Record, from now on, each kernel that Numba compiles or loads for the types of a launch.

    It is a range of the kind ``load``, with one of the kind ``compile`` in it unless the kernel was
    in the cache on the disk that ``cache=True`` keeps. Also if Numba is imported later.
    """
    for name in _DISPATCHERS:
        if name in sys.modules:
            watch_dispatcher(sys.modules[name])
    sys.meta_path.insert(
        0, ImportWatcher(_DISPATCHERS, lambda name: watch_dispatcher(sys.modules[name]))
    )


def watch_dispatcher(dispatcher: ModuleType) -> None:
    """Do so for one of the modules."""
    _enclose(getattr(dispatcher, "CUDADispatcher", None), "compile", _begin_load, _end_load)
    kernels = getattr(dispatcher, "_Kernel", None)
    _enclose(kernels, "__init__", _begin_compile, ranges.end)
    if kernels is not None:
        declare_kernels(_core.objects_of([kernels]))


class _Enclosed:
    """A method of a class that calls others before and after it, without a frame of Python."""

    def __init__(self, enclosed: Any) -> None:
        self._enclosed = enclosed

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self._enclosed if owner is None else MethodType(self._enclosed, owner)


def _enclose(owner: Any, name: str, begin: Any, end: Any) -> None:
    function = None if owner is None else getattr(owner, name, None)
    if function is not None:
        setattr(owner, name, _Enclosed(_core.enclosed(function, begin, end)))


class _Load(NamedTuple):
    """A kernel that is compiled or loaded, and the range around it if one is recorded."""

    dispatcher: Any
    opened: ranges.Opened | None


def _begin_load(dispatcher: Any, types: Any = (), *_: Any, **__: Any) -> _Load:
    if not ranges.are_recorded() or _is_loaded(dispatcher, types):
        return _Load(dispatcher, None)
    function = getattr(dispatcher, "py_func", None)
    name = str(getattr(function, "__qualname__", "a kernel"))
    opened = ranges.begin(name.encode(errors="backslashreplace"), ranges.LOAD)
    return _Load(dispatcher, opened)


def _end_load(load: _Load | None) -> None:
    if load is not None:
        ranges.end(load.opened)
        declare_kernels(getattr(load.dispatcher, "overloads", {}).values())


def _is_loaded(dispatcher: Any, types: Any) -> bool:
    overloads = getattr(dispatcher, "overloads", {})
    is_known = isinstance(types, tuple) and types in overloads
    return is_known or (bool(overloads) and getattr(dispatcher, "specialized", False))


def _begin_compile(*_: Any, **__: Any) -> ranges.Opened | None:
    return ranges.begin(_COMPILER, ranges.COMPILE) if ranges.are_recorded() else None
