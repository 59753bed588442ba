"""Numba on gpuviz's caching allocator.

``NUMBA_CUDA_MEMORY_MANAGER=gpuviz.allocators.numba`` does the same as `install`.
"""

from gpuviz.frameworks.numba import install, is_installed, memory_manager, uninstall

__all__ = ["install", "is_installed", "uninstall"]


def __getattr__(name: str) -> type:
    # What Numba looks for in the module that the variable names.
    if name == "_numba_memory_manager":
        return memory_manager()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
