"""Integration of CuPy with the allocator and the recorder; the only file that imports cupy."""

import ctypes
import importlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from types import ModuleType
from typing import Any, cast

from gpuviz import _core
from gpuviz.allocator.driver import cuda_driver
from gpuviz.allocator.failure_report import FailureReport, explain_error, explain_failure
from gpuviz.allocator.memory import (
    caching_allocator,
    caching_allocators,
    existing_host_allocator,
    get_allocator_settings,
    host_allocator,
    set_empty_cache,
    set_new_host_allocator_hook,
)
from gpuviz.data.manifest import NOT_LIMITED
from gpuviz.frameworks.cupy_captures import watch_captures
from gpuviz.frameworks.cupy_compilation import watch_compilations
from gpuviz.frameworks.cupy_current import import_cupy
from gpuviz.frameworks.cupy_default_pool import DefaultPool, own_default_pool
from gpuviz.frameworks.cupy_kernels import watch_kernels
from gpuviz.frameworks.cupy_pinned import RecordedPinnedPool
from gpuviz.frameworks.numba_compilation import watch_numba_compilations
from gpuviz.frameworks.process_memory import ProcessMemory
from gpuviz.frameworks.shared_pool import lost_frees
from gpuviz.quantities import format_counted
from gpuviz.recorder.cupti import CuptiTracing
from gpuviz.recorder.prevention import NO_PREVENTION, PreventedReuse, Prevention
from gpuviz.recorder.tracer import TracerOptions

Allocator = Callable[[int], Any]

# The first CUDA runtime in which cudaSetDevice makes the device's context current.
_SETS_CONTEXT = 12000


@cache
def versions() -> dict[str, str]:
    """Return the versions of CuPy and of the CUDA runtime it uses."""
    cupy = import_cupy()
    return {
        "cupy": cupy.__version__,
        "runtime": _cuda_version(cupy.cuda.runtime.runtimeGetVersion()),
        "driver": _cuda_version(cuda_driver().version),
    }


