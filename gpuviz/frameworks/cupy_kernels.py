"""Declares how CuPy's kernels use their parameters, which their names do not say."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import Any

from gpuviz import _core
from gpuviz.frameworks.cuda_text import LONGEST_SOURCE
from gpuviz.frameworks.kernel_modes import declare
from gpuviz.frameworks.kernel_sources import (
    READ,
    UNKNOWN,
    WRITE,
    elements_by_kernel,
    modes_by_kernel,
    modes_of_operation,
)

_COMPILE = "_compile_module_with_cache"
_SIMPLE_REDUCTION = "_SimpleReductionKernel"
# A metaclass of the program may define another one.
_name_of = type.__dict__["__name__"].__get__
# Kernels of CuPy whose use is known from what they are; their sources may say less.
_reductions: set[str] = set()
# Kernels of which array elements were declared.
_with_elements: set[str] = set()


@cache
def watch_kernels(cupy: ModuleType) -> None:
    """Declare the kernels that CuPy has compiled, and from now on each that it compiles."""
    compiler = cupy.cuda.compiler
    compile_module = getattr(compiler, _COMPILE, None)
    if compile_module is None:
        return

    types = [each for each, _ in _core.object_types() if _is_kernel(cupy, each)]
    for each in _core.objects_of(types):
        with suppress(Exception):
            _declare_object(cupy, each)
    setattr(compiler, _COMPILE, _core.followed(compile_module, _declare_compiled))


def _declare_compiled(module: Any, source: Any, *_: Any, **__: Any) -> None:
    # Whatever happens here, the program's kernel is compiled.
    with suppress(Exception):
        declare_source(source)
        if len(source) > LONGEST_SOURCE:
            return
        for name, elements in elements_by_kernel(source).items():
            # The handle may be that of an earlier kernel.
            if any(elements) or name in _with_elements:
                _declare_elements(module.get_function(name), name, elements)


def declare_source(source: str) -> None:
    """Declare the kernels of a source, in CUDA C++."""
    if len(source) <= LONGEST_SOURCE:
        for name, modes in modes_by_kernel(source).items():
            if name not in _reductions:
                declare(name, modes)


def _declare_elements(function: Any, name: str, elements: Iterable[int]) -> None:
    _with_elements.add(name)
    _core.declare_array_elements(function.ptr, name, list(elements))


def _is_kernel(cupy: ModuleType, kind: type) -> bool:
    kinds = (cupy.RawKernel, cupy.RawModule, cupy.ElementwiseKernel, cupy.ReductionKernel)
    return any(kind is each for each in kinds) or _name_of(kind) == _SIMPLE_REDUCTION


def _declare_object(cupy: ModuleType, found: Any) -> None:
    """Declare the kernel of an object, if it is one."""
    kind = type(found)
    if kind in (cupy.RawKernel, cupy.RawModule):
        declare_source(found.code)
    elif kind is cupy.ElementwiseKernel:
        outputs = {each.name: each.raw for each in found.out_params}
        modes = modes_of_operation(outputs, found.operation)
        declare(found.name, _of_parameters(found.params, modes))
        _declare_launched(found)
    elif kind is cupy.ReductionKernel:
        outputs = {each.name: each.raw for each in found.out_params}
        modes = modes_of_operation(outputs, found.post_map_expr)
        declare(found.name, _of_parameters([*found.in_params, *found.out_params], modes))
        if len(found.in_params) == len(outputs) == 1:
            _declare_passes(found.name)
    elif _name_of(kind) == _SIMPLE_REDUCTION:
        # One input and one output.
        declare(found.name, (READ, WRITE))
        _reductions.add(found.name)
        _declare_passes(found.name.replace("cupy_", "cupy_cub_", 1))


def _declare_launched(kernel: Any) -> None:
    """Declare the elements of the functions that an element-wise kernel has been compiled to."""
    functions = kernel._elementwise_kernel_memo  # noqa: SLF001
    if not functions:
        return
    sources = kernel.cached_codes.values()
    known = [elements_by_kernel(each).get(kernel.name, ()) for each in sources]
    for (_, arguments, _), function in functions.items():
        # Whether all elements are accessed does not depend on their type.
        are_whole = [
            any(any(each[place : place + 1]) for each in known) for place in range(len(arguments))
        ]
        elements = [
            argument.dtype.itemsize if is_whole and argument.ndim else 0
            for argument, is_whole in zip(arguments, are_whole, strict=True)
        ]
        _declare_elements(function, kernel.name, elements)


def _of_parameters(parameters: Iterable[Any], modes: Mapping[str, str]) -> Iterator[str]:
    for each in parameters:
        yield READ if each.is_const else modes.get(each.name, UNKNOWN)


def _declare_passes(name: str) -> None:
    """Declare a reduction that CuPy has made with CUB, in one pass or two."""
    for each in (name, f"{name}_pass1", f"{name}_pass2"):
        declare(each, (READ, WRITE))
        _reductions.add(each)
