"""cuda.core on gpuviz's caching allocator; the only file that imports cuda.core."""

import importlib
import inspect
import threading
from functools import cache
from typing import Any

from gpuviz import _core
from gpuviz.allocator.arguments import integer
from gpuviz.allocator.driver import cuda_driver
from gpuviz.frameworks.shared_pool import explained, import_library, shared_pool

_IN_GRAPH = (
    "gpuviz's memory resource cannot allocate in a graph that is being built; "
    "use cuda.core.GraphMemoryResource there."
)


class _Thread(threading.local):
    """The memory resources that the calling thread's devices had, by ordinal."""

    def __init__(self) -> None:
        self.previous: dict[int, Any] = {}


_thread = _Thread()


def install() -> None:
    """Let ``cuda.core.Device.allocate`` use gpuviz's caching allocator, in the calling thread.

    cuda.core keeps the memory resources of the devices by thread. Elsewhere, set
    ``Device.memory_resource`` to `memory_resource`. It does nothing the second time.

    Raises:
        DeviceUnavailableError: cuda.core or a usable driver is missing.
    """
    for device, each in enumerate(_devices()):
        ours = memory_resource(device)
        if _resource_of(each) is not ours:
            _thread.previous[device] = _resource_of(each)
            each.memory_resource = ours


def uninstall() -> None:
    """Restore the memory resources of the calling thread's devices, where they are gpuviz's."""
    for device, previous in _thread.previous.items():
        each = _core_module().Device(device)
        if _resource_of(each) is not memory_resource(device):
            continue
        if previous is None:
            each._memory_resource = None  # noqa: SLF001 - see _resource_of
        else:
            each.memory_resource = previous
    _thread.previous.clear()


def is_installed() -> bool:
    """Return whether all devices of the calling thread use gpuviz's caching allocator."""
    return bool(_thread.previous) and all(
        _resource_of(each) is memory_resource(device) for device, each in enumerate(_devices())
    )


def programs_choice() -> str:
    """Return the name of the memory resource that the program has set; empty without one."""
    default = _core_module().DeviceMemoryResource
    for each in _devices():
        resource = _resource_of(each)
        is_default = isinstance(resource, default) and not resource.is_handle_owned
        if resource is not None and not is_default:
            return type(resource).__qualname__
    return ""


def memory_resource(device: int = 0) -> Any:
    """Return the ``cuda.core.MemoryResource`` of a device over gpuviz's caching allocator.

    Its buffers may be closed on any stream: memory is reused once that stream has done the work
    queued before.

    Args:
        device: Its ordinal.

    Raises:
        DeviceUnavailableError: cuda.core or a usable driver is missing.
        TypeError: ``device`` is no integer.
        ValueError: There is no such device.
    """
    ordinal = integer("device", device, "the ordinal of a GPU")
    count = cuda_driver().device_count()
    if ordinal >= count:
        raise ValueError(f"device {ordinal} does not exist; the GPUs are 0 to {count - 1}")
    return _memory_resource(ordinal)


@cache
def _memory_resource(device: int) -> Any:
    return _resource_class()(device)


def _core_module() -> Any:
    return import_library("cuda.core", "cuda-core")


def _resource_of(device: Any) -> Any:
    """Return a device's memory resource; None if it has none yet.

    The property would create one, which changes when the driver's own pool releases memory.
    """
    try:
        return device._memory_resource  # noqa: SLF001
    except AttributeError:
        return device.memory_resource


def _devices() -> list[Any]:
    core = _core_module()
    return [core.Device(device) for device in range(cuda_driver().device_count())]


def _error_class() -> type[Exception]:
    """Return the class of errors of allocations: cuda.core's, which has no public name."""
    try:
        errors = importlib.import_module("cuda.core._utils.cuda_utils")
        return type("OutOfMemoryError", (errors.CUDAError, MemoryError), {})
    except (ImportError, AttributeError, TypeError):
        return MemoryError


def _takes_stream(function: Any) -> bool:
    """Return whether a function has a parameter ``stream``, as `Buffer.from_handle` since 1.1."""
    try:
        return "stream" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


@cache
def _resource_class() -> type:
    core = _core_module()
    builder = (
        getattr(core, "GraphBuilder", None)
        or importlib.import_module("cuda.core.graph").GraphBuilder
    )
    from_handle = core.Buffer.from_handle
    takes_stream = _takes_stream(from_handle)
    out_of_memory = _error_class()
    pool = shared_pool()
    # Looking them up in each call takes longer than an allocation.
    allocate, free, free_after = pool.allocate, pool.free, pool.free_after
    ours = _core.Framework.cuda_core

    class GpuvizMemoryResource(core.MemoryResource):  # type: ignore[misc, name-defined]
        """Memory of one device from gpuviz's caching allocator."""

        is_device_accessible = True
        is_host_accessible = False
        is_managed = False

        def __init__(self, device: int) -> None:
            self._device = device

        @property
        def device_id(self) -> int:
            """The ordinal of the device."""
            return self._device

        def allocate(self, size: int, *, stream: Any) -> Any:
            """Return a buffer of ``size`` bytes for use on ``stream``."""
            if isinstance(stream, builder):
                raise RuntimeError(_IN_GRAPH)  # noqa: TRY004 - the wrong moment
            try:
                address = allocate(size, self._device, stream, ours)
            except MemoryError as error:
                raise out_of_memory(explained(error)) from None
            try:
                if takes_stream:
                    return from_handle(address, size, self, stream=stream)
                return from_handle(address, size, self)
            except BaseException:
                free(address, self._device)
                raise

        def deallocate(self, ptr: Any, size: int, *, stream: Any = None) -> None:  # noqa: ARG002
            """Free a buffer, whose memory is reused after the work queued on ``stream``."""
            if stream is None:
                free(int(ptr), self._device)
            else:
                free_after(int(ptr), self._device, stream)

    return GpuvizMemoryResource
