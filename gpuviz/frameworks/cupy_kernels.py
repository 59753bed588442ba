"""Declares how CuPy's kernels use their parameters, which their names do not say."""

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import Any

from gpuviz import _core
from gpuviz.frameworks.kernel_sources import (
    READ,
    UNKNOWN,
    WRITE,
    modes_by_kernel,
    modes_of_operation,
)
from gpuviz.recording.tables import DICTIONARIES

_NUMBERS = {mode: number for number, mode in enumerate(DICTIONARIES["launch_blocks", "mode"])}
_COMPILE = "_compile_module_with_cache"
# Kernels of CuPy whose use is known from what they are; their sources may say less.
_reductions: set[str] = set()
# Reading a longer source would be noticed.
_LONGEST_SOURCE = 200_000


@cache
def watch_kernels(cupy: ModuleType) -> None:
    """Declare the kernels that CuPy has compiled, and from now on each that it compiles."""
    compiler = cupy.cuda.compiler
    compile_module = getattr(compiler, _COMPILE, None)
    if compile_module is None:
        return

    for each in gc.get_objects():
        with suppress(Exception):
            _declare_object(cupy, each)
    setattr(compiler, _COMPILE, _core.preceded(compile_module, _declare_compiled))


def _declare_compiled(source: Any, *_: Any, **__: Any) -> None:
    # Whatever happens here, the program's kernel is compiled.
    with suppress(Exception):
        declare_source(source)


def declare_source(source: str) -> None:
    """Declare the kernels of a source, in CUDA C++."""
    if len(source) <= _LONGEST_SOURCE:
        for name, modes in modes_by_kernel(source).items():
            if name not in _reductions:
                _declare(name, *modes)


def _declare(name: str, *modes: str) -> None:
    _core.declare_kernel_modes(name, [_NUMBERS[mode] for mode in modes])


def _declare_object(cupy: ModuleType, found: Any) -> None:
    """Declare the kernel of an object, if it is one."""
    kind = type(found)
    if kind in (cupy.RawKernel, cupy.RawModule):
        declare_source(found.code)
    elif kind is cupy.ElementwiseKernel:
        outputs = {each.name: each.raw for each in found.out_params}
        modes = modes_of_operation(outputs, found.operation)
        _declare(found.name, *_of_parameters(found.params, modes))
    elif kind is cupy.ReductionKernel:
        outputs = {each.name: each.raw for each in found.out_params}
        modes = modes_of_operation(outputs, found.post_map_expr)
        _declare(found.name, *_of_parameters([*found.in_params, *found.out_params], modes))
        if len(found.in_params) == len(outputs) == 1:
            _declare_passes(found.name)
    elif kind.__name__ == "_SimpleReductionKernel":
        # One input and one output.
        _declare(found.name, READ, WRITE)
        _reductions.add(found.name)
        _declare_passes(found.name.replace("cupy_", "cupy_cub_", 1))


def _of_parameters(parameters: Iterable[Any], modes: Mapping[str, str]) -> Iterator[str]:
    for each in parameters:
        yield READ if each.is_const else modes.get(each.name, UNKNOWN)


def _declare_passes(name: str) -> None:
    """Declare a reduction that CuPy has made with CUB, in one pass or two."""
    for each in (name, f"{name}_pass1", f"{name}_pass2"):
        _declare(each, READ, WRITE)
        _reductions.add(each)
