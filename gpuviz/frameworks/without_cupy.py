"""Recordings of a process without CuPy: torch, Numba and other libraries, and any kernel."""

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from gpuviz.allocator.driver import cuda_driver
from gpuviz.allocator.memory import caching_allocators, get_allocator_settings
from gpuviz.data.manifest import TORCH_ALLOCATOR
from gpuviz.frameworks import jax_memory
from gpuviz.frameworks.numba_compilation import watch_numba_compilations
from gpuviz.frameworks.process_memory import ProcessMemory
from gpuviz.recorder.cupti import CuptiTracing
from gpuviz.recorder.tracer import TracerOptions


def is_without_cupy() -> bool:
    """Return whether this process has no CuPy to record."""
    if "cupy" in sys.modules:
        return sys.modules["cupy"] is None
    try:
        return find_spec("cupy") is None
    except (ImportError, ValueError):
        return True


def tracing(options: TracerOptions) -> CuptiTracing:
    """Return a tracer with the CUPTI version of torch's CUDA runtime, else of the driver's.

    Raises:
        DeviceUnavailableError: There is no driver.
    """
    watch_numba_compilations()
    runtime = _torch_runtime()
    major = int(runtime.split(".")[0]) if runtime else cuda_driver().version // 1000
    return CuptiTracing(major, options)


def _torch_runtime() -> str:
    """Return the version of the CUDA runtime that torch was built for; empty without torch."""
    version = getattr(getattr(sys.modules.get("torch"), "version", None), "cuda", None)
    return str(version) if version else ""


class OtherLibraries(ProcessMemory):
    """Memory of libraries other than CuPy, on gpuviz's allocator where they can have it."""

    @property
    def allocator(self) -> str:
        """``observe`` beside torch or JAX, whose allocator serves most of the memory then."""
        others = "torch" in sys.modules or jax_memory.is_in_use()
        return "observe" if self._only_observe or others else "caching"

    @property
    def allocator_name(self) -> str:
        """The name of torch's or JAX's allocator, else of gpuviz's; empty if none serves."""
        if "torch" in sys.modules:
            return TORCH_ALLOCATOR
        if jax_memory.is_in_use():
            return jax_memory.ALLOCATOR
        return "" if self._only_observe else "gpuviz caching allocator"

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return settings, versions and statistics."""
        version = cuda_driver().version
        return {
            "settings": get_allocator_settings() if caching_allocators() else "",
            "memory_stats": {
                device: allocator.memory_stats()
                for device, allocator in caching_allocators().items()
            },
            "runtime": _torch_runtime(),
            "driver": f"{version // 1000}.{version % 1000 // 10}",
        }
