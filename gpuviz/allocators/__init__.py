"""gpuviz's caching allocator for CuPy, PyTorch, Numba, cuda.core and RMM: one module each.

Each has ``install()`` and ``is_installed()``, and all but ``torch`` have ``uninstall()``. A library
is imported by ``install()``, not before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuviz.allocators import cuda_core, cupy, numba, rmm, torch

__all__ = ["cuda_core", "cupy", "numba", "rmm", "torch"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