def tracing(options: TracerOptions) -> CuptiTracing:
    """Return a tracer with the CUPTI version of CuPy's CUDA runtime.

    Raises:
        DeviceUnavailableError: There is no CuPy.
    """
    cupy = import_cupy()
    watch_kernels(cupy)
    watch_compilations(cupy)
    watch_numba_compilations()
    return CuptiTracing(cupy.cuda.runtime.runtimeGetVersion() // 1000, options)


def clear_caches() -> None:
    """Clear the FFT plans of this thread, and wait for the GPU, if the process uses CuPy."""
    cupy = sys.modules.get("cupy")
    if cupy is None or not caching_allocators():
        return
    for device in caching_allocators():
        with cupy.cuda.Device(device):
            cupy.fft.config.get_plan_cache().clear()
            cupy.cuda.runtime.deviceSynchronize()


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _out_of_memory(error: Any) -> Exception:
    """Return CuPy's exception with the allocator's message, so that ``except`` clauses work."""
    explain_error(error)
    exception: Exception = import_cupy().cuda.memory.OutOfMemoryError(
        error.requested_size,
        error.reserved,
        error.limit or 0,
    )
    exception.args = (str(error),)
    return exception


def _observed_out_of_memory(error: BaseException, device: int, requested: int) -> None:
    """Append an explanation to the error of the program's own allocator."""
    details = {"limit": getattr(error, "_limit", None) or NOT_LIMITED}
    # The device itself may have failed.
    with suppress(Exception), import_cupy().cuda.Device(device):
        free, total = import_cupy().cuda.runtime.memGetInfo()
        details |= {"device_free": free, "device_total": total}
    explain_failure(error, FailureReport(device, threading.get_native_id(), requested, details))


def _arguments_of_state() -> dict[str, Any]:
    cupy = import_cupy()
    return {
        "runtime_module": importlib.import_module("cupy_backends.cuda.api.runtime"),
        "stream_module": importlib.import_module("cupy_backends.cuda.stream"),
        "current_device": cupy.cuda.runtime.getDevice,
        "current_stream": lambda: cupy.cuda.get_current_stream().ptr,
        "context_device": _context_device(cupy.cuda.runtime.runtimeGetVersion()),
    }


def _context_device(runtime: int) -> int:
    """Return the address of the driver's ``cuCtxGetDevice`` if it returns the current device.

    Else return 0. Before CUDA 12, ``cudaSetDevice`` made no context current.

    Args:
        runtime: The version of the CUDA runtime, ``1000 * major + 10 * minor``.
    """
    if runtime < _SETS_CONTEXT:
        return 0
    count, device = ctypes.c_int(), ctypes.c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
            return 0
        for ordinal in range(count.value):
            if driver.cuDeviceGet(ctypes.byref(device), ordinal) or device.value != ordinal:
                return 0
        return ctypes.cast(driver.cuCtxGetDevice, ctypes.c_void_p).value or 0
    except (OSError, AttributeError):
        return 0


@cache
def cupy_allocator() -> _core.CupyAllocator:
    """Return the process's CuPy allocator, which uses `allocator.memory.caching_allocator`.

    Raises:
        DeviceUnavailableError: There is no CuPy or no usable driver.
    """
    state = _arguments_of_state()
    cuda_driver()
    allocator = _core.CupyAllocator(
        memory_module=import_cupy().cuda.memory,
        **state,
        open_device=caching_allocator,
        out_of_memory=_out_of_memory,
    )
    os.register_at_fork(after_in_child=allocator.abandon)
    return allocator


malloc = _core.cupy_malloc(cupy_allocator)


_MEMORY_ALLOCATION = 2  # cudaErrorMemoryAllocation


def _pinned_memory_refused(text: str) -> Exception:
    """Return the exception of CuPy's own pool, with a note that has the size."""
    failure: Exception = import_cupy().cuda.runtime.CUDARuntimeError(_MEMORY_ALLOCATION)
    failure.add_note(text)
    return failure


@cache
def pinned_allocator() -> _core.PinnedAllocator:
    """Return what serves CuPy from `allocator.memory.host_allocator`.

    Raises:
        DeviceUnavailableError: There is no CuPy or no usable driver.
    """
    state = _arguments_of_state()
    cuda_driver()
    allocator = _core.PinnedAllocator(
        pointer_type=import_cupy().cuda.PinnedMemoryPointer,
        **state,
        open_host=host_allocator,
        open_device=caching_allocator,
        refused=_pinned_memory_refused,
    )
    os.register_at_fork(after_in_child=allocator.abandon)
    return allocator


malloc_pinned = _core.cupy_malloc_pinned(pinned_allocator)


@contextmanager
def caching_allocator_installed() -> Iterator[None]:
    """Let the calling thread allocate with gpuviz's allocator in a ``with`` block."""
    cuda = import_cupy().cuda
    if cuda.get_allocator() is malloc:
        yield
    else:
        with cuda.using_allocator(malloc):
            yield


def total_memory(device: int) -> int:
    """Return the bytes of a device."""
    return cuda_driver().total_memory(device)


class Installation:
    """An allocator installed in CuPy until `remove`."""

    def __init__(self, allocator: Allocator) -> None:
        self._cuda = import_cupy().cuda
        self._allocator = allocator
        self.previous: Allocator = self._cuda.get_allocator()
        self._scope: Any = None
        try:
            self._cuda.set_allocator(allocator)
        except ValueError:
            # Inside `using_allocator`, CuPy allows changing only this thread's allocator.
            self._scope = self._cuda.using_allocator(allocator)
            self._scope.__enter__()

    def remove(self) -> bool:
        """Restore the previous allocator; False if the program has replaced ours meanwhile."""
        if self._scope is not None:
            self._scope.__exit__(None, None, None)
            return True
        if self._cuda.get_allocator() is not self._allocator:
            return False
        self._cuda.set_allocator(self.previous)
        return True


_REPLACED = (
    "The program replaced CuPy's allocator during the recording; later allocations are missing."
)


def _record_pinned_memory(session: _core.Session, *, stacks: bool) -> None:
    """Record the allocator of pinned memory, and report the copies that the tracer sees to it."""

    def record(allocator: _core.HostAllocator) -> None:
        allocator.follow_copies(session)
        allocator.record_into(session)

    pinned_allocator().set_session(session, stacks=stacks)
    set_new_host_allocator_hook(record)


def _stop_recording_pinned_memory() -> None:
    set_new_host_allocator_hook(None)
    pinned_allocator().set_session(None)
    allocator = existing_host_allocator()
    if allocator is not None:
        allocator.stop_recording()


# Who wants the graphs that CuPy captures with gpuviz's allocator to keep their memory.
_keepers: set[str] = set()


def _keep_graphs(keeper: str) -> None:
    watch_captures(import_cupy(), _graphs_are_kept)
    _keepers.add(keeper)


def _graphs_are_kept() -> bool:
    return bool(_keepers) and is_installed()


class _Installed:
    """The installation by `install`, until `uninstall`."""

    now: Installation | None = None


def install() -> None:
    """Let CuPy allocate arrays from gpuviz's caching allocator, in all threads.

    As ``cupy.cuda.set_allocator(gpuviz.malloc)``, and the graphs that CuPy's streams capture keep
    their memory, as those of `gpuviz.graph`. It does nothing the second time.

    Raises:
        DeviceUnavailableError: CuPy is missing.
    """
    if not is_installed():
        _Installed.now = Installation(malloc)
    _keep_graphs("install")


def uninstall() -> None:
    """Restore the allocator that CuPy had before `install`, if the program has set no other."""
    if _Installed.now is not None:
        _Installed.now.remove()
        _Installed.now = None
    _keepers.discard("install")


def is_installed() -> bool:
    """Return whether CuPy allocates from gpuviz's caching allocator in the calling thread."""
    return import_cupy().cuda.get_allocator() is malloc


class FailedFrees:
    """The frees of arrays that fail from now on, which cannot raise an exception."""

    def __init__(self, *clients: _core.CupyAllocator | _core.PinnedAllocator) -> None:
        self._clients = clients
        self._before = self._lost()

    def _lost(self) -> int:
        return sum(client.lost_frees for client in self._clients) + lost_frees()

    def notes(self) -> tuple[str, ...]:
        """Return a sentence with their number; nothing without any."""
        count = self._lost() - self._before
        failed = format_counted(count, "free of an array failed", "frees of arrays failed")
        return (f"{failed}; that memory stays allocated.",) if count else ()


class CachingSource(ProcessMemory):
    """gpuviz's caching allocator, installed in CuPy and in other libraries for one recording."""

    allocator = "caching"
    allocator_name = "gpuviz caching allocator"
    framework = "cupy"

    def __init__(self, *, stacks: bool, prevention: Prevention = NO_PREVENTION) -> None:
        self._keeps_graphs = prevention.record_stream == "auto"
        self._prevented = PreventedReuse(prevention)
        self._client = cupy_allocator()
        super().__init__(stacks=stacks)
        self._failed_frees = FailedFrees(self._client, pinned_allocator())
        # The blocks of gpuviz's allocator wait for the copies that the tracer sees.
        instead = malloc_pinned if prevention.record_stream == "auto" else None
        self._pinned_pool = RecordedPinnedPool(import_cupy().cuda, instead)
        self._default_pool = DefaultPool()
        self._installation: Installation | None = None
        self._final_stats: dict[int, dict[str, int]] = {}

    def _attached(
        self, session: _core.Session, device: int, allocator: _core.CachingAllocator
    ) -> None:
        self._prevented.begin(device, allocator, partial(allocator.track_uses, session))
        self._default_pool.limit(device)

    def _install(self, session: _core.Session) -> None:
        _record_pinned_memory(session, stacks=self._stacks)
        self._pinned_pool.begin(session, stacks=self._stacks)
        self._client.set_session(session, stacks=self._stacks)
        set_empty_cache(self._client.empty_cache)
        self._installation = Installation(malloc)
        self._default_pool.begin()
        if self._keeps_graphs:
            _keep_graphs("recording")

    def end(self) -> tuple[str, ...]:
        """Restore the allocators of CuPy and others, and release unused memory to the device."""
        self._default_pool.end()
        installation = self._installation
        restored = installation is None or installation.remove()
        _keepers.discard("recording")
        notes = super().end()
        for device, allocator in caching_allocators().items():
            self._final_stats[device] = allocator.memory_stats()
            if installation is not None and installation.previous is not malloc:
                allocator.empty_cache()
        replaced = () if restored else (_REPLACED,)
        return (*replaced, *notes, *self._failed_frees.notes())

    def _stop(self) -> tuple[str, ...]:
        self._client.set_session(None)
        self._pinned_pool.end()
        _stop_recording_pinned_memory()
        set_empty_cache(None)
        return self._prevented.end()

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return settings, versions and the allocator's final statistics."""
        return {
            "settings": get_allocator_settings(),
            "memory_stats": dict(self._final_stats),
            **self._prevented.fields(),
            **versions(),
        }


def _name_of(allocator: Allocator) -> str:
    owner = getattr(allocator, "__self__", None)
    kind: Any = allocator if owner is None or isinstance(owner, ModuleType) else type(owner)
    return f"{kind.__module__}.{kind.__qualname__}"


_observers: weakref.WeakSet[_core.CupyObserver] = weakref.WeakSet()


def _abandon_observers() -> None:
    for observer in list(_observers):
        observer.abandon()


os.register_at_fork(after_in_child=_abandon_observers)


def _total_bytes_of(memory: Any) -> Callable[[], int] | None:
    """Return the function that reports the size of the pool of one device, of CuPy's MemoryPool.

    It takes a fifth of the time of the one that looks for the current device's pool.
    """
    pool = memory.pool() if type(memory) is import_cupy().cuda.memory.PooledMemory else None
    return None if pool is None else cast("Callable[[], int]", pool.total_bytes)


class ObservingSource(ProcessMemory):
    """The program's own allocator, observed for one recording.

    No reference to it is kept afterwards, so a pool releases its memory when the program deletes
    it.
    """

    allocator = "observe"
    framework = "cupy"
    memory = ""

    def __init__(self, *, stacks: bool) -> None:
        self._cuda = import_cupy().cuda
        super().__init__(stacks=stacks, only_observe=True)
        self.allocator_name = _name_of(self._cuda.get_allocator())
        self._observer: _core.CupyObserver | None = None
        self._pinned_pool = RecordedPinnedPool(self._cuda)
        self._installation: Installation | None = None
        self._seen: set[int] = set()

    def describe(self, session: _core.Session) -> None:
        """Push what is known: CuPy's earlier allocations were not observed."""
        self._libraries.describe(session)

    def begin(self, session: _core.Session) -> None:
        """Start recording the program's allocator."""
        observed = self._cuda.get_allocator()
        self.allocator_name = _name_of(observed)
        owner = getattr(observed, "__self__", None)
        pool = owner if isinstance(owner, self._cuda.MemoryPool) else None
        observer = _core.CupyObserver(
            memory_module=self._cuda.memory,
            **_arguments_of_state(),
            allocator=observed,
            total_bytes=None if pool is None else pool.total_bytes,
            total_bytes_of=_total_bytes_of if type(pool) is self._cuda.MemoryPool else None,
            out_of_memory=_observed_out_of_memory,
        )
        _observers.add(observer)
        observer.set_session(session, stacks=self._stacks)
        _record_pinned_memory(session, stacks=self._stacks)
        self._pinned_pool.begin(session, stacks=self._stacks)
        self._observer = observer
        self._installation = Installation(_core.observed_malloc(lambda: observer))
        self._libraries.begin()

    def end(self) -> tuple[str, ...]:
        """Restore the program's allocator, and drop the reference to it."""
        restored = self._installation is None or self._installation.remove()
        libraries = self._libraries.end()
        self._pinned_pool.end()
        _stop_recording_pinned_memory()
        self._seen = self._devices()
        if self._observer is not None:
            self._observer.set_session(None)
        self._observer = self._installation = None
        return libraries if restored else (_REPLACED, *libraries)

    def _devices(self) -> set[int]:
        observer = self._observer
        if observer is None:
            return self._seen
        return {*observer.devices(), *self._libraries.devices()}

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return versions; other allocators have no settings or statistics like torch's."""
        return versions()


def memory_types() -> list[tuple[type, Any, Any]]:
    """Return CuPy's classes of memory with the descriptors of their addresses and sizes.

    Those that own no memory have None instead of descriptors.
    """
    memory = import_cupy().cuda.memory
    base = memory.BaseMemory
    return [
        (memory.UnownedMemory, None, None),
        (base, vars(base)["ptr"], vars(base)["size"]),
    ]


def default_pool_bytes() -> tuple[int, int]:
    """Return the used and the cached bytes of CuPy's own pool on the current device.

    Raises:
        Exception: The device is unavailable.
    """
    pool = own_default_pool()
    return int(pool.used_bytes()), int(pool.free_bytes())


def release_caches(*, plans: bool, pool: bool) -> None:
    """Clear CuPy's cache of FFT plans or the default pool's cached memory."""
    cupy = import_cupy()
    if plans:
        cupy.fft.config.get_plan_cache().clear()
    if pool:
        own_default_pool().free_all_blocks()
