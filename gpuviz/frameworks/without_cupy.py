"""Recordings of a process without CuPy: torch, Numba and other libraries, and any kernel."""

import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gpuviz import _core
from gpuviz.allocator.driver import cuda_driver
from gpuviz.allocator.memory import (
    caching_allocators,
    get_allocator_settings,
    set_new_allocator_hook,
)
from gpuviz.data.manifest import TORCH_ALLOCATOR
from gpuviz.frameworks.driver_devices import device_rows, used_bytes
from gpuviz.frameworks.libraries import RecordedLibraries
from gpuviz.frameworks.numba_compilation import watch_numba_compilations
from gpuviz.frameworks.shared_pool import record_calls
from gpuviz.recorder.cupti import CuptiTracing

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuviz.recorder.tracer import TracerOptions


def is_without_cupy() -> bool:
    """Return whether this process has no CuPy to record."""
    if "cupy" in sys.modules:
        return sys.modules["cupy"] is None
    try:
        return find_spec("cupy") is None
    except (ImportError, ValueError):
        return True


def tracing(options: "TracerOptions") -> CuptiTracing:
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


class OtherLibraries:
    """Memory of libraries other than CuPy, on gpuviz's allocator where they can have it.

    Args:
        stacks: Whether events have call stacks.
        only_observe: Whether to install the allocator in none of them.
    """

    framework = ""
    memory = "device"

    def __init__(self, *, stacks: bool, only_observe: bool) -> None:
        cuda_driver()
        self._stacks = stacks
        self._only_observe = only_observe
        self._libraries = RecordedLibraries(stacks=stacks, only_observe=only_observe)

    @property
    def allocator(self) -> str:
        """``observe`` beside torch, whose allocator serves most of the memory then."""
        return "observe" if self._only_observe or "torch" in sys.modules else "caching"

    @property
    def allocator_name(self) -> str:
        """The name of torch's allocator, else of gpuviz's; empty if neither serves."""
        if "torch" in sys.modules:
            return TORCH_ALLOCATOR
        return "" if self._only_observe else "gpuviz caching allocator"

    def tables(self) -> "dict[str, pa.Table]":
        """Return nothing: all tables grow during the recording."""
        return {}

    def describe(self, session: _core.Session) -> None:
        """Push the segments and blocks left by an earlier use of the allocator."""
        for device, allocator in caching_allocators().items():
            allocator.describe_state(session.sink(device), stacks_are_valid=False)
        self._libraries.describe(session)

    def begin(self, session: _core.Session) -> None:
        """Install the allocator, and start recording."""

        def attach(device: int, allocator: _core.CachingAllocator) -> None:
            allocator.attach(session.sink(device))

        set_new_allocator_hook(attach)
        record_calls(session, stacks=self._stacks)
        self._libraries.begin()

    def sample(self) -> list[tuple[int, int]]:
        """Return the used bytes of the devices of these libraries."""
        return used_bytes({*caching_allocators(), *self._libraries.devices()})

    def now_ns(self) -> int | None:
        """Return None: the events are on the session's clock."""
        return None

    def end(self) -> tuple[str, ...]:
        """Restore the libraries' allocators."""
        notes = self._libraries.end()
        record_calls(None)
        set_new_allocator_hook(None)
        for allocator in caching_allocators().values():
            allocator.detach()
        return notes

    def devices(self, active: Iterable[int], /) -> list[dict[str, Any]]:
        """Return the devices that these libraries have used, and those with work."""
        return device_rows({*caching_allocators(), *self._libraries.devices(), *active})

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
