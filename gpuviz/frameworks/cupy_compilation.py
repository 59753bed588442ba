"""Ranges around CuPy's compilations of kernels."""

from functools import cache
from types import ModuleType
from typing import Any

from gpuviz import _core
from gpuviz.frameworks.cuda_text import kernel_names
from gpuviz.recorder import ranges

_MOST_NAMES = 3
_LOAD = "_compile_module_with_cache"
# Either of the first two, by CuPy's version: the second calls the first.
_COMPILERS = (
    ("_compile_using_nvrtc_no_warning", "compile_using_nvrtc"),
    ("compile_using_nvcc",),
)


@cache
def watch_compilations(cupy: ModuleType) -> None:
    """Record, from now on, each module that CuPy compiles or loads as a range.

    It is of the kind ``load``, with one of the kind ``compile`` in it unless the module was in
    CuPy's cache on the disk.
    """
    compiler = cupy.cuda.compiler
    _enclose(compiler, _LOAD, ranges.LOAD)
    for names in _COMPILERS:
        known = [name for name in names if hasattr(compiler, name)]
        if known:
            _enclose(compiler, known[0], ranges.COMPILE)


def _enclose(compiler: Any, name: str, kind: int) -> None:
    function = getattr(compiler, name, None)
    if function is None:
        return

    def begin(source: Any, *_: Any, **__: Any) -> ranges.Opened | None:
        return ranges.begin(range_name(source), kind) if ranges.are_recorded() else None

    setattr(compiler, name, _core.enclosed(function, begin, ranges.end))


def range_name(source: Any) -> bytes:
    """Return the name of a range: those of the kernels in a source, in CUDA C++."""
    names = kernel_names(source) if isinstance(source, str) else []
    shown = ", ".join(names[:_MOST_NAMES]) or "a module"
    more = len(names) - _MOST_NAMES
    return (shown if more <= 0 else f"{shown} and {more} more").encode()
