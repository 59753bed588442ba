"""See what a CuPy program does to GPU memory and to CUDA streams."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuviz.allocator import (
        empty_cache,
        get_allocator_settings,
        get_per_process_memory_fraction,
        list_gpu_processes,
        max_memory_allocated,
        max_memory_reserved,
        mem_get_info,
        memory_allocated,
        memory_reserved,
        memory_snapshot,
        memory_stats,
        memory_stats_as_nested_dict,
        memory_summary,
        reset_accumulated_memory_stats,
        reset_peak_memory_stats,
        set_allocator_settings,
        set_per_process_memory_fraction,
    )
    from gpuviz.assembly import record
    from gpuviz.frameworks.cupy import malloc
    from gpuviz.mem_pool import MemPool, use_mem_pool
    from gpuviz.notebook.dashboard import dashboard
    from gpuviz.ranges import range as range  # noqa: A004 - not in __all__
    from gpuviz.raw_memory import caching_allocator_alloc, caching_allocator_delete
    from gpuviz.recorder import Recorder
    from gpuviz.recorder_status import RecorderStatus
    from gpuviz.recording import Recording, load
    from gpuviz.replay import replay
    from gpuviz.simulation.gpu import SimulatedGPU
    from gpuviz.stream_names import name_stream
    from gpuviz.stream_uses import record_stream

__version__ = version("gpuviz")

# Imported at first use, so that `import gpuviz` costs next to nothing.
_HOMES = {
    "gpuviz.allocator": (
        "empty_cache",
        "get_allocator_settings",
        "get_per_process_memory_fraction",
        "list_gpu_processes",
        "max_memory_allocated",
        "max_memory_reserved",
        "mem_get_info",
        "memory_allocated",
        "memory_reserved",
        "memory_snapshot",
        "memory_stats",
        "memory_stats_as_nested_dict",
        "memory_summary",
        "reset_accumulated_memory_stats",
        "reset_peak_memory_stats",
        "set_allocator_settings",
        "set_per_process_memory_fraction",
    ),
    "gpuviz.frameworks.cupy": ("malloc",),
    "gpuviz.raw_memory": ("caching_allocator_alloc", "caching_allocator_delete"),
    "gpuviz.mem_pool": ("MemPool", "use_mem_pool"),
    "gpuviz.assembly": ("record",),
    "gpuviz.notebook.dashboard": ("dashboard",),
    "gpuviz.recorder": ("Recorder",),
    "gpuviz.recorder_status": ("RecorderStatus",),
    "gpuviz.ranges": ("range",),
    "gpuviz.recording": ("Recording", "load"),
    "gpuviz.replay": ("replay",),
    "gpuviz.simulation.gpu": ("SimulatedGPU",),
    "gpuviz.stream_names": ("name_stream",),
    "gpuviz.stream_uses": ("record_stream",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

# Without `range`, so that `from gpuviz import *` does not hide Python's.
__all__ = [
    "MemPool",
    "Recorder",
    "RecorderStatus",
    "Recording",
    "SimulatedGPU",
    "__version__",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "dashboard",
    "empty_cache",
    "get_allocator_settings",
    "get_per_process_memory_fraction",
    "list_gpu_processes",
    "load",
    "malloc",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "name_stream",
    "record",
    "record_stream",
    "replay",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_allocator_settings",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'gpuviz' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted(_HOME_OF | {"__version__": None})


def load_ipython_extension(shell: Any) -> None:
    """Let ``%gpuviz`` and ``%%gpuviz`` work in an IPython shell: for ``%load_ext gpuviz``."""
    from gpuviz.notebook.magics import load as load_magics

    load_magics(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics away again, and stop what they have started."""
    from gpuviz.notebook.magics import unload

    unload(shell)
