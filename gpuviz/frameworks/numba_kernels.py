"""Declares how kernels that Numba has compiled use their arrays."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from gpuviz.frameworks.cuda_text import LONGEST_SOURCE
from gpuviz.frameworks.kernel_assembly import modes_by_entry
from gpuviz.frameworks.kernel_modes import declare

_SCALAR = re.compile(r"u?int\d+|float\d+|bool(ean)?")
# An array is passed as two pointers of the host's, its number of elements, the size of one, the
# address, the shape, and the strides: `numba.core.datamodel.models.ArrayModel`.
_ADDRESS = 4
_PARAMETERS = 5
_declared: set[str] = set()


def declare_kernels(kernels: Iterable[Any]) -> None:
    """Declare the modes of the parameters of kernels, Numba's objects, that are new."""
    for kernel in kernels:
        # Numba's versions differ; the program's kernel runs whatever happens here.
        with suppress(Exception):
            name = kernel.entry_name
            if name not in _declared:
                _declared.add(name)
                _declare(kernel, name)


def _declare(kernel: Any, name: str) -> None:
    pointers = _pointers(kernel.signature.args)
    for text in _assembly(kernel._codelibrary):  # noqa: SLF001
        if len(text) <= LONGEST_SOURCE and name in text:
            modes = modes_by_entry(text, pointers).get(name)
            if modes is not None:
                declare(name, modes)


def _assembly(library: Any) -> Iterator[str]:
    """Yield the PTX that a kernel's library has; asking for it could compile it."""
    for found in library._ptx_cache.values():  # noqa: SLF001
        yield from (found,) if isinstance(found, str) else found


def _pointers(types: Iterable[Any]) -> frozenset[int] | None:
    """Return the places of the parameters that are addresses of arrays, if all types are simple."""
    place, found = 0, []
    for each in types:
        if hasattr(each, "ndim") and hasattr(each, "dtype"):
            found.append(place + _ADDRESS)
            place += _PARAMETERS + 2 * each.ndim
        elif _SCALAR.fullmatch(str(each)):
            place += 1
        else:
            return None
    return frozenset(found)
